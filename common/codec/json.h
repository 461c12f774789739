/* json.h - a strict one-pass reader of JSON that leaves the bytes where they are.
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
 * surrogates, duplicate keys, depth.  Values deeper than the tape (JSON_TAPE_DEPTH) are
 * checked like all others but get no tokens; their container is marked JSON_SHALLOW.
 *
 * The canonical form drops white space between tokens and writes each string with the
 * fewest escapes (only ", \ and bytes below 0x20, which use \b \t \n \f \r or \u00xx in
 * lower case); lone surrogates stay as \udxxx.  Numbers and the order of keys stay as
 * they were sent.
 *
 * Bounds: text < 4 GiB, depth <= JSON_DEPTH_MAX, tokens <= JSON_TOKENS_MAX.  Beyond
 * them the answer is ERR_LIMIT, which says nothing about whether it is JSON. */
#ifndef COMMON_CODEC_JSON_H
#define COMMON_CODEC_JSON_H

#include "common/base.h"
#include "common/buffer.h"
#include "common/error.h"

#define JSON_DEPTH_MAX  1024
#define JSON_TAPE_DEPTH 8
#define JSON_TOKENS_MAX (1u << 20)
#define JSON_NONE       UINT32_MAX

enum json_type {
	JSON_NULL,
	JSON_FALSE,
	JSON_TRUE,
	JSON_NUMBER,
	JSON_STRING,
	JSON_ARRAY,
	JSON_OBJECT,
};

enum json_flag {
	JSON_ESCAPED = 1, /* a string with at least one backslash */
	JSON_SHALLOW = 2, /* a container whose children are below the tape */
};

struct json_token {
	uint32_t start; /* offset of the first byte; of a string: its quote */
	uint32_t end;   /* one past the last */
	uint32_t next;  /* index of the token behind this value */
	uint8_t type;   /* enum json_type */
	uint8_t flags;  /* enum json_flag */
};

struct json {
	struct span text;
	struct json_token *tokens; /* token 0 is the value itself */
	uint32_t count;
	uint32_t room;
	uint32_t depth;      /* deepest container seen; 0 for a bare scalar */
	bool lone_surrogate; /* some string has \ud800..\udfff without its partner */
};

struct json_error {
	size_t offset;    /* of the first byte that cannot be */
	const char *what; /* "expected a value", static text */
};

void json_init(struct json *json);
void json_fini(struct json *json); /* takes NULL */

/* Reads `text`, which must outlive the tokens.  May be called again; the memory is kept.
 * ERR_MALFORMED: not JSON, `reterr` says where.  ERR_LIMIT: over a bound above.
 * ERR_MEMORY. */
MUST_USE int json_parse(struct json *json, struct span text, struct json_error *reterr);

/* The bytes of a value as sent, a string with its quotes. */
static inline struct span
json_raw(const struct json *json, uint32_t at)
{
	const struct json_token *token = &json->tokens[at];

	return (struct span){ json->text.data + token->start, token->end - token->start };
}

static inline enum json_type
json_type(const struct json *json, uint32_t at)
{
	return (enum json_type)json->tokens[at].type;
}

/* True iff `at` is a token (not JSON_NONE) of that type. */
static inline bool
json_is(const struct json *json, uint32_t at, enum json_type type)
{
	return at != JSON_NONE && json->tokens[at].type == type;
}

/* The next value behind `at` in the same container (for an object: the next key, when
 * `at` is a value).  The caller compares with json_end of the container. */
static inline uint32_t
json_next(const struct json *json, uint32_t at)
{
	return json->tokens[at].next;
}

/* Index of the first child, and of the token behind the last one.
 *
 *   for (uint32_t i = json_first(j, array); i < json_end(j, array); i = json_next(j, i))
 *   for (uint32_t key = json_first(j, object); key < json_end(j, object);
 *        key = json_next(j, key + 1))       the value of `key` is key + 1 */
static inline uint32_t
json_first(const struct json *json, uint32_t at)
{
	(void)json;
	return at + 1;
}

static inline uint32_t
json_end(const struct json *json, uint32_t at)
{
	return json->tokens[at].next;
}

/* Children of an array, or members of an object. */
uint32_t json_count(const struct json *json, uint32_t container);

/* Value of the first member called `key`, or JSON_NONE; also if `object` is no object. */
uint32_t json_find(const struct json *json, uint32_t object, const char *key);

/* The same down a path: json_path(j, 0, "usage", "output_tokens", NULL). */
uint32_t json_path(const struct json *json, uint32_t object, ...)
	__attribute__((sentinel));

/* True iff `at` is a string with that content (escapes are looked through). */
bool json_string_is(const struct json *json, uint32_t at, const char *text);

/* Appends the content of a string, decoded.  ERR_MALFORMED if `at` is no string or has a
 * lone surrogate, else the buffer's own error. */
MUST_USE int json_string(const struct json *json, uint32_t at, struct buffer *out);

/* Reads an integer.  ERR_MALFORMED if it is no number, has a fraction or exponent, or
 * does not fit. */
MUST_USE int json_integer(const struct json *json, uint32_t at, int64_t *ret_value);

/* Index of a key that an earlier member of the same object has, or JSON_NONE. */
uint32_t json_duplicate(const struct json *json, uint32_t object);

/* Appends `value`, which must be valid JSON text, in canonical form. */
void json_canonical(struct span value, struct buffer *out);

/* The same for the inside of a string, without quotes. */
void json_canonical_text(struct span inside, struct buffer *out);

/* Appends the content of a JSON string's inside, decoded; a lone surrogate becomes
 * U+FFFD.  Answers whether there was none. */
bool json_decode_text(struct span inside, struct buffer *out);

#endif
