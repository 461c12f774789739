#include "common/codec/chain_prefix.h"

#include <stdarg.h>
#include <stdio.h>

static int PRINTF(2, 3) refuse(struct chain_error *error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(error->text, sizeof error->text, format, arguments);
	va_end(arguments);
	return ERR_MALFORMED;
}

static int
refuse_key(struct chain_error *error, const struct tape *tape, uint32_t key,
           const char *before, const char *after)
{
	struct span raw = tape_raw(tape, key);

	return refuse(error, "%s `%.*s`%s", before, (int)MIN(raw.len - 2, 64),
	              raw.data + 1, after);
}

int
chain_prefix_read(enum dialect dialect, const struct tape *tape,
                  struct chain_prefix *ret_prefix, struct chain_error *reterr)
{
	struct chain_prefix prefix = { .deepest = TIER_TOOLS };
	uint32_t messages, twice;

	reterr->prefix_fault = true;
	if (!tape_is(tape, 0, TAPE_OBJECT))
		return refuse(reterr, "the prefix is not a JSON object");
	twice = tape_duplicate(tape, 0);
	if (twice != TAPE_NONE)
		return refuse_key(reterr, tape, twice, "the prefix has", " twice");
	if (tape->lone_surrogate)
		return refuse(reterr,
		              "a string of the prefix has half of a surrogate pair");
	messages = tape_find(tape, 0, "messages");
	if (messages != TAPE_NONE && !tape_is(tape, messages, TAPE_ARRAY))
		return refuse(reterr, "`messages` of the prefix is not an array");
	if (dialect == DIALECT_ANTHROPIC && tape_find(tape, 0, "system") != TAPE_NONE)
		prefix.deepest = TIER_SYSTEM;
	prefix.messages = tape_count(tape, messages);
	if (prefix.messages > 0)
		prefix.deepest = TIER_MESSAGES;
	reterr->prefix_fault = false;
	*ret_prefix = prefix;
	return 0;
}

static bool
is_messages(const struct tape *tape, uint32_t key)
{
	return tape_string_is(tape, key, "messages");
}

static void
put_members(const struct tape *tape, struct buffer *out)
{
	for (uint32_t key = tape_first(tape, 0); key < tape_end(tape, 0);
	     key = tape_next(tape, key + 1)) {
		if (is_messages(tape, key))
			continue;
		if (out->data[out->len - 1] != '{')
			(void)buffer_append_byte(out, ',');
		(void)buffer_append(out, tape_raw(tape, key));
		(void)buffer_append_byte(out, ':');
		(void)buffer_append(out, tape_raw(tape, key + 1));
	}
}

static void
put_elements(const struct tape *tape, uint32_t array, struct buffer *out)
{
	if (!tape_is(tape, array, TAPE_ARRAY) || tape_count(tape, array) == 0)
		return;
	if (out->data[out->len - 1] != '[')
		(void)buffer_append_byte(out, ',');
	(void)buffer_append(
		out, (struct span){ tape->text.data + tape->tokens[array].start + 1,
	                            tape_raw(tape, array).len - 2 });
}

/* The first key that both have, or TAPE_NONE; keys are canonical, so bytes decide. */
static uint32_t
shared_key(const struct tape *prefix, const struct tape *body)
{
	for (uint32_t key = tape_first(body, 0); key < tape_end(body, 0);
	     key = tape_next(body, key + 1)) {
		if (is_messages(body, key))
			continue;
		for (uint32_t other = tape_first(prefix, 0); other < tape_end(prefix, 0);
		     other = tape_next(prefix, other + 1))
			if (span_equals(tape_raw(body, key), tape_raw(prefix, other)))
				return key;
	}
	return TAPE_NONE;
}

int
chain_prefix_merge(const struct tape *prefix, const struct tape *body, struct buffer *out,
                   struct chain_error *reterr)
{
	uint32_t head = tape_find(prefix, 0, "messages");
	uint32_t rest, both, twice;

	if (!tape_is(body, 0, TAPE_OBJECT))
		return refuse(reterr, "with a prefix, the body must be a JSON object");
	twice = tape_duplicate(body, 0);
	if (twice != TAPE_NONE)
		return refuse_key(reterr, body, twice, "the body has",
		                  " twice, so it cannot be put behind a prefix");
	both = shared_key(prefix, body);
	if (both != TAPE_NONE)
		return refuse_key(reterr, body, both, "both the prefix and the body have",
		                  "");
	rest = tape_find(body, 0, "messages");
	if (rest != TAPE_NONE && !tape_is(body, rest, TAPE_ARRAY))
		return refuse(reterr,
		              "`messages` of the body is not an array, so it cannot be "
		              "put behind a prefix");

	(void)buffer_append_byte(out, '{');
	put_members(prefix, out);
	put_members(body, out);
	if (head != TAPE_NONE || rest != TAPE_NONE) {
		if (out->data[out->len - 1] != '{')
			(void)buffer_append_byte(out, ',');
		(void)buffer_append(out, SPAN("\"messages\":["));
		put_elements(prefix, head, out);
		put_elements(body, rest, out);
		(void)buffer_append_byte(out, ']');
	}
	(void)buffer_append_byte(out, '}');
	return buffer_error(out);
}
