/* A new scheduler finds what Redis holds and goes on as if nothing had happened. */
#include "scheduler/core/recover.h"

#include "scheduler/core/state.h"
#include "tests/lib/core_rig.h"
#include "tests/lib/suite.h"

#define LONG 3600000

/* The scheduler dies `at_ms` into a burst of two families over one system prompt. */
static void
die_at(uint64_t at_ms, bool deaf)
{
	struct core_rig *rig = core_rig_fresh(20);

	(void)core_rig_admit(rig, "S/A", 20);
	(void)core_rig_admit(rig, "S/B", 20);
	rig->knobs.deaf = deaf ? 100 : 0;
	core_rig_run(rig, at_ms);
	rig->knobs.deaf = 0;
	core_rig_restart(rig);
	core_audit(rig->core);
	ck_assert(core_rig_drain(rig, LONG));
	core_audit(rig->core);
	ck_assert_msg(core_rig_node(rig, "S")->writes == 1, "%llu ms: S written %u times",
	              (unsigned long long)at_ms, core_rig_node(rig, "S")->writes);
	ck_assert_msg(core_rig_node(rig, "A")->writes == 1, "%llu ms: A written %u times",
	              (unsigned long long)at_ms, core_rig_node(rig, "A")->writes);
	ck_assert_uint_eq(core_rig_node(rig, "B")->writes, 1);
	ck_assert_uint_eq(rig->too_many, 0);
	ck_assert_uint_eq(rig->hold_limits, 0);
	core_rig_free(rig);
}

START_TEST(recover_at_any_moment_of_a_burst_writes_nothing_twice)
{
	for (uint64_t at_ms = 0; at_ms <= 12000; at_ms += 50)
		die_at(at_ms, false);
}
END_TEST

START_TEST(recover_after_lost_answers_writes_nothing_twice)
{
	for (uint64_t at_ms = 0; at_ms <= 12000; at_ms += 250)
		die_at(at_ms + 7, true);
}
END_TEST

/* Tickets write and look, since a job's first event is not visible; after the restart
 * jobs would. */
START_TEST(recover_at_any_moment_of_a_burst_of_tickets_looks_once)
{
	for (uint64_t at_ms = 0; at_ms <= 12000; at_ms += 50) {
		struct core_rig *rig = core_rig_fresh(20);
		struct event event = { .kind = EVENT_MODEL };

		rig->model.streams = false;
		rig->model.calls = true;
		event.model = rig->model;
		core_rig_feed(rig, &event);
		(void)core_rig_admit(rig, "S", 20);
		core_rig_run(rig, at_ms);
		core_rig_evict(rig); /* whoever looks now writes */
		rig->model.streams = true;
		core_rig_restart(rig);
		ck_assert(core_rig_drain(rig, LONG));
		core_audit(rig->core);
		ck_assert_msg(rig->too_many == 0, "%llu ms: %u too many",
		              (unsigned long long)at_ms, rig->too_many);
		core_rig_free(rig);
	}
}
END_TEST

START_TEST(recover_keeps_what_is_warm)
{
	struct core_rig *rig = core_rig_fresh(20);
	uint64_t until_ms;

	(void)core_rig_admit(rig, "S", 20);
	ck_assert(core_rig_drain(rig, LONG));
	until_ms = core_rig_node(rig, "S")->until_ms;
	core_rig_restart(rig);
	ck_assert_int_eq(core_rig_lane_named(rig, "S")->gate, LANE_OPEN);
	ck_assert_uint_eq(core_rig_lane_named(rig, "S")->until_ms, until_ms);
	ck_assert_uint_eq(core_rig_lane_named(rig, "S")->p, 10000);
	(void)core_rig_admit(rig, "S", 20);
	core_rig_run(rig, 1);
	ck_assert_uint_eq(rig->starts_count, 20);
	core_rig_free(rig);
}
END_TEST

START_TEST(recover_does_not_believe_an_until_that_has_passed)
{
	struct core_rig *rig = core_rig_fresh(20);

	(void)core_rig_admit(rig, "S", 20);
	ck_assert(core_rig_drain(rig, LONG));
	core_rig_run(rig, 1);
	rig->now_ms += rig->knobs.ttl_ms; /* nobody ruled meanwhile */
	core_rig_restart(rig);
	ck_assert_int_eq(core_rig_lane_named(rig, "S")->gate, LANE_CLOSED);
	core_rig_free(rig);
}
END_TEST

