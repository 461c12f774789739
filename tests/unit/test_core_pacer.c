/* How many at once: slow start on evidence, halving on pressure, and never a standstill.
 */
#include "scheduler/core/pacer.h"

#include "scheduler/core/state.h"
#include "tests/lib/core_rig.h"
#include "tests/lib/suite.h"

#define LONG 3600000

/* A rig with an open lane `S`, so that only pace and slots bound its starts. */
static struct core_rig *
fresh(uint32_t slots)
{
	struct core_config config = core_rig_config();
	struct core_rig *rig = core_rig_create(&config, slots);

	(void)core_rig_admit(rig, "S", 2);
	ck_assert(core_rig_drain(rig, LONG));
	rig->starts_max = 0;
	return rig;
}

static struct pacer *
pacer_of(struct core_rig *rig)
{
	return &rig->core->pacers[0];
}

static void
press(struct core_rig *rig, enum event_pressure_kind what, uint64_t until_ms)
{
	struct event event = { .kind = EVENT_PRESSURE };

	event.pressure.budget = pacer_of(rig)->id;
	event.pressure.what = what;
	event.pressure.until_ms = until_ms;
	core_rig_feed(rig, &event);
}

START_TEST(pacer_doubles_with_the_first_byte_of_each_step)
{
	struct core_rig *rig = fresh(200);

	(void)core_rig_admit(rig, "S", 200);
	core_rig_run(rig, 499);
	ck_assert_uint_eq(rig->starts_count, 32);
	core_rig_run(rig, 1);
	ck_assert_uint_eq(rig->starts_count, 64);
	core_rig_run(rig, 499);
	ck_assert_uint_eq(rig->starts_count, 64);
	core_rig_run(rig, 1);
	ck_assert_uint_eq(rig->starts_count, 128);
	core_rig_run(rig, 500);
	ck_assert_uint_eq(rig->starts_count, 200);
	core_rig_free(rig);
}
END_TEST

START_TEST(pacer_does_not_double_more_often_than_every_100_ms)
{
	struct core_rig *rig = fresh(200);

	rig->knobs.warm_ms = 10;
	(void)core_rig_admit(rig, "S", 200);
	core_rig_run(rig, 99);
	ck_assert_uint_le(rig->starts_count, 64);
	core_rig_free(rig);
}
END_TEST

START_TEST(pacer_does_not_rise_without_need)
{
	struct core_rig *rig = fresh(200);

	for (int i = 0; i < 5; i++) {
		(void)core_rig_admit(rig, "S", 30);
		ck_assert(core_rig_drain(rig, LONG));
	}
	ck_assert_uint_eq(pacer_of(rig)->pace, 32);
	core_rig_free(rig);
}
END_TEST

START_TEST(pacer_remembers_what_was_reached_for_ten_minutes)
{
	struct core_rig *rig = fresh(200);

	(void)core_rig_admit(rig, "S", 300);
	ck_assert(core_rig_drain(rig, LONG));
	ck_assert_uint_eq(pacer_of(rig)->pace, 256);
	core_rig_run(rig, 590000);
	ck_assert_uint_eq(pacer_of(rig)->pace, 200); /* as many as have run */
	rig->knobs.ttl_ms = 3600000;
	(void)core_rig_admit(rig, "T", 200);
	while (core_rig_lane_named(rig, "T")->gate != LANE_OPEN)
		core_rig_run(rig, 1);
	core_rig_run(rig, 1);
	ck_assert_uint_eq(rig->starts_count, 200); /* no second ramp */
	ck_assert(core_rig_drain(rig, LONG));
	core_rig_run(rig, 1300000);
	ck_assert_uint_eq(pacer_of(rig)->pace, 32);
	ck_assert_uint_eq(rig->pace, 32);
	core_rig_free(rig);
}
END_TEST

START_TEST(pacer_halves_under_pressure_once_per_round_trip)
{
	struct core_rig *rig = fresh(200);

	press(rig, EVENT_PRESSURE_BUSY, 0);
	ck_assert_uint_eq(rig->pace, 16);
	press(rig, EVENT_PRESSURE_OVER, 0);
	ck_assert_uint_eq(rig->pace, 16); /* of the same moment */
	core_rig_run(rig, 2000);
	press(rig, EVENT_PRESSURE_OVER, 0);
	ck_assert_uint_eq(rig->pace, 8);
	for (int i = 0; i < 10; i++) {
		core_rig_run(rig, 2000);
		press(rig, EVENT_PRESSURE_BUSY, 0);
	}
	ck_assert_uint_eq(rig->pace, 1); /* and no lower */
	core_rig_free(rig);
}
END_TEST

