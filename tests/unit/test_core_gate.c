/* How a gate opens: who writes, who proves it, who waits, and whom it never holds. */
#include "tests/lib/gate_rig.h"

START_TEST(gate_one_writes_one_reads_then_all_start)
{
	struct core_rig *rig = core_rig_fresh(20);

	(void)core_rig_admit(rig, "S", 20);
	core_rig_run(rig, 2999);
	ck_assert_uint_eq(rig->starts_count, 1);
	expect_gate(rig, "S", LANE_WRITING, LANE_REASON_NONE);
	core_rig_run(rig, 1); /* the leader's first event */
	ck_assert_uint_eq(rig->starts_count, 2);
	expect_gate(rig, "S", LANE_CHECKING, LANE_REASON_NONE);
	core_rig_run(rig, 499);
	ck_assert_uint_eq(rig->starts_count, 2);
	core_rig_run(rig, 1); /* the reader's */
	ck_assert_uint_eq(rig->starts_count, 20);
	expect_gate(rig, "S", LANE_OPEN, LANE_REASON_NONE);
	ck_assert(core_rig_drain(rig, LONG));
	ck_assert_uint_eq(core_rig_node(rig, "S")->writes, 1);
	core_rig_free(rig);
}
END_TEST

START_TEST(gate_unknown_lag_costs_one_more_write_and_a_learned_one_none)
{
	for (uint64_t lag_ms = 0; lag_ms <= 2000; lag_ms += 50) {
		struct core_rig *rig = core_rig_fresh(200);

		rig->knobs.lag_ms = lag_ms;
		burst(rig, "A", 200);
		ck_assert_uint_le(core_rig_node(rig, "A")->writes, lag_ms > 0 ? 2 : 1);
		burst(rig, "B", 200);
		ck_assert_uint_eq(core_rig_node(rig, "B")->writes, 1);
		burst(rig, "C", 200);
		ck_assert_uint_eq(core_rig_node(rig, "C")->writes, 1);
		for (uint32_t i = 0; i < rig->nodes_count; i++)
			ck_assert_uint_eq(rig->nodes[i].unproven_max, 1);
		ck_assert_uint_eq(rig->hold_limits, 0);
		core_rig_free(rig);
	}
}
END_TEST

START_TEST(gate_the_first_reader_waits_exactly_the_learned_lag)
{
	struct core_rig *rig = core_rig_fresh(20);

	rig->knobs.lag_ms = 700;
	rig->core->models[0].lag_ms = 700;
	(void)core_rig_admit(rig, "S", 20);
	core_rig_run(rig, 3699);
	ck_assert_uint_eq(rig->starts_count, 1);
	core_rig_run(rig, 1);
	ck_assert_uint_eq(rig->starts_count, 2);
	core_rig_run(rig, 500);
	expect_gate(rig, "S", LANE_OPEN, LANE_REASON_NONE);
	core_rig_free(rig);
}
END_TEST

/* A miss that is heard soon, as of a short prefix, does not make the next one come too
 * early: it looks two seconds, or twice what was learned, behind the leader's event. */
START_TEST(gate_after_a_miss_the_next_reader_waits_behind_the_leaders_event)
{
	static const uint64_t learned_ms[] = { EVENT_UNKNOWN, 1500 };
	static const uint64_t recheck_ms[] = { 2000, 3000 };

	for (size_t i = 0; i < ARRAY_SIZE(learned_ms); i++) {
		struct core_rig *rig = core_rig_fresh(20);

		rig->knobs.cold_ms = 100;
		rig->knobs.job_ms = 10000;
		rig->knobs.lag_ms = recheck_ms[i];
		rig->core->models[0].lag_ms = learned_ms[i];
		(void)core_rig_admit(rig, "S", 20);
		core_rig_run(rig, 100 + recheck_ms[i] - 1);
		ck_assert_uint_eq(rig->starts_count, 2);
		ck_assert_uint_eq(core_rig_lane_named(rig, "S")->misses, 1);
		core_rig_run(rig, 1);
		ck_assert_uint_eq(rig->starts_count, 3);
		core_rig_run(rig, rig->knobs.warm_ms);
		expect_gate(rig, "S", LANE_OPEN, LANE_REASON_NONE);
		ck_assert_uint_eq(core_rig_node(rig, "S")->writes, 2);
		core_rig_free(rig);
	}
}
END_TEST

