/* buffer.h - bytes that grow: for shells, codecs and tests, not for the pure core.
 *
 *   struct buffer body = BUFFER_INIT(1 << 20);    at most 1 MiB
 *   buffer_append(&body, SPAN("{\"n\":"));
 *   buffer_append_unsigned(&body, 7);
 *   buffer_append_byte(&body, '}');
 *   if (buffer_error(&body) < 0)                  checked once, at the end
 *           ...
 *   buffer_fini(&body);
 *
 * The first failure sticks: ERR_LIMIT when the content would pass `size_max`, ERR_MEMORY
 * when malloc says no.  After it every append is a no-op that answers the same error, so
 * a builder may append twenty times and look once.
 *
 * Invariants: `data` is NULL or has a zero byte after `len`, so it can be handed out as
 * a C string; `len` <= `size_max`.  The owner calls buffer_fini. */
#ifndef COMMON_BUFFER_H
#define COMMON_BUFFER_H

#include "common/base.h"
#include "common/error.h"
#include "common/id.h"

struct buffer {
	char *data;
	size_t len;
	size_t room;     /* allocated bytes */
	size_t size_max; /* limit of len */
	int error;
};

#define BUFFER_SIZE_DEFAULT ((size_t)64 << 20) /* twice the largest provider request */
#define BUFFER_INIT(limit)          \
	{                           \
		.size_max = (limit) \
	}

void buffer_init(struct buffer *buffer, size_t size_max);

/* Frees the content and leaves an empty buffer with the same limit.  Takes NULL. */
void buffer_fini(struct buffer *buffer);

/* Empties it and forgets the error; keeps the memory. */
void buffer_clear(struct buffer *buffer);

/* Cuts the content to `len`, which must not be larger than it is. */
void buffer_truncate(struct buffer *buffer, size_t len);

static inline struct span
buffer_span(const struct buffer *buffer)
{
	return (struct span){ buffer->data, buffer->len };
}

/* The content as a C string: never NULL. */
static inline const char *
buffer_text(const struct buffer *buffer)
{
	return buffer->data ? buffer->data : "";
}

/* 0, or the first error since init or clear. */
static inline int
buffer_error(const struct buffer *buffer)
{
	return buffer->error;
}

/* All of these answer 0 or the sticky error; ignoring it is legal, see above. */
int buffer_append(struct buffer *buffer, struct span bytes);
int buffer_append_text(struct buffer *buffer, const char *text);
int buffer_append_byte(struct buffer *buffer, char byte);
int buffer_append_unsigned(struct buffer *buffer, uint64_t value);
int buffer_append_signed(struct buffer *buffer, int64_t value);
int buffer_append_id(struct buffer *buffer, struct id128 id); /* 32 hex digits */
int buffer_append_format(struct buffer *buffer, const char *format, ...) PRINTF(2, 3);

/* Untrusted bytes, harmless to a terminal (text_escape without the cut). */
int buffer_append_escaped(struct buffer *buffer, struct span bytes);

/* A JSON string with its quotes, which is a YAML string as well, and harmless to a
 * terminal.  Bytes that are not UTF-8 become U+FFFD. */
int buffer_append_json(struct buffer *buffer, struct span bytes);

/* Makes room for `len` more bytes and answers where they go, or NULL with the sticky
 * error set; buffer_commit then says how many were written. */
char *buffer_reserve(struct buffer *buffer, size_t len);
void buffer_commit(struct buffer *buffer, size_t len);

/* Hands the malloc()ed bytes (never NULL on success) to the caller, who frees them, and
 * leaves the buffer empty.  NULL if an error sticks. */
char *buffer_take(struct buffer *buffer, size_t *ret_len);

#endif
