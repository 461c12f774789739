/* http_server.h - a small HTTP server on a libuv loop: health, metrics, pages, an API.
 *
 *   socket ── libmicrohttpd (its own epoll) ── uv_poll ──► your handler
 *                                                               ├─► the whole answer
 *                                                               ├─► http_server_defer:
 *                                                               │   an answer to come
 *                                                               └─► a stream
 *
 * One thread, no locks: libmicrohttpd keeps all its sockets in one epoll descriptor, and
 * the loop watches that.  A handler is called once a request is complete.  It fills an
 * answer before it returns, or it defers: then http_server_answer follows, exactly once,
 * also if the client or the server has gone meanwhile.
 *
 * Bounds: so many connections at a time as the caller says, of which the last quarter is
 * for who has just come: beyond three quarters those are closed that have been there
 * longest (http_guests.h).  Bodies of HTTP_SERVER_BODY_MAX (413 beyond), 30 s of silence
 * (streams may be silent).  It serves whoever can connect: listen on loopback, or put a
 * proxy with authentication before it. */
#ifndef COMMON_IO_HTTP_SERVER_H
#define COMMON_IO_HTTP_SERVER_H

#include "common/base.h"
#include "common/buffer.h"
#include "common/error.h"
#include "common/io/http_listen.h"

#include <uv.h>

#define HTTP_SERVER_BODY_MAX     ((size_t)1 << 20)
#define HTTP_SERVER_SILENCE_S    30
#define HTTP_SERVER_MESSAGE_SIZE HTTP_LISTEN_MESSAGE_SIZE

struct http_server; /* opaque */

/* Lives until the handler returns. */
struct http_server_request {
	const char *method; /* "GET"; HEAD is answered as GET, without the body */
	const char *path;   /* decoded, without the query */
	struct span body;
	void *connection; /* for http_server_query and http_server_header */
	void *incoming;   /* for http_server_defer */
};

/* Begins as an empty 200 of type text/plain; the server frees the body. */
struct http_server_response {
	unsigned status;
	const char *content_type; /* a literal */
	struct buffer body;
	struct span constant; /* in place of a body: bytes that live as long as we do */
	const char *allow;    /* with a 405: the methods that exist; a literal */
	const char *const *headers; /* name, value, name, value, …, NULL; or NULL */
};

typedef void http_server_fn(const struct http_server_request *request,
                            struct http_server_response *response, void *data);
typedef void http_server_closed_fn(void *data);

struct http_server_options {
	const char *address; /* "127.0.0.1:9310", "[::1]:0"; port 0 is any free one */
	unsigned connections_max; /* files that guests may take; 32 or more */
	http_server_fn *fn;
	void *data;
};

/* On failure `ret_message` is a sentence with the address. */
MUST_USE int http_server_open(uv_loop_t *loop, const struct http_server_options *options,
                              struct http_server **ret_server,
                              char ret_message[HTTP_SERVER_MESSAGE_SIZE]);

uint16_t http_server_port(const struct http_server *server);

/* A query argument or a header, or NULL. */
const char *http_server_query(const struct http_server_request *request,
                              const char *name);
const char *http_server_header(const struct http_server_request *request,
                               const char *name);

/* ---- answers that take longer ---------------------------------------------------- */

struct http_server_later; /* a question whose answer is still due */

/* Called by a handler, whose response is then not looked at. */
struct http_server_later *http_server_defer(const struct http_server_request *request);

/* Takes the body of `response`; `later` is gone when it returns. */
void http_server_answer(struct http_server_later *later,
                        struct http_server_response *response);

/* An empty answer, as a handler finds it. */
struct http_server_response http_server_response(void);

/* ---- streams --------------------------------------------------------------------- */

struct http_server_stream;
typedef void http_server_gone_fn(void *data);

/* Called by a handler: the response (status, type, headers) begins, and its body is what
 * http_server_stream_send adds.  `fn` is called once, when the client or the server goes;
 * the stream is gone then.  NULL when memory is out: answer something else. */
struct http_server_stream *
http_server_stream_open(const struct http_server_request *request,
                        const struct http_server_response *response,
                        http_server_gone_fn *fn, void *data);

/* True if all that was sent is written: who is slow skips some news and needs no queue.
 */
bool http_server_stream_is_idle(const struct http_server_stream *stream);
void http_server_stream_send(struct http_server_stream *stream, struct span bytes);

/* ---------------------------------------------------------------------------------- */

/* Closes all connections; `fn` (may be NULL) is called when the memory is gone.  Takes
 * NULL, and then calls nobody.  Not from within a handler. */
void http_server_close(struct http_server *server, http_server_closed_fn *fn, void *data);

#endif
