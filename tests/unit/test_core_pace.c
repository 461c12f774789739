/* The pace rises by the provider's round trip, whatever the order of work and bytes. */
#include "tests/lib/core_rig.h"
#include "tests/lib/suite.h"

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

SUITE_MAIN("core_pace", core_pace_rises_within_round_trips_however_families_get_warm,
           core_pace_rises_not_faster_than_the_round_trip,
           core_pace_of_little_work_is_no_evidence_for_much)