START_TEST(pacer_errors_of_the_provider_do_not_halve)
{
	struct core_rig *rig = fresh(200);

	press(rig, EVENT_PRESSURE_ERROR, rig->now_ms + 5000);
	ck_assert_uint_eq(rig->pace, 32);
	ck_assert_uint_eq(pacer_of(rig)->parked_ms, rig->now_ms + 5000);
	core_rig_free(rig);
}
END_TEST

START_TEST(pacer_asks_one_at_a_time_whether_a_provider_is_back)
{
	struct core_rig *rig = fresh(200);

	core_rig_run(rig, 10000);
	press(rig, EVENT_PRESSURE_AWAY, 0);
	ck_assert_uint_eq(rig->pace, 1);
	ck_assert_uint_eq(rig->parked_ms, rig->now_ms + 2000);
	core_rig_run(rig, 30000);
	ck_assert_uint_eq(rig->pace, 1);
	(void)core_rig_admit(rig, "S", 200);
	ck_assert(core_rig_drain(rig, LONG));
	ck_assert_uint_ge(rig->pace, 64);
	core_rig_free(rig);
}
END_TEST

START_TEST(pacer_believes_no_single_worker_that_a_provider_is_away)
{
	struct core_rig *rig = fresh(200);

	press(rig, EVENT_PRESSURE_AWAY, 0); /* it has just been heard of */
	ck_assert_uint_eq(rig->pace, 32);
	ck_assert_uint_eq(rig->parked_ms, 0);
	core_rig_run(rig, 10000);
	press(rig, EVENT_PRESSURE_AWAY, 0);
	ck_assert_uint_eq(rig->pace, 1);
	core_rig_free(rig);
}
END_TEST

START_TEST(pacer_first_bytes_sent_before_the_pressure_are_no_evidence)
{
	struct core_rig *rig = fresh(200);

	(void)core_rig_admit(rig, "S", 200);
	core_rig_run(rig, 400);
	press(rig, EVENT_PRESSURE_BUSY, 0);
	core_rig_run(rig, 200); /* the first bytes of the 32 are in */
	ck_assert_uint_eq(rig->pace, 16);
	core_rig_free(rig);
}
END_TEST

START_TEST(pacer_recovers_from_the_lowest_pace)
{
	struct core_rig *rig = fresh(50);

	pacer_of(rig)->pace = rig->pace = 1;
	(void)core_rig_admit(rig, "S", 300);
	ck_assert(core_rig_drain(rig, 60000));
	ck_assert_uint_ge(rig->starts_max, 50);
	core_rig_free(rig);
}
END_TEST

START_TEST(pacer_without_any_evidence_doubles_by_patience)
{
	struct core_rig *rig = fresh(200);

	rig->knobs.mute = true;
	rig->knobs.job_ms = 600000;
	(void)core_rig_admit(rig, "S", 200);
	core_rig_run(rig, 9999);
	ck_assert_uint_eq(rig->starts_count, 32);
	core_rig_run(rig, 1);
	ck_assert_uint_eq(rig->starts_count, 64);
	core_rig_run(rig, 20000);
	ck_assert_uint_eq(rig->starts_count, 200);
	core_rig_free(rig);
}
END_TEST

START_TEST(pacer_asks_again_for_a_first_byte_that_did_not_come)
{
	struct core_rig *rig = fresh(200);

	rig->knobs.mute = true; /* the first one asked is not heard */
	(void)core_rig_admit(rig, "S", 200);
	core_rig_run(rig, 1000);
	rig->knobs.mute = false;
	rig->begin = false;
	core_rig_run(rig, 1600);
	ck_assert_uint_gt(pacer_of(rig)->pace, 32);
	core_rig_free(rig);
}
END_TEST

START_TEST(pacer_a_spend_cap_counts_while_the_account_rests_for_another_reason)
{
	struct core_rig *rig = fresh(200);

	press(rig, EVENT_PRESSURE_SPEND, 0);
	core_rig_run(rig, 60000);
	press(rig, EVENT_PRESSURE_OVER, rig->now_ms + 3000);
	press(rig, EVENT_PRESSURE_SPEND, rig->now_ms + 60000);
	ck_assert_uint_eq(pacer_of(rig)->spends, 2);
	ck_assert_uint_eq(rig->parked_ms, rig->now_ms + 120000);
	press(rig, EVENT_PRESSURE_SPEND, rig->now_ms + 150000); /* was in flight */
	ck_assert_uint_eq(pacer_of(rig)->spends, 2);
	ck_assert_uint_eq(pacer_of(rig)->parked_ms, rig->now_ms + 150000);
	core_rig_free(rig);
}
END_TEST