/* Being checked when everything stood still for most of a lifetime. */
START_TEST(recover_does_not_take_its_own_beginning_for_a_writing)
{
	struct core_rig *rig = core_rig_fresh(20);
	struct event event = { .kind = EVENT_BEGAN };
	uint64_t sent_ms;

	(void)core_rig_admit(rig, "S", 20);
	core_rig_run(rig, 3100);
	ck_assert_int_eq(core_rig_node(rig, "S")->gate, LANE_CHECKING);
	sent_ms = rig->now_ms - 100;
	rig->now_ms += 200000;
	core_rig_restart(rig);
	event.usage = (struct event_usage){
		.lane = { core_rig_node(rig, "S")->id, 0 },
		.g = core_rig_node(rig, "S")->g,
		.role = LANE_CANARY,
		.sent_ms = sent_ms,
		.first_ms = sent_ms + 100,
		.read = 10000,
		.at_ms = sent_ms + 100,
	};
	core_rig_feed(rig, &event);
	ck_assert_int_eq(core_rig_lane_named(rig, "S")->gate, LANE_OPEN);
	ck_assert_uint_le(core_rig_lane_named(rig, "S")->until_ms,
	                  sent_ms + rig->knobs.ttl_ms);
	core_rig_free(rig);
}
END_TEST

START_TEST(recover_keeps_learned_reasons_and_makes_the_others_anew)
{
	struct core_rig *rig = core_rig_fresh(20);

	(void)core_rig_admit(rig, "U?", 1);
	rig->knobs.cache_off = true;
	(void)core_rig_admit(rig, "C", 5);
	ck_assert(core_rig_drain(rig, LONG));
	rig->knobs.cache_off = false;
	rig->knobs.never_read = true;
	(void)core_rig_admit(rig, "L", 20);
	ck_assert(core_rig_drain(rig, LONG));
	core_rig_restart(rig);
	ck_assert_int_eq(core_rig_lane_named(rig, "U")->reason, LANE_REASON_UNSHARED);
	ck_assert_int_eq(core_rig_lane_named(rig, "C")->reason, LANE_REASON_UNCACHEABLE);
	ck_assert_int_eq(core_rig_lane_named(rig, "L")->gate, LANE_LEAKY);
	ck_assert_uint_eq(rig->families[2].marks, 0);
	core_rig_free(rig);
}
END_TEST

START_TEST(recover_says_nothing_that_redis_knows_already)
{
	struct core_rig *rig = core_rig_fresh(2);
	uint32_t grants;

	rig->knobs.stopped = true;
	(void)core_rig_admit(rig, "S/A", 20);
	(void)core_rig_admit(rig, "S/B", 20);
	(void)core_rig_admit(rig, "X?", 20);
	core_rig_run(rig, 100);
	grants = rig->grants;
	core_rig_restart(rig);
	core_rig_run(rig, 1);
	ck_assert_uint_eq(rig->grants, grants);
	core_rig_free(rig);
}
END_TEST

START_TEST(recover_keeps_the_order_of_activation)
{
	struct core_rig *rig = core_rig_fresh(1);
	uint32_t a, b;

	(void)core_rig_admit(rig, "A?", 20);
	(void)core_rig_admit(rig, "B?", 20);
	core_rig_run(rig, 3000);
	a = core_rig_node(rig, "A")->rank;
	b = core_rig_node(rig, "B")->rank;
	ck_assert_uint_lt(a, b);
	core_rig_restart(rig);
	(void)core_rig_admit(rig, "C?", 20);
	core_rig_run(rig, 100);
	ck_assert_uint_eq(core_rig_node(rig, "A")->rank, a);
	ck_assert_uint_eq(core_rig_node(rig, "B")->rank, b);
	ck_assert_uint_gt(core_rig_node(rig, "C")->rank, b);
	core_rig_free(rig);
}
END_TEST

START_TEST(recover_new_ranks_come_behind_those_that_redis_keeps)
{
	struct core_rig *rig = core_rig_fresh(2);
	uint32_t a;

	(void)core_rig_admit(rig, "W?", 1);
	(void)core_rig_admit(rig, "A?", 1);
	ck_assert(core_rig_drain(rig, LONG));
	core_rig_run(rig, LONG);
	a = core_rig_node(rig, "A")->rank; /* of no use any more, and still there */
	ck_assert_uint_eq(a, POOL_RANK_FIRST + 1);
	core_rig_restart(rig);
	(void)core_rig_admit(rig, "B?", 1);
	core_rig_run(rig, 100);
	ck_assert_uint_gt(core_rig_node(rig, "B")->rank, a);
	core_rig_free(rig);
}
END_TEST

