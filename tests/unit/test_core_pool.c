/* Who is next: drain before switch, bands, and nobody for ever. */
#include "scheduler/core/pool.h"

#include "scheduler/core/state.h"
#include "tests/lib/core_rig.h"
#include "tests/lib/suite.h"

#define LONG 3600000

static struct family *
family_at(struct core_rig *rig, uint32_t index)
{
	const struct core_rig_family *family = &rig->families[index];
	uint32_t leaf = family->chain[family->chain_count - 1];

	return &rig->core->families[family_find(rig->core, rig->nodes[leaf].id)];
}

static void
drain(struct core_rig *rig)
{
	ck_assert(core_rig_drain(rig, LONG));
	core_audit(rig->core);
}

START_TEST(pool_drains_one_family_before_it_starts_the_next)
{
	struct core_rig *rig = core_rig_fresh(4);

	(void)core_rig_admit(rig, "A", 40);
	(void)core_rig_admit(rig, "B", 40);
	core_rig_run(rig, 20000);
	ck_assert_uint_gt(rig->families[0].backlog, 0);
	ck_assert_uint_le(rig->families[1].started, 2); /* while A was cold */
	drain(rig);
	ck_assert_uint_eq(core_rig_node(rig, "A")->writes, 1);
	core_rig_free(rig);
}
END_TEST

START_TEST(pool_activates_the_next_family_when_slots_would_idle)
{
	struct core_rig *rig = core_rig_fresh(4);

	(void)core_rig_admit(rig, "A", 3);
	drain(rig);
	(void)core_rig_admit(rig, "A", 3); /* warm: three of four slots */
	(void)core_rig_admit(rig, "B", 40);
	core_rig_run(rig, 1);
	ck_assert_uint_eq(rig->starts_count, 4);
	core_rig_free(rig);
}
END_TEST

START_TEST(pool_does_not_activate_while_the_active_ones_fill_it)
{
	struct core_rig *rig = core_rig_fresh(4);

	rig->knobs.job_ms = 20000;
	(void)core_rig_admit(rig, "A", 2);
	drain(rig);
	(void)core_rig_admit(rig, "A", 40); /* warm */
	(void)core_rig_admit(rig, "B", 40);
	core_rig_run(rig, 30000);
	ck_assert_int_eq(family_at(rig, 1)->state, FAMILY_WAITING);
	drain(rig);
	core_rig_free(rig);
}
END_TEST

START_TEST(pool_warms_the_next_family_ahead_by_a_call_where_there_is_one)
{
	struct core_rig *rig = core_rig_fresh(4);
	struct event event = { .kind = EVENT_MODEL };

	rig->model.calls = true;
	event.model = rig->model;
	core_rig_feed(rig, &event);
	(void)core_rig_admit(rig, "A", 2);
	drain(rig);
	rig->core->pools[0].job_ms = 2500;
	(void)core_rig_admit(rig, "A", 7); /* not yet two more waves */
	(void)core_rig_admit(rig, "B", 40);
	core_rig_run(rig, 1);
	ck_assert_int_eq(family_at(rig, 1)->credit.role, LANE_TICKET);
	ck_assert(family_at(rig, 1)->ahead);
	drain(rig);
	ck_assert_uint_eq(core_rig_node(rig, "B")->writes, 1);
	core_rig_free(rig);
}
END_TEST

START_TEST(pool_does_not_warm_what_would_expire_before_its_turn)
{
	struct core_rig *rig = core_rig_fresh(10);

	for (char name[] = "A"; name[0] <= 'P'; name[0]++)
		(void)core_rig_admit(rig, name,
		                     50); /* 50 s each, by the first estimate */
	core_rig_run(rig, 10);
	ck_assert_uint_ge(rig->starts_count, 3);
	ck_assert_uint_le(rig->starts_count, 4); /* 145 s is half a life */
	drain(rig);
	for (char name[] = "A"; name[0] <= 'P'; name[0]++)
		ck_assert_uint_eq(core_rig_node(rig, name)->writes, 1);
	core_rig_free(rig);
}
END_TEST

