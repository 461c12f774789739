#include "provider/body.h"

#include "common/text.h"

#include <stdio.h>
#include <stdlib.h>

/* What stands for a long string: a control character no flawless short string may begin
 * with (such strings are taken out whatever their length), then its number. */
#define STAND_IN '\1'

#define BYTES_OF(byte) (0x0101010101010101ull * (byte))

/* --- one string -------------------------------------------------------------------- */

/* Whether no byte is a control character and all are UTF-8: eight at a time while they
 * are ASCII. */
static bool
is_flawless(struct span text)
{
	bool ascii = true;
	size_t i = 0;

	for (; i + 8 <= text.len; i += 8) {
		uint64_t word;

		memcpy(&word, text.data + i, sizeof word);
		if ((word - BYTES_OF(0x20)) & ~word & BYTES_OF(0x80))
			return false;
		if (word & BYTES_OF(0x80))
			ascii = false;
	}
	for (; i < text.len; i++) {
		if ((unsigned char)text.data[i] < 0x20)
			return false;
		if ((unsigned char)text.data[i] >= 0x80)
			ascii = false;
	}
	return ascii || text_is_utf8(text);
}

static int
hex4(const char *digits)
{
	int value = 0;

	for (int i = 0; i < 4; i++) {
		char c = digits[i];

		value <<= 4;
		if (c >= '0' && c <= '9')
			value |= c - '0';
		else if (c >= 'a' && c <= 'f')
			value |= c - 'a' + 10;
		else if (c >= 'A' && c <= 'F')
			value |= c - 'A' + 10;
		else
			return -1;
	}
	return value;
}

