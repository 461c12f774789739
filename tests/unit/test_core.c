/* The whole: contract of core_step, memory, explanations. */
#include "scheduler/core/core.h"

#include "scheduler/core/state.h"
#include "tests/lib/core_rig.h"
#include "tests/lib/suite.h"

#include <stdlib.h>

#define LONG 3600000

static struct core_family_view
view_of(struct core_rig *rig, const char *name)
{
	struct core_family_view view;

	ck_assert_int_eq(core_family_view(rig->core, core_rig_node(rig, name)->id, &view),
	                 0);
	return view;
}

static void
expect_blocked(struct core_rig *rig, const char *name, enum core_blocked blocked)
{
	struct core_family_view view = view_of(rig, name);

	ck_assert_str_eq(core_blocked_text(view.blocked_on), core_blocked_text(blocked));
}

START_TEST(core_same_events_same_commands)
{
	struct core_rig *rigs[2];
	char *texts[2];
	size_t sizes[2];

	for (int i = 0; i < 2; i++) {
		rigs[i] = core_rig_fresh(10);
		rigs[i]->trace = open_memstream(&texts[i], &sizes[i]);
		rigs[i]->knobs.lag_ms = 300;
		(void)core_rig_admit(rigs[i], "T/S/A", 20);
		(void)core_rig_admit(rigs[i], "T/S/B", 20);
		(void)core_rig_admit(rigs[i], "X?", 3);
		ck_assert(core_rig_drain(rigs[i], LONG));
		fclose(rigs[i]->trace);
		core_rig_free(rigs[i]);
	}
	ck_assert_uint_gt(sizes[0], 3000);
	ck_assert_str_eq(texts[0], texts[1]);
	free(texts[0]);
	free(texts[1]);
}
END_TEST

START_TEST(core_without_work_sleeps)
{
	struct core_rig *rig = core_rig_fresh(10);

	ck_assert(!core_busy(rig->core));
	(void)core_rig_admit(rig, "S", 5);
	core_rig_run(rig, 100);
	ck_assert(core_busy(rig->core)); /* cold, with work */
	ck_assert(core_rig_drain(rig, LONG));
	core_rig_run(rig, 2 * rig->knobs.ttl_ms);
	ck_assert(!core_busy(rig->core));
	ck_assert_uint_gt(core_deadline(rig->core), rig->now_ms + 10000);
	core_rig_free(rig);
}
END_TEST

START_TEST(core_knows_when_jobs_wait_for_workers_that_it_has_not_heard_of)
{
	struct core_rig *rig = core_rig_fresh(0);

	ck_assert(!core_lacks_workers(rig->core)); /* nor jobs */
	(void)core_rig_admit(rig, "S", 5);
	ck_assert(core_lacks_workers(rig->core));
	(void)core_rig_pool(rig, "p", 50);
	ck_assert(!core_lacks_workers(rig->core));
	core_rig_free(rig);
}
END_TEST

START_TEST(core_is_busy_while_the_pace_rises)
{
	struct core_rig *rig = core_rig_fresh(200);
	struct event event = { .kind = EVENT_BUDGET };

	(void)core_rig_admit(rig, "X?", 150);
	core_rig_run(rig, 100);
	ck_assert(core_busy(rig->core));
	core_rig_run(rig, 2000);
	ck_assert(!core_busy(rig->core));
	event.budget.id = (struct id128){ 8, 8 }; /* any other account counts, too */
	core_rig_feed(rig, &event);
	pacer_weigh(rig->core, 1, 0, 100);
	ck_assert(core_busy(rig->core));
	core_rig_free(rig);
}
END_TEST

START_TEST(core_emits_nothing_before_the_recovery_ends)
{
	struct core_config config = core_rig_config();
	struct core_rig *rig = core_rig_fresh(10);
	struct event event = { .kind = EVENT_TICK };
	struct command_list list;

	rig->core = core_init(rig->memory, core_size(&config), &config);
	core_step(rig->core, 5, &event, &list);
	ck_assert_uint_eq(list.count, 0);
	ck_assert_uint_eq(core_deadline(rig->core), CORE_DEADLINE_NONE);
	core_audit(rig->core);
	core_rig_free(rig);
}
END_TEST

