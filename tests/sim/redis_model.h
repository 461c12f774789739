/* redis_model.h - a Redis small enough to own: one thread, no sockets, given time.
 *
 *   argv ──► redis_model_call ──► struct reply        FCALL goes to the function host
 *                                                     (lua_host.h), which calls back
 *
 * It knows the commands that WarmQ, its tests and a curious person use, with Redis's
 * own arities, reply types and error texts (7.0); tests/sim/test_conformance.c holds it
 * against a real server.  Where Redis promises no order (HGETALL, KEYS, SMEMBERS,
 * HSCAN), this one sorts by name.  SCAN commands answer everything at once.
 *
 * Time is microseconds since 1970, set by the owner and never read anywhere else.
 * Replies live until the next call. */
#ifndef TESTS_SIM_REDIS_MODEL_H
#define TESTS_SIM_REDIS_MODEL_H

#include "common/base.h"
#include "common/reply.h"
#include "tests/sim/redis_value.h"

struct redis_model;

/* Runs a function of the library; `read_only` for FCALL_RO.  It answers from the
 * model's arena (redis_answer.h). */
typedef const struct reply *redis_function_fn(void *context, struct redis_model *model,
                                              struct span name, const struct span *keys,
                                              size_t keys_count, const struct span *args,
                                              size_t args_count, bool read_only);

/* Whether there is a function of this name. */
typedef bool redis_function_exists_fn(void *context, struct span name);

/* Sees every command with its answer, those inside functions as they happen. */
typedef void redis_watch_fn(void *context, const struct span *argv, size_t argc,
                            const struct reply *reply, bool inside);

typedef void redis_publish_fn(void *context, struct span channel, struct span message);

struct redis_model *redis_model_create(void);
void redis_model_destroy(struct redis_model *model);

/* Time and keys, without whoever answers or watches its calls. */
struct redis_model *redis_model_copy(const struct redis_model *model);

/* May also step backwards, as clocks do. */
void redis_model_set_time(struct redis_model *model, uint64_t now_us);

void redis_model_set_functions(struct redis_model *model, redis_function_fn *run,
                               redis_function_exists_fn *exists, void *context);
void redis_model_set_publish(struct redis_model *model, redis_publish_fn *publish,
                             void *context);

void redis_model_set_watch(struct redis_model *model, redis_watch_fn *watch,
                           void *context);

const struct reply *redis_model_call(struct redis_model *model, const struct span *argv,
                                     size_t argc);

/* The same for words of text; ends with NULL. */
const struct reply *redis_model_text(struct redis_model *model, const char *word, ...)
	__attribute__((sentinel));

/* A command from inside a function: the arena is kept, FCALL is refused, and so is
 * every write if `read_only`. */
const struct reply *redis_model_call_inside(struct redis_model *model,
                                            const struct span *argv, size_t argc,
                                            bool read_only);

/* For oracles: the value of a key that has not expired, or NULL; all keys in order with
 * *cursor = 0 at the start. */
const struct redis_value *redis_model_find(const struct redis_model *model,
                                           struct span key);
const struct redis_value *redis_model_next(const struct redis_model *model,
                                           size_t *cursor);

/* Whether the command of this name may change something. */
bool redis_model_writes(struct span name);

/* True for the text replies that Redis sends as a status line (+OK). */
bool redis_model_is_status(const struct reply *reply);

#endif
