/* Any body, any declaration: what goes out is what came in, but for the listed edits;
 * the canonical spelling has the same nodes; a worker decides opaque as admission does.
 *
 *   byte 0  dialect, markers, wants      byte 1  kind of `shared`, n      then the body
 */
#include "common/codec/chain.h"
#include "common/codec/drift.h"
#include "common/codec/splice.h"
#include "tests/fuzz/fuzz.h"
#include "tests/lib/bodies.h"

#include <stdlib.h>

struct world {
	struct dialect_traits traits;
	struct chain_input input;
	struct chain chain;
	struct part_px px[PART_NODES_MAX];
	struct part_own own;
	struct buffer whole;
	unsigned want;
};

static void
choose(struct world *world, uint8_t first, uint8_t second)
{
	world->traits =
		*dialect_traits(first & 1 ? DIALECT_OPENAI_CHAT : DIALECT_ANTHROPIC);
	if ((first & 3) == 3) {
		world->traits.markers = MARKER_BREAKPOINT;
		world->traits.ttl = TTL_30M;
		world->traits.cache_mode = true;
	}
	if (first & 4)
		world->traits.ttl = TTL_1H;
	world->want = first >> 3 & 7;
	world->input.traits = &world->traits;
	world->input.shared.kind = (enum chain_shared_kind)((second & 7) % 6);
	world->input.shared.n = second >> 3;
}

/* jansson gives up on some JSON that is none of our business. */
static json_t *
load(struct span text)
{
	return json_loadb(text.data, text.len, JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL);
}

static void
check_equal(const json_t *a, const json_t *b)
{
	json_t *left = bodies_normal(a), *right = bodies_normal(b);

	VERIFY(json_equal(left, right));
	json_decref(left);
	json_decref(right);
}

static void
load_parts(struct world *world)
{
	struct chain again;

	if (world->chain.split) {
		for (unsigned i = 0; i < world->chain.count; i++)
			VERIFY(part_px_read(world->chain.node[i].value, &world->px[i]) ==
			       0);
		VERIFY(part_own_read(world->chain.own, &world->own) == 0);
		return;
	}
	chain_init(&again);
	VERIFY(chain_whole(&again, world->traits.dialect, world->input.body,
	                   &world->whole) == 0);
	VERIFY(part_own_read(buffer_span(&world->whole), &world->own) == 0);
	VERIFY(world->own.opaque == (world->chain.opaque != CHAIN_SPLITTABLE));
	chain_fini(&again);
}

static void
check_render(struct world *world)
{
	struct splice_request request = {
		.traits = &world->traits,
		.px = world->px,
		.px_count = world->chain.split ? world->chain.count : 0,
		.own = &world->own,
		.want = world->want,
	};
	struct buffer sent = BUFFER_INIT(BUFFER_SIZE_DEFAULT);
	struct splice_report report;
	json_t *original, *undone;

	VERIFY(splice_render(&request, &sent, &report) == 0);
	VERIFY(__builtin_popcount(report.plan.insert) <= 2);
	original = load(world->input.body);
	if (world->own.opaque) {
		VERIFY(span_equals(buffer_span(&sent), world->input.body));
	} else if (original) {
		undone = bodies_undo(buffer_span(&sent), &report, &world->traits);
		VERIFY(undone != NULL);
		check_equal(undone, original);
		json_decref(undone);
	}
	json_decref(original);
	buffer_fini(&sent);
}

static void
check_call(struct world *world)
{
	struct splice_request request = {
		.traits = &world->traits,
		.px = world->px,
		.px_count = world->chain.count,
		.want = world->want,
	};
	struct buffer sent = BUFFER_INIT(BUFFER_SIZE_DEFAULT);
	enum splice_refusal refusal;
	struct splice_report report;
	struct tape_error where;
	struct tape tape;

	if (!world->chain.split)
		return;
	world->traits.call = CALL_ZERO;
	VERIFY(splice_call(&request, &sent, &report, &refusal) == 0);
	VERIFY((sent.len > 0) == (refusal == SPLICE_CALL_OK));
	tape_init(&tape);
	if (sent.len > 0) {
		VERIFY(tape_parse(&tape, buffer_span(&sent), &where) == 0);
		VERIFY(tape_duplicate(&tape, 0) == TAPE_NONE);
		VERIFY(tape_find(&tape, 0, "max_tokens") != TAPE_NONE);
	}
	tape_fini(&tape);
	buffer_fini(&sent);
}

static void
check_canonical(struct world *world)
{
	struct buffer canonical = BUFFER_INIT(BUFFER_SIZE_DEFAULT);
	struct chain_input input = world->input;
	struct chain_error error;
	struct drift drift;
	struct chain again;

	chain_init(&again);
	tape_canonical(input.body, &canonical);
	input.body = buffer_span(&canonical);
	VERIFY(chain_build(&again, &input, &error) == 0);
	VERIFY(again.count == world->chain.count);
	VERIFY(again.opaque == world->chain.opaque);
	for (unsigned i = 0; i < again.count; i++) {
		VERIFY(id_equals(again.node[i].id, world->chain.node[i].id));
		VERIFY(span_equals(again.node[i].value, world->chain.node[i].value));
	}
	drift_compare(&world->chain, &again, &drift);
	VERIFY(drift.kind == DRIFT_NONE);
	chain_fini(&again);
	buffer_fini(&canonical);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct world world = { .want = 0 };
	struct chain_error error;
	int err;

	if (size < 2)
		return 0;
	choose(&world, data[0], data[1]);
	world.input.body = fuzz_span(data + 2, size - 2);
	chain_init(&world.chain);
	buffer_init(&world.whole, BUFFER_SIZE_DEFAULT);
	err = chain_build(&world.chain, &world.input, &error);
	VERIFY(err == 0 || err == ERR_MALFORMED);
	if (err < 0) {
		VERIFY(error.text[0] != '\0');
	} else {
		load_parts(&world);
		check_render(&world);
		check_call(&world);
		if (world.chain.opaque != CHAIN_TOO_DEEP &&
		    world.chain.opaque != CHAIN_TOO_LARGE)
			check_canonical(&world);
	}
	chain_fini(&world.chain);
	buffer_fini(&world.whole);
	return 0;
}
