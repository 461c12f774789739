/* descriptor.h - as many descriptors as the system lets us have.
 *
 * A shell gives 1,024, for the sake of programs that call select(2); it lets who asks
 * have more.  A worker has a connection or three pipes for each of up to 4,096 slots, and
 * takes a socket that it cannot open for a provider that is not there. */
#ifndef COMMON_IO_DESCRIPTOR_H
#define COMMON_IO_DESCRIPTOR_H

#include <sys/resource.h>

/* No more: some programs close all that they may have, one by one. */
#define DESCRIPTOR_MAX 65536

static inline void
descriptor_raise_limit(void)
{
	struct rlimit limit;
	rlim_t wanted = DESCRIPTOR_MAX;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= wanted)
		return;
	limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

#endif
