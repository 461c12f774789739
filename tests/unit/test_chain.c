#include "common/codec/chain.h"
#include "common/codec/splice.h"
#include "tests/lib/suite.h"

#include <stdio.h>
#include <stdlib.h>

/* 2,000 bytes of prose, so that a shared part is worth splitting. */
#define P10  "policy text "
#define P100 P10 P10 P10 P10 P10 P10 P10 P10
#define PROSE                                                                           \
	P100 P100 P100 P100 P100 P100 P100 P100 P100 P100 P100 P100 P100 P100 P100 P100 \
		P100

struct built {
	struct chain chain;
	struct chain_error error;
	int err;
};

static struct built
build_as(enum dialect dialect, const char *body, const char *prefix,
         struct chain_shared shared)
{
	struct built built;
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

static struct built
build(const char *body)
{
	struct built built = build_as(DIALECT_ANTHROPIC, body, NULL,
	                              (struct chain_shared){ CHAIN_SHARED_AUTO, 0 });

	ck_assert_msg(built.err == 0, "%s", built.error.text);
	return built;
}

static struct built
build_shared(const char *body, enum chain_shared_kind kind, uint32_t n)
{
	struct built built =
		build_as(DIALECT_ANTHROPIC, body, NULL, (struct chain_shared){ kind, n });

	ck_assert_int_eq(built.err, 0);
	return built;
}

static struct built
build_chat(const char *body)
{
	struct built built = build_as(DIALECT_OPENAI_CHAT, body, NULL,
	                              (struct chain_shared){ CHAIN_SHARED_AUTO, 0 });

	ck_assert_int_eq(built.err, 0);
	return built;
}

static const struct chain_node *
node(const struct built *built, enum tier tier)
{
	for (unsigned i = 0; i < built->chain.count; i++)
		if (built->chain.node[i].tier == tier)
			return &built->chain.node[i];
	return NULL;
}

static bool
same_node(const struct built *a, const struct built *b, enum tier tier)
{
	const struct chain_node *left = node(a, tier), *right = node(b, tier);

	ck_assert_ptr_nonnull(left);
	ck_assert_ptr_nonnull(right);
	if (!id_equals(left->id, right->id))
		return false;
	ck_assert(span_equals(left->px.segment, right->px.segment));
	ck_assert(span_equals(left->value, right->value));
	return true;
}

static bool
segment_is(const struct built *built, enum tier tier, const char *text)
{
	struct span segment = node(built, tier)->px.segment;

	if (span_equals(segment, span_from(text)))
		return true;
	fprintf(stderr, "segment: %.*s\n", (int)segment.len, segment.data);
	return false;
}

static void
free_built(struct built *built)
{
	chain_fini(&built->chain);
}

/* Whether two bodies have the same node at a tier. */
static bool
share(const char *a, const char *b, enum tier tier)
{
	struct built left = build(a), right = build(b);
	bool same = same_node(&left, &right, tier);

	free_built(&left);
	free_built(&right);
	return same;
}

START_TEST(chain_a_plain_body_becomes_three_pieces_and_a_tail)
{
	struct built built =
		build("{\"model\":\"m\",\"max_tokens\":9,\"system\":\"" PROSE
	              "\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],"
	              "\"tools\":[{\"name\":\"a\"}],\"temperature\":0.5}");
	struct part_own own;

	ck_assert_uint_eq(built.chain.count, 2);
	ck_assert(built.chain.split);
	ck_assert(segment_is(&built, TIER_TOOLS,
	                     "{\"model\":\"m\",\"tools\":[{\"name\":\"a\"}]"));
	ck_assert(segment_is(&built, TIER_SYSTEM, ",\"system\":\"" PROSE "\""));
	ck_assert_int_eq(part_own_read(built.chain.own, &own), 0);
	ck_assert(
		span_equals(own.own, SPAN(",\"messages\":[{\"role\":\"user\",\"content\":"
	                                  "\"hi\"}]")));
	ck_assert(span_equals(own.tail, SPAN(",\"max_tokens\":9,\"temperature\":0.5}")));
	ck_assert(span_equals(built.chain.model, SPAN("m")));
	ck_assert_int_eq(built.chain.max_tokens, 9);
	ck_assert(!built.chain.node[0].declared);
	free_built(&built);
}
END_TEST

START_TEST(chain_spelling_does_not_matter)
{
	ck_assert(share("{\"model\":\"m\",\"system\":\"" PROSE
	                "\\u00e9/\\n\",\"messages\":[]}",
	                " { \"messages\" : [] , \"system\" : \"" PROSE
	                "\xc3\xa9\\/\\u000a\" , \"model\" : \"\\u006d\" } ",
	                TIER_SYSTEM));
	ck_assert(share("{\"system\":\"" PROSE "\",\"messages\":[]}",
	                "{\"system\":[{\"text\":\"" PROSE
	                "\",\"type\":\"text\"}],\"messages\":[]}",
	                TIER_SYSTEM));
	ck_assert(
		share("{\"system\":\"" PROSE "\",\"messages\":[]}",
	              "{\"system\":[{\"type\":\"text\",\"text\":\"" PROSE
	              "\",\"cache_control\":{\"type\":\"ephemeral\"}}],\"messages\":[]}",
	              TIER_SYSTEM));
}
END_TEST

START_TEST(chain_what_the_model_sees_matters)
{
	ck_assert(!share("{\"system\":\"" PROSE "\"}", "{\"system\":\"" PROSE " \"}",
	                 TIER_SYSTEM));
	ck_assert(!share("{\"model\":\"a\",\"system\":\"" PROSE "\"}",
	                 "{\"model\":\"b\",\"system\":\"" PROSE "\"}", TIER_SYSTEM));
	ck_assert(!share("{\"tools\":[{\"name\":\"a\"},{\"name\":\"b\"}]}",
	                 "{\"tools\":[{\"name\":\"b\"},{\"name\":\"a\"}]}", TIER_TOOLS));
	ck_assert(!share("{\"tools\":[{\"name\":\"a\",\"x\":1}]}",
	                 "{\"tools\":[{\"x\":1,\"name\":\"a\"}]}", TIER_TOOLS));
	ck_assert(!share("{\"tools\":[{\"name\":\"a\",\"x\":1}]}",
	                 "{\"tools\":[{\"name\":\"a\",\"x\":1.0}]}", TIER_TOOLS));
	/* two blocks are not the one block with both texts */
	ck_assert(!share("{\"system\":[{\"type\":\"text\",\"text\":\"ab\"}]}",
	                 "{\"system\":[{\"type\":\"text\",\"text\":\"a\"},"
	                 "{\"type\":\"text\",\"text\":\"b\"}]}",
	                 TIER_SYSTEM));
}
END_TEST

START_TEST(chain_each_setting_enters_at_its_tier)
{
	static const struct {
		const char *a;
		const char *b;
		bool tools; /* still the same node */
		bool system;
		bool messages;
	} cases[] = {
		{ "\"max_tokens\":1", "\"max_tokens\":2", true, true, true },
		{ "\"temperature\":0", "\"top_p\":1,\"top_k\":2", true, true, true },
		{ "\"stop_sequences\":[]", "\"metadata\":{\"user_id\":\"u\"}", true, true,
		  true },
		{ "\"stream\":true", "\"stream\":false", true, true, true },
		{ "\"tool_choice\":{\"type\":\"auto\"}",
		  "\"tool_choice\":{\"type\":\"any\"}", true, true, false },
		{ "\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":1024}",
		  "\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":2048}", true,
		  true, false },
		{ "\"thinking\":{\"type\":\"adaptive\"}",
		  "\"thinking\":{\"type\":\"disabled\"}", false, false, false },
		{ "\"output_config\":{\"effort\":\"low\"}",
		  "\"output_config\":{\"effort\":\"high\"}", false, false, false },
		{ "\"service_tier\":\"auto\"", "\"service_tier\":\"standard_only\"",
		  false, false, false },
		{ "\"speed\":\"fast\"", "\"max_tokens\":1", false, false, false },
		{ "\"inference_geo\":\"us\"", "\"inference_geo\":\"eu\"", false, false,
		  false },
		{ "\"nobody_knows\":1", "\"nobody_knows\":2", false, false, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char *text[2];
		struct built built[2];

		for (int k = 0; k < 2; k++) {
			ck_assert_int_gt(asprintf(&text[k],
			                          "{\"tools\":[{\"name\":\"a\"}],"
			                          "\"system\":\"%s\",%s,"
			                          "\"messages\":[{\"role\":\"user\","
			                          "\"content\":[{\"type\":"
			                          "\"text\",\"text\":\"doc\",\"cache_"
			                          "control\":{\"type\":"
			                          "\"ephemeral\"}},{\"type\":\"text\","
			                          "\"text\":\"q\"}]}]}",
			                          PROSE, k ? cases[i].b : cases[i].a),
			                 0);
			built[k] = build(text[k]);
		}
		ck_assert_msg(same_node(&built[0], &built[1], TIER_TOOLS) ==
		                      cases[i].tools,
		              "T: %s", cases[i].a);
		ck_assert_msg(same_node(&built[0], &built[1], TIER_SYSTEM) ==
		                      cases[i].system,
		              "S: %s", cases[i].a);
		ck_assert_msg(same_node(&built[0], &built[1], TIER_MESSAGES) ==
		                      cases[i].messages,
		              "M: %s", cases[i].a);
		for (int k = 0; k < 2; k++) {
			free_built(&built[k]);
			free(text[k]);
		}
	}
}
END_TEST

