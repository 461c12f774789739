/* shell.h - the daemon: a libuv loop, two connections to Redis, and a ruler in between.
 *
 *   Redis ──answers──► ruler_answer            loop: poll ─► (answers only enqueue)
 *     ▲                    │                         ─► prepare: step, send, set timer
 *     └──calls in order── ruler_step                 ─► poll ...
 *
 * One connection carries all calls, pipelined; a second one only waits inside Redis for
 * the next entry of the inbox.  A turn of the loop steps for at most SHELL_TURN_MS.
 *
 * The ruler's clock is that of Redis: monotonic time plus a measured offset, never going
 * back.  If Redis's clock itself went back by more than a second, the memory is thrown
 * away like after a lost connection. */
#ifndef SCHEDULER_SHELL_H
#define SCHEDULER_SHELL_H

#include "common/io/config.h"

#define SHELL_TURN_MS 5

enum shell_exit {
	SHELL_STOPPED = 0, /* by a signal, in order */
	SHELL_TROUBLE = 1, /* could not start */
	SHELL_USAGE = 2,   /* command line or configuration */
};

/* Runs until a signal ends it.  With `record_path` it keeps a record of what its core was
 * told (record.h), and writes it there on SIGUSR1 and when it breaks; NULL: it keeps
 * none. */
enum shell_exit shell_run(const struct config *config, const char *record_path);

#endif
