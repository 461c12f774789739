/* What people tell a worker by the answer to its beat: to be quiet, to go on, to stop. */
#include "tests/lib/agent_rig.h"
#include "tests/lib/suite.h"

static struct rig rig;

/* Its beat, and what it hears. */
static void
beat(const char *answer)
{
	rig_pass(&rig, 10000);
	(void)rig_calls(&rig);
	rig_answer(&rig, answer);
}

START_TEST(agent_that_is_told_to_be_quiet_ends_what_it_has_and_claims_nothing)
{
	rig_begin_busy(&rig, 1);
	beat("[OK 511000 3]");
	EXPECT_COMMANDS("note quiet 1\n");
	rig_end(&rig, 0, AGENT_DONE, 77);
	EXPECT_CALLS("settle 1 1 0 2 " RIG_NONE " - 0 {} 3\n"); /* and claims nothing */
	rig_answer(&rig, "=OK 511000 1000\n\n\n");
	rig_pass(&rig, 9999);
	EXPECT_CALLS("");
	rig_pass(&rig, 1);
	EXPECT_CALLS("beat 1 0 30000\n");
	rig_answer(&rig, "[OK 521000 1]");
	EXPECT_CALLS("claim 1 3 0\n");
	EXPECT_COMMANDS("drop 77\nnote quiet 0\n");
	rig_fini(&rig);
}
END_TEST

/* Each wake-up of its pool may mean that it is to go on; it asks once a second at most.
 */
START_TEST(agent_that_is_quiet_asks_soon_when_it_is_woken)
{
	rig_begin_busy(&rig, 1);
	beat("[OK 511000 3]");
	rig_end(&rig, 0, AGENT_DONE, 77);
	rig_answer(&rig, "=OK 511000 1000\n\n\n");
	(void)rig_calls(&rig);
	agent_wake(rig.agent, rig.now_ms);
	rig_pass(&rig, 999);
	EXPECT_CALLS("");
	rig_pass(&rig, 1);
	EXPECT_CALLS("beat 1 0 30000\n");
	rig_answer(&rig, "[OK 512000 3]"); /* somebody else was meant */
	rig_pass(&rig, 5000);
	EXPECT_CALLS("");
	rig_wake(&rig);
	EXPECT_CALLS("beat 1 0 30000\n");
	rig_answer(&rig, "[OK 517000 1]");
	EXPECT_CALLS("claim 1 3 0\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_stays_quiet_in_its_next_session)
{
	rig_begin_busy(&rig, 1);
	beat("[OK 511000 3]");
	beat("[GONE]");
	EXPECT_CALLS("hello w p 1 * 30000 - 600000 quiet\n");
	rig_answer(&rig, "[OK 521000 1]");
	EXPECT_CALLS("");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_that_is_dismissed_says_so_once)
{
	rig_begin_busy(&rig, 1);
	beat("[OK 511000 5]");
	EXPECT_COMMANDS("dismissed\n");
	beat("[OK 521000 5]");
	EXPECT_COMMANDS("");
	rig_fini(&rig);
}
END_TEST

SUITE_MAIN("agent_told",
           agent_that_is_told_to_be_quiet_ends_what_it_has_and_claims_nothing,
           agent_that_is_quiet_asks_soon_when_it_is_woken,
           agent_stays_quiet_in_its_next_session, agent_that_is_dismissed_says_so_once)