START_TEST(chain_fifty_tool_choices_share_one_system)
{
	struct built first =
		build("{\"system\":\"" PROSE "\",\"tool_choice\":{\"type\":\"auto\"},"
	              "\"messages\":[{\"role\":\"user\",\"content\":\"q\"}]}");

	for (int i = 0; i < 50; i++) {
		char *text;
		struct built built;

		ck_assert_int_gt(
			asprintf(
				&text,
				"{\"system\":\"" PROSE
				"\",\"tool_choice\":{\"type\":\"tool\",\"name\":\"t%d\"},"
				"\"messages\":[{\"role\":\"user\",\"content\":\"q\"}]}",
				i),
			0);
		built = build(text);
		ck_assert(same_node(&first, &built, TIER_SYSTEM));
		ck_assert_uint_eq(built.chain.count, 2);
		free_built(&built);
		free(text);
	}
	free_built(&first);
}
END_TEST

START_TEST(chain_upstream_betas_and_lifetime_enter_at_tools)
{
	struct chain_input input = { .traits = dialect_traits(DIALECT_ANTHROPIC),
		                     .seed = 7,
		                     .upstream = SPAN("claude"),
		                     .body = SPAN("{\"model\":\"m\"}") };
	struct chain_error error;
	struct chain chain;
	struct id128 first;
	struct dialect_traits hour = *input.traits;

	hour.ttl = TTL_1H;
	chain_init(&chain);
	ck_assert_int_eq(chain_build(&chain, &input, &error), 0);
	first = chain.node[0].id;
	input.betas = SPAN("context-1m");
	ck_assert_int_eq(chain_build(&chain, &input, &error), 0);
	ck_assert(!id_equals(first, chain.node[0].id));
	input.betas = SPAN("");
	input.upstream = SPAN("other");
	ck_assert_int_eq(chain_build(&chain, &input, &error), 0);
	ck_assert(!id_equals(first, chain.node[0].id));
	input.upstream = SPAN("claude");
	input.traits = &hour;
	ck_assert_int_eq(chain_build(&chain, &input, &error), 0);
	ck_assert(!id_equals(first, chain.node[0].id));
	input.traits = dialect_traits(DIALECT_ANTHROPIC);
	input.seed = 8;
	ck_assert_int_eq(chain_build(&chain, &input, &error), 0);
	ck_assert(!id_equals(first, chain.node[0].id));
	input.seed = 7;
	ck_assert_int_eq(chain_build(&chain, &input, &error), 0);
	ck_assert(id_equals(first, chain.node[0].id));
	chain_fini(&chain);
}
END_TEST

