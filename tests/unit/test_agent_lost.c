/* A worker that loses its connection, and finds it again. */
#include "tests/lib/agent_rig.h"
#include "tests/lib/suite.h"

static struct rig rig;

START_TEST(agent_closes_a_connection_that_does_not_answer)
{
	rig_begin(&rig, 1);
	rig_wake(&rig);
	(void)rig_calls(&rig);
	rig_pass(&rig, 4999);
	EXPECT_COMMANDS("");
	rig_pass(&rig, 1);
	EXPECT_COMMANDS("close\nnote timeout 5000\n");
	rig_connect(&rig);
	EXPECT_CALLS("attach 30000\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_ignores_answers_of_a_connection_it_gave_up)
{
	struct reply late = { .kind = REPLY_ERROR, .text = SPAN("ERR late") };
	uint64_t tag;

	rig_begin(&rig, 1);
	rig_wake(&rig);
	tag = rig.tags[rig.tags_first];
	rig_pass(&rig, 5000);
	rig_connect(&rig);
	(void)rig_calls(&rig);
	(void)rig_commands(&rig);
	agent_answer(rig.agent, rig.now_ms, tag, &late);
	rig_step(&rig);
	EXPECT_CALLS("");
	EXPECT_COMMANDS("");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_gives_back_a_claim_whose_answer_was_lost)
{
	rig_begin(&rig, 2);
	rig_wake(&rig);
	rig_reconnect(&rig);
	rig_answer(&rig, "[OK 501000 2 " RIG_LEASE("0", "3", "7-1") "]");
	EXPECT_CALLS("release 2 0 3 0\nclaim 2 5 1\n"); /* nothing was sent */
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_settles_again_what_the_table_still_shows)
{
	rig_begin_busy(&rig, 1);
	rig_end(&rig, 0, AGENT_DONE, 77);
	rig_reconnect(&rig);
	rig_answer(&rig, "[OK 501000 2 " RIG_LEASE("0", "2", "1-1") "]");
	EXPECT_CALLS("settle 2 =1 0 2 " RIG_NONE " - 0 {} 4\n");
	rig_answer(&rig, RIG_NOTHING);
	EXPECT_COMMANDS("");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_takes_an_empty_slot_as_settled_but_offers_the_result_once_more)
{
	rig_begin_busy(&rig, 1);
	rig_end(&rig, 0, AGENT_DONE, 77);
	rig_reconnect(&rig);
	rig_answer(&rig, "[OK 501000 2]");
	EXPECT_CALLS("settle_late usage 1-1 - 0 {} " RIG_PAID("?") "\nclaim 2 4 0\n");
	rig_answer(&rig, "[OK 501000 FENCED]");
	rig_answer(&rig, RIG_NOTHING);
	EXPECT_COMMANDS("drop 77\nnote repeated 77\n"); /* not "paid in vain" */
	rig_fini(&rig);
}
END_TEST

/* As after a worker has stood still: what it paid for was not booked by anybody. */
START_TEST(agent_has_no_doubt_that_a_session_which_is_gone_settled_nothing)
{
	rig_begin_busy(&rig, 1);
	rig_end(&rig, 0, AGENT_DONE, 77);
	(void)rig_calls(&rig);
	rig_answer(&rig, "[GONE]");
	(void)rig_calls(&rig);
	rig_answer(&rig, "[OK 501000 1]");
	EXPECT_CALLS("settle_late usage 1-1 - 0 {} " RIG_PAID("") "\nclaim 1 4 0\n");
	rig_answer(&rig, "[OK 501000 FENCED]");
	EXPECT_COMMANDS(
		"session\nnote gone 0\nnote session 1\ndrop 77\nnote refused 77\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_gives_back_the_job_claimed_with_a_settle_whose_answer_was_lost)
{
	rig_begin_busy(&rig, 1);
	rig_end(&rig, 0, AGENT_DONE, 77);
	EXPECT_CALLS("settle 1 =1 0 2 " RIG_NONE " - 0 {} 3\n");
	rig_reconnect(&rig);
	rig_answer(&rig, "[OK 501000 2 " RIG_LEASE("0", "3", "8-8") "]");
	EXPECT_CALLS("release 2 0 3 0\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_lets_paid_requests_run_when_their_lease_is_gone)
{
	rig_begin_busy(&rig, 1);
	rig_reconnect(&rig);
	rig_answer(&rig, "[OK 501000 2]");
	EXPECT_COMMANDS("note orphan 0\n");
	EXPECT_CALLS(""); /* the slot is not free */
	rig_end(&rig, 0, AGENT_DONE, 77);
	EXPECT_CALLS("settle_late usage 1-1 - 0 {} " RIG_PAID("") "\nclaim 2 3 0\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_stops_what_was_not_sent_when_its_lease_is_gone)
{
	rig_begin(&rig, 1);
	rig_give(&rig, 1);
	rig_reconnect(&rig);
	rig_answer(&rig, "[OK 501000 2]");
	EXPECT_COMMANDS("abort 0 2\n");
	rig_end(&rig, 0, AGENT_STOPPED, 0);
	EXPECT_CALLS("claim 2 3 0\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_starts_again_when_the_payload_was_lost_on_the_way)
{
	rig_begin(&rig, 1);
	rig_give(&rig, 1);
	rig_lose(&rig);
	rig_end(&rig, 0, AGENT_UNFETCHED, 0);
	EXPECT_COMMANDS("");
	rig_connect(&rig);
	rig_answer(&rig, "[OK 501000 2 " RIG_LEASE("0", "2", "1-1") "]");
	EXPECT_COMMANDS("start 0 2 1-1\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_sends_an_acknowledged_result_again_after_a_rollback)
{
	rig_begin_busy(&rig, 1);
	rig_end(&rig, 0, AGENT_DONE, 77);
	rig_answer(&rig, RIG_NOTHING);
	rig_reconnect(&rig);
	rig_answer(&rig, "[OK 501000 2 " RIG_LEASE("0", "2", "1-1") "]");
	EXPECT_COMMANDS("note resent 0\n");
	EXPECT_CALLS("settle 2 1 0 2 " RIG_NONE " - 0 {} 4\nclaim 2 4 0\n");
	rig_answer(&rig, RIG_NOTHING);
	rig_answer(&rig, RIG_NOTHING);
	EXPECT_COMMANDS("");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_gives_back_leases_it_knows_nothing_of)
{
	rig_begin(&rig, 1);
	rig_reconnect(&rig);
	rig_answer(&rig, "[OK 501000 2 " RIG_LEASE("0", "99", "4-4") "]");
	EXPECT_CALLS("release 2 0 99 1\n");
	EXPECT_COMMANDS("note unknown 0\n");
	rig_answer(&rig, "[OK 501000]");
	EXPECT_CALLS("claim 2 2 0\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_begins_a_new_session_when_its_own_is_gone)
{
	rig_begin(&rig, 2);
	rig_give(&rig, 2);
	rig_send(&rig, 0);
	rig_lose(&rig);
	rig_connect(&rig);
	rig_answer(&rig, "[GONE]");
	EXPECT_COMMANDS("session\nabort 1 4\nnote gone 0\nnote orphan 0\n");
	(void)rig_calls(&rig);
	rig_answer(&rig, "[OK 501000 1]");
	EXPECT_CALLS(""); /* both slots still have their runs */
	rig_end(&rig, 1, AGENT_STOPPED, 0);
	EXPECT_CALLS("claim 1 5 1\n");
	rig_end(&rig, 0, AGENT_RETRY, 5);
	EXPECT_COMMANDS(
		"note session 1\ndrop 5\n"); /* a failure is of no use to anybody */
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_attaches_on_a_new_connection_when_it_is_told_it_is_stale)
{
	rig_begin(&rig, 1);
	rig_wake(&rig);
	rig_answer(&rig, "[STALE]");
	EXPECT_COMMANDS("close\n");
	(void)rig_calls(&rig);
	rig_connect(&rig);
	EXPECT_CALLS("attach 30000\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_pauses_and_reads_the_table_after_an_error)
{
	rig_begin_busy(&rig, 1);
	rig_end(&rig, 0, AGENT_DONE, 77);
	(void)rig_calls(&rig);
	rig_answer(&rig, "!ERR warmq settle: nothing works");
	EXPECT_COMMANDS("note error 4\n");
	rig_pass(&rig, 999);
	EXPECT_CALLS("");
	rig_pass(&rig, 1);
	EXPECT_CALLS("attach 30000\n");
	rig_answer(&rig, "[OK 501000 2 " RIG_LEASE("0", "2", "1-1") "]");
	EXPECT_CALLS("settle 2 =1 0 2 " RIG_NONE " - 0 {} 4\n");
	rig_fini(&rig);
}
END_TEST

/* As while workers are of a newer release than the scheduler that loaded the library. */
START_TEST(agent_names_its_slots_where_the_short_form_is_refused)
{
	rig_begin_busy(&rig, 1);
	rig_end(&rig, 0, AGENT_DONE, 77);
	EXPECT_CALLS("settle 1 =1 0 2 " RIG_NONE " - 0 {} 3\n");
	rig_answer(&rig, "!ERR warmq settle: count: expected a number, got \"=1\"");
	rig_pass(&rig, 1000);
	(void)rig_calls(&rig);
	rig_answer(&rig, "[OK 501000 2 " RIG_LEASE("0", "2", "1-1") "]");
	EXPECT_CALLS("settle 2 1 0 2 " RIG_NONE " - 0 {} 4 0\n");
	rig_fini(&rig);
}
END_TEST

SUITE_MAIN("agent_lost", agent_closes_a_connection_that_does_not_answer,
           agent_ignores_answers_of_a_connection_it_gave_up,
           agent_gives_back_a_claim_whose_answer_was_lost,
           agent_settles_again_what_the_table_still_shows,
           agent_takes_an_empty_slot_as_settled_but_offers_the_result_once_more,
           agent_has_no_doubt_that_a_session_which_is_gone_settled_nothing,
           agent_gives_back_the_job_claimed_with_a_settle_whose_answer_was_lost,
           agent_lets_paid_requests_run_when_their_lease_is_gone,
           agent_stops_what_was_not_sent_when_its_lease_is_gone,
           agent_starts_again_when_the_payload_was_lost_on_the_way,
           agent_sends_an_acknowledged_result_again_after_a_rollback,
           agent_gives_back_leases_it_knows_nothing_of,
           agent_begins_a_new_session_when_its_own_is_gone,
           agent_attaches_on_a_new_connection_when_it_is_told_it_is_stale,
           agent_pauses_and_reads_the_table_after_an_error,
           agent_names_its_slots_where_the_short_form_is_refused)
