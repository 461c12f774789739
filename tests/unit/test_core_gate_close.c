/* How a gate closes again: misses, lanes that never help, and the end of a lifetime. */
#include "tests/lib/gate_rig.h"

START_TEST(gate_written_and_never_read_is_leaky_and_no_longer_marked)
{
	struct core_rig *rig = core_rig_fresh(20);

	rig->knobs.never_read = true;
	(void)core_rig_admit(rig, "S", 50);
	core_rig_run(rig, 14000);
	expect_gate(rig, "S", LANE_LEAKY, LANE_REASON_NEVER_READ);
	ck_assert_uint_eq(core_rig_node(rig, "S")->writes, 4); /* leader, three readers */
	ck_assert_uint_eq(rig->families[0].marks, 0);
	ck_assert(core_rig_drain(rig, LONG));
	ck_assert_uint_eq(rig->hold_limits, 0);
	core_rig_free(rig);
}
END_TEST

START_TEST(gate_a_marker_of_the_users_stays_on_a_leaky_lane)
{
	struct core_rig *rig = core_rig_fresh(20);

	rig->knobs.never_read = true;
	(void)core_rig_admit(rig, "S!", 50);
	core_rig_run(rig, 14000);
	expect_gate(rig, "S", LANE_LEAKY, LANE_REASON_NEVER_READ);
	ck_assert_uint_eq(rig->families[0].marks, 1);
	core_rig_free(rig);
}
END_TEST

START_TEST(gate_leaky_is_tried_again_after_a_lifetime_and_gives_up_at_one_miss)
{
	struct core_rig *rig = core_rig_fresh(5);
	uint32_t writes;

	rig->knobs.never_read = true;
	burst(rig, "S", 20);
	writes = core_rig_node(rig, "S")->writes;
	core_rig_run(rig, rig->knobs.ttl_ms);
	expect_gate(rig, "S", LANE_CLOSED, LANE_REASON_NONE);
	burst(rig, "S", 20);
	expect_gate(rig, "S", LANE_LEAKY, LANE_REASON_NEVER_READ);
	ck_assert_uint_eq(core_rig_node(rig, "S")->writes, writes + 2);
	rig->knobs.never_read = false;
	core_rig_run(rig, rig->knobs.ttl_ms);
	burst(rig, "S", 20);
	expect_gate(rig, "S", LANE_OPEN, LANE_REASON_NONE);
	ck_assert_uint_eq(rig->families[0].marks, 1);
	core_rig_free(rig);
}
END_TEST

START_TEST(gate_three_misses_without_a_later_hit_close_a_lane)
{
	struct core_rig *rig = core_rig_fresh(1);

	burst(rig, "S", 5);
	rig->knobs.never_read = true; /* from now on */
	(void)core_rig_admit(rig, "S", 20);
	core_rig_run(rig, 2 * 5000);
	expect_gate(rig, "S", LANE_OPEN, LANE_REASON_NONE);
	core_rig_run(rig, 5000);
	ck_assert_uint_eq(rig->core->counts.closed, 1);
	expect_gate(rig, "S", LANE_WRITING, LANE_REASON_NONE);
	core_rig_free(rig);
}
END_TEST

START_TEST(gate_closed_for_misses_opens_after_one_two_and_four_readers)
{
	struct core_rig *rig = core_rig_fresh(20);
	struct lane *lane;

	burst(rig, "S", 5);
	core_rig_evict(rig);
	rig->knobs.lag_ms = 60000; /* so that all of the next twenty miss */
	(void)core_rig_admit(rig, "S", 20);
	core_rig_run(rig, 6000);
	lane = core_rig_lane_named(rig, "S");
	ck_assert_int_eq(lane->gate, LANE_CLOSED);
	ck_assert(lane->careful);
	rig->knobs.lag_ms = 0;
	core_rig_evict(rig);
	rig->starts_max = 0;
	(void)core_rig_admit(rig, "S", 40);
	core_rig_run(rig, 3000);
	expect_gate(rig, "S", LANE_CHECKING, LANE_REASON_NONE);
	ck_assert_uint_eq(lane->stage, 1);
	core_rig_run(rig, 500);
	ck_assert_uint_eq(lane->stage, 2);
	ck_assert_uint_eq(lane->unproven, 2);
	core_rig_run(rig, 500);
	ck_assert_uint_eq(lane->stage, 4);
	ck_assert_uint_eq(lane->unproven, 4);
	core_rig_run(rig, 500);
	expect_gate(rig, "S", LANE_OPEN, LANE_REASON_NONE);
	ck_assert(!lane->careful);
	core_rig_free(rig);
}
END_TEST

