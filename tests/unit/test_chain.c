#include "tests/lib/chain_rig.h"
#include "tests/lib/suite.h"

#include <stdio.h>
#include <stdlib.h>

/* Whether two bodies have the same node at a tier. */
static bool
share(const char *a, const char *b, enum tier tier)
{
	struct chain_rig left = chain_rig_build(a), right = chain_rig_build(b);
	bool same = chain_rig_same_node(&left, &right, tier);

	chain_rig_free_built(&left);
	chain_rig_free_built(&right);
	return same;
}

START_TEST(chain_a_plain_body_becomes_three_pieces_and_a_tail)
{
	struct chain_rig built = chain_rig_build(
		"{\"model\":\"m\",\"max_tokens\":9,\"system\":\"" PROSE
		"\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],"
		"\"tools\":[{\"name\":\"a\"}],\"temperature\":0.5}");
	struct part_own own;

	ck_assert_uint_eq(built.chain.count, 2);
	ck_assert(built.chain.split);
	ck_assert(chain_rig_segment_is(&built, TIER_TOOLS,
	                               "{\"model\":\"m\",\"tools\":[{\"name\":\"a\"}]"));
	ck_assert(chain_rig_segment_is(&built, TIER_SYSTEM, ",\"system\":\"" PROSE "\""));
	ck_assert_int_eq(part_own_read(built.chain.own, &own), 0);
	ck_assert(
		span_equals(own.own, SPAN(",\"messages\":[{\"role\":\"user\",\"content\":"
	                                  "\"hi\"}]")));
	ck_assert(span_equals(own.tail, SPAN(",\"max_tokens\":9,\"temperature\":0.5}")));
	ck_assert(span_equals(built.chain.model, SPAN("m")));
	ck_assert_int_eq(built.chain.max_tokens, 9);
	ck_assert(!built.chain.node[0].declared);
	chain_rig_free_built(&built);
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
		struct chain_rig built[2];

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
			built[k] = chain_rig_build(text[k]);
		}
		ck_assert_msg(chain_rig_same_node(&built[0], &built[1], TIER_TOOLS) ==
		                      cases[i].tools,
		              "T: %s", cases[i].a);
		ck_assert_msg(chain_rig_same_node(&built[0], &built[1], TIER_SYSTEM) ==
		                      cases[i].system,
		              "S: %s", cases[i].a);
		ck_assert_msg(chain_rig_same_node(&built[0], &built[1], TIER_MESSAGES) ==
		                      cases[i].messages,
		              "M: %s", cases[i].a);
		for (int k = 0; k < 2; k++) {
			chain_rig_free_built(&built[k]);
			free(text[k]);
		}
	}
}
END_TEST