START_TEST(gate_nothing_written_and_nothing_read_holds_nobody)
{
	struct core_rig *rig = core_rig_fresh(20);

	rig->knobs.cache_off = true;
	(void)core_rig_admit(rig, "S", 50);
	core_rig_run(rig, 3000);
	expect_gate(rig, "S", LANE_BYPASS, LANE_REASON_UNCACHEABLE);
	ck_assert_uint_eq(rig->starts_count, 20);
	ck_assert(core_rig_drain(rig, LONG));
	rig->knobs.cache_off = false;
	core_rig_run(rig, rig->knobs.ttl_ms);
	burst(rig, "S", 20);
	expect_gate(rig, "S", LANE_OPEN, LANE_REASON_NONE);
	core_rig_free(rig);
}
END_TEST

START_TEST(gate_a_reader_that_finds_nothing_and_writes_nothing_ends_the_hold)
{
	struct core_rig *rig = core_rig_fresh(20);

	rig->knobs.lag_ms = 1000;
	(void)core_rig_admit(rig, "S", 50);
	core_rig_run(rig, 2990);
	rig->knobs.cache_off = true;
	core_rig_run(rig, 4000);
	expect_gate(rig, "S", LANE_BYPASS, LANE_REASON_UNCACHEABLE);
	core_rig_free(rig);
}
END_TEST

START_TEST(gate_without_usage_there_is_no_proof_and_no_hold)
{
	struct core_rig *rig = core_rig_fresh(20);

	rig->knobs.usage_unknown = true;
	(void)core_rig_admit(rig, "S", 50);
	core_rig_run(rig, 3000);
	expect_gate(rig, "S", LANE_BYPASS, LANE_REASON_UNKNOWN_USAGE);
	ck_assert_uint_eq(rig->starts_count, 20);
	core_rig_free(rig);
}
END_TEST

START_TEST(gate_below_the_minimum_nobody_is_held)
{
	struct core_rig *rig = core_rig_fresh(20);
	struct event event = { .kind = EVENT_MODEL };

	rig->model.minimum_tokens = 20000;
	event.model = rig->model;
	core_rig_feed(rig, &event);
	(void)core_rig_admit(rig, "S", 20); /* 10,000 tokens */
	core_rig_run(rig, 0);
	ck_assert_uint_eq(rig->starts_count, 20);
	expect_gate(rig, "S", LANE_BYPASS, LANE_REASON_BELOW_MINIMUM);
	core_rig_run(rig, 2 * rig->knobs.ttl_ms); /* nothing to try again */
	expect_gate(rig, "S", LANE_BYPASS, LANE_REASON_BELOW_MINIMUM);
	core_rig_free(rig);
}
END_TEST

START_TEST(gate_an_unshared_leaf_holds_nobody_but_its_ancestor_does)
{
	struct core_rig *rig = core_rig_fresh(20);

	(void)core_rig_admit(rig, "S/a?", 1);
	(void)core_rig_admit(rig, "S/b?", 1);
	(void)core_rig_admit(rig, "S/c?", 1);
	core_rig_run(rig, 1000);
	ck_assert_uint_eq(rig->starts_count, 1);
	expect_gate(rig, "a", LANE_BYPASS, LANE_REASON_UNSHARED);
	expect_gate(rig, "S", LANE_WRITING, LANE_REASON_NONE);
	ck_assert(core_rig_drain(rig, LONG));
	ck_assert_uint_eq(core_rig_node(rig, "S")->writes, 1);
	ck_assert_uint_eq(core_rig_node(rig, "a")->writes, 0); /* no marker */
	core_rig_free(rig);
}
END_TEST

START_TEST(gate_a_second_sighting_makes_a_leaf_gate)
{
	struct core_rig *rig = core_rig_fresh(20);

	burst(rig, "S?", 1);
	expect_gate(rig, "S", LANE_BYPASS, LANE_REASON_UNSHARED);
	(void)core_rig_admit(rig, "S", 10);
	core_rig_run(rig, 1000);
	ck_assert_uint_eq(rig->starts_count, 1);
	ck_assert_uint_eq(rig->families[0].marks, 1);
	ck_assert(core_rig_drain(rig, LONG));
	ck_assert_uint_eq(core_rig_node(rig, "S")->writes, 1);
	core_rig_free(rig);
}
END_TEST

