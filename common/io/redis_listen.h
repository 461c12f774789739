/* redis_listen.h - one channel of Redis, heard on a connection of its own.
 *
 * Messages may be lost, and with a silent peer they are lost without a sign: who listens
 * also asks from time to time.  A lost connection is made again after
 * REDIS_LISTEN_RETRY_MS; one that said nothing for REDIS_LISTEN_REFRESH_MS is given up
 * and made anew, since it may be dead. */
#ifndef COMMON_IO_REDIS_LISTEN_H
#define COMMON_IO_REDIS_LISTEN_H

#include "common/base.h"
#include "common/error.h"
#include "common/io/redis_url.h"

#include <uv.h>

#define REDIS_LISTEN_RETRY_MS   1000
#define REDIS_LISTEN_REFRESH_MS 60000

struct redis_listen;

/* `message` is borrowed until it returns. */
typedef void redis_listen_fn(struct span message, void *data);

/* `channel` is copied.  Connects in the background. */
MUST_USE int redis_listen_create(uv_loop_t *loop, const struct redis_url *url,
                                 struct span channel, redis_listen_fn *fn, void *data,
                                 struct redis_listen **ret_listen);

/* Nothing is called any more; the memory goes when the loop has closed its handles.
 * Takes NULL. */
void redis_listen_destroy(struct redis_listen *listen);

#endif
