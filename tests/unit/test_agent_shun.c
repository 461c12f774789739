/* A worker whose requests reach nobody: what it asks for, and when again. */
#include "tests/lib/agent_rig.h"
#include "tests/lib/suite.h"
#include "worker/core/shun.h"

#include <stdio.h>

#define NOTHING "=OK 501000 60000\n\n\n"
#define RUN     RIG_LANE " " RIG_FAMILY " p 1 - 0 0 0 0"

static struct rig rig;

/* The slot of the run that was started last. */
static uint32_t
last_slot(void)
{
	uint32_t last = 0;

	for (uint32_t i = 0; i < rig.config.slots; i++) {
		if (rig.run_q[i] > rig.run_q[last])
			last = i;
	}
	return last;
}

/* The run that was started last ends before its request left. */
static void
miss(void)
{
	uint32_t slot = last_slot();
	struct agent_outcome outcome = {
		.end = AGENT_UNSENT,
		.attempts_max = 3,
		.usage = protocol_usage_none(),
		.text = SPAN("Nobody is there."),
		.missed = SPAN("up"),
	};

	rig_end_with(&rig, slot, &outcome);
}

static void
forget_what_was_said(void)
{
	(void)rig_calls(&rig);
	(void)rig_commands(&rig);
}

/* All that waits for an answer gets one: a beat, a failure, a claim that finds nothing.
 */
static void
answer_all(void)
{
	while (rig.tags_count > 0) {
		bool is_claim = strncmp(rig.calls_text, "claim", 5) == 0;
		const char *next = strchr(rig.calls_text, '\n') + 1;

		memmove(rig.calls_text, next, strlen(next) + 1);
		rig_answer(&rig, is_claim ? NOTHING : "[OK 501000 later 32]");
	}
}

/* An agent that has just missed `up` once too often. */
static void
begin_missing(uint32_t slots)
{
	rig_begin(&rig, slots);
	for (int i = 1; i < SHUN_MISSES; i++) {
		rig_give(&rig, 1);
		miss();
		answer_all();
	}
	rig_give(&rig, 1);
	miss();
}

/* Time passes until it tries a job of `up`; what else it says is answered on the way. */
static uint64_t
await_try(void)
{
	uint64_t from_ms = rig.now_ms;

	while (!strstr(rig.calls_text, "=up")) {
		answer_all();
		rig_pass(&rig, 1);
		ck_assert_uint_lt(rig.now_ms - from_ms, 100000);
	}
	return rig.now_ms - from_ms;
}

START_TEST(agent_says_what_it_misses_before_it_asks_for_more)
{
	begin_missing(1);
	EXPECT_CALLS(
		"beat 1 1 30000 up\nfail 1 0 6 unsent 3 0 0 - Nobody is there. " RIG_NONE
		" - 0 -\n");
	EXPECT_COMMANDS("note shunned 0\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_tries_one_job_of_what_it_shuns_when_the_pause_is_over)
{
	uint64_t waited_ms;
	char claim[64];

	begin_missing(4);
	waited_ms = await_try();
	ck_assert_uint_ge(waited_ms, SHUN_MS - SHUN_MS / 4);
	ck_assert_uint_le(waited_ms, SHUN_MS);
	(void)rig_commands(&rig);
	rig_answer(&rig, "=OK 501000 1000\n\n\n" RUN " 9-1");
	(void)snprintf(claim, sizeof claim, "claim 1 %llu =up %u\n", /* into one slot */
	               (unsigned long long)rig.run_q[last_slot()], last_slot());
	EXPECT_CALLS(claim);
	ck_assert_ptr_nonnull(strstr(rig_commands(&rig), "start"));
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_claims_everything_again_once_a_request_leaves)
{
	begin_missing(1);
	(void)await_try();
	rig_answer(&rig, "=OK 501000 1000\n\n\n" RUN " 9-1");
	forget_what_was_said();
	rig_send(&rig, 0);
	EXPECT_CALLS("beat 1 1 30000 -\n");
	EXPECT_COMMANDS("note reached 0\n");
	rig_answer(&rig, "[OK 501000 1]");
	rig_pass(&rig, 10000);
	EXPECT_CALLS("beat 1 1 30000\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_that_reaches_again_does_not_wait_for_its_next_poll)
{
	begin_missing(2);
	(void)await_try();
	rig_answer(&rig, "=OK 501000 1000\n\n\n" RUN " 9-1");
	answer_all();
	forget_what_was_said();
	rig_send(&rig, last_slot());
	ck_assert_ptr_nonnull(strstr(rig.calls_text, "beat 1 1 30000 -\nclaim 1 "));
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_that_misses_again_tries_again)
{
	begin_missing(1);
	for (int i = 0; i < 5; i++) {
		(void)await_try();
		rig_answer(&rig, "=OK 501000 1000\n\n\n" RUN " 9-1");
		forget_what_was_said();
		miss();
		EXPECT_COMMANDS("");
		ck_assert_ptr_nonnull(strstr(rig.calls_text, "unsent"));
	}
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_keeps_a_slot_for_the_try_if_none_is_free)
{
	begin_missing(1);
	answer_all();
	rig_give(&rig, 1); /* a job of another upstream; it runs for long */
	agent_sent(rig.agent, rig.now_ms, 0, rig.run_q[0], SPAN("other"), 0);
	rig_pass(&rig, 5000);
	forget_what_was_said();
	rig_end(&rig, 0, AGENT_DONE, 77);
	EXPECT_CALLS("settle 1 1 0 8 " RIG_NONE
	             " - 0 {} 9\n"); /* and claims nothing into it */
	rig_answer(&rig, "=OK 501000 1000\n\n\n");
	EXPECT_CALLS("claim 1 9 =up 0\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_says_it_again_on_every_connection)
{
	begin_missing(1);
	answer_all();
	rig_lose(&rig);
	rig_connect(&rig);
	forget_what_was_said();
	rig_answer(&rig, "[OK 501000 2]"); /* of an attach */
	EXPECT_CALLS("beat 2 0 30000 up\nclaim 2 8 0\n");
	rig_answer(&rig, "[GONE]");
	rig_answer(&rig, "[GONE]");
	EXPECT_CALLS("hello w p 1 * 30000 - 600000\n");
	rig_answer(&rig, "[OK 501000 1]");
	EXPECT_CALLS("beat 1 0 30000 up\nclaim 1 9 0\n");
	rig_fini(&rig);
}
END_TEST

START_TEST(agent_shuns_nothing_for_other_failures)
{
	struct agent_stats stats;

	begin_missing(1);
	rig_fini(&rig);
	rig_init(&rig, &rig.config);
	rig_greet(&rig);
	for (int i = 0; i < 10; i++) {
		rig_give(&rig, 1);
		rig_end(&rig, 0, i % 2 ? AGENT_UNSENT : AGENT_RETRY, 0);
		answer_all();
	}
	agent_stats(rig.agent, &stats);
	ck_assert_uint_eq(stats.shunned, 0);
	rig_fini(&rig);
}
END_TEST

SUITE_MAIN("agent_shun", agent_says_what_it_misses_before_it_asks_for_more,
           agent_tries_one_job_of_what_it_shuns_when_the_pause_is_over,
           agent_claims_everything_again_once_a_request_leaves,
           agent_that_reaches_again_does_not_wait_for_its_next_poll,
           agent_that_misses_again_tries_again,
           agent_keeps_a_slot_for_the_try_if_none_is_free,
           agent_says_it_again_on_every_connection,
           agent_shuns_nothing_for_other_failures)
