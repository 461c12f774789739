#include "tests/bench/pipe.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/text.h"

#define READ_SIZE ((size_t)256 << 10)

NORETURN static void
give_up(const char *what, struct span detail)
{
	fprintf(stderr, "bench_queue: %s: %.*s\n", what, (int)detail.len, detail.data);
	exit(1);
}

static void
grow(char **memory, size_t *size, size_t wanted)
{
	if (*size >= wanted)
		return;
	*size = MAX(wanted, *size * 2);
	*memory = realloc(*memory, *size);
	if (!*memory)
		give_up("no memory", SPAN(""));
}

void
pipe_connect(struct pipe *pipe, const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	*pipe = (struct pipe){ .fd = socket(AF_UNIX, SOCK_STREAM, 0) };
	snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
	if (pipe->fd < 0 ||
	    connect(pipe->fd, (struct sockaddr *)&address, sizeof address) < 0)
		give_up("cannot connect", span_from(path));
}

/* ---- commands -------------------------------------------------------------------- */

/* "<sign><value>\r\n" */
static void
put_head(struct pipe *pipe, char sign, uint64_t value)
{
	char *at = pipe->out + pipe->out_len;
	size_t len;

	*at = sign;
	len = 1 + text_print_unsigned(value, at + 1);
	memcpy(at + len, "\r\n", 2);
	pipe->out_len += len + 2;
}

void
pipe_open(struct pipe *pipe, size_t words)
{
	grow(&pipe->out, &pipe->out_size, pipe->out_len + 64);
	put_head(pipe, '*', words);
}

void
pipe_word(struct pipe *pipe, const char *data, size_t size)
{
	grow(&pipe->out, &pipe->out_size, pipe->out_len + size + 64);
	put_head(pipe, '$', size);
	memcpy(pipe->out + pipe->out_len, data, size);
	memcpy(pipe->out + pipe->out_len + size, "\r\n", 2);
	pipe->out_len += size + 2;
}

void
pipe_text(struct pipe *pipe, const char *text)
{
	pipe_word(pipe, text, strlen(text));
}

void
pipe_unsigned(struct pipe *pipe, uint64_t value)
{
	char digits[TEXT_NUMBER_SIZE];

	pipe_word(pipe, digits, text_print_unsigned(value, digits));
}

void
pipe_flush(struct pipe *pipe)
{
	size_t done = 0;

	while (done < pipe->out_len) {
		ssize_t sent = write(pipe->fd, pipe->out + done, pipe->out_len - done);

		if (sent <= 0)
			give_up("cannot write", SPAN(""));
		done += (size_t)sent;
	}
	pipe->out_len = 0;
}

/* ---- replies --------------------------------------------------------------------- */

static void
read_more(struct pipe *pipe)
{
	ssize_t got;

	if (pipe->in_at > 0) {
		memmove(pipe->in, pipe->in + pipe->in_at, pipe->in_len - pipe->in_at);
		pipe->in_len -= pipe->in_at;
		pipe->in_at = 0;
	}
	grow(&pipe->in, &pipe->in_size, pipe->in_len + READ_SIZE);
	got = read(pipe->fd, pipe->in + pipe->in_len, pipe->in_size - pipe->in_len);
	if (got <= 0)
		give_up("Redis has gone", SPAN(""));
	pipe->in_len += (size_t)got;
}

/* Makes `size` bytes of what is not taken yet stand in memory. */
static const char *
have(struct pipe *pipe, size_t size)
{
	while (pipe->in_len - pipe->in_at < size)
		read_more(pipe);
	return pipe->in + pipe->in_at;
}

/* The next line, without its end. */
static struct span
take_line(struct pipe *pipe)
{
	size_t seen = 0;

	for (;;) {
		const char *from = pipe->in + pipe->in_at;
		size_t len = pipe->in_len - pipe->in_at;
		const char *end =
			len > seen ? memchr(from + seen, '\n', len - seen) : NULL;

		if (end) {
			pipe->in_at += (size_t)(end - from) + 1;
			return (struct span){ from, (size_t)(end - from) - 1 };
		}
		seen = len;
		read_more(pipe);
	}
}

static int64_t
take_head(struct pipe *pipe, char sign)
{
	struct span line = take_line(pipe);
	int64_t value = 0;
	size_t i = 1;
	bool is_negative;

	if (line.data[0] != sign)
		give_up("not what was expected", line);
	is_negative = line.len > 1 && line.data[1] == '-';
	for (i += is_negative; i < line.len; i++)
		value = value * 10 + line.data[i] - '0';
	return is_negative ? -value : value;
}

int64_t
pipe_array(struct pipe *pipe)
{
	return take_head(pipe, '*');
}

int64_t
pipe_number(struct pipe *pipe)
{
	return take_head(pipe, ':');
}

struct span
pipe_bulk(struct pipe *pipe)
{
	int64_t size = take_head(pipe, '$');
	const char *data;

	if (size < 0)
		return (struct span){ NULL, 0 };
	data = have(pipe, (size_t)size + 2);
	pipe->in_at += (size_t)size + 2;
	return (struct span){ data, (size_t)size };
}

void
pipe_skip(struct pipe *pipe)
{
	char sign = *have(pipe, 1);

	if (sign == '$') {
		(void)pipe_bulk(pipe);
	} else if (sign == '*') {
		for (int64_t left = pipe_array(pipe); left > 0; left--)
			pipe_skip(pipe);
	} else {
		struct span line = take_line(pipe);

		if (sign == '-')
			give_up("Redis refuses", line);
	}
}