#define DOC(mark) "{\"type\":\"text\",\"text\":\"" PROSE "\"" mark "}"
#define MARK      ",\"cache_control\":{\"type\":\"ephemeral\"}"
#define MARK1     ",\"cache_control\":{\"type\":\"ephemeral\",\"ttl\":\"1h\"}"

START_TEST(chain_a_shared_document_ends_inside_its_message)
{
	struct built a = build("{\"messages\":[{\"role\":\"user\",\"content\":[" DOC(
		MARK) ",{\"type\":\"text\",\"text\":\"first question\"}]}]}");
	struct built b = build("{\"messages\":[{\"content\":[" DOC(
		MARK) ",{\"type\":\"text\",\"text\":\"second\"}],\"role\":\"user\"}]}");
	struct part_own own;

	ck_assert(same_node(&a, &b, TIER_MESSAGES));
	ck_assert(segment_is(&a, TIER_MESSAGES,
	                     "\"messages\":[{\"role\":\"user\",\"content\":[" DOC("")));
	ck_assert_uint_eq(node(&a, TIER_MESSAGES)->px.end, PART_BLOCK);
	ck_assert_uint_eq(node(&a, TIER_MESSAGES)->px.role, PART_ROLE_USER);
	ck_assert(node(&a, TIER_MESSAGES)->user_marked);
	ck_assert_int_eq(part_own_read(b.chain.own, &own), 0);
	ck_assert(span_equals(own.own,
	                      SPAN(",{\"type\":\"text\",\"text\":\"second\"}]}]")));
	ck_assert_uint_eq(own.user[TIER_MESSAGES], PART_MARK_PLAIN);
	free_built(&a);
	free_built(&b);
}
END_TEST

START_TEST(chain_a_marker_at_the_end_of_the_question_is_no_boundary)
{
	struct built a =
		build("{\"system\":\"" PROSE "\",\"messages\":[{\"role\":\"user\","
	              "\"content\":[" DOC(MARK) "]}]}");
	/* assistant prefill may follow the final user turn */
	struct built b = build(
		"{\"system\":\"" PROSE "\",\"messages\":[{\"role\":\"user\","
		"\"content\":[" DOC(MARK) "]},{\"role\":\"assistant\",\"content\":"
					  "[{\"type\":\"text\",\"text\":\"{\"}]}]}");

	ck_assert_ptr_null(node(&a, TIER_MESSAGES));
	ck_assert_ptr_null(node(&b, TIER_MESSAGES));
	free_built(&a);
	free_built(&b);
}
END_TEST

#define USER(text, mark)                                                                \
	"{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"" text "\"" mark \
	"}]}"
#define SAYS(text) "{\"role\":\"assistant\",\"content\":\"" text "\"}"

START_TEST(chain_of_many_markers_the_opening_document_wins_over_history)
{
	/* a document, then a conversation with a moving marker */
	struct built a = build("{\"messages\":[" USER("doc one", MARK) "," SAYS(
		"one") "," USER("more", MARK) "," SAYS("two") "," USER("q", MARK) "]}");
	/* only history is marked: few-shot pairs look the same */
	struct built b = build("{\"messages\":[" USER("hello", "") "," SAYS(
		"one") "," USER("more", MARK) "," SAYS("two") "," USER("q", MARK) "]}");
	/* two documents in front: the deeper one */
	struct built c = build("{\"messages\":[{\"role\":\"user\",\"content\":[" DOC(
		MARK) "," DOC(MARK) ",{\"type\":\"text\",\"text\":\"q\"}]}]}");

	ck_assert(segment_is(&a, TIER_MESSAGES,
	                     "\"messages\":[{\"role\":\"user\",\"content\":\"doc one\""));
	ck_assert(segment_is(
		&b, TIER_MESSAGES,
		"\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}," SAYS(
			"one") ",{\"role\":\"user\",\"content\":\"more\""));
	ck_assert(segment_is(
		&c, TIER_MESSAGES,
		"\"messages\":[{\"role\":\"user\",\"content\":[" DOC(MARK) "," DOC("")));
	free_built(&a);
	free_built(&b);
	free_built(&c);
}
END_TEST