START_TEST(pool_a_warm_family_needs_no_turn)
{
	struct core_rig *rig = core_rig_fresh(4);

	(void)core_rig_admit(rig, "A", 2);
	drain(rig);
	(void)core_rig_admit(rig, "B", 2);
	drain(rig);
	(void)core_rig_admit(rig, "B", 40);
	(void)core_rig_admit(rig, "A", 1);
	core_rig_run(rig, 1);
	ck_assert_int_eq(family_at(rig, 0)->state, FAMILY_READY);
	ck_assert_uint_gt(family_at(rig, 0)->rank, family_at(rig, 1)->rank);
	core_rig_free(rig);
}
END_TEST

START_TEST(pool_prefers_the_better_band_then_the_most_work)
{
	struct core_rig *rig = core_rig_fresh(1);

	(void)core_rig_admit(rig, "A", 1);
	core_rig_run(rig, 1); /* has the only slot */
	(void)core_rig_admit_as(rig, "L", 0, EVENT_LIST_LOW, 90);
	(void)core_rig_admit_as(rig, "N", 0, EVENT_LIST_NORMAL, 5);
	(void)core_rig_admit_as(rig, "M", 0, EVENT_LIST_NORMAL, 50);
	(void)core_rig_admit_as(rig, "H", 0, EVENT_LIST_HIGH, 1);
	drain(rig);
	ck_assert_uint_lt(rig->families[4].last_step, rig->families[3].last_step);
	ck_assert_uint_lt(rig->families[3].last_step, rig->families[2].last_step);
	ck_assert_uint_lt(rig->families[2].last_step, rig->families[1].last_step);
	core_rig_free(rig);
}
END_TEST

START_TEST(pool_a_better_band_moves_a_waiting_family_forward)
{
	struct core_rig *rig = core_rig_fresh(1);

	rig->knobs.job_ms = 20000;
	(void)core_rig_admit(rig, "A", 9);
	core_rig_run(rig, 1);
	(void)core_rig_admit_as(rig, "B", 0, EVENT_LIST_LOW, 1);
	(void)core_rig_admit_as(rig, "C", 0, EVENT_LIST_NORMAL, 1);
	ck_assert_int_eq(family_at(rig, 1)->state, FAMILY_WAITING);
	ck_assert_uint_eq(rig->core->pools[0].waiting[EVENT_LIST_LOW].count, 1);
	(void)core_rig_admit_as(rig, "B", 0, EVENT_LIST_HIGH, 1);
	ck_assert_uint_eq(rig->core->pools[0].waiting[EVENT_LIST_LOW].count, 0);
	ck_assert_uint_eq(rig->core->pools[0].waiting[EVENT_LIST_HIGH].count, 1);
	core_audit(rig->core);
	core_rig_free(rig);
}
END_TEST

START_TEST(pool_whoever_waits_longer_than_max_wait_goes_first)
{
	struct core_rig *rig = core_rig_fresh(2);
	struct event event = { .kind = EVENT_POOL };
	uint64_t from_ms;

	event.pool.id = rig->core->pools[0].id;
	event.pool.slots = 2;
	event.pool.max_wait_ms = 30000;
	core_rig_feed(rig, &event);
	(void)core_rig_admit(rig, "A", 1000); /* 1,000 s of work */
	core_rig_run(rig, 10000);
	from_ms = rig->now_ms;
	(void)core_rig_admit(rig, "B", 3);
	while (rig->families[1].started == 0 && rig->now_ms < from_ms + 100000)
		core_rig_run(rig, 100);
	ck_assert_uint_le(rig->now_ms - from_ms, 30000 + 2500 + 100);
	ck_assert_uint_ge(rig->now_ms - from_ms, 30000);
	core_audit(rig->core);
	core_rig_run(rig, 20000);
	ck_assert_uint_eq(rig->families[1].backlog, 0);
	ck_assert(!family_at(rig, 1)->overdue);
	core_rig_free(rig);
}
END_TEST

START_TEST(pool_two_that_never_end_take_turns)
{
	struct core_rig *rig = core_rig_fresh(4);
	struct event event = { .kind = EVENT_POOL };

	event.pool.id = rig->core->pools[0].id;
	event.pool.slots = 4;
	event.pool.max_wait_ms = 20000;
	core_rig_feed(rig, &event);
	(void)core_rig_admit(rig, "A", 5000);
	(void)core_rig_admit(rig, "B", 5000);
	for (int i = 0; i < 10; i++) {
		uint32_t a = rig->families[0].started, b = rig->families[1].started;

		core_rig_run(rig, 60000);
		ck_assert_uint_gt(rig->families[0].started, a);
		ck_assert_uint_gt(rig->families[1].started, b);
	}
	core_audit(rig->core);
	core_rig_free(rig);
}
END_TEST

