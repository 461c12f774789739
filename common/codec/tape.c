#include "common/codec/tape.h"

#include <stdlib.h>

#define ONES  UINT64_C(0x0101010101010101)
#define HIGHS UINT64_C(0x8080808080808080)

struct reader {
	const char *base;
	const char *at;
	const char *end;
	struct tape *tape;
	struct tape_error *error;
	uint32_t depth;
	uint32_t open[TAPE_LISTED + 1]; /* token of the container at each taped depth */
	bool is_object[TAPE_DEPTH_MAX + 1];
};

static int
refuse(struct reader *reader, const char *at, const char *what)
{
	*reader->error = (struct tape_error){ .offset = (size_t)(at - reader->base),
		                              .what = what };
	return ERR_MALFORMED;
}

static int
overflow(struct reader *reader, const char *what)
{
	(void)refuse(reader, reader->at, what);
	return ERR_LIMIT;
}

static inline void
skip_blanks(struct reader *reader)
{
	while (reader->at < reader->end && (*reader->at == ' ' || *reader->at == '\n' ||
	                                    *reader->at == '\t' || *reader->at == '\r'))
		reader->at++;
}

static int
grow(struct tape *tape)
{
	uint32_t room = tape->room ? tape->room * 2 : 256;
	struct tape_token *tokens;

	tokens = realloc(tape->tokens, room * sizeof *tokens);
	if (!tokens)
		return ERR_MEMORY;
	tape->tokens = tokens;
	tape->room = room;
	return 0;
}

/* Values below the tape are only counted on their container. */
static int
add_token(struct reader *reader, enum tape_type type, const char *start, unsigned flags)
{
	struct tape *tape = reader->tape;
	int err;

	if (reader->depth > TAPE_LISTED) {
		tape->tokens[reader->open[TAPE_LISTED]].flags |= TAPE_SHALLOW;
		return 0;
	}
	if (tape->count == TAPE_TOKENS_MAX)
		return overflow(reader, "too many values");
	if (tape->count == tape->room) {
		err = grow(tape);
		if (err < 0)
			return err;
	}
	tape->tokens[tape->count] = (struct tape_token){
		.start = (uint32_t)(start - reader->base),
		.end = (uint32_t)(reader->at - reader->base),
		.next = tape->count + 1,
		.type = (uint8_t)type,
		.flags = (uint8_t)flags,
	};
	tape->count++;
	return 0;
}

/* Bytes of a run that needs no look: not a quote, backslash, control or non-ASCII. */
static inline const char *
skip_plain(const char *at, const char *end)
{
	while (end - at >= 8) {
		uint64_t word, quote, slash, stop;

		memcpy(&word, at, sizeof word);
		quote = word ^ (ONES * '"');
		slash = word ^ (ONES * '\\');
		stop = ((word - ONES * 0x20) | (quote - ONES) | (slash - ONES) | word) &
		       HIGHS;
		if (stop)
			break;
		at += 8;
	}
	while (at < end && (unsigned char)*at >= 0x20 && (unsigned char)*at < 0x80 &&
	       *at != '"' && *at != '\\')
		at++;
	return at;
}

/* Length of the UTF-8 sequence at `at`, or 0 (RFC 3629: no surrogates, no overlong). */
static size_t
sequence_length(const unsigned char *at, size_t left)
{
	unsigned char low = 0x80, high = 0xbf;
	size_t len;

	if (at[0] >= 0xc2 && at[0] <= 0xdf) {
		len = 2;
	} else if (at[0] >= 0xe0 && at[0] <= 0xef) {
		len = 3;
		low = at[0] == 0xe0 ? 0xa0 : 0x80;
		high = at[0] == 0xed ? 0x9f : 0xbf;
	} else if (at[0] >= 0xf0 && at[0] <= 0xf4) {
		len = 4;
		low = at[0] == 0xf0 ? 0x90 : 0x80;
		high = at[0] == 0xf4 ? 0x8f : 0xbf;
	} else {
		return 0;
	}
	if (left < len || at[1] < low || at[1] > high)
		return 0;
	for (size_t i = 2; i < len; i++)
		if (at[i] < 0x80 || at[i] > 0xbf)
			return 0;
	return len;
}

