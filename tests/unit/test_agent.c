#include "tests/lib/agent_rig.h"
#include "tests/lib/suite.h"

#include <stdio.h>

#define LEASE(slot, q, id) \
	"[" slot " " q "|" RIG_FAMILY "|" RIG_LANE "|" id "|p|0|0,0|0|1|n]"
#define RUN(role, begin, leader, ids) \
	RIG_LANE " " RIG_FAMILY " " role " 1 - 0 " begin " " leader " 0 " ids
#define TICKET(leader) RUN("t", "1", leader, "w:" RIG_LANE ":1")
#define NOTHING        "=OK 501000 1000\n\n\n"

static struct rig rig;

/* Claims one run as written into the first free slots. */
static void
give(const char *run)
{
	static char answer[4096];

	agent_wake(rig.agent, rig.now_ms);
	rig_step(&rig);
	(void)snprintf(answer, sizeof answer, "=OK 501000 1000\n\n\n%s", run);
	rig_answer(&rig, answer);
	(void)rig_calls(&rig);
	(void)rig_commands(&rig);
}

/* Time passes; every claim is answered at once, and finds nothing. */
static void
idle(uint64_t ms)
{
	for (; ms > 0; ms -= 10) {
		rig_pass(&rig, 10);
		while (rig.tags_count > 0)
			rig_answer(&rig, "=OK 501000 60000\n\n\n");
	}
	(void)rig_calls(&rig);
}

