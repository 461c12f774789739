#include "cli/process.h"

#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LOG_TAIL_SIZE 2000

/* In the child: never returns. */
NORETURN static void
become(const char *const argv[], int log_fd, int error_fd, pid_t parent)
{
	char *words[PROCESS_ARGS_MAX];
	size_t count = 0;
	int cause;

	while (argv[count]) {
		VERIFY(count + 1 < PROCESS_ARGS_MAX);
		memcpy(&words[count], &argv[count], sizeof words[0]);
		count++;
	}
	words[count] = NULL;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) /* it died before the line above */
		_exit(1);
	(void)setpgid(0, 0);
	(void)dup2(log_fd, STDOUT_FILENO);
	(void)dup2(log_fd, STDERR_FILENO);
	signal(SIGPIPE, SIG_DFL);
	execvp(words[0], words);
	cause = errno;
	(void)!write(error_fd, &cause, sizeof cause);
	_exit(127);
}

int
process_start(struct process *process, const char *name, const char *log,
              const char *const argv[])
{
	int log_fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	pid_t parent = getpid();
	int error_pipe[2];
	int cause;
	pid_t pid;

	if (log_fd < 0)
		return ERR_IO;
	if (pipe2(error_pipe, O_CLOEXEC) < 0) {
		close(log_fd);
		return ERR_IO;
	}
	pid = fork();
	if (pid == 0)
		become(argv, log_fd, error_pipe[1], parent);
	close(log_fd);
	close(error_pipe[1]);
	if (pid < 0 || read(error_pipe[0], &cause, sizeof cause) == sizeof cause) {
		close(error_pipe[0]);
		if (pid > 0) {
			waitpid(pid, NULL, 0);
			errno = cause;
		}
		return ERR_IO;
	}
	close(error_pipe[0]);
	process->pid = pid;
	snprintf(process->name, sizeof process->name, "%s", name);
	snprintf(process->log, sizeof process->log, "%s", log);
	return 0;
}

bool
process_is_running(struct process *process, int *ret_status)
{
	int status;

	if (process->pid == 0)
		return false;
	if (waitpid(process->pid, &status, WNOHANG) == 0)
		return true;
	process->pid = 0;
	*ret_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	return false;
}

void
process_stop(struct process *process, uint64_t grace_ms)
{
	uint64_t deadline_ms = cli_now_ms() + grace_ms;
	int status;

	if (process->pid == 0)
		return;
	kill(process->pid, SIGTERM);
	while (process_is_running(process, &status)) {
		if (cli_now_ms() >= deadline_ms) {
			kill(process->pid, SIGKILL);
			waitpid(process->pid, NULL, 0);
			process->pid = 0;
			return;
		}
		process_pause(5);
	}
}

void
process_print_log_tail(const struct process *process)
{
	char tail[LOG_TAIL_SIZE + 1];
	FILE *file = fopen(process->log, "re");
	size_t len;

	if (!file)
		return;
	if (fseek(file, -LOG_TAIL_SIZE, SEEK_END) < 0)
		rewind(file);
	len = fread(tail, 1, LOG_TAIL_SIZE, file);
	tail[len] = '\0';
	fclose(file);
	fprintf(stderr, "--- the last lines of %s ---\n%s", process->log, tail);
}

void
process_find_program(const char *name, const char *build_folder, char *ret_path,
                     size_t size)
{
	char self[512];
	ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
	char *slash;

	if (len > 0) {
		self[len] = '\0';
		slash = strrchr(self, '/');
		if (slash)
			*slash = '\0';
		snprintf(ret_path, size, "%s/%s", self, name);
		if (access(ret_path, X_OK) == 0)
			return;
		snprintf(ret_path, size, "%s/../%s/%s", self, build_folder, name);
		if (access(ret_path, X_OK) == 0)
			return;
	}
	snprintf(ret_path, size, "%s", name);
}

int
process_make_directory(const char *stem, char *ret_path, size_t size)
{
	const char *root = getenv("TMPDIR");

	snprintf(ret_path, size, "%s/%s-XXXXXX", root && *root ? root : "/tmp", stem);
	return mkdtemp(ret_path) ? 0 : ERR_IO;
}

static int
on_entry(const char *path, const struct stat *status, int kind, struct FTW *place)
{
	(void)status;
	(void)kind;
	(void)place;
	(void)remove(path);
	return 0;
}

void
process_remove_directory(const char *path)
{
	(void)nftw(path, on_entry, 16, FTW_DEPTH | FTW_PHYS);
}

void
process_pause(uint64_t ms)
{
	struct timespec pause = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 };

	(void)nanosleep(&pause, NULL);
}
