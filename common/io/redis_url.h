/* redis_url.h - where a Redis is: one line of text, taken apart.
 *
 *   redis://[user[:password]@]host[:port][/db]      [::1] for IPv6; port 6379, db 0
 *   redis://:password@host                          the default user
 *   unix://[user[:password]@]/path/to/redis.sock[?db=n]   or ?username=, &password=
 *   rediss://...                                    refused: built without TLS
 *
 * User and password may be percent-encoded.  Passwords never appear in what
 * redis_url_print writes, so its text is safe in logs and pages. */
#ifndef COMMON_IO_REDIS_URL_H
#define COMMON_IO_REDIS_URL_H

#include "common/base.h"
#include "common/error.h"

#define REDIS_URL_DEFAULT    "redis://127.0.0.1:6379"
#define REDIS_URL_TEXT_SIZE  320 /* room for redis_url_print */
#define REDIS_URL_ERROR_SIZE 160

struct redis_url {
	char host[256]; /* empty: a Unix socket */
	char path[108];
	char user[128];
	char password[256];
	uint16_t port;
	uint16_t database;
};

/* On failure `ret_error` says what is wrong, in a sentence without the password.
 * ERR_MALFORMED, ERR_LIMIT, or ERR_UNSUPPORTED for rediss. */
MUST_USE int redis_url_parse(struct span text, struct redis_url *ret_url,
                             char ret_error[REDIS_URL_ERROR_SIZE]);

/* The address without user and password. */
void redis_url_print(const struct redis_url *url, char ret_text[REDIS_URL_TEXT_SIZE]);

#endif
