/* A named prefix and a body, both anything, and what differs between two jobs.
 *
 *   prefix, a byte 0x1e, body, a byte 0x1e, another body */
#include "common/codec/chain.h"
#include "common/codec/drift.h"
#include "common/codec/splice.h"
#include "tests/fuzz/fuzz.h"

/* The merged request is one JSON object with no key twice. */
static void
check_whole(const struct chain *chain, bool opaque)
{
	struct buffer all = BUFFER_INIT(BUFFER_SIZE_DEFAULT);
	struct tape_error where;
	struct part_own own;
	struct part_px px;
	struct tape tape;

	tape_init(&tape);
	for (unsigned i = 0; chain->split && i < chain->count; i++) {
		VERIFY(part_px_read(chain->node[i].value, &px) == 0);
		(void)buffer_append(&all, px.segment);
	}
	VERIFY(part_own_read(chain->own, &own) == 0);
	(void)buffer_append(&all, own.own);
	(void)buffer_append(&all, own.tail);
	VERIFY(tape_parse(&tape, buffer_span(&all), &where) == 0);
	VERIFY(opaque || tape_duplicate(&tape, 0) == TAPE_NONE);
	tape_fini(&tape);
	buffer_fini(&all);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span rest = fuzz_span(data, size);
	struct chain_input input = {
		.traits =
			dialect_traits(size & 1 ? DIALECT_ANTHROPIC : DIALECT_OPENAI_CHAT)
	};
	struct chain chain[2];
	struct chain_error error;
	struct drift drift;
	int err[2];

	input.prefix = fuzz_cut(&rest, '\x1e');
	for (int i = 0; i < 2; i++) {
		chain_init(&chain[i]);
		input.body = fuzz_cut(&rest, '\x1e');
		err[i] = chain_build(&chain[i], &input, &error);
		VERIFY(err[i] == 0 || err[i] == ERR_MALFORMED);
		VERIFY(err[i] == 0 || error.text[0] != '\0');
		if (err[i] == 0 && input.prefix.len > 0)
			check_whole(&chain[i], chain[i].opaque != CHAIN_SPLITTABLE);
	}
	if (err[0] == 0 && err[1] == 0) {
		drift_compare(&chain[0], &chain[1], &drift);
		VERIFY(drift.a_caret < DRIFT_SIDE_SIZE &&
		       drift.b_caret < DRIFT_SIDE_SIZE);
	}
	chain_fini(&chain[0]);
	chain_fini(&chain[1]);
	return 0;
}
