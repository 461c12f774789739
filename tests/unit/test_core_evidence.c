#include "scheduler/core/evidence.h"

#include "scheduler/core/state.h"
#include "tests/lib/core_rig.h"
#include "tests/lib/suite.h"

/* A family T/S/M (marks at S, 20,000 tokens, and M, 30,000) that was granted once. */
static struct core_rig *
fresh(void)
{
	struct core_config config = core_rig_config();
	struct core_rig *rig = core_rig_create(&config, 10);

	rig->knobs.stopped = true;
	(void)core_rig_admit(rig, "T/S/M", 5);
	return rig;
}

static struct family *
family_of(struct core_rig *rig)
{
	return &rig->core->families[family_find(rig->core, core_rig_node(rig, "M")->id)];
}

static struct evidence
judge_as(struct core_rig *rig, uint64_t read, uint64_t written, uint64_t g,
         enum lane_role role)
{
	uint32_t index = family_find(rig->core, core_rig_node(rig, "M")->id);
	struct event_usage usage = {
		.g = g,
		.role = role,
		.sent_ms = rig->now_ms,
		.first_ms = rig->now_ms,
		.read = read,
		.written = written,
	};
	struct evidence evidence;

	evidence_judge(rig->core, index, &usage, &evidence);
	return evidence;
}

static struct evidence
judge_at(struct core_rig *rig, uint64_t read, uint64_t written, uint64_t g)
{
	return judge_as(rig, read, written, g, LANE_PLAIN);
}

static struct evidence
judge(struct core_rig *rig, uint64_t read, uint64_t written)
{
	return judge_at(rig, read, written, 1);
}

/* What it says of T, S and M. */
static void
expect(const struct evidence *evidence, enum evidence_verdict s, enum evidence_verdict m)
{
	ck_assert_int_eq(evidence->verdicts[0], EVIDENCE_SILENT); /* T is not marked */
	ck_assert_int_eq(evidence->verdicts[1], s);
	ck_assert_int_eq(evidence->verdicts[2], m);
}

START_TEST(evidence_slack_is_two_percent_but_at_least_128)
{
	ck_assert_uint_eq(evidence_slack(0), 128);
	ck_assert_uint_eq(evidence_slack(6400), 128);
	ck_assert_uint_eq(evidence_slack(30000), 600);
	ck_assert(evidence_covers(29400, 30000));
	ck_assert(!evidence_covers(29399, 30000));
	ck_assert(evidence_covers(40000, 30000));
}
END_TEST

START_TEST(evidence_the_leader_teaches_p_of_the_deepest_marked_node)
{
	struct core_rig *rig = fresh();
	struct evidence evidence = judge(rig, 0, 30012);

	expect(&evidence, EVIDENCE_MISS, EVIDENCE_MISS);
	ck_assert_uint_eq(core_rig_lane_named(rig, "M")->p, 30012);
	ck_assert_uint_eq(core_rig_lane_named(rig, "S")->p, 0);
	core_rig_free(rig);
}
END_TEST

START_TEST(evidence_what_covers_a_node_covers_all_above)
{
	struct core_rig *rig = fresh();
	struct evidence evidence;

	(void)judge(rig, 0, 30012);
	evidence = judge(rig, 30000, 0);
	expect(&evidence, EVIDENCE_HIT, EVIDENCE_HIT);
	ck_assert_uint_eq(core_rig_lane_named(rig, "S")->p,
	                  0); /* this read explains M, not S */
	core_rig_free(rig);
}
END_TEST

START_TEST(evidence_the_first_read_that_only_an_ancestor_explains_is_its_p)
{
	struct core_rig *rig = fresh();
	struct evidence evidence;

	(void)judge(rig, 0, 30012);
	evidence = judge(rig, 20007, 10005);
	expect(&evidence, EVIDENCE_HIT, EVIDENCE_MISS);
	ck_assert_uint_eq(core_rig_lane_named(rig, "S")->p, 20007);
	evidence = judge(rig, 0, 30012);
	expect(&evidence, EVIDENCE_MISS, EVIDENCE_MISS);
	core_rig_free(rig);
}
END_TEST

START_TEST(evidence_a_read_of_less_than_half_the_estimate_is_of_something_else)
{
	struct core_rig *rig = fresh();
	struct evidence evidence;

	(void)judge(rig, 0, 30012);
	evidence =
		judge(rig, 9999, 20013); /* the tools alone, from another system prompt */
	expect(&evidence, EVIDENCE_MISS, EVIDENCE_MISS);
	ck_assert_uint_eq(core_rig_lane_named(rig, "S")->p, 0);
	core_rig_free(rig);
}
END_TEST

START_TEST(evidence_with_markers_past_the_boundary_p_is_the_first_read)
{
	struct core_rig *rig = fresh();
	struct evidence evidence;

	family_of(rig)->flags |= EVENT_FAMILY_TAIL_MARKED;
	(void)judge(rig, 0, 45000); /* the tail was written, too */
	ck_assert_uint_eq(core_rig_lane_named(rig, "M")->p, 0);
	evidence = judge(rig, 30012, 15000);
	expect(&evidence, EVIDENCE_HIT, EVIDENCE_HIT);
	ck_assert_uint_eq(core_rig_lane_named(rig, "M")->p, 30012);
	core_rig_free(rig);
}
END_TEST

START_TEST(evidence_nothing_read_and_nothing_written_is_zero)
{
	struct core_rig *rig = fresh();
	struct evidence evidence = judge(rig, 0, 0);

	expect(&evidence, EVIDENCE_ZERO, EVIDENCE_ZERO);
	evidence = judge(rig, 0, EVENT_UNKNOWN); /* unknown is not zero */
	expect(&evidence, EVIDENCE_MISS, EVIDENCE_MISS);
	core_rig_free(rig);
}
END_TEST

