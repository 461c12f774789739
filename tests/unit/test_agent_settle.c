/* What a worker says of requests that ended: results, failures, and what they cost. */
#include "tests/lib/agent_rig.h"
#include "tests/lib/suite.h"

#include <stdio.h>

static struct rig rig;

START_TEST(agent_settles_and_claims_in_one_call_what_ended_in_one_turn)
{
	rig_begin_busy(&rig, 3);
	for (uint32_t slot = 0; slot < 3; slot++)
		rig_end_only(&rig, slot, AGENT_DONE, 0);
	rig_step(&rig);
	EXPECT_CALLS("settle 1 =3 0 4 " RIG_NONE " - 0 {} 1 5 " RIG_NONE
	             " - 0 {} 2 6 " RIG_NONE " - 0 {} 7\n");
	rig_answer(&rig, RIG_GIVEN(RIG_RUN("p", "0", "0", "2-1 2-2")));
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
	rig_answer(&rig, RIG_GIVEN(RIG_RUN("p", "0", "0", "2-1 2-2")));
	EXPECT_COMMANDS("start 0 5 2-1\nstart 1 6 2-2\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_settles_no_more_than_a_batch_in_one_call)
{
	rig_begin(&rig, AGENT_BATCH + 10);
	rig_give(&rig, AGENT_BATCH);
	rig_answer(&rig, RIG_NOTHING);
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
	rig_begin_busy(&rig, 1);
	rig_end(&rig, 0, AGENT_DONE, 77);
	rig_answer(&rig, "=OK 501000 9000\n\n\n" RIG_RUN("p", "0", "0", "2-1"));
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
	rig_begin_busy(&rig, 1);
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

	rig_begin_busy(&rig, 1);
	agent_stop(rig.agent, rig.now_ms, 0);
	rig_step(&rig);
	(void)rig_calls(&rig);
	outcome.usage = protocol_usage_none();
	outcome.usage.read = 30000;
	outcome.usage.uncached = 20;
	outcome.usage.may_bill = 1;
	rig_end_with(&rig, 0, &outcome);
	EXPECT_CALLS("release 1 0 2 1 - - 30000 - 20 - b=1\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_throws_away_the_result_of_a_cancelled_job)
{
	rig_begin_busy(&rig, 1);
	rig_end(&rig, 0, AGENT_DONE, 77);
	(void)rig_calls(&rig);
	rig_answer(&rig, "=OK 501000 9000\n\n0 ENDED -\n" RIG_RUN("p", "0", "0", "2-1"));
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

		rig_begin_busy(&rig, 1);
		outcome.attempts = i;
		rig_end_with(&rig, 0, &outcome);
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

	rig_begin_busy(&rig, 1);
	rig_end_with(&rig, 0, &outcome);
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

	rig_begin_busy(&rig, 1);
	rig_end_with(&rig, 0, &outcome);
	EXPECT_CALLS("fail 1 0 2 defer 3 0 2000 rate_limit t " RIG_NONE " - 0 -\n");
	rig_answer(&rig, "[OK 501000 back]");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_gives_usage_in_the_time_of_redis)
{
	struct agent_outcome outcome = { .end = AGENT_DONE, .result = SPAN("{}") };

	rig_begin_busy(&rig, 1);
	outcome.usage = protocol_usage_none();
	outcome.usage.sent_ms = 1010;
	outcome.usage.first_ms = 1020;
	outcome.usage.read = 5;
	outcome.usage.written = 0;
	rig.now_ms = 1030;
	rig_end_with(&rig, 0, &outcome);
	EXPECT_CALLS("settle 1 =1 0 2 501010 501020 5 0 - - - 0 {} 3\n");
	rig_fini(&rig);
}
END_TEST

SUITE_MAIN("agent_settle", agent_settles_and_claims_in_one_call_what_ended_in_one_turn,
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
           agent_gives_usage_in_the_time_of_redis)
