/* hangup.h - SIGHUP: a terminal that closes ends a daemon in order, as SIGTERM does.
 *
 * Whoever starts it under nohup(1) wants it to go on: then the signal stays ignored. */
#ifndef COMMON_IO_HANGUP_H
#define COMMON_IO_HANGUP_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

static inline bool
hangup_is_ignored(void)
{
	struct sigaction now;

	return sigaction(SIGHUP, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

#endif