START_TEST(recover_of_the_last_rank_of_all_dies_of_nothing)
{
	struct core_rig *rig = core_rig_fresh(2);

	(void)core_rig_admit(rig, "A?", 1);
	ck_assert(core_rig_drain(rig, LONG));
	core_rig_node(rig, "A")->rank = POOL_RANK_LAST - 1;
	core_rig_restart(rig);
	(void)core_rig_admit(rig, "B?", 1);
	core_rig_run(rig, 100);
	core_audit(rig->core);
	ck_assert_uint_lt(core_rig_node(rig, "B")->rank, POOL_RANK_LAST);
	core_rig_free(rig);
}
END_TEST

START_TEST(recover_a_drained_family_keeps_its_turn_while_its_tail_runs)
{
	struct core_rig *rig = core_rig_fresh(20);
	uint32_t a;

	rig->knobs.job_ms = 100000;
	(void)core_rig_admit(rig, "A", 20);
	core_rig_run(rig, 5000);
	a = core_rig_node(rig, "A")->rank;
	ck_assert_uint_lt(a, POOL_RANK_LAST);
	ck_assert_uint_eq(rig->families[0].backlog, 0);
	core_rig_restart(rig);
	core_rig_run(rig, 100);
	core_audit(rig->core);
	ck_assert_uint_eq(core_rig_node(rig, "A")->rank, a);
	ck_assert(core_rig_drain(rig, LONG));
	core_rig_run(rig, LONG);
	ck_assert_uint_eq(core_rig_node(rig, "A")->rank, POOL_RANK_LAST);
	core_rig_free(rig);
}
END_TEST

/* Redis has its record as `admit` made it: the scheduler died before its first grant. */
START_TEST(recover_gives_no_turn_to_a_family_that_had_none)
{
	struct core_rig *rig = core_rig_fresh(1);
	struct core_rig_node *b;

	(void)core_rig_admit(rig, "X?", 1);
	ck_assert(core_rig_drain(rig, LONG));
	rig->knobs.stopped = true;
	(void)core_rig_admit(rig, "A", 20);
	(void)core_rig_admit(rig, "B", 20);
	core_rig_run(rig, 100);
	b = core_rig_node(rig, "B");
	ck_assert_uint_eq(b->rank, POOL_RANK_LAST);
	b->rank = core_rig_node(rig, "X")->rank = POOL_RANK_NEVER;
	b->g = core_rig_node(rig, "X")->g = 0;
	core_rig_node(rig, "X")->gate = LANE_CLOSED;
	core_rig_restart(rig);
	core_audit(rig->core);
	ck_assert_int_eq(rig->core->families[core_rig_lane_named(rig, "B")->family].state,
	                 FAMILY_WAITING);
	core_rig_run(rig, 100);
	ck_assert_uint_eq(b->rank, POOL_RANK_LAST);
	ck_assert_uint_eq(b->credits, 0);
	ck_assert_int_eq(core_rig_node(rig, "X")->gate, LANE_BYPASS);
	ck_assert_uint_eq(core_rig_node(rig, "X")->rank, POOL_RANK_LAST);
	rig->knobs.stopped = false;
	ck_assert(core_rig_drain(rig, LONG));
	core_rig_free(rig);
}
END_TEST

START_TEST(recover_keeps_the_pace_and_the_park)
{
	struct core_rig *rig = core_rig_fresh(200);

	(void)core_rig_admit(rig, "S", 300);
	ck_assert(core_rig_drain(rig, LONG));
	ck_assert_uint_eq(rig->pace, 256);
	rig->parked_ms = rig->now_ms + 60000;
	core_rig_restart(rig);
	ck_assert_uint_eq(rig->core->pacers[0].pace, 256);
	ck_assert(pacer_is_parked(rig->core, &rig->core->pacers[0]));
	ck_assert_uint_eq(rig->parked_ms, rig->now_ms + 60000);
	core_rig_free(rig);
}
END_TEST

