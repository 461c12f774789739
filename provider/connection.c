#include "provider/connection.h"

#include <stdlib.h>

#define READ_SIZE   65536
#define EARLY_PAUSE 65536 /* bytes of the next request after which reading pauses */

enum state {
	STATE_READING,
	STATE_ANSWERING,
	STATE_DRAINING, /* the answer is complete; what is left is being written */
	STATE_CLOSING,
};

struct connection {
	uv_tcp_t tcp;
	uv_write_t write;
	struct connection_owner *owner;
	struct connection *next;
	struct connection *previous;
	enum state state;
	struct http_request request;
	struct buffer early;   /* came while answering */
	struct buffer out;     /* waits for the write under way */
	struct buffer writing; /* belongs to it */
	bool is_writing;
	bool is_taking;
	bool is_paused;
	void (*on_gone)(void *data);
	void *gone_data;
};

/* --- the end ----------------------------------------------------------------------- */

static void
on_closed(uv_handle_t *handle)
{
	struct connection *connection = handle->data;

	http_request_fini(&connection->request);
	buffer_fini(&connection->early);
	buffer_fini(&connection->out);
	buffer_fini(&connection->writing);
	free(connection);
}

static void
leave(struct connection *connection)
{
	struct connection_owner *owner = connection->owner;

	if (connection->previous)
		connection->previous->next = connection->next;
	else
		owner->first = connection->next;
	if (connection->next)
		connection->next->previous = connection->previous;
	owner->count--;
}

static void
close_now(struct connection *connection, bool reset)
{
	if (connection->state == STATE_CLOSING)
		return;
	connection->state = STATE_CLOSING;
	connection->on_gone = NULL;
	leave(connection);
	if (!reset || uv_tcp_close_reset(&connection->tcp, on_closed) < 0)
		uv_close((uv_handle_t *)&connection->tcp, on_closed);
}

/* The client has gone: whoever answers it must know before the memory goes. */
static void
lose(struct connection *connection)
{
	void (*on_gone)(void *data) = connection->on_gone;

	if (connection->state == STATE_CLOSING)
		return;
	connection->on_gone = NULL;
	if (on_gone)
		on_gone(connection->gone_data);
	close_now(connection, false);
}

/* --- requests ---------------------------------------------------------------------- */

static int
status_of(int err)
{
	switch (err) {
	case ERR_LIMIT:
		return 431;
	case ERR_UNSUPPORTED:
		return 501;
	case ERR_MEMORY:
		return 503;
	default:
		return 400;
	}
}

static void
say_continue(struct connection *connection)
{
	if (!connection->request.wants_continue ||
	    connection->request.state == HTTP_REQUEST_HEAD ||
	    connection->request.too_large)
		return;
	connection->request.wants_continue = false;
	(void)buffer_append(&connection->out, SPAN("HTTP/1.1 100 Continue\r\n\r\n"));
	connection_flush(connection);
}

/* Whether the body need not be waited for: the client asked first, and it is too large.
 */
static bool
is_refused_early(const struct http_request *request)
{
	return request->wants_continue && request->too_large;
}

/* Keeps bytes of the next request until this one is answered.  A client that sends too
 * much too early is not read from for a while. */
static void
hold_early(struct connection *connection, struct span bytes)
{
	(void)buffer_append(&connection->early, bytes);
	if (connection->early.len >= EARLY_PAUSE && !connection->is_paused) {
		connection->is_paused = true;
		uv_read_stop((uv_stream_t *)&connection->tcp);
	}
}

/* Feeds bytes to the parser and hands a finished request over. */
static void
take(struct connection *connection, struct span bytes)
{
	struct http_request *request = &connection->request;
	struct connection_owner *owner = connection->owner;
	size_t used;
	int err = http_request_feed(request, bytes, &used);

	if (err == ERR_AGAIN && !is_refused_early(request)) {
		say_continue(connection);
		return;
	}
	connection->state = STATE_ANSWERING;
	if (err == ERR_AGAIN || request->too_large) {
		owner->on_bad_request(owner->data, connection, 413);
		return;
	}
	if (err < 0) {
		owner->on_bad_request(owner->data, connection, status_of(err));
		return;
	}
	hold_early(connection, (struct span){ bytes.data + used, bytes.len - used });
	owner->on_request(owner->data, connection);
}

static void
on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_buf)
{
	static char room[READ_SIZE]; /* emptied in on_read, before the next alloc */

	(void)handle;
	(void)suggested;
	*ret_buf = uv_buf_init(room, sizeof room);
}

static void
on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf)
{
	struct connection *connection = stream->data;

	if (count == 0 || connection->state == STATE_CLOSING)
		return;
	if (count < 0) {
		lose(connection);
		return;
	}
	if (connection->state == STATE_READING)
		take(connection, (struct span){ buf->base, (size_t)count });
	else
		hold_early(connection, (struct span){ buf->base, (size_t)count });
}

