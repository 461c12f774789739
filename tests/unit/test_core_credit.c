/* Who may start before a lane is open: one at a time per node, and never for ever. */
#include "scheduler/core/credit.h"

#include "scheduler/core/state.h"
#include "tests/lib/core_rig.h"
#include "tests/lib/suite.h"

#define LONG 3600000

static struct family *
family_named(struct core_rig *rig, const char *name)
{
	return &rig->core->families[family_find(rig->core, core_rig_node(rig, name)->id)];
}

static struct lane *
lane_named(struct core_rig *rig, const char *name)
{
	return &rig->core->lanes[family_leaf(family_named(rig, name))];
}

static void
drain(struct core_rig *rig)
{
	ck_assert(core_rig_drain(rig, LONG));
	core_audit(rig->core);
	ck_assert_uint_eq(rig->too_many, 0);
}

/* Its model may be written by a call of its own. */
static void
offer_calls(struct core_rig *rig)
{
	struct event event = { .kind = EVENT_MODEL };

	rig->model.calls = true;
	event.model = rig->model;
	core_rig_feed(rig, &event);
}

/* Twenty jobs whose first bytes nobody sees: a call writes for them, if it may. */
static void
admit_without_stream(struct core_rig *rig)
{
	(void)core_rig_admit(rig, "S", 0);
	rig->families[0].flags = EVENT_FAMILY_NO_STREAM;
	(void)core_rig_admit(rig, "S", 20);
}

START_TEST(credit_one_family_writes_the_shared_ancestor_of_many)
{
	struct core_rig *rig = core_rig_fresh(50);

	(void)core_rig_admit(rig, "S/A", 10);
	(void)core_rig_admit(rig, "S/B", 10);
	(void)core_rig_admit(rig, "S/C", 10);
	core_rig_run(rig, 2999);
	ck_assert_uint_eq(rig->starts_count, 1);
	ck_assert_uint_eq(family_named(rig, "A")->credit.out, 1);
	ck_assert_uint_eq(family_named(rig, "A")->credit.lanes, 3); /* S and A at once */
	ck_assert_uint_eq(family_named(rig, "B")->credit.out, 0);
	drain(rig);
	ck_assert_uint_eq(core_rig_node(rig, "S")->writes, 1);
	ck_assert_uint_eq(core_rig_node(rig, "A")->writes, 1);
	ck_assert_uint_eq(core_rig_node(rig, "B")->writes, 1);
	ck_assert_uint_eq(core_rig_node(rig, "C")->writes, 1);
	core_rig_free(rig);
}
END_TEST

START_TEST(credit_a_reader_of_the_ancestor_leads_its_own_leaf)
{
	struct core_rig *rig = core_rig_fresh(50);

	(void)core_rig_admit(rig, "S/A", 1);
	(void)core_rig_admit(rig, "S/B", 10);
	core_rig_run(rig, 3000); /* A, alone in its family, has written S and A */
	ck_assert_uint_eq(family_named(rig, "B")->credit.out, 1);
	ck_assert_int_eq(family_named(rig, "B")->credit.role, LANE_LEAD);
	ck_assert_uint_eq(family_named(rig, "B")->credit.lanes, 3);
	ck_assert_uint_eq(lane_named(rig, "A")->unproven, 0);
	drain(rig);
	ck_assert_uint_eq(core_rig_node(rig, "S")->writes, 1);
	core_rig_free(rig);
}
END_TEST

START_TEST(credit_on_an_open_ancestor_counts_on_the_leaf_alone)
{
	struct core_rig *rig = core_rig_fresh(50);

	(void)core_rig_admit(rig, "S/A", 5);
	drain(rig);
	(void)core_rig_admit(rig, "S/B", 5);
	(void)core_rig_admit(rig, "S/C", 5);
	core_rig_run(rig, 100);
	ck_assert_uint_eq(rig->starts_count, 2); /* both lead at the same time */
	ck_assert_uint_eq(family_named(rig, "B")->credit.lanes, 2);
	drain(rig);
	core_rig_free(rig);
}
END_TEST

