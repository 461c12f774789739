#include "common/codec/tape_text.h"

/* A cursor over the inside of a string: each step is one character as UTF-8. */
struct step {
	char bytes[4];
	size_t len;
	uint32_t code; /* 0xd800..0xdfff: half of a pair, `bytes` is its three-byte form,
	                  which occurs in no valid text */
	bool escaped;
};

static uint32_t
unit_at(const char *digits)
{
	uint32_t unit = 0;

	for (int i = 0; i < 4; i++) {
		char digit = digits[i];

		unit = unit << 4 | (uint32_t)(digit <= '9'   ? digit - '0'
		                              : digit <= 'F' ? digit - 'A' + 10
		                                             : digit - 'a' + 10);
	}
	return unit;
}

static size_t
encode(uint32_t code, char bytes[4])
{
	if (code < 0x80) {
		bytes[0] = (char)code;
		return 1;
	}
	if (code < 0x800) {
		bytes[0] = (char)(0xc0 | code >> 6);
		bytes[1] = (char)(0x80 | (code & 0x3f));
		return 2;
	}
	if (code < 0x10000) {
		bytes[0] = (char)(0xe0 | code >> 12);
		bytes[1] = (char)(0x80 | (code >> 6 & 0x3f));
		bytes[2] = (char)(0x80 | (code & 0x3f));
		return 3;
	}
	bytes[0] = (char)(0xf0 | code >> 18);
	bytes[1] = (char)(0x80 | (code >> 12 & 0x3f));
	bytes[2] = (char)(0x80 | (code >> 6 & 0x3f));
	bytes[3] = (char)(0x80 | (code & 0x3f));
	return 4;
}

static uint32_t
short_escape(char letter)
{
	switch (letter) {
	case 'b':
		return '\b';
	case 'f':
		return '\f';
	case 'n':
		return '\n';
	case 'r':
		return '\r';
	case 't':
		return '\t';
	default:
		return (unsigned char)letter; /* " \ / stand for themselves */
	}
}

/* Reads the escape at `at` (on the backslash).  Answers the bytes it takes. */
static size_t
read_escape(struct span text, size_t at, uint32_t *ret_code)
{
	uint32_t unit, low;

	if (text.data[at + 1] != 'u') {
		*ret_code = short_escape(text.data[at + 1]);
		return 2;
	}
	unit = unit_at(text.data + at + 2);
	*ret_code = unit;
	if (unit < 0xd800 || unit > 0xdbff || text.len - at < 12 ||
	    text.data[at + 6] != '\\' || text.data[at + 7] != 'u')
		return 6;
	low = unit_at(text.data + at + 8);
	if (low < 0xdc00 || low > 0xdfff)
		return 6;
	*ret_code = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
	return 12;
}

/* One character, or one byte of unescaped text.  Answers the bytes it takes. */
static size_t
read_step(struct span text, size_t at, struct step *ret_step)
{
	size_t used;

	if (text.data[at] != '\\') {
		ret_step->bytes[0] = text.data[at];
		ret_step->len = 1;
		ret_step->code = (unsigned char)text.data[at];
		ret_step->escaped = false;
		return 1;
	}
	used = read_escape(text, at, &ret_step->code);
	ret_step->len = encode(ret_step->code, ret_step->bytes);
	ret_step->escaped = true;
	return used;
}

static bool
is_half(const struct step *step)
{
	return step->escaped && step->code >= 0xd800 && step->code <= 0xdfff;
}

/* Offset of the first backslash at or behind `at`, or the end. */
static size_t
find_escape(struct span text, size_t at)
{
	const char *found = memchr(text.data + at, '\\', text.len - at);

	return found ? (size_t)(found - text.data) : text.len;
}

static size_t
put_hex(char *out, const char *prefix, uint32_t code)
{
	static const char digits[] = "0123456789abcdef";

	memcpy(out, prefix, 2);
	for (int i = 0; i < 4; i++)
		out[2 + i] = digits[code >> (12 - 4 * i) & 0xf];
	return 6;
}

/* The canonical spelling of one character that was escaped. */
static size_t
put_canonical(char *out, const struct step *step)
{
	static const char letters[32] = {
		['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'
	};

	if (is_half(step) || (step->code < 0x20 && !letters[step->code]))
		return put_hex(out, "\\u", step->code);
	if (step->code < 0x20 || step->code == '"' || step->code == '\\') {
		out[0] = '\\';
		out[1] = step->code < 0x20 ? letters[step->code] : (char)step->code;
		return 2;
	}
	memcpy(out, step->bytes, step->len);
	return step->len;
}

/* The decoded content, byte by byte. */
struct bytes {
	struct span text;
	size_t at;
	struct step step;
	size_t given; /* of step.bytes */
};

static int
next_byte(struct bytes *bytes)
{
	if (bytes->given == bytes->step.len) {
		if (bytes->at == bytes->text.len)
			return -1;
		bytes->at += read_step(bytes->text, bytes->at, &bytes->step);
		bytes->given = 0;
	}
	return (unsigned char)bytes->step.bytes[bytes->given++];
}

void
tape_text_canonical(struct span inside, struct buffer *out)
{
	char *start = buffer_reserve(out, inside.len);
	char *to = start;
	size_t at = 0;

	if (!start || inside.len == 0)
		return;
	while (at < inside.len) {
		size_t plain = find_escape(inside, at);
		struct step step;

		memcpy(to, inside.data + at, plain - at);
		to += plain - at;
		at = plain;
		if (at == inside.len)
			break;
		at += read_step(inside, at, &step);
		to += put_canonical(to, &step);
	}
	buffer_commit(out, (size_t)(to - start));
}

bool
tape_text_decode(struct span inside, struct buffer *out)
{
	bool whole = true;
	size_t at = 0;

	while (at < inside.len) {
		size_t plain = find_escape(inside, at);
		struct step step;

		(void)buffer_append(out, (struct span){ inside.data + at, plain - at });
		at = plain;
		if (at == inside.len)
			break;
		at += read_step(inside, at, &step);
		if (is_half(&step)) {
			whole = false;
			step.len = encode(0xfffd, step.bytes);
		}
		(void)buffer_append(out, (struct span){ step.bytes, step.len });
	}
	return whole;
}

bool
tape_text_equals(struct span inside, struct span plain)
{
	size_t at = 0, seen = 0;

	while (at < inside.len) {
		struct step step;

		at += read_step(inside, at, &step);
		if (plain.len - seen < step.len ||
		    memcmp(plain.data + seen, step.bytes, step.len) != 0)
			return false;
		seen += step.len;
	}
	return seen == plain.len;
}

int
tape_text_compare(struct span a, struct span b)
{
	struct bytes left = { .text = a }, right = { .text = b };

	for (;;) {
		int x = next_byte(&left), y = next_byte(&right);

		if (x != y)
			return x < y ? -1 : 1;
		if (x < 0)
			return 0;
	}
}

bool
tape_text_is_blank(struct span inside)
{
	size_t at = 0;

	while (at < inside.len) {
		struct step step;

		at += read_step(inside, at, &step);
		if (step.code != ' ' && step.code != '\t' && step.code != '\n' &&
		    step.code != '\r')
			return false;
	}
	return true;
}
