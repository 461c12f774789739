#include "common/io/http_server.h"

#include "common/io/http_guests.h"
#include "common/io/http_listen.h"

#include <errno.h>
#include <microhttpd.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

struct http_server {
	struct MHD_Daemon *daemon;
	uv_poll_t poll;   /* on libmicrohttpd's epoll descriptor */
	uv_timer_t timer; /* its next deadline */
	unsigned handles_open;
	struct incoming *incoming; /* all requests under way */
	struct http_guests guests;
	bool somebody_left;
	http_server_fn *fn;
	void *data;
	http_server_closed_fn *closed_fn;
	void *closed_data;
};

/* What one request has brought so far, and what it waits for. */
struct incoming {
	struct http_server *server;
	struct MHD_Connection *connection; /* NULL: gone, but its answer is still due */
	struct buffer body;
	struct http_server_stream *stream;
	bool deferred;  /* its answer comes by http_server_answer */
	bool suspended; /* libmicrohttpd was told to look away until then */
	bool answered;  /* `response` is that answer */
	struct http_server_response response;
	struct incoming *next, **link; /* all of the server */
};

/* `later` is the question itself. */
struct http_server_later {
	struct incoming incoming;
};

struct http_server_stream {
	struct http_server *server;
	struct MHD_Connection *connection;
	struct MHD_Response *response;
	struct incoming *incoming; /* until the connection is done with it */
	struct buffer pending;
	size_t read;    /* so many bytes of it are written */
	bool suspended; /* there was nothing to write */
	bool ended;
	http_server_gone_fn *fn;
	void *data;
};

static void on_timer(uv_timer_t *timer);

/* Lets libmicrohttpd go on with a connection from the next turn of the loop on. */
static void
resume(struct http_server *server, struct MHD_Connection *connection, bool *suspended)
{
	if (!*suspended)
		return;
	*suspended = false;
	MHD_resume_connection(connection);
	VERIFY(uv_timer_start(&server->timer, on_timer, 0, 0) == 0);
}

/* Who has come and asked in this turn has been heard by now.  A stream that has nothing
 * to write would not find out that its client is gone. */
static void
make_room(struct http_server *server)
{
	struct http_guest *guest;
	struct incoming *incoming;

	while ((guest = http_guests_show_out(&server->guests))) {
		incoming = guest->data;
		if (!incoming || !incoming->stream)
			continue;
		incoming->stream->ended = true;
		resume(server, incoming->connection, &incoming->stream->suspended);
	}
}

/* Lets libmicrohttpd do what is due, and asks when it wants to be called again.  When all
 * places are taken it stops listening; that somebody has left it looks at in its next
 * turn only, of which it says nothing. */