START_TEST(core_forgets_the_family_that_was_idle_longest)
{
	struct core_config config = core_rig_config();
	struct core_rig *rig;
	struct core_family_view view;

	config.families_max = 2;
	config.lanes_max = 4;
	rig = core_rig_create(&config, 10);
	(void)core_rig_admit(rig, "S/A", 3);
	(void)core_rig_admit(rig, "S/B", 3);
	ck_assert(core_rig_drain(rig, LONG));
	core_rig_run(rig, 10000);
	(void)core_rig_admit(rig, "S/B", 1);
	(void)core_rig_admit(rig, "X", 3);
	core_audit(rig->core);
	ck_assert_int_eq(core_family_view(rig->core, core_rig_node(rig, "A")->id, &view),
	                 ERR_NOT_FOUND);
	ck_assert_uint_eq(core_counts(rig->core).families, 2);
	ck_assert_uint_eq(core_counts(rig->core).lanes, 3); /* S stays, for B */
	ck_assert(core_rig_drain(rig, LONG));
	core_rig_run(rig, 10000);
	(void)core_rig_admit(rig, "S/A", 3); /* comes back, g is told again */
	ck_assert(core_rig_drain(rig, LONG));
	core_audit(rig->core);
	core_rig_free(rig);
}
END_TEST

START_TEST(core_knows_a_thousand_families_one_after_the_other)
{
	struct core_rig *rig = core_rig_fresh(10);

	for (uint64_t i = 0; i < 1000; i++) {
		struct event event = { .kind = EVENT_ADMITTED };
		struct command_list list;

		event.admitted.pool = rig->core->pools[0].id;
		event.admitted.budget = rig->core->pacers[0].id;
		event.admitted.model = rig->core->models[0].traits.id;
		event.admitted.chain.count = 2;
		event.admitted.chain.nodes[0].id = (struct id128){ 1, i / 7 };
		event.admitted.chain.nodes[1].id = (struct id128){ 2, i };
		event.admitted.oldest_ms = rig->now_ms;
		core_step(rig->core, rig->now_ms, &event, &list);
	}
	core_audit(rig->core);
	ck_assert_uint_eq(core_counts(rig->core).families, CORE_RIG_FAMILIES);
	core_rig_free(rig);
}
END_TEST

START_TEST(core_events_about_the_unknown_are_ignored)
{
	struct core_rig *rig = core_rig_fresh(10);

	for (int kind = 0; kind < EVENT_KIND_COUNT; kind++) {
		struct event event = { .kind = (enum event_kind)kind };
		struct command_list list;

		if (kind == EVENT_MODEL || kind == EVENT_POOL || kind == EVENT_BUDGET ||
		    kind == EVENT_ADMITTED || kind == EVENT_RECOVERED_END ||
		    (kind >= EVENT_RECOVERED_FAMILY && kind <= EVENT_RECOVERED_END))
			continue;
		core_step(rig->core, rig->now_ms, &event, &list);
		ck_assert_str_ne(event_kind_text(event.kind), "");
	}
	core_audit(rig->core);
	ck_assert_uint_eq(core_counts(rig->core).families, 0);
	core_rig_free(rig);
}
END_TEST

START_TEST(core_families_of_an_unknown_pool_run_unheld)
{
	struct core_rig *rig = core_rig_fresh(10);
	struct event event = { .kind = EVENT_ADMITTED };
	struct command_list list;

	event.admitted.pool = (struct id128){ 3, 3 };
	event.admitted.budget = rig->core->pacers[0].id;
	event.admitted.model = rig->core->models[0].traits.id;
	event.admitted.chain.count = 1;
	event.admitted.chain.nodes[0].id = (struct id128){ 5, 5 };
	event.admitted.chain.nodes[0].flags = LINEAGE_SHARED | LINEAGE_MARKABLE;
	event.admitted.jobs[EVENT_LIST_NORMAL] = 1;
	core_step(rig->core, rig->now_ms, &event, &list);
	ck_assert_int_eq(list.commands[0].kind, COMMAND_GRANT);
	ck_assert_int_eq(list.commands[0].grant.gate, LANE_BYPASS);
	ck_assert_int_eq(list.commands[0].grant.reason, LANE_REASON_UNHELD);
	ck_assert_int_eq(list.commands[1].kind, COMMAND_NOTE);
	ck_assert_int_eq(list.commands[1].note.kind, COMMAND_NOTE_FULL);
	core_rig_free(rig);
}
END_TEST

