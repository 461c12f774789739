/* A worker that is told to stop: what it waits for, and what it leaves. */
#include "tests/lib/agent_rig.h"
#include "tests/lib/suite.h"

static struct rig rig;

START_TEST(agent_waits_for_running_jobs_when_it_stops_then_says_bye)
{
	rig_begin(&rig, 2);
	rig_give(&rig, 1);
	rig_send(&rig, 0);
	agent_stop(rig.agent, rig.now_ms, 60000);
	rig_wake(&rig);
	EXPECT_CALLS("");
	EXPECT_COMMANDS("");
	rig_end(&rig, 0, AGENT_DONE, 77);
	EXPECT_CALLS("settle 1 1 0 3 " RIG_NONE " - 0 {} 5\n"); /* and claims nothing */
	rig_answer(&rig, RIG_NOTHING);
	EXPECT_CALLS("bye 1\n");
	rig_answer(&rig, "[OK 501000]");
	EXPECT_COMMANDS("drop 77\nfinished\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_stops_and_gives_back_what_outlives_the_drain)
{
	rig_begin(&rig, 2);
	rig_give(&rig, 2);
	rig_send(&rig, 0);
	agent_stop(rig.agent, rig.now_ms, 2000);
	rig_step(&rig);
	rig_pass(&rig, 2000);
	EXPECT_COMMANDS("abort 0 3\nabort 1 4\n");
	rig_end_only(&rig, 0, AGENT_STOPPED, 0);
	rig_end_only(&rig, 1, AGENT_STOPPED, 0);
	rig_step(&rig);
	EXPECT_CALLS("release 1 0 3 1 1 4 0\n");
	rig_answer(&rig, "[OK 501000]");
	EXPECT_CALLS("bye 1\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_gives_back_at_once_what_it_has_not_begun)
{
	rig_begin(&rig, 2);
	rig_wake(&rig);
	(void)rig_calls(&rig);
	rig_answer_only(&rig, RIG_NOTHING RIG_LANE " " RIG_FAMILY " p 0 - 0 0 0 0 1-1");
	agent_stop(rig.agent, rig.now_ms, 60000);
	rig_step(&rig);
	EXPECT_COMMANDS("");
	EXPECT_CALLS("release 1 0 3 0\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_stops_at_once_when_told_twice)
{
	rig_begin_busy(&rig, 1);
	agent_stop(rig.agent, rig.now_ms, 60000);
	rig_step(&rig);
	EXPECT_COMMANDS("");
	agent_stop(rig.agent, rig.now_ms, 0);
	rig_step(&rig);
	EXPECT_COMMANDS("abort 0 2\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_finishes_without_redis_once_its_time_is_up)
{
	rig_begin_busy(&rig, 1);
	rig_lose(&rig);
	rig_end(&rig, 0, AGENT_DONE, 77);
	agent_stop(rig.agent, rig.now_ms, 1000);
	rig_step(&rig);
	EXPECT_COMMANDS("spool 77\n"); /* it may not come to anything else */
	rig_pass(&rig, 999);
	EXPECT_COMMANDS("");
	rig_pass(&rig, 1);
	EXPECT_COMMANDS("finished\n");
	ck_assert(agent_deadline(rig.agent) == AGENT_DEADLINE_NONE);
	rig_fini(&rig);
}
END_TEST

/* A worker that is told to stop while Redis is away, with one paid result on disk or not.
 */
static void
stop_without_redis(enum rig_disk disk)
{
	rig_begin(&rig, 1);
	rig.disk = disk;
	rig_give(&rig, 1);
	rig_send(&rig, 0);
	rig_lose(&rig);
	agent_stop(rig.agent, rig.now_ms, 60000);
	rig_step(&rig);
	rig_pass(&rig, 20000);
	EXPECT_COMMANDS(""); /* what runs is paid for */
	rig_end(&rig, 0, AGENT_DONE, 77);
}

START_TEST(agent_finishes_without_redis_once_its_results_are_on_disk)
{
	stop_without_redis(RIG_DISK_WORKS);
	EXPECT_COMMANDS("spool 77\nfinished\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_waits_for_a_disk_that_is_slow)
{
	stop_without_redis(RIG_DISK_HANGS);
	EXPECT_COMMANDS("spool 77\n");
	rig_pass(&rig, 1000);
	EXPECT_COMMANDS("");
	agent_spooled(rig.agent, rig.now_ms, SPAN("1-2"), true); /* another one */
	rig_step(&rig);
	EXPECT_COMMANDS("");
	agent_spooled(rig.agent, rig.now_ms, SPAN("1-1"), true);
	rig_step(&rig);
	EXPECT_COMMANDS("finished\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_tries_a_disk_that_is_full_again_until_its_time_is_up)
{
	stop_without_redis(RIG_DISK_FULL);
	EXPECT_COMMANDS("spool 77\n");
	rig_pass(&rig, 1900);
	EXPECT_COMMANDS("");
	rig_pass(&rig, 500);
	EXPECT_COMMANDS("spool 77\n");
	rig_pass(&rig, 36000);
	ck_assert_ptr_null(strstr(rig_commands(&rig), "finished"));
	rig.disk = RIG_DISK_WORKS;
	rig_pass(&rig, 2500);
	EXPECT_COMMANDS("spool 77\nfinished\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_loses_what_no_disk_takes_only_when_its_time_is_up)
{
	stop_without_redis(RIG_DISK_FULL);
	rig_pass(&rig, 40000 + 2 * 5000 - 1);
	ck_assert_ptr_null(strstr(rig_commands(&rig), "finished"));
	rig_pass(&rig, 1);
	ck_assert_ptr_nonnull(strstr(rig_commands(&rig), "finished"));
	rig_fini(&rig);
}
END_TEST

/* It may be restarted, as the worker is: then there are leases to give back. */
START_TEST(agent_waits_a_moment_for_a_redis_that_has_just_gone)
{
	rig_begin(&rig, 1);
	rig_lose(&rig);
	agent_stop(rig.agent, rig.now_ms, 60000);
	rig_step(&rig);
	rig_pass(&rig, 4999);
	EXPECT_COMMANDS("");
	rig_connect(&rig);
	EXPECT_CALLS("attach 30000\n");
	rig_answer(&rig, "[OK 501000 2]");
	EXPECT_CALLS("bye 2\n");
	rig_answer(&rig, "[OK 501000]");
	EXPECT_COMMANDS("finished\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_finishes_though_redis_has_lost_its_functions)
{
	rig_begin(&rig, 1);
	rig_lose(&rig);
	rig_connect(&rig);
	rig_answer(&rig, "!ERR Function not found");
	agent_stop(rig.agent, rig.now_ms, 60000);
	rig_step(&rig);
	for (int i = 0; i < 4; i++) {
		rig_pass(&rig, 1000);
		rig_answer(&rig, "!ERR Function not found");
	}
	ck_assert_ptr_null(strstr(rig_commands(&rig), "finished"));
	rig_pass(&rig, 1000);
	ck_assert_ptr_nonnull(strstr(rig_commands(&rig), "finished"));
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_finishes_though_redis_does_not_answer)
{
	rig_begin(&rig, 1);
	agent_stop(rig.agent, rig.now_ms, 1000);
	rig_step(&rig);
	EXPECT_CALLS("bye 1\n");
	rig_pass(&rig, 4999);
	EXPECT_COMMANDS("");
	rig_pass(&rig, 1);
	EXPECT_COMMANDS("close\nnote timeout 5000\nfinished\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_finishes_at_once_if_it_never_had_a_session)
{
	struct agent_config config = rig_config(1);

	rig_init(&rig, &config);
	agent_stop(rig.agent, rig.now_ms, 60000);
	rig_step(&rig);
	EXPECT_COMMANDS("finished\n");
	rig_fini(&rig);
}
END_TEST

SUITE_MAIN("agent_stop", agent_waits_for_running_jobs_when_it_stops_then_says_bye,
           agent_stops_and_gives_back_what_outlives_the_drain,
           agent_gives_back_at_once_what_it_has_not_begun,
           agent_stops_at_once_when_told_twice,
           agent_finishes_without_redis_once_its_time_is_up,
           agent_finishes_without_redis_once_its_results_are_on_disk,
           agent_waits_for_a_disk_that_is_slow,
           agent_tries_a_disk_that_is_full_again_until_its_time_is_up,
           agent_loses_what_no_disk_takes_only_when_its_time_is_up,
           agent_waits_a_moment_for_a_redis_that_has_just_gone,
           agent_finishes_though_redis_has_lost_its_functions,
           agent_finishes_though_redis_does_not_answer,
           agent_finishes_at_once_if_it_never_had_a_session)
