/* redis_server.h - a redis-server of one's own, on a Unix socket, for one test process.
 *
 * A suite that needs one ends with SUITE_MAIN_WITH_REDIS: where there is no redis-server
 * it exits with status 77 (meson: SKIP) and a reason.  $WARMQ_REDIS_SERVER names another
 * program than the usual ones.  The server keeps nothing on disk and dies with the
 * process that started it, whatever way that ends. */
#ifndef TESTS_LIB_REDIS_SERVER_H
#define TESTS_LIB_REDIS_SERVER_H

#include "common/base.h"
#include "tests/lib/suite.h"

#include <sys/types.h>

struct redis_server {
	pid_t pid; /* 0 = not running */
	char socket[108];
	char url[128]; /* unix://... */
};

/* Skips the whole program unless there is a server to start. */
void redis_server_require(void);

/* Starts it and waits until it answers.  `options` are further command-line words, up to
 * a NULL; may itself be NULL. */
void redis_server_start(struct redis_server *server, const char *const *options);

/* Stops it with `signal` and waits for its end.  No-op when it does not run. */
void redis_server_stop(struct redis_server *server, int signal);

#define SUITE_MAIN_WITH_REDIS(name, ...)                                \
	int main(void)                                                  \
	{                                                               \
		redis_server_require();                                 \
		return suite_run(name, SUITE_LIST(__VA_ARGS__),         \
		                 (struct suite_list){ 0 }, NULL, NULL); \
	}

#endif
