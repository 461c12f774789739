/* greet.h - the first words on a new connection: is this a Redis that we can rule?
 *
 *   INFO server ─► version >= 7.0?     CONFIG GET maxmemory-policy ─► noeviction?
 *   FCALL warmq_version ─► missing or older? FUNCTION LOAD REPLACE      TIME ─► offset
 *
 * Ends with one callback: 0, or an error and a sentence that says what to do.
 * ERR_UNSUPPORTED means that trying again will not help. */
#ifndef SCHEDULER_GREET_H
#define SCHEDULER_GREET_H

#include "common/base.h"
#include "common/error.h"
#include "common/io/redis.h"
#include "common/offset.h"

#define GREET_MESSAGE_SIZE 320

typedef void greet_done_fn(int error, const char *message, void *data);

struct greet {
	struct redis *redis;
	struct span ns;
	greet_done_fn *fn;
	void *data;
	uint64_t sent_ms;     /* of TIME, monotonic */
	uint32_t samples;     /* of TIME, still to be taken */
	struct offset offset; /* of the clock of Redis from the monotonic one */
	char message[GREET_MESSAGE_SIZE];
};

/* `redis` is ready.  One greeting at a time for each struct. */
void greet_start(struct greet *greet, struct redis *redis, struct span ns,
                 greet_done_fn *fn, void *data);

/* Measures the offset again; `fn` is called with 0 or an error. */
void greet_measure(struct greet *greet, greet_done_fn *fn, void *data);

#endif