/* Nobody could look any more: no stages then. */
START_TEST(gate_closed_for_misses_opens_by_a_hit_where_nothing_streams)
{
	struct core_rig *rig = core_rig_fresh(20);
	struct event event = { .kind = EVENT_MODEL };
	struct lane *lane;

	burst(rig, "S", 5);
	core_rig_evict(rig);
	rig->knobs.lag_ms = 60000;
	(void)core_rig_admit(rig, "S", 20);
	core_rig_run(rig, 6000);
	lane = core_rig_lane_named(rig, "S");
	ck_assert_int_eq(lane->gate, LANE_CLOSED);
	ck_assert(lane->careful);
	rig->model.streams = false;
	event.model = rig->model;
	core_rig_feed(rig, &event);
	core_rig_run(rig, 10000);
	event = (struct event){ .kind = EVENT_DONE };
	event.usage = (struct event_usage){
		.lane = { core_rig_node(rig, "S")->id, 0 },
		.g = lane->g,
		.role = LANE_HOLD_LIMIT,
		.sent_ms = rig->now_ms - 5000,
		.first_ms = rig->now_ms - 5000,
		.read = 10000,
		.at_ms = rig->now_ms,
	};
	core_rig_feed(rig, &event);
	ck_assert_int_eq(lane->gate, LANE_OPEN);
	core_audit(rig->core);
	core_rig_free(rig);
}
END_TEST

START_TEST(gate_closed_twice_within_a_lifetime_is_leaky)
{
	struct core_rig *rig = core_rig_fresh(1);
	struct lane *lane;

	burst(rig, "S", 5);
	lane = core_rig_lane_named(rig, "S");
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(lane->gate, LANE_OPEN);
		rig->knobs.never_read = true;
		(void)core_rig_admit(rig, "S", 3);
		core_rig_run(rig, 3 * 5000);
		rig->knobs.never_read = false;
		if (i == 0) {
			ck_assert_int_eq(lane->gate, LANE_CLOSED);
			burst(rig, "S", 10);
		}
	}
	expect_gate(rig, "S", LANE_LEAKY, LANE_REASON_NEVER_READ);
	core_rig_free(rig);
}
END_TEST

START_TEST(gate_a_hit_outweighs_misses_that_were_sent_before_it)
{
	struct core_rig *rig = core_rig_fresh(20);
	struct lane *lane;
	struct event event = { .kind = EVENT_DONE };

	burst(rig, "S", 5);
	lane = core_rig_lane_named(rig, "S");
	event.usage.lane = lane->id;
	event.usage.g = lane->g;
	event.usage.written = 10000;
	for (uint64_t i = 1; i <= 2; i++) {
		event.usage.sent_ms = event.usage.first_ms = rig->now_ms + i;
		rig->now_ms += 10;
		core_rig_feed(rig, &event);
	}
	event.usage.read = 10000; /* sent after them, and reported before the third */
	event.usage.sent_ms = event.usage.first_ms = rig->now_ms;
	core_rig_feed(rig, &event);
	event.usage.read = 0;
	event.usage.sent_ms = event.usage.first_ms = rig->now_ms - 5;
	core_rig_feed(rig, &event);
	ck_assert_int_eq(lane->gate, LANE_OPEN);
	core_rig_free(rig);
}
END_TEST

START_TEST(gate_of_a_best_effort_upstream_never_closes_for_misses)
{
	struct core_rig *rig = core_rig_fresh(20);
	struct event event = { .kind = EVENT_MODEL };

	rig->model.exact = false;
	event.model = rig->model;
	core_rig_feed(rig, &event);
	burst(rig, "S", 5);
	rig->knobs.never_read = true;
	burst(rig, "S", 100);
	ck_assert_uint_eq(rig->core->counts.closed, 0);
	expect_gate(rig, "S", LANE_OPEN, LANE_REASON_NONE);
	core_rig_free(rig);
}
END_TEST