START_TEST(gate_of_an_opaque_body_is_none)
{
	struct core_rig *rig = core_rig_fresh(20);

	(void)core_rig_admit(rig, "S?", 0);
	rig->families[0].flags = EVENT_FAMILY_OPAQUE;
	(void)core_rig_admit(rig, "S", 20);
	core_rig_run(rig, 0);
	ck_assert_uint_eq(rig->starts_count, 20);
	expect_gate(rig, "S", LANE_BYPASS, LANE_REASON_OPAQUE);
	core_rig_free(rig);
}
END_TEST

START_TEST(gate_of_a_trusted_model_opens_after_the_lag_without_a_reader)
{
	struct core_rig *rig = core_rig_fresh(20);

	rig->knobs.lag_ms = 400;
	rig->core->models[0].lag_ms = 400;
	rig->core->models[0].proofs = rig->core->config.trust_proofs;
	(void)core_rig_admit(rig, "S", 20);
	core_rig_run(rig, 3399);
	ck_assert_uint_eq(rig->starts_count, 1);
	expect_gate(rig, "S", LANE_CHECKING, LANE_REASON_NONE);
	core_rig_run(rig, 1);
	ck_assert_uint_eq(rig->starts_count, 20);
	ck_assert(core_rig_drain(rig, LONG));
	ck_assert_uint_eq(core_rig_node(rig, "S")->writes, 1);
	core_rig_free(rig);
}
END_TEST

START_TEST(gate_trust_ends_with_the_first_miss_of_a_lane_opened_by_it)
{
	struct core_rig *rig = core_rig_fresh(20);

	rig->knobs.lag_ms = 1500; /* longer than anybody knows */
	rig->core->models[0].lag_ms = 0;
	rig->core->models[0].proofs = rig->core->config.trust_proofs;
	(void)core_rig_admit(rig, "S", 20);
	core_rig_run(rig, 3000);
	expect_gate(rig, "S", LANE_OPEN, LANE_REASON_NONE);
	core_rig_run(rig, 6000);
	ck_assert(!model_is_trusted(rig->core, &rig->core->models[0]));
	core_rig_free(rig);
}
END_TEST

START_TEST(gate_where_nobody_can_prove_opens_at_the_first_event)
{
	struct core_rig *rig = core_rig_fresh(20);
	struct event event = { .kind = EVENT_MODEL };

	rig->model.proves = false; /* openai-chat */
	rig->model.needs_marker = false;
	event.model = rig->model;
	core_rig_feed(rig, &event);
	rig->knobs.usage_unknown = true;
	(void)core_rig_admit(rig, "S", 20);
	core_rig_run(rig, rig->knobs.warm_ms - 1);
	ck_assert_uint_eq(rig->starts_count, 1);
	core_rig_run(rig, 1);
	expect_gate(rig, "S", LANE_OPEN, LANE_REASON_NONE);
	ck_assert_uint_eq(rig->starts_count, 20);
	core_rig_free(rig);
}
END_TEST

START_TEST(gate_where_nothing_streams_opens_when_the_leader_is_done)
{
	struct core_rig *rig = core_rig_fresh(20);
	struct event event = { .kind = EVENT_MODEL };

	rig->model.proves = rig->model.streams = false; /* raw */
	rig->model.needs_marker = false;
	event.model = rig->model;
	core_rig_feed(rig, &event);
	rig->knobs.usage_unknown = true;
	(void)core_rig_admit(rig, "S", 20);
	core_rig_run(rig, rig->knobs.warm_ms + rig->knobs.job_ms - 1);
	ck_assert_uint_eq(rig->starts_count, 1);
	core_rig_run(rig, 1);
	expect_gate(rig, "S", LANE_OPEN, LANE_REASON_NONE);
	core_rig_free(rig);
}
END_TEST

START_TEST(gate_a_wrong_p_is_corrected_by_three_readers_who_agree)
{
	struct core_rig *rig = core_rig_fresh(20);
	struct lane *lane;

	(void)core_rig_admit(rig, "S", 20);
	core_rig_run(rig, 100);
	lane = core_rig_lane_named(rig, "S");
	lane->p = 15000; /* a server tool had written its own 5,000 */
	core_rig_run(rig, 8000);
	expect_gate(rig, "S", LANE_OPEN, LANE_REASON_NONE);
	ck_assert_uint_eq(lane->p, 10000);
	ck_assert_uint_eq(core_rig_node(rig, "S")->writes, 1);
	core_rig_free(rig);
}
END_TEST

