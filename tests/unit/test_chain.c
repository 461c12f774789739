/* Which requests share a node: the bytes of its segment, and the settings that enter at
 * its tier, here in Anthropic's dialect. */
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
	struct part_own own = chain_rig_own(&built);

	ck_assert_uint_eq(built.chain.count, 2);
	ck_assert(built.chain.split);
	ck_assert(chain_rig_segment_is(&built, TIER_TOOLS,
	                               "{\"model\":\"m\",\"tools\":[{\"name\":\"a\"}]"));
	ck_assert(chain_rig_segment_is(&built, TIER_SYSTEM, ",\"system\":\"" PROSE "\""));
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

START_TEST(chain_estimates_count_bytes_from_the_root)
{
	struct chain_rig built = chain_rig_build("{\"model\":\"m\",\"system\":\"" PROSE
	                                         "\",\"messages\":[" USER("q", "") "]}");
	const struct chain_node *tools = chain_rig_node(&built, TIER_TOOLS);
	const struct chain_node *system = chain_rig_node(&built, TIER_SYSTEM);
	struct part_own own = chain_rig_own(&built);

	ck_assert_uint_eq(tools->tokens, tools->px.segment.len / 4);
	ck_assert_uint_eq(system->px.tokens, system->px.segment.len / 4);
	ck_assert_uint_eq(system->tokens, tools->tokens + system->px.tokens);
	ck_assert_uint_eq(built.chain.own_tokens, (own.own.len + own.tail.len) / 4);
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

SUITE_MAIN("chain", chain_a_plain_body_becomes_three_pieces_and_a_tail,
           chain_estimates_count_bytes_from_the_root, chain_spelling_does_not_matter,
           chain_what_the_model_sees_matters, chain_each_setting_enters_at_its_tier,
           chain_fifty_tool_choices_share_one_system,
           chain_upstream_betas_and_lifetime_enter_at_tools,
           chain_images_change_messages_only,
           chain_scanned_pages_count_as_images_and_plain_text_does_not,
           chain_citations_change_the_system_tier,
           chain_remote_tool_lists_end_it_at_the_system,
           chain_of_an_object_with_very_many_keys_is_none)
