/* Programs that a worker starts, and what becomes of them without it. */
#include "tests/lib/suite.h"
#include "worker/child.h"
#include "worker/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS 120000

static char *const no_environment[] = { NULL };

static uv_loop_t loop;
static struct guard guard;
static struct child_list list;
static int ended; /* how the last one did; -1: it runs */

static void
on_exit_of(struct child *child, int status)
{
	(void)child;
	ended = status;
	uv_stop(&loop);
}

static void
begin(void)
{
	guard = (struct guard){ .fd = -1 };
	ck_assert_int_eq(uv_loop_init(&loop), 0);
	child_list_open(&list, &loop, &guard, 0);
}

static void
finish(void)
{
	ck_assert_ptr_null(list.first);
	child_list_close(&list);
	(void)uv_run(&loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(uv_loop_close(&loop), 0);
}

static struct child *
start(char *const *words)
{
	static struct child child;

	child.on_exit = on_exit_of;
	ended = -1;
	ck_assert_int_eq(child_start(&list, words, no_environment, &child), 0);
	return &child;
}

START_TEST(child_has_three_pipes_and_tells_its_end)
{
	char *const words[] = { "sh", "-c", "read x; echo out $x; echo err >&2; exit 7",
		                NULL };
	struct child *child;
	char text[64] = "";

	begin();
	child = start(words);
	ck_assert_int_eq(write(child->in, "word\n", 5), 5);
	(void)uv_run(&loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(WEXITSTATUS(ended), 7);
	ck_assert_int_eq(read(child->out, text, sizeof text), 9);
	ck_assert_int_eq(strncmp(text, "out word\n", 9), 0);
	ck_assert_int_eq(read(child->err, text, sizeof text), 4);
	ck_assert_int_eq(read(child->out, text, sizeof text), 0);
	finish();
}
END_TEST

START_TEST(child_that_cannot_be_run_says_why_and_leaves_nothing)
{
	char *const words[] = { "/no/such/program", NULL };
	struct child child;
	int before;

	begin();
	before = dup(STDERR_FILENO);
	(void)close(before);
	ck_assert_int_eq(child_start(&list, words, no_environment, &child), ERR_IO);
	ck_assert_int_eq(errno, ENOENT);
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
	ck_assert_int_eq(dup(STDERR_FILENO), before);
	(void)close(before);
	finish();
}
END_TEST

START_TEST(child_gets_the_signals_of_everybody)
{
	char *const words[] = { "sh", "-c", "kill -PIPE $$", NULL };

	(void)signal(SIGPIPE, SIG_IGN);
	begin();
	(void)start(words);
	(void)uv_run(&loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(WTERMSIG(ended), SIGPIPE);
	finish();
}
END_TEST

static int ends_count;

static void
on_one_of_many(struct child *child, int status)
{
	(void)close(child->in);
	(void)close(child->out);
	(void)close(child->err);
	ends_count += WEXITSTATUS(status) == 3;
	if (!list.first)
		uv_stop(&loop);
}

START_TEST(child_of_many_is_heard_of_although_signals_melt_into_one)
{
	char *const words[] = { "sh", "-c", "exit 3", NULL };
	static struct child children[40];

	begin();
	ends_count = 0;
	for (size_t i = 0; i < ARRAY_SIZE(children); i++) {
		children[i].on_exit = on_one_of_many;
		ck_assert_int_eq(child_start(&list, words, no_environment, &children[i]),
		                 0);
	}
	(void)uv_run(&loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(ends_count, ARRAY_SIZE(children));
	finish();
}
END_TEST

/* Words that change nothing, until the pipe is full. */
static void
fill(int fd)
{
	pid_t nobody = -1;

	ck_assert_int_eq(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	while (write(fd, &nobody, sizeof nobody) == sizeof nobody)
		;
	ck_assert_int_eq(errno, EAGAIN);
	ck_assert_int_eq(fcntl(fd, F_SETFL, 0), 0);
}

/* A worker whose guard does not listen for the moment: so the child that it starts stands
 * between fork and exec.  Says the guard's number. */
NORETURN static void
play_worker(char *const *words, int tell_fd)
{
	begin();
	ck_assert_int_eq(guard_open(&guard), 0);
	ck_assert_int_eq(kill(guard.pid, SIGSTOP), 0);
	fill(guard.fd);
	ck_assert_int_eq(write(tell_fd, &guard.pid, sizeof guard.pid), sizeof guard.pid);
	(void)start(words);
	_exit(0); /* not reached: the start waits for the exec */
}

/* The first child of a process, apart from one; 0: there is none yet. */
static pid_t
child_of(pid_t parent, pid_t other)
{
	char path[64], line[256] = "";
	FILE *file;
	char *at = line;

	(void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)parent,
	               (int)parent);
	file = fopen(path, "r");
	ck_assert_ptr_nonnull(file);
	(void)fgets(line, sizeof line, file);
	(void)fclose(file);
	for (;;) {
		pid_t pid = (pid_t)strtol(at, &at, 10);

		if (pid != other)
			return pid;
	}
}

/* Once it is there it stands in the gap: it cannot exec before the guard has heard. */
static pid_t
await_child(pid_t worker, pid_t other)
{
	for (int i = 0; i < PATIENCE_MS; i++) {
		pid_t child = child_of(worker, other);

		if (child)
			return child;
		(void)poll(NULL, 0, 1);
	}
	return 0;
}

START_TEST(child_of_a_worker_that_is_killed_before_the_exec_ends_with_it)
{
	char *const words[] = { "sleep", "60", NULL };
	int tell[2];
	pid_t worker, own_guard, child;

	ck_assert_int_eq(pipe(tell), 0);
	worker = fork();
	if (worker == 0)
		play_worker(words, tell[1]);
	ck_assert_int_eq(read(tell[0], &own_guard, sizeof own_guard), sizeof own_guard);
	child = await_child(worker, own_guard);
	ck_assert_int_gt(child, 0);

	ck_assert_int_eq(kill(worker, SIGKILL), 0);
	ck_assert_int_eq(waitpid(worker, NULL, 0), worker);
	ck_assert_int_eq(kill(own_guard, SIGCONT), 0);
	for (int i = 0; i < PATIENCE_MS && kill(child, 0) == 0; i++)
		(void)poll(NULL, 0, 1);
	ck_assert_int_eq(kill(child, 0), -1);
}
END_TEST

SUITE_MAIN("child", child_has_three_pipes_and_tells_its_end,
           child_that_cannot_be_run_says_why_and_leaves_nothing,
           child_gets_the_signals_of_everybody,
           child_of_many_is_heard_of_although_signals_melt_into_one,
           child_of_a_worker_that_is_killed_before_the_exec_ends_with_it)