static int
hex_value(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	if (digit >= 'a' && digit <= 'f')
		return digit - 'a' + 10;
	if (digit >= 'A' && digit <= 'F')
		return digit - 'A' + 10;
	return -1;
}

/* The code unit of the four digits at `at`, or -1. */
static int32_t
code_unit(const char *at, const char *end)
{
	int32_t unit = 0;

	if (end - at < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		int value = hex_value(at[i]);

		if (value < 0)
			return -1;
		unit = unit * 16 + value;
	}
	return unit;
}

static bool
is_low_escape(const char *at, const char *end)
{
	int32_t unit;

	if (end - at < 6 || at[0] != '\\' || at[1] != 'u')
		return false;
	unit = code_unit(at + 2, end);
	return unit >= 0xdc00 && unit <= 0xdfff;
}

/* Stands behind the backslash. */
static int
read_escape(struct reader *reader)
{
	const char *start = reader->at - 1;
	int32_t unit;

	if (reader->at == reader->end)
		return refuse(reader, start, "unfinished string");
	switch (*reader->at++) {
	case '"':
	case '\\':
	case '/':
	case 'b':
	case 'f':
	case 'n':
	case 'r':
	case 't':
		return 0;
	case 'u':
		break;
	default:
		return refuse(reader, start, "unknown escape");
	}
	unit = code_unit(reader->at, reader->end);
	if (unit < 0)
		return refuse(reader, start, "\\u needs four hex digits");
	reader->at += 4;
	if (unit < 0xd800 || unit > 0xdfff)
		return 0;
	if (unit <= 0xdbff && is_low_escape(reader->at, reader->end))
		reader->at += 6;
	else
		reader->tape->lone_surrogate = true;
	return 0;
}

/* Stands on the opening quote. */
static int
read_string(struct reader *reader)
{
	const char *start = reader->at++;
	unsigned flags = 0;
	int err;

	for (;;) {
		size_t len;

		reader->at = skip_plain(reader->at, reader->end);
		if (reader->at == reader->end)
			return refuse(reader, start, "unfinished string");
		if (*reader->at == '"')
			break;
		if (*reader->at == '\\') {
			flags |= TAPE_ESCAPED;
			reader->at++;
			err = read_escape(reader);
			if (err < 0)
				return err;
			continue;
		}
		if ((unsigned char)*reader->at < 0x20)
			return refuse(reader, reader->at,
			              "raw control character in a string");
		len = sequence_length((const unsigned char *)reader->at,
		                      (size_t)(reader->end - reader->at));
		if (len == 0)
			return refuse(reader, reader->at, "not UTF-8");
		reader->at += len;
	}
	reader->at++;
	return add_token(reader, TAPE_STRING, start, flags);
}

static bool
skip_digits(struct reader *reader)
{
	const char *start = reader->at;

	while (reader->at < reader->end && *reader->at >= '0' && *reader->at <= '9')
		reader->at++;
	return reader->at > start;
}

static inline bool
take(struct reader *reader, char byte)
{
	if (reader->at == reader->end || *reader->at != byte)
		return false;
	reader->at++;
	return true;
}

static int
read_number(struct reader *reader)
{
	const char *start = reader->at;

	(void)take(reader, '-');
	if (!take(reader, '0') && !skip_digits(reader))
		return refuse(reader, start, "expected a number");
	if (take(reader, '.') && !skip_digits(reader))
		return refuse(reader, start, "a fraction needs digits");
	if (take(reader, 'e') || take(reader, 'E')) {
		if (!take(reader, '+'))
			(void)take(reader, '-');
		if (!skip_digits(reader))
			return refuse(reader, start, "an exponent needs digits");
	}
	return add_token(reader, TAPE_NUMBER, start, 0);
}

static int
read_word(struct reader *reader, struct span word, enum tape_type type)
{
	const char *start = reader->at;

	if ((size_t)(reader->end - start) < word.len ||
	    memcmp(start, word.data, word.len) != 0)
		return refuse(reader, start, "expected a value");
	reader->at += word.len;
	return add_token(reader, type, start, 0);
}

