/* Where the shared part of a request ends, what its own markers and its declaration say
 * of that, and how long each node lives, here in Anthropic's dialect. */
#include "tests/lib/chain_rig.h"
#include "tests/lib/suite.h"

/* --- where it ends ----------------------------------------------------------------- */

START_TEST(chain_a_shared_document_ends_inside_its_message)
{
	struct chain_rig a =
		chain_rig_build("{\"messages\":[{\"role\":\"user\",\"content\":[" DOC(
			MARK) ",{\"type\":\"text\",\"text\":\"first question\"}]}]}");
	struct chain_rig b = chain_rig_build("{\"messages\":[{\"content\":[" DOC(
		MARK) ",{\"type\":\"text\",\"text\":\"second\"}],\"role\":\"user\"}]}");
	struct part_own own = chain_rig_own(&b);

	ck_assert(chain_rig_same_node(&a, &b, TIER_MESSAGES));
	ck_assert(chain_rig_segment_is(
		&a, TIER_MESSAGES,
		"\"messages\":[{\"role\":\"user\",\"content\":[" DOC("")));
	ck_assert_uint_eq(chain_rig_node(&a, TIER_MESSAGES)->px.end, PART_BLOCK);
	ck_assert_uint_eq(chain_rig_node(&a, TIER_MESSAGES)->px.role, PART_ROLE_USER);
	ck_assert(chain_rig_node(&a, TIER_MESSAGES)->user_marked);
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

/* It takes one of the provider's places, but no shared part can end inside a result. */
START_TEST(chain_a_marker_inside_a_tool_result_is_counted_and_is_no_boundary)
{
	struct chain_rig built = chain_rig_build(
		"{\"system\":\"" PROSE "\",\"messages\":[{\"role\":\"user\",\"content\":"
		"[{\"type\":\"tool_result\",\"tool_use_id\":\"t\",\"content\":[" DOC(
			MARK) "]},{\"type\":\"text\",\"text\":\"q\"}]}]}");
	struct part_own own = chain_rig_own(&built);

	ck_assert_ptr_null(chain_rig_node(&built, TIER_MESSAGES));
	ck_assert_uint_eq(own.explicit_count, 1);
	chain_rig_free_built(&built);
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

/* --- declarations ------------------------------------------------------------------ */

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

/* --- markers and lifetimes --------------------------------------------------------- */

START_TEST(chain_lifetimes_follow_the_users_markers)
{
	/* an unmarked node before a 1h marker has to live at least as long */
	struct chain_rig hour = chain_rig_build(
		"{\"tools\":[{\"name\":\"a\"}],\"system\":[{\"type\":\"text\","
		"\"text\":\"" PROSE "\"" MARK1 "}],\"messages\":[]}");
	struct chain_rig five = chain_rig_build(
		"{\"tools\":[{\"name\":\"a\"}],\"system\":[{\"type\":\"text\","
		"\"text\":\"" PROSE "\"" MARK "}],\"messages\":[]}");
	struct part_own own = chain_rig_own(&hour);

	ck_assert_uint_eq(chain_rig_node(&hour, TIER_TOOLS)->px.ttl, TTL_1H);
	ck_assert_uint_eq(chain_rig_node(&hour, TIER_SYSTEM)->px.ttl, TTL_1H);
	ck_assert_uint_eq(chain_rig_node(&five, TIER_TOOLS)->px.ttl, TTL_5M);
	ck_assert(!chain_rig_same_node(&hour, &five, TIER_TOOLS));
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
	struct part_own own = chain_rig_own(&built);

	ck_assert_uint_eq(own.automatic, TTL_1H);
	ck_assert_uint_eq(own.later[TIER_TOOLS], TTL_1H);
	ck_assert_uint_eq(own.later[TIER_SYSTEM], TTL_1H);
	ck_assert_uint_eq(own.explicit_count, 0);
	ck_assert_uint_eq(chain_rig_node(&built, TIER_SYSTEM)->px.ttl, TTL_1H);
	chain_rig_free_built(&built);
	built = chain_rig_build("{\"system\":\"" PROSE
	                        "\",\"messages\":[],\"cache_control\":null}");
	own = chain_rig_own(&built);
	ck_assert_uint_eq(own.automatic, TTL_NONE);
	chain_rig_free_built(&built);
}
END_TEST

START_TEST(chain_a_lifetime_nobody_knows_counts_as_the_shortest)
{
	struct chain_rig built = chain_rig_build(
		"{\"system\":[{\"type\":\"text\",\"text\":\"a\",\"cache_control\":"
		"{\"type\":\"ephemeral\",\"ttl\":\"7m\"}},{\"type\":\"text\","
		"\"text\":\"" PROSE "\"}],\"messages\":[]}");
	struct part_own own = chain_rig_own(&built);

	ck_assert_uint_eq(own.earlier[TIER_SYSTEM], TTL_5M);
	ck_assert_uint_eq(own.explicit_count, 1);
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
	own = chain_rig_own(&built);
	ck_assert_uint_eq(own.explicit_count, 40);
	chain_rig_free_built(&built);
	buffer_fini(&body);
}
END_TEST

START_TEST(chain_markers_in_a_form_of_their_own_stay_inside)
{
	struct chain_rig built = chain_rig_build(
		"{\"system\":[{\"type\":\"text\",\"text\":\"" PROSE
		"\",\"cache_control\":{\"type\":\"ephemeral\",\"scope\":\"x\"}}],"
		"\"messages\":[]}");
	const struct chain_node *system = chain_rig_node(&built, TIER_SYSTEM);
	struct part_own own = chain_rig_own(&built);

	ck_assert(system->px.flags & PART_FIXED);
	ck_assert(system->user_marked);
	ck_assert_uint_eq(system->px.mark_at, PART_NOWHERE);
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

SUITE_MAIN("chain_marker", chain_a_shared_document_ends_inside_its_message,
           chain_a_marker_at_the_end_of_the_question_is_no_boundary,
           chain_of_many_markers_the_opening_document_wins_over_history,
           chain_a_marker_inside_a_tool_result_is_counted_and_is_no_boundary,
           chain_with_all_slots_taken_the_deepest_marker_is_the_boundary,
           chain_declared_parts_stop_the_chain_where_they_say,
           chain_a_declaration_needs_only_what_it_names,
           chain_a_declaration_that_names_nothing_is_noted_and_ignored,
           chain_lifetimes_follow_the_users_markers,
           chain_the_automatic_marker_counts_and_comes_last,
           chain_a_lifetime_nobody_knows_counts_as_the_shortest,
           chain_any_number_of_markers_is_counted,
           chain_markers_in_a_form_of_their_own_stay_inside,
           chain_the_marker_goes_to_the_last_block_that_may_have_one)