START_TEST(core_hold_off_starts_everything_and_on_holds_again)
{
	struct core_rig *rig = core_rig_fresh(20);

	(void)core_rig_admit(rig, "S", 50);
	core_rig_run(rig, 100);
	ck_assert_uint_eq(rig->starts_count, 1);
	core_rig_hold(rig, false);
	core_rig_run(rig, 1);
	ck_assert_uint_eq(rig->starts_count, 20);
	ck_assert_int_eq(core_rig_node(rig, "S")->reason, LANE_REASON_OFF);
	ck_assert_int_eq(view_of(rig, "S").lanes[0].reason, LANE_REASON_OFF);
	ck_assert_int_eq(view_of(rig, "S").blocked_on, CORE_BLOCKED_SLOTS);
	core_rig_run(rig, 3500);
	core_rig_hold(rig, true);
	ck_assert_int_ne(core_rig_node(rig, "S")->reason, LANE_REASON_OFF);
	ck_assert(core_rig_drain(rig, LONG));
	core_audit(rig->core);
	core_rig_free(rig);
}
END_TEST

START_TEST(core_a_route_that_is_not_held_starts_beside_one_that_is)
{
	struct core_rig *rig = core_rig_fresh(30);

	(void)core_rig_admit(rig, "S/A", 10);
	(void)core_rig_admit(rig, "S/B", 50);
	core_rig_run(rig, 100);
	ck_assert_uint_eq(rig->starts_count, 1);
	core_rig_hold_route(rig, "A", false);
	core_rig_run(rig, 1);
	ck_assert_uint_eq(rig->starts_count, 10);
	ck_assert(view_of(rig, "A").unheld);
	ck_assert_int_eq(view_of(rig, "A").lanes[1].reason, LANE_REASON_OFF);
	ck_assert_int_eq(view_of(rig, "A").blocked_on, CORE_BLOCKED_NO_WORK);
	ck_assert(!view_of(rig, "B").unheld);
	ck_assert_int_eq(view_of(rig, "B").lanes[0].gate, LANE_WRITING);
	ck_assert(core_rig_drain(rig, LONG));
	ck_assert_uint_eq(rig->too_many, 0);
	core_audit(rig->core);
	core_rig_free(rig);
}
END_TEST

START_TEST(core_a_route_that_is_held_again_waits_for_its_writer)
{
	struct core_rig *rig = core_rig_fresh(20);

	(void)core_rig_admit(rig, "S", 1);
	core_rig_hold_route(rig, "S", false);
	core_rig_restart(rig); /* it survives */
	(void)core_rig_admit(rig, "S", 10);
	core_rig_run(rig, 100);
	ck_assert_uint_eq(rig->starts_count, 11);
	ck_assert(core_rig_drain(rig, LONG));
	core_rig_run(rig, 600000); /* cold again */
	core_rig_hold_route(rig, "S", true);
	(void)core_rig_admit(rig, "S", 10);
	core_rig_run(rig, 100);
	ck_assert_uint_eq(rig->starts_count, 1);
	ck_assert(core_rig_drain(rig, LONG));
	core_rig_free(rig);
}
END_TEST

START_TEST(core_hold_off_says_nothing_of_lanes_that_hold_nobody)
{
	struct core_rig *rig = core_rig_fresh(20);
	uint32_t grants;

	(void)core_rig_admit(rig, "U?", 5);
	ck_assert(core_rig_drain(rig, LONG));
	ck_assert_int_eq(core_rig_node(rig, "U")->reason, LANE_REASON_UNSHARED);
	core_rig_run(rig, LONG);
	grants = rig->grants;
	core_rig_hold(rig, false);
	core_rig_run(rig, 1);
	ck_assert_int_eq(core_rig_node(rig, "U")->reason, LANE_REASON_UNSHARED);
	ck_assert_uint_eq(rig->grants, grants);
	core_rig_free(rig);
}
END_TEST

