/* http_server.h - a small HTTP server on a libuv loop: health, metrics, pages, an API.
 *
 *   socket ── libmicrohttpd (its own epoll) ── uv_poll ──► your handler ──► whole answer
 *
 * One thread, no locks: libmicrohttpd keeps all its sockets in one epoll descriptor, and
 * the loop watches that.  A handler is called once a request is complete and fills an
 * answer before it returns; what takes longer does not belong here.
 *
 * Bounds: HTTP_SERVER_CONNECTIONS_MAX at a time, bodies of HTTP_SERVER_BODY_MAX (413
 * beyond), 30 s of silence.  It serves whoever can connect: listen on loopback, or put a
 * proxy with authentication before it. */
#ifndef COMMON_IO_HTTP_SERVER_H
#define COMMON_IO_HTTP_SERVER_H

#include "common/base.h"
#include "common/buffer.h"
#include "common/error.h"

#include <uv.h>

#define HTTP_SERVER_CONNECTIONS_MAX 512
#define HTTP_SERVER_BODY_MAX        ((size_t)1 << 20)
#define HTTP_SERVER_SILENCE_S       30
#define HTTP_SERVER_MESSAGE_SIZE    256

struct http_server; /* opaque */

/* Lives until the handler returns. */
struct http_server_request {
	const char *method; /* "GET"; HEAD is answered as GET, without the body */
	const char *path;   /* decoded, without the query */
	struct span body;
	void *connection; /* for http_server_query and http_server_header */
};

/* Begins as an empty 200 of type text/plain; the server frees the body. */
struct http_server_response {
	unsigned status;
	const char *content_type; /* a literal */
	struct buffer body;
	const char *allow; /* with a 405: the methods that exist; a literal */
};

typedef void http_server_fn(const struct http_server_request *request,
                            struct http_server_response *response, void *data);
typedef void http_server_closed_fn(void *data);

/* Listens at `address`: "127.0.0.1:9310", "[::1]:0"; port 0 is any free one.  On failure
 * `ret_message` is a sentence with the address. */
MUST_USE int http_server_open(uv_loop_t *loop, const char *address, http_server_fn *fn,
                              void *data, struct http_server **ret_server,
                              char ret_message[HTTP_SERVER_MESSAGE_SIZE]);

uint16_t http_server_port(const struct http_server *server);

/* A query argument or a header, or NULL. */
const char *http_server_query(const struct http_server_request *request,
                              const char *name);
const char *http_server_header(const struct http_server_request *request,
                               const char *name);

/* Closes all connections; `fn` (may be NULL) is called when the memory is gone.  Takes
 * NULL, and then calls nobody.  Not from within a handler. */
void http_server_close(struct http_server *server, http_server_closed_fn *fn, void *data);

#endif
