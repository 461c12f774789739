/* The part of text.h that shows untrusted bytes: UTF-8 in, harmless UTF-8 out. */
#include "common/text.h"

struct character {
	uint32_t code;
	size_t len; /* bytes; 0 = the first byte starts no valid character */
};

static const struct character invalid = { 0, 0 };

/* Decodes the character at the start of `text`, which is not empty. */
static struct character
decode(struct span text)
{
	static const uint32_t smallest[5] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *bytes = (const unsigned char *)text.data;
	struct character c;

	if (bytes[0] < 0x80)
		return (struct character){ bytes[0], 1 };
	if (bytes[0] >= 0xc2 && bytes[0] <= 0xdf)
		c = (struct character){ bytes[0] & 0x1f, 2 };
	else if (bytes[0] >= 0xe0 && bytes[0] <= 0xef)
		c = (struct character){ bytes[0] & 0x0f, 3 };
	else if (bytes[0] >= 0xf0 && bytes[0] <= 0xf4)
		c = (struct character){ bytes[0] & 0x07, 4 };
	else
		return invalid;

	if (text.len < c.len)
		return invalid;
	for (size_t i = 1; i < c.len; i++) {
		if ((bytes[i] & 0xc0) != 0x80)
			return invalid;
		c.code = c.code << 6 | (bytes[i] & 0x3f);
	}
	if (c.code < smallest[c.len] || c.code > 0x10ffff)
		return invalid;
	if (c.code >= 0xd800 && c.code <= 0xdfff)
		return invalid;
	return c;
}

size_t
text_character(struct span text, uint32_t *ret_code)
{
	struct character c = text.len > 0 ? decode(text) : invalid;

	if (c.len > 0)
		*ret_code = c.code;
	return c.len;
}

bool
text_is_utf8(struct span text)
{
	while (text.len > 0) {
		struct character c = decode(text);

		if (c.len == 0)
			return false;
		text = (struct span){ text.data + c.len, text.len - c.len };
	}
	return true;
}

/* Characters that change how a line looks instead of adding to it. */
static bool
is_harmful(uint32_t code)
{
	if (code < 0x20 || (code >= 0x7f && code <= 0x9f))
		return true; /* C0, DEL, C1 */
	if (code == '"' || code == '\\')
		return true;
	if (code == 0x061c || (code >= 0x200b && code <= 0x200f))
		return true; /* zero widths and direction marks */
	if (code >= 0x2028 && code <= 0x202e)
		return true; /* line separators, embeddings, overrides */
	return (code >= 0x2060 && code <= 0x206f) || code == 0xfeff;
}

/* Writes the escape of one byte into `out` (at least 4 bytes); answers its length. */
static size_t
escape_byte(unsigned char byte, char *out)
{
	static const char digits[] = "0123456789abcdef";
	char letter = byte == '\n' ? 'n' : byte == '\r' ? 'r' : byte == '\t' ? 't' : '\0';

	if (byte == '"' || byte == '\\')
		letter = (char)byte;
	out[0] = '\\';
	if (letter != '\0') {
		out[1] = letter;
		return 2;
	}
	out[1] = 'x';
	out[2] = digits[byte >> 4];
	out[3] = digits[byte & 15];
	return 4;
}

size_t
text_escape(struct span text, char *ret_text, size_t size)
{
	static const char dots[] = "...";
	size_t len = 0,
	       fits = 0; /* fits: the last length after which the dots still fit */

	VERIFY(size >= 8);
	while (text.len > 0) {
		struct character c = decode(text);
		size_t consumed = c.len > 0 ? c.len : 1;
		char piece[16];
		size_t piece_len = 0;

		if (c.len > 0 && !is_harmful(c.code)) {
			memcpy(piece, text.data, c.len);
			piece_len = c.len;
		} else {
			for (size_t i = 0; i < consumed; i++)
				piece_len += escape_byte((unsigned char)text.data[i],
				                         piece + piece_len);
		}
		if (len + piece_len >= size) {
			memcpy(ret_text + fits, dots, sizeof dots);
			return fits + sizeof dots - 1;
		}
		memcpy(ret_text + len, piece, piece_len);
		len += piece_len;
		if (len + sizeof dots <= size)
			fits = len;
		text = (struct span){ text.data + consumed, text.len - consumed };
	}
	ret_text[len] = '\0';
	return len;
}
