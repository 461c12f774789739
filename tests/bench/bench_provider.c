/* bench_provider: how much the simulated provider carries, and what it costs.
 *
 *   bench_provider PROGRAM [connections] [body bytes] [seconds] [job ms]
 *
 * Starts the provider without latency and prefill time, with jobs as long as said (0),
 * keeps the given number of streaming requests in flight on keep-alive connections, and
 * prints requests per second and the provider's CPU time per request.  The load comes
 * from one thread that only copies bytes; with a second core it is not what limits. */
#include "common/base.h"
#include "common/buffer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS_MAX 4096

struct client {
	int fd;
	size_t sent;  /* of the request */
	char tail[7]; /* last bytes of the answer */
};

struct load {
	int epoll;
	struct buffer request;
	struct client clients[CONNECTIONS_MAX];
	size_t connections;
	uint64_t done;
};

static uint64_t
now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* --- the provider ------------------------------------------------------------------ */

static pid_t
start_provider(const char *program, const char *job_ms, unsigned *ret_port)
{
	int ends[2];
	pid_t pid;
	FILE *out;

	VERIFY(pipe(ends) == 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM); /* it does not outlive us */
		dup2(ends[1], STDOUT_FILENO);
		execl(program, program, "--latency-ms", "0",
		      "--prefill-tokens-per-second", "0", "--decode-tokens-per-second",
		      "0", "--job-ms", job_ms, (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	out = fdopen(ends[0], "r");
	if (!out || fscanf(out, "{\"port\":%u", ret_port) != 1) {
		fprintf(stderr, "bench_provider: %s did not start\n", program);
		exit(EXIT_FAILURE);
	}
	fclose(out);
	return pid;
}

static uint64_t
cpu_ms(pid_t pid)
{
	unsigned long long user = 0, system = 0;
	char path[64];
	FILE *file;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	file = fopen(path, "re");
	if (file) {
		if (fscanf(file,
		           "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu "
		           "%llu",
		           &user, &system) != 2)
			user = system = 0;
		fclose(file);
	}
	return (user + system) * 1000 / (uint64_t)sysconf(_SC_CLK_TCK);
}

/* --- the load ---------------------------------------------------------------------- */

static void
make_request(struct buffer *out, size_t body_size)
{
	struct buffer body = BUFFER_INIT(BUFFER_SIZE_DEFAULT);

	(void)buffer_append_text(
		&body, "{\"model\":\"claude-sonnet-5\",\"max_tokens\":64,"
		       "\"stream\":true,\"system\":[{\"type\":\"text\","
		       "\"cache_control\":{\"type\":\"ephemeral\"},\"text\":\"");
	while (body.len < body_size)
		(void)buffer_append_text(&body,
		                         "Answer politely; cite paragraph \\\"7\\\".\\n");
	(void)buffer_append_text(&body,
	                         "\"}],\"messages\":[{\"role\":\"user\",\"content\":"
	                         "\"Why?\"}]}");
	(void)buffer_append_format(out,
	                           "POST /v1/messages HTTP/1.1\r\nhost: bench\r\n"
	                           "anthropic-version: 2023-06-01\r\ncontent-type: "
	                           "application/json\r\ncontent-length: %zu\r\n\r\n",
	                           body.len);
	(void)buffer_append(out, buffer_span(&body));
	buffer_fini(&body);
}

static void
watch(struct load *load, struct client *client, uint32_t events, int operation)
{
	struct epoll_event event = { .events = events, .data.ptr = client };

	VERIFY(epoll_ctl(load->epoll, operation, client->fd, &event) == 0);
}

static void
open_client(struct load *load, struct client *client, unsigned port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		                       .sin_port = htons((uint16_t)port),
		                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int one = 1;

	client->fd = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(client->fd, (const struct sockaddr *)&address, sizeof address) < 0) {
		perror("bench_provider: connect");
		exit(EXIT_FAILURE);
	}
	setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	watch(load, client, EPOLLIN | EPOLLOUT, EPOLL_CTL_ADD);
}

static void
push(struct load *load, struct client *client)
{
	ssize_t count = send(client->fd, load->request.data + client->sent,
	                     load->request.len - client->sent, MSG_DONTWAIT);

	if (count > 0)
		client->sent += (size_t)count;
	if (client->sent == load->request.len)
		watch(load, client, EPOLLIN, EPOLL_CTL_MOD);
}

/* Reads what is there; an answer ends with the empty chunk. */
static void
pull(struct load *load, struct client *client)
{
	static char room[65536];
	ssize_t count = recv(client->fd, room, sizeof room, MSG_DONTWAIT);
	size_t keep;

	if (count <= 0) {
		fprintf(stderr, "bench_provider: the provider closed a connection (%s)\n",
		        count < 0 ? strerror(errno) : "end");
		exit(EXIT_FAILURE);
	}
	keep = MIN((size_t)count, sizeof client->tail);
	memmove(client->tail, client->tail + keep, sizeof client->tail - keep);
	memcpy(client->tail + sizeof client->tail - keep, room + count - keep, keep);
	if (memcmp(client->tail, "\r\n0\r\n\r\n", sizeof client->tail) != 0)
		return;
	load->done++;
	client->sent = 0;
	memset(client->tail, 0, sizeof client->tail);
	watch(load, client, EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD);
}

static void
run_until(struct load *load, uint64_t end_ms)
{
	struct epoll_event events[256];

	while (now_ms() < end_ms) {
		int count = epoll_wait(load->epoll, events, ARRAY_SIZE(events), 100);

		for (int i = 0; i < count; i++) {
			struct client *client = events[i].data.ptr;

			if (events[i].events & EPOLLIN)
				pull(load, client);
			if (events[i].events & EPOLLOUT &&
			    client->sent < load->request.len)
				push(load, client);
		}
	}
}

static size_t
argument(int argc, char **argv, int index, size_t value)
{
	return index < argc ? strtoul(argv[index], NULL, 10) : value;
}

int
main(int argc, char **argv)
{
	static struct load load = { .request = BUFFER_INIT(BUFFER_SIZE_DEFAULT) };
	size_t body_size = argument(argc, argv, 3, 120000);
	size_t seconds = argument(argc, argv, 4, 5);
	uint64_t start_ms, start_cpu_ms, took_ms, took_cpu_ms;
	unsigned port;
	pid_t pid;

	load.connections = MIN(argument(argc, argv, 2, 200), CONNECTIONS_MAX);
	if (argc < 2 || seconds == 0) {
		fprintf(stderr, "Usage: bench_provider PROGRAM [connections] [body] "
		                "[seconds] [job ms]\n");
		return 2;
	}
	pid = start_provider(argv[1], argc > 5 ? argv[5] : "0", &port);
	make_request(&load.request, body_size);
	load.epoll = epoll_create1(0);
	for (size_t i = 0; i < load.connections; i++)
		open_client(&load, &load.clients[i], port);
	run_until(&load, now_ms() + 500); /* warm */
	load.done = 0;
	start_ms = now_ms();
	start_cpu_ms = cpu_ms(pid);
	run_until(&load, start_ms + seconds * 1000);
	took_ms = now_ms() - start_ms;
	took_cpu_ms = cpu_ms(pid) - start_cpu_ms;
	kill(pid, SIGTERM);
	waitpid(pid, NULL, 0);
	printf("%zu streaming connections, %zu-byte requests: %llu requests/s, %llu us "
	       "of "
	       "provider CPU each (%llu %% of a core)\n",
	       load.connections, load.request.len,
	       (unsigned long long)(load.done * 1000 / took_ms),
	       (unsigned long long)(took_cpu_ms * 1000 / MAX(load.done, 1)),
	       (unsigned long long)(took_cpu_ms * 100 / took_ms));
	return load.done > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
