/* What a gate does, seen from outside: who wrote, who waited, in which state it is. */
#include "scheduler/core/gate.h"

#include "scheduler/core/state.h"
#include "tests/lib/core_rig.h"
#include "tests/lib/suite.h"

#define LONG 3600000

/* Both sides agree that the lane is in this state. */
static void
expect_gate(struct core_rig *rig, const char *name, enum lane_gate gate,
            enum lane_reason reason)
{
	ck_assert_str_eq(lane_gate_text(core_rig_lane_named(rig, name)->gate),
	                 lane_gate_text(gate));
	ck_assert_str_eq(lane_reason_text(core_rig_lane_named(rig, name)->reason),
	                 lane_reason_text(reason));
	ck_assert_int_eq(core_rig_node(rig, name)->gate, gate);
}

/* Runs a burst of `jobs` over the one-node chain `name` to its end. */
static void
burst(struct core_rig *rig, const char *name, uint32_t jobs)
{
	(void)core_rig_admit(rig, name, jobs);
	ck_assert(core_rig_drain(rig, LONG));
	core_audit(rig->core);
}

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

SUITE_MAIN_WITH_DEATHS(
	"core_gate",
	SUITE_LIST(gate_one_writes_one_reads_then_all_start,
                   gate_unknown_lag_costs_one_more_write_and_a_learned_one_none,
                   gate_the_first_reader_waits_exactly_the_learned_lag,
                   gate_after_a_miss_the_next_reader_waits_behind_the_leaders_event,
                   gate_written_and_never_read_is_leaky_and_no_longer_marked,
                   gate_a_marker_of_the_users_stays_on_a_leaky_lane,
                   gate_leaky_is_tried_again_after_a_lifetime_and_gives_up_at_one_miss,
                   gate_nothing_written_and_nothing_read_holds_nobody,
                   gate_a_reader_that_finds_nothing_and_writes_nothing_ends_the_hold,
                   gate_without_usage_there_is_no_proof_and_no_hold,
                   gate_below_the_minimum_nobody_is_held,
                   gate_an_unshared_leaf_holds_nobody_but_its_ancestor_does,
                   gate_a_second_sighting_makes_a_leaf_gate,
                   gate_of_an_opaque_body_is_none,
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
                   gate_of_a_trusted_model_opens_after_the_lag_without_a_reader,
                   gate_trust_ends_with_the_first_miss_of_a_lane_opened_by_it,
                   gate_where_nobody_can_prove_opens_at_the_first_event,
                   gate_where_nothing_streams_opens_when_the_leader_is_done,
                   gate_a_wrong_p_is_corrected_by_three_readers_who_agree,
                   gate_a_start_past_its_hold_limit_opens_the_lane_by_its_hit,
                   gate_three_refused_leaders_end_the_hold,
                   gate_pressure_never_ends_the_hold,
                   gate_broken_leaders_are_followed_more_and_more_slowly,
                   gate_leaders_that_die_of_5xx_are_no_refusals,
                   gate_of_refused_leaders_needs_three_more_after_a_lifetime,
                   gate_a_broken_reader_is_followed_after_a_pause,
                   gate_a_deferred_leader_is_followed_after_a_pause,
                   gate_a_miss_takes_the_other_readers_of_its_stage_back,
                   gate_without_a_lifetime_is_tried_again_after_five_minutes),
	SUITE_LIST(gate_a_move_that_is_not_allowed_dies,
                   gate_a_bypass_without_a_reason_dies))