static size_t
utf8_write(uint32_t code, char *out)
{
	if (code < 0x80) {
		out[0] = (char)code;
		return 1;
	}
	if (code < 0x800) {
		out[0] = (char)(0xc0 | code >> 6);
		out[1] = (char)(0x80 | (code & 0x3f));
		return 2;
	}
	if (code < 0x10000) {
		out[0] = (char)(0xe0 | code >> 12);
		out[1] = (char)(0x80 | (code >> 6 & 0x3f));
		out[2] = (char)(0x80 | (code & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | code >> 18);
	out[1] = (char)(0x80 | (code >> 12 & 0x3f));
	out[2] = (char)(0x80 | (code >> 6 & 0x3f));
	out[3] = (char)(0x80 | (code & 0x3f));
	return 4;
}

/* Decodes \uXXXX, or a pair of them, at `text`.  Answers the bytes read, or 0 for what
 * jansson shall judge: no digits, a lone surrogate, a zero. */
static size_t
decode_unicode(struct span text, struct buffer *out)
{
	char bytes[4];
	int high, low;

	if (text.len < 6)
		return 0;
	high = hex4(text.data + 2);
	if (high <= 0 || (high >= 0xdc00 && high <= 0xdfff))
		return 0;
	if (high < 0xd800 || high > 0xdfff) {
		(void)buffer_append(
			out, (struct span){ bytes, utf8_write((uint32_t)high, bytes) });
		return 6;
	}
	if (text.len < 12 || text.data[6] != '\\' || text.data[7] != 'u')
		return 0;
	low = hex4(text.data + 8);
	if (low < 0xdc00 || low > 0xdfff)
		return 0;
	(void)buffer_append(
		out,
		(struct span){ bytes,
	                       utf8_write(0x10000 + ((uint32_t)(high - 0xd800) << 10) +
	                                          (uint32_t)(low - 0xdc00),
	                                  bytes) });
	return 12;
}

/* Decodes one escape at `text`.  Answers the bytes read, 0 if it is none. */
static size_t
decode_escape(struct span text, struct buffer *out)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *at;

	if (text.len < 2)
		return 0;
	if (text.data[1] == 'u')
		return decode_unicode(text, out);
	at = text.data[1] ? strchr(from, text.data[1]) : NULL;
	if (!at)
		return 0;
	(void)buffer_append_byte(out, to[at - from]);
	return 2;
}

/* Appends the content of the string between the quotes; false for one with a flaw. */
static bool
decode(struct span inside, struct buffer *out)
{
	if (!is_flawless(inside))
		return false;
	while (inside.len > 0) {
		const char *slash = memchr(inside.data, '\\', inside.len);
		size_t plain = slash ? (size_t)(slash - inside.data) : inside.len;
		size_t used;

		(void)buffer_append(out, (struct span){ inside.data, plain });
		inside = (struct span){ inside.data + plain, inside.len - plain };
		if (inside.len == 0)
			break;
		used = decode_escape(inside, out);
		if (used == 0)
			return false;
		inside = (struct span){ inside.data + used, inside.len - used };
	}
	return true;
}

/* --- all of them ------------------------------------------------------------------- */

/* The closing quote of the string whose inside begins at `start`, or NULL. */
static const char *
find_end(const char *start, const char *end)
{
	const char *at = start;

	for (;;) {
		const char *quote = memchr(at, '"', (size_t)(end - at));
		const char *slash;

		if (!quote)
			return NULL;
		slash = quote;
		while (slash > start && slash[-1] == '\\')
			slash--;
		if ((quote - slash) % 2 == 0)
			return quote;
		at = quote + 1;
	}
}

static int
keep(struct body *body, size_t offset)
{
	if (body->strings_count == body->strings_room) {
		uint32_t room = MAX(8, body->strings_room * 2);
		struct span *strings = realloc(body->strings, room * sizeof *strings);

		if (!strings)
			return ERR_MEMORY;
		body->strings = strings;
		body->strings_room = room;
	}
	body->strings[body->strings_count++] =
		(struct span){ (const char *)(uintptr_t)offset,
		               body->texts.len - offset };
	return 0;
}

/* Whether the string could be taken for a stand-in. */
static bool
looks_like_stand_in(struct span inside)
{
	return inside.len >= 6 && inside.data[0] == '\\' && inside.data[1] == 'u' &&
	       hex4(inside.data + 2) == STAND_IN;
}

static bool
is_key(const char *close, const char *end)
{
	const char *at = close + 1;

	while (at < end && (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n'))
		at++;
	return at < end && *at == ':';
}

/* Writes what is between the quotes: itself, or a stand-in. */
static int
write_inside(struct body *body, struct span inside, bool is_long, struct buffer *out)
{
	size_t offset = body->texts.len;
	int err;

	if (!is_long && !looks_like_stand_in(inside))
		return buffer_append(out, inside);
	if (!buffer_reserve(&body->texts, inside.len))
		return buffer_error(&body->texts);
	if (!decode(inside, &body->texts)) {
		buffer_truncate(&body->texts, offset);
		return buffer_append(out, inside);
	}
	err = keep(body, offset);
	if (err < 0)
		return err;
	return buffer_append_format(out, "\\u0001#%u", body->strings_count - 1);
}

/* Copies the text with stand-ins.  Quotes outside of strings are always the beginning of
 * one, so no grammar is needed. */
static int
take_out(struct body *body, struct span bytes, size_t long_string, struct buffer *out)
{
	const char *at = bytes.data, *end = bytes.data + bytes.len;

	while (at < end) {
		const char *quote = memchr(at, '"', (size_t)(end - at));
		const char *close = quote ? find_end(quote + 1, end) : NULL;
		struct span inside;
		int err;

		if (!close) /* no more strings, or one without an end: jansson's business
		             */
			return buffer_append(out,
			                     (struct span){ at, (size_t)(end - at) });
		(void)buffer_append(out, (struct span){ at, (size_t)(quote - at) + 1 });
		inside = (struct span){ quote + 1, (size_t)(close - quote - 1) };
		if (is_key(close, end))
			err = buffer_append(out, inside);
		else
			err = write_inside(body, inside, inside.len >= long_string, out);
		if (err < 0)
			return err;
		(void)buffer_append_byte(out, '"');
		at = close + 1;
	}
	return buffer_error(out);
}

int
body_load(struct body *body, struct span bytes, size_t long_string,
          struct body_error *reterr)
{
	struct buffer skeleton = BUFFER_INIT(BUFFER_SIZE_DEFAULT * 8);
	json_error_t error = { 0 };
	int err;

	*body = (struct body){ .texts = BUFFER_INIT(BUFFER_SIZE_DEFAULT * 4) };
	err = take_out(body, bytes, long_string, &skeleton);
	if (err == 0)
		err = buffer_error(&body->texts);
	if (err == 0) {
		body->root = json_loadb(buffer_text(&skeleton), skeleton.len, 0, &error);
		if (!body->root) {
			snprintf(reterr->text, sizeof reterr->text, "%s", error.text);
			err = ERR_MALFORMED;
		}
	}
	buffer_fini(&skeleton);
	if (err < 0) {
		body_fini(body);
		return err;
	}
	for (uint32_t i = 0; i < body->strings_count; i++)
		body->strings[i].data = buffer_text(&body->texts) +
		                        (size_t)(uintptr_t)body->strings[i].data;
	return 0;
}

void
body_fini(struct body *body)
{
	json_decref(body->root);
	free(body->strings);
	buffer_fini(&body->texts);
	*body = (struct body){ 0 };
}

/* --- asking ------------------------------------------------------------------------ */

struct span
body_text(const struct body *body, const json_t *string)
{
	struct span text = { json_string_value(string), json_string_length(string) };
	uint64_t index;

	if (text.len < 3 || text.data[0] != STAND_IN || text.data[1] != '#')
		return text;
	if (text_parse_unsigned((struct span){ text.data + 2, text.len - 2 }, UINT32_MAX,
	                        &index) < 0)
		return text;
	VERIFY(index < body->strings_count);
	return body->strings[index];
}

struct span
body_last_text(const struct body *body, const json_t *content)
{
	if (json_is_string(content))
		return body_text(body, content);
	for (size_t i = json_array_size(content); i-- > 0;) {
		const json_t *text = json_object_get(json_array_get(content, i), "text");

		if (json_is_string(text))
			return body_text(body, text);
	}
	return (struct span){ NULL, 0 };
}

static int
dump_scalar(const json_t *value, struct buffer *out)
{
	char text[64];
	size_t len = json_dumpb(value, text, sizeof text, JSON_ENCODE_ANY);

	VERIFY(len <= sizeof text); /* numbers and literals only */
	return buffer_append(out, (struct span){ text, len });
}

int
body_dump(const struct body *body, const json_t *value, const char *without,
          struct buffer *out)
{
	const char *name;
	json_t *member;
	bool first = true;
	int err = 0;

	if (json_is_string(value))
		return buffer_append_json(out, body_text(body, value));
	if (json_is_array(value)) {
		(void)buffer_append_byte(out, '[');
		for (size_t i = 0; i < json_array_size(value) && err == 0; i++) {
			if (i > 0)
				(void)buffer_append_byte(out, ',');
			err = body_dump(body, json_array_get(value, i), NULL, out);
		}
		return err < 0 ? err : buffer_append_byte(out, ']');
	}
	if (!json_is_object(value))
		return dump_scalar(value, out);
	(void)buffer_append_byte(out, '{');
	json_object_foreach((json_t *)(uintptr_t)value, name, member)
	{
		if (without && strcmp(name, without) == 0)
			continue;
		if (!first)
			(void)buffer_append_byte(out, ',');
		first = false;
		(void)buffer_append_json(out, span_from(name));
		(void)buffer_append_byte(out, ':');
		err = body_dump(body, member, NULL, out);
		if (err < 0)
			return err;
	}
	return buffer_append_byte(out, '}');
}

int
body_dump_into(const struct body *body, const json_t *value, const char *without,
               struct buffer *scratch, struct span *ret_text)
{
	int err;

	buffer_clear(scratch);
	err = body_dump(body, value, without, scratch);
	if (err < 0)
		return err;
	*ret_text = buffer_span(scratch);
	return 0;
}