START_TEST(chain_declared_parts_stop_the_chain_where_they_say)
{
	static const char body[] =
		"{\"tools\":[{\"name\":\"a\"}],\"system\":\"" PROSE
		"\",\"messages\":[" USER("a", MARK) "," SAYS("b") "," USER("c", "") "]}";
	struct built tools = build_shared(body, CHAIN_SHARED_TOOLS, 0);
	struct built system = build_shared(body, CHAIN_SHARED_SYSTEM, 0);
	struct built two = build_shared(body, CHAIN_SHARED_MESSAGES, 2);
	struct built all = build_shared(body, CHAIN_SHARED_MESSAGES, 3);
	struct built mark = build_shared(body, CHAIN_SHARED_MARKER, 1);

	ck_assert_uint_eq(tools.chain.count, 1);
	ck_assert_uint_eq(system.chain.count, 2);
	ck_assert(system.chain.node[1].declared);
	ck_assert(system.chain.node[0].declared);
	ck_assert_uint_eq(two.chain.count, 3);
	ck_assert(two.chain.node[2].declared);
	ck_assert_uint_eq(node(&two, TIER_MESSAGES)->px.role, PART_ROLE_ASSISTANT);
	ck_assert_uint_eq(node(&two, TIER_MESSAGES)->px.end, PART_VALUE);
	ck_assert_uint_eq(all.chain.count, 3);
	ck_assert(segment_is(&mark, TIER_MESSAGES,
	                     ",\"messages\":[{\"role\":\"user\",\"content\":\"a\""));
	ck_assert(same_node(&system, &two, TIER_SYSTEM));
	free_built(&tools);
	free_built(&system);
	free_built(&two);
	free_built(&all);
	free_built(&mark);
}
END_TEST

START_TEST(chain_a_declaration_that_names_nothing_is_noted_and_ignored)
{
	static const char body[] =
		"{\"messages\":[" USER("a", MARK) "," SAYS("b") "," USER("c", "") "]}";
	struct built plain = build(body);
	static const struct chain_shared nothing[] = {
		{ CHAIN_SHARED_TOOLS, 0 },    { CHAIN_SHARED_SYSTEM, 0 },
		{ CHAIN_SHARED_MESSAGES, 4 }, { CHAIN_SHARED_MARKER, 2 },
		{ CHAIN_SHARED_BYTES, 10 },
	};

	ck_assert_str_eq(plain.chain.note, "");
	for (size_t i = 0; i < ARRAY_SIZE(nothing); i++) {
		struct built built = build_shared(body, nothing[i].kind, nothing[i].n);

		ck_assert_str_ne(built.chain.note, "");
		ck_assert(same_node(&plain, &built, TIER_MESSAGES));
		ck_assert(!built.chain.node[1].declared);
		free_built(&built);
	}
	free_built(&plain);
}
END_TEST

START_TEST(chain_a_named_prefix_is_a_declared_part)
{
	static const char prefix[] =
		"{\"model\":\"m\",\"system\":\"" PROSE
		"\",\"messages\":[" USER("doc", "") "," SAYS("read") "]}";
	struct chain_shared none = { CHAIN_SHARED_AUTO, 0 };
	struct built a = build_as(DIALECT_ANTHROPIC,
	                          "{\"messages\":[" USER("q1", "") "],\"max_tokens\":1}",
	                          prefix, none);
	struct built b = build_as(DIALECT_ANTHROPIC,
	                          "{\"messages\":[" USER("q2", "") "]}", prefix, none);
	struct built inlined =
		build_shared("{\"model\":\"m\",\"system\":\"" PROSE
	                     "\",\"messages\":[" USER("doc", "") "," SAYS(
				     "read") "," USER("q1", "") "],\"max_tokens\":1}",
	                     CHAIN_SHARED_MESSAGES, 2);

	ck_assert_int_eq(a.err, 0);
	ck_assert_uint_eq(a.chain.count, 3);
	ck_assert(a.chain.node[2].declared);
	ck_assert(same_node(&a, &b, TIER_MESSAGES));
	/* a prefix by name and the same text inline are one family */
	ck_assert(same_node(&a, &inlined, TIER_MESSAGES));
	ck_assert(span_equals(a.chain.own, inlined.chain.own));
	free_built(&a);
	free_built(&b);
	free_built(&inlined);
}
END_TEST

