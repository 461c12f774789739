/* All pools at once: what waits, why, and what would start if slots came. */
#include "scheduler/core/core.h"

#include "scheduler/core/state.h"
#include "tests/lib/core_rig.h"
#include "tests/lib/suite.h"

#define LONG 3600000

static struct core_pool_view
survey(struct core_rig *rig, uint32_t pool)
{
	static uint64_t scratch[65 * 256];
	struct core_pool_view views[64];

	ck_assert_uint_le(rig->core->config.pools_max, ARRAY_SIZE(views));
	ck_assert_uint_le(core_pools_scratch(&rig->core->config), ARRAY_SIZE(scratch));
	ck_assert_uint_gt(core_pools_view(rig->core, views, scratch), pool);
	return views[pool];
}

START_TEST(survey_a_cold_family_could_use_one_slot_whatever_its_backlog)
{
	struct core_rig *rig = core_rig_fresh(0);
	struct core_pool_view view;

	(void)core_rig_admit(rig, "A", 90);
	(void)core_rig_admit(rig, "B", 10);
	view = survey(rig, 0);
	ck_assert_uint_eq(view.waiting, 100);
	ck_assert_uint_eq(view.running, 0);
	ck_assert_uint_eq(view.slots, 0);
	ck_assert_uint_eq(view.families[CORE_BLOCKED_NO_WORKER], 2);
	ck_assert_uint_eq(view.jobs[CORE_BLOCKED_NO_WORKER], 100);
	ck_assert_uint_eq(view.runnable, 2);
	core_rig_free(rig);
}
END_TEST

START_TEST(survey_while_one_writes_nothing_more_could_run)
{
	struct core_rig *rig = core_rig_fresh(50);
	struct core_pool_view view;

	(void)core_rig_admit(rig, "S", 90);
	core_rig_run(rig, 100);
	view = survey(rig, 0);
	ck_assert_uint_eq(view.running, 1);
	ck_assert_uint_eq(view.jobs[CORE_BLOCKED_WRITING], view.waiting);
	ck_assert_uint_eq(view.runnable, 0);
	core_rig_free(rig);
}
END_TEST

START_TEST(survey_what_is_warm_could_run_as_far_as_the_account_allows)
{
	struct core_rig *rig = core_rig_fresh(4);
	struct core_pool_view view;

	rig->knobs.job_ms = 600000;
	(void)core_rig_admit(rig, "S", 90);
	core_rig_run(rig, 20000);
	view = survey(rig, 0);
	ck_assert_uint_eq(view.running + view.waiting, 90);
	ck_assert_uint_ge(view.running, 2); /* plain starts make no event */
	ck_assert_uint_eq(view.runnable, rig->core->pacers[0].pace - view.running);
	ck_assert_uint_gt(view.runnable, 0);
	rig->core->pacers[0].parked_ms = rig->core->now_ms + 5000;
	ck_assert_uint_eq(survey(rig, 0).runnable, 0);
	rig->core->pacers[0].parked_ms = 0;
	pacer_take_bound(rig->core, 0);
	ck_assert_uint_eq(survey(rig, 0).runnable, 0);
	core_rig_free(rig);
}
END_TEST

START_TEST(survey_a_paused_family_counts_as_waiting_only)
{
	struct core_rig *rig = core_rig_fresh(4);
	struct event event = { .kind = EVENT_PAUSE, .pause.on = true };

	rig->knobs.stopped = true;
	(void)core_rig_admit(rig, "S", 7);
	event.pause.family = core_rig_node(rig, "S")->id;
	core_rig_feed(rig, &event);
	ck_assert_uint_eq(survey(rig, 0).waiting, 7);
	ck_assert_uint_eq(survey(rig, 0).jobs[CORE_BLOCKED_PAUSED], 7);
	ck_assert_uint_eq(survey(rig, 0).runnable, 0);
	core_rig_free(rig);
}
END_TEST

START_TEST(survey_keeps_pools_apart_and_their_sums_are_all_there_is)
{
	struct core_rig *rig = core_rig_fresh(2);
	uint32_t other = core_rig_pool(rig, "q", 3);
	uint64_t waiting = 0, oldest_ms;

	rig->knobs.stopped = true;
	(void)core_rig_admit(rig, "A", 5);
	oldest_ms = rig->families[0].oldest_ms;
	core_rig_run(rig, 1000);
	(void)core_rig_admit(rig, "B", 6);
	(void)core_rig_admit_as(rig, "C", other, EVENT_LIST_NORMAL, 8);
	ck_assert_uint_eq(survey(rig, 0).waiting, 11);
	ck_assert_uint_eq(survey(rig, 1).waiting, 8);
	ck_assert_uint_eq(survey(rig, 1).slots, 3);
	ck_assert_uint_eq(survey(rig, 0).oldest_ms, oldest_ms);
	ck_assert_uint_gt(survey(rig, 1).oldest_ms, oldest_ms);
	for (int i = 0; i < CORE_BLOCKED_COUNT; i++)
		waiting += survey(rig, 0).jobs[i];
	ck_assert_uint_eq(waiting, 11);
	rig->knobs.stopped = false;
	ck_assert(core_rig_drain(rig, LONG));
	ck_assert_uint_eq(survey(rig, 0).waiting + survey(rig, 1).waiting, 0);
	ck_assert_uint_eq(survey(rig, 0).running + survey(rig, 1).running, 0);
	core_rig_free(rig);
}
END_TEST