START_TEST(pool_cuts_the_windows_of_others_while_somebody_is_overdue)
{
	struct core_rig *rig = core_rig_fresh(10);
	struct event event = { .kind = EVENT_POOL };

	event.pool.id = rig->core->pools[0].id;
	event.pool.slots = 10;
	event.pool.max_wait_ms = 5000;
	core_rig_feed(rig, &event);
	(void)core_rig_admit(rig, "A", 2);
	drain(rig);
	(void)core_rig_admit(rig, "A", 15);
	rig->knobs.job_ms = 20000;
	core_rig_run(rig, 1);
	(void)core_rig_admit(rig, "B", 3);
	core_rig_run(rig, 5100);
	ck_assert_uint_ge(rig->core->pools[0].overdue, 1);
	ck_assert(family_at(rig, 1)->overdue);
	ck_assert_uint_eq(
		pool_window(rig->core, family_find(rig->core, family_at(rig, 1)->id)),
		LANE_WINDOW);
	ck_assert_uint_eq(
		pool_window(rig->core, family_find(rig->core, family_at(rig, 0)->id)), 5);
	ck_assert_uint_eq(core_rig_node(rig, "A")->window, 5); /* Redis knows it */
	drain(rig);
	core_rig_run(rig, 10000);
	ck_assert_uint_eq(core_rig_node(rig, "A")->window, LANE_WINDOW);
	core_rig_free(rig);
}
END_TEST

START_TEST(pool_nobody_is_overdue_while_parked_or_paused_or_without_workers)
{
	struct core_rig *rig = core_rig_fresh(10);
	struct event event = { .kind = EVENT_PAUSE };

	rig->core->pools[0].max_wait_ms = 5000;
	(void)core_rig_admit(rig, "A", 0);
	rig->families[0].flags = EVENT_FAMILY_PAUSED;
	(void)core_rig_admit(rig, "A", 1);
	event.pause.family = core_rig_node(rig, "A")->id;
	event.pause.on = true;
	core_rig_feed(rig, &event);
	core_rig_run(rig, 60000);
	ck_assert_uint_eq(rig->core->pools[0].overdue, 0);
	ck_assert_int_eq(family_at(rig, 0)->state, FAMILY_PAUSED);
	rig->families[0].flags = 0;
	event.pause.on = false;
	core_rig_feed(rig, &event);
	drain(rig);
	ck_assert_uint_eq(rig->hold_limits, 0);
	core_rig_free(rig);
}
END_TEST

START_TEST(pool_learns_from_idle_slots_that_its_estimates_are_old)
{
	struct core_rig *rig = core_rig_fresh(4);

	(void)core_rig_admit(rig, "A", 2);
	drain(rig);
	rig->knobs.mute = true;
	(void)core_rig_admit(rig, "A", 50); /* all of them pass unheard */
	core_rig_run(rig, 40000);
	ck_assert_uint_eq(rig->families[0].done, 52);
	rig->knobs.mute = false;
	(void)core_rig_admit(rig, "B", 4);
	core_rig_run(rig, 2000); /* the next claim says that slots are free */
	ck_assert_uint_eq(rig->families[1].started, 1);
	core_rig_free(rig);
}
END_TEST

/* "A" is warm, and its account takes two requests at once. */
static void
warm_at_two(struct core_rig *rig)
{
	struct event event = { .kind = EVENT_BUDGET };

	(void)core_rig_admit(rig, "A", 2);
	drain(rig);
	event.budget.id = rig->core->pacers[0].id;
	event.budget.pace_max = 2;
	core_rig_feed(rig, &event);
}

/* 19 jobs would not fill 100 slots, so free ones are no wonder; that the jobs wait is. */
START_TEST(pool_looks_why_few_jobs_wait_beside_free_slots)
{
	struct core_rig *rig = core_rig_fresh(100);

	warm_at_two(rig);
	rig->knobs.job_ms = 60000;
	(void)core_rig_admit(rig, "A", 19);
	core_rig_run(rig, 3000);
	ck_assert_uint_gt(family_at(rig, 0)->waiting, 0);
	ck_assert_uint_lt(rig->core->pools[0].load, rig->core->pools[0].slots);
	ck_assert(pacer_is_bound(rig->core, &rig->core->pacers[0]));
	core_rig_free(rig);
}
END_TEST