START_TEST(chain_a_prefix_reaches_as_far_as_its_deepest_part)
{
	struct chain_shared none = { CHAIN_SHARED_AUTO, 0 };
	struct built tools =
		build_as(DIALECT_ANTHROPIC, "{\"system\":\"x\",\"messages\":[]}",
	                 "{\"tools\":[{\"name\":\"" PROSE "\"}]}", none);
	struct built system =
		build_as(DIALECT_ANTHROPIC, "{\"messages\":[" USER("q", "") "]}",
	                 "{\"system\":\"" PROSE "\"}", none);
	struct built chat = build_as(
		DIALECT_OPENAI_CHAT,
		"{\"messages\":[{\"role\":\"developer\",\"content\":\"mine\"},"
		"{\"role\":\"user\",\"content\":\"q\"}]}",
		"{\"messages\":[{\"role\":\"system\",\"content\":\"" PROSE "\"}]}", none);

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
	ck_assert(segment_is(&chat, TIER_SYSTEM,
	                     "\"messages\":[{\"role\":\"system\",\"content\":\"" PROSE
	                     "\""));
	free_built(&tools);
	free_built(&system);
	free_built(&chat);
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
		struct built built =
			build_as(DIALECT_ANTHROPIC, cases[i].body, cases[i].prefix,
		                 (struct chain_shared){ CHAIN_SHARED_AUTO, 0 });

		ck_assert_int_eq(built.err, ERR_MALFORMED);
		ck_assert_str_eq(built.error.text, cases[i].text);
		ck_assert(built.error.prefix_fault == cases[i].fault);
		free_built(&built);
	}
}
END_TEST

START_TEST(chain_adjacent_user_turns_are_not_merged)
{
	struct built built =
		build_as(DIALECT_ANTHROPIC, "{\"messages\":[" USER("q", "") "]}",
	                 "{\"messages\":[{\"role\":\"user\",\"content\":\"" PROSE "\"}]}",
	                 (struct chain_shared){ CHAIN_SHARED_AUTO, 0 });
	struct part_own own;

	ck_assert_int_eq(built.err, 0);
	ck_assert_int_eq(part_own_read(built.chain.own, &own), 0);
	ck_assert(span_equals(own.own, SPAN("}," USER("q", "") "]")));
	free_built(&built);
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
		struct built built = build(cases[i].body);
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
		free_built(&built);
	}
}
END_TEST

START_TEST(chain_only_what_is_not_json_is_malformed)
{
	struct built built = build_as(DIALECT_ANTHROPIC, "{\"a\":1", NULL,
	                              (struct chain_shared){ CHAIN_SHARED_AUTO, 0 });

	ck_assert_int_eq(built.err, ERR_MALFORMED);
	ck_assert_str_eq(built.error.text,
	                 "the body is not JSON: expected ',' or '}' at byte 6");
	free_built(&built);
}
END_TEST

START_TEST(chain_an_opaque_body_behind_a_prefix_is_still_one_request)
{
	struct built built =
		build_as(DIALECT_ANTHROPIC,
	                 "{\"messages\":[{\"role\":\"user\",\"content\":\"\\ud83d\"}]}",
	                 "{\"system\":\"s\",\"messages\":[" USER("a", "") "]}",
	                 (struct chain_shared){ CHAIN_SHARED_AUTO, 0 });
	struct part_own own;

	ck_assert_int_eq(built.err, 0);
	ck_assert_uint_eq(built.chain.opaque, CHAIN_LONE_SURROGATE);
	ck_assert_int_eq(part_own_read(built.chain.own, &own), 0);
	ck_assert(own.opaque);
	ck_assert(span_equals(
		own.tail,
		SPAN("{\"system\":\"s\",\"messages\":[" USER(
			"a", "") ",{\"role\":\"user\",\"content\":\"\\ud83d\"}]}")));
	free_built(&built);
}
END_TEST

START_TEST(chain_too_deep_is_opaque_not_dead)
{
	static char body[4096];
	size_t len = 0;
	struct built built;

	len += (size_t)snprintf(body, sizeof body, "{\"tools\":");
	memset(body + len, '[', 1500);
	len += 1500;
	memset(body + len, ']', 1500);
	len += 1500;
	body[len++] = '}';
	body[len] = '\0';
	built = build(body);
	ck_assert_uint_eq(built.chain.opaque, CHAIN_TOO_DEEP);
	free_built(&built);
}
END_TEST

START_TEST(chain_small_shared_parts_are_not_split)
{
	struct built built =
		build("{\"system\":\"short\",\"messages\":[" USER("q", "") "]}");

	ck_assert_uint_eq(built.chain.count, 2);
	ck_assert(!built.chain.split);
	ck_assert_uint_eq(built.chain.own.len, 0);
	ck_assert_uint_eq(built.chain.node[1].value.len, 0);
	ck_assert(!id_is_none(built.chain.node[1].id));
	free_built(&built);
}
END_TEST

START_TEST(chain_remote_tool_lists_end_it_at_the_system)
{
	struct built built =
		build("{\"mcp_servers\":[{\"url\":\"x\"}],\"system\":\"" PROSE
	              "\",\"messages\":[{\"role\":\"user\",\"content\":[" DOC(
			      MARK) ",{\"type\":\"text\",\"text\":\"q\"}]}]}");

	ck_assert_uint_eq(built.chain.count, 2);
	ck_assert(built.chain.node[0].px.flags & PART_HELD);
	free_built(&built);
}
END_TEST

