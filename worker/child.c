#include "worker/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define PIPES        4 /* stdin, stdout, stderr, and whether exec went well */
#define PIPE_ERROR   3
#define EXIT_NOT_RUN 127

struct pipes {
	int ends[PIPES][2]; /* to read, to write */
};

static void
close_end(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

static void
close_pipes(struct pipes *pipes)
{
	for (int i = 0; i < PIPES; i++) {
		close_end(&pipes->ends[i][0]);
		close_end(&pipes->ends[i][1]);
	}
}

static int
open_pipes(struct pipes *ret_pipes)
{
	struct pipes pipes = { { { -1, -1 }, { -1, -1 }, { -1, -1 }, { -1, -1 } } };

	for (int i = 0; i < PIPES; i++) {
		if (pipe2(pipes.ends[i], O_CLOEXEC) == 0)
			continue;
		close_pipes(&pipes);
		return ERR_IO;
	}
	*ret_pipes = pipes;
	return 0;
}

/* ---- in the child: between fork and exec nothing may wait for another thread ----- */

/* What the worker does with signals, and ignores, is no affair of the program. */
static void
reset_signals(void)
{
	sigset_t none;

	for (int number = 1; number < SIGRTMIN; number++)
		(void)signal(number, SIG_DFL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* All are moved out of the way first: in a worker without a stdin a pipe may be there. */
static bool
take_pipes(int own[PIPES])
{
	for (int i = 0; i < PIPES; i++) {
		own[i] = fcntl(own[i], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
		if (own[i] < 0)
			return false;
	}
	for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++) {
		if (dup2(own[i], i) < 0) /* not closed by exec, unlike the original */
			return false;
	}
	return true;
}

static void
limit_files(uint64_t files_max)
{
	struct rlimit files;

	if (files_max == 0 || getrlimit(RLIMIT_NOFILE, &files) < 0)
		return;
	files.rlim_cur = MIN((rlim_t)files_max, files.rlim_max);
	(void)setrlimit(RLIMIT_NOFILE, &files);
}

struct program {
	char *const *words, *const *environment;
};

NORETURN static void
run(const struct child_list *list, const struct program *program,
    const struct pipes *pipes)
{
	int own[PIPES] = { pipes->ends[0][0], pipes->ends[1][1], pipes->ends[2][1],
		           pipes->ends[PIPE_ERROR][1] };
	int problem;

	(void)setsid(); /* a group of its own, to be killed whole */
	guard_join(list->guard);
	if (take_pipes(own)) {
		(void)close_range(STDERR_FILENO + 1, ~0u, CLOSE_RANGE_CLOEXEC);
		limit_files(list->files_max);
		reset_signals();
		(void)execvpe(program->words[0], program->words, program->environment);
	}
	problem = errno;
	problem = write(own[PIPE_ERROR], &problem, sizeof problem) < 0 ? 1 : EXIT_NOT_RUN;
	_exit(problem);
}

/* ---- in the worker --------------------------------------------------------------- */

/* With all signals blocked: a handler of the worker's must not run in the child. */
static pid_t
fork_and_run(const struct child_list *list, const struct program *program,
             const struct pipes *pipes)
{
	sigset_t all, before;
	pid_t pid;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	pid = fork();
	if (pid == 0)
		run(list, program, pipes);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return pid;
}

/* 0 once the program runs, else why it does not. */
static int
await_exec(int fd)
{
	int problem = 0;
	ssize_t len;

	do
		len = read(fd, &problem, sizeof problem);
	while (len < 0 && errno == EINTR);
	return len == sizeof problem ? problem : 0;
}

static void
link_in(struct child_list *list, struct child *child)
{
	child->list = list;
	child->previous = NULL;
	child->next = list->first;
	if (list->first)
		list->first->previous = child;
	list->first = child;
}

static void
unlink_from(struct child *child)
{
	if (child->previous)
		child->previous->next = child->next;
	else
		child->list->first = child->next;
	if (child->next)
		child->next->previous = child->previous;
}

int
child_start(struct child_list *list, char *const *words, char *const *environment,
            struct child *child)
{
	const struct program program = { words, environment };
	struct pipes pipes;
	int problem;

	if (open_pipes(&pipes) < 0)
		return ERR_IO;
	child->pid = fork_and_run(list, &program, &pipes);
	problem = child->pid < 0 ? errno : 0;
	close_end(&pipes.ends[0][0]);
	close_end(&pipes.ends[1][1]);
	close_end(&pipes.ends[2][1]);
	close_end(&pipes.ends[PIPE_ERROR][1]);
	if (problem == 0)
		problem = await_exec(pipes.ends[PIPE_ERROR][0]);
	close_end(&pipes.ends[PIPE_ERROR][0]);
	if (problem != 0) {
		close_pipes(&pipes);
		if (child->pid > 0) {
			(void)waitpid(child->pid, NULL, 0);
			guard_remove(list->guard, child->pid);
		}
		errno = problem;
		return ERR_IO;
	}
	child->in = pipes.ends[0][1];
	child->out = pipes.ends[1][0];
	child->err = pipes.ends[2][0];
	link_in(list, child);
	return 0;
}

void
child_release(struct child *child)
{
	(void)kill(-child->pid, SIGKILL);
	guard_remove(child->list->guard, child->pid);
}

static void
close_if_over(struct child_list *list)
{
	if (list->is_closing && !list->first &&
	    !uv_is_closing((uv_handle_t *)&list->signal))
		uv_close((uv_handle_t *)&list->signal, NULL);
}

/* One signal may stand for many ends. */
static void
on_signal(uv_signal_t *signal, int number)
{
	struct child_list *list = signal->data;
	struct child *next, *child;

	(void)number;
	for (child = list->first; child; child = next) {
		int status;

		next = child->next;
		if (waitpid(child->pid, &status, WNOHANG) != child->pid)
			continue;
		unlink_from(child);
		child->on_exit(child, status);
	}
	close_if_over(list);
}

void
child_list_open(struct child_list *list, uv_loop_t *loop, struct guard *guard,
                uint64_t files_max)
{
	*list = (struct child_list){ .guard = guard, .files_max = files_max };
	(void)uv_signal_init(loop, &list->signal);
	list->signal.data = list;
	(void)uv_signal_start(&list->signal, on_signal, SIGCHLD);
}

void
child_list_close(struct child_list *list)
{
	list->is_closing = true;
	close_if_over(list);
}
