/* queue_life.h - the life of a queue on two Redis at once, drawn call by call.
 *
 *   life->real = …, life->model = …, life->now_ms = …   the rest is zero
 *   same = queue_life_begin(life);                      somebody rules
 *   while (same && …)
 *           same = queue_life_step(life);
 *
 * What a call names is looked up in the small Redis, so that most calls mean something;
 * some are spoilt.  The library's clock is the list warmq_clock in both. */
#ifndef TESTS_SIM_QUEUE_LIFE_H
#define TESTS_SIM_QUEUE_LIFE_H

#include "common/buffer.h"
#include "common/prng.h"
#include "tests/sim/real_redis.h"

enum {
	QUEUE_LIFE_WORDS = 250,
	QUEUE_LIFE_WORD_SIZE = 160,
};

struct queue_life {
	struct real_redis *real;
	struct redis_model *model;
	struct prng prng;
	struct buffer ours, theirs;
	struct span words[QUEUE_LIFE_WORDS];
	char texts[QUEUE_LIFE_WORDS][QUEUE_LIFE_WORD_SIZE];
	size_t count;
	uint64_t now_ms, jobs, q;
	char owner[64];
	char cursor[64];
	bool show;
};

/* Each answers false where the two do not say the same; it stands in ours and theirs. */
bool queue_life_begin(struct queue_life *life);
bool queue_life_step(struct queue_life *life);

/* One command for both, its words up to a NULL.  Unordered: items may stand in any order.
 */
bool queue_life_agrees(struct queue_life *life, bool unordered, const char *first, ...);

#endif
