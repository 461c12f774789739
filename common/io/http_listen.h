/* http_listen.h - the socket an HTTP server listens at, or the sentence that says why
 * not.
 *
 *   "127.0.0.1:9310", "[::1]:0", "localhost:0" ──► a bound socket that nobody inherits
 *
 * We bind, and not libmicrohttpd: some of its versions leave no cause in errno. */
#ifndef COMMON_IO_HTTP_LISTEN_H
#define COMMON_IO_HTTP_LISTEN_H

#include "common/base.h"
#include "common/error.h"

#define HTTP_LISTEN_MESSAGE_SIZE 256

/* Port 0 is any free one; the caller closes the socket.  ERR_MALFORMED: no address;
 * ERR_IO: the system refused.  Both leave a sentence. */
MUST_USE int http_listen_open(const char *address, int *ret_fd,
                              char ret_message[HTTP_LISTEN_MESSAGE_SIZE]);

/* The sentence for an errno, with what to do about it. */
void http_listen_explain(const char *address, int cause,
                         char ret_message[HTTP_LISTEN_MESSAGE_SIZE]);

#endif
