/* redis_sync.h - a connection that waits: for command-line tools, never for a loop.
 *
 *   err = redis_sync_open(&url, 5000, &redis, message);
 *   err = redis_sync_command(redis, words, count, 0, &reply);
 *
 * Several commands may be in flight: append them all, then ask for the answers in the
 * same order.  After ERR_CONNECTION or ERR_TIMEOUT the connection is dead and only
 * redis_sync_close is left.
 *
 * A reply lives until the next call on the same connection.  redis_sync_open ignores
 * SIGPIPE for the whole process, as redis_create does. */
#ifndef COMMON_IO_REDIS_SYNC_H
#define COMMON_IO_REDIS_SYNC_H

#include "common/base.h"
#include "common/error.h"
#include "common/io/redis_url.h"
#include "common/reply.h"

#define REDIS_SYNC_MESSAGE_SIZE 512

struct redis_sync;

/* Connects, authenticates and selects the database.  On failure `ret_message` says what
 * failed and where, in a sentence for people, without the password. */
MUST_USE int redis_sync_open(const struct redis_url *url, uint64_t timeout_ms,
                             struct redis_sync **ret_sync,
                             char ret_message[REDIS_SYNC_MESSAGE_SIZE]);

/* Sends one command and waits for its answer, at most `timeout_ms` (0: the time given to
 * open).  A reply of kind REPLY_ERROR is a success here: Redis answered. */
MUST_USE int redis_sync_command(struct redis_sync *sync, const struct span *words,
                                size_t count, uint64_t timeout_ms,
                                const struct reply **ret_reply);

MUST_USE int redis_sync_append(struct redis_sync *sync, const struct span *words,
                               size_t count);
MUST_USE int redis_sync_next(struct redis_sync *sync, uint64_t timeout_ms,
                             const struct reply **ret_reply);

/* Why the last call failed. */
const char *redis_sync_message(const struct redis_sync *sync);

/* Answers NULL, so that `sync = redis_sync_close(sync)` is one line.  Takes NULL. */
struct redis_sync *redis_sync_close(struct redis_sync *sync);

#endif
