/* redis_reply.h - from hiredis's tree of replies to ours.
 *
 * The rest of the program sees struct reply only, so that the simulator can answer in
 * hiredis's place.  The nodes live in one array that is reused; the texts stay where
 * hiredis has them.  A converted reply therefore dies with the original, or at the next
 * conversion, whichever is first. */
#ifndef COMMON_IO_REDIS_REPLY_H
#define COMMON_IO_REDIS_REPLY_H

#include "common/base.h"
#include "common/error.h"
#include "common/reply.h"

struct redisReply;

struct redis_reply_nodes {
	struct reply *nodes;
	size_t room;
};

/* ERR_MEMORY, or ERR_LIMIT for a tree that is deeper than any of ours. */
MUST_USE int redis_reply_convert(struct redis_reply_nodes *nodes,
                                 const struct redisReply *from,
                                 const struct reply **ret_reply);

void redis_reply_fini(struct redis_reply_nodes *nodes);

#endif
