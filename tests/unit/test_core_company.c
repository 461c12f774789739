/* The first job of a burst is admitted alone, some milliseconds before its siblings. */
#include "tests/lib/core_rig.h"
#include "tests/lib/suite.h"

static struct core_rig *
set_up(void)
{
	struct core_config config = core_rig_config();

	return core_rig_create(&config, 20);
}

START_TEST(core_first_job_waits_for_siblings_and_writes_for_them)
{
	struct core_rig *rig = set_up();
	uint32_t family = core_rig_admit(rig, "S?", 1);

	core_rig_run(rig, 5);
	ck_assert_uint_eq(rig->families[family].started, 0);
	(void)core_rig_admit(rig, "S", 9);
	core_rig_run(rig, 20);
	ck_assert_uint_eq(rig->families[family].started, 1);
	ck_assert(core_rig_drain(rig, 600000));
	ck_assert_uint_eq(core_rig_node(rig, "S")->writes, 1);
	ck_assert_uint_eq(rig->families[family].done, 10);
	core_rig_free(rig);
}
END_TEST

START_TEST(core_job_that_stays_alone_starts_after_20_ms_without_a_marker)
{
	struct core_rig *rig = set_up();
	uint32_t family = core_rig_admit(rig, "S?", 1);

	core_rig_run(rig, 19);
	ck_assert_uint_eq(rig->families[family].started, 0);
	core_rig_run(rig, 2);
	ck_assert_uint_eq(rig->families[family].started, 1);
	ck_assert(core_rig_drain(rig, 600000));
	ck_assert_uint_eq(core_rig_node(rig, "S")->writes, 0);
	core_rig_free(rig);
}
END_TEST

START_TEST(core_family_that_was_granted_waits_no_second_time)
{
	struct core_rig *rig = set_up();
	uint32_t family = core_rig_admit(rig, "S?", 1);

	ck_assert(core_rig_drain(rig, 600000));
	(void)core_rig_admit(rig, "S?", 1);
	core_rig_run(rig, 1);
	ck_assert_uint_eq(rig->families[family].started, 2);
	core_rig_free(rig);
}
END_TEST

START_TEST(core_shared_prefix_waits_for_nobody)
{
	struct core_rig *rig = set_up();
	uint32_t family = core_rig_admit(rig, "S", 1);

	core_rig_run(rig, 1);
	ck_assert_uint_eq(rig->families[family].started, 1);
	core_rig_free(rig);
}
END_TEST

START_TEST(core_nobody_waits_for_company_while_holding_is_off)
{
	struct core_rig *rig = set_up();
	uint32_t family;

	core_rig_hold(rig, false);
	family = core_rig_admit(rig, "S?", 1);
	core_rig_run(rig, 1);
	ck_assert_uint_eq(rig->families[family].started, 1);
	core_rig_free(rig);
}
END_TEST

START_TEST(core_switching_holding_off_ends_the_wait_for_company)
{
	struct core_rig *rig = set_up();
	uint32_t family = core_rig_admit(rig, "S?", 1);

	core_rig_run(rig, 1);
	core_rig_hold(rig, false);
	core_rig_run(rig, 1);
	ck_assert_uint_eq(rig->families[family].started, 1);
	core_rig_free(rig);
}
END_TEST

static bool
is_active(struct core_rig *rig, const char *name)
{
	struct core_family_view view;

	ck_assert_int_eq(core_family_view(rig->core, core_rig_node(rig, name)->id, &view),
	                 0);
	return view.active;
}

/* Of a hundred families whose jobs come one by one, none is written before its turn. */
START_TEST(core_family_whose_siblings_come_late_has_no_turn_from_before)
{
	struct core_rig *rig = set_up();

	rig->knobs.job_ms = 20000;
	(void)core_rig_admit(rig, "A", 2);
	ck_assert(core_rig_drain(rig, 600000));
	(void)core_rig_admit(rig, "A", 200); /* warm, and enough for all slots */
	core_rig_run(rig, 100);
	(void)core_rig_admit(rig, "S?", 1);
	core_rig_run(rig, 100);
	ck_assert(is_active(rig, "S")); /* nothing holds it */
	(void)core_rig_admit(rig, "S", 9);
	core_rig_run(rig, 100);
	ck_assert(!is_active(rig, "S"));
	core_audit(rig->core);
	ck_assert(core_rig_drain(rig, 600000));
	ck_assert_uint_eq(core_rig_node(rig, "S")->writes, 1);
	core_rig_free(rig);
}
END_TEST

/* What runs already may be writing: its family goes on. */
START_TEST(core_family_whose_first_job_runs_keeps_its_turn)
{
	struct core_rig *rig = set_up();

	rig->knobs.job_ms = 20000;
	(void)core_rig_admit(rig, "S?", 1);
	core_rig_run(rig, 100);
	(void)core_rig_admit(rig, "S", 9);
	core_rig_run(rig, 100);
	ck_assert(is_active(rig, "S"));
	ck_assert(core_rig_drain(rig, 600000));
	core_rig_free(rig);
}
END_TEST

SUITE_MAIN("core_company", core_first_job_waits_for_siblings_and_writes_for_them,
           core_job_that_stays_alone_starts_after_20_ms_without_a_marker,
           core_family_that_was_granted_waits_no_second_time,
           core_shared_prefix_waits_for_nobody,
           core_nobody_waits_for_company_while_holding_is_off,
           core_switching_holding_off_ends_the_wait_for_company,
           core_family_whose_siblings_come_late_has_no_turn_from_before,
           core_family_whose_first_job_runs_keeps_its_turn)
