#include "worker/guard.h"

#include "common/io/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOOK_MS  50
#define FDS_KEPT 65536 /* no worker has more files open when it starts */

/* ---- in the guard ---------------------------------------------------------------- */

struct groups {
	pid_t groups[GUARD_GROUPS_MAX];
	size_t count;
};

static void
note(struct groups *all, pid_t word)
{
	if (word > 0) {
		if (all->count < GUARD_GROUPS_MAX)
			all->groups[all->count++] = word;
		return;
	}
	for (size_t i = 0; i < all->count; i++) {
		if (all->groups[i] == -word) {
			all->groups[i] = all->groups[--all->count];
			return;
		}
	}
}

/* Forgets the groups that are gone; answers whether any is left. */
static bool
send(struct groups *all, int number)
{
	size_t kept = 0;

	for (size_t i = 0; i < all->count; i++) {
		if (kill(-all->groups[i], number) == 0)
			all->groups[kept++] = all->groups[i];
	}
	all->count = kept;
	return kept > 0;
}

static void
end_all(struct groups *all)
{
	if (!send(all, SIGTERM))
		return;
	for (int waited_ms = 0; waited_ms < GUARD_GRACE_MS; waited_ms += LOOK_MS) {
		(void)poll(NULL, 0, LOOK_MS);
		if (!send(all, 0))
			return;
	}
	(void)send(all, SIGKILL);
}

/* Only the pipe stays open: whoever waits for the end of a worker's output or socket must
 * not have to wait for its guard. */
static void
let_go(int fd)
{
	static const int deaf[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1 };

	(void)setsid();
	for (size_t i = 0; i < ARRAY_SIZE(deaf); i++)
		(void)signal(deaf[i], SIG_IGN);
	for (int i = 0; i < MIN((int)sysconf(_SC_OPEN_MAX), FDS_KEPT); i++) {
		if (i != fd)
			(void)close(i);
	}
	(void)prctl(PR_SET_NAME, "warmq-guard");
}

static void
guard_run(int fd)
{
	static struct groups all;
	pid_t words[1024];

	let_go(fd);
	for (;;) {
		/* Words are smaller than PIPE_BUF, so none is ever torn. */
		ssize_t len = read(fd, words, sizeof words);

		if (len < 0 && errno == EINTR)
			continue;
		if (len <= 0)
			break;
		for (size_t i = 0; i < (size_t)len / sizeof *words; i++)
			note(&all, words[i]);
	}
	end_all(&all);
	_exit(0);
}

/* ---- in the worker --------------------------------------------------------------- */

int
guard_open(struct guard *ret_guard)
{
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return ERR_IO;
	pid = fork();
	if (pid < 0) {
		(void)close(ends[0]);
		(void)close(ends[1]);
		return ERR_IO;
	}
	if (pid == 0)
		guard_run(ends[0]);
	(void)close(ends[0]);
	*ret_guard = (struct guard){ pid, ends[1] };
	return 0;
}

void
guard_close(struct guard *guard)
{
	if (guard->fd < 0)
		return;
	(void)close(guard->fd);
	guard->fd = -1;
	(void)waitpid(guard->pid, NULL, 0);
}

static bool
write_word(const struct guard *guard, pid_t word)
{
	ssize_t len;

	do
		len = write(guard->fd, &word, sizeof word);
	while (len < 0 && errno == EINTR);
	return len == sizeof word;
}

void
guard_join(const struct guard *guard)
{
	if (guard->fd < 0)
		return;
	(void)signal(SIGPIPE,
	             SIG_IGN); /* a guard that is gone is no end of the handler */
	(void)write_word(guard, getpid());
}

void
guard_remove(struct guard *guard, pid_t group)
{
	if (guard->fd < 0 || write_word(guard, -group))
		return;
	log_warning(
		"the guard of handlers is gone: they outlive a worker that is killed. "
		"Restart this one",
		LOG_NUMBER("pid", guard->pid));
	(void)close(guard->fd);
	guard->fd = -1;
	(void)waitpid(guard->pid, NULL, WNOHANG);
}
