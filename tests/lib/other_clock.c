/* A wall clock that is wrong: preloaded into a program, it is so many seconds ahead as
 * the file says that OTHER_CLOCK names ("-7200"); who writes that file steps the clock.
 * The monotonic clock is left alone, as clocks that people set leave it. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long
offset_s(void)
{
	static int fd = -2;
	char text[32];
	ssize_t len;

	if (fd == -2) {
		const char *name = getenv("OTHER_CLOCK");

		fd = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
	}
	len = fd < 0 ? -1 : pread(fd, text, sizeof text - 1, 0);
	if (len <= 0)
		return 0;
	text[len] = '\0';
	return strtol(text, NULL, 10);
}

int
clock_gettime(clockid_t id, struct timespec *ret_time)
{
	static int (*real)(clockid_t, struct timespec *);
	int ret;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
	ret = real(id, ret_time);
	if (ret == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
		ret_time->tv_sec += offset_s();
	return ret;
}

int
gettimeofday(struct timeval *restrict ret_time, void *restrict zone)
{
	struct timespec now;

	(void)zone;
	(void)clock_gettime(CLOCK_REALTIME, &now);
	ret_time->tv_sec = now.tv_sec;
	ret_time->tv_usec = now.tv_nsec / 1000;
	return 0;
}

time_t
time(time_t *ret_time)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	if (ret_time)
		*ret_time = now.tv_sec;
	return now.tv_sec;
}