static void
run(struct http_server *server)
{
	MHD_UNSIGNED_LONG_LONG wait_ms;

	server->somebody_left = false;
	(void)MHD_run(server->daemon);
	if (server->somebody_left)
		VERIFY(uv_timer_start(&server->timer, on_timer, 0, 0) == 0);
	else if (MHD_get_timeout(server->daemon, &wait_ms) == MHD_YES)
		VERIFY(uv_timer_start(&server->timer, on_timer, wait_ms, 0) == 0);
	else
		(void)uv_timer_stop(&server->timer);
	make_room(server);
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

static struct MHD_Response *
response_from_body(struct http_server_response *response)
{
	struct MHD_Response *out;
	size_t len;
	char *body;

	if (response->constant.data) /* libmicrohttpd only reads it */
		return MHD_create_response_from_buffer(
			response->constant.len,
			(void *)(uintptr_t)response->constant.data,
			MHD_RESPMEM_PERSISTENT);
	if (buffer_error(&response->body) < 0) { /* the answer did not fit */
		buffer_fini(&response->body);
		buffer_init(&response->body, BUFFER_SIZE_DEFAULT);
		response->status = MHD_HTTP_INTERNAL_SERVER_ERROR;
		(void)buffer_append_text(&response->body, "The answer is too large.\n");
	}
	body = buffer_take(&response->body, &len);
	if (!body)
		return NULL;
	out = MHD_create_response_from_buffer(len, body, MHD_RESPMEM_MUST_FREE);
	if (!out)
		free(body);
	return out;
}

static void
add_headers(struct MHD_Response *out, const struct http_server_response *response)
{
	(void)MHD_add_response_header(out, MHD_HTTP_HEADER_CONTENT_TYPE,
	                              response->content_type);
	(void)MHD_add_response_header(out, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	(void)MHD_add_response_header(out, "X-Content-Type-Options", "nosniff");
	if (response->allow)
		(void)MHD_add_response_header(out, MHD_HTTP_HEADER_ALLOW,
		                              response->allow);
	for (const char *const *it = response->headers; it && it[0]; it += 2)
		(void)MHD_add_response_header(out, it[0], it[1]);
}

static enum MHD_Result
answer(struct MHD_Connection *connection, struct http_server_response *response)
{
	struct MHD_Response *out = response_from_body(response);
	enum MHD_Result result;

	if (!out)
		return MHD_NO;
	add_headers(out, response);
	result = MHD_queue_response(connection, response->status, out);
	MHD_destroy_response(out);
	return result;
}

struct http_server_response
http_server_response(void)
{
	return (struct http_server_response){
		.status = MHD_HTTP_OK,
		.content_type = "text/plain; charset=utf-8",
		.body = BUFFER_INIT(BUFFER_SIZE_DEFAULT),
	};
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

/* ---- streams --------------------------------------------------------------------- */

/* libmicrohttpd asks for more; with nothing to write it looks away until we resume. */
static ssize_t
on_stream_read(void *data, uint64_t position, char *to, size_t size)
{
	struct http_server_stream *stream = data;
	size_t left = stream->pending.len - stream->read, len = MIN(left, size);

	(void)position;
	if (len == 0 && stream->ended)
		return MHD_CONTENT_READER_END_OF_STREAM;
	if (len == 0) {
		stream->suspended = true;
		MHD_suspend_connection(stream->connection);
		return 0;
	}
	memcpy(to, stream->pending.data + stream->read, len);
	stream->read += len;
	if (stream->read == stream->pending.len) {
		buffer_clear(&stream->pending);
		stream->read = 0;
	}
	return (ssize_t)len;
}

static void
on_stream_free(void *data)
{
	struct http_server_stream *stream = data;

	if (stream->incoming)
		stream->incoming->stream = NULL;
	if (stream->fn)
		stream->fn(stream->data);
	buffer_fini(&stream->pending);
	free(stream);
}

struct http_server_stream *
http_server_stream_open(const struct http_server_request *request,
                        const struct http_server_response *response,
                        http_server_gone_fn *fn, void *data)
{
	struct incoming *incoming = request->incoming;
	struct http_server_stream *stream = calloc(1, sizeof *stream);

	if (!stream)
		return NULL;
	stream->response = MHD_create_response_from_callback(
		MHD_SIZE_UNKNOWN, 16384, on_stream_read, stream, on_stream_free);
	if (!stream->response) {
		free(stream);
		return NULL;
	}
	stream->server = incoming->server;
	stream->connection = incoming->connection;
	stream->incoming = incoming;
	stream->fn = fn;
	stream->data = data;
	buffer_init(&stream->pending, BUFFER_SIZE_DEFAULT);
	add_headers(stream->response, response);
	incoming->stream = stream;
	return stream;
}

bool
http_server_stream_is_idle(const struct http_server_stream *stream)
{
	return stream->pending.len == 0;
}

void
http_server_stream_send(struct http_server_stream *stream, struct span bytes)
{
	if (buffer_append(&stream->pending, bytes) < 0)
		stream->ended = true;
	resume(stream->server, stream->connection, &stream->suspended);
}

/* ---- answers that take longer ---------------------------------------------------- */

static void
free_incoming(struct incoming *incoming)
{
	buffer_fini(&incoming->body);
	buffer_fini(&incoming->response.body);
	free(incoming);
}

struct http_server_later *
http_server_defer(const struct http_server_request *request)
{
	struct incoming *incoming = request->incoming;

	VERIFY(!incoming->deferred);
	incoming->deferred = true;
	return (struct http_server_later *)incoming;
}

void
http_server_answer(struct http_server_later *later, struct http_server_response *response)
{
	struct incoming *incoming = &later->incoming;

	VERIFY(incoming->deferred);
	VERIFY(!incoming->answered);
	incoming->response = *response;
	incoming->answered = true;
	if (incoming->connection)
		resume(incoming->server, incoming->connection, &incoming->suspended);
	else
		free_incoming(incoming); /* nobody is there to read it */
}

/* ---- guests ---------------------------------------------------------------------- */

/* NULL: memory was out when it came. */
static struct http_guest *
guest_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

/* `incoming` is what is owed from here on, NULL when it is written. */
static void
owe(struct http_server *server, struct MHD_Connection *connection,
    struct incoming *incoming)
{
	struct http_guest *guest = guest_of(connection);

	if (!guest)
		return;
	guest->data = incoming;
	http_guests_move(&server->guests, guest, incoming != NULL);
}

static void
on_connection(void *data, struct MHD_Connection *connection, void **context,
              enum MHD_ConnectionNotificationCode code)
{
	struct http_server *server = data;
	const union MHD_ConnectionInfo *info;

	if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (*context)
			http_guests_leave(&server->guests, *context);
		*context = NULL;
		server->somebody_left = true;
		return;
	}
	info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	VERIFY(info);
	*context = http_guests_enter(&server->guests, info->connect_fd);
}

/* ---- requests -------------------------------------------------------------------- */

static enum MHD_Result
handle(struct http_server *server, struct MHD_Connection *connection, const char *path,
       const char *method, struct incoming *incoming)
{
	struct http_server_request request = {
		.method = strcmp(method, "HEAD") == 0 ? "GET" : method,
		.path = path,
		.body = buffer_span(&incoming->body),
		.connection = connection,
		.incoming = incoming,
	};
	struct http_server_response response = http_server_response();
	enum MHD_Result result = MHD_YES;

	owe(server, connection, incoming);
	server->fn(&request, &response, server->data);
	if (incoming->stream) {
		struct MHD_Response *out = incoming->stream->response;

		result = MHD_queue_response(connection, response.status, out);
		MHD_destroy_response(out); /* the connection has it now */
	} else if (!incoming->deferred) {
		result = answer(connection, &response);
	} else if (incoming->answered) {
		result = answer(connection, &incoming->response);
	} else {
		incoming->suspended = true;
		MHD_suspend_connection(connection);
	}
	buffer_fini(&response.body);
	return result;
}

static struct incoming *
make_incoming(struct http_server *server, struct MHD_Connection *connection)
{
	struct incoming *incoming = calloc(1, sizeof *incoming);

	if (!incoming)
		return NULL;
	incoming->server = server;
	incoming->connection = connection;
	buffer_init(&incoming->body, HTTP_SERVER_BODY_MAX);
	incoming->next = server->incoming;
	incoming->link = &server->incoming;
	if (incoming->next)
		incoming->next->link = &incoming->next;
	server->incoming = incoming;
	return incoming;
}

/* libmicrohttpd calls it once with the headers, then for each piece of the body, then
 * once with none left; and again when a deferred answer has come. */
static enum MHD_Result
on_request(void *data, struct MHD_Connection *connection, const char *path,
           const char *method, const char *version, const char *piece, size_t *piece_len,
           void **state)
{
	struct incoming *incoming = *state;

	(void)version;
	if (!incoming) {
		*state = make_incoming(data, connection);
		return *state ? MHD_YES : MHD_NO;
	}
	if (*piece_len > 0) {
		/* An error sticks: the rest is read and forgotten, then refused. */
		(void)buffer_append(&incoming->body, (struct span){ piece, *piece_len });
		*piece_len = 0;
		return MHD_YES;
	}
	if (buffer_error(&incoming->body) < 0)
		return refuse_body(connection);
	if (incoming->answered)
		return answer(connection, &incoming->response);
	if (incoming->deferred)
		return MHD_YES; /* we are closing */
	return handle(data, connection, path, method, incoming);
}

static void
on_completed(void *data, struct MHD_Connection *connection, void **state,
             enum MHD_RequestTerminationCode code)
{
	struct incoming *incoming = *state;

	(void)code;
	if (!incoming)
		return;
	*state = NULL;
	owe(data, connection, NULL);
	*incoming->link = incoming->next;
	if (incoming->next)
		incoming->next->link = incoming->link;
	if (incoming->stream)
		incoming->stream->incoming = NULL;
	incoming->connection = NULL;
	if (!incoming->deferred || incoming->answered)
		free_incoming(incoming); /* else http_server_answer does */
}

static void
on_daemon_message(void *data, const char *format, va_list arguments)
{
	/* It reports clients that went away; those are no events of ours. */
	(void)data;
	(void)format;
	(void)arguments;
}

/* The socket is the daemon's from here on, also if it does not start: versions differ in
 * whether they close it then, and the program ends. */
static struct MHD_Daemon *
start_daemon(struct http_server *server, int fd, unsigned connections_max)
{
	return MHD_start_daemon(
		MHD_USE_EPOLL | MHD_USE_ERROR_LOG | MHD_ALLOW_SUSPEND_RESUME, 0, NULL,
		NULL, on_request, server, MHD_OPTION_EXTERNAL_LOGGER, on_daemon_message,
		NULL, MHD_OPTION_LISTEN_SOCKET, (MHD_socket)fd,
		MHD_OPTION_NOTIFY_COMPLETED, on_completed, server,
		MHD_OPTION_NOTIFY_CONNECTION, on_connection, server,
		MHD_OPTION_CONNECTION_LIMIT, connections_max,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)HTTP_SERVER_SILENCE_S,
		MHD_OPTION_END);
}

int
http_server_open(uv_loop_t *loop, const struct http_server_options *options,
                 struct http_server **ret_server,
                 char ret_message[HTTP_SERVER_MESSAGE_SIZE])
{
	const union MHD_DaemonInfo *info;
	struct http_server *server;
	int fd, ret, cause;

	(void)signal(SIGPIPE, SIG_IGN);
	ret = http_listen_open(options->address, &fd, ret_message);
	if (ret < 0)
		return ret;
	server = calloc(1, sizeof *server);
	if (!server) {
		(void)close(fd);
		return ERR_MEMORY;
	}
	server->fn = options->fn;
	server->data = options->data;
	server->guests.staying_max = options->connections_max / 4 * 3;
	errno = 0;
	server->daemon = start_daemon(server, fd, options->connections_max);
	cause = errno;
	info = server->daemon
	               ? MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD)
	               : NULL;
	if (!info || uv_poll_init(loop, &server->poll, info->epoll_fd) < 0) {
		http_listen_explain(options->address, cause, ret_message);
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

/* libmicrohttpd stops only if nothing is suspended any more. */
static void
resume_all(struct http_server *server)
{
	for (struct incoming *it = server->incoming; it; it = it->next) {
		if (it->stream) {
			it->stream->ended = true;
			resume(server, it->connection, &it->stream->suspended);
		}
		resume(server, it->connection, &it->suspended);
	}
}

void
http_server_close(struct http_server *server, http_server_closed_fn *fn, void *data)
{
	if (!server)
		return;
	server->closed_fn = fn;
	server->closed_data = data;
	resume_all(server);
	uv_close((uv_handle_t *)&server->poll, on_closed);
	uv_close((uv_handle_t *)&server->timer, on_closed);
	MHD_stop_daemon(server->daemon);
	server->daemon = NULL;
}