START_TEST(chain_fifty_tool_choices_share_one_system)
{
	struct chain_rig first = chain_rig_build(
		"{\"system\":\"" PROSE "\",\"tool_choice\":{\"type\":\"auto\"},"
		"\"messages\":[{\"role\":\"user\",\"content\":\"q\"}]}");

	for (int i = 0; i < 50; i++) {
		char *text;
		struct chain_rig built;

		ck_assert_int_gt(
			asprintf(
				&text,
				"{\"system\":\"" PROSE
				"\",\"tool_choice\":{\"type\":\"tool\",\"name\":\"t%d\"},"
				"\"messages\":[{\"role\":\"user\",\"content\":\"q\"}]}",
				i),
			0);
		built = chain_rig_build(text);
		ck_assert(chain_rig_same_node(&first, &built, TIER_SYSTEM));
		ck_assert_uint_eq(built.chain.count, 2);
		chain_rig_free_built(&built);
		free(text);
	}
	chain_rig_free_built(&first);
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

START_TEST(chain_a_shared_document_ends_inside_its_message)
{
	struct chain_rig a =
		chain_rig_build("{\"messages\":[{\"role\":\"user\",\"content\":[" DOC(
			MARK) ",{\"type\":\"text\",\"text\":\"first question\"}]}]}");
	struct chain_rig b = chain_rig_build("{\"messages\":[{\"content\":[" DOC(
		MARK) ",{\"type\":\"text\",\"text\":\"second\"}],\"role\":\"user\"}]}");
	struct part_own own;

	ck_assert(chain_rig_same_node(&a, &b, TIER_MESSAGES));
	ck_assert(chain_rig_segment_is(
		&a, TIER_MESSAGES,
		"\"messages\":[{\"role\":\"user\",\"content\":[" DOC("")));
	ck_assert_uint_eq(chain_rig_node(&a, TIER_MESSAGES)->px.end, PART_BLOCK);
	ck_assert_uint_eq(chain_rig_node(&a, TIER_MESSAGES)->px.role, PART_ROLE_USER);
	ck_assert(chain_rig_node(&a, TIER_MESSAGES)->user_marked);
	ck_assert_int_eq(part_own_read(b.chain.own, &own), 0);
	ck_assert(span_equals(own.own,
	                      SPAN(",{\"type\":\"text\",\"text\":\"second\"}]}]")));
	ck_assert_uint_eq(own.user[TIER_MESSAGES], PART_MARK_PLAIN);
	chain_rig_free_built(&a);
	chain_rig_free_built(&b);
}
END_TEST

START_TEST(chain_a_marker_at_the_end_of_the_question_is_no_boundary)
{
	struct chain_rig a = chain_rig_build("{\"system\":\"" PROSE
	                                     "\",\"messages\":[{\"role\":\"user\","
	                                     "\"content\":[" DOC(MARK) "]}]}");
	/* assistant prefill may follow the final user turn */
	struct chain_rig b = chain_rig_build(
		"{\"system\":\"" PROSE "\",\"messages\":[{\"role\":\"user\","
		"\"content\":[" DOC(MARK) "]},{\"role\":\"assistant\",\"content\":"
					  "[{\"type\":\"text\",\"text\":\"{\"}]}]}");

	ck_assert_ptr_null(chain_rig_node(&a, TIER_MESSAGES));
	ck_assert_ptr_null(chain_rig_node(&b, TIER_MESSAGES));
	chain_rig_free_built(&a);
	chain_rig_free_built(&b);
}
END_TEST

START_TEST(chain_of_many_markers_the_opening_document_wins_over_history)
{
	/* a document, then a conversation with a moving marker */
	struct chain_rig a = chain_rig_build(
		"{\"messages\":[" USER("doc one", MARK) "," SAYS("one") "," USER(
			"more", MARK) "," SAYS("two") "," USER("q", MARK) "]}");
	/* only history is marked: few-shot pairs look the same */
	struct chain_rig b = chain_rig_build("{\"messages\":[" USER("hello", "") "," SAYS(
		"one") "," USER("more", MARK) "," SAYS("two") "," USER("q", MARK) "]}");
	/* two documents in front: the deeper one */
	struct chain_rig c =
		chain_rig_build("{\"messages\":[{\"role\":\"user\",\"content\":[" DOC(
			MARK) "," DOC(MARK) ",{\"type\":\"text\",\"text\":\"q\"}]}]}");

	ck_assert(chain_rig_segment_is(
		&a, TIER_MESSAGES,
		"\"messages\":[{\"role\":\"user\",\"content\":\"doc one\""));
	ck_assert(chain_rig_segment_is(
		&b, TIER_MESSAGES,
		"\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}," SAYS(
			"one") ",{\"role\":\"user\",\"content\":\"more\""));
	ck_assert(chain_rig_segment_is(
		&c, TIER_MESSAGES,
		"\"messages\":[{\"role\":\"user\",\"content\":[" DOC(MARK) "," DOC("")));
	chain_rig_free_built(&a);
	chain_rig_free_built(&b);
	chain_rig_free_built(&c);
}
END_TEST

START_TEST(chain_declared_parts_stop_the_chain_where_they_say)
{
	static const char body[] =
		"{\"tools\":[{\"name\":\"a\"}],\"system\":\"" PROSE
		"\",\"messages\":[" USER("a", MARK) "," SAYS("b") "," USER("c", "") "]}";
	struct chain_rig tools = chain_rig_build_shared(body, CHAIN_SHARED_TOOLS, 0);
	struct chain_rig system = chain_rig_build_shared(body, CHAIN_SHARED_SYSTEM, 0);
	struct chain_rig two = chain_rig_build_shared(body, CHAIN_SHARED_MESSAGES, 2);
	struct chain_rig all = chain_rig_build_shared(body, CHAIN_SHARED_MESSAGES, 3);
	struct chain_rig mark = chain_rig_build_shared(body, CHAIN_SHARED_MARKER, 1);

	ck_assert_uint_eq(tools.chain.count, 1);
	ck_assert_uint_eq(system.chain.count, 2);
	ck_assert(system.chain.node[1].declared);
	ck_assert(system.chain.node[0].declared);
	ck_assert_uint_eq(two.chain.count, 3);
	ck_assert(two.chain.node[2].declared);
	ck_assert_uint_eq(chain_rig_node(&two, TIER_MESSAGES)->px.role,
	                  PART_ROLE_ASSISTANT);
	ck_assert_uint_eq(chain_rig_node(&two, TIER_MESSAGES)->px.end, PART_VALUE);
	ck_assert_uint_eq(all.chain.count, 3);
	ck_assert_str_eq(all.chain.note, "");
	ck_assert(chain_rig_segment_is(
		&all, TIER_MESSAGES,
		",\"messages\":[" USER("a", MARK) "," SAYS(
			"b") ",{\"role\":\"user\",\"content\":\"c\""));
	ck_assert(chain_rig_segment_is(
		&mark, TIER_MESSAGES,
		",\"messages\":[{\"role\":\"user\",\"content\":\"a\""));
	ck_assert(chain_rig_same_node(&system, &two, TIER_SYSTEM));
	chain_rig_free_built(&tools);
	chain_rig_free_built(&system);
	chain_rig_free_built(&two);
	chain_rig_free_built(&all);
	chain_rig_free_built(&mark);
}
END_TEST

START_TEST(chain_a_declaration_needs_only_what_it_names)
{
	struct chain_rig tools = chain_rig_build_shared(
		"{\"tools\":[{\"name\":\"a\"}],\"messages\":[]}", CHAIN_SHARED_TOOLS, 0);
	struct chain_rig system = chain_rig_build_shared(
		"{\"system\":\"s\",\"messages\":[]}", CHAIN_SHARED_SYSTEM, 0);

	ck_assert_str_eq(tools.chain.note, "");
	ck_assert(tools.chain.node[0].declared);
	ck_assert_str_eq(system.chain.note, "");
	ck_assert(system.chain.node[1].declared);
	chain_rig_free_built(&tools);
	chain_rig_free_built(&system);
}
END_TEST

START_TEST(chain_a_declaration_that_names_nothing_is_noted_and_ignored)
{
	static const char body[] =
		"{\"messages\":[" USER("a", MARK) "," SAYS("b") "," USER("c", "") "]}";
	struct chain_rig plain = chain_rig_build(body);
	static const struct chain_shared nothing[] = {
		{ CHAIN_SHARED_TOOLS, 0 },    { CHAIN_SHARED_SYSTEM, 0 },
		{ CHAIN_SHARED_MESSAGES, 4 }, { CHAIN_SHARED_MARKER, 2 },
		{ CHAIN_SHARED_BYTES, 10 },
	};

	ck_assert_str_eq(plain.chain.note, "");
	for (size_t i = 0; i < ARRAY_SIZE(nothing); i++) {
		struct chain_rig built =
			chain_rig_build_shared(body, nothing[i].kind, nothing[i].n);

		ck_assert_str_ne(built.chain.note, "");
		ck_assert(chain_rig_same_node(&plain, &built, TIER_MESSAGES));
		ck_assert(!built.chain.node[1].declared);
		chain_rig_free_built(&built);
	}
	chain_rig_free_built(&plain);
}
END_TEST

START_TEST(chain_remote_tool_lists_end_it_at_the_system)
{
	struct chain_rig built =
		chain_rig_build("{\"mcp_servers\":[{\"url\":\"x\"}],\"system\":\"" PROSE
	                        "\",\"messages\":[{\"role\":\"user\",\"content\":[" DOC(
					MARK) ",{\"type\":\"text\",\"text\":\"q\"}]}]}");

	ck_assert_uint_eq(built.chain.count, 2);
	ck_assert(built.chain.node[0].px.flags & PART_HELD);
	chain_rig_free_built(&built);
}
END_TEST

START_TEST(chain_images_change_messages_only)
{
#define IMAGE "{\"type\":\"image\",\"source\":{\"type\":\"url\",\"url\":\"x\"}}"
#define BODY(tail)             \
	"{\"system\":\"" PROSE \
	"\",\"messages\":[{\"role\":\"user\",\"content\":[" DOC(MARK) "," tail "]}]}"
	struct chain_rig text =
		chain_rig_build(BODY("{\"type\":\"text\",\"text\":\"q\"}"));
	struct chain_rig image =
		chain_rig_build(BODY("{\"type\":\"text\",\"text\":\"q\"}," IMAGE));

	ck_assert(chain_rig_same_node(&text, &image, TIER_SYSTEM));
	ck_assert(!chain_rig_same_node(&text, &image, TIER_MESSAGES));
	ck_assert(chain_rig_node(&image, TIER_MESSAGES)->px.flags & PART_IMAGE);
	chain_rig_free_built(&text);
	chain_rig_free_built(&image);
}
END_TEST

START_TEST(chain_scanned_pages_count_as_images_and_plain_text_does_not)
{
	static const struct {
		const char *block;
		bool image;
	} cases[] = {
		{ "{\"type\":\"document\",\"source\":{\"type\":\"text\",\"data\":\"d\"}}",
		  false },
		{ "{\"type\":\"document\",\"source\":{\"type\":\"content\"}}", false },
		{ "{\"type\":\"document\",\"source\":{\"type\":\"base64\"}}", true },
		{ "{\"type\":\"document\",\"source\":{\"type\":\"file\"}}", true },
		{ "{\"type\":\"tool_result\",\"content\":[{\"type\":\"image\"}]}", true },
		{ "{\"type\":\"tool_result\",\"content\":[{\"type\":\"text\"}]}", false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char body[512];
		struct chain_rig built;

		(void)snprintf(body, sizeof body,
		               "{\"messages\":[" USER("a", MARK) "," SAYS(
				       "b") ",{\"role\":\"user\","
		                            "\"content\":[%s]}]}",
		               cases[i].block);
		built = chain_rig_build(body);
		ck_assert_msg(!!(chain_rig_node(&built, TIER_MESSAGES)->px.flags &
		                 PART_IMAGE) == cases[i].image,
		              "%s", cases[i].block);
		chain_rig_free_built(&built);
	}
}
END_TEST

START_TEST(chain_citations_change_the_system_tier)
{
#define CITE(on)                                                                \
	"{\"type\":\"document\",\"source\":{\"type\":\"text\",\"data\":\"d\"}," \
	"\"citations\":{\"enabled\":" on "}}"
	struct chain_rig off = chain_rig_build("{\"system\":\"" PROSE
	                                       "\",\"messages\":[{\"role\":\"user\","
	                                       "\"content\":[" CITE("false") "]}]}");
	struct chain_rig on = chain_rig_build("{\"system\":\"" PROSE
	                                      "\",\"messages\":[{\"role\":\"user\","
	                                      "\"content\":[" CITE("true") "]}]}");

	ck_assert(chain_rig_same_node(&off, &on, TIER_TOOLS));
	ck_assert(!chain_rig_same_node(&off, &on, TIER_SYSTEM));
	chain_rig_free_built(&off);
	chain_rig_free_built(&on);
}
END_TEST

START_TEST(chain_lifetimes_follow_the_users_markers)
{
	/* an unmarked node before a 1h marker has to live at least as long */
	struct chain_rig hour = chain_rig_build(
		"{\"tools\":[{\"name\":\"a\"}],\"system\":[{\"type\":\"text\","
		"\"text\":\"" PROSE "\"" MARK1 "}],\"messages\":[]}");
	struct chain_rig five = chain_rig_build(
		"{\"tools\":[{\"name\":\"a\"}],\"system\":[{\"type\":\"text\","
		"\"text\":\"" PROSE "\"" MARK "}],\"messages\":[]}");
	struct part_own own;

	ck_assert_uint_eq(chain_rig_node(&hour, TIER_TOOLS)->px.ttl, TTL_1H);
	ck_assert_uint_eq(chain_rig_node(&hour, TIER_SYSTEM)->px.ttl, TTL_1H);
	ck_assert_uint_eq(chain_rig_node(&five, TIER_TOOLS)->px.ttl, TTL_5M);
	ck_assert(!chain_rig_same_node(&hour, &five, TIER_TOOLS));
	ck_assert_int_eq(part_own_read(hour.chain.own, &own), 0);
	ck_assert_uint_eq(own.later[TIER_TOOLS], TTL_1H);
	ck_assert_uint_eq(own.earlier[TIER_TOOLS], TTL_NONE);
	ck_assert_uint_eq(own.later[TIER_SYSTEM], TTL_NONE);
	ck_assert_uint_eq(own.user[TIER_SYSTEM], PART_MARK_1H);
	ck_assert_uint_eq(own.explicit_count, 1);
	chain_rig_free_built(&hour);
	chain_rig_free_built(&five);
}
END_TEST

START_TEST(chain_the_automatic_marker_counts_and_comes_last)
{
	struct chain_rig built =
		chain_rig_build("{\"tools\":[{\"name\":\"a\"}],\"system\":\"" PROSE
	                        "\",\"messages\":[],\"cache_control\":{\"type\":"
	                        "\"ephemeral\",\"ttl\":\"1h\"}}");
	struct part_own own;

	ck_assert_int_eq(part_own_read(built.chain.own, &own), 0);
	ck_assert_uint_eq(own.automatic, TTL_1H);
	ck_assert_uint_eq(own.later[TIER_TOOLS], TTL_1H);
	ck_assert_uint_eq(own.later[TIER_SYSTEM], TTL_1H);
	ck_assert_uint_eq(own.explicit_count, 0);
	ck_assert_uint_eq(chain_rig_node(&built, TIER_SYSTEM)->px.ttl, TTL_1H);
	chain_rig_free_built(&built);
	built = chain_rig_build("{\"system\":\"" PROSE
	                        "\",\"messages\":[],\"cache_control\":null}");
	ck_assert_int_eq(part_own_read(built.chain.own, &own), 0);
	ck_assert_uint_eq(own.automatic, TTL_NONE);
	chain_rig_free_built(&built);
}
END_TEST

START_TEST(chain_any_number_of_markers_is_counted)
{
	struct buffer body = BUFFER_INIT(1 << 20);
	struct chain_rig built;
	struct part_own own;

	(void)buffer_append_text(&body,
	                         "{\"system\":\"" PROSE
	                         "\",\"messages\":[{\"role\":\"user\",\"content\":[");
	for (int i = 0; i < 40; i++)
		(void)buffer_append_format(&body,
		                           "%s{\"type\":\"text\",\"text\":\"t\"" MARK "}",
		                           i ? "," : "");
	(void)buffer_append_text(&body, "]}]}");
	built = chain_rig_build(buffer_text(&body));
	ck_assert_int_eq(part_own_read(built.chain.own, &own), 0);
	ck_assert_uint_eq(own.explicit_count, 40);
	chain_rig_free_built(&built);
	buffer_fini(&body);
}
END_TEST

START_TEST(chain_output_bounds_are_read_where_they_make_sense)
{
	static const struct {
		const char *setting;
		int64_t max_tokens;
	} cases[] = {
		{ "\"max_tokens\":7", 7 },
		{ "\"max_tokens\":7,\"max_completion_tokens\":9", 9 },
		{ "\"max_tokens\":-5", -1 },
		{ "\"max_tokens\":\"7\"", -1 },
		{ "\"max_completion_tokens\":-5,\"max_tokens\":7", 7 },
		{ "\"max_tokens\":null", -1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char body[128];
		struct chain_rig built;

		(void)snprintf(body, sizeof body, "{%s}", cases[i].setting);
		built = chain_rig_build_chat(body);
		ck_assert_msg(built.chain.max_tokens == cases[i].max_tokens, "%s", body);
		chain_rig_free_built(&built);
	}
}
END_TEST

START_TEST(chain_with_all_slots_taken_the_deepest_marker_is_the_boundary)
{
	static const char body[] =
		"{\"tools\":[{\"name\":\"a\"" MARK
		"}],\"system\":[{\"type\":\"text\",\"text\":\"" PROSE "\"" MARK
		"}],\"messages\":[" USER("one", MARK) "," SAYS("x") "," USER(
			"two", "") "," SAYS("y") "," USER("q", MARK) "]}";
	struct chain_rig built = chain_rig_build_shared(body, CHAIN_SHARED_MESSAGES, 3);

	ck_assert(chain_rig_segment_is(
		&built, TIER_MESSAGES,
		",\"messages\":[{\"role\":\"user\",\"content\":\"one\""));
	ck_assert(built.chain.node[2].declared);
	chain_rig_free_built(&built);
}
END_TEST

START_TEST(chain_markers_in_a_form_of_their_own_stay_inside)
{
	struct chain_rig built = chain_rig_build(
		"{\"system\":[{\"type\":\"text\",\"text\":\"" PROSE
		"\",\"cache_control\":{\"type\":\"ephemeral\",\"scope\":\"x\"}}],"
		"\"messages\":[]}");
	const struct chain_node *system = chain_rig_node(&built, TIER_SYSTEM);
	struct part_own own;

	ck_assert(system->px.flags & PART_FIXED);
	ck_assert(system->user_marked);
	ck_assert_uint_eq(system->px.mark_at, PART_NOWHERE);
	ck_assert_int_eq(part_own_read(built.chain.own, &own), 0);
	ck_assert_uint_eq(own.user[TIER_SYSTEM], PART_MARK_NONE);
	chain_rig_free_built(&built);
}
END_TEST

START_TEST(chain_the_marker_goes_to_the_last_block_that_may_have_one)
{
	struct chain_rig tools =
		chain_rig_build("{\"tools\":[{\"name\":\"" PROSE "\"},{\"name\":\"b\","
	                        "\"defer_loading\":true}]}");
	struct chain_rig none = chain_rig_build("{\"tools\":[{\"name\":\"" PROSE
	                                        "\",\"defer_loading\":true}]}");
	struct chain_rig think = chain_rig_build_shared(
		"{\"messages\":[" USER(
			"a", "") ",{\"role\":\"assistant\","
				 "\"content\":[{\"type\":\"text\",\"text\":\"" PROSE
				 "\"},{\"type\":\"thinking\",\"thinking\":\"t\"}]}," USER(
					 "q", "") "]}",
		CHAIN_SHARED_MESSAGES, 2);
	struct chain_rig empty =
		chain_rig_build("{\"system\":[{\"type\":\"text\",\"text\":\"" PROSE
	                        "\"},{\"type\":\"text\",\"text\":\" \"}]}");
	const struct part_px *px = &chain_rig_node(&tools, TIER_TOOLS)->px;

	ck_assert(span_equals((struct span){ px->segment.data + px->mark_at, 3 },
	                      SPAN("},{")));
	ck_assert_uint_eq(chain_rig_node(&none, TIER_TOOLS)->px.mark_at, PART_NOWHERE);
	px = &chain_rig_node(&think, TIER_MESSAGES)->px;
	ck_assert(span_equals((struct span){ px->segment.data + px->mark_at, 22 },
	                      SPAN("},{\"type\":\"thinking\",\"")));
	px = &chain_rig_node(&empty, TIER_SYSTEM)->px;
	ck_assert(span_equals((struct span){ px->segment.data + px->mark_at, 3 },
	                      SPAN("},{")));
	chain_rig_free_built(&tools);
	chain_rig_free_built(&none);
	chain_rig_free_built(&think);
	chain_rig_free_built(&empty);
}
END_TEST

START_TEST(chain_chat_system_messages_are_the_system_tier)
{
	struct chain_rig a = chain_rig_build_chat(
		"{\"model\":\"g\",\"messages\":[{\"role\":\"system\",\"content\":"
		"\"one\"},{\"content\":\"" PROSE "\",\"role\":\"developer\"},"
		"{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"system\","
		"\"content\":\"late\"}],\"tool_choice\":\"auto\"}");
	struct chain_rig b = chain_rig_build_chat(
		"{\"model\":\"g\",\"messages\":[{\"role\":\"system\",\"content\":"
		"[{\"type\":\"text\",\"text\":\"one\"}]},{\"role\":\"developer\","
		"\"content\":\"" PROSE "\"},{\"role\":\"user\",\"content\":\"r\"}],"
		"\"tool_choice\":\"none\"}");
	struct part_own own;

	ck_assert_uint_eq(a.chain.count, 2);
	ck_assert(chain_rig_same_node(&a, &b, TIER_SYSTEM));
	ck_assert(chain_rig_segment_is(
		&a, TIER_SYSTEM,
		",\"messages\":[{\"role\":\"system\",\"content\":\"one\"},"
		"{\"role\":\"developer\",\"content\":\"" PROSE "\""));
	ck_assert_int_eq(part_own_read(a.chain.own, &own), 0);
	ck_assert(span_equals(own.own,
	                      SPAN("},{\"role\":\"user\",\"content\":\"q\"},{\"role\":"
	                           "\"system\",\"content\":\"late\"}]")));
	chain_rig_free_built(&a);
	chain_rig_free_built(&b);
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
		struct chain_rig a = chain_rig_build_chat(cases[i].a),
				 b = chain_rig_build_chat(cases[i].b);

		ck_assert_msg(chain_rig_same_node(&a, &b, TIER_SYSTEM) == cases[i].same,
		              "%s", cases[i].a);
		chain_rig_free_built(&a);
		chain_rig_free_built(&b);
	}
}
END_TEST

START_TEST(chain_chat_knows_what_a_warm_up_could_not_say)
{
#define FORM(form) CHAT("\"response_format\":{\"type\":\"" form "\"}")
#define CHOICE(choice)                                                       \
	"{\"messages\":[{\"role\":\"user\",\"content\":\"" PROSE             \
	"\"},{\"role\":\"user\",\"content\":\"q\"}],\"tool_choice\":" choice \
	",\"tools\":[{\"type\":\"function\"}]}"
	static const struct {
		const char *body;
		enum tier tier;
		uint32_t flag;
		bool set;
	} cases[] = {
		{ FORM("text"), TIER_TOOLS, PART_FORMAT, false },
		{ FORM("json_object"), TIER_TOOLS, PART_FORMAT, true },
		{ CHOICE("\"auto\""), TIER_MESSAGES, PART_FORCED, false },
		{ CHOICE("\"required\""), TIER_MESSAGES, PART_FORCED, true },
		{ CHOICE("{\"type\":\"function\"}"), TIER_MESSAGES, PART_FORCED, true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct chain_shared shared = { CHAIN_SHARED_MESSAGES, 1 };
		struct chain_rig built = chain_rig_build_as(DIALECT_OPENAI_CHAT,
		                                            cases[i].body, NULL, shared);
		const struct chain_node *node = chain_rig_node(&built, cases[i].tier);

		ck_assert_ptr_nonnull(node);
		ck_assert_msg(!!(node->px.flags & cases[i].flag) == cases[i].set, "%s",
		              cases[i].body);
		chain_rig_free_built(&built);
	}
}
END_TEST

START_TEST(chain_answers_of_tools_make_turns)
{
	static const char *const roles[] = { "assistant", "tool", "function" };

	for (size_t i = 0; i < ARRAY_SIZE(roles); i++) {
		char body[4096];
		struct chain_rig built;
		struct part_own own;

		(void)snprintf(body, sizeof body,
		               "{\"messages\":[{\"role\":\"system\",\"content\":\"" PROSE
		               "\"},{\"role\":\"%s\",\"content\":\"a\"},{\"role\":"
		               "\"user\",\"content\":\"q\"}]}",
		               roles[i]);
		built = chain_rig_build_chat(body);
		ck_assert_int_eq(part_own_read(built.chain.own, &own), 0);
		ck_assert_msg(own.turns, "%s", roles[i]);
		chain_rig_free_built(&built);
	}
}
END_TEST

/* It takes one of the provider's places, but no shared part can end inside a result. */
START_TEST(chain_a_marker_inside_a_tool_result_is_counted_and_is_no_boundary)
{
	struct chain_rig built = chain_rig_build(
		"{\"system\":\"" PROSE "\",\"messages\":[{\"role\":\"user\",\"content\":"
		"[{\"type\":\"tool_result\",\"tool_use_id\":\"t\",\"content\":[" DOC(
			MARK) "]},{\"type\":\"text\",\"text\":\"q\"}]}]}");
	struct part_own own;

	ck_assert_ptr_null(chain_rig_node(&built, TIER_MESSAGES));
	ck_assert_int_eq(part_own_read(built.chain.own, &own), 0);
	ck_assert_uint_eq(own.explicit_count, 1);
	chain_rig_free_built(&built);
}
END_TEST

START_TEST(chain_of_an_object_with_very_many_keys_is_none)
{
	for (unsigned keys = 200; keys <= 201; keys++) {
		struct buffer body = BUFFER_INIT(1 << 16);
		struct chain_rig built;

		(void)buffer_append_text(&body, "{\"system\":\"" PROSE "\"");
		for (unsigned i = 1; i < keys; i++)
			(void)buffer_append_format(&body, ",\"k%u\":1", i);
		(void)buffer_append_byte(&body, '}');
		built = chain_rig_build(buffer_text(&body));
		ck_assert_uint_eq(built.chain.opaque,
		                  keys > 200 ? CHAIN_TOO_LARGE : CHAIN_SPLITTABLE);
		chain_rig_free_built(&built);
		buffer_fini(&body);
	}
}
END_TEST

START_TEST(chain_chat_breakpoints_of_the_users_make_no_other_node)
{
#define BREAK ",\"prompt_cache_breakpoint\":{\"mode\":\"explicit\"}"
#define CHAT_SYSTEM(mark)                                                               \
	"{\"messages\":[{\"role\":\"system\",\"content\":[{\"type\":\"text\",\"text\":" \
	"\"" PROSE "\"" mark "}]},{\"role\":\"user\",\"content\":\"q\"}]}"
	struct chain_rig plain = chain_rig_build_chat(CHAT_SYSTEM(""));
	struct chain_rig marked = chain_rig_build_chat(CHAT_SYSTEM(BREAK));
	struct part_own own;

	ck_assert(chain_rig_same_node(&plain, &marked, TIER_SYSTEM));
	ck_assert(marked.chain.node[1].user_marked);
	ck_assert_int_eq(part_own_read(marked.chain.own, &own), 0);
	ck_assert_uint_eq(own.user[TIER_SYSTEM], PART_MARK_BREAKPOINT);
	chain_rig_free_built(&plain);
	chain_rig_free_built(&marked);
}
END_TEST

START_TEST(chain_a_lifetime_nobody_knows_counts_as_the_shortest)
{
	struct chain_rig built = chain_rig_build(
		"{\"system\":[{\"type\":\"text\",\"text\":\"a\",\"cache_control\":"
		"{\"type\":\"ephemeral\",\"ttl\":\"7m\"}},{\"type\":\"text\","
		"\"text\":\"" PROSE "\"}],\"messages\":[]}");
	struct part_own own;

	ck_assert_int_eq(part_own_read(built.chain.own, &own), 0);
	ck_assert_uint_eq(own.earlier[TIER_SYSTEM], TTL_5M);
	ck_assert_uint_eq(own.explicit_count, 1);
	chain_rig_free_built(&built);
}
END_TEST

START_TEST(chain_estimates_count_bytes_from_the_root)
{
	struct chain_rig built = chain_rig_build("{\"model\":\"m\",\"system\":\"" PROSE
	                                         "\",\"messages\":[" USER("q", "") "]}");
	const struct chain_node *tools = chain_rig_node(&built, TIER_TOOLS);
	const struct chain_node *system = chain_rig_node(&built, TIER_SYSTEM);
	struct part_own own;

	ck_assert_uint_eq(tools->tokens, tools->px.segment.len / 4);
	ck_assert_uint_eq(system->px.tokens, system->px.segment.len / 4);
	ck_assert_uint_eq(system->tokens, tools->tokens + system->px.tokens);
	ck_assert_int_eq(part_own_read(built.chain.own, &own), 0);
	ck_assert_uint_eq(built.chain.own_tokens, (own.own.len + own.tail.len) / 4);
	chain_rig_free_built(&built);
}
END_TEST

SUITE_MAIN("chain", chain_a_plain_body_becomes_three_pieces_and_a_tail,
           chain_chat_knows_what_a_warm_up_could_not_say,
           chain_answers_of_tools_make_turns,
           chain_a_marker_inside_a_tool_result_is_counted_and_is_no_boundary,
           chain_of_an_object_with_very_many_keys_is_none, chain_spelling_does_not_matter,
           chain_what_the_model_sees_matters, chain_each_setting_enters_at_its_tier,
           chain_fifty_tool_choices_share_one_system,
           chain_upstream_betas_and_lifetime_enter_at_tools,
           chain_a_shared_document_ends_inside_its_message,
           chain_a_marker_at_the_end_of_the_question_is_no_boundary,
           chain_of_many_markers_the_opening_document_wins_over_history,
           chain_declared_parts_stop_the_chain_where_they_say,
           chain_a_declaration_needs_only_what_it_names,
           chain_a_declaration_that_names_nothing_is_noted_and_ignored,
           chain_remote_tool_lists_end_it_at_the_system,
           chain_images_change_messages_only,
           chain_scanned_pages_count_as_images_and_plain_text_does_not,
           chain_citations_change_the_system_tier,
           chain_lifetimes_follow_the_users_markers,
           chain_the_automatic_marker_counts_and_comes_last,
           chain_any_number_of_markers_is_counted,
           chain_output_bounds_are_read_where_they_make_sense,
           chain_with_all_slots_taken_the_deepest_marker_is_the_boundary,
           chain_markers_in_a_form_of_their_own_stay_inside,
           chain_the_marker_goes_to_the_last_block_that_may_have_one,
           chain_chat_system_messages_are_the_system_tier,
           chain_chat_settings_enter_where_the_provider_renders_them,
           chain_chat_breakpoints_of_the_users_make_no_other_node,
           chain_a_lifetime_nobody_knows_counts_as_the_shortest,
           chain_estimates_count_bytes_from_the_root)