START_TEST(credit_is_taken_again_without_the_scheduler_when_its_worker_dies)
{
	struct core_rig *rig = core_rig_fresh(20);
	uint32_t elections;

	(void)core_rig_admit(rig, "S", 20);
	core_rig_run(rig, 1000);
	elections = (uint32_t)rig->core->counts.elections;
	core_rig_kill(rig);
	core_rig_run(rig, 100);
	ck_assert_uint_eq(rig->starts_count, 1);
	ck_assert_uint_eq(rig->core->counts.elections, elections);
	drain(rig);
	ck_assert_uint_eq(core_rig_node(rig, "S")->writes, 1);
	core_rig_free(rig);
}
END_TEST

START_TEST(credit_of_a_refused_leader_goes_to_another_job_at_once)
{
	struct core_rig *rig = core_rig_fresh(20);

	rig->knobs.refused = 1;
	(void)core_rig_admit(rig, "S", 20);
	core_rig_run(rig, 3000);
	ck_assert_uint_eq(rig->starts_count, 1);
	ck_assert_uint_eq(rig->core->counts.elections, 2);
	drain(rig);
	core_rig_free(rig);
}
END_TEST

START_TEST(credit_that_came_back_after_its_evidence_is_void)
{
	struct core_rig *rig = core_rig_fresh(20);

	rig->knobs.lag_ms = 1900;
	rig->core->models[0].lag_ms = 1900;
	(void)core_rig_admit(rig, "S", 20);
	core_rig_run(rig, 3100); /* written; nobody may read yet */
	core_rig_kill(rig);
	core_rig_run(rig, 100);
	ck_assert_uint_eq(rig->starts_count, 0);
	ck_assert_uint_eq(core_rig_node(rig, "S")->credits, 0);
	drain(rig);
	ck_assert_uint_eq(core_rig_node(rig, "S")->writes, 1);
	core_rig_free(rig);
}
END_TEST

/* The family's only job is cancelled before anybody took it. */
START_TEST(credit_that_nobody_is_left_to_take_goes_to_another_family)
{
	struct core_rig *rig = core_rig_fresh(20);
	struct event event = { .kind = EVENT_EMPTY };

	rig->knobs.stopped = true;
	(void)core_rig_admit(rig, "S/A", 1);
	(void)core_rig_admit(rig, "S/B", 5);
	core_rig_run(rig, 100);
	ck_assert_uint_eq(family_named(rig, "A")->credit.out, 1);
	rig->families[0].backlog = 0;
	event.family.id = core_rig_node(rig, "A")->id;
	core_rig_feed(rig, &event);
	ck_assert_uint_eq(family_named(rig, "A")->credit.out, 0);
	ck_assert_uint_eq(family_named(rig, "B")->credit.out, 1);
	rig->knobs.stopped = false;
	drain(rig);
	core_rig_free(rig);
}
END_TEST

START_TEST(credit_whose_family_was_empty_all_along_is_found_by_a_look)
{
	struct core_rig *rig = core_rig_fresh(20);

	rig->knobs.stopped = true;
	(void)core_rig_admit(rig, "S/A", 1);
	(void)core_rig_admit(rig, "S/B", 5);
	core_rig_run(rig, 100);
	rig->families[0].backlog = 0; /* and its event was lost */
	core_rig_run(rig, 6000);
	ck_assert_uint_eq(family_named(rig, "A")->credit.out, 0);
	ck_assert_uint_eq(family_named(rig, "B")->credit.out, 1);
	core_rig_free(rig);
}
END_TEST

START_TEST(credit_that_no_worker_can_take_moves_to_a_pool_that_has_some)
{
	struct core_rig *rig = core_rig_fresh(20);
	uint32_t other = core_rig_pool(rig, "q", 10);

	(void)core_rig_pool(rig, "p", 0);
	(void)core_rig_admit(rig, "S/A", 5);
	(void)core_rig_admit_as(rig, "S/B", other, EVENT_LIST_NORMAL, 5);
	core_rig_run(rig, 100);
	ck_assert_uint_eq(family_named(rig, "A")->credit.out, 0);
	ck_assert_uint_eq(rig->starts_count, 1);
	(void)core_rig_pool(rig, "p", 20);
	drain(rig);
	ck_assert_uint_eq(core_rig_node(rig, "S")->writes, 1);
	core_rig_free(rig);
}
END_TEST

