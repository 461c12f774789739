/* The scanner and jansson accept and refuse the same bytes, and agree on their meaning:
 * the canonical form, read again, is equal as a JSON value and is its own canonical form.
 *
 * Known differences, taken out before comparing: jansson refuses lone surrogates, NUL in
 * keys, and numbers beyond a double; it takes a zero byte for the end of the text. */
#include "common/codec/tape.h"
#include "common/codec/tape_text.h"
#include "tests/fuzz/fuzz.h"

#include <jansson.h>
#include <stdlib.h>

#define FLAGS (JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL)

static bool
jansson_gives_up(const struct tape *tape, const json_error_t *error)
{
	switch (json_error_code(error)) {
	case json_error_null_byte_in_key:
	case json_error_numeric_overflow:
	case json_error_stack_overflow:
		return true;
	default:
		return tape->lone_surrogate;
	}
}

/* Every container's children lie inside it, in order, and end where it says. */
static void
check_tokens(const struct tape *tape)
{
	VERIFY(tape->tokens[0].next == tape->count);
	for (uint32_t i = 0; i < tape->count; i++) {
		const struct tape_token *token = &tape->tokens[i];
		uint32_t step = token->type == TAPE_OBJECT ? 1 : 0;

		VERIFY(token->start < token->end);
		VERIFY(token->end <= tape->text.len);
		if (token->type != TAPE_OBJECT && token->type != TAPE_ARRAY) {
			VERIFY(token->next == i + 1);
			continue;
		}
		for (uint32_t k = tape_first(tape, i); k < tape_end(tape, i);
		     k = tape_next(tape, k + step)) {
			VERIFY(tape->tokens[k].start > token->start);
			VERIFY(tape->tokens[k].end < token->end);
			VERIFY(step == 0 || tape_is(tape, k, TAPE_STRING));
		}
	}
}

static void
check_canonical(const struct tape *tape, const json_t *tree)
{
	struct buffer once = BUFFER_INIT(BUFFER_SIZE_DEFAULT);
	struct buffer twice = BUFFER_INIT(BUFFER_SIZE_DEFAULT);
	struct tape again;
	struct tape_error where;

	tape_canonical(tape->text, &once);
	tape_canonical(buffer_span(&once), &twice);
	VERIFY(buffer_error(&once) == 0);
	VERIFY(span_equals(buffer_span(&once), buffer_span(&twice)));
	VERIFY(once.len <= tape->text.len);
	VERIFY(memchr(once.data, '\n', once.len) == NULL);

	tape_init(&again);
	VERIFY(tape_parse(&again, buffer_span(&once), &where) == 0);
	VERIFY(again.count == tape->count);
	VERIFY(again.lone_surrogate == tape->lone_surrogate);
	if (tree) {
		json_t *copy = json_loadb(once.data, once.len, FLAGS, NULL);

		VERIFY(copy != NULL);
		VERIFY(json_equal(tree, copy));
		json_decref(copy);
	}
	tape_fini(&again);
	buffer_fini(&once);
	buffer_fini(&twice);
}

static void
check_keys(const struct tape *tape, const json_t *tree)
{
	if (!tape_is(tape, 0, TAPE_OBJECT) || !tree)
		return;
	VERIFY((tape_duplicate(tape, 0) == TAPE_NONE) ==
	       (tape_count(tape, 0) == json_object_size(tree)));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tape tape;
	struct tape_error where = { .what = NULL };
	json_error_t error;
	json_t *tree;
	int err;

	tape_init(&tape);
	err = tape_parse(&tape, fuzz_span(data, size), &where);
	tree = json_loadb((const char *)data, size, FLAGS, &error);
	if (err == 0) {
		VERIFY(tree || jansson_gives_up(&tape, &error));
		check_tokens(&tape);
		check_canonical(&tape, tree);
		check_keys(&tape, tree);
	} else {
		VERIFY(err == ERR_LIMIT || err == ERR_MALFORMED);
		VERIFY(err == ERR_LIMIT || !tree || memchr(data, 0, size));
		VERIFY(where.what != NULL);
		VERIFY(where.offset <= size);
	}
	json_decref(tree);
	tape_fini(&tape);
	return 0;
}
