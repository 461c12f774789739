/* What a gate makes of leaders and readers that are refused, broken or deferred. */
#include "tests/lib/gate_rig.h"

START_TEST(gate_three_refused_leaders_end_the_hold)
{
	struct core_rig *rig = core_rig_fresh(20);

	rig->knobs.refused = 3;
	(void)core_rig_admit(rig, "S", 30);
	core_rig_run(rig, 9000);
	expect_gate(rig, "S", LANE_BYPASS, LANE_REASON_REFUSED);
	ck_assert_uint_eq(rig->starts_count, 20);
	core_rig_free(rig);
}
END_TEST

START_TEST(gate_pressure_never_ends_the_hold)
{
	struct core_rig *rig = core_rig_fresh(20);

	rig->knobs.pressure = 6;
	(void)core_rig_admit(rig, "S", 30);
	core_rig_run(rig, 20000);
	ck_assert_uint_le(rig->starts_max, 1);
	ck_assert(core_rig_drain(rig, LONG));
	ck_assert_uint_eq(core_rig_node(rig, "S")->writes, 1);
	core_rig_free(rig);
}
END_TEST

START_TEST(gate_broken_leaders_are_followed_more_and_more_slowly)
{
	struct core_rig *rig = core_rig_fresh(20);

	rig->knobs.cold_ms = 10; /* 500 at once */
	rig->knobs.broken = 1000;
	(void)core_rig_admit(rig, "S", 30);
	core_rig_run(rig, 10000);
	ck_assert_uint_ge(1000 - rig->knobs.broken, 5);
	ck_assert_uint_le(1000 - rig->knobs.broken, 8);
	ck_assert_uint_le(rig->starts_max, 1);
	core_rig_free(rig);
}
END_TEST

START_TEST(gate_leaders_that_die_of_5xx_are_no_refusals)
{
	struct core_rig *rig = core_rig_fresh(20);

	rig->knobs.cold_ms = 10; /* 500 at once */
	rig->knobs.exhausted = 1000;
	(void)core_rig_admit(rig, "S", 30);
	core_rig_run(rig, 10000);
	ck_assert(!lane_gate_starts(core_rig_lane_named(rig, "S")->gate));
	ck_assert_uint_ge(1000 - rig->knobs.exhausted, 5);
	ck_assert_uint_le(1000 - rig->knobs.exhausted, 8); /* more and more slowly */
	ck_assert_uint_le(rig->starts_max, 1);
	rig->knobs.exhausted = 0;
	ck_assert(core_rig_drain(rig, LONG));
	ck_assert_uint_eq(core_rig_node(rig, "S")->writes, 1);
	core_rig_free(rig);
}
END_TEST

START_TEST(gate_of_refused_leaders_needs_three_more_after_a_lifetime)
{
	struct core_rig *rig = core_rig_fresh(1);

	rig->knobs.refused = 3;
	burst(rig, "S", 3);
	expect_gate(rig, "S", LANE_BYPASS, LANE_REASON_REFUSED);
	core_rig_run(rig, rig->knobs.ttl_ms);
	rig->knobs.refused = 2;
	(void)core_rig_admit(rig, "S", 9);
	core_rig_run(rig, 6500);
	expect_gate(rig, "S", LANE_WRITING, LANE_REASON_NONE);
	core_rig_free(rig);
}
END_TEST

START_TEST(gate_a_broken_reader_is_followed_after_a_pause)
{
	struct core_rig *rig = core_rig_fresh(20);

	(void)core_rig_admit(rig, "S", 20);
	core_rig_run(rig, 3100);
	rig->knobs.broken = 1;
	core_rig_run(rig, 500); /* the reader breaks at 3,500 */
	ck_assert_uint_eq(rig->starts_count, 1);
	expect_gate(rig, "S", LANE_CHECKING, LANE_REASON_NONE);
	core_rig_run(rig, 200); /* 250 ms later the next one */
	ck_assert_uint_eq(rig->starts_count, 2);
	core_rig_run(rig, 500);
	expect_gate(rig, "S", LANE_OPEN, LANE_REASON_NONE);
	core_rig_free(rig);
}
END_TEST

/* As of 429 with `Retry-After: 0`, which parks nobody. */
START_TEST(gate_a_deferred_leader_is_followed_after_a_pause)
{
	struct core_rig *rig = core_rig_fresh(20);
	struct event event = { .kind = EVENT_BACK };

	(void)core_rig_admit(rig, "S", 20);
	core_rig_run(rig, 100);
	expect_gate(rig, "S", LANE_WRITING, LANE_REASON_NONE);
	rig->knobs.stopped = true;
	event.back.lane = core_rig_lane_named(rig, "S")->id;
	event.back.g = core_rig_node(rig, "S")->g;
	event.back.role = LANE_LEAD;
	event.back.why = LANE_BACK_DEFERRED;
	core_rig_feed(rig, &event);
	expect_gate(rig, "S", LANE_CLOSED, LANE_REASON_NONE);
	core_rig_run(rig, 249);
	expect_gate(rig, "S", LANE_CLOSED, LANE_REASON_NONE);
	core_rig_run(rig, 1);
	expect_gate(rig, "S", LANE_WRITING, LANE_REASON_NONE);
	core_rig_free(rig);
}
END_TEST

SUITE_MAIN("core_gate_broken", gate_three_refused_leaders_end_the_hold,
           gate_pressure_never_ends_the_hold,
           gate_broken_leaders_are_followed_more_and_more_slowly,
           gate_leaders_that_die_of_5xx_are_no_refusals,
           gate_of_refused_leaders_needs_three_more_after_a_lifetime,
           gate_a_broken_reader_is_followed_after_a_pause,
           gate_a_deferred_leader_is_followed_after_a_pause)