START_TEST(credit_that_lies_too_long_is_given_to_a_family_that_can_use_it)
{
	struct core_rig *rig = core_rig_fresh(1);
	uint32_t other = core_rig_pool(rig, "q", 1);

	rig->knobs.job_ms = 600000; /* the slot of `p` is taken for long */
	(void)core_rig_admit(rig, "X?", 1);
	core_rig_run(rig, 100);
	(void)core_rig_admit(rig, "S/A", 1);
	core_rig_run(rig, 100);
	(void)core_rig_admit_as(rig, "S/B", other, EVENT_LIST_NORMAL, 1);
	core_rig_run(rig, 60000);
	ck_assert_uint_eq(rig->families[2].started, 1);
	core_rig_free(rig);
}
END_TEST

/* All events are lost; only answers tell. */
START_TEST(credit_whose_events_were_lost_is_revoked_and_never_doubled)
{
	struct core_rig *rig = core_rig_fresh(20);

	rig->knobs.mute = true;
	(void)core_rig_admit(rig, "S", 3);
	core_rig_run(rig, 200000);
	ck_assert_uint_gt(rig->core->counts.revoked, 0);
	ck_assert_uint_eq(rig->too_many, 0);
	ck_assert_uint_eq(rig->families[0].backlog, 0);
	core_rig_free(rig);
}
END_TEST

START_TEST(credit_of_a_slow_leader_is_not_given_twice)
{
	struct core_rig *rig = core_rig_fresh(20);

	rig->knobs.cold_ms = 50000; /* far beyond its deadline */
	rig->knobs.hold_max_ms = 100000;
	(void)core_rig_admit(rig, "S", 20);
	core_rig_run(rig, 49999);
	ck_assert_uint_eq(rig->starts_count, 1);
	ck_assert(family_named(rig, "S")->credit.revoked);
	core_rig_run(rig, 1);
	ck_assert_uint_eq(rig->starts_count, 2);
	drain(rig);
	ck_assert_uint_eq(core_rig_node(rig, "S")->writes, 1);
	core_rig_free(rig);
}
END_TEST

START_TEST(credit_may_prove_itself_while_it_is_being_taken_back)
{
	struct core_rig *rig = core_rig_fresh(20);

	rig->knobs.cold_ms = 50000; /* far beyond its deadline */
	rig->knobs.hold_max_ms = 100000;
	rig->knobs.answer_ms = 200;
	(void)core_rig_admit(rig, "S", 20);
	while (!family_named(rig, "S")->credit.revoke_flight) {
		ck_assert_uint_lt(rig->now_ms, 1000000000);
		core_rig_run(rig, 1);
	}
	for (uint32_t i = 0; i < CORE_RIG_STARTS; i++)
		rig->starts[i].first_ms = rig->now_ms + 1; /* now it says something */
	core_rig_run(rig, 100);
	ck_assert_uint_eq(family_named(rig, "S")->credit.out, 0);
	core_rig_run(rig, 200); /* the answer to the grant that takes it back */
	drain(rig);
	ck_assert_uint_eq(core_rig_node(rig, "S")->writes, 1);
	core_rig_free(rig);
}
END_TEST

START_TEST(credit_waits_while_the_account_is_parked)
{
	struct core_rig *rig = core_rig_fresh(20);
	struct event event = { .kind = EVENT_PRESSURE };

	event.pressure.budget = rig->core->pacers[0].id;
	event.pressure.what = EVENT_PRESSURE_BUSY;
	event.pressure.until_ms = rig->parked_ms = rig->now_ms + 60000;
	core_rig_feed(rig, &event);
	(void)core_rig_admit(rig, "S", 20);
	core_rig_run(rig, 59999);
	ck_assert_uint_eq(rig->core->counts.elections, 0);
	core_rig_run(rig, 1);
	ck_assert_uint_eq(rig->starts_count, 1);
	core_rig_free(rig);
}
END_TEST

