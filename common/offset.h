/* offset.h - how far the clock of Redis is from ours, measured from its answers.
 *
 *   ours   sent ──────────── received      an answer carries the time at which Redis
 *   Redis        │ now                     ran the call: somewhere between the two
 *
 * Half of the round trip is the error, so the quickest one is the best witness.  It is
 * believed for a minute, since clocks drift, and no longer than until an answer comes
 * that it cannot explain, since they step. */
#ifndef COMMON_OFFSET_H
#define COMMON_OFFSET_H

#include "common/base.h"

#define OFFSET_LIFE_MS 60000

struct offset {
	int64_t offset_ms;   /* Redis = ours + offset; 0 before the first answer */
	uint64_t trip_ms;    /* round trip of the best witness */
	uint64_t sampled_ms; /* when it spoke, in our time */
	bool is_known;
};

void offset_sample(struct offset *offset, uint64_t sent_ms, uint64_t received_ms,
                   uint64_t redis_ms);

/* Our time in Redis time. */
uint64_t offset_redis_ms(const struct offset *offset, uint64_t local_ms);

#endif