START_TEST(chain_images_change_messages_only)
{
#define IMAGE "{\"type\":\"image\",\"source\":{\"type\":\"url\",\"url\":\"x\"}}"
#define BODY(tail)             \
	"{\"system\":\"" PROSE \
	"\",\"messages\":[{\"role\":\"user\",\"content\":[" DOC(MARK) "," tail "]}]}"
	struct built text = build(BODY("{\"type\":\"text\",\"text\":\"q\"}"));
	struct built image = build(BODY("{\"type\":\"text\",\"text\":\"q\"}," IMAGE));

	ck_assert(same_node(&text, &image, TIER_SYSTEM));
	ck_assert(!same_node(&text, &image, TIER_MESSAGES));
	ck_assert(node(&image, TIER_MESSAGES)->px.flags & PART_IMAGE);
	free_built(&text);
	free_built(&image);
}
END_TEST

START_TEST(chain_citations_change_the_system_tier)
{
#define CITE(on)                                                                \
	"{\"type\":\"document\",\"source\":{\"type\":\"text\",\"data\":\"d\"}," \
	"\"citations\":{\"enabled\":" on "}}"
	struct built off =
		build("{\"system\":\"" PROSE "\",\"messages\":[{\"role\":\"user\","
	              "\"content\":[" CITE("false") "]}]}");
	struct built on =
		build("{\"system\":\"" PROSE "\",\"messages\":[{\"role\":\"user\","
	              "\"content\":[" CITE("true") "]}]}");

	ck_assert(same_node(&off, &on, TIER_TOOLS));
	ck_assert(!same_node(&off, &on, TIER_SYSTEM));
	free_built(&off);
	free_built(&on);
}
END_TEST

START_TEST(chain_lifetimes_follow_the_users_markers)
{
	/* an unmarked node before a 1h marker has to live at least as long */
	struct built hour =
		build("{\"tools\":[{\"name\":\"a\"}],\"system\":[{\"type\":\"text\","
	              "\"text\":\"" PROSE "\"" MARK1 "}],\"messages\":[]}");
	struct built five =
		build("{\"tools\":[{\"name\":\"a\"}],\"system\":[{\"type\":\"text\","
	              "\"text\":\"" PROSE "\"" MARK "}],\"messages\":[]}");
	struct part_own own;

	ck_assert_uint_eq(node(&hour, TIER_TOOLS)->px.ttl, TTL_1H);
	ck_assert_uint_eq(node(&hour, TIER_SYSTEM)->px.ttl, TTL_1H);
	ck_assert_uint_eq(node(&five, TIER_TOOLS)->px.ttl, TTL_5M);
	ck_assert(!same_node(&hour, &five, TIER_TOOLS));
	ck_assert_int_eq(part_own_read(hour.chain.own, &own), 0);
	ck_assert_uint_eq(own.later[TIER_TOOLS], TTL_1H);
	ck_assert_uint_eq(own.earlier[TIER_TOOLS], TTL_NONE);
	ck_assert_uint_eq(own.later[TIER_SYSTEM], TTL_NONE);
	ck_assert_uint_eq(own.user[TIER_SYSTEM], PART_MARK_1H);
	ck_assert_uint_eq(own.explicit_count, 1);
	free_built(&hour);
	free_built(&five);
}
END_TEST

START_TEST(chain_with_all_slots_taken_the_deepest_marker_is_the_boundary)
{
	static const char body[] =
		"{\"tools\":[{\"name\":\"a\"" MARK
		"}],\"system\":[{\"type\":\"text\",\"text\":\"" PROSE "\"" MARK
		"}],\"messages\":[" USER("one", MARK) "," SAYS("x") "," USER(
			"two", "") "," SAYS("y") "," USER("q", MARK) "]}";
	struct built built = build_shared(body, CHAIN_SHARED_MESSAGES, 3);

	ck_assert(segment_is(&built, TIER_MESSAGES,
	                     ",\"messages\":[{\"role\":\"user\",\"content\":\"one\""));
	ck_assert(built.chain.node[2].declared);
	free_built(&built);
}
END_TEST

START_TEST(chain_markers_in_a_form_of_their_own_stay_inside)
{
	struct built built =
		build("{\"system\":[{\"type\":\"text\",\"text\":\"" PROSE
	              "\",\"cache_control\":{\"type\":\"ephemeral\",\"scope\":\"x\"}}],"
	              "\"messages\":[]}");
	const struct chain_node *system = node(&built, TIER_SYSTEM);
	struct part_own own;

	ck_assert(system->px.flags & PART_FIXED);
	ck_assert(system->user_marked);
	ck_assert_uint_eq(system->px.mark_at, PART_NOWHERE);
	ck_assert_int_eq(part_own_read(built.chain.own, &own), 0);
	ck_assert_uint_eq(own.user[TIER_SYSTEM], PART_MARK_NONE);
	free_built(&built);
}
END_TEST