START_TEST(evidence_unknown_usage_is_silent)
{
	struct core_rig *rig = fresh();
	struct evidence evidence = judge(rig, EVENT_UNKNOWN, 5);

	expect(&evidence, EVIDENCE_SILENT, EVIDENCE_SILENT);
	core_rig_free(rig);
}
END_TEST

START_TEST(evidence_without_a_time_proves_nothing)
{
	struct core_rig *rig = fresh();
	uint32_t index = family_find(rig->core, core_rig_node(rig, "M")->id);
	struct event_usage usage = {
		.g = 1, .sent_ms = EVENT_UNKNOWN, .first_ms = EVENT_UNKNOWN, .read = 30000
	};
	struct evidence evidence;

	evidence_judge(rig->core, index, &usage, &evidence);
	expect(&evidence, EVIDENCE_SILENT, EVIDENCE_SILENT);
	usage.first_ms = rig->now_ms + 50; /* a worker's clock may run ahead */
	evidence_judge(rig->core, index, &usage, &evidence);
	ck_assert_uint_eq(evidence.sent_ms, rig->now_ms);
	ck_assert_uint_eq(evidence.first_ms, rig->now_ms);
	core_rig_free(rig);
}
END_TEST

START_TEST(evidence_needs_a_marker_that_the_request_carried_for_certain)
{
	struct core_rig *rig = fresh();
	struct family *family = family_of(rig);
	struct evidence evidence;

	ck_assert_uint_eq(family->marks, 6);
	ck_assert_uint_eq(family->marks_g, 1);
	evidence = judge_at(rig, 0, 0, 0); /* claimed before the first grant */
	expect(&evidence, EVIDENCE_SILENT, EVIDENCE_SILENT);
	family->marks_before = 6;
	family->marks = 2; /* the leaf is leaky */
	family->marks_g = 5;
	evidence = judge_at(rig, 0, 20000, 5);
	expect(&evidence, EVIDENCE_MISS, EVIDENCE_SILENT);
	evidence = judge_at(rig, 0, 20000, 4);
	expect(&evidence, EVIDENCE_MISS, EVIDENCE_SILENT);
	core_rig_free(rig);
}
END_TEST

START_TEST(evidence_of_marks_that_changed_twice_since_is_silent)
{
	struct core_rig *rig = fresh();
	struct family *family = family_of(rig);
	struct evidence evidence;

	family->marks_before_g = 4;
	family->marks_g = 5;
	family->marks_before = 6;
	evidence = judge_at(rig, 0, 0, 4);
	expect(&evidence, EVIDENCE_ZERO, EVIDENCE_ZERO);
	evidence = judge_at(rig, 0, 0, 3);
	expect(&evidence, EVIDENCE_SILENT, EVIDENCE_SILENT);
	evidence = judge_as(rig, 0, 0, 3, LANE_NOW);
	expect(&evidence, EVIDENCE_SILENT, EVIDENCE_SILENT);
	evidence = judge_at(rig, 0, 30012, 3); /* by a marker of its own, perhaps */
	expect(&evidence, EVIDENCE_SILENT, EVIDENCE_SILENT);
	evidence =
		judge_as(rig, 0, 30012, 3, LANE_LEAD); /* sent to write what is marked */
	expect(&evidence, EVIDENCE_MISS, EVIDENCE_MISS);
	evidence = judge_as(rig, 0, 0, 3, LANE_LEAD); /* or when it was not shared yet */
	expect(&evidence, EVIDENCE_SILENT, EVIDENCE_SILENT);
	core_rig_free(rig);
}
END_TEST

START_TEST(evidence_of_an_unmarked_start_is_silent_after_a_restart)
{
	struct core_rig *rig = fresh();
	struct evidence evidence;

	core_rig_restart(rig);
	ck_assert_uint_eq(family_of(rig)->marks, 6);
	evidence = judge_as(rig, 0, 0, 0, LANE_NOW); /* before the first grant */
	expect(&evidence, EVIDENCE_SILENT, EVIDENCE_SILENT);
	evidence = judge_as(rig, 0, 30012, 1, LANE_LEAD);
	expect(&evidence, EVIDENCE_MISS, EVIDENCE_MISS);
	core_rig_free(rig);
}
END_TEST

START_TEST(evidence_where_nobody_pays_for_writing_zero_is_a_miss)
{
	struct core_rig *rig = fresh();
	struct evidence evidence;

	rig->core->models[0].traits.needs_marker = false;
	evidence = judge(rig, 0, 0);
	expect(&evidence, EVIDENCE_MISS, EVIDENCE_MISS);
	core_rig_free(rig);
}
END_TEST

SUITE_MAIN("core_evidence", evidence_slack_is_two_percent_but_at_least_128,
           evidence_the_leader_teaches_p_of_the_deepest_marked_node,
           evidence_what_covers_a_node_covers_all_above,
           evidence_the_first_read_that_only_an_ancestor_explains_is_its_p,
           evidence_a_read_of_less_than_half_the_estimate_is_of_something_else,
           evidence_with_markers_past_the_boundary_p_is_the_first_read,
           evidence_nothing_read_and_nothing_written_is_zero,
           evidence_unknown_usage_is_silent, evidence_without_a_time_proves_nothing,
           evidence_needs_a_marker_that_the_request_carried_for_certain,
           evidence_of_marks_that_changed_twice_since_is_silent,
           evidence_of_an_unmarked_start_is_silent_after_a_restart,
           evidence_where_nobody_pays_for_writing_zero_is_a_miss)
