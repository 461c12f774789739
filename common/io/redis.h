/* redis.h - one pipelined connection to Redis on a libuv loop.
 *
 *            redis_connect                on_ready
 *   idle ───────────────────► connecting ──────────► ready ──┐
 *     ▲                            │                         │ lost, timed out
 *     │ REDIS_STAY_DOWN            ▼                         ▼
 *     └──────────────────────── on_down: answers the wait before the next try
 *                                  │  ▲
 *                                  ▼  │
 *                               waiting
 *
 * Every command gets exactly one answer, in the order of sending: a reply, or NULL and
 * an error.  After ERR_CONNECTION or ERR_TIMEOUT the effect of the command is unknown:
 * it may have run.  Nothing is sent twice; that is the caller's decision.
 *
 * A reply and all it points to lives until its callback returns.
 *
 * Time: the connect timeout covers everything up to the greeting's last answer.  A
 * command's timeout starts when it is the oldest one unanswered, so a long pipeline does
 * not time out because it is long; when it passes, the connection is given up with all
 * its commands, since a silent peer cannot be told from a dead one.
 *
 * The address is resolved by the system's blocking resolver: use an IP address or a Unix
 * socket where a second's pause would hurt.  No subscriptions: use a stream.
 *
 * redis_create ignores SIGPIPE for the whole process: hiredis writes with write(2), and
 * a vanished server must be an error, not the end.
 *
 * Works with hiredis 0.14 (Debian 12) and 1.x (Debian 13), over our own libuv adapter:
 * the one in 0.14 ignores poll errors and knows no timers. */
#ifndef COMMON_IO_REDIS_H
#define COMMON_IO_REDIS_H

#include "common/base.h"
#include "common/error.h"
#include "common/io/redis_url.h"
#include "common/reply.h"

#include <uv.h>

#define REDIS_STAY_DOWN      UINT64_MAX
#define REDIS_NO_TIMEOUT     UINT64_MAX
#define REDIS_WORDS_MAX      100000 /* per command */
#define REDIS_CONNECT_MS     5000
#define REDIS_COMMAND_MS     10000
#define REDIS_PIPELINE_COUNT 4096

struct redis; /* opaque: create, then destroy */

/* `reply` is NULL iff `error` < 0.  A reply of kind REPLY_ERROR is a reply: Redis ran or
 * refused the command and says why. */
typedef void redis_reply_fn(struct redis *redis, const struct reply *reply, int error,
                            void *data);
typedef void redis_closed_fn(void *data);

struct redis_handlers {
	/* Connected and greeted: commands may be sent. */
	void (*on_ready)(struct redis *redis, void *data);

	/* Could not connect (error of the greeting included), or lost the connection;
	 * all commands were answered before.  Answers the milliseconds until the next
	 * try, or REDIS_STAY_DOWN.  Called from the loop, never from within a call. */
	uint64_t (*on_down)(struct redis *redis, int error, const char *message,
	                    void *data);
};

struct redis_options {
	struct redis_url url;
	struct redis_handlers handlers;
	void *data;
	const char *client_name;     /* for CLIENT LIST; NULL = none; copied */
	uint64_t connect_timeout_ms; /* 0 = REDIS_CONNECT_MS */
	uint64_t command_timeout_ms; /* 0 = REDIS_COMMAND_MS */
	uint32_t pipeline_max;       /* unanswered commands; 0 = REDIS_PIPELINE_COUNT */
};

MUST_USE int redis_create(uv_loop_t *loop, const struct redis_options *options,
                          struct redis **ret_redis);

/* Begins to connect, unless it already does or is.  The outcome comes by handler, also
 * when it is certain at once. */
void redis_connect(struct redis *redis);

/* Gives the connection up as if the network had: pending commands end with
 * ERR_CONNECTION, then on_down is called.  No-op when idle. */
void redis_drop(struct redis *redis, const char *message);

bool redis_is_ready(const struct redis *redis);
uint32_t redis_pending(const struct redis *redis); /* commands not yet answered */
void *redis_data(const struct redis *redis);

/* Sends one command of `count` words, copied before it returns.  ERR_CONNECTION when not
 * ready, ERR_FULL when pipeline_max commands are unanswered; `fn` is then never called.
 */
MUST_USE int redis_command(struct redis *redis, const struct span *words, size_t count,
                           redis_reply_fn *fn, void *data);

/* The same with a timeout of its own, for blocking commands: allow for the block time. */
MUST_USE int redis_command_within(struct redis *redis, uint64_t timeout_ms,
                                  const struct span *words, size_t count,
                                  redis_reply_fn *fn, void *data);

/* Answers what is pending with ERR_CONNECTION, closes, and calls `fn` (may be NULL) when
 * the memory is gone.  May be called from any of the callbacks above. */
void redis_destroy(struct redis *redis, redis_closed_fn *fn, void *data);

#endif
