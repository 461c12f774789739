#include "common/codec/tape.h"
#include "common/codec/tape_text.h"

static size_t
find_byte(struct span value, size_t at, size_t end, char byte)
{
	const char *found = at < end ? memchr(value.data + at, byte, end - at) : NULL;

	return found ? (size_t)(found - value.data) : end;
}

/* One past the closing quote of the string whose opening quote is at `at`.  Looks for the
 * next quote again only when an escape covers it: texts with many escapes stay linear. */
static size_t
string_end(struct span value, size_t at)
{
	size_t quote;

	at++;
	quote = find_byte(value, at, value.len, '"');
	for (;;) {
		size_t slash = find_byte(value, at, quote, '\\');

		if (slash == quote)
			return MIN(quote + 1, value.len);
		at = slash + 2;
		if (at > quote)
			quote = find_byte(value, at, value.len, '"');
	}
}

static bool
is_blank(char byte)
{
	return byte == ' ' || byte == '\n' || byte == '\t' || byte == '\r';
}

void
tape_canonical(struct span value, struct buffer *out)
{
	size_t at = 0;

	while (at < value.len) {
		size_t run = at, end;

		while (run < value.len && value.data[run] != '"' &&
		       !is_blank(value.data[run]))
			run++;
		if (run > at)
			(void)buffer_append(out,
			                    (struct span){ value.data + at, run - at });
		at = run;
		while (at < value.len && is_blank(value.data[at]))
			at++;
		if (at == value.len || value.data[at] != '"')
			continue;
		end = string_end(value, at);
		(void)buffer_append_byte(out, '"');
		tape_text_canonical((struct span){ value.data + at + 1, end - at - 2 },
		                    out);
		(void)buffer_append_byte(out, '"');
		at = end;
	}
}
