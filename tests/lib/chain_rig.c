#include "tests/lib/chain_rig.h"

#include <check.h>
#include <stdio.h>

struct chain_rig
chain_rig_build_as(enum dialect dialect, const char *body, const char *prefix,
                   struct chain_shared shared)
{
	struct chain_rig built;
	struct chain_input input = {
		.traits = dialect_traits(dialect),
		.seed = 7,
		.upstream = SPAN("claude"),
		.body = span_from(body),
		.prefix = span_from(prefix),
		.shared = shared,
	};

	chain_init(&built.chain);
	built.err = chain_build(&built.chain, &input, &built.error);
	return built;
}

struct chain_rig
chain_rig_build_auto(enum dialect dialect, const char *body, const char *prefix)
{
	return chain_rig_build_as(dialect, body, prefix,
	                          (struct chain_shared){ CHAIN_SHARED_AUTO, 0 });
}

static struct chain_rig
must_build(enum dialect dialect, const char *body, struct chain_shared shared)
{
	struct chain_rig built = chain_rig_build_as(dialect, body, NULL, shared);

	ck_assert_msg(built.err == 0, "%s", built.error.text);
	return built;
}

struct chain_rig
chain_rig_build(const char *body)
{
	return must_build(DIALECT_ANTHROPIC, body,
	                  (struct chain_shared){ CHAIN_SHARED_AUTO, 0 });
}

struct chain_rig
chain_rig_build_shared(const char *body, enum chain_shared_kind kind, uint32_t n)
{
	return must_build(DIALECT_ANTHROPIC, body, (struct chain_shared){ kind, n });
}

struct chain_rig
chain_rig_build_chat(const char *body)
{
	return must_build(DIALECT_OPENAI_CHAT, body,
	                  (struct chain_shared){ CHAIN_SHARED_AUTO, 0 });
}

const struct chain_node *
chain_rig_node(const struct chain_rig *built, enum tier tier)
{
	for (unsigned i = 0; i < built->chain.count; i++)
		if (built->chain.node[i].tier == tier)
			return &built->chain.node[i];
	return NULL;
}

struct part_own
chain_rig_own(const struct chain_rig *built)
{
	struct part_own own;

	ck_assert_msg(built->err == 0, "%s", built->error.text);
	ck_assert_int_eq(part_own_read(built->chain.own, &own), 0);
	return own;
}

bool
chain_rig_same_node(const struct chain_rig *a, const struct chain_rig *b, enum tier tier)
{
	const struct chain_node *left = chain_rig_node(a, tier),
				*right = chain_rig_node(b, tier);

	ck_assert_ptr_nonnull(left);
	ck_assert_ptr_nonnull(right);
	if (!id_equals(left->id, right->id))
		return false;
	ck_assert(span_equals(left->px.segment, right->px.segment));
	ck_assert(span_equals(left->value, right->value));
	return true;
}

bool
chain_rig_segment_is(const struct chain_rig *built, enum tier tier, const char *text)
{
	struct span segment = chain_rig_node(built, tier)->px.segment;

	if (span_equals(segment, span_from(text)))
		return true;
	fprintf(stderr, "segment: %.*s\n", (int)segment.len, segment.data);
	return false;
}

void
chain_rig_free_built(struct chain_rig *built)
{
	chain_fini(&built->chain);
}