START_TEST(chain_the_marker_goes_to_the_last_block_that_may_have_one)
{
	struct built tools = build("{\"tools\":[{\"name\":\"" PROSE "\"},{\"name\":\"b\","
	                           "\"defer_loading\":true}]}");
	struct built none =
		build("{\"tools\":[{\"name\":\"" PROSE "\",\"defer_loading\":true}]}");
	struct built think = build_shared(
		"{\"messages\":[" USER(
			"a", "") ",{\"role\":\"assistant\","
				 "\"content\":[{\"type\":\"text\",\"text\":\"" PROSE
				 "\"},{\"type\":\"thinking\",\"thinking\":\"t\"}]}," USER(
					 "q", "") "]}",
		CHAIN_SHARED_MESSAGES, 2);
	struct built empty = build("{\"system\":[{\"type\":\"text\",\"text\":\"" PROSE
	                           "\"},{\"type\":\"text\",\"text\":\" \"}]}");
	const struct part_px *px = &node(&tools, TIER_TOOLS)->px;

	ck_assert(span_equals((struct span){ px->segment.data + px->mark_at, 3 },
	                      SPAN("},{")));
	ck_assert_uint_eq(node(&none, TIER_TOOLS)->px.mark_at, PART_NOWHERE);
	px = &node(&think, TIER_MESSAGES)->px;
	ck_assert(span_equals((struct span){ px->segment.data + px->mark_at, 22 },
	                      SPAN("},{\"type\":\"thinking\",\"")));
	px = &node(&empty, TIER_SYSTEM)->px;
	ck_assert(span_equals((struct span){ px->segment.data + px->mark_at, 3 },
	                      SPAN("},{")));
	free_built(&tools);
	free_built(&none);
	free_built(&think);
	free_built(&empty);
}
END_TEST

START_TEST(chain_chat_system_messages_are_the_system_tier)
{
	struct built a = build_chat(
		"{\"model\":\"g\",\"messages\":[{\"role\":\"system\",\"content\":"
		"\"one\"},{\"content\":\"" PROSE "\",\"role\":\"developer\"},"
		"{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"system\","
		"\"content\":\"late\"}],\"tool_choice\":\"auto\"}");
	struct built b = build_chat(
		"{\"model\":\"g\",\"messages\":[{\"role\":\"system\",\"content\":"
		"[{\"type\":\"text\",\"text\":\"one\"}]},{\"role\":\"developer\","
		"\"content\":\"" PROSE "\"},{\"role\":\"user\",\"content\":\"r\"}],"
		"\"tool_choice\":\"none\"}");
	struct part_own own;

	ck_assert_uint_eq(a.chain.count, 2);
	ck_assert(same_node(&a, &b, TIER_SYSTEM));
	ck_assert(segment_is(&a, TIER_SYSTEM,
	                     ",\"messages\":[{\"role\":\"system\",\"content\":\"one\"},"
	                     "{\"role\":\"developer\",\"content\":\"" PROSE "\""));
	ck_assert_int_eq(part_own_read(a.chain.own, &own), 0);
	ck_assert(span_equals(own.own,
	                      SPAN("},{\"role\":\"user\",\"content\":\"q\"},{\"role\":"
	                           "\"system\",\"content\":\"late\"}]")));
	free_built(&a);
	free_built(&b);
}
END_TEST

