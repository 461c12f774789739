#include "common/io/http_server.h"

#include "common/text.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

struct http_server {
	struct MHD_Daemon *daemon;
	uv_poll_t poll;   /* on libmicrohttpd's epoll descriptor */
	uv_timer_t timer; /* its next deadline */
	unsigned handles_open;
	http_server_fn *fn;
	void *data;
	http_server_closed_fn *closed_fn;
	void *closed_data;
};

/* What one request has brought so far. */
struct incoming {
	struct buffer body;
};

static void on_timer(uv_timer_t *timer);

/* Lets libmicrohttpd do what is due, and asks when it wants to be called again. */
static void
run(struct http_server *server)
{
	MHD_UNSIGNED_LONG_LONG wait_ms;

	(void)MHD_run(server->daemon);
	if (MHD_get_timeout(server->daemon, &wait_ms) == MHD_YES)
		VERIFY(uv_timer_start(&server->timer, on_timer, wait_ms, 0) == 0);
	else
		(void)uv_timer_stop(&server->timer);
}

static void
on_timer(uv_timer_t *timer)
{
	run(timer->data);
}

static void
on_poll(uv_poll_t *poll, int status, int events)
{
	(void)status;
	(void)events;
	run(poll->data);
}

static enum MHD_Result
answer(struct MHD_Connection *connection, struct http_server_response *response)
{
	struct MHD_Response *out;
	enum MHD_Result result;
	size_t len;
	char *body;

	if (buffer_error(&response->body) < 0) { /* the answer did not fit */
		buffer_fini(&response->body);
		buffer_init(&response->body, BUFFER_SIZE_DEFAULT);
		response->status = MHD_HTTP_INTERNAL_SERVER_ERROR;
		(void)buffer_append_text(&response->body, "The answer is too large.\n");
	}
	body = buffer_take(&response->body, &len);
	if (!body)
		return MHD_NO;
	out = MHD_create_response_from_buffer(len, body, MHD_RESPMEM_MUST_FREE);
	if (!out) {
		free(body);
		return MHD_NO;
	}
	(void)MHD_add_response_header(out, MHD_HTTP_HEADER_CONTENT_TYPE,
	                              response->content_type);
	(void)MHD_add_response_header(out, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	(void)MHD_add_response_header(out, "X-Content-Type-Options", "nosniff");
	if (response->allow)
		(void)MHD_add_response_header(out, MHD_HTTP_HEADER_ALLOW,
		                              response->allow);
	result = MHD_queue_response(connection, response->status, out);
	MHD_destroy_response(out);
	return result;
}

static enum MHD_Result
refuse_body(struct MHD_Connection *connection)
{
	struct http_server_response response = {
		.status = MHD_HTTP_CONTENT_TOO_LARGE,
		.content_type = "text/plain; charset=utf-8",
		.body = BUFFER_INIT(200),
	};
	enum MHD_Result result;

	(void)buffer_append_format(&response.body, "A body has at most %zu bytes.\n",
	                           HTTP_SERVER_BODY_MAX);
	result = answer(connection, &response);
	buffer_fini(&response.body);
	return result;
}

static enum MHD_Result
handle(struct http_server *server, struct MHD_Connection *connection, const char *path,
       const char *method, const struct incoming *incoming)
{
	struct http_server_request request = {
		.method = strcmp(method, "HEAD") == 0 ? "GET" : method,
		.path = path,
		.body = buffer_span(&incoming->body),
		.connection = connection,
	};
	struct http_server_response response = {
		.status = MHD_HTTP_OK,
		.content_type = "text/plain; charset=utf-8",
		.body = BUFFER_INIT(BUFFER_SIZE_DEFAULT),
	};
	enum MHD_Result result;

	server->fn(&request, &response, server->data);
	result = answer(connection, &response);
	buffer_fini(&response.body);
	return result;
}

/* libmicrohttpd calls it once with the headers, then for each piece of the body, then
 * once with none left. */
static enum MHD_Result
on_request(void *data, struct MHD_Connection *connection, const char *path,
           const char *method, const char *version, const char *piece, size_t *piece_len,
           void **state)
{
	struct incoming *incoming = *state;

	(void)version;
	if (!incoming) {
		incoming = calloc(1, sizeof *incoming);
		if (!incoming)
			return MHD_NO;
		buffer_init(&incoming->body, HTTP_SERVER_BODY_MAX);
		*state = incoming;
		return MHD_YES;
	}
	if (*piece_len > 0) {
		/* An error sticks: the rest is read and forgotten, then refused. */
		(void)buffer_append(&incoming->body, (struct span){ piece, *piece_len });
		*piece_len = 0;
		return MHD_YES;
	}
	if (buffer_error(&incoming->body) < 0)
		return refuse_body(connection);
	return handle(data, connection, path, method, incoming);
}

static void
on_completed(void *data, struct MHD_Connection *connection, void **state,
             enum MHD_RequestTerminationCode code)
{
	struct incoming *incoming = *state;

	(void)data;
	(void)connection;
	(void)code;
	if (!incoming)
		return;
	buffer_fini(&incoming->body);
	free(incoming);
	*state = NULL;
}

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

static void
on_daemon_message(void *data, const char *format, va_list arguments)
{
	/* It reports clients that went away; those are no events of ours. */
	(void)data;
	(void)format;
	(void)arguments;
}

static struct MHD_Daemon *
start_daemon(struct http_server *server, struct sockaddr_storage *address)
{
	unsigned flags = MHD_USE_EPOLL | MHD_USE_ERROR_LOG;

	if (address->ss_family == AF_INET6)
		flags |= MHD_USE_IPv6;
	return MHD_start_daemon(
		flags, 0, NULL, NULL, on_request, server, MHD_OPTION_EXTERNAL_LOGGER,
		on_daemon_message, NULL, MHD_OPTION_SOCK_ADDR, (struct sockaddr *)address,
		MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned)HTTP_SERVER_CONNECTIONS_MAX,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)HTTP_SERVER_SILENCE_S,
		MHD_OPTION_END);
}