/* ---- greeting and claims --------------------------------------------------------- */

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
	agent_wake(rig.agent, rig.now_ms);
	rig_step(&rig);
	EXPECT_CALLS("claim 1 4 0 1 2\n");
	rig_answer(&rig, "=OK 501000 1000\n\n\n" RUN("p", "0", "0", "5-1~ 5-2"));
	EXPECT_COMMANDS("start 0 4 5-1\nstart 1 5 5-2\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_asks_again_at_once_when_everything_asked_for_was_given)
{
	rig_begin(&rig, AGENT_BATCH + 2);
	rig_give(&rig, AGENT_BATCH); /* all that one claim asks for */
	ck_assert_uint_eq(rig.tags_count, 1);
	rig_answer(&rig, NOTHING);
	ck_assert_uint_eq(rig.tags_count, 0);
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_asks_again_at_once_when_told_to_sleep_for_nothing)
{
	rig_begin(&rig, 1);
	agent_wake(rig.agent, rig.now_ms);
	rig_step(&rig);
	EXPECT_CALLS("claim 1 2 0\n");
	rig_answer(&rig, "=OK 501000 0\n\n\n");
	EXPECT_CALLS("claim 1 3 0\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_does_not_ask_before_it_is_told_to)
{
	rig_begin(&rig, 1);
	agent_wake(rig.agent, rig.now_ms);
	rig_step(&rig);
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
		rig_answer(&rig, NOTHING);
	}
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_has_one_claim_for_wake_ups_in_flight)
{
	rig_begin(&rig, 2);
	agent_wake(rig.agent, rig.now_ms);
	rig_step(&rig);
	agent_wake(rig.agent, rig.now_ms);
	rig_step(&rig);
	agent_wake(rig.agent, rig.now_ms);
	rig_step(&rig);
	EXPECT_CALLS("claim 1 3 0 1\n");
	rig_answer(&rig, NOTHING);
	EXPECT_CALLS("claim 1 5 0 1\n"); /* what was heard meanwhile */
	rig_answer(&rig, NOTHING);
	EXPECT_CALLS("");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_gives_back_what_it_cannot_run)
{
	rig_begin(&rig, 1);
	agent_wake(rig.agent, rig.now_ms);
	rig_step(&rig);
	(void)rig_calls(&rig);
	rig_answer(&rig, "=OK 501000 1000\n\n\n" RUN("p", "0", "0", "nonsense"));
	EXPECT_CALLS("release 1 0 2 0\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_reads_the_table_when_a_slot_is_refused)
{
	rig_begin(&rig, 2);
	agent_wake(rig.agent, rig.now_ms);
	rig_step(&rig);
	(void)rig_calls(&rig);
	rig_answer(&rig, "=OK 501000 1000\n0 9|x\n\n" RUN("p", "0", "0", "5-1"));
	EXPECT_CALLS("attach 30000\n");
	EXPECT_COMMANDS("");
	rig_answer(&rig,
	           "[OK 501000 2 " LEASE("0", "9", "4-4") LEASE("1", "4", "5-1") "]");
	EXPECT_CALLS("release 2 0 9 1\n");
	EXPECT_COMMANDS("start 1 4 5-1\nnote unknown 0\n");
	rig_fini(&rig);
}
END_TEST

/* ---- settle and fail ------------------------------------------------------------- */

START_TEST(agent_settles_and_claims_in_one_call_what_ended_in_one_turn)
{
	rig_begin(&rig, 3);
	rig_give(&rig, 3);
	for (uint32_t slot = 0; slot < 3; slot++)
		rig_send(&rig, slot);
	for (uint32_t slot = 0; slot < 3; slot++)
		rig_end_only(&rig, slot, AGENT_DONE, 0);
	rig_step(&rig);
	EXPECT_CALLS("settle 1 =3 0 4 " RIG_NONE " - 0 {} 1 5 " RIG_NONE
	             " - 0 {} 2 6 " RIG_NONE " - 0 {} 7\n");
	rig_answer(&rig, "=OK 501000 1000\n\n\n" RUN("p", "0", "0", "2-1 2-2"));
	EXPECT_COMMANDS("start 0 7 2-1\nstart 1 8 2-2\n");
	EXPECT_CALLS("");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_names_its_slots_if_others_are_free_and_it_is_time_to_ask)
{
	rig_begin(&rig, 2);
	rig_give(&rig, 1);
	rig_send(&rig, 0);
	agent_wake(rig.agent, rig.now_ms);
	rig_end(&rig, 0, AGENT_DONE, 0);
	EXPECT_CALLS("settle 1 1 0 3 " RIG_NONE " - 0 {} 5 0 1\n");
	rig_answer(&rig, "=OK 501000 1000\n\n\n" RUN("p", "0", "0", "2-1 2-2"));
	EXPECT_COMMANDS("start 0 5 2-1\nstart 1 6 2-2\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_settles_no_more_than_a_batch_in_one_call)
{
	rig_begin(&rig, AGENT_BATCH + 10);
	rig_give(&rig, AGENT_BATCH);
	rig_answer(&rig, NOTHING);
	rig_give(&rig, 10);
	for (uint32_t slot = 0; slot < AGENT_BATCH + 10; slot++)
		rig_send(&rig, slot);
	for (uint32_t slot = 0; slot < AGENT_BATCH + 10; slot++)
		rig_end_only(&rig, slot, AGENT_DONE, 0);
	rig_step(&rig);
	ck_assert_uint_eq(rig.tags_count, 2);
	ck_assert_ptr_nonnull(strstr(rig_calls(&rig), "\nsettle 1 =10 50 "));
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_keeps_a_settled_result_for_ten_seconds)
{
	rig_begin(&rig, 1);
	rig_give(&rig, 1);
	rig_send(&rig, 0);
	rig_end(&rig, 0, AGENT_DONE, 77);
	rig_answer(&rig, "=OK 501000 9000\n\n\n" RUN("p", "0", "0", "2-1"));
	(void)rig_commands(&rig);
	rig_pass(&rig, 9999);
	EXPECT_COMMANDS("");
	rig_pass(&rig, 1);
	EXPECT_COMMANDS("drop 77\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_keeps_no_more_results_than_it_may)
{
	struct agent_config config = rig_config(3);

	config.kept_max = 2;
	rig_init(&rig, &config);
	rig_greet(&rig);
	rig_give(&rig, 3);
	for (uint32_t slot = 0; slot < 3; slot++)
		rig_send(&rig, slot);
	for (uint32_t slot = 0; slot < 3; slot++)
		rig_end_only(&rig, slot, AGENT_DONE, 10 + slot);
	rig_step(&rig);
	rig_answer(&rig, "=OK 501000 9000\n\n\n");
	EXPECT_COMMANDS("drop 10\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_offers_a_result_late_when_its_lease_has_gone_meanwhile)
{
	rig_begin(&rig, 1);
	rig_give(&rig, 1);
	rig_send(&rig, 0);
	rig_end(&rig, 0, AGENT_DONE, 77);
	(void)rig_calls(&rig);
	rig_answer(&rig, "=OK 501000 9000\n\n0 TOKEN -\n");
	EXPECT_CALLS("settle_late usage 1-1 - 0 {} " RIG_PAID("") "\n");
	rig_answer(&rig, "[OK 501000 OK]");
	EXPECT_COMMANDS("drop 77\nnote accepted 77\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_says_what_a_stopped_request_may_have_cost)
{
	struct agent_outcome outcome = { .end = AGENT_STOPPED };

	rig_begin(&rig, 1);
	rig_give(&rig, 1);
	rig_send(&rig, 0);
	agent_stop(rig.agent, rig.now_ms, 0);
	rig_step(&rig);
	(void)rig_calls(&rig);
	outcome.usage = protocol_usage_none();
	outcome.usage.read = 30000;
	outcome.usage.uncached = 20;
	outcome.usage.may_bill = 1;
	agent_ended(rig.agent, rig.now_ms, 0, rig.run_q[0], &outcome);
	rig_step(&rig);
	EXPECT_CALLS("release 1 0 2 1 - - 30000 - 20 - b=1\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_throws_away_the_result_of_a_cancelled_job)
{
	rig_begin(&rig, 1);
	rig_give(&rig, 1);
	rig_send(&rig, 0);
	rig_end(&rig, 0, AGENT_DONE, 77);
	(void)rig_calls(&rig);
	rig_answer(&rig, "=OK 501000 9000\n\n0 ENDED -\n" RUN("p", "0", "0", "2-1"));
	EXPECT_COMMANDS("start 0 3 2-1\ndrop 77\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_doubles_the_back_off_of_failures_up_to_a_bound)
{
	struct agent_outcome outcome = {
		.end = AGENT_RETRY,
		.attempts_max = 9,
		.usage = protocol_usage_none(),
		.reason = SPAN("http_500"),
		.text = SPAN("what"),
	};
	uint64_t expected[] = { 500, 1000, 2000, 4000, 8000, 16000, 30000, 30000 };

	for (uint32_t i = 0; i < ARRAY_SIZE(expected); i++) {
		unsigned long long delay_ms;

		rig_begin(&rig, 1);
		rig_give(&rig, 1);
		rig_send(&rig, 0);
		outcome.attempts = i;
		agent_ended(rig.agent, rig.now_ms, 0, rig.run_q[0], &outcome);
		rig_step(&rig);
		ck_assert_int_eq(sscanf(rig_calls(&rig),
		                        "fail 1 0 2 retry 9 %llu 0 http_500 what",
		                        &delay_ms),
		                 1);
		ck_assert_uint_le(delay_ms, expected[i]);
		ck_assert_uint_ge(delay_ms, expected[i] * 3 / 4);
		rig_fini(&rig);
	}
}
END_TEST

START_TEST(agent_waits_longer_than_its_back_off_if_the_provider_says_so)
{
	struct agent_outcome outcome = {
		.end = AGENT_RETRY,
		.attempts_max = 3,
		.delay_ms = 7000,
		.usage = protocol_usage_none(),
		.reason = SPAN("r"),
		.text = SPAN("t"),
	};

	rig_begin(&rig, 1);
	rig_give(&rig, 1);
	rig_send(&rig, 0);
	agent_ended(rig.agent, rig.now_ms, 0, rig.run_q[0], &outcome);
	rig_step(&rig);
	EXPECT_CALLS("fail 1 0 2 retry 3 7000 0 r t " RIG_NONE " - 0 -\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_parks_the_account_when_a_job_is_deferred)
{
	struct agent_outcome outcome = {
		.end = AGENT_DEFER,
		.attempts_max = 3,
		.park_ms = 2000,
		.usage = protocol_usage_none(),
		.reason = SPAN("rate_limit"),
		.text = SPAN("t"),
	};

	rig_begin(&rig, 1);
	rig_give(&rig, 1);
	rig_send(&rig, 0);
	agent_ended(rig.agent, rig.now_ms, 0, rig.run_q[0], &outcome);
	rig_step(&rig);
	EXPECT_CALLS("fail 1 0 2 defer 3 0 2000 rate_limit t " RIG_NONE " - 0 -\n");
	rig_answer(&rig, "[OK 501000 back]");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_gives_usage_in_the_time_of_redis)
{
	struct agent_outcome outcome = { .end = AGENT_DONE, .result = SPAN("{}") };

	rig_begin(&rig, 1);
	rig_give(&rig, 1);
	rig_send(&rig, 0);
	outcome.usage = protocol_usage_none();
	outcome.usage.sent_ms = 1010;
	outcome.usage.first_ms = 1020;
	outcome.usage.read = 5;
	outcome.usage.written = 0;
	rig.now_ms = 1030;
	agent_ended(rig.agent, rig.now_ms, 0, rig.run_q[0], &outcome);
	rig_step(&rig);
	EXPECT_CALLS("settle 1 =1 0 2 501010 501020 5 0 - - - 0 {} 3\n");
	rig_fini(&rig);
}
END_TEST

/* ---- beats and fences ------------------------------------------------------------ */

START_TEST(agent_beats_every_ten_seconds_with_its_busy_slots)
{
	rig_begin(&rig, 2);
	rig_give(&rig, 2);
	rig_pass(&rig, 9999);
	EXPECT_CALLS("");
	rig_pass(&rig, 1);
	EXPECT_CALLS("beat 1 2 30000\n");
	rig_answer(&rig, "[OK 511000 on]");
	rig_pass(&rig, 10000);
	EXPECT_CALLS("beat 1 2 30000\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_beats_at_a_moment_without_calls)
{
	rig_begin(&rig, 2);
	rig_give(&rig, 1);
	idle(9950);
	agent_wake(rig.agent, rig.now_ms);
	rig_step(&rig);
	EXPECT_CALLS("claim 1 6 1\n");
	rig_pass(&rig, 60);
	agent_wake(rig.agent, rig.now_ms);
	EXPECT_CALLS(""); /* due, and held back */
	rig_answer(&rig, "=OK 501000 1000\n\n\n" RUN("p", "0", "0", "5-5"));
	EXPECT_CALLS("beat 1 2 30000\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_beats_anyway_when_no_quiet_moment_comes)
{
	rig_begin(&rig, 2);
	rig_give(&rig, 1);
	idle(9950);
	agent_wake(rig.agent, rig.now_ms);
	rig_step(&rig);
	(void)rig_calls(&rig);
	rig_pass(&rig, 149);
	EXPECT_CALLS("");
	rig_pass(&rig, 1);
	EXPECT_CALLS("beat 1 1 30000\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_reads_the_table_when_a_beat_says_so)
{
	rig_begin(&rig, 1);
	rig_give(&rig, 1);
	rig_pass(&rig, 10000);
	(void)rig_calls(&rig);
	rig_answer(&rig, "[REATTACH]");
	EXPECT_CALLS("attach 30000\n");
	rig_answer(&rig, "[OK 501000 2 " LEASE("0", "2", "1-1") "]");
	EXPECT_COMMANDS("");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_stops_jobs_that_a_beat_names_and_gives_them_back)
{
	rig_begin(&rig, 2);
	rig_give(&rig, 2);
	rig_send(&rig, 1);
	rig_pass(&rig, 10000);
	(void)rig_calls(&rig);
	rig_answer(&rig, "[OK 511000 on 1]");
	EXPECT_COMMANDS("abort 1 4\nnote ended 1\n");
	EXPECT_CALLS("");
	rig_end(&rig, 1, AGENT_STOPPED, 0);
	EXPECT_CALLS("release 1 1 4 1\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_stops_leaders_when_its_lease_may_end_and_claims_nothing)
{
	rig_begin(&rig, 4);
	give(TICKET("0"));
	give(RUN("l", "1", "0", "5-1"));
	give(RUN("c", "1", "0", "5-2"));
	give(RUN("p", "0", "0", "5-3"));
	for (uint32_t slot = 0; slot < 4; slot++)
		rig_send(&rig, slot);
	rig_lose(&rig);
	rig_pass(&rig, 24999);
	EXPECT_COMMANDS("");
	rig_pass(&rig, 1);
	EXPECT_COMMANDS("abort 0 5\nabort 1 9\nabort 2 12\nnote fenced 25000\n");
	rig_end(&rig, 2, AGENT_STOPPED, 0);
	rig_connect(&rig);
	(void)rig_calls(&rig);
	rig_answer(&rig, "[OK 526000 2 " LEASE("1", "9", "5-1") LEASE("2", "12", "5-2")
	                         LEASE("3", "14", "5-3") "]");
	EXPECT_CALLS("release 2 2 12 1\n"); /* the fence is lifted, the others run on */
	EXPECT_COMMANDS("");
	rig_fini(&rig);
}
END_TEST

/* Its connection has seen nothing of it, and others may have its jobs by now. */
START_TEST(agent_whose_loop_hung_claims_nothing_before_it_has_beaten)
{
	rig_begin(&rig, 2);
	rig.now_ms += 26000;
	agent_wake(rig.agent, rig.now_ms);
	rig_step(&rig);
	EXPECT_CALLS("beat 1 0 30000\n");
	EXPECT_COMMANDS("note fenced 26000\n");
	rig_answer(&rig, "[OK 527000 on]");
	EXPECT_CALLS("claim 1 3 0 1\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_is_not_fenced_before_it_had_a_session)
{
	struct agent_config config = rig_config(1);

	rig_init(&rig, &config);
	rig.now_ms = 1000000;
	rig_connect(&rig);
	rig_answer(&rig, "[OK 501000 1]");
	EXPECT_COMMANDS("session\nnote session 1\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_measures_the_fence_from_when_the_beat_was_sent)
{
	rig_begin(&rig, 1);
	give(RUN("l", "1", "0", "5-1"));
	rig_pass(&rig, 10000);
	rig_pass(&rig, 4000);
	rig_answer(&rig, "[OK 515000 on]"); /* sent at 11,000, answered at 15,000 */
	rig_lose(&rig);
	(void)rig_commands(&rig);
	rig_pass(&rig, 20999);
	EXPECT_COMMANDS("");
	rig_pass(&rig, 1);
	EXPECT_COMMANDS("abort 0 2\nnote fenced 25000\n");
	rig_fini(&rig);
}
END_TEST

/* ---- begin and leaders ----------------------------------------------------------- */

START_TEST(agent_reports_the_first_event_only_where_asked)
{
	struct protocol_usage usage = protocol_usage_none();

	usage.written = 9;
	rig_begin(&rig, 2);
	give(RUN("l", "1", "0", "5-1"));
	give(RUN("p", "0", "0", "5-2"));
	for (uint32_t slot = 0; slot < 2; slot++) {
		rig_send(&rig, slot);
		agent_began(rig.agent, rig.now_ms, slot, rig.run_q[slot], &usage);
		agent_began(rig.agent, rig.now_ms, slot, rig.run_q[slot], &usage);
		rig_step(&rig);
	}
	EXPECT_CALLS("begin 1 0 3 - - - 9 - -\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_reports_the_first_event_again_if_the_answer_was_lost)
{
	struct protocol_usage usage = protocol_usage_none();

	rig_begin(&rig, 1);
	give(RUN("l", "1", "0", "5-1"));
	rig_send(&rig, 0);
	agent_began(rig.agent, rig.now_ms, 0, 2, &usage);
	rig_step(&rig);
	rig_lose(&rig);
	rig_connect(&rig);
	(void)rig_calls(&rig);
	rig_answer(&rig, "[OK 501000 2 " LEASE("0", "2", "5-1") "]");
	EXPECT_CALLS("begin 2 0 2 " RIG_NONE "\n");
	rig_answer(&rig, "[OK 501000]");
	rig_lose(&rig);
	rig_connect(&rig);
	(void)rig_calls(&rig);
	rig_answer(&rig, "[OK 501000 3 " LEASE("0", "2", "5-1") "]");
	EXPECT_CALLS("");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_stops_a_slow_leader_and_hands_its_job_back)
{
	rig_begin(&rig, 1);
	give(RUN("l", "1", "9000", "5-1"));
	rig_send(&rig, 0);
	rig_pass(&rig, 8999);
	EXPECT_COMMANDS("");
	rig_pass(&rig, 1);
	EXPECT_COMMANDS("abort 0 2\nnote slow 0\n");
	EXPECT_CALLS(""); /* the request ends first */
	rig_end(&rig, 0, AGENT_STOPPED, 0);
	EXPECT_CALLS("release 1 0 2 1\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_fails_a_slow_warm_up)
{
	rig_begin(&rig, 1);
	give(TICKET("9000"));
	rig_send(&rig, 0);
	rig_pass(&rig, 9000);
	EXPECT_COMMANDS("abort 0 2\nnote slow 0\n");
	rig_end(&rig, 0, AGENT_STOPPED, 0);
	ck_assert_ptr_nonnull(strstr(rig_calls(&rig), "fail 1 0 2 retry 1 "));
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_lets_a_leader_run_that_has_begun)
{
	struct protocol_usage usage = protocol_usage_none();

	rig_begin(&rig, 1);
	give(RUN("l", "1", "9000", "5-1"));
	rig_send(&rig, 0);
	agent_began(rig.agent, rig.now_ms, 0, 2, &usage);
	rig_step(&rig);
	rig_answer(&rig, "[OK 501000]");
	rig_pass(&rig, 9500);
	EXPECT_COMMANDS("");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_lets_a_leader_run_that_was_stopped_for_slowness_before)
{
	rig_begin(&rig, 1);
	give(RUN("l", "1", "9000", "5-1"));
	agent_sent(rig.agent, rig.now_ms, 0, 2, SPAN("up"), AGENT_SLOW_MAX);
	rig_step(&rig);
	rig_pass(&rig, 9500);
	EXPECT_COMMANDS("");
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
           agent_reads_the_table_when_a_slot_is_refused,
           agent_settles_and_claims_in_one_call_what_ended_in_one_turn,
           agent_names_its_slots_if_others_are_free_and_it_is_time_to_ask,
           agent_settles_no_more_than_a_batch_in_one_call,
           agent_keeps_a_settled_result_for_ten_seconds,
           agent_keeps_no_more_results_than_it_may,
           agent_offers_a_result_late_when_its_lease_has_gone_meanwhile,
           agent_says_what_a_stopped_request_may_have_cost,
           agent_throws_away_the_result_of_a_cancelled_job,
           agent_doubles_the_back_off_of_failures_up_to_a_bound,
           agent_waits_longer_than_its_back_off_if_the_provider_says_so,
           agent_parks_the_account_when_a_job_is_deferred,
           agent_gives_usage_in_the_time_of_redis,
           agent_beats_every_ten_seconds_with_its_busy_slots,
           agent_beats_at_a_moment_without_calls,
           agent_beats_anyway_when_no_quiet_moment_comes,
           agent_reads_the_table_when_a_beat_says_so,
           agent_stops_jobs_that_a_beat_names_and_gives_them_back,
           agent_stops_leaders_when_its_lease_may_end_and_claims_nothing,
           agent_whose_loop_hung_claims_nothing_before_it_has_beaten,
           agent_is_not_fenced_before_it_had_a_session,
           agent_measures_the_fence_from_when_the_beat_was_sent,
           agent_reports_the_first_event_only_where_asked,
           agent_reports_the_first_event_again_if_the_answer_was_lost,
           agent_stops_a_slow_leader_and_hands_its_job_back, agent_fails_a_slow_warm_up,
           agent_lets_a_leader_run_that_has_begun,
           agent_lets_a_leader_run_that_was_stopped_for_slowness_before)
