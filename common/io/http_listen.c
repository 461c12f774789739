#include "common/io/http_listen.h"

#include "common/text.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

static int
parse_address(const char *text, struct sockaddr_storage *ret_address)
{
	const char *colon = strrchr(text, ':');
	struct span host, port_text;
	char name[64];
	uint64_t port;

	if (!colon)
		return ERR_MALFORMED;
	port_text = span_from(colon + 1);
	host = (struct span){ text, (size_t)(colon - text) };
	if (text_parse_unsigned(port_text, UINT16_MAX, &port) < 0)
		return ERR_MALFORMED;
	if (host.len >= 2 && host.data[0] == '[' && host.data[host.len - 1] == ']')
		host = (struct span){ host.data + 1, host.len - 2 };
	if (host.len >= sizeof name)
		return ERR_MALFORMED;
	memcpy(name, host.data, host.len);
	name[host.len] = '\0';
	if (strcmp(name, "localhost") == 0)
		(void)snprintf(name, sizeof name, "127.0.0.1");

	memset(ret_address, 0, sizeof *ret_address);
	if (uv_ip4_addr(name, (int)port, (struct sockaddr_in *)ret_address) == 0)
		return 0;
	if (uv_ip6_addr(name, (int)port, (struct sockaddr_in6 *)ret_address) == 0)
		return 0;
	return ERR_MALFORMED;
}

static const char *
advice(int cause)
{
	switch (cause) {
	case EADDRINUSE:
		return "another program listens there; stop it, or choose another port";
	case EADDRNOTAVAIL:
		return "this machine has no such address";
	case EACCES:
		return "ports below 1024 need a privilege; choose another one";
	default:
		return cause ? strerror(cause) : "the system gave no cause";
	}
}

/* Answers the socket, or -1 with errno. */
static int
listen_at(const struct sockaddr_storage *address)
{
	socklen_t len = address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
	                                               : sizeof(struct sockaddr_in);
	int fd =
		socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int on = 1, cause;

	if (fd < 0)
		return -1;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
	    bind(fd, (const struct sockaddr *)address, len) == 0 &&
	    listen(fd, SOMAXCONN) == 0)
		return fd;
	cause = errno;
	(void)close(fd);
	errno = cause;
	return -1;
}

void
http_listen_explain(const char *address, int cause,
                    char ret_message[HTTP_LISTEN_MESSAGE_SIZE])
{
	(void)snprintf(ret_message, HTTP_LISTEN_MESSAGE_SIZE,
	               "Cannot listen at %.100s: %s.", address, advice(cause));
}

int
http_listen_open(const char *address, int *ret_fd,
                 char ret_message[HTTP_LISTEN_MESSAGE_SIZE])
{
	struct sockaddr_storage where;
	int fd;

	if (parse_address(address, &where) < 0) {
		(void)snprintf(ret_message, HTTP_LISTEN_MESSAGE_SIZE,
		               "Cannot listen at %.100s: an address is IP:port, such as "
		               "127.0.0.1:9310.",
		               address);
		return ERR_MALFORMED;
	}
	fd = listen_at(&where);
	if (fd < 0) {
		http_listen_explain(address, errno, ret_message);
		return ERR_IO;
	}
	*ret_fd = fd;
	return 0;
}