START_TEST(gate_past_its_until_one_leader_writes_again)
{
	struct core_rig *rig = core_rig_fresh(20);

	burst(rig, "S", 20);
	core_rig_run(rig, rig->knobs.ttl_ms);
	expect_gate(rig, "S", LANE_CLOSED, LANE_REASON_NONE);
	(void)core_rig_admit(rig, "S", 20);
	core_rig_run(rig, 2999);
	ck_assert_uint_eq(rig->starts_count, 1);
	ck_assert(core_rig_drain(rig, LONG));
	ck_assert_uint_eq(core_rig_node(rig, "S")->writes, 2);
	core_rig_free(rig);
}
END_TEST

START_TEST(gate_stays_open_as_long_as_somebody_starts)
{
	struct core_rig *rig = core_rig_fresh(1);

	for (int i = 0; i < 20; i++) {
		burst(rig, "S", 1);
		core_rig_run(rig, rig->knobs.ttl_ms - 20000);
	}
	ck_assert_uint_eq(core_rig_node(rig, "S")->writes, 1);
	core_rig_free(rig);
}
END_TEST

START_TEST(gate_inside_the_margin_the_next_job_is_a_single_leader)
{
	struct core_rig *rig = core_rig_fresh(20);

	burst(rig, "S", 20);
	core_rig_run(rig, rig->knobs.ttl_ms - 6000); /* the entry lives, just */
	(void)core_rig_admit(rig, "S", 20);
	core_rig_run(rig, 100);
	ck_assert_uint_eq(rig->starts_count, 1);
	core_rig_run(rig, 400); /* it reads: nothing was to be written */
	expect_gate(rig, "S", LANE_OPEN, LANE_REASON_NONE);
	ck_assert_uint_eq(core_rig_node(rig, "S")->writes, 1);
	core_rig_free(rig);
}
END_TEST

START_TEST(gate_redis_may_close_a_lane_that_somebody_has_kept_warm)
{
	struct core_rig *rig = core_rig_fresh(20);
	struct core_rig_node *node;

	burst(rig, "S", 20);
	node = core_rig_node(rig, "S");
	node->until_ms = rig->now_ms; /* as if `settle` had never raised it */
	(void)core_rig_admit(rig, "S", 20);
	core_rig_run(rig, 100);
	ck_assert_uint_eq(rig->starts_count, 20);
	expect_gate(rig, "S", LANE_OPEN, LANE_REASON_NONE);
	core_rig_free(rig);
}
END_TEST

START_TEST(gate_without_a_lifetime_is_tried_again_after_five_minutes)
{
	struct core_rig *rig = core_rig_fresh(1);
	struct event event = { .kind = EVENT_MODEL };

	rig->model.ttl_ms = 0;
	event.model = rig->model;
	core_rig_feed(rig, &event);
	rig->knobs.cache_off = true;
	(void)core_rig_admit(rig, "S", 1);
	core_rig_run(rig, 3000);
	expect_gate(rig, "S", LANE_BYPASS, LANE_REASON_UNCACHEABLE);
	core_rig_run(rig, 299000);
	expect_gate(rig, "S", LANE_BYPASS, LANE_REASON_UNCACHEABLE);
	core_rig_run(rig, 1000);
	expect_gate(rig, "S", LANE_CLOSED, LANE_REASON_NONE);
	rig->knobs.cache_off = false;
	burst(rig, "S", 3);
	core_rig_run(rig, 10 * rig->knobs.ttl_ms);
	expect_gate(rig, "S", LANE_OPEN, LANE_REASON_NONE); /* for ever */
	core_rig_free(rig);
}
END_TEST

SUITE_MAIN("core_gate_close", gate_written_and_never_read_is_leaky_and_no_longer_marked,
           gate_a_marker_of_the_users_stays_on_a_leaky_lane,
           gate_leaky_is_tried_again_after_a_lifetime_and_gives_up_at_one_miss,
           gate_three_misses_without_a_later_hit_close_a_lane,
           gate_closed_for_misses_opens_after_one_two_and_four_readers,
           gate_closed_for_misses_opens_by_a_hit_where_nothing_streams,
           gate_closed_twice_within_a_lifetime_is_leaky,
           gate_a_hit_outweighs_misses_that_were_sent_before_it,
           gate_of_a_best_effort_upstream_never_closes_for_misses,
           gate_past_its_until_one_leader_writes_again,
           gate_stays_open_as_long_as_somebody_starts,
           gate_inside_the_margin_the_next_job_is_a_single_leader,
           gate_redis_may_close_a_lane_that_somebody_has_kept_warm,
           gate_without_a_lifetime_is_tried_again_after_five_minutes)
