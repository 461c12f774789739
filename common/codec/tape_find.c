#include "common/codec/tape.h"
#include "common/codec/tape_text.h"

#include <stdarg.h>
#include <stdlib.h>

/* Up to so many keys of an object are compared pair by pair, more of them sorted. */
#define PAIRWISE_MAX 24

static bool
content_is(const struct tape *tape, uint32_t at, struct span plain)
{
	if (!(tape->tokens[at].flags & TAPE_ESCAPED))
		return span_equals(tape_inside(tape, at), plain);
	return tape_text_equals(tape_inside(tape, at), plain);
}

uint32_t
tape_count(const struct tape *tape, uint32_t container)
{
	uint32_t step = tape_is(tape, container, TAPE_OBJECT) ? 1 : 0;
	uint32_t count = 0;

	if (!tape_is(tape, container, TAPE_OBJECT) &&
	    !tape_is(tape, container, TAPE_ARRAY))
		return 0;
	for (uint32_t i = tape_first(tape, container); i < tape_end(tape, container);
	     i = tape_next(tape, i + step))
		count++;
	return count;
}

uint32_t
tape_find_span(const struct tape *tape, uint32_t object, struct span key)
{
	if (!tape_is(tape, object, TAPE_OBJECT))
		return TAPE_NONE;
	for (uint32_t i = tape_first(tape, object); i < tape_end(tape, object);
	     i = tape_next(tape, i + 1))
		if (content_is(tape, i, key))
			return i + 1;
	return TAPE_NONE;
}

uint32_t
tape_find(const struct tape *tape, uint32_t object, const char *key)
{
	return tape_find_span(tape, object, span_from(key));
}

uint32_t
tape_path(const struct tape *tape, uint32_t object, ...)
{
	va_list keys;
	const char *key;

	va_start(keys, object);
	while ((key = va_arg(keys, const char *)) != NULL && object != TAPE_NONE)
		object = tape_find_span(tape, object, span_from(key));
	va_end(keys);
	return object;
}

bool
tape_string_is(const struct tape *tape, uint32_t at, const char *text)
{
	return tape_is(tape, at, TAPE_STRING) && content_is(tape, at, span_from(text));
}

int
tape_string(const struct tape *tape, uint32_t at, struct buffer *out)
{
	if (!tape_is(tape, at, TAPE_STRING) ||
	    !tape_text_decode(tape_inside(tape, at), out))
		return ERR_MALFORMED;
	return buffer_error(out);
}

int
tape_integer(const struct tape *tape, uint32_t at, int64_t *ret_value)
{
	struct span raw;
	uint64_t value = 0, limit;
	size_t i = 0;

	if (!tape_is(tape, at, TAPE_NUMBER))
		return ERR_MALFORMED;
	raw = tape_raw(tape, at);
	if (raw.data[0] == '-')
		i++;
	limit = i ? (uint64_t)INT64_MAX + 1 : (uint64_t)INT64_MAX;
	for (; i < raw.len; i++) {
		unsigned digit = (unsigned)(raw.data[i] - '0');

		if (digit > 9 || value > (limit - digit) / 10)
			return ERR_MALFORMED;
		value = value * 10 + digit;
	}
	*ret_value = raw.data[0] == '-' ? (int64_t)(0 - value) : (int64_t)value;
	return 0;
}

static int
compare_keys(const void *a, const void *b, void *context)
{
	const struct tape *tape = context;
	const uint32_t *left = a, *right = b;
	int order =
		tape_text_compare(tape_inside(tape, *left), tape_inside(tape, *right));

	return order ? order : (*left > *right) - (*left < *right);
}

static uint32_t
duplicate_pairwise(const struct tape *tape, uint32_t object)
{
	for (uint32_t i = tape_first(tape, object); i < tape_end(tape, object);
	     i = tape_next(tape, i + 1))
		for (uint32_t k = tape_first(tape, object); k < i;
		     k = tape_next(tape, k + 1))
			if (tape_text_compare(tape_inside(tape, i),
			                      tape_inside(tape, k)) == 0)
				return i;
	return TAPE_NONE;
}

uint32_t
tape_duplicate(const struct tape *tape, uint32_t object)
{
	uint32_t count = tape_count(tape, object);
	uint32_t found = TAPE_NONE, n = 0;
	uint32_t *keys;

	if (!tape_is(tape, object, TAPE_OBJECT))
		return TAPE_NONE;
	if (count <= PAIRWISE_MAX)
		return duplicate_pairwise(tape, object);
	keys = malloc(count * sizeof *keys);
	if (!keys)
		return tape_first(tape, object); /* on the safe side: not usable */
	for (uint32_t i = tape_first(tape, object); i < tape_end(tape, object);
	     i = tape_next(tape, i + 1))
		keys[n++] = i;
	qsort_r(keys, count, sizeof *keys, compare_keys, (void *)(uintptr_t)tape);
	for (n = 1; n < count && found == TAPE_NONE; n++)
		if (tape_text_compare(tape_inside(tape, keys[n - 1]),
		                      tape_inside(tape, keys[n])) == 0)
			found = keys[n];
	free(keys);
	return found;
}
