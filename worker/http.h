/* http.h - hundreds of requests at once in one thread: libcurl on a libuv loop.
 *
 *   http_post ──► on_sent ──► on_status ──► on_header… ──► on_body… ──► on_done
 *                    │ the connection stands, the request leaves now
 *                    └─ without it nothing went out, and nothing was paid for
 *
 * Connections are kept and reused; HTTP/2 is used where a server offers it over TLS, and
 * then many requests share one connection.  Names are resolved in libcurl's threads.
 *
 * A server that takes a request and says nothing holds it until `timeout_ms`, or for
 * `first_byte_ms` where an answer should begin long before it ends.
 *
 * Every exchange ends with exactly one on_done, or with http_cancel.  Callbacks of one
 * exchange may not cancel it: on_body answers false to stop it.  The body, the URL and
 * the header lines must live until the end. */
#ifndef WORKER_HTTP_H
#define WORKER_HTTP_H

#include "common/base.h"
#include "common/error.h"

#include <uv.h>

struct http;
struct http_exchange;
struct curl_slist;

struct http_options {
	uint64_t connect_timeout_ms;
	long connections_max; /* kept open; more are opened when needed */
};

enum http_end {
	HTTP_ANSWERED, /* the whole answer came, whatever its status; or http_whole */
	HTTP_BROKEN,   /* the connection broke off after the request had left */
	HTTP_TIMED_OUT,
	HTTP_SILENT,    /* not a byte came within `first_byte_ms` */
	HTTP_UNREACHED, /* no connection: nothing was sent */
	HTTP_STOPPED,   /* on_body said so */
};

struct http_outcome {
	enum http_end end;
	int status;       /* 0: none came */
	const char *text; /* for people; empty if answered */
	bool lacks_files; /* unreached for want of a descriptor of ours */
	uint64_t bytes;   /* of the answer's body */
};

struct http_handlers {
	void (*on_sent)(void *data);
	void (*on_status)(int status, void *data); /* headers follow */
	void (*on_header)(struct span name, struct span value, void *data);
	bool (*on_body)(struct span bytes, void *data); /* false: stop */
	void (*on_done)(const struct http_outcome *outcome, void *data);
};

struct http_request {
	const char *url;
	const struct curl_slist *headers; /* curl's list of "name: value" */
	struct span body;
	uint64_t timeout_ms;    /* for everything */
	uint64_t first_byte_ms; /* from when it leaves; 0: no bound of its own */
	bool is_fresh;          /* over a connection that nobody has used before */
};

/* ERR_MEMORY or ERR_IO. */
MUST_USE int http_create(uv_loop_t *loop, const struct http_options *options,
                         struct http **ret_http);

/* Cancels everything; `fn` is called when the last handle of the loop is gone. */
void http_destroy(struct http *http, void (*fn)(void *data), void *data);

/* Copies the request, but not what it points to.  ERR_MEMORY or ERR_IO: nothing is under
 * way, and no handler was called. */
MUST_USE int http_post(struct http *http, const struct http_request *request,
                       const struct http_handlers *handlers, void *data,
                       struct http_exchange **ret_exchange);

/* What has come is the whole answer, says who reads it in on_body: it ends as answered,
 * however the connection ends, and within a second. */
void http_whole(struct http_exchange *exchange);

/* Ends it now, without on_done. */
void http_cancel(struct http_exchange *exchange);

#endif
