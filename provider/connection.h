/* connection.h - one client on a socket: requests in, answers out, one at a time.
 *
 *   reading ──► request complete ──► answering ──► reading      keep-alive
 *      │              │                  │    └──► closed
 *      └──────────────┴──────────────────┴───────► closed       client gone, fault
 *
 * A connection belongs to the loop: it frees itself when its last handle has closed.
 * While it is answering, its `on_gone` is called if the client leaves; after it was
 * called, or after connection_end, _abort or _reset, the pointer is void.
 *
 * Output is buffered without bound for a slow reader; answers are small. */
#ifndef PROVIDER_CONNECTION_H
#define PROVIDER_CONNECTION_H

#include "common/base.h"
#include "common/buffer.h"
#include "provider/http_request.h"

#include <uv.h>

struct connection;

/* What a connection tells its owner. */
struct connection_owner {
	void *data;
	size_t body_max;
	uint32_t count;           /* of connections, kept by connection.c */
	struct connection *first; /* of a list, kept by connection.c */
	/* A whole request, or one that cannot be answered otherwise than by `status`. */
	void (*on_request)(void *data, struct connection *connection);
	void (*on_bad_request)(void *data, struct connection *connection, int status);
};

/* Accepts the client waiting at `listener`.  Errors close it at once. */
void connection_accept(struct connection_owner *owner, uv_stream_t *listener);

const struct http_request *connection_request(const struct connection *connection);

/* Frees the body of the request, which has been read. */
void connection_drop_body(struct connection *connection);

/* Who is told when the client leaves in the middle of its answer. */
void connection_watch(struct connection *connection, void (*on_gone)(void *data),
                      void *data);

/* Where the answer's bytes are appended, and the call that writes them.  The ends below
 * flush by themselves. */
struct buffer *connection_output(struct connection *connection);
void connection_flush(struct connection *connection);

/* The answer is complete: wait for the next request, or close once all is written. */
void connection_end(struct connection *connection, bool keep_alive);

/* Closes after writing what was sent; the client sees a broken answer. */
void connection_abort(struct connection *connection);

/* Closes at once with a reset. */
void connection_reset(struct connection *connection);

/* Closes all connections of the owner. */
void connection_close_all(struct connection_owner *owner);

#endif
