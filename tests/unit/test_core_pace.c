/* The pace rises by the provider's round trip, whatever the order of work and bytes. */
#include "tests/lib/core_rig.h"
#include "tests/lib/suite.h"

#include <stdlib.h>

#define FAMILIES 8
#define JOBS     12 /* of each */
#define SLOTS    100

static struct core_rig *
set_up(uint64_t warm_ms)
{
	struct core_config config = core_rig_config();
	struct core_rig *rig;

	config.pace_start = 8;
	rig = core_rig_create(&config, SLOTS);
	rig->knobs.cold_ms = 500;
	rig->knobs.warm_ms = warm_ms;
	rig->knobs.job_ms = 60000;
	return rig;
}

static uint32_t
count_started(const struct core_rig *rig)
{
	uint32_t started = 0;

	for (uint32_t i = 0; i < rig->families_count; i++)
		started += rig->families[i].started;
	return started;
}

/* Families whose prefixes get warm one after the other: at each step all of the pace may
 * be taken when there comes to be more work. */
static void
check_staggered(uint64_t gap_ms, uint64_t warm_ms)
{
	static const char *const names[FAMILIES] = { "A", "B", "C", "D",
		                                     "E", "F", "G", "H" };
	struct core_rig *rig = set_up(warm_ms);

	for (size_t i = 0; i < FAMILIES; i++) {
		(void)core_rig_admit(rig, names[i], JOBS);
		core_rig_run(rig, gap_ms);
	}
	core_rig_run(rig, 3500);
	ck_assert_msg(count_started(rig) == FAMILIES * JOBS,
	              "%u of %u jobs started with %llu ms between families and first "
	              "bytes after %llu ms",
	              count_started(rig), FAMILIES * JOBS, (unsigned long long)gap_ms,
	              (unsigned long long)warm_ms);
	core_rig_free(rig);
}

START_TEST(core_pace_rises_within_round_trips_however_families_get_warm)
{
	for (uint64_t gap_ms = 1; gap_ms < 160; gap_ms += 3)
		for (uint64_t warm_ms = 40; warm_ms < 240; warm_ms += 17)
			check_staggered(gap_ms, warm_ms);
}
END_TEST

START_TEST(core_pace_rises_not_faster_than_the_round_trip)
{
	struct core_rig *rig = set_up(1000);

	(void)core_rig_admit(rig, "A", 90);
	core_rig_run(rig, 500 + 1000 + 50); /* written, read */
	ck_assert_uint_eq(count_started(rig), 8);
	core_rig_run(rig, 900);
	ck_assert_uint_eq(count_started(rig), 8);
	core_rig_run(rig, 200);
	ck_assert_uint_eq(count_started(rig), 16);
	core_rig_run(rig, 1000);
	ck_assert_uint_eq(count_started(rig), 32);
	core_rig_free(rig);
}
END_TEST

START_TEST(core_pace_rises_also_if_the_clock_of_a_worker_is_behind)
{
	struct core_rig *rig = set_up(100);

	rig->knobs.behind_ms = 70;
	(void)core_rig_admit(rig, "A", 90);
	core_rig_run(rig, 2000);
	ck_assert_uint_eq(count_started(rig), 90);
	core_rig_free(rig);
}
END_TEST

START_TEST(core_pace_of_little_work_is_no_evidence_for_much)
{
	struct core_rig *rig = set_up(100);

	(void)core_rig_admit(rig, "A", 3); /* below half of the pace */
	core_rig_run(rig, 2000);
	(void)core_rig_admit(rig, "A", 80);
	core_rig_run(rig, 50);
	ck_assert_uint_eq(count_started(rig), 8);
	core_rig_free(rig);
}
END_TEST

static void
tell(struct core *core, uint64_t now_ms, const struct event *event)
{
	struct command_list list;

	core_step(core, now_ms, event, &list);
}

/* Names are told before anybody knows the time. */
START_TEST(core_pace_that_was_reached_survives_a_restart)
{
	const struct id128 id = { 1, 2 };
	struct core_config config = core_rig_config();
	const struct event budget = { .kind = EVENT_BUDGET, .budget.id = id };
	const struct event found = {
		.kind = EVENT_RECOVERED_BUDGET,
		.recovered_budget = { .id = id, .pace = 256, .in_flight = 40 },
	};
	const struct event end = { .kind = EVENT_RECOVERED_END };
	const struct event tick = { .kind = EVENT_TICK };
	struct core_budget_view view;
	void *memory = aligned_alloc(64, (core_size(&config) + 63) / 64 * 64);
	struct core *core = core_init(memory, core_size(&config), &config);

	tell(core, 0, &budget);
	tell(core, 1800000000000, &found);
	tell(core, 1800000000000, &end);
	tell(core, 1800000000000, &tick);
	ck_assert_int_eq(core_budget_view(core, id, &view), 0);
	ck_assert_uint_eq(view.pace, 256);
	tell(core, 1800000000000 + config.pace_memory_ms - 1, &tick);
	ck_assert_int_eq(core_budget_view(core, id, &view), 0);
	ck_assert_uint_eq(view.pace, 256);
	tell(core, 1800000000000 + 3 * config.pace_memory_ms, &tick);
	tell(core, 1800000000000 + 5 * config.pace_memory_ms, &tick);
	ck_assert_int_eq(core_budget_view(core, id, &view), 0);
	ck_assert_uint_eq(view.pace, 32);
	free(memory);
}
END_TEST

START_TEST(core_pace_of_an_account_that_has_moved_is_earned_anew)
{
	const struct id128 id = { 1, 2 };
	struct core_config config = core_rig_config();
	const struct event budget = { .kind = EVENT_BUDGET, .budget.id = id };
	const struct event found = {
		.kind = EVENT_RECOVERED_BUDGET,
		.recovered_budget = { .id = id,
		                      .pace = 256,
		                      .parked_until_ms = 1800001800000,
		                      .limits = { 6, 0, 0 },
		                      .moved = true },
	};
	struct core_budget_view view;
	void *memory = aligned_alloc(64, (core_size(&config) + 63) / 64 * 64);
	struct core *core = core_init(memory, core_size(&config), &config);

	tell(core, 0, &budget);
	tell(core, 1800000000000, &found);
	ck_assert_int_eq(core_budget_view(core, id, &view), 0);
	ck_assert_uint_eq(view.pace, 32);
	ck_assert_uint_eq(view.limits[EVENT_BUCKET_REQUESTS], 0);
	ck_assert_uint_eq(view.parked_until_ms, 0);
	free(memory);
}
END_TEST

SUITE_MAIN("core_pace", core_pace_rises_within_round_trips_however_families_get_warm,
           core_pace_rises_not_faster_than_the_round_trip,
           core_pace_rises_also_if_the_clock_of_a_worker_is_behind,
           core_pace_of_little_work_is_no_evidence_for_much,
           core_pace_of_an_account_that_has_moved_is_earned_anew,
           core_pace_that_was_reached_survives_a_restart)