int
http_server_open(uv_loop_t *loop, const char *address, http_server_fn *fn, void *data,
                 struct http_server **ret_server,
                 char ret_message[HTTP_SERVER_MESSAGE_SIZE])
{
	const union MHD_DaemonInfo *info;
	struct sockaddr_storage where;
	struct http_server *server;

	(void)signal(SIGPIPE, SIG_IGN);
	if (parse_address(address, &where) < 0) {
		(void)snprintf(ret_message, HTTP_SERVER_MESSAGE_SIZE,
		               "Cannot listen at %.100s: an address is IP:port, such as "
		               "127.0.0.1:9310.",
		               address);
		return ERR_MALFORMED;
	}
	server = calloc(1, sizeof *server);
	if (!server)
		return ERR_MEMORY;
	server->fn = fn;
	server->data = data;
	server->daemon = start_daemon(server, &where);
	info = server->daemon
	               ? MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD)
	               : NULL;
	if (!info || uv_poll_init(loop, &server->poll, info->epoll_fd) < 0) {
		(void)snprintf(ret_message, HTTP_SERVER_MESSAGE_SIZE,
		               "Cannot listen at %.100s; is another program there?",
		               address);
		if (server->daemon)
			MHD_stop_daemon(server->daemon);
		free(server);
		return ERR_IO;
	}
	VERIFY(uv_timer_init(loop, &server->timer) == 0);
	server->poll.data = server;
	server->timer.data = server;
	server->handles_open = 2;
	VERIFY(uv_poll_start(&server->poll, UV_READABLE, on_poll) == 0);
	*ret_server = server;
	return 0;
}

uint16_t
http_server_port(const struct http_server *server)
{
	const union MHD_DaemonInfo *info;

	info = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_BIND_PORT);
	VERIFY(info);
	return info->port;
}

const char *
http_server_query(const struct http_server_request *request, const char *name)
{
	return MHD_lookup_connection_value(request->connection, MHD_GET_ARGUMENT_KIND,
	                                   name);
}

const char *
http_server_header(const struct http_server_request *request, const char *name)
{
	return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

static void
on_closed(uv_handle_t *handle)
{
	struct http_server *server = handle->data;
	http_server_closed_fn *fn = server->closed_fn;
	void *data = server->closed_data;

	if (--server->handles_open > 0)
		return;
	free(server);
	if (fn)
		fn(data);
}

void
http_server_close(struct http_server *server, http_server_closed_fn *fn, void *data)
{
	if (!server)
		return;
	server->closed_fn = fn;
	server->closed_data = data;
	uv_close((uv_handle_t *)&server->poll, on_closed);
	uv_close((uv_handle_t *)&server->timer, on_closed);
	MHD_stop_daemon(server->daemon);
	server->daemon = NULL;
}