START_TEST(credit_unclaimed_below_a_lane_that_shuts_writes_that_lane_too)
{
	struct core_rig *rig = core_rig_fresh(20);

	(void)core_rig_admit(rig, "S/A", 5);
	drain(rig);
	core_rig_run(rig, rig->knobs.ttl_ms - 20000 - 5000);
	rig->knobs.stopped = true;
	(void)core_rig_admit(rig, "S/B", 5);
	(void)core_rig_admit(rig, "S/C", 5);
	core_rig_run(rig, 100);
	ck_assert_uint_eq(family_named(rig, "B")->credit.lanes, 2);
	ck_assert_uint_eq(family_named(rig, "C")->credit.lanes, 2);
	core_rig_run(rig, 15000); /* S expires above both */
	core_rig_evict(rig);
	ck_assert_uint_eq(family_named(rig, "B")->credit.out +
	                          family_named(rig, "C")->credit.out,
	                  1);
	rig->knobs.stopped = false;
	drain(rig);
	ck_assert_uint_eq(core_rig_node(rig, "S")->writes, 2);
	core_rig_free(rig);
}
END_TEST

START_TEST(credit_ahead_or_without_a_stream_is_a_ticket)
{
	struct core_rig *rig = core_rig_fresh(20);

	offer_calls(rig);
	admit_without_stream(rig);
	core_rig_run(rig, 100);
	ck_assert_int_eq(family_named(rig, "S")->credit.role, LANE_TICKET);
	ck_assert_uint_eq(rig->families[0].started, 0);
	core_rig_run(rig, 2900); /* the call has written, another one looks */
	ck_assert_int_eq(family_named(rig, "S")->credit.role, LANE_TICKET);
	core_rig_run(rig, 500);
	ck_assert_int_eq(lane_named(rig, "S")->gate, LANE_OPEN);
	drain(rig);
	core_rig_free(rig);
}
END_TEST

START_TEST(credit_is_a_lead_for_ever_once_the_provider_refused_our_call)
{
	struct core_rig *rig = core_rig_fresh(20);
	struct event event = { .kind = EVENT_TICKET };

	offer_calls(rig);
	rig->knobs.stopped = true;
	admit_without_stream(rig);
	event.ticket.usage.lane = lane_named(rig, "S")->id;
	event.ticket.usage.g = family_named(rig, "S")->credit.g;
	event.ticket.refused = true;
	core_rig_feed(rig, &event);
	ck_assert(rig->core->models[0].call_refused);
	ck_assert_int_eq(family_named(rig, "S")->credit.role, LANE_LEAD);
	rig->knobs.stopped = false;
	drain(rig);
	core_rig_free(rig);
}
END_TEST

START_TEST(credit_is_a_lead_after_three_calls_that_failed)
{
	struct core_rig *rig = core_rig_fresh(20);

	offer_calls(rig);
	rig->knobs.stopped = true;
	admit_without_stream(rig);
	for (uint32_t failed = 0; failed < 3; failed++) {
		struct event event = { .kind = EVENT_TICKET };

		ck_assert_int_eq(family_named(rig, "S")->credit.role, LANE_TICKET);
		event.ticket.usage.lane = lane_named(rig, "S")->id;
		event.ticket.usage.g = family_named(rig, "S")->credit.g;
		core_rig_feed(rig, &event);
		core_rig_run(rig, 6000); /* over the longest wait after a failure */
	}
	ck_assert_uint_eq(lane_named(rig, "S")->failures, 3);
	ck_assert_int_eq(family_named(rig, "S")->credit.role, LANE_LEAD);
	rig->knobs.stopped = false;
	drain(rig);
	core_rig_free(rig);
}
END_TEST

START_TEST(credit_of_a_ticket_that_is_never_answered_ends)
{
	struct core_rig *rig = core_rig_fresh(20);

	offer_calls(rig);
	rig->knobs.mute = true;
	admit_without_stream(rig);
	core_rig_run(rig, 60000);
	ck_assert_uint_gt(rig->core->counts.revoked, 0);
	rig->knobs.mute = false;
	drain(rig);
	core_rig_free(rig);
}
END_TEST

START_TEST(credit_is_not_given_while_nobody_is_held)
{
	struct core_rig *rig = core_rig_fresh(20);

	core_rig_hold(rig, false);
	(void)core_rig_admit(rig, "S", 20);
	core_rig_run(rig, 10);
	ck_assert_uint_eq(rig->core->counts.elections, 0);
	ck_assert_uint_eq(rig->starts_count, 20);
	core_rig_hold(rig, true);
	(void)core_rig_admit(rig, "S", 5);
	drain(rig);
	core_rig_free(rig);
}
END_TEST