static enum core_blocked
blocked_on(struct core_rig *rig, const char *name, uint64_t *ret_number)
{
	struct core_family_view view;

	ck_assert_int_eq(core_family_view(rig->core, core_rig_node(rig, name)->id, &view),
	                 0);
	*ret_number = view.blocked_number;
	return view.blocked_on;
}

/* Twenty slots, and 30 long jobs of a warm prefix, on an account whose own most is
 * `at_once`: it is in force, and nothing earns more. */
static struct core_rig *
rig_at_its_most(uint32_t at_once)
{
	struct core_rig *rig = core_rig_fresh(20);
	struct event event = { .kind = EVENT_BUDGET };

	event.budget.id = rig->core->pacers[0].id;
	event.budget.pace_max = at_once;
	event.budget.limits[EVENT_BUCKET_REQUESTS] = 100000;
	core_rig_feed(rig, &event);
	rig->knobs.job_ms = 600000;
	(void)core_rig_admit(rig, "S", 30);
	core_rig_run(rig, 20000);
	return rig;
}

/* All that the account may run at once runs, slots are free, and its limits a minute are
 * far away: that is the window, not a budget, and not the slots. */
START_TEST(survey_an_account_that_may_run_no_more_at_once_has_a_full_window)
{
	struct core_rig *rig = rig_at_its_most(2);
	uint64_t number;

	ck_assert_int_eq(core_rig_node(rig, "S")->gate, LANE_OPEN);
	ck_assert_int_eq(blocked_on(rig, "S", &number), CORE_BLOCKED_WINDOW);
	ck_assert_uint_eq(number, 2);
	pacer_take_bound(rig->core, 0); /* two run */
	ck_assert_int_eq(blocked_on(rig, "S", &number), CORE_BLOCKED_WINDOW);
	(void)core_rig_admit(rig, "T", 5); /* it does not wait for slots, either */
	core_rig_run(rig, 1000);
	ck_assert_int_eq(blocked_on(rig, "T", &number), CORE_BLOCKED_WINDOW);
	ck_assert_uint_eq(survey(rig, 0).jobs[CORE_BLOCKED_WINDOW], 33);
	ck_assert_uint_eq(survey(rig, 0).runnable, 0);
	core_audit(rig->core);
	core_rig_free(rig);
}
END_TEST

/* Fewer run than it may: then a bucket is empty. */
START_TEST(survey_a_bucket_binds_before_the_window_is_full)
{
	struct core_rig *rig = rig_at_its_most(10);
	uint64_t number;

	rig->core->pacers[0].pace = rig->core->pacers[0].pace_max = 15;
	pacer_take_bound(rig->core, 0);
	ck_assert_int_eq(blocked_on(rig, "S", &number), CORE_BLOCKED_BUDGET);
	ck_assert_uint_eq(number, 100000);
	core_rig_free(rig);
}
END_TEST

START_TEST(survey_an_account_that_is_not_reached_stays_parked_while_one_asks)
{
	struct core_rig *rig = core_rig_fresh(20);
	struct event event = { .kind = EVENT_PRESSURE };
	uint64_t number;

	rig->knobs.stopped = true;
	(void)core_rig_admit(rig, "S", 30);
	event.pressure.budget = rig->core->pacers[0].id;
	event.pressure.what = EVENT_PRESSURE_AWAY;
	core_rig_feed(rig, &event);
	ck_assert_int_eq(blocked_on(rig, "S", &number), CORE_BLOCKED_PARKED);
	core_rig_run(rig, 5000);
	ck_assert(!pacer_is_parked(rig->core, &rig->core->pacers[0]));
	ck_assert_int_eq(blocked_on(rig, "S", &number), CORE_BLOCKED_PARKED);
	rig->knobs.stopped = false;
	core_rig_run(rig, 20000);
	ck_assert_int_ne(blocked_on(rig, "S", &number), CORE_BLOCKED_PARKED);
	core_rig_free(rig);
}
END_TEST

SUITE_MAIN("core_survey", survey_a_cold_family_could_use_one_slot_whatever_its_backlog,
           survey_while_one_writes_nothing_more_could_run,
           survey_what_is_warm_could_run_as_far_as_the_account_allows,
           survey_a_paused_family_counts_as_waiting_only,
           survey_keeps_pools_apart_and_their_sums_are_all_there_is,
           survey_an_account_that_may_run_no_more_at_once_has_a_full_window,
           survey_a_bucket_binds_before_the_window_is_full,
           survey_an_account_that_is_not_reached_stays_parked_while_one_asks)