START_TEST(core_a_model_may_be_told_never_to_hold)
{
	struct core_rig *rig = core_rig_fresh(20);
	struct event event = { .kind = EVENT_MODEL };

	rig->model.hold = false;
	event.model = rig->model;
	core_rig_feed(rig, &event);
	(void)core_rig_admit(rig, "S", 20);
	core_rig_run(rig, 1);
	ck_assert_uint_eq(rig->starts_count, 20);
	ck_assert_int_eq(core_rig_node(rig, "S")->reason, LANE_REASON_UNHELD);
	ck_assert_int_eq(view_of(rig, "S").lanes[0].reason, LANE_REASON_UNHELD);
	rig->model.hold = true;
	event.model = rig->model;
	core_rig_feed(rig, &event);
	(void)core_rig_admit(rig, "S", 20);
	ck_assert(core_rig_drain(rig, LONG));
	core_audit(rig->core);
	core_rig_free(rig);
}
END_TEST

START_TEST(core_explains_what_a_family_waits_for)
{
	struct core_rig *rig = core_rig_fresh(0);
	struct event event = { .kind = EVENT_PRESSURE };

	(void)core_rig_admit(rig, "S", 90);
	expect_blocked(rig, "S", CORE_BLOCKED_NO_WORKER);
	rig->knobs.stopped = true;
	(void)core_rig_pool(rig, "p", 50);
	expect_blocked(rig, "S", CORE_BLOCKED_ELECTED);
	rig->knobs.stopped = false;
	core_rig_run(rig, 100);
	expect_blocked(rig, "S", CORE_BLOCKED_WRITING);
	rig->core->models[0].lag_ms = 1000;
	core_rig_run(rig, 3000);
	expect_blocked(rig, "S", CORE_BLOCKED_CHECKING);
	ck_assert_uint_eq(view_of(rig, "S").blocked_until_ms,
	                  view_of(rig, "S").lanes[0].check_ms);
	core_rig_run(rig, 1500);
	expect_blocked(rig, "S", CORE_BLOCKED_PACE);
	ck_assert_uint_eq(view_of(rig, "S").blocked_number, 32);
	event.pressure.budget = rig->core->pacers[0].id;
	event.pressure.until_ms = rig->parked_ms = rig->now_ms + 5000;
	core_rig_feed(rig, &event);
	expect_blocked(rig, "S", CORE_BLOCKED_PARKED);
	ck_assert_uint_eq(view_of(rig, "S").blocked_until_ms, rig->now_ms + 5000);
	ck_assert(core_rig_drain(rig, LONG));
	expect_blocked(rig, "S", CORE_BLOCKED_NO_WORK);
	ck_assert_int_eq(view_of(rig, "S").lanes[0].gate, LANE_OPEN);
	ck_assert_uint_gt(view_of(rig, "S").lanes[0].until_ms, rig->now_ms);
	core_rig_free(rig);
}
END_TEST

START_TEST(core_explains_drain_order_and_pauses)
{
	struct core_rig *rig = core_rig_fresh(2);
	struct event event = { .kind = EVENT_PAUSE };

	rig->knobs.job_ms = 20000;
	(void)core_rig_admit(rig, "A", 20);
	core_rig_run(rig, 30000);
	(void)core_rig_admit(rig, "B", 20);
	expect_blocked(rig, "B", CORE_BLOCKED_ORDER);
	expect_blocked(rig, "A", CORE_BLOCKED_SLOTS); /* its own jobs are before it */
	event.pause.family = core_rig_node(rig, "B")->id;
	event.pause.on = true;
	core_rig_feed(rig, &event);
	expect_blocked(rig, "B", CORE_BLOCKED_PAUSED);
	core_audit(rig->core);
	core_rig_free(rig);
}
END_TEST

