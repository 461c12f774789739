/* hangup.h - SIGHUP: a terminal that closes ends a daemon in order, as SIGTERM does.
 *
 * Whoever starts it under nohup(1) wants it to go on: then the signal stays ignored. */
#ifndef COMMON_IO_HANGUP_H
#define COMMON_IO_HANGUP_H

#include <signal.h>
#include <stddef.h>

/* The signal to catch; 0, which no call takes, if it is ignored. */
static inline int
hangup_number(void)
{
	struct sigaction now;

	return sigaction(SIGHUP, NULL, &now) == 0 && now.sa_handler == SIG_IGN ? 0
	                                                                       : SIGHUP;
}

#endif
