#include "common/codec/tape.h"
#include "common/codec/tape_text.h"

/* One past the closing quote of the string whose opening quote is at `at`. */
static size_t
string_end(struct span value, size_t at)
{
	for (at++; at < value.len; at++) {
		const char *quote = memchr(value.data + at, '"', value.len - at);
		const char *slash;
		size_t stop = quote ? (size_t)(quote - value.data) : value.len;

		slash = memchr(value.data + at, '\\', stop - at);
		if (!slash)
			return stop + 1;
		at = (size_t)(slash - value.data) +
		     1; /* the loop steps over the escaped */
	}
	return value.len;
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