/* A look at a family finds jobs although slots were left free a moment ago. */
static bool
is_bound_by(struct core_rig *rig, uint64_t head_ms, uint64_t short_ms)
{
	struct family *family = &rig->core->families[0];
	struct event event = { .kind = EVENT_GLANCED };

	rig->core->pacers[0].bound_ms = 0;
	rig->core->pools[family->pool].short_ms = short_ms;
	family->glance_flight = true;
	event.glanced = (struct event_glanced){
		.family = family->id,
		.status = EVENT_STATUS_DONE,
		.backlog = 5,
		.head_ms = head_ms,
	};
	core_rig_feed(rig, &event);
	ck_assert_int_eq(family->state, FAMILY_READY);
	return pacer_is_bound(rig->core, &rig->core->pacers[0]);
}

START_TEST(core_takes_only_jobs_that_were_there_for_held_back_by_the_budget)
{
	struct core_rig *rig = core_rig_fresh(50);
	uint64_t now_ms;

	(void)core_rig_admit(rig, "S", 40);
	core_rig_run(rig, 4000);
	now_ms = rig->now_ms;
	ck_assert(is_bound_by(rig, now_ms - 300, now_ms - 200));
	ck_assert(!is_bound_by(rig, now_ms - 100, now_ms - 200));   /* came behind it */
	ck_assert(!is_bound_by(rig, now_ms - 9000, now_ms - 5000)); /* long ago */
	core_rig_free(rig);
}
END_TEST

START_TEST(core_names_the_limit_that_binds)
{
	struct core_rig *rig = core_rig_fresh(50);
	struct event event = { .kind = EVENT_BUDGET };

	event.budget.id = rig->core->pacers[0].id;
	event.budget.limits[EVENT_BUCKET_REQUESTS] = 1000;
	event.budget.limits[EVENT_BUCKET_INPUT] = 450000;
	event.budget.limits[EVENT_BUCKET_OUTPUT] = 90000;
	core_rig_feed(rig, &event);
	(void)core_rig_admit(rig, "S", 40);
	core_rig_run(rig, 4000);
	rig->core->families[0].input_tokens = 1000;
	rig->core->families[0].output_tokens = 8192; /* 11 at a time */
	rig->core->families[0].waiting = 20;
	rig->core->families[0].oldest_ms = rig->now_ms;
	pacer_take_bound(rig->core, 0);
	rig->core->pacers[0].pace = 64;
	expect_blocked(rig, "S", CORE_BLOCKED_BUDGET);
	ck_assert_int_eq(view_of(rig, "S").blocked_bucket, EVENT_BUCKET_OUTPUT);
	ck_assert_uint_eq(view_of(rig, "S").blocked_number, 90000);
	core_rig_free(rig);
}
END_TEST

START_TEST(core_tells_what_it_learned_of_a_model)
{
	struct core_rig *rig = core_rig_fresh(20);
	struct core_model_view view;

	ck_assert_int_eq(core_model_view(rig->core, rig->model.id, &view), 0);
	ck_assert_uint_eq(view.lag_ms, EVENT_UNKNOWN);
	ck_assert_int_eq(core_model_view(rig->core, (struct id128){ 1, 1 }, &view),
	                 ERR_NOT_FOUND);
	rig->knobs.lag_ms = 1000;
	(void)core_rig_admit(rig, "S", 20);
	ck_assert(core_rig_drain(rig, LONG));
	ck_assert_int_eq(core_model_view(rig->core, rig->model.id, &view), 0);
	ck_assert_uint_ge(view.lag_ms, 1000);
	ck_assert(!view.trusted);
	core_rig_free(rig);
}
END_TEST

START_TEST(core_notes_that_do_not_fit_are_counted)
{
	struct core_rig *rig = core_rig_fresh(20);
	struct command_note note;
	uint32_t notes = 0;

	for (int i = 0; i < NOTE_MAX + 5; i++)
		note_id(rig->core, COMMAND_NOTE_LAG, rig->model.id, 1, 0);
	while (note_pop(rig->core, &note))
		notes++;
	ck_assert_uint_eq(notes, NOTE_MAX + 1);
	ck_assert_int_eq(note.kind, COMMAND_NOTE_LOST);
	ck_assert_uint_eq(note.a, 5);
	core_rig_free(rig);
}
END_TEST

