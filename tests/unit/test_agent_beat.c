/* The heartbeat of a worker, what it learns from it, and the fence: whom it stops, and
 * what it leaves alone, when its lease may have ended. */
#include "tests/lib/agent_rig.h"
#include "tests/lib/suite.h"

static struct rig rig;

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
	rig_wake(&rig);
	EXPECT_CALLS("claim 1 6 1\n");
	rig_pass(&rig, 60);
	agent_wake(rig.agent, rig.now_ms);
	EXPECT_CALLS(""); /* due, and held back */
	rig_answer(&rig, RIG_GIVEN(RIG_RUN("p", "0", "0", "5-5")));
	EXPECT_CALLS("beat 1 2 30000\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_beats_anyway_when_no_quiet_moment_comes)
{
	rig_begin(&rig, 2);
	rig_give(&rig, 1);
	idle(9950);
	rig_wake(&rig);
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
	rig_answer(&rig, "[OK 501000 2 " RIG_LEASE("0", "2", "1-1") "]");
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
	rig_give_run(&rig, RIG_TICKET("0"));
	rig_give_run(&rig, RIG_RUN("l", "1", "0", "5-1"));
	rig_give_run(&rig, RIG_RUN("c", "1", "0", "5-2"));
	rig_give_run(&rig, RIG_RUN("p", "0", "0", "5-3"));
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
	rig_answer(&rig, "[OK 526000 2 " RIG_LEASE("1", "9", "5-1") RIG_LEASE(
				 "2", "12", "5-2") RIG_LEASE("3", "14", "5-3") "]");
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
	rig_wake(&rig);
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
	rig_give_run(&rig, RIG_RUN("l", "1", "0", "5-1"));
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

SUITE_MAIN("agent_beat", agent_beats_every_ten_seconds_with_its_busy_slots,
           agent_beats_at_a_moment_without_calls,
           agent_beats_anyway_when_no_quiet_moment_comes,
           agent_reads_the_table_when_a_beat_says_so,
           agent_stops_jobs_that_a_beat_names_and_gives_them_back,
           agent_stops_leaders_when_its_lease_may_end_and_claims_nothing,
           agent_whose_loop_hung_claims_nothing_before_it_has_beaten,
           agent_is_not_fenced_before_it_had_a_session,
           agent_measures_the_fence_from_when_the_beat_was_sent)
