/* Runs that write a prefix for others: that they have begun is reported, and slow ones
 * are stopped. */
#include "tests/lib/agent_rig.h"
#include "tests/lib/suite.h"

static struct rig rig;

START_TEST(agent_reports_the_first_event_only_where_asked)
{
	struct protocol_usage usage = protocol_usage_none();

	usage.written = 9;
	rig_begin(&rig, 2);
	rig_give_run(&rig, RIG_RUN("l", "1", "0", "5-1"));
	rig_give_run(&rig, RIG_RUN("p", "0", "0", "5-2"));
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
	rig_give_run(&rig, RIG_RUN("l", "1", "0", "5-1"));
	rig_send(&rig, 0);
	agent_began(rig.agent, rig.now_ms, 0, 2, &usage);
	rig_step(&rig);
	rig_reconnect(&rig);
	rig_answer(&rig, "[OK 501000 2 " RIG_LEASE("0", "2", "5-1") "]");
	EXPECT_CALLS("begin 2 0 2 " RIG_NONE "\n");
	rig_answer(&rig, "[OK 501000]");
	rig_reconnect(&rig);
	rig_answer(&rig, "[OK 501000 3 " RIG_LEASE("0", "2", "5-1") "]");
	EXPECT_CALLS("");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_stops_a_slow_leader_and_hands_its_job_back)
{
	rig_begin(&rig, 1);
	rig_give_run(&rig, RIG_RUN("l", "1", "9000", "5-1"));
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
	rig_give_run(&rig, RIG_TICKET("9000"));
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
	rig_give_run(&rig, RIG_RUN("l", "1", "9000", "5-1"));
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
	rig_give_run(&rig, RIG_RUN("l", "1", "9000", "5-1"));
	agent_sent(rig.agent, rig.now_ms, 0, 2, SPAN("up"), AGENT_SLOW_MAX);
	rig_step(&rig);
	rig_pass(&rig, 9500);
	EXPECT_COMMANDS("");
	rig_fini(&rig);
}
END_TEST

SUITE_MAIN("agent_leader", agent_reports_the_first_event_only_where_asked,
           agent_reports_the_first_event_again_if_the_answer_was_lost,
           agent_stops_a_slow_leader_and_hands_its_job_back, agent_fails_a_slow_warm_up,
           agent_lets_a_leader_run_that_has_begun,
           agent_lets_a_leader_run_that_was_stopped_for_slowness_before)