START_TEST(credit_that_comes_back_below_a_shut_lane_writes_that_lane)
{
	struct core_rig *rig = core_rig_fresh(20);
	struct lane_id id;

	(void)core_rig_admit(rig, "S/A", 5);
	drain(rig);
	core_rig_run(rig, rig->knobs.ttl_ms - 20000 - 1000);
	rig->knobs.cold_ms = 60000;
	rig->knobs.hold_max_ms = 200000;
	(void)core_rig_admit(rig, "S/B", 5); /* its leader starts below a warm S */
	core_rig_run(rig, 15000);            /* S expires above it */
	id = (struct lane_id){ core_rig_node(rig, "S")->id, 0 };
	ck_assert_int_eq(rig->core->lanes[lane_find(rig->core, id)].gate, LANE_CLOSED);
	rig->knobs.stopped = true;
	core_rig_kill(rig); /* and its credit lies in B's lane again */
	ck_assert_uint_eq(family_named(rig, "B")->credit.lanes, 3);
	ck_assert_int_eq(rig->core->lanes[lane_find(rig->core, id)].gate, LANE_WRITING);
	core_audit(rig->core);
	core_rig_free(rig);
}
END_TEST

/* B leads below a warm S and hangs; S expires above it and C is its next writer.  Their
 * worker dies: of two credits that lay there one would be taken beside the other. */
START_TEST(credit_below_a_lane_that_shuts_is_not_taken_beside_its_next_writer)
{
	struct core_rig *rig = core_rig_fresh(20);

	(void)core_rig_admit(rig, "S/A", 5);
	drain(rig);
	core_rig_run(rig, core_rig_node(rig, "S")->until_ms - rig->now_ms - 1000);
	rig->knobs.cold_ms = 60000;
	rig->knobs.hold_max_ms = 200000;
	(void)core_rig_admit(rig, "S/B", 5);
	core_rig_run(rig, 1500);
	(void)core_rig_admit(rig, "S/C", 5);
	core_rig_run(rig, 500);
	ck_assert_uint_eq(rig->starts_count, 2);
	ck_assert_int_eq(core_rig_node(rig, "S")->gate, LANE_WRITING);
	rig->knobs.stopped = true;
	rig->knobs.line_ms = 200; /* others may claim before the core hears of it */
	core_rig_kill(rig);
	ck_assert_uint_eq(core_rig_node(rig, "B")->credits, 0);
	ck_assert_uint_eq(core_rig_node(rig, "C")->credits, 1);
	rig->knobs.stopped = false;
	rig->knobs.cold_ms = 3000;
	rig->knobs.line_ms = 0;
	drain(rig);
	core_rig_free(rig);
}
END_TEST

static void
pause_family(struct core_rig *rig, const char *name, bool on)
{
	struct event event = { .kind = EVENT_PAUSE };

	event.pause.family = core_rig_node(rig, name)->id;
	event.pause.on = on;
	core_rig_feed(rig, &event);
}

START_TEST(credit_of_a_paused_family_goes_to_one_that_may_start)
{
	struct core_rig *rig = core_rig_fresh(20);

	rig->knobs.stopped = true; /* nobody takes it before the pause */
	(void)core_rig_admit(rig, "S/A", 5);
	(void)core_rig_admit(rig, "S/B", 5);
	core_rig_run(rig, 100);
	ck_assert_uint_eq(family_named(rig, "A")->credit.out, 1);
	ck_assert_uint_eq(family_named(rig, "B")->credit.out, 0);
	pause_family(rig, "A", true);
	core_rig_run(rig, 100);
	ck_assert_uint_eq(core_rig_node(rig, "A")->credits, 0);
	ck_assert_uint_eq(core_rig_node(rig, "B")->credits, 1);
	core_audit(rig->core);
	pause_family(rig, "A", false);
	rig->knobs.stopped = false;
	drain(rig);
	ck_assert_uint_eq(core_rig_node(rig, "S")->writes, 1);
	core_rig_free(rig);
}
END_TEST