START_TEST(pacer_a_spend_cap_parks_longer_each_time)
{
	struct core_rig *rig = fresh(200);

	press(rig, EVENT_PRESSURE_SPEND, 0);
	ck_assert_uint_eq(rig->parked_ms, rig->now_ms + 60000);
	press(rig, EVENT_PRESSURE_SPEND, 0); /* was in flight */
	ck_assert_uint_eq(pacer_of(rig)->spends, 1);
	core_rig_run(rig, 60000);
	press(rig, EVENT_PRESSURE_SPEND, 0);
	ck_assert_uint_eq(rig->parked_ms, rig->now_ms + 120000);
	for (int i = 0; i < 10; i++) {
		core_rig_run(rig, 1800000);
		press(rig, EVENT_PRESSURE_SPEND, 0);
	}
	ck_assert_uint_eq(rig->parked_ms, rig->now_ms + 1800000);
	core_rig_run(rig, 1800000);
	(void)core_rig_admit(rig, "S", 2); /* somebody paid */
	ck_assert(core_rig_drain(rig, LONG));
	ck_assert_uint_eq(pacer_of(rig)->spends, 0);
	core_rig_free(rig);
}
END_TEST

static void
unpark(struct core_rig *rig)
{
	struct event event = { .kind = EVENT_UNPARK };

	event.unpark.budget = pacer_of(rig)->id;
	rig->parked_ms = 0; /* the function has done so */
	core_rig_feed(rig, &event);
}

START_TEST(pacer_an_account_that_is_unparked_starts_at_once)
{
	struct core_rig *rig = fresh(200);

	for (int i = 0; i < 5; i++) {
		press(rig, EVENT_PRESSURE_SPEND, 0);
		core_rig_run(rig, 1800000);
	}
	press(rig, EVENT_PRESSURE_SPEND, 0);
	core_rig_run(rig, 1000);
	ck_assert_uint_gt(rig->parked_ms, rig->now_ms + 1000000);
	(void)core_rig_admit(rig, "S", 2);
	unpark(rig);
	ck_assert_uint_eq(pacer_of(rig)->parked_ms, 0);
	ck_assert(core_rig_drain(rig, 60000));
	press(rig, EVENT_PRESSURE_SPEND, 0); /* the cap is not lifted after all */
	ck_assert_uint_eq(rig->parked_ms, rig->now_ms + 60000);
	core_rig_free(rig);
}
END_TEST

/* The function ran first, then the grant that the core had sent before it heard of it. */
START_TEST(pacer_a_park_that_comes_behind_its_end_is_ended_again)
{
	struct core_rig *rig = fresh(200);
	struct event status = { .kind = EVENT_PACED };

	press(rig, EVENT_PRESSURE_SPEND, 0);
	core_rig_run(rig, 1000);
	pacer_of(rig)->flight = pacer_of(rig)->park_flight = true;
	rig->parked_ms = 0;
	unpark(rig);
	rig->parked_ms = rig->now_ms + 60000;
	status.paced.budget = pacer_of(rig)->id;
	status.paced.status = EVENT_STATUS_DONE;
	core_rig_feed(rig, &status);
	core_rig_run(rig, 1000);
	ck_assert_uint_eq(rig->parked_ms, 0);
	core_rig_free(rig);
}
END_TEST

START_TEST(pacer_an_older_park_never_shortens_a_longer_one)
{
	struct core_rig *rig = fresh(200);
	uint64_t until_ms = rig->now_ms + 60000;

	press(rig, EVENT_PRESSURE_BUSY, until_ms);
	press(rig, EVENT_PRESSURE_BUSY, rig->now_ms + 1000);
	ck_assert_uint_eq(pacer_of(rig)->parked_ms, until_ms);
	rig->parked_ms = until_ms + 5; /* `fail` has parked it for longer since */
	pacer_of(rig)->dirty = true;
	core_rig_run(rig, 1);
	ck_assert_uint_eq(rig->parked_ms, until_ms + 5);
	core_rig_free(rig);
}
END_TEST

START_TEST(pacer_learns_limits_from_answers_unless_they_are_configured)
{
	struct core_rig *rig = fresh(200);
	struct event event = { .kind = EVENT_BUDGET };
	const uint64_t seen[EVENT_BUCKET_COUNT] = { 0, 450000, 90000 };
	struct core_budget_view view;

	event.budget.id = pacer_of(rig)->id;
	event.budget.limits[EVENT_BUCKET_OUTPUT] = 50000;
	core_rig_feed(rig, &event);
	pacer_take_byte(rig->core, 0, rig->now_ms, rig->now_ms, seen);
	ck_assert_int_eq(core_budget_view(rig->core, pacer_of(rig)->id, &view), 0);
	ck_assert_uint_eq(view.limits[EVENT_BUCKET_REQUESTS], 0);
	ck_assert_uint_eq(view.limits[EVENT_BUCKET_INPUT], 450000);
	ck_assert_uint_eq(view.limits[EVENT_BUCKET_OUTPUT], 50000);
	ck_assert(pacer_of(rig)->dirty);
	core_rig_free(rig);
}
END_TEST

