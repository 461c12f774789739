#include "tests/lib/redis_server.h"

#include "tests/lib/temp.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SKIP         77
#define WORDS_MAX    32
#define READY_MS_MAX 120000

static const char *
find_program(void)
{
	static const char *const places[] = { "/usr/bin/redis-server",
		                              "/usr/local/bin/redis-server",
		                              "/usr/bin/valkey-server" };
	const char *given = getenv("WARMQ_REDIS_SERVER");

	if (given)
		return given;
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (access(places[i], X_OK) == 0)
			return places[i];
	return NULL;
}

void
redis_server_require(void)
{
	if (find_program())
		return;
	printf("skipped: no redis-server on this machine; `./dev setup` installs it\n");
	exit(SKIP);
}

/* exec wants char *, and never writes to it. */
static char *
word(const char *text)
{
	union {
		const char *in;
		char *out;
	} both = { .in = text };

	return both.out;
}

static void
run(const struct redis_server *server, const char *program, const char *const *options)
{
	char *words[WORDS_MAX] = { word(program),
		                   word("--port"),
		                   word("0"),
		                   word("--unixsocket"),
		                   word(server->socket),
		                   word("--save"),
		                   word(""),
		                   word("--dir"),
		                   word(temp_dir()),
		                   word("--logfile"),
		                   word("/dev/null") };
	size_t count = 11;

	for (size_t i = 0; options && options[i]; i++) {
		VERIFY(count + 1 < WORDS_MAX);
		words[count++] = word(options[i]);
	}
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	execv(program, words);
	perror(program);
	_exit(EXIT_FAILURE);
}

static bool
answers_ping(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char answer[64];
	ssize_t len = -1;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(address.sun_path, path, strlen(path) + 1);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
	    write(fd, "PING\r\n", 6) == 6)
		len = read(fd, answer, sizeof answer);
	if (fd >= 0)
		close(fd);
	/* With a password it answers -NOAUTH: that is alive, too; -LOADING is not. */
	return len > 0 && (answer[0] == '+' || memcmp(answer, "-NOAUTH", 7) == 0);
}

static void
wait_until_ready(struct redis_server *server)
{
	const struct timespec pause = { .tv_nsec = 5000000 };

	for (int waited_ms = 0; waited_ms < READY_MS_MAX; waited_ms += 5) {
		if (answers_ping(server->socket))
			return;
		if (waitpid(server->pid, NULL, WNOHANG) == server->pid)
			break;
		nanosleep(&pause, NULL);
	}
	fprintf(stderr, "redis-server did not come up at %s\n", server->socket);
	exit(EXIT_FAILURE);
}

void
redis_server_start(struct redis_server *server, const char *const *options)
{
	static unsigned started;
	const char *program = find_program();
	char name[16], path[TEMP_PATH_SIZE];

	VERIFY(program); /* redis_server_require was called */
	(void)snprintf(name, sizeof name, "r%u.sock", started++);
	temp_path(name, path);
	(void)snprintf(server->socket, sizeof server->socket, "%s", path);
	(void)snprintf(server->url, sizeof server->url, "unix://%s", path);
	server->pid = fork();
	VERIFY(server->pid >= 0);
	if (server->pid == 0)
		run(server, program, options);
	wait_until_ready(server);
}

void
redis_server_stop(struct redis_server *server, int signal)
{
	if (server->pid == 0)
		return;
	(void)kill(server->pid, signal);
	while (waitpid(server->pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	server->pid = 0;
}