START_TEST(recover_an_orphaned_writing_is_written_again)
{
	struct core_rig *rig = core_rig_fresh(20);

	(void)core_rig_admit(rig, "S", 20);
	core_rig_run(rig, 1000);
	rig->knobs.mute = true;
	core_rig_kill(rig); /* nobody is told, and the credit is gone with it */
	rig->knobs.mute = false;
	core_rig_node(rig, "S")->credits = 0;
	core_rig_restart(rig);
	core_rig_run(rig, 900);
	ck_assert_uint_eq(rig->starts_count, 0); /* it may have been heard of late */
	core_rig_run(rig, 200);
	ck_assert_uint_eq(rig->starts_count, 1);
	ck_assert(core_rig_drain(rig, LONG));
	core_rig_free(rig);
}
END_TEST

/* Given back and taken again while Redis was read: neither in the lane nor in the leases,
 * but in the event stream. */
static void
miss_a_lease(uint64_t at_ms, enum lane_role role)
{
	struct core_rig *rig = core_rig_fresh(20);
	struct event event = { .kind = EVENT_START };
	struct core_rig_start *start = &rig->starts[role == LANE_LEAD ? 0 : 1];

	(void)core_rig_admit(rig, "S", 20);
	core_rig_run(rig, at_ms);
	ck_assert(start->used);
	ck_assert_int_eq(start->role, role);
	start->role = LANE_PLAIN; /* hidden */
	core_rig_restart(rig);
	start->role = role;
	core_rig_run(rig, 200);
	event.start = (struct event_start){
		.lane = { core_rig_node(rig, "S")->id, 0 },
		.g = start->g,
		.role = role,
		.at_ms = rig->now_ms - 200,
	};
	core_rig_feed(rig, &event);
	ck_assert(core_rig_drain(rig, LONG));
	core_audit(rig->core);
	ck_assert_uint_eq(rig->too_many, 0);
	ck_assert_uint_eq(core_rig_node(rig, "S")->writes, 1);
	core_rig_free(rig);
}

START_TEST(recover_waits_for_what_happened_while_it_read)
{
	miss_a_lease(1000, LANE_LEAD);
	miss_a_lease(3200, LANE_CANARY);
}
END_TEST

/* Sent while S could be read; it has expired while nobody ruled.  Both may write it now
 * if they are handed back and taken again: one of them is not to be. */
START_TEST(recover_lets_one_of_two_leaders_below_an_expired_prompt_be_taken_again)
{
	struct core_rig *rig = core_rig_fresh(20);
	uint32_t credits = 0;

	(void)core_rig_admit(rig, "S", 5);
	ck_assert(core_rig_drain(rig, LONG));
	rig->knobs.cold_ms = 10000000; /* they hang */
	(void)core_rig_admit(rig, "S/A", 5);
	(void)core_rig_admit(rig, "S/B", 5);
	core_rig_run(rig, 1000);
	ck_assert_int_eq(core_rig_node(rig, "A")->gate, LANE_WRITING);
	ck_assert_int_eq(core_rig_node(rig, "B")->gate, LANE_WRITING);
	ck_assert_uint_eq(rig->starts_count, 2);
	rig->now_ms += rig->knobs.ttl_ms;
	core_rig_restart(rig);
	core_audit(rig->core);
	core_rig_run(rig, 1);
	rig->knobs.stopped = true;
	core_rig_kill(rig);
	credits = core_rig_node(rig, "A")->credits + core_rig_node(rig, "B")->credits;
	ck_assert_uint_eq(credits, 1);
	rig->knobs.stopped = false;
	rig->knobs.cold_ms = 3000;
	ck_assert(core_rig_drain(rig, LONG));
	core_audit(rig->core);
	ck_assert_uint_eq(rig->too_many, 0);
	core_rig_free(rig);
}
END_TEST

START_TEST(recover_while_nobody_is_held_and_hold_again)
{
	struct core_rig *rig = core_rig_fresh(20);

	(void)core_rig_admit(rig, "S", 5);
	ck_assert(core_rig_drain(rig, LONG));
	core_rig_hold(rig, false);
	core_rig_restart(rig);
	(void)core_rig_admit(rig, "S", 20);
	core_rig_run(rig, 1);
	ck_assert_uint_eq(rig->starts_count, 20);
	core_rig_hold(rig, true);
	ck_assert(core_rig_drain(rig, LONG));
	core_audit(rig->core);
	core_rig_free(rig);
}
END_TEST

START_TEST(recover_end_twice_dies)
{
	struct core_rig *rig = core_rig_fresh(20);
	struct event event = { .kind = EVENT_RECOVERED_END };

	core_rig_feed(rig, &event);
}
END_TEST

