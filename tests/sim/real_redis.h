/* real_redis.h - a throw-away redis-server for one test, and the comparison with the
 * small one.
 *
 * The server listens on a Unix socket in a temporary directory of its own, keeps nothing
 * on disk, and dies with real_redis_close or with the test. */
#ifndef TESTS_SIM_REAL_REDIS_H
#define TESTS_SIM_REAL_REDIS_H

#include "common/base.h"
#include "common/buffer.h"
#include "tests/sim/redis_model.h"

struct real_redis;

struct real_redis_rules {
	bool unordered;    /* arrays are compared as bags */
	bool near;         /* integers may differ by as many ms as have passed */
	uint64_t since_us; /* near: the time of the model, which stands still */
};

/* NULL if there is no redis-server on the PATH. */
struct real_redis *real_redis_open(void);
void real_redis_close(struct real_redis *real);

/* A command without arguments whose answer does not matter. */
void real_redis_text(struct real_redis *real, const char *command);

/* Its clock, in microseconds. */
uint64_t real_redis_time(struct real_redis *real);

/* Loads a function library in place of the one before; ends the test if it cannot. */
void real_redis_load(struct real_redis *real, struct span library);

/* Gives both the same command and answers whether they said the same; the two answers
 * are left as text.  Of an error only the beginning must agree: Redis adds the place. */
bool real_redis_agrees(struct real_redis *real, struct redis_model *model,
                       const struct span *argv, size_t argc,
                       struct real_redis_rules rules, struct buffer *ret_ours,
                       struct buffer *ret_theirs);

#endif
