/* Results whose lease is gone, of this process and of an earlier one, and the spool. */
#include "tests/lib/agent_rig.h"
#include "tests/lib/suite.h"

static struct rig rig;

/* Results that an earlier process left on disk. */
static void
leave(uint32_t count)
{
	for (uint32_t i = 1; i <= count; i++) {
		struct agent_late late = { .handle = i,
			                   .id = SPAN("3-1"),
			                   .result = SPAN("R"),
			                   .reply = SPAN("box"),
			                   .result_ttl_ms = 5 };

		agent_late(rig.agent, rig.now_ms, &late);
	}
}

/* A worker with one slot, in the place of one that has left a result. */
static void
succeed(void)
{
	struct agent_config config = rig_config(1);

	config.replaces = 0xabc;
	rig_init(&rig, &config);
	leave(1);
}

static size_t
count_of(const char *text, const char *part)
{
	size_t count = 0;

	for (; (text = strstr(text, part)) != NULL; text++)
		count++;
	return count;
}

START_TEST(agent_offers_results_of_its_own_that_are_late_once_a_second)
{
	rig_begin_busy(&rig, 3);
	rig_reconnect(&rig);
	rig_answer(&rig, "[OK 501000 2]");
	rig_end(&rig, 0, AGENT_DONE, 77);
	ck_assert_ptr_nonnull(strstr(rig_calls(&rig), "settle_late usage 1-1 - 0 {} "));
	rig_answer(&rig, "[OK 501000 OK]");
	rig_end(&rig, 1, AGENT_DONE, 78);
	rig_end(&rig, 2, AGENT_DONE, 79);
	ck_assert_uint_eq(count_of(rig_calls(&rig), "settle_late"), 0);
	rig_pass(&rig, 1000);
	ck_assert_ptr_nonnull(strstr(rig_calls(&rig), "settle_late usage 1-2 - 0 {} "));
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_offers_batch_behind_batch_what_an_earlier_process_left_before_it_claims)
{
	struct agent_config config = rig_config(90);
	static const size_t batches[] = { 40, 40, 15 };

	rig_init(&rig, &config);
	leave(95);
	rig_connect(&rig);
	(void)rig_calls(&rig);
	rig_answer(&rig, "[OK 501000 1]");
	for (size_t i = 0; i < ARRAY_SIZE(batches); i++) {
		const char *calls = rig_calls(&rig);

		ck_assert_uint_eq(count_of(calls, "settle_late"), 1);
		ck_assert_uint_eq(count_of(calls, "3-1 box 5 R"), batches[i]);
		ck_assert_ptr_null(strstr(calls, "claim"));
		rig_answer(&rig, "[OK 501000 OK]");
	}
	ck_assert_ptr_nonnull(strstr(rig_calls(&rig), "claim 1 1 0"));
	rig_fini(&rig);
}
END_TEST

/* It hands the leases of the dead process back, and others would claim what is done. */
START_TEST(agent_offers_what_its_predecessor_left_before_it_says_hello)
{
	succeed();
	agent_late_more(rig.agent, rig.now_ms, true);
	rig_connect(&rig);
	EXPECT_CALLS("settle_late of 0000000000000abc usage 3-1 box 5 R - -\n");
	rig_answer(&rig, "[OK 501000 OK]");
	EXPECT_CALLS(""); /* the shell has to say what else there is */
	leave(1);
	agent_late_more(rig.agent, rig.now_ms, false);
	rig_step(&rig);
	EXPECT_CALLS("settle_late of 0000000000000abc usage 3-1 box 5 R - -\n");
	rig_answer(&rig, "[OK 501000 FENCED]");
	EXPECT_CALLS("hello w p 1 * 30000 0000000000000abc 600000\n");
	rig_answer(&rig, "[OK 501000 1]");
	EXPECT_CALLS("claim 1 1 0\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_says_hello_first_to_functions_that_know_no_better)
{
	succeed();
	rig_connect(&rig);
	(void)rig_calls(&rig);
	rig_answer(&rig, "!ERR warmq settle_late: id: expected a job id, got of");
	rig_pass(&rig, 1000);
	EXPECT_CALLS("hello w p 1 * 30000 0000000000000abc 600000\n");
	rig_answer(&rig, "[OK 501000 1]");
	EXPECT_CALLS("settle_late usage 3-1 box 5 R - -\n");
	rig_answer(&rig, "[OK 501000 OK]");
	EXPECT_CALLS("claim 1 1 0\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_offers_to_its_predecessors_session_again_after_a_loss)
{
	succeed();
	rig_connect(&rig);
	(void)rig_calls(&rig);
	rig_lose(&rig);
	rig_connect(&rig);
	EXPECT_CALLS("settle_late of 0000000000000abc usage 3-1 box 5 R - -\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_claims_nothing_while_more_of_an_earlier_process_is_to_come)
{
	rig_begin(&rig, 1);
	agent_late_more(rig.agent, rig.now_ms, true);
	rig_wake(&rig);
	EXPECT_CALLS("");
	leave(1);
	agent_late_more(rig.agent, rig.now_ms, false);
	rig_step(&rig);
	EXPECT_CALLS("settle_late usage 3-1 box 5 R - -\n");
	rig_answer(&rig, "[OK 501000 FENCED]");
	EXPECT_CALLS("claim 1 2 0\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_offers_late_results_again_after_a_loss)
{
	struct agent_late late = { .handle = 1, .id = SPAN("3-1"), .result = SPAN("R") };

	rig_begin(&rig, 1);
	agent_late(rig.agent, rig.now_ms, &late);
	rig_step(&rig);
	rig_reconnect(&rig);
	rig_answer(&rig, "[OK 501000 2]");
	EXPECT_CALLS("settle_late usage 3-1 - 0 R - -\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_spools_paid_results_that_it_cannot_deliver_for_a_second)
{
	rig_begin(&rig, 2);
	rig_give(&rig, 2);
	rig_send(&rig, 0);
	rig_send(&rig, 1);
	rig_lose(&rig);
	rig_end(&rig, 0, AGENT_DONE, 77);
	rig_end(&rig, 1, AGENT_FATAL, 78);
	rig_pass(&rig, 999);
	EXPECT_COMMANDS("");
	rig_pass(&rig, 260);
	EXPECT_COMMANDS("spool 77\n"); /* failures are not paid for */
	rig_pass(&rig, 5000);
	EXPECT_COMMANDS("");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_claims_nothing_while_late_results_pile_up)
{
	rig_begin(&rig, 1);
	while (agent_late_room(rig.agent))
		leave(1);
	rig_wake(&rig);
	for (int batch = 0; batch < 2; batch++) {
		ck_assert_ptr_null(strstr(rig_calls(&rig), "claim"));
		rig_answer(&rig, "[OK 501000 FENCED]");
	}
	EXPECT_CALLS("claim 1 2 0\n");
	rig_fini(&rig);
}
END_TEST

SUITE_MAIN("agent_late", agent_offers_results_of_its_own_that_are_late_once_a_second,
           agent_offers_batch_behind_batch_what_an_earlier_process_left_before_it_claims,
           agent_offers_what_its_predecessor_left_before_it_says_hello,
           agent_says_hello_first_to_functions_that_know_no_better,
           agent_offers_to_its_predecessors_session_again_after_a_loss,
           agent_claims_nothing_while_more_of_an_earlier_process_is_to_come,
           agent_offers_late_results_again_after_a_loss,
           agent_spools_paid_results_that_it_cannot_deliver_for_a_second,
           agent_claims_nothing_while_late_results_pile_up)
