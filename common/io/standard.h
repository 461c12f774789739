/* standard.h - descriptors 0, 1 and 2 are never anything but the standard streams.
 *
 * Whoever is started with one of them closed (`2>&-`, some supervisors) gets its number
 * for the next thing that is opened: a socket, a pipe of the event loop.  What was meant
 * for people would go in there, an answer of `warmq` as commands to Redis.  So the gaps
 * are filled first, opened the wrong way round: using them fails as it would have. */
#ifndef COMMON_IO_STANDARD_H
#define COMMON_IO_STANDARD_H

#include <fcntl.h>
#include <stdlib.h>

/* The first thing that main() does. */
static inline void
standard_fill(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 &&
		    open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd)
			abort();
}

#endif
