/* server.h - the Redis of the simulated world: the small one, with a life of its own.
 *
 *   up ──crash──► down ──start──► up, without what its log had not kept
 *
 * It loses its tail as Redis with `appendfsync everysec` does: every call that may write
 * is kept with its time, and a restart plays them again up to a moment before the crash.
 * Functions are deterministic, so what comes back is exactly a prefix of history.
 *
 * Its clock is the world's plus an offset that may step in either direction. */
#ifndef TESTS_SIM_SERVER_H
#define TESTS_SIM_SERVER_H

#include "common/base.h"
#include "tests/sim/agenda.h"
#include "tests/sim/lua_host.h"
#include "tests/sim/redis_model.h"

#define SERVER_EPOCH_US 1800000000000000ull /* its clock when the world begins */

struct server_record; /* one call of the past */

/* What the world wants to know.  `before` and `after` are not called for replays. */
struct server_watch {
	void (*before)(void *context, const struct span *argv, size_t argc);
	redis_watch_fn *inside; /* of functions */
	void (*after)(void *context, const struct span *argv, size_t argc,
	              const struct reply *reply);
	void *context;
	redis_publish_fn *publish;
	void *publish_context;
};

struct server {
	const struct agenda *agenda;
	struct span library;
	struct server_watch watch;
	struct redis_model *model;
	struct lua_host *host;
	int64_t offset_us; /* of its clock */
	bool up;
	uint64_t lives; /* starts so far */
	uint64_t died_us;
	struct server_record *records;
	size_t records_count, records_room;
	uint64_t calls;
};

/* Starts it.  `library` is borrowed; an error in it ends the run. */
void server_init(struct server *server, const struct agenda *agenda, struct span library);
void server_fini(struct server *server);

/* It is up.  The answer lives until the next call. */
const struct reply *server_call(struct server *server, const struct span *argv,
                                size_t argc);

/* The same without history and watchers: for oracles. */
const struct reply *server_peek(struct server *server, const struct span *argv,
                                size_t argc);

void server_crash(struct server *server);

/* Starts it again without what happened after `kept_us` of world time. */
void server_start(struct server *server, uint64_t kept_us);

uint64_t server_now_us(const struct server *server); /* by its own clock */
uint64_t server_now_ms(const struct server *server);

#endif
