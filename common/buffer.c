#include "common/buffer.h"

#include "common/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define ROOM_MIN 64

void
buffer_init(struct buffer *buffer, size_t size_max)
{
	*buffer = (struct buffer){ .size_max = size_max };
}

void
buffer_fini(struct buffer *buffer)
{
	if (!buffer)
		return;
	free(buffer->data);
	buffer_init(buffer, buffer->size_max);
}

void
buffer_clear(struct buffer *buffer)
{
	buffer->len = 0;
	buffer->error = 0;
	if (buffer->data)
		buffer->data[0] = '\0';
}

void
buffer_truncate(struct buffer *buffer, size_t len)
{
	VERIFY(len <= buffer->len);
	buffer->len = len;
	if (buffer->data)
		buffer->data[len] = '\0';
}

/* Doubles until `need` bytes and their zero fit. */
static int
grow(struct buffer *buffer, size_t need)
{
	size_t room = MAX(buffer->room, ROOM_MIN);
	char *data;

	while (room < need + 1)
		room = room > SIZE_MAX / 2 ? need + 1 : room * 2;
	data = realloc(buffer->data, room);
	if (!data) {
		buffer->error = ERR_MEMORY;
		return ERR_MEMORY;
	}
	buffer->data = data;
	buffer->room = room;
	return 0;
}

char *
buffer_reserve(struct buffer *buffer, size_t len)
{
	if (buffer->error < 0)
		return NULL;
	if (len > buffer->size_max - buffer->len) {
		buffer->error = ERR_LIMIT;
		return NULL;
	}
	if (buffer->len + len + 1 > buffer->room && grow(buffer, buffer->len + len) < 0)
		return NULL;
	return buffer->data + buffer->len;
}

void
buffer_commit(struct buffer *buffer, size_t len)
{
	VERIFY(buffer->len + len < buffer->room);
	VERIFY(buffer->len + len <= buffer->size_max);
	buffer->len += len;
	buffer->data[buffer->len] = '\0';
}

int
buffer_append(struct buffer *buffer, struct span bytes)
{
	char *to = buffer_reserve(buffer, bytes.len);

	if (!to)
		return buffer->error;
	if (bytes.len > 0)
		memcpy(to, bytes.data, bytes.len);
	buffer_commit(buffer, bytes.len);
	return 0;
}

int
buffer_append_text(struct buffer *buffer, const char *text)
{
	return buffer_append(buffer, span_from(text));
}

int
buffer_append_byte(struct buffer *buffer, char byte)
{
	return buffer_append(buffer, (struct span){ &byte, 1 });
}

int
buffer_append_unsigned(struct buffer *buffer, uint64_t value)
{
	char text[TEXT_NUMBER_SIZE];

	return buffer_append(buffer,
	                     (struct span){ text, text_print_unsigned(value, text) });
}

int
buffer_append_signed(struct buffer *buffer, int64_t value)
{
	if (value >= 0)
		return buffer_append_unsigned(buffer, (uint64_t)value);
	(void)buffer_append_byte(buffer, '-');
	return buffer_append_unsigned(buffer, 0 - (uint64_t)value);
}

int
buffer_append_id(struct buffer *buffer, struct id128 id)
{
	char hex[ID_HEX_LEN];

	id_encode(id, hex);
	return buffer_append(buffer, (struct span){ hex, sizeof hex });
}

int
buffer_append_format(struct buffer *buffer, const char *format, ...)
{
	va_list arguments;
	int len;
	char *to;

	if (buffer->error < 0)
		return buffer->error;
	va_start(arguments, format);
	len = vsnprintf(NULL, 0, format, arguments);
	va_end(arguments);
	VERIFY(len >= 0); /* only a broken format string fails */

	to = buffer_reserve(buffer, (size_t)len);
	if (!to)
		return buffer->error;
	va_start(arguments, format);
	(void)vsnprintf(to, (size_t)len + 1, format, arguments);
	va_end(arguments);
	buffer_commit(buffer, (size_t)len);
	return 0;
}

int
buffer_append_escaped(struct buffer *buffer, struct span bytes)
{
	size_t room = bytes.len > SIZE_MAX / 8 ? SIZE_MAX / 2 : bytes.len * 4 + 8;
	char *to;

	if (bytes.len == 0)
		return buffer->error;

	/* Most text escapes to itself: ask for the worst case only if the limit has it.
	 */
	if (room > buffer->size_max - buffer->len)
		room = buffer->size_max - buffer->len;
	if (room < 8)
		return buffer->error = ERR_LIMIT;
	to = buffer_reserve(buffer, room);
	if (!to)
		return buffer->error;
	buffer_commit(buffer, text_escape(bytes, to, room));
	return 0;
}

/* Bytes that may stand in a JSON string as they are. */
static size_t
plain_len(struct span bytes)
{
	size_t len = 0;

	while (len < bytes.len && (unsigned char)bytes.data[len] >= 0x20 &&
	       (unsigned char)bytes.data[len] < 0x7f && bytes.data[len] != '"' &&
	       bytes.data[len] != '\\')
		len++;
	return len;
}

/* JSON allows them, but a terminal obeys them, or YAML ends the line there or refuses
 * them: DEL, C1, line separators, the byte order mark and the last two of the plane. */
static bool
is_unsafe(uint32_t code)
{
	return (code >= 0x7f && code <= 0x9f) || code == 0x2028 || code == 0x2029 ||
	       code == 0xfeff || code == 0xfffe || code == 0xffff;
}

/* Appends the first character of `bytes`, which is no plain one; answers its length. */
static size_t
append_special(struct buffer *buffer, struct span bytes)
{
	unsigned char byte = (unsigned char)bytes.data[0];
	uint32_t code;
	size_t len;

	if (byte == '\n') { /* event streams are full of them */
		(void)buffer_append_text(buffer, "\\n");
		return 1;
	}
	if (byte < 0x20) {
		(void)buffer_append_format(buffer, "\\u%04x", byte);
		return 1;
	}
	if (byte < 0x7f) {
		(void)buffer_append_byte(buffer, '\\');
		(void)buffer_append_byte(buffer, (char)byte);
		return 1;
	}
	len = text_character(bytes, &code);
	if (len == 0) {
		(void)buffer_append_text(buffer, "\xef\xbf\xbd");
		return 1;
	}
	if (is_unsafe(code))
		(void)buffer_append_format(buffer, "\\u%04x", code);
	else
		(void)buffer_append(buffer, (struct span){ bytes.data, len });
	return len;
}

int
buffer_append_json(struct buffer *buffer, struct span bytes)
{
	(void)buffer_append_byte(buffer, '"');
	while (bytes.len > 0 && buffer->error == 0) {
		size_t len = plain_len(bytes);

		if (len > 0)
			(void)buffer_append(buffer, (struct span){ bytes.data, len });
		else
			len = append_special(buffer, bytes);
		bytes = (struct span){ bytes.data + len, bytes.len - len };
	}
	return buffer_append_byte(buffer, '"');
}

char *
buffer_take(struct buffer *buffer, size_t *ret_len)
{
	char *data;

	if (!buffer_reserve(buffer, 0))
		return NULL;
	data = buffer->data;
	data[buffer->len] = '\0';
	*ret_len = buffer->len;
	buffer_init(buffer, buffer->size_max);
	return data;
}