START_TEST(chain_chat_settings_enter_where_the_provider_renders_them)
{
#define CHAT(setting) \
	"{\"messages\":[{\"role\":\"system\",\"content\":\"" PROSE "\"}]," setting "}"
	static const struct {
		const char *a;
		const char *b;
		bool same;
	} cases[] = {
		{ CHAT("\"user\":\"a\""), CHAT("\"user\":\"b\""), true },
		{ CHAT("\"max_completion_tokens\":1"), CHAT("\"n\":2"), true },
		{ CHAT("\"response_format\":{\"type\":\"json_object\"}"), CHAT("\"n\":1"),
		  false },
		{ CHAT("\"prompt_cache_key\":\"a\""), CHAT("\"prompt_cache_key\":\"b\""),
		  false },
		{ CHAT("\"user_id\":\"a\""), CHAT("\"user_id\":\"b\""), false },
		{ CHAT("\"parallel_tool_calls\":true"),
		  CHAT("\"parallel_tool_calls\":false"), false },
		{ CHAT("\"cache_salt\":\"a\""), CHAT("\"cache_salt\":\"b\""), false },
		{ CHAT("\"reasoning_effort\":\"low\""), CHAT("\"seed\":1"), false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct built a = build_chat(cases[i].a), b = build_chat(cases[i].b);

		ck_assert_msg(same_node(&a, &b, TIER_SYSTEM) == cases[i].same, "%s",
		              cases[i].a);
		free_built(&a);
		free_built(&b);
	}
}
END_TEST

START_TEST(chain_chat_breakpoints_of_the_users_make_no_other_node)
{
#define BREAK ",\"prompt_cache_breakpoint\":{\"mode\":\"explicit\"}"
#define CHAT_SYSTEM(mark)                                                               \
	"{\"messages\":[{\"role\":\"system\",\"content\":[{\"type\":\"text\",\"text\":" \
	"\"" PROSE "\"" mark "}]},{\"role\":\"user\",\"content\":\"q\"}]}"
	struct built plain = build_chat(CHAT_SYSTEM(""));
	struct built marked = build_chat(CHAT_SYSTEM(BREAK));
	struct part_own own;

	ck_assert(same_node(&plain, &marked, TIER_SYSTEM));
	ck_assert(marked.chain.node[1].user_marked);
	ck_assert_int_eq(part_own_read(marked.chain.own, &own), 0);
	ck_assert_uint_eq(own.user[TIER_SYSTEM], PART_MARK_BREAKPOINT);
	free_built(&plain);
	free_built(&marked);
}
END_TEST

START_TEST(chain_raw_bytes_are_split_where_declared)
{
	struct chain_shared shared = { CHAIN_SHARED_BYTES, 1200 };
	struct built built = build_as(DIALECT_RAW, PROSE "\nnot json", NULL, shared);
	struct built small = build_as(DIALECT_RAW, "not json", NULL,
	                              (struct chain_shared){ CHAIN_SHARED_BYTES, 4 });
	struct built whole = build_as(DIALECT_RAW, "not json", NULL,
	                              (struct chain_shared){ CHAIN_SHARED_AUTO, 0 });
	struct part_own own;
	struct part_px px;

	ck_assert_int_eq(built.err, 0);
	ck_assert_uint_eq(built.chain.count, 1);
	ck_assert(built.chain.split);
	ck_assert_int_eq(part_px_read(built.chain.node[0].value, &px), 0);
	ck_assert_uint_eq(px.segment.len, 1200);
	ck_assert_int_eq(part_own_read(built.chain.own, &own), 0);
	ck_assert(own.opaque);
	ck_assert_uint_eq(px.segment.len + own.own.len + own.tail.len,
	                  strlen(PROSE "\nnot json"));
	ck_assert_uint_eq(whole.chain.opaque, CHAIN_RAW);
	ck_assert_uint_eq(whole.chain.own.len, 0);
	ck_assert_uint_eq(small.chain.count, 1);
	ck_assert(!small.chain.split);
	ck_assert_uint_eq(small.chain.own.len, 0);
	ck_assert_uint_eq(small.chain.own_tokens, 1);
	free_built(&small);
	free_built(&built);
	free_built(&whole);
}
END_TEST

START_TEST(chain_salt_changes_a_node_and_all_below_it)
{
	struct built built = build(
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
	free_built(&built);
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

START_TEST(chain_a_lifetime_nobody_knows_counts_as_the_shortest)
{
	struct built built =
		build("{\"system\":[{\"type\":\"text\",\"text\":\"a\",\"cache_control\":"
	              "{\"type\":\"ephemeral\",\"ttl\":\"7m\"}},{\"type\":\"text\","
	              "\"text\":\"" PROSE "\"}],\"messages\":[]}");
	struct part_own own;

	ck_assert_int_eq(part_own_read(built.chain.own, &own), 0);
	ck_assert_uint_eq(own.earlier[TIER_SYSTEM], TTL_5M);
	ck_assert_uint_eq(own.explicit_count, 1);
	free_built(&built);
}
END_TEST

START_TEST(chain_estimates_count_bytes_from_the_root)
{
	struct built built = build("{\"model\":\"m\",\"system\":\"" PROSE
	                           "\",\"messages\":[" USER("q", "") "]}");
	const struct chain_node *tools = node(&built, TIER_TOOLS);
	const struct chain_node *system = node(&built, TIER_SYSTEM);
	struct part_own own;

	ck_assert_uint_eq(tools->tokens, tools->px.segment.len / 4);
	ck_assert_uint_eq(system->px.tokens, system->px.segment.len / 4);
	ck_assert_uint_eq(system->tokens, tools->tokens + system->px.tokens);
	ck_assert_int_eq(part_own_read(built.chain.own, &own), 0);
	ck_assert_uint_eq(built.chain.own_tokens, (own.own.len + own.tail.len) / 4);
	free_built(&built);
}
END_TEST

SUITE_MAIN("chain", chain_a_plain_body_becomes_three_pieces_and_a_tail,
           chain_spelling_does_not_matter, chain_what_the_model_sees_matters,
           chain_each_setting_enters_at_its_tier,
           chain_fifty_tool_choices_share_one_system,
           chain_upstream_betas_and_lifetime_enter_at_tools,
           chain_a_shared_document_ends_inside_its_message,
           chain_a_marker_at_the_end_of_the_question_is_no_boundary,
           chain_of_many_markers_the_opening_document_wins_over_history,
           chain_declared_parts_stop_the_chain_where_they_say,
           chain_a_declaration_that_names_nothing_is_noted_and_ignored,
           chain_a_named_prefix_is_a_declared_part,
           chain_a_prefix_reaches_as_far_as_its_deepest_part,
           chain_a_prefix_that_contradicts_the_body_is_refused_with_the_name,
           chain_adjacent_user_turns_are_not_merged,
           chain_what_cannot_be_split_runs_opaque_with_its_reason,
           chain_only_what_is_not_json_is_malformed,
           chain_an_opaque_body_behind_a_prefix_is_still_one_request,
           chain_too_deep_is_opaque_not_dead, chain_small_shared_parts_are_not_split,
           chain_remote_tool_lists_end_it_at_the_system,
           chain_images_change_messages_only, chain_citations_change_the_system_tier,
           chain_lifetimes_follow_the_users_markers,
           chain_with_all_slots_taken_the_deepest_marker_is_the_boundary,
           chain_markers_in_a_form_of_their_own_stay_inside,
           chain_the_marker_goes_to_the_last_block_that_may_have_one,
           chain_chat_system_messages_are_the_system_tier,
           chain_chat_settings_enter_where_the_provider_renders_them,
           chain_chat_breakpoints_of_the_users_make_no_other_node,
           chain_raw_bytes_are_split_where_declared,
           chain_salt_changes_a_node_and_all_below_it,
           chain_a_prefix_version_is_its_content,
           chain_nothing_of_the_last_job_is_left_in_the_next,
           chain_a_lifetime_nobody_knows_counts_as_the_shortest,
           chain_estimates_count_bytes_from_the_root,
           chain_is_empty_after_a_failure_and_can_be_used_again)
