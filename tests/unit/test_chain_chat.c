/* Chains in OpenAI's chat dialect: system messages that stand among the others, settings,
 * and breakpoints. */
#include "tests/lib/chain_rig.h"
#include "tests/lib/suite.h"

#include <stdio.h>

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
	struct part_own own = chain_rig_own(&a);

	ck_assert_uint_eq(a.chain.count, 2);
	ck_assert(chain_rig_same_node(&a, &b, TIER_SYSTEM));
	ck_assert(chain_rig_segment_is(
		&a, TIER_SYSTEM,
		",\"messages\":[{\"role\":\"system\",\"content\":\"one\"},"
		"{\"role\":\"developer\",\"content\":\"" PROSE "\""));
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
		own = chain_rig_own(&built);
		ck_assert_msg(own.turns, "%s", roles[i]);
		chain_rig_free_built(&built);
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
	struct part_own own = chain_rig_own(&marked);

	ck_assert(chain_rig_same_node(&plain, &marked, TIER_SYSTEM));
	ck_assert(marked.chain.node[1].user_marked);
	ck_assert_uint_eq(own.user[TIER_SYSTEM], PART_MARK_BREAKPOINT);
	chain_rig_free_built(&plain);
	chain_rig_free_built(&marked);
}
END_TEST

SUITE_MAIN("chain_chat", chain_chat_system_messages_are_the_system_tier,
           chain_chat_settings_enter_where_the_provider_renders_them,
           chain_chat_knows_what_a_warm_up_could_not_say,
           chain_output_bounds_are_read_where_they_make_sense,
           chain_answers_of_tools_make_turns,
           chain_chat_breakpoints_of_the_users_make_no_other_node)
