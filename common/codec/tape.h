/* tape.h - a strict one-pass reader of JSON that leaves the bytes where they are.
 *
 *   {"a":[1,"x"],"b":{}}          text: borrowed, never changed
 *   0 { } ─────────────── next 7  tokens: one per value and per key, in order of
 *   1   "a"                       their first byte; `next` jumps over a value and
 *   2   [ ] ────────── next 5     all that is in it
 *   3     1
 *   4     "x"
 *   5   "b"
 *   6   { } ────────── next 7
 *
 * RFC 8259 to the letter: UTF-8 is checked, one value only, no trailing bytes.  What the
 * grammar allows but an identity cannot be built on is reported, not refused: lone
 * surrogates, duplicate keys, depth.  Values deeper than the tape (TAPE_LISTED) are
 * checked like all others but get no tokens; their container is marked TAPE_SHALLOW.
 *
 * The canonical form drops white space between tokens and writes each string with the
 * fewest escapes (only ", \ and bytes below 0x20, which use \b \t \n \f \r or \u00xx in
 * lower case); lone surrogates stay as \udxxx.  Numbers and the order of keys stay as
 * they were sent.
 *
 * Bounds: text < 4 GiB, depth <= TAPE_DEPTH_MAX, tokens <= TAPE_TOKENS_MAX.  Beyond
 * them the answer is ERR_LIMIT, which says nothing about whether it is JSON. */
#ifndef COMMON_CODEC_TAPE_H
#define COMMON_CODEC_TAPE_H

#include "common/base.h"
#include "common/buffer.h"
#include "common/error.h"

#define TAPE_DEPTH_MAX  1024
#define TAPE_LISTED     8
#define TAPE_TOKENS_MAX (1u << 20)
#define TAPE_NONE       UINT32_MAX

enum tape_type {
	TAPE_NULL,
	TAPE_FALSE,
	TAPE_TRUE,
	TAPE_NUMBER,
	TAPE_STRING,
	TAPE_ARRAY,
	TAPE_OBJECT,
};

enum tape_flag {
	TAPE_ESCAPED = 1, /* a string with at least one backslash */
	TAPE_SHALLOW = 2, /* a container whose children are below the tape */
};

struct tape_token {
	uint32_t start; /* offset of the first byte; of a string: its quote */
	uint32_t end;   /* one past the last */
	uint32_t next;  /* index of the token behind this value */
	uint8_t type;   /* enum tape_type */
	uint8_t flags;  /* enum tape_flag */
};

struct tape {
	struct span text;
	struct tape_token *tokens; /* token 0 is the value itself */
	uint32_t count;
	uint32_t room;
	uint32_t depth;      /* deepest container seen; 0 for a bare scalar */
	bool lone_surrogate; /* some string has \ud800..\udfff without its partner */
};

struct tape_error {
	size_t offset;    /* of the first byte that cannot be */
	const char *what; /* "expected a value", static text */
};

void tape_init(struct tape *tape);
void tape_fini(struct tape *tape); /* takes NULL */

/* Reads `text`, which must outlive the tokens.  May be called again; the memory is kept.
 * ERR_MALFORMED: not JSON, `reterr` says where.  ERR_LIMIT: over a bound above.
 * ERR_MEMORY. */
MUST_USE int tape_parse(struct tape *tape, struct span text, struct tape_error *reterr);

/* The bytes of a value as sent, a string with its quotes. */
static inline struct span
tape_raw(const struct tape *tape, uint32_t at)
{
	const struct tape_token *token = &tape->tokens[at];

	return (struct span){ tape->text.data + token->start, token->end - token->start };
}

/* The same without its first and last byte: the text of a string, still escaped, or what
 * stands in a list or object. */
static inline struct span
tape_inside(const struct tape *tape, uint32_t at)
{
	struct span raw = tape_raw(tape, at);

	return (struct span){ raw.data + 1, raw.len - 2 };
}

static inline enum tape_type
tape_type(const struct tape *tape, uint32_t at)
{
	return (enum tape_type)tape->tokens[at].type;
}

/* True iff `at` is a token (not TAPE_NONE) of that type. */
static inline bool
tape_is(const struct tape *tape, uint32_t at, enum tape_type type)
{
	return at != TAPE_NONE && tape->tokens[at].type == type;
}

/* The next value behind `at` in the same container (for an object: the next key, when
 * `at` is a value).  The caller compares with tape_end of the container. */
static inline uint32_t
tape_next(const struct tape *tape, uint32_t at)
{
	return tape->tokens[at].next;
}

/* Index of the first child, and of the token behind the last one.
 *
 *   for (uint32_t i = tape_first(j, array); i < tape_end(j, array); i = tape_next(j, i))
 *   for (uint32_t key = tape_first(j, object); key < tape_end(j, object);
 *        key = tape_next(j, key + 1))       the value of `key` is key + 1 */
static inline uint32_t
tape_first(const struct tape *tape, uint32_t at)
{
	(void)tape;
	return at + 1;
}

static inline uint32_t
tape_end(const struct tape *tape, uint32_t at)
{
	return tape->tokens[at].next;
}

/* Children of an array, or members of an object. */
uint32_t tape_count(const struct tape *tape, uint32_t container);

/* Value of the first member called `key`, or TAPE_NONE; also if `object` is no object. */
uint32_t tape_find(const struct tape *tape, uint32_t object, const char *key);
uint32_t tape_find_span(const struct tape *tape, uint32_t object, struct span key);

/* The same down a path: tape_path(j, 0, "usage", "output_tokens", NULL). */
uint32_t tape_path(const struct tape *tape, uint32_t object, ...)
	__attribute__((sentinel));

/* True iff `at` is a string with that content (escapes are looked through). */
bool tape_string_is(const struct tape *tape, uint32_t at, const char *text);

/* Appends the content of a string, decoded.  ERR_MALFORMED if `at` is no string or has a
 * lone surrogate, else the buffer's own error. */
MUST_USE int tape_string(const struct tape *tape, uint32_t at, struct buffer *out);

/* Reads an integer.  ERR_MALFORMED if it is no number, has a fraction or exponent, or
 * does not fit. */
MUST_USE int tape_integer(const struct tape *tape, uint32_t at, int64_t *ret_value);

/* Index of a key that an earlier member of the same object has, or TAPE_NONE. */
uint32_t tape_duplicate(const struct tape *tape, uint32_t object);

/* Appends `value`, which must be valid JSON text, in canonical form. */
void tape_canonical(struct span value, struct buffer *out);

#endif