START_TEST(recover_a_budget_without_a_pace_keeps_the_first_one)
{
	struct core_rig *rig = core_rig_fresh(20);

	rig->pace = 0; /* nobody has ever set it */
	rig->begin = false;
	core_rig_restart(rig);
	ck_assert_uint_eq(rig->core->pacers[0].pace, 32);
	ck_assert_uint_eq(rig->pace, 32);
	ck_assert(rig->begin); /* the next start reports its first byte */
	core_rig_free(rig);
}
END_TEST

START_TEST(recover_leases_of_the_unknown_are_ignored)
{
	struct core_config config = core_rig_config();
	struct core_rig *rig = core_rig_fresh(20);
	struct event event = { .kind = EVENT_RECOVERED_LEASE };
	struct command_list list;

	rig->core = core_init(rig->memory, core_size(&config), &config);
	event.start.lane.node = (struct id128){ 4, 4 };
	event.start.role = LANE_LEAD;
	core_step(rig->core, 1, &event, &list);
	event = (struct event){ .kind = EVENT_RECOVERED_END };
	core_step(rig->core, 1, &event, &list);
	core_audit(rig->core);
	core_rig_free(rig);
}
END_TEST

START_TEST(recover_more_families_with_work_than_there_is_room)
{
	struct core_config config = core_rig_config();
	struct core_rig *rig;

	config.families_max = 2;
	config.lanes_max = 2;
	rig = core_rig_create(&config, 20);
	(void)core_rig_admit(rig, "A", 30);
	(void)core_rig_admit(rig, "B", 30);
	(void)core_rig_admit(rig, "C", 30);
	core_rig_restart(rig);
	core_audit(rig->core);
	ck_assert_uint_eq(core_counts(rig->core).families, 2);
	ck_assert(core_rig_drain(rig, LONG));
	core_audit(rig->core);
	core_rig_free(rig);
}
END_TEST

START_TEST(recover_four_readers_at_once_go_on_where_they_were)
{
	struct core_rig *rig = core_rig_fresh(20);
	struct lane *lane;

	(void)core_rig_admit(rig, "S", 5);
	ck_assert(core_rig_drain(rig, LONG));
	core_rig_evict(rig);
	rig->knobs.lag_ms = 60000;
	(void)core_rig_admit(rig, "S", 20);
	core_rig_run(rig, 6000); /* closed for misses */
	rig->knobs.lag_ms = 0;
	core_rig_evict(rig);
	(void)core_rig_admit(rig, "S", 40);
	core_rig_run(rig, 4100); /* four readers are under way */
	core_rig_restart(rig);
	lane = core_rig_lane_named(rig, "S");
	ck_assert_int_eq(lane->gate, LANE_CHECKING);
	ck_assert_uint_eq(lane->unproven, 4);
	ck_assert_uint_eq(lane->stage, 4);
	ck_assert(lane->careful);
	core_rig_run(rig, 500);
	ck_assert_int_eq(lane->gate, LANE_OPEN);
	ck_assert_uint_eq(rig->too_many, 0);
	core_rig_free(rig);
}
END_TEST

SUITE_MAIN_WITH_DEATHS(
	"core_recover",
	SUITE_LIST(recover_more_families_with_work_than_there_is_room,
                   recover_at_any_moment_of_a_burst_writes_nothing_twice,
                   recover_after_lost_answers_writes_nothing_twice,
                   recover_at_any_moment_of_a_burst_of_tickets_looks_once,
                   recover_keeps_what_is_warm,
                   recover_does_not_believe_an_until_that_has_passed,
                   recover_does_not_take_its_own_beginning_for_a_writing,
                   recover_keeps_learned_reasons_and_makes_the_others_anew,
                   recover_says_nothing_that_redis_knows_already,
                   recover_keeps_the_order_of_activation,
                   recover_new_ranks_come_behind_those_that_redis_keeps,
                   recover_of_the_last_rank_of_all_dies_of_nothing,
                   recover_a_drained_family_keeps_its_turn_while_its_tail_runs,
                   recover_gives_no_turn_to_a_family_that_had_none,
                   recover_keeps_the_pace_and_the_park,
                   recover_an_orphaned_writing_is_written_again,
                   recover_waits_for_what_happened_while_it_read,
                   recover_lets_one_of_two_leaders_below_an_expired_prompt_be_taken_again,
                   recover_while_nobody_is_held_and_hold_again,
                   recover_a_budget_without_a_pace_keeps_the_first_one,
                   recover_leases_of_the_unknown_are_ignored,
                   recover_four_readers_at_once_go_on_where_they_were),
	SUITE_LIST(recover_end_twice_dies))