/* The answer to the grant is lost, and the pause comes before it is missed: what is said
 * again is another thing, and was not done. */
START_TEST(credit_of_a_paused_family_is_not_taken_for_revoked_when_it_was_given)
{
	struct core_rig *rig = core_rig_fresh(20);

	rig->knobs.stopped = true;
	core_rig_run(rig, 100);
	rig->knobs.answer_ms = 50;
	(void)core_rig_admit(rig, "S/A", 5);
	(void)core_rig_admit(rig, "S/B", 5);
	rig->knobs.deaf = 6; /* all answers of the next 50 ms */
	core_rig_run(rig, 20);
	ck_assert_uint_eq(core_rig_node(rig, "A")->credits, 1);
	pause_family(rig, "A", true);
	rig->knobs.deaf = 0;
	for (int i = 0; i < 400; i++) {
		core_rig_run(rig, 1);
		ck_assert_uint_le(core_rig_node(rig, "A")->credits +
		                          core_rig_node(rig, "B")->credits,
		                  1);
	}
	ck_assert_uint_eq(core_rig_node(rig, "B")->credits, 1);
	pause_family(rig, "A", false);
	rig->knobs.stopped = false;
	rig->knobs.answer_ms = 0;
	drain(rig);
	core_rig_free(rig);
}
END_TEST

START_TEST(credit_of_a_paused_family_that_comes_back_is_not_left_there)
{
	struct core_rig *rig = core_rig_fresh(20);

	(void)core_rig_admit(rig, "S/A", 5);
	(void)core_rig_admit(rig, "S/B", 5);
	core_rig_run(rig, 1000);
	ck_assert_uint_eq(family_named(rig, "A")->credit.started, 1);
	pause_family(rig, "A", true);
	core_rig_run(rig, 100);
	ck_assert_uint_eq(family_named(rig, "A")->credit.out, 1); /* it may write on */
	rig->knobs.stopped = true;
	core_rig_kill(rig);
	core_rig_run(rig, 100);
	ck_assert_uint_eq(core_rig_node(rig, "A")->credits, 0);
	ck_assert_uint_eq(core_rig_node(rig, "B")->credits, 1);
	pause_family(rig, "A", false);
	rig->knobs.stopped = false;
	drain(rig);
	ck_assert_uint_eq(core_rig_node(rig, "S")->writes, 1);
	core_rig_free(rig);
}
END_TEST

SUITE_MAIN("core_credit", credit_one_family_writes_the_shared_ancestor_of_many,
           credit_a_reader_of_the_ancestor_leads_its_own_leaf,
           credit_on_an_open_ancestor_counts_on_the_leaf_alone,
           credit_is_taken_again_without_the_scheduler_when_its_worker_dies,
           credit_of_a_refused_leader_goes_to_another_job_at_once,
           credit_that_came_back_after_its_evidence_is_void,
           credit_that_nobody_is_left_to_take_goes_to_another_family,
           credit_whose_family_was_empty_all_along_is_found_by_a_look,
           credit_that_no_worker_can_take_moves_to_a_pool_that_has_some,
           credit_that_lies_too_long_is_given_to_a_family_that_can_use_it,
           credit_whose_events_were_lost_is_revoked_and_never_doubled,
           credit_of_a_slow_leader_is_not_given_twice,
           credit_may_prove_itself_while_it_is_being_taken_back,
           credit_waits_while_the_account_is_parked,
           credit_unclaimed_below_a_lane_that_shuts_writes_that_lane_too,
           credit_ahead_or_without_a_stream_is_a_ticket,
           credit_is_a_lead_for_ever_once_the_provider_refused_our_call,
           credit_is_a_lead_after_three_calls_that_failed,
           credit_of_a_ticket_that_is_never_answered_ends,
           credit_is_not_given_while_nobody_is_held,
           credit_that_comes_back_below_a_shut_lane_writes_that_lane,
           credit_below_a_lane_that_shuts_is_not_taken_beside_its_next_writer,
           credit_of_a_paused_family_goes_to_one_that_may_start,
           credit_of_a_paused_family_is_not_taken_for_revoked_when_it_was_given,
           credit_of_a_paused_family_that_comes_back_is_not_left_there)