START_TEST(gate_a_start_past_its_hold_limit_opens_the_lane_by_its_hit)
{
	struct core_rig *rig = core_rig_fresh(20);

	rig->knobs.hold_max_ms = 4200;
	rig->knobs.lag_ms = 1000;
	rig->core->models[0].lag_ms = 2000; /* believed to take longer */
	(void)core_rig_admit(rig, "S", 20);
	core_rig_run(rig, 4200);
	ck_assert_uint_gt(rig->hold_limits, 0);
	expect_gate(rig, "S", LANE_CHECKING, LANE_REASON_NONE);
	core_rig_run(rig, 500);
	expect_gate(rig, "S", LANE_OPEN, LANE_REASON_NONE);
	core_rig_free(rig);
}
END_TEST

START_TEST(gate_a_move_that_is_not_allowed_dies)
{
	struct core_rig *rig = core_rig_fresh(20);
	struct lane_id id;

	rig->knobs.stopped = true;
	(void)core_rig_admit(rig, "S", 30);
	id = core_rig_lane_named(rig, "S")->id;
	lane_move(rig->core, lane_find(rig->core, id), LANE_LEAKY,
	          LANE_REASON_NEVER_READ);
}
END_TEST

START_TEST(gate_a_bypass_without_a_reason_dies)
{
	struct core_rig *rig = core_rig_fresh(20);
	struct lane_id id;

	rig->knobs.stopped = true;
	(void)core_rig_admit(rig, "S", 30);
	id = core_rig_lane_named(rig, "S")->id;
	lane_move(rig->core, lane_find(rig->core, id), LANE_BYPASS, LANE_REASON_NONE);
}
END_TEST

START_TEST(gate_a_miss_takes_the_other_readers_of_its_stage_back)
{
	struct core_rig *rig = core_rig_fresh(20);
	struct lane *lane;

	burst(rig, "S", 5);
	core_rig_evict(rig);
	rig->knobs.lag_ms = 60000;
	(void)core_rig_admit(rig, "S", 20);
	core_rig_run(rig, 6000); /* closed for misses */
	rig->knobs.lag_ms = 0;
	core_rig_evict(rig);
	(void)core_rig_admit(rig, "S", 40);
	core_rig_run(rig, 3600); /* two readers are under way */
	lane = core_rig_lane_named(rig, "S");
	ck_assert_uint_eq(lane->stage, 2);
	core_rig_evict(rig);
	rig->knobs.never_read = true;
	(void)core_rig_pool(rig, "p", 1); /* the next four have one slot, then */
	core_rig_run(rig, 2500);
	(void)core_rig_pool(rig, "p", 3);
	core_rig_run(rig, 3600);
	ck_assert_uint_eq(rig->too_many, 0);
	ck_assert_uint_le(lane->unproven, 1);
	core_rig_free(rig);
}
END_TEST

SUITE_MAIN_WITH_DEATHS(
	"core_gate",
	SUITE_LIST(gate_one_writes_one_reads_then_all_start,
                   gate_unknown_lag_costs_one_more_write_and_a_learned_one_none,
                   gate_the_first_reader_waits_exactly_the_learned_lag,
                   gate_after_a_miss_the_next_reader_waits_behind_the_leaders_event,
                   gate_nothing_written_and_nothing_read_holds_nobody,
                   gate_a_reader_that_finds_nothing_and_writes_nothing_ends_the_hold,
                   gate_without_usage_there_is_no_proof_and_no_hold,
                   gate_below_the_minimum_nobody_is_held,
                   gate_an_unshared_leaf_holds_nobody_but_its_ancestor_does,
                   gate_a_second_sighting_makes_a_leaf_gate,
                   gate_of_an_opaque_body_is_none,
                   gate_of_a_trusted_model_opens_after_the_lag_without_a_reader,
                   gate_trust_ends_with_the_first_miss_of_a_lane_opened_by_it,
                   gate_where_nobody_can_prove_opens_at_the_first_event,
                   gate_where_nothing_streams_opens_when_the_leader_is_done,
                   gate_a_wrong_p_is_corrected_by_three_readers_who_agree,
                   gate_a_start_past_its_hold_limit_opens_the_lane_by_its_hit,
                   gate_a_miss_takes_the_other_readers_of_its_stage_back),
	SUITE_LIST(gate_a_move_that_is_not_allowed_dies,
                   gate_a_bypass_without_a_reason_dies))