/* As behind a gateway that hands the headers on of some answers only, and then of none.
 */
START_TEST(pacer_forgets_a_learned_limit_that_no_answer_tells_any_more)
{
	struct core_rig *rig = fresh(200);
	const uint64_t seen[EVENT_BUCKET_COUNT] = { 600, 450000, 0 };
	const uint64_t fewer[EVENT_BUCKET_COUNT] = { 0, 450000, 0 };
	const uint64_t now_ms = rig->core->now_ms;
	struct pacer *pacer = pacer_of(rig);

	pacer_take_byte(rig->core, 0, now_ms, now_ms, seen);
	for (int i = 1; i < PACER_SILENT_MAX; i++)
		pacer_take_byte(rig->core, 0, now_ms, now_ms, fewer);
	pacer_take_byte(rig->core, 0, now_ms, now_ms, seen);
	for (int i = 1; i < PACER_SILENT_MAX; i++)
		pacer_take_byte(rig->core, 0, now_ms, now_ms, fewer);
	pacer_take_byte(rig->core, 0, 0, 0, fewer); /* no answer */
	ck_assert_uint_eq(pacer_limit(pacer, EVENT_BUCKET_REQUESTS), 600);
	ck_assert_uint_eq(pacer_learned(pacer), 3);
	pacer->dirty = false;
	pacer_take_byte(rig->core, 0, now_ms, now_ms, fewer);
	ck_assert_uint_eq(pacer_limit(pacer, EVENT_BUCKET_REQUESTS), 0);
	ck_assert_uint_eq(pacer_limit(pacer, EVENT_BUCKET_INPUT), 450000);
	ck_assert_uint_eq(pacer_learned(pacer), 2);
	ck_assert(pacer->dirty);
	core_rig_free(rig);
}
END_TEST

START_TEST(pacer_never_goes_beyond_its_own_bound)
{
	struct core_rig *rig = fresh(200);
	struct event event = { .kind = EVENT_BUDGET };

	event.budget.id = pacer_of(rig)->id;
	event.budget.pace_max = 50;
	core_rig_feed(rig, &event);
	(void)core_rig_admit(rig, "S", 300);
	ck_assert(core_rig_drain(rig, LONG));
	ck_assert_uint_eq(rig->starts_max, 50);
	core_rig_free(rig);
}
END_TEST

START_TEST(pacer_an_unknown_outcome_is_said_again)
{
	struct core_rig *rig = fresh(200);

	rig->knobs.deaf = 1;
	pacer_of(rig)->dirty = true;
	core_rig_run(rig, 1);
	ck_assert(!pacer_of(rig)->dirty);
	ck_assert(!pacer_of(rig)->flight);
	ck_assert_uint_eq(rig->knobs.deaf, 0);
	core_rig_free(rig);
}
END_TEST

SUITE_MAIN("core_pacer", pacer_doubles_with_the_first_byte_of_each_step,
           pacer_does_not_double_more_often_than_every_100_ms,
           pacer_does_not_rise_without_need,
           pacer_remembers_what_was_reached_for_ten_minutes,
           pacer_halves_under_pressure_once_per_round_trip,
           pacer_errors_of_the_provider_do_not_halve,
           pacer_asks_one_at_a_time_whether_a_provider_is_back,
           pacer_believes_no_single_worker_that_a_provider_is_away,
           pacer_first_bytes_sent_before_the_pressure_are_no_evidence,
           pacer_recovers_from_the_lowest_pace,
           pacer_without_any_evidence_doubles_by_patience,
           pacer_asks_again_for_a_first_byte_that_did_not_come,
           pacer_a_spend_cap_parks_longer_each_time,
           pacer_a_spend_cap_counts_while_the_account_rests_for_another_reason,
           pacer_an_account_that_is_unparked_starts_at_once,
           pacer_a_park_that_comes_behind_its_end_is_ended_again,
           pacer_an_older_park_never_shortens_a_longer_one,
           pacer_learns_limits_from_answers_unless_they_are_configured,
           pacer_forgets_a_learned_limit_that_no_answer_tells_any_more,
           pacer_never_goes_beyond_its_own_bound, pacer_an_unknown_outcome_is_said_again)
