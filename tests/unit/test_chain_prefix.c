#include "common/codec/splice.h"
#include "tests/lib/chain_rig.h"
#include "tests/lib/suite.h"

#include <stdio.h>

START_TEST(chain_a_named_prefix_is_a_declared_part)
{
	static const char prefix[] =
		"{\"model\":\"m\",\"system\":\"" PROSE
		"\",\"messages\":[" USER("doc", "") "," SAYS("read") "]}";
	struct chain_rig a = chain_rig_build_auto(
		DIALECT_ANTHROPIC, "{\"messages\":[" USER("q1", "") "],\"max_tokens\":1}",
		prefix);
	struct chain_rig b = chain_rig_build_auto(
		DIALECT_ANTHROPIC, "{\"messages\":[" USER("q2", "") "]}", prefix);
	struct chain_rig inlined = chain_rig_build_shared(
		"{\"model\":\"m\",\"system\":\"" PROSE
		"\",\"messages\":[" USER("doc", "") "," SAYS("read") "," USER(
			"q1", "") "],\"max_tokens\":1}",
		CHAIN_SHARED_MESSAGES, 2);

	ck_assert_int_eq(a.err, 0);
	ck_assert_uint_eq(a.chain.count, 3);
	ck_assert(a.chain.node[2].declared);
	ck_assert(chain_rig_same_node(&a, &b, TIER_MESSAGES));
	/* a prefix by name and the same text inline are one family */
	ck_assert(chain_rig_same_node(&a, &inlined, TIER_MESSAGES));
	ck_assert(span_equals(a.chain.own, inlined.chain.own));
	chain_rig_free_built(&a);
	chain_rig_free_built(&b);
	chain_rig_free_built(&inlined);
}
END_TEST

START_TEST(chain_a_prefix_reaches_as_far_as_its_deepest_part)
{
	struct chain_rig tools = chain_rig_build_auto(
		DIALECT_ANTHROPIC, "{\"system\":\"x\",\"messages\":[]}",
		"{\"tools\":[{\"name\":\"" PROSE "\"}]}");
	struct chain_rig system = chain_rig_build_auto(
		DIALECT_ANTHROPIC, "{\"messages\":[" USER("q", "") "]}",
		"{\"system\":\"" PROSE "\"}");
	struct chain_rig chat = chain_rig_build_auto(
		DIALECT_OPENAI_CHAT,
		"{\"messages\":[{\"role\":\"developer\",\"content\":\"mine\"},"
		"{\"role\":\"user\",\"content\":\"q\"}]}",
		"{\"messages\":[{\"role\":\"system\",\"content\":\"" PROSE "\"}]}");

	ck_assert_int_eq(tools.err, 0);
	ck_assert_uint_eq(tools.chain.count, 2);
	ck_assert(tools.chain.node[0].declared);
	ck_assert(!tools.chain.node[1].declared);
	ck_assert_uint_eq(system.chain.count, 2);
	ck_assert(system.chain.node[1].declared);
	/* the job's own developer message is not part of the shared system */
	ck_assert_int_eq(chat.err, 0);
	ck_assert_uint_eq(chat.chain.count, 2);
	ck_assert(chat.chain.node[1].declared);
	ck_assert(chain_rig_segment_is(
		&chat, TIER_SYSTEM,
		"\"messages\":[{\"role\":\"system\",\"content\":\"" PROSE "\""));
	chain_rig_free_built(&tools);
	chain_rig_free_built(&system);
	chain_rig_free_built(&chat);
}
END_TEST

