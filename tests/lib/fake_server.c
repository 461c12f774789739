#include "tests/lib/fake_server.h"

#include <stdio.h>
#include <unistd.h>

static void
hang_up(struct fake_server *fake)
{
	if (!fake->has_client)
		return;
	fake->has_client = false;
	uv_close((uv_handle_t *)&fake->client, NULL);
}

static void
say(struct fake_server *fake, const char *text)
{
	char copy[32];
	uv_buf_t piece;

	(void)snprintf(copy, sizeof copy, "%s", text);
	piece = uv_buf_init(copy, (unsigned)strlen(copy));
	(void)uv_try_write((uv_stream_t *)&fake->client, &piece, 1);
}

static void
misbehave(struct fake_server *fake)
{
	switch (fake->manner) {
	case FAKE_SILENT:
		return;
	case FAKE_CLOSES:
		hang_up(fake);
		return;
	case FAKE_HALVES:
		say(fake, "$100\r\nhalf");
		hang_up(fake);
		return;
	case FAKE_GARBAGE:
		say(fake, "HTTP/1.1 200 OK\r\n\r\n");
		return;
	}
}

static void
on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *ret_buffer)
{
	struct fake_server *fake = handle->data;

	(void)size;
	*ret_buffer = uv_buf_init(fake->buffer, sizeof fake->buffer);
}

/* A command begins with '*' at the start of a line; the tests' words have none. */
static void
on_read(uv_stream_t *stream, ssize_t len, const uv_buf_t *buffer)
{
	struct fake_server *fake = stream->data;

	if (len < 0) {
		hang_up(fake);
		return;
	}
	for (ssize_t i = 0; i < len && fake->has_client; i++) {
		if (buffer->base[i] != '*')
			continue;
		if (fake->commands++ < fake->answers)
			say(fake, "+OK\r\n");
		else
			misbehave(fake);
	}
}

static void
on_connection(uv_stream_t *listener, int status)
{
	struct fake_server *fake = listener->data;

	VERIFY(status == 0);
	VERIFY(!fake->has_client);
	VERIFY(uv_pipe_init(listener->loop, &fake->client, 0) == 0);
	fake->client.data = fake;
	fake->has_client = true;
	fake->connections++;
	VERIFY(uv_accept(listener, (uv_stream_t *)&fake->client) == 0);
	VERIFY(uv_read_start((uv_stream_t *)&fake->client, on_alloc, on_read) == 0);
}

void
fake_server_start(struct fake_server *fake, uv_loop_t *loop, const char *path,
                  enum fake_manner manner, uint32_t answers)
{
	*fake = (struct fake_server){ .manner = manner, .answers = answers };
	(void)snprintf(fake->path, sizeof fake->path, "%s", path);
	(void)unlink(path);
	VERIFY(uv_pipe_init(loop, &fake->listener, 0) == 0);
	fake->listener.data = fake;
	VERIFY(uv_pipe_bind(&fake->listener, path) == 0);
	VERIFY(uv_listen((uv_stream_t *)&fake->listener, 8, on_connection) == 0);
}

void
fake_server_stop(struct fake_server *fake)
{
	hang_up(fake);
	uv_close((uv_handle_t *)&fake->listener, NULL);
}