START_TEST(core_words_are_complete)
{
	for (int i = 0; i < COMMAND_KIND_COUNT; i++)
		ck_assert_ptr_nonnull(command_kind_text((enum command_kind)i));
	for (int i = 0; i < COMMAND_NOTE_KIND_COUNT; i++)
		ck_assert_ptr_nonnull(command_note_text((enum command_note_kind)i));
	for (int i = 0; i < EVENT_KIND_COUNT; i++)
		ck_assert_ptr_nonnull(event_kind_text((enum event_kind)i));
	for (int i = 0; i < CORE_BLOCKED_COUNT; i++)
		ck_assert_ptr_nonnull(core_blocked_text((enum core_blocked)i));
	for (int i = 0; i < LANE_GATE_COUNT; i++)
		ck_assert_ptr_nonnull(lane_gate_text((enum lane_gate)i));
	for (int i = 0; i < LANE_REASON_COUNT; i++)
		ck_assert_ptr_nonnull(lane_reason_text((enum lane_reason)i));
	for (int i = 0; i < LANE_ROLE_COUNT; i++)
		ck_assert_ptr_nonnull(lane_role_text((enum lane_role)i));
}
END_TEST

START_TEST(core_time_that_goes_back_dies)
{
	struct core_rig *rig = core_rig_fresh(20);
	struct event event = { .kind = EVENT_TICK };
	struct command_list list;

	core_step(rig->core, rig->now_ms, &event, &list);
	core_step(rig->core, rig->now_ms - 1, &event, &list);
}
END_TEST

START_TEST(core_an_event_without_a_kind_dies)
{
	struct core_rig *rig = core_rig_fresh(20);
	struct event event = { .kind = EVENT_KIND_COUNT };
	struct command_list list;

	core_step(rig->core, rig->now_ms, &event, &list);
}
END_TEST

START_TEST(core_audit_sees_an_unproven_start_that_nobody_made)
{
	struct core_rig *rig = core_rig_fresh(20);

	(void)core_rig_admit(rig, "S", 20);
	rig->core->lanes[0].unproven++;
	core_audit(rig->core);
}
END_TEST

START_TEST(core_audit_sees_a_load_that_does_not_add_up)
{
	struct core_rig *rig = core_rig_fresh(20);

	(void)core_rig_admit(rig, "S", 20);
	rig->core->pools[0].load++;
	core_audit(rig->core);
}
END_TEST

START_TEST(core_audit_sees_a_family_that_is_not_at_home)
{
	struct core_rig *rig = core_rig_fresh(20);

	(void)core_rig_admit(rig, "S", 20);
	rig->core->families[0].state = FAMILY_READY;
	core_audit(rig->core);
}
END_TEST

SUITE_MAIN_WITH_DEATHS(
	"core",
	SUITE_LIST(core_same_events_same_commands, core_without_work_sleeps,
                   core_is_busy_while_the_pace_rises,
                   core_knows_when_jobs_wait_for_workers_that_it_has_not_heard_of,
                   core_emits_nothing_before_the_recovery_ends,
                   core_forgets_the_family_that_was_idle_longest,
                   core_knows_a_thousand_families_one_after_the_other,
                   core_events_about_the_unknown_are_ignored,
                   core_families_of_an_unknown_pool_run_unheld,
                   core_hold_off_starts_everything_and_on_holds_again,
                   core_a_route_that_is_not_held_starts_beside_one_that_is,
                   core_a_route_that_is_held_again_waits_for_its_writer,
                   core_hold_off_says_nothing_of_lanes_that_hold_nobody,
                   core_a_model_may_be_told_never_to_hold,
                   core_explains_what_a_family_waits_for,
                   core_explains_drain_order_and_pauses, core_names_the_limit_that_binds,
                   core_takes_only_jobs_that_were_there_for_held_back_by_the_budget,
                   core_tells_what_it_learned_of_a_model,
                   core_notes_that_do_not_fit_are_counted, core_words_are_complete),
	SUITE_LIST(core_time_that_goes_back_dies, core_an_event_without_a_kind_dies,
                   core_audit_sees_an_unproven_start_that_nobody_made,
                   core_audit_sees_a_load_that_does_not_add_up,
                   core_audit_sees_a_family_that_is_not_at_home))