START_TEST(pool_does_not_switch_when_the_budget_holds_the_active_family)
{
	struct core_rig *rig = core_rig_fresh(20);

	warm_at_two(rig);
	rig->knobs.job_ms = 5000;
	(void)core_rig_admit(rig, "A", 19);
	core_rig_run(rig, 1100);
	rig->core->pools[0].short_ms = rig->now_ms;
	family_look(rig->core, 0);
	core_rig_run(rig, 1);
	ck_assert(pacer_is_bound(rig->core, &rig->core->pacers[0]));
	(void)core_rig_admit(rig, "B", 5);
	core_rig_run(rig, 1);
	ck_assert_int_eq(family_at(rig, 1)->state, FAMILY_WAITING);
	core_rig_free(rig);
}
END_TEST

/* A is warm, and its jobs would fill all slots; its account keeps them. */
static struct core_rig *
set_up_beside_a_backlog(uint32_t jobs)
{
	struct core_rig *rig = core_rig_fresh(20);

	(void)core_rig_admit(rig, "A", 2);
	drain(rig);
	(void)core_rig_admit(rig, "A", jobs);
	core_rig_elsewhere(rig, true);
	return rig;
}

static void
expect_that_another_account_goes_on(struct core_rig *rig, uint64_t ms)
{
	(void)core_rig_admit(rig, "B", 30);
	(void)core_rig_admit(rig, "C", 30);
	core_rig_run(rig, ms);
	core_audit(rig->core);
	ck_assert_uint_eq(rig->families[1].done, 30);
	ck_assert_uint_eq(rig->families[2].done, 30);
	ck_assert_uint_gt(rig->families[0].backlog, 0);
	drain(rig);
	ck_assert_uint_eq(core_rig_node(rig, "B")->writes, 1);
	ck_assert_uint_eq(core_rig_node(rig, "C")->writes, 1);
	ck_assert_uint_eq(rig->hold_limits, 0);
	core_rig_free(rig);
}

START_TEST(pool_leaves_what_a_parked_account_cannot_use_to_others)
{
	struct core_rig *rig = set_up_beside_a_backlog(400);
	struct event event = { .kind = EVENT_PRESSURE };

	event.pressure.budget = rig->core->pacers[0].id;
	event.pressure.what = EVENT_PRESSURE_BUSY;
	event.pressure.until_ms = rig->parked_ms = rig->now_ms + 60000;
	core_rig_feed(rig, &event);
	expect_that_another_account_goes_on(rig, 20000);
}
END_TEST

START_TEST(pool_leaves_what_a_pace_does_not_use_to_others)
{
	struct core_rig *rig = set_up_beside_a_backlog(400);
	struct event event = { .kind = EVENT_BUDGET };

	ck_assert(!pool_leaves_slots(rig->core, 0));
	event.budget.id = rig->core->pacers[0].id;
	event.budget.pace_max = 2;
	core_rig_feed(rig, &event);
	ck_assert_msg(pool_leaves_slots(rig->core, 0),
	              "at once, not when a claim tells it");
	expect_that_another_account_goes_on(rig, 25000);
}
END_TEST

/* Its buckets; a claim that leaves slots free, and a look, tell of them. */
START_TEST(pool_leaves_what_a_bound_account_does_not_use_to_others)
{
	struct core_rig *rig = set_up_beside_a_backlog(400);

	rig->parked_ms = rig->now_ms + 60000;
	expect_that_another_account_goes_on(rig, 25000);
}
END_TEST

/* Nor is more begun than the slots that are left can use. */
START_TEST(pool_begins_no_more_than_fits_beside_a_parked_account)
{
	struct core_rig *rig = set_up_beside_a_backlog(400);
	struct event event = { .kind = EVENT_PRESSURE };

	event.pressure.budget = rig->core->pacers[0].id;
	event.pressure.what = EVENT_PRESSURE_BUSY;
	event.pressure.until_ms = rig->parked_ms = rig->now_ms + 600000;
	core_rig_feed(rig, &event);
	rig->knobs.job_ms = 60000;
	(void)core_rig_admit(rig, "B", 100);
	core_rig_run(rig, 10000);
	(void)core_rig_admit(rig, "C", 100);
	core_rig_run(rig, 10000);
	ck_assert_int_eq(family_at(rig, 1)->state, FAMILY_READY);
	ck_assert_int_eq(family_at(rig, 2)->state, FAMILY_WAITING);
	core_rig_free(rig);
}
END_TEST