static int
open_container(struct reader *reader, bool is_object)
{
	uint32_t depth = reader->depth;
	int err;

	if (depth == TAPE_DEPTH_MAX)
		return overflow(reader, "nested too deep");
	reader->at++;
	err = add_token(reader, is_object ? TAPE_OBJECT : TAPE_ARRAY, reader->at - 1, 0);
	if (err < 0)
		return err;
	if (depth <= TAPE_LISTED)
		reader->open[depth] = reader->tape->count - 1;
	reader->is_object[depth] = is_object;
	reader->depth = depth + 1;
	if (reader->depth > reader->tape->depth)
		reader->tape->depth = reader->depth;
	return 0;
}

static void
close_container(struct reader *reader)
{
	reader->at++;
	reader->depth--;
	if (reader->depth <= TAPE_LISTED) {
		struct tape_token *token =
			&reader->tape->tokens[reader->open[reader->depth]];

		token->end = (uint32_t)(reader->at - reader->base);
		token->next = reader->tape->count;
	}
}

static inline bool
in_object(const struct reader *reader)
{
	return reader->is_object[reader->depth - 1];
}

/* Reads a scalar, or opens a container. */
static int
read_value(struct reader *reader)
{
	skip_blanks(reader);
	if (reader->at == reader->end)
		return refuse(reader, reader->at, "expected a value");
	switch (*reader->at) {
	case '{':
		return open_container(reader, true);
	case '[':
		return open_container(reader, false);
	case '"':
		return read_string(reader);
	case 't':
		return read_word(reader, SPAN("true"), TAPE_TRUE);
	case 'f':
		return read_word(reader, SPAN("false"), TAPE_FALSE);
	case 'n':
		return read_word(reader, SPAN("null"), TAPE_NULL);
	default:
		if (*reader->at != '-' && (*reader->at < '0' || *reader->at > '9'))
			return refuse(reader, reader->at, "expected a value");
		return read_number(reader);
	}
}

static int
read_key(struct reader *reader)
{
	int err;

	skip_blanks(reader);
	if (reader->at == reader->end || *reader->at != '"')
		return refuse(reader, reader->at, "expected a key in quotes");
	err = read_string(reader);
	if (err < 0)
		return err;
	skip_blanks(reader);
	if (!take(reader, ':'))
		return refuse(reader, reader->at, "expected ':' behind a key");
	return 0;
}

/* Closes every container that ends here.  Answers 1 if another value is due, else 0. */
static int
read_ends(struct reader *reader, bool fresh)
{
	for (;;) {
		char closer;

		if (reader->depth == 0)
			return 0;
		skip_blanks(reader);
		closer = in_object(reader) ? '}' : ']';
		if (reader->at < reader->end && *reader->at == closer) {
			close_container(reader);
			fresh = false;
			continue;
		}
		if (fresh)
			return 1; /* the first child of a container just opened */
		if (!take(reader, ','))
			return refuse(reader, reader->at,
			              closer == '}' ? "expected ',' or '}'"
			                            : "expected ',' or ']'");
		return 1;
	}
}

static int
read_document(struct reader *reader)
{
	for (;;) {
		uint32_t depth = reader->depth;
		int err;

		err = read_value(reader);
		if (err < 0)
			return err;
		err = read_ends(reader, reader->depth > depth);
		if (err <= 0)
			return err;
		if (in_object(reader)) {
			err = read_key(reader);
			if (err < 0)
				return err;
		}
	}
}

void
tape_init(struct tape *tape)
{
	*tape = (struct tape){ 0 };
}

void
tape_fini(struct tape *tape)
{
	if (!tape)
		return;
	free(tape->tokens);
	*tape = (struct tape){ 0 };
}

int
tape_parse(struct tape *tape, struct span text, struct tape_error *reterr)
{
	struct reader reader;
	int err;

	if (text.len == 0)
		text = (struct span){ "", 0 }; /* perhaps it has no address at all */
	/* Not an initialiser: it would clear the whole stack of depths each time. */
	reader.base = text.data;
	reader.at = text.data;
	reader.end = text.data + text.len;
	reader.tape = tape;
	reader.error = reterr;
	reader.depth = 0;

	tape->text = text;
	tape->count = 0;
	tape->depth = 0;
	tape->lone_surrogate = false;
	if (text.len >= UINT32_MAX)
		return overflow(&reader, "too large");

	err = read_document(&reader);
	if (err < 0)
		return err;
	skip_blanks(&reader);
	if (reader.at != reader.end)
		return refuse(&reader, reader.at, "more bytes behind the value");
	return 0;
}