void
connection_accept(struct connection_owner *owner, uv_stream_t *listener)
{
	struct connection *connection = calloc(1, sizeof *connection);

	if (!connection)
		return; /* no memory: the client waits in the backlog */
	connection->owner = owner;
	connection->tcp.data = connection;
	connection->write.data = connection;
	http_request_init(&connection->request, owner->body_max);
	buffer_init(&connection->early, EARLY_PAUSE + READ_SIZE);
	buffer_init(&connection->out, BUFFER_SIZE_DEFAULT);
	buffer_init(&connection->writing, BUFFER_SIZE_DEFAULT);
	connection->next = owner->first;
	if (owner->first)
		owner->first->previous = connection;
	owner->first = connection;
	owner->count++;
	if (uv_tcp_init(listener->loop, &connection->tcp) < 0) {
		leave(connection);
		on_closed((uv_handle_t *)&connection->tcp);
		return;
	}
	if (uv_accept(listener, (uv_stream_t *)&connection->tcp) < 0 ||
	    uv_tcp_nodelay(&connection->tcp, 1) < 0 ||
	    uv_read_start((uv_stream_t *)&connection->tcp, on_alloc, on_read) < 0)
		close_now(connection, false);
}

const struct http_request *
connection_request(const struct connection *connection)
{
	return &connection->request;
}

void
connection_drop_body(struct connection *connection)
{
	buffer_fini(&connection->request.body);
}

void
connection_watch(struct connection *connection, void (*on_gone)(void *data), void *data)
{
	connection->on_gone = on_gone;
	connection->gone_data = data;
}

/* --- answers ----------------------------------------------------------------------- */

static void flush(struct connection *connection);

static void
on_written(uv_write_t *write, int status)
{
	struct connection *connection = write->data;

	connection->is_writing = false;
	if (connection->state == STATE_CLOSING)
		return;
	if (status < 0) {
		lose(connection);
		return;
	}
	buffer_clear(&connection->writing);
	flush(connection);
}

/* Writes what the socket takes at once; the rest becomes the write under way. */
static void
flush(struct connection *connection)
{
	uv_stream_t *stream = (uv_stream_t *)&connection->tcp;
	struct buffer swap;
	uv_buf_t buf;
	int written;

	if (connection->is_writing)
		return;
	if (connection->out.len == 0) {
		if (connection->state == STATE_DRAINING)
			close_now(connection, false);
		return;
	}
	buf = uv_buf_init(connection->out.data, (unsigned)connection->out.len);
	written = uv_try_write(stream, &buf, 1);
	if (written == (int)connection->out.len) {
		buffer_clear(&connection->out);
		if (connection->state == STATE_DRAINING)
			close_now(connection, false);
		return;
	}
	written = MAX(written, 0);
	swap = connection->writing;
	connection->writing = connection->out;
	connection->out = swap;
	buf = uv_buf_init(connection->writing.data + written,
	                  (unsigned)connection->writing.len - (unsigned)written);
	/* If even this fails the client hears no more; reading will say that it left. */
	connection->is_writing =
		uv_write(&connection->write, stream, &buf, 1, on_written) == 0;
}

struct buffer *
connection_output(struct connection *connection)
{
	return &connection->out;
}

void
connection_flush(struct connection *connection)
{
	flush(connection);
}

/* Takes the requests that came early.  An answer that is complete at once comes back here
 * through connection_end; the flag keeps a thousand pipelined requests from nesting a
 * thousand calls. */
static void
take_early(struct connection *connection)
{
	if (connection->is_taking)
		return;
	connection->is_taking = true;
	while (connection->state == STATE_READING && connection->early.len > 0) {
		struct buffer early = connection->early;

		buffer_init(&connection->early, EARLY_PAUSE + READ_SIZE);
		take(connection, buffer_span(&early));
		buffer_fini(&early);
	}
	connection->is_taking = false;
	if (connection->is_paused && connection->state == STATE_READING) {
		connection->is_paused = false;
		if (uv_read_start((uv_stream_t *)&connection->tcp, on_alloc, on_read) < 0)
			lose(connection);
	}
}

void
connection_end(struct connection *connection, bool keep_alive)
{
	connection->on_gone = NULL;
	if (!keep_alive || buffer_error(&connection->out) < 0) {
		connection_abort(connection);
		return;
	}
	flush(connection);
	http_request_clear(&connection->request, connection->owner->body_max);
	connection->state = STATE_READING;
	take_early(connection);
}

void
connection_abort(struct connection *connection)
{
	connection->on_gone = NULL;
	if (connection->state == STATE_CLOSING)
		return;
	connection->state = STATE_DRAINING;
	flush(connection);
}

void
connection_reset(struct connection *connection)
{
	close_now(connection, true);
}

void
connection_close_all(struct connection_owner *owner)
{
	while (owner->first)
		lose(owner->first);
}