START_TEST(pool_zero_sharing_is_a_plain_queue)
{
	struct core_rig *rig = core_rig_fresh(4);
	uint64_t from_ms = rig->now_ms;
	char name[CORE_RIG_NAME];

	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof name, "x%d?", i);
		(void)core_rig_admit(rig, name, 1);
	}
	drain(rig);
	/* Five waves of warm first event and job, and a moment for company. */
	ck_assert_uint_le(rig->now_ms - from_ms, 5 * 2500 + 1020);
	ck_assert_uint_le(rig->grants, 2 * 20);
	core_rig_free(rig);
}
END_TEST

START_TEST(pool_ranks_begin_again_when_they_are_used_up)
{
	struct core_rig *rig = core_rig_fresh(1);

	rig->knobs.stopped = true;
	(void)core_rig_admit(rig, "A?", 5);
	core_rig_run(rig, 100);
	rig->core->rank_next = POOL_RANK_LAST - 2;
	(void)core_rig_admit(rig, "B?", 5);
	core_rig_run(rig, 100);
	(void)core_rig_admit(rig, "C?", 5);
	core_rig_run(rig, 100);
	ck_assert_uint_lt(family_at(rig, 0)->rank, family_at(rig, 1)->rank);
	ck_assert_uint_lt(family_at(rig, 1)->rank, family_at(rig, 2)->rank);
	ck_assert_uint_lt(rig->core->rank_next, POOL_RANK_LAST);
	ck_assert_uint_eq(core_rig_node(rig, "C")->rank, family_at(rig, 2)->rank);
	core_rig_free(rig);
}
END_TEST

/* A mean of integers falls to nothing: 7 of 7 and 0 is 6, and so on. */
START_TEST(pool_survives_jobs_that_take_no_time)
{
	struct core_rig *rig = core_rig_fresh(4);

	(void)core_rig_admit(rig, "A", 3);
	drain(rig);
	for (int i = 0; i < 200; i++)
		pool_take_done(rig->core, 0, 0);
	ck_assert_uint_eq(rig->core->pools[0].job_ms, 1);
	core_rig_free(rig);
}
END_TEST

START_TEST(pool_a_family_may_be_admitted_paused_and_without_jobs)
{
	struct core_rig *rig = core_rig_fresh(2);

	(void)core_rig_admit(rig, "A", 0);
	rig->families[0].flags = EVENT_FAMILY_PAUSED;
	(void)core_rig_admit(rig, "A", 0);
	ck_assert_int_eq(family_at(rig, 0)->state, FAMILY_PAUSED);
	core_audit(rig->core);
	core_rig_free(rig);
}
END_TEST

SUITE_MAIN("core_pool", pool_drains_one_family_before_it_starts_the_next,
           pool_activates_the_next_family_when_slots_would_idle,
           pool_does_not_activate_while_the_active_ones_fill_it,
           pool_warms_the_next_family_ahead_by_a_call_where_there_is_one,
           pool_does_not_warm_what_would_expire_before_its_turn,
           pool_a_warm_family_needs_no_turn,
           pool_prefers_the_better_band_then_the_most_work,
           pool_a_better_band_moves_a_waiting_family_forward,
           pool_whoever_waits_longer_than_max_wait_goes_first,
           pool_two_that_never_end_take_turns,
           pool_cuts_the_windows_of_others_while_somebody_is_overdue,
           pool_nobody_is_overdue_while_parked_or_paused_or_without_workers,
           pool_learns_from_idle_slots_that_its_estimates_are_old,
           pool_does_not_switch_when_the_budget_holds_the_active_family,
           pool_leaves_what_a_parked_account_cannot_use_to_others,
           pool_leaves_what_a_pace_does_not_use_to_others,
           pool_looks_why_few_jobs_wait_beside_free_slots,
           pool_leaves_what_a_bound_account_does_not_use_to_others,
           pool_begins_no_more_than_fits_beside_a_parked_account,
           pool_zero_sharing_is_a_plain_queue,
           pool_ranks_begin_again_when_they_are_used_up,
           pool_survives_jobs_that_take_no_time,
           pool_a_family_may_be_admitted_paused_and_without_jobs)
