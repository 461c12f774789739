/* redis_link.h - hiredis's asynchronous context on a libuv loop, for the life of one
 * socket.
 *
 *   open ──► on_connected ──► on_answer ... on_answer ──► on_gone, exactly once
 *
 * hiredis frees its context by itself when the socket fails, in the middle of whatever it
 * does; its clean-up hook is the one place where that is certain to be seen.  Everything
 * here looks whether that happened after each call into hiredis, and says on_gone only
 * then, since versions differ in whether the last answers come before or after the hook.
 * The uv_poll_t needs one more turn of the loop to close, which is why the link is on the
 * heap and frees itself there.
 *
 * Only redis.c and redis_listen.c use this file. */
#ifndef COMMON_IO_REDIS_LINK_H
#define COMMON_IO_REDIS_LINK_H

#include "common/base.h"
#include "common/error.h"
#include "common/io/redis_url.h"

#include <uv.h>

struct redisReply;
struct redis_link;

struct redis_link_handlers {
	void (*on_connected)(void *data);

	/* One per command, in order; NULL when the link ends before the answer. */
	void (*on_answer)(const struct redisReply *reply, void *data);

	/* All answers were given; the link must not be used any more. */
	void (*on_gone)(int error, const char *message, void *data);
};

/* When it fails at once, no handler is called and `ret_message` says why. */
MUST_USE int redis_link_open(uv_loop_t *loop, const struct redis_url *url,
                             const struct redis_link_handlers *handlers, void *data,
                             struct redis_link **ret_link, char *ret_message,
                             size_t message_size);

MUST_USE int redis_link_send(struct redis_link *link, const struct span *words,
                             size_t count);

/* Ends it now; or, from within on_answer or on_connected, when that returns. */
void redis_link_abort(struct redis_link *link);

/* Whether hiredis has given it up already, though on_gone was not called yet. */
bool redis_link_is_ending(const struct redis_link *link);

#endif