START_TEST(chain_a_prefix_that_contradicts_the_body_is_refused_with_the_name)
{
	static const struct {
		const char *prefix;
		const char *body;
		const char *text;
		bool fault;
	} cases[] = {
		{ "{\"system\":\"a\"}", "{\"system\":\"b\"}",
		  "both the prefix and the body have `system`", false },
		{ "{\"tools\":[]}", "{\"tools\":[]}",
		  "both the prefix and the body have `tools`", false },
		{ "{\"model\":\"m\"}", "{\"\\u006dodel\":\"m\"}",
		  "both the prefix and the body have `model`", false },
		{ "{}", "[]", "with a prefix, the body must be a JSON object", false },
		{ "{}", "{\"a\":1,\"a\":2}",
		  "the body has `a` twice, so it cannot be put behind a prefix", false },
		{ "{}", "{\"a\":", "the body is not JSON: expected a value at byte 5",
		  false },
		{ "[1]", "{}", "the prefix is not a JSON object", true },
		{ "{\"a\":1,\"a\":1}", "{}", "the prefix has `a` twice", true },
		{ "{\"messages\":{}}", "{}", "`messages` of the prefix is not an array",
		  true },
		{ "{", "{}", "the prefix is not JSON: expected a key in quotes at byte 1",
		  true },
		{ "{\"s\":\"\\ud800\"}", "{}",
		  "a string of the prefix has half of a surrogate pair", true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct chain_rig built = chain_rig_build_auto(
			DIALECT_ANTHROPIC, cases[i].body, cases[i].prefix);

		ck_assert_int_eq(built.err, ERR_MALFORMED);
		ck_assert_str_eq(built.error.text, cases[i].text);
		ck_assert(built.error.prefix_fault == cases[i].fault);
		chain_rig_free_built(&built);
	}
}
END_TEST

START_TEST(chain_values_that_look_like_keys_are_no_contradiction)
{
	struct chain_rig built = chain_rig_build_auto(
		DIALECT_ANTHROPIC,
		"{\"metadata\":\"system\",\"stop_sequences\":\"model\"}",
		"{\"model\":\"metadata\",\"system\":\"stop_sequences\"}");

	ck_assert_msg(built.err == 0, "%s", built.error.text);
	chain_rig_free_built(&built);
}
END_TEST

START_TEST(chain_adjacent_user_turns_are_not_merged)
{
	struct chain_rig built = chain_rig_build_auto(
		DIALECT_ANTHROPIC, "{\"messages\":[" USER("q", "") "]}",
		"{\"messages\":[{\"role\":\"user\",\"content\":\"" PROSE "\"}]}");
	struct part_own own = chain_rig_own(&built);

	ck_assert_int_eq(built.err, 0);
	ck_assert(span_equals(own.own, SPAN("}," USER("q", "") "]")));
	chain_rig_free_built(&built);
}
END_TEST

START_TEST(chain_what_cannot_be_split_runs_opaque_with_its_reason)
{
	static const struct {
		const char *body;
		enum chain_opaque opaque;
		const char *why;
	} cases[] = {
		{ "[]", CHAIN_NOT_OBJECT, "the body is not a JSON object" },
		{ "{\"a\":1,\"a\":2}", CHAIN_DUPLICATE_KEY, "a key occurs twice: \"a\"" },
		{ "{\"messages\":[{\"role\":\"user\",\"role\":\"x\"}]}",
		  CHAIN_DUPLICATE_KEY, "a key occurs twice: \"role\"" },
		{ "{\"system\":\"\\ud83d\"}", CHAIN_LONE_SURROGATE,
		  "a string contains half of a surrogate pair" },
		{ "{\"previous_response_id\":\"r\"}", CHAIN_SERVER_HELD,
		  "the conversation is kept by the provider, not in the body: "
		  "\"previous_response_id\"" },
		{ "{\"tools\":{}}", CHAIN_SHAPE,
		  "tools, system or messages do not have the expected form: {}" },
		{ "{\"system\":7}", CHAIN_SHAPE,
		  "tools, system or messages do not have the expected form: 7" },
		{ "{\"messages\":[1]}", CHAIN_SHAPE,
		  "tools, system or messages do not have the expected form: 1" },
		{ "{\"id_slot\":1}", CHAIN_SKIPS_CACHE,
		  "a setting makes the provider skip or pin its cache: \"id_slot\"" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct chain_rig built = chain_rig_build(cases[i].body);
		struct buffer out = BUFFER_INIT(4096);
		struct part_own own;

		ck_assert_uint_eq(built.chain.opaque, cases[i].opaque);
		ck_assert_str_eq(built.chain.why, cases[i].why);
		ck_assert_uint_eq(built.chain.count, 0);
		ck_assert(!built.chain.split);
		ck_assert_uint_eq(built.chain.own.len, 0);
		/* and a worker that gets the body makes the same of it */
		ck_assert_int_eq(chain_whole(&built.chain, DIALECT_ANTHROPIC,
		                             span_from(cases[i].body), &out),
		                 0);
		ck_assert_int_eq(part_own_read(buffer_span(&out), &own), 0);
		ck_assert(own.opaque);
		ck_assert(span_equals(own.tail, span_from(cases[i].body)));
		buffer_fini(&out);
		chain_rig_free_built(&built);
	}
}
END_TEST

START_TEST(chain_only_what_is_not_json_is_malformed)
{
	struct chain_rig built =
		chain_rig_build_auto(DIALECT_ANTHROPIC, "{\"a\":1", NULL);

	ck_assert_int_eq(built.err, ERR_MALFORMED);
	ck_assert_str_eq(built.error.text,
	                 "the body is not JSON: expected ',' or '}' at byte 6");
	chain_rig_free_built(&built);
}
END_TEST

START_TEST(chain_an_opaque_body_behind_a_prefix_is_still_one_request)
{
	struct chain_rig built = chain_rig_build_auto(
		DIALECT_ANTHROPIC,
		"{\"messages\":[{\"role\":\"user\",\"content\":\"\\ud83d\"}]}",
		"{\"system\":\"s\",\"messages\":[" USER("a", "") "]}");
	struct part_own own = chain_rig_own(&built);

	ck_assert_int_eq(built.err, 0);
	ck_assert_uint_eq(built.chain.opaque, CHAIN_LONE_SURROGATE);
	ck_assert(own.opaque);
	ck_assert(span_equals(
		own.tail,
		SPAN("{\"system\":\"s\",\"messages\":[" USER(
			"a", "") ",{\"role\":\"user\",\"content\":\"\\ud83d\"}]}")));
	chain_rig_free_built(&built);
}
END_TEST

START_TEST(chain_too_deep_is_opaque_not_dead)
{
	static char body[4096];
	size_t len = 0;
	struct chain_rig built;

	len += (size_t)snprintf(body, sizeof body, "{\"tools\":");
	memset(body + len, '[', 1500);
	len += 1500;
	memset(body + len, ']', 1500);
	len += 1500;
	body[len++] = '}';
	body[len] = '\0';
	built = chain_rig_build(body);
	ck_assert_uint_eq(built.chain.opaque, CHAIN_TOO_DEEP);
	chain_rig_free_built(&built);
}
END_TEST

START_TEST(chain_small_shared_parts_are_not_split)
{
	struct chain_rig built = chain_rig_build(
		"{\"system\":\"short\",\"messages\":[" USER("q", "") "]}");

	ck_assert_uint_eq(built.chain.count, 2);
	ck_assert(!built.chain.split);
	ck_assert_uint_eq(built.chain.own.len, 0);
	ck_assert_uint_eq(built.chain.node[1].value.len, 0);
	ck_assert(!id_is_none(built.chain.node[1].id));
	chain_rig_free_built(&built);
}
END_TEST

START_TEST(chain_splits_from_exactly_one_kilobyte_on)
{
	static const char head[] = ",\"system\":\"";

	for (size_t size = CHAIN_SPLIT_MIN - 1; size <= CHAIN_SPLIT_MIN; size++) {
		char text[CHAIN_SPLIT_MIN] = "", body[2 * CHAIN_SPLIT_MIN];
		size_t fill = size - strlen("{\"model\":\"m\"") - strlen(head) - 1;
		struct chain_shared bytes = { CHAIN_SHARED_BYTES, (uint32_t)size };
		struct chain_rig built, raw;

		memset(text, 'x', fill);
		text[fill] = '\0';
		(void)snprintf(body, sizeof body,
		               "{\"model\":\"m\"%s%s\",\"messages\":[]}", head, text);
		built = chain_rig_build(body);
		ck_assert(built.chain.split == (size == CHAIN_SPLIT_MIN));
		raw = chain_rig_build_as(DIALECT_RAW, body, NULL, bytes);
		ck_assert(raw.chain.split == (size == CHAIN_SPLIT_MIN));
		chain_rig_free_built(&built);
		chain_rig_free_built(&raw);
	}
}
END_TEST

START_TEST(chain_raw_bytes_are_split_where_declared)
{
	struct chain_shared shared = { CHAIN_SHARED_BYTES, 1200 };
	struct chain_rig built =
		chain_rig_build_as(DIALECT_RAW, PROSE "\nnot json", NULL, shared);
	struct chain_rig small =
		chain_rig_build_as(DIALECT_RAW, "not json", NULL,
	                           (struct chain_shared){ CHAIN_SHARED_BYTES, 4 });
	struct chain_rig whole = chain_rig_build_auto(DIALECT_RAW, "not json", NULL);
	struct part_own own;
	struct part_px px;

	ck_assert_int_eq(built.err, 0);
	ck_assert_uint_eq(built.chain.count, 1);
	ck_assert(built.chain.split);
	ck_assert_int_eq(part_px_read(built.chain.node[0].value, &px), 0);
	ck_assert_uint_eq(px.segment.len, 1200);
	own = chain_rig_own(&built);
	ck_assert(own.opaque);
	ck_assert_uint_eq(px.segment.len + own.own.len + own.tail.len,
	                  strlen(PROSE "\nnot json"));
	ck_assert_uint_eq(whole.chain.opaque, CHAIN_RAW);
	ck_assert_uint_eq(whole.chain.own.len, 0);
	ck_assert_uint_eq(small.chain.count, 1);
	ck_assert(!small.chain.split);
	ck_assert_uint_eq(small.chain.own.len, 0);
	ck_assert_uint_eq(small.chain.own_tokens, 1);
	chain_rig_free_built(&small);
	chain_rig_free_built(&built);
	chain_rig_free_built(&whole);
}
END_TEST

START_TEST(chain_salt_changes_a_node_and_all_below_it)
{
	struct chain_rig built = chain_rig_build(
		"{\"tools\":[{\"name\":\"a\"}],\"system\":\"" PROSE
		"\",\"messages\":[" USER("a", MARK) "," SAYS("b") "," USER("c", "") "]}");
	struct id128 before[3], after[3];

	for (int i = 0; i < 3; i++)
		before[i] = built.chain.node[i].id;
	chain_salt(&built.chain, 1, 1);
	for (int i = 0; i < 3; i++)
		after[i] = built.chain.node[i].id;
	ck_assert(id_equals(before[0], after[0]));
	ck_assert(!id_equals(before[1], after[1]));
	ck_assert(!id_equals(before[2], after[2]));
	chain_salt(&built.chain, 1, 2);
	ck_assert(!id_equals(built.chain.node[1].id, after[1]));
	chain_salt(&built.chain, 1, 0);
	for (int i = 0; i < 3; i++)
		ck_assert(id_equals(before[i], built.chain.node[i].id));
	chain_rig_free_built(&built);
}
END_TEST

START_TEST(chain_a_prefix_version_is_its_content)
{
	struct chain_error error;
	struct id128 a, b, c;

	ck_assert_int_eq(chain_prefix_check(DIALECT_ANTHROPIC,
	                                    SPAN("{\"system\":\"\\u0061\"}"), &a, &error),
	                 0);
	ck_assert_int_eq(chain_prefix_check(DIALECT_ANTHROPIC,
	                                    SPAN(" {\"system\" : \"a\"}"), &b, &error),
	                 0);
	ck_assert_int_eq(chain_prefix_check(DIALECT_ANTHROPIC, SPAN("{\"system\":\"b\"}"),
	                                    &c, &error),
	                 0);
	ck_assert(id_equals(a, b));
	ck_assert(!id_equals(a, c));
	ck_assert_int_eq(chain_prefix_check(DIALECT_ANTHROPIC, SPAN("[]"), &c, &error),
	                 ERR_MALFORMED);
	ck_assert(error.prefix_fault);
}
END_TEST

START_TEST(chain_is_empty_after_a_failure_and_can_be_used_again)
{
	struct chain_input input = { .traits = dialect_traits(DIALECT_ANTHROPIC),
		                     .body = SPAN("{\"system\":\"" PROSE "\"}") };
	struct chain_error error;
	struct chain chain;
	struct id128 id;

	chain_init(&chain);
	ck_assert_int_eq(chain_build(&chain, &input, &error), 0);
	id = chain.node[1].id;
	input.body = SPAN("{");
	ck_assert_int_eq(chain_build(&chain, &input, &error), ERR_MALFORMED);
	ck_assert_uint_eq(chain.count, 0);
	input.body = SPAN("{\"system\":\"" PROSE "\"}");
	ck_assert_int_eq(chain_build(&chain, &input, &error), 0);
	ck_assert(id_equals(id, chain.node[1].id));
	chain_fini(&chain);
	chain_fini(NULL);
}
END_TEST

START_TEST(chain_nothing_of_the_last_job_is_left_in_the_next)
{
	struct chain_input input = { .traits = dialect_traits(DIALECT_ANTHROPIC),
		                     .body = SPAN("{\"model\":\"m\",\"max_tokens\":5,"
		                                  "\"stream\":true,\"system\":\"" PROSE
		                                  "\",\"mcp_servers\":1}"),
		                     .shared = { CHAIN_SHARED_MARKER, 9 } };
	struct chain_error error;
	struct chain chain;

	chain_init(&chain);
	ck_assert_int_eq(chain_build(&chain, &input, &error), 0);
	ck_assert(chain.split);
	ck_assert(chain.wants_stream);
	ck_assert_str_ne(chain.note, "");
	input.body = SPAN("[1]");
	input.shared.kind = CHAIN_SHARED_AUTO;
	ck_assert_int_eq(chain_build(&chain, &input, &error), 0);
	ck_assert_uint_eq(chain.model.len, 0);
	ck_assert_int_eq(chain.max_tokens, -1);
	ck_assert(!chain.wants_stream);
	ck_assert(!chain.split);
	ck_assert_uint_eq(chain.own.len, 0);
	ck_assert_str_eq(chain.note, "");
	input.body = SPAN("{}");
	ck_assert_int_eq(chain_build(&chain, &input, &error), 0);
	ck_assert_str_eq(chain.why, "");
	ck_assert_uint_eq(chain.opaque, CHAIN_SPLITTABLE);
	chain_fini(&chain);
}
END_TEST

SUITE_MAIN("chain_prefix", chain_a_named_prefix_is_a_declared_part,
           chain_a_prefix_reaches_as_far_as_its_deepest_part,
           chain_a_prefix_that_contradicts_the_body_is_refused_with_the_name,
           chain_values_that_look_like_keys_are_no_contradiction,
           chain_adjacent_user_turns_are_not_merged,
           chain_what_cannot_be_split_runs_opaque_with_its_reason,
           chain_only_what_is_not_json_is_malformed,
           chain_an_opaque_body_behind_a_prefix_is_still_one_request,
           chain_too_deep_is_opaque_not_dead, chain_small_shared_parts_are_not_split,
           chain_splits_from_exactly_one_kilobyte_on,
           chain_raw_bytes_are_split_where_declared,
           chain_salt_changes_a_node_and_all_below_it,
           chain_a_prefix_version_is_its_content,
           chain_is_empty_after_a_failure_and_can_be_used_again,
           chain_nothing_of_the_last_job_is_left_in_the_next)
