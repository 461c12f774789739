/* How a worker greets, and what it asks for and when. */
#include "tests/lib/agent_rig.h"
#include "tests/lib/suite.h"

static struct rig rig;

START_TEST(agent_greets_with_hello_and_claims_into_all_slots)
{
	struct agent_config config = rig_config(4);

	rig_init(&rig, &config);
	rig_connect(&rig);
	EXPECT_CALLS("hello w p 4 * 30000 - 600000\n");
	EXPECT_COMMANDS("session\n");
	rig_answer(&rig, "[OK 501000 1]");
	EXPECT_CALLS("claim 1 1 0 1 2 3\n");
	EXPECT_COMMANDS("note session 1\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_names_its_predecessor_until_a_greeting_is_answered)
{
	struct agent_config config = rig_config(1);

	config.replaces = 0xabc;
	rig_init(&rig, &config);
	rig_connect(&rig);
	EXPECT_CALLS("hello w p 1 * 30000 0000000000000abc 600000\n");
	rig_lose(&rig);
	rig_connect(&rig);
	EXPECT_CALLS("attach 30000\n");
	rig_answer(&rig, "[GONE]");
	EXPECT_CALLS("hello w p 1 * 30000 0000000000000abc 600000\n");
	rig_answer(&rig, "[OK 501000 1]");
	(void)rig_calls(&rig);
	rig_answer(&rig, "[GONE]");
	EXPECT_CALLS("hello w p 1 * 30000 - 600000\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_waits_before_it_greets_a_redis_without_functions_again)
{
	struct agent_config config = rig_config(1);

	rig_init(&rig, &config);
	rig_connect(&rig);
	(void)rig_calls(&rig);
	rig_answer(&rig, "!ERR Function not found");
	EXPECT_COMMANDS("session\nnote missing 0\n");
	EXPECT_CALLS("");
	rig_pass(&rig, 999);
	EXPECT_CALLS("");
	rig_pass(&rig, 1);
	EXPECT_CALLS("hello w p 1 * 30000 - 600000\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_finishes_at_once_while_it_waits_for_functions)
{
	struct agent_config config = rig_config(1);

	rig_init(&rig, &config);
	rig_connect(&rig);
	rig_answer(&rig, "!ERR Function not found");
	(void)rig_commands(&rig);
	agent_stop(rig.agent, rig.now_ms, 60000);
	rig_step(&rig);
	EXPECT_COMMANDS("finished\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_starts_what_a_claim_gives_in_the_order_of_its_slots)
{
	rig_begin(&rig, 3);
	rig_wake(&rig);
	EXPECT_CALLS("claim 1 4 0 1 2\n");
	rig_answer(&rig, RIG_GIVEN(RIG_RUN("p", "0", "0", "5-1~ 5-2")));
	EXPECT_COMMANDS("start 0 4 5-1\nstart 1 5 5-2\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_asks_again_at_once_when_everything_asked_for_was_given)
{
	rig_begin(&rig, AGENT_BATCH + 2);
	rig_give(&rig, AGENT_BATCH); /* all that one claim asks for */
	ck_assert_uint_eq(rig.tags_count, 1);
	rig_answer(&rig, RIG_NOTHING);
	ck_assert_uint_eq(rig.tags_count, 0);
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_asks_again_at_once_when_told_to_sleep_for_nothing)
{
	rig_begin(&rig, 1);
	rig_wake(&rig);
	EXPECT_CALLS("claim 1 2 0\n");
	rig_answer(&rig, "=OK 501000 0\n\n\n");
	EXPECT_CALLS("claim 1 3 0\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_does_not_ask_before_it_is_told_to)
{
	rig_begin(&rig, 1);
	rig_wake(&rig);
	rig_answer(&rig, "=OK 501000 8000\n\n\n");
	(void)rig_calls(&rig);
	rig_pass(&rig, 5999);
	EXPECT_CALLS("");
	rig_pass(&rig, 4001);
	EXPECT_CALLS("claim 1 3 0\n");
	rig_fini(&rig);
}
END_TEST

/* A pace of 32 and jobs that the provider refuses at once were 32 jobs a second. */
START_TEST(agent_asks_again_at_once_when_a_job_fails)
{
	static const struct {
		enum agent_end end;
		const char *answer;
		bool asks;
	} cases[] = {
		{ AGENT_RETRY, "[OK 501000 later]", true },
		{ AGENT_FATAL, "[OK 501000 dead]", true },
		{ AGENT_DEFER, "[OK 501000 back]", false },
		{ AGENT_UNSENT, "[OK 501000 back 0]", false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *calls;

		rig_begin(&rig, 3);
		rig_give(&rig, 2);
		rig_send(&rig, 0);
		rig_end(&rig, 0, cases[i].end, 77);
		(void)rig_calls(&rig);
		rig_answer(&rig, cases[i].answer);
		calls = rig_calls(&rig);
		ck_assert_msg(!!strstr(calls, "claim") == cases[i].asks, "%zu: %s", i,
		              calls);
		rig_fini(&rig);
	}
}
END_TEST

START_TEST(agent_polls_about_every_second)
{
	rig_begin(&rig, 1);
	for (int i = 0; i < 5; i++) {
		rig_pass(&rig, 749);
		EXPECT_CALLS("");
		rig_pass(&rig, 502);
		ck_assert_uint_eq(rig.tags_count, 1);
		(void)rig_calls(&rig);
		rig_answer(&rig, RIG_NOTHING);
	}
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_has_one_claim_for_wake_ups_in_flight)
{
	rig_begin(&rig, 2);
	rig_wake(&rig);
	rig_wake(&rig);
	rig_wake(&rig);
	EXPECT_CALLS("claim 1 3 0 1\n");
	rig_answer(&rig, RIG_NOTHING);
	EXPECT_CALLS("claim 1 5 0 1\n"); /* what was heard meanwhile */
	rig_answer(&rig, RIG_NOTHING);
	EXPECT_CALLS("");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_gives_back_what_it_cannot_run)
{
	rig_begin(&rig, 1);
	rig_wake(&rig);
	(void)rig_calls(&rig);
	rig_answer(&rig, RIG_GIVEN(RIG_RUN("p", "0", "0", "nonsense")));
	EXPECT_CALLS("release 1 0 2 0\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_reads_the_table_when_a_slot_is_refused)
{
	rig_begin(&rig, 2);
	rig_wake(&rig);
	(void)rig_calls(&rig);
	rig_answer(&rig, "=OK 501000 1000\n0 9|x\n\n" RIG_RUN("p", "0", "0", "5-1"));
	EXPECT_CALLS("attach 30000\n");
	EXPECT_COMMANDS("");
	rig_answer(&rig, "[OK 501000 2 " RIG_LEASE("0", "9", "4-4")
	                         RIG_LEASE("1", "4", "5-1") "]");
	EXPECT_CALLS("release 2 0 9 1\n");
	EXPECT_COMMANDS("start 1 4 5-1\nnote unknown 0\n");
	rig_fini(&rig);
}
END_TEST

SUITE_MAIN("agent", agent_greets_with_hello_and_claims_into_all_slots,
           agent_names_its_predecessor_until_a_greeting_is_answered,
           agent_waits_before_it_greets_a_redis_without_functions_again,
           agent_finishes_at_once_while_it_waits_for_functions,
           agent_starts_what_a_claim_gives_in_the_order_of_its_slots,
           agent_asks_again_at_once_when_everything_asked_for_was_given,
           agent_asks_again_at_once_when_told_to_sleep_for_nothing,
           agent_does_not_ask_before_it_is_told_to,
           agent_asks_again_at_once_when_a_job_fails, agent_polls_about_every_second,
           agent_has_one_claim_for_wake_ups_in_flight,
           agent_gives_back_what_it_cannot_run,
           agent_reads_the_table_when_a_slot_is_refused)
