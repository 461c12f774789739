#include "worker/files.h"

#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

struct files
files_raise(void)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
	struct files files;

	(void)getrlimit(RLIMIT_NOFILE, &limit);
	files.inherited = limit.rlim_cur;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
	(void)getrlimit(RLIMIT_NOFILE, &limit);
	files.limit = limit.rlim_cur;
	return files;
}

uint32_t
files_slots(uint64_t limit, uint32_t slots, uint32_t files_per_slot)
{
	if (files_per_slot == 0)
		return slots;
	if (limit <= FILES_OWN)
		return 0;
	return (uint32_t)MIN(slots, (limit - FILES_OWN) / files_per_slot);
}

bool
files_are_used_up(void)
{
	int saved = errno;
	int fd = dup(STDERR_FILENO);
	bool used_up = fd < 0 && (errno == EMFILE || errno == ENFILE);

	if (fd >= 0)
		(void)close(fd);
	errno = saved;
	return used_up;
}

const char *
files_advice(void)
{
	return "this worker has as many files open as it may; raise LimitNOFILE (ulimit "
	       "-n), "
	       "or lower worker.slots";
}
