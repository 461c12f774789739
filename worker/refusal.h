/* refusal.h - what an upstream's model was seen to refuse of what WarmQ adds.
 *
 * A refused addition is left out from then on, for as long as the process lives: the
 * first refusal costs one request, the others none.  At most REFUSAL_MAX pairs of
 * upstream and model are remembered, the oldest goes first. */
#ifndef WORKER_REFUSAL_H
#define WORKER_REFUSAL_H

#include "common/base.h"

#define REFUSAL_MAX 256

enum refusal {
	REFUSAL_MARKERS = 1,
	REFUSAL_CACHE_KEY = 2,
	REFUSAL_USAGE = 4,
	REFUSAL_STREAM = 8,
};

#define REFUSAL_KINDS 4

struct refusal_entry {
	const void *upstream;
	char model[128];
	unsigned what; /* enum refusal */
};

struct refusal_list {
	struct refusal_entry entries[REFUSAL_MAX];
	uint32_t count; /* ever added; the index of the next one, modulo the size */
};

/* 0 if nothing is known. */
unsigned refusal_of(const struct refusal_list *list, const void *upstream,
                    struct span model);

void refusal_add(struct refusal_list *list, const void *upstream, struct span model,
                 unsigned what);

#endif
