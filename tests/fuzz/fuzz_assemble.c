/* However a stream is cut, the result is the same; an object that was assembled is JSON.
 *
 *   byte 0: dialect and options      byte 1: how it is cut      then the stream */
#include "common/codec/assemble.h"
#include "common/codec/tape.h"
#include "tests/fuzz/fuzz.h"

static struct assemble *
play(const struct assemble_options *options, struct span stream, size_t step,
     struct assemble_result *ret_result, int *ret_err)
{
	struct assemble *assemble = assemble_create(options);
	int err = 0;

	VERIFY(assemble != NULL);
	for (size_t at = 0; at < stream.len && err == 0; at += step)
		err = assemble_feed(
			assemble,
			(struct span){ stream.data + at, MIN(step, stream.len - at) });
	if (err == 0)
		err = assemble_finish(assemble, ret_result);
	*ret_err = err;
	return assemble;
}

static void
check_same(const struct assemble *a, const struct assemble_result *left,
           const struct assemble *b, const struct assemble_result *right)
{
	const struct usage *x = assemble_usage(a), *y = assemble_usage(b);

	VERIFY(left->format == right->format);
	VERIFY(left->complete == right->complete);
	VERIFY(left->why_sse == right->why_sse);
	VERIFY(span_equals(left->body, right->body));
	VERIFY(span_equals(left->error, right->error));
	VERIFY(assemble_began(a) == assemble_began(b));
	VERIFY(x->read == y->read && x->written == y->written && x->output == y->output);
	VERIFY(x->uncached == y->uncached && x->input == y->input && x->seen == y->seen);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct assemble_options options = { .sse = true };
	struct assemble_result whole = { .format = ASSEMBLE_SSE }, cut = whole;
	struct assemble *a, *b;
	struct tape_error where;
	struct tape tape;
	int err_a, err_b;

	if (size < 2)
		return 0;
	options.dialect = data[0] & 1 ? DIALECT_OPENAI_CHAT : DIALECT_ANTHROPIC;
	options.keep_sse = (data[0] & 2) != 0;
	options.hide_usage = (data[0] & 4) != 0;
	options.sse = (data[0] & 8) == 0;
	a = play(&options, fuzz_span(data + 2, size - 2), size, &whole, &err_a);
	b = play(&options, fuzz_span(data + 2, size - 2), 1 + data[1] % 17, &cut, &err_b);
	VERIFY(err_a == err_b);
	if (err_a == 0) {
		check_same(a, &whole, b, &cut);
		if (whole.format == ASSEMBLE_JSON) {
			tape_init(&tape);
			VERIFY(tape_parse(&tape, whole.body, &where) == 0);
			tape_fini(&tape);
		}
	}
	(void)assemble_destroy(a);
	(void)assemble_destroy(b);
	return 0;
}
