/* http_request.h - a parser of HTTP/1.1 requests that is fed bytes and owns no socket.
 *
 *   feed ──► head ──► length or chunks ──► done          ERR_AGAIN until then
 *              └── 100-continue wanted: the caller sends it once
 *
 * Bounds: 32 KB of head, 64 headers, the given size of body.  A body over its size is
 * swallowed, so that the client gets to read the 413; twice the bound ends it.  Methods,
 * targets and header names are taken as they come; obsolete line folding and bare LF are
 * refused, as smugglers like them. */
#ifndef PROVIDER_HTTP_REQUEST_H
#define PROVIDER_HTTP_REQUEST_H

#include "common/base.h"
#include "common/buffer.h"
#include "common/error.h"

#define HTTP_REQUEST_HEAD_MAX    (32 * 1024)
#define HTTP_REQUEST_HEADERS_MAX 64

enum http_request_state {
	HTTP_REQUEST_HEAD,
	HTTP_REQUEST_LENGTH,     /* a body of known length */
	HTTP_REQUEST_CHUNK_SIZE, /* ... or in chunks: the line with the size */
	HTTP_REQUEST_CHUNK,
	HTTP_REQUEST_CHUNK_END,
	HTTP_REQUEST_TRAILER,
	HTTP_REQUEST_DONE,
};

struct http_request_header {
	struct span name;
	struct span value;
};

struct http_request {
	enum http_request_state state;
	struct buffer head; /* spans below point into it */
	struct buffer body;
	struct span method;
	struct span target; /* with its query */
	struct http_request_header headers[HTTP_REQUEST_HEADERS_MAX];
	size_t headers_count;
	size_t body_max;
	size_t seen;   /* bytes of body so far, kept or swallowed */
	size_t left;   /* of the length or the chunk */
	char line[32]; /* of a chunk size */
	size_t line_len;
	bool keep_alive;
	bool is_old; /* HTTP/1.0: no chunks in the answer */
	bool wants_continue;
	bool too_large;
};

void http_request_init(struct http_request *request, size_t body_max);
void http_request_fini(struct http_request *request);

/* Makes it ready for the next request of the same connection. */
void http_request_clear(struct http_request *request, size_t body_max);

/* Takes bytes; `ret_used` says how many, always.  0: the request is complete, the rest
 * belongs to the next one.  ERR_AGAIN: more is needed.  ERR_MALFORMED (400), ERR_LIMIT
 * (431 in the head, 413 in the body), ERR_UNSUPPORTED (501), ERR_MEMORY: answer and
 * close. */
MUST_USE int http_request_feed(struct http_request *request, struct span bytes,
                               size_t *ret_used);

/* The value of the first header of that name, in any case; empty if there is none. */
struct span http_request_header(const struct http_request *request, const char *name);

/* The target without its query. */
struct span http_request_path(const struct http_request *request);

#endif
