/* http_poll.h - libcurl's sockets in a libuv loop, with few system calls.
 *
 * libcurl asks for a socket's events anew at each step of each request.  Passed on as
 * they come that is six epoll_ctl calls a request; so a connection that curl keeps stays
 * registered for reading while it is idle, and only what really differs is changed.
 *
 *   absent ─ opened by us ─► watched ◄─► idle (still registered) ─ closed ─► absent
 *
 * Sockets that curl opens behind our back (its resolver's) may be closed there as well:
 * they are taken off at once.
 *
 * Only http.c uses this file. */
#ifndef WORKER_HTTP_POLL_H
#define WORKER_HTTP_POLL_H

#include "common/base.h"
#include "common/error.h"

#include <curl/curl.h>
#include <uv.h>

struct http_poll;

typedef void http_poll_fn(curl_socket_t fd, int curl_events, void *data);

MUST_USE int http_poll_create(uv_loop_t *loop, http_poll_fn *fn, void *data,
                              struct http_poll **ret_poll);

/* After curl has closed all; `fn` when the last handle is gone. */
void http_poll_destroy(struct http_poll *poll, void (*fn)(void *data), void *data);

/* What curl wants of a socket: CURL_POLL_IN, _OUT, _INOUT or _REMOVE. */
void http_poll_want(struct http_poll *poll, curl_socket_t fd, int what);

/* Opens and closes connections; for curl's options. */
curl_socket_t http_poll_open(void *poll, curlsocktype purpose,
                             struct curl_sockaddr *address);
int http_poll_close(void *poll, curl_socket_t fd);

#endif
