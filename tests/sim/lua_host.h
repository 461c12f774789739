/* lua_host.h - where the small Redis runs the real function library: Lua 5.1, and the
 * few words of Redis's scripting interface.
 *
 *   FCALL warmq_claim 1 warmq:meta 1 … ──► callback(keys, args)
 *                                             redis.call ──► redis_model_call_inside
 *   struct reply ◄── Lua value, converted as Redis 7.0 does: numbers are cut to
 *                    integers, false is nil, an array ends at its first nil
 *
 * As in Redis, a script sees no files, no clock and no globals of its own: reading an
 * unknown global or writing any is an error.  math.random is missing on purpose, so that
 * nothing can be drawn that a seed does not know.
 *
 * One host serves one model for one run; a fresh one begins with the same tables in the
 * same order, which is what makes a run repeatable. */
#ifndef TESTS_SIM_LUA_HOST_H
#define TESTS_SIM_LUA_HOST_H

#include "common/base.h"
#include "tests/sim/redis_model.h"

struct lua_host;

struct lua_host *lua_host_create(void);
void lua_host_destroy(struct lua_host *host);

/* Loads a library: "#!lua name=…", then code that calls redis.register_function.
 * Answers NULL, or what is wrong with it, in words that live until the next call. */
const char *lua_host_load(struct lua_host *host, struct span library);

/* Makes this host answer the model's FCALLs. */
void lua_host_attach(struct lua_host *host, struct redis_model *model);

#endif
