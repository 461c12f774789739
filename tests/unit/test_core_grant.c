/* How memory and Redis are made equal: one grant at a time, compared, never lost. */
#include "scheduler/core/grant.h"

#include "scheduler/core/pool.h"
#include "scheduler/core/state.h"
#include "tests/lib/core_rig.h"
#include "tests/lib/suite.h"

#define LONG 3600000

static struct core_rig *
fresh(void)
{
	struct core_config config = core_rig_config();
	struct core_rig *rig = core_rig_create(&config, 20);

	rig->knobs.stopped = true;
	return rig;
}

/* Steps the core alone: what it asks for is looked at, not executed. */
static struct command_list
step(struct core_rig *rig, const struct event *event)
{
	struct command_list list;

	core_step(rig->core, rig->now_ms, event, &list);
	return list;
}

static struct command_list
tick(struct core_rig *rig)
{
	const struct event event = { .kind = EVENT_TICK };

	return step(rig, &event);
}

static const struct command_grant *
grant_of(const struct command_list *list, struct id128 node)
{
	for (uint32_t i = 0; i < list->count; i++)
		if (list->commands[i].kind == COMMAND_GRANT &&
		    id_equals(list->commands[i].grant.lane.node, node))
			return &list->commands[i].grant;
	return NULL;
}

static struct event
answer(struct core_rig *rig, const char *name, enum event_status status, uint64_t g)
{
	struct event event = { .kind = EVENT_GRANTED };

	event.granted.lane = core_rig_lane_named(rig, name)->id;
	event.granted.g_new = core_rig_lane_named(rig, name)->flight_g;
	event.granted.status = status;
	event.granted.g = g;
	event.granted.bits = 8;
	event.granted.head_ms = rig->now_ms;
	return event;
}

/* Touches the lane by a rank of its own, and answers what is asked for then. */
static struct command_list
disturb(struct core_rig *rig, const char *name)
{
	struct lane *lane = core_rig_lane_named(rig, name);

	rig->core->families[lane->family].rank++;
	lane_touch(rig->core, (uint32_t)(lane - rig->core->lanes));
	return tick(rig);
}

START_TEST(grant_has_one_outcome_before_there_is_a_second)
{
	struct core_rig *rig = fresh();
	struct command_list list;
	struct event event;

	(void)core_rig_admit(rig, "S", 5);
	list = disturb(rig, "S");
	ck_assert_ptr_nonnull(grant_of(&list, core_rig_node(rig, "S")->id));
	list = disturb(rig, "S"); /* under way */
	ck_assert_ptr_null(grant_of(&list, core_rig_node(rig, "S")->id));
	event = answer(rig, "S", EVENT_STATUS_DONE,
	               core_rig_lane_named(rig, "S")->flight_g);
	list = step(rig, &event);
	ck_assert_ptr_nonnull(grant_of(&list, core_rig_node(rig, "S")->id));
	core_rig_free(rig);
}
END_TEST

START_TEST(grant_says_nothing_that_redis_knows_already)
{
	struct core_rig *rig = fresh();
	uint32_t grants;

	(void)core_rig_admit(rig, "S", 5);
	grants = rig->grants;
	lane_touch(rig->core,
	           (uint32_t)(core_rig_lane_named(rig, "S") - rig->core->lanes));
	core_rig_run(rig, 100);
	ck_assert_uint_eq(rig->grants, grants);
	core_rig_free(rig);
}
END_TEST

START_TEST(grant_raises_g_for_credits_and_not_for_ranks)
{
	struct core_rig *rig = fresh();
	struct command_list list;
	const struct command_grant *grant;

	(void)core_rig_admit(rig, "S", 5);
	ck_assert_uint_eq(core_rig_node(rig, "S")->g, 1);
	ck_assert_uint_eq(core_rig_node(rig, "S")->credits, 1);
	list = disturb(rig, "S");
	grant = grant_of(&list, core_rig_node(rig, "S")->id);
	ck_assert_uint_eq(grant->g, 1);
	ck_assert_uint_eq(grant->g_new, 1); /* the credit stays */
	ck_assert_uint_eq(grant->marks, 1);
	core_rig_free(rig);
}
END_TEST

START_TEST(grant_refused_takes_over_the_stored_g_and_says_it_again)
{
	struct core_rig *rig = fresh();

	(void)core_rig_admit(rig, "S", 5);
	core_rig_node(rig, "S")->g = 7; /* somebody else's past */
	core_rig_node(rig, "S")->credits = 0;
	rig->core->families[0].rank++;
	lane_touch(rig->core,
	           (uint32_t)(core_rig_lane_named(rig, "S") - rig->core->lanes));
	core_rig_run(rig, 1);
	ck_assert_uint_ge(core_rig_lane_named(rig, "S")->g, 7);
	ck_assert_uint_eq(core_rig_node(rig, "S")->g, core_rig_lane_named(rig, "S")->g);
	ck_assert_int_eq(core_rig_node(rig, "S")->gate, LANE_WRITING);
	core_rig_free(rig);
}
END_TEST

START_TEST(grant_of_a_deleted_record_begins_anew)
{
	struct core_rig *rig = fresh();
	struct core_rig_node *node;

	rig->knobs.stopped = false;
	(void)core_rig_admit(rig, "S", 5);
	ck_assert(core_rig_drain(rig, LONG));
	core_rig_run(rig, 10000); /* idle: an audit may delete it now */
	node = core_rig_node(rig, "S");
	node->g = 0;
	node->gate = LANE_CLOSED;
	node->credits = 0;
	(void)core_rig_admit(rig, "S", 5);
	core_rig_run(rig, 1);
	ck_assert_uint_eq(node->gate, LANE_OPEN);
	ck_assert_uint_eq(node->g, core_rig_lane_named(rig, "S")->g);
	ck_assert(!rig->core->rebuild);
	ck_assert(core_rig_drain(rig, LONG));
	core_rig_free(rig);
}
END_TEST

START_TEST(grant_is_made_again_when_holds_end_on_a_lane_that_should_be_open)
{
	struct core_rig *rig = fresh();

	rig->knobs.stopped = false;
	(void)core_rig_admit(rig, "S", 5);
	ck_assert(core_rig_drain(rig, LONG));
	rig->knobs.hold_max_ms = 2000;
	core_rig_node(rig, "S")->gate = LANE_CLOSED; /* `expired` was lost */
	(void)core_rig_admit(rig, "S", 50);
	core_rig_run(rig, 1999);
	ck_assert_uint_eq(rig->starts_count, 0);
	core_rig_run(rig, 1);
	ck_assert_int_eq(core_rig_node(rig, "S")->gate, LANE_OPEN);
	ck_assert(core_rig_drain(rig, LONG));
	core_rig_free(rig);
}
END_TEST

START_TEST(grant_older_than_memory_asks_for_a_rebuild)
{
	struct core_rig *rig = fresh();
	struct command_list list;
	struct event event;

	(void)core_rig_admit(rig, "S", 5);
	core_rig_lane_named(rig, "S")->g = 9;
	list = disturb(rig, "S");
	event = answer(rig, "S", EVENT_STATUS_REFUSED, 3); /* Redis lost its tail */
	list = step(rig, &event);
	ck_assert_int_eq(list.commands[0].kind, COMMAND_REBUILD);
	list = tick(rig);
	for (uint32_t i = 0; i < list.count; i++)
		ck_assert_int_ne(list.commands[i].kind, COMMAND_REBUILD); /* once */
	core_rig_free(rig);
}
END_TEST

START_TEST(grant_whose_answer_was_lost_is_said_again_without_a_second_credit)
{
	struct core_rig *rig = fresh();
	struct family *family;

	rig->knobs.deaf = 1;
	(void)core_rig_admit(rig, "S", 5);
	core_rig_run(rig, 10);
	family = &rig->core->families[core_rig_lane_named(rig, "S")->family];
	ck_assert_uint_eq(core_rig_node(rig, "S")->g, 1);
	ck_assert_uint_eq(core_rig_node(rig, "S")->credits, 1);
	ck_assert_uint_eq(family->credit.g, 1);
	ck_assert(!family->credit.pending);
	rig->knobs.stopped = false;
	ck_assert(core_rig_drain(rig, LONG));
	ck_assert_uint_eq(core_rig_node(rig, "S")->writes, 1);
	core_rig_free(rig);
}
END_TEST

START_TEST(grant_is_proved_by_an_event_of_its_generation)
{
	struct core_rig *rig = fresh();
	struct event event = { .kind = EVENT_START };
	struct command_list list;

	(void)core_rig_admit(rig, "S", 0);
	event = (struct event){ .kind = EVENT_WORK };
	event.family.id = core_rig_node(rig, "S")->id;
	list = step(rig, &event);
	ck_assert_ptr_nonnull(grant_of(&list, event.family.id));
	ck_assert(rig->core->families[0].credit.pending);
	event = answer(rig, "S", EVENT_STATUS_UNKNOWN, 0);
	(void)step(rig, &event);
	event = (struct event){ .kind = EVENT_START };
	event.start.lane = core_rig_lane_named(rig, "S")->id;
	event.start.g = core_rig_lane_named(rig, "S")->flight_g;
	event.start.role = LANE_LEAD;
	(void)step(rig, &event);
	ck_assert(!rig->core->families[0].credit.pending);
	ck_assert_uint_eq(rig->core->families[0].credit.started, 1);
	core_rig_free(rig);
}
END_TEST

/* A canary waits in S while somebody from elsewhere proves that S can be read. */
START_TEST(grant_opens_with_an_until_also_while_a_credit_is_out)
{
	struct core_rig *rig = fresh();
	struct event event = { .kind = EVENT_DONE };
	struct core_rig_node *node;

	rig->knobs.stopped = false;
	(void)core_rig_admit(rig, "S", 5);
	core_rig_run(rig, 2900);
	rig->knobs.stopped = true;
	core_rig_run(rig, 3000);
	core_rig_restart(rig);
	node = core_rig_node(rig, "S");
	ck_assert_int_eq(node->gate, LANE_CHECKING);
	ck_assert_uint_eq(node->credits, 1);
	event.usage = (struct event_usage){
		.lane = { node->id, 0 },
		.g = node->g,
		.role = LANE_HOLD_LIMIT,
		.sent_ms = rig->now_ms,
		.first_ms = rig->now_ms,
		.read = 10000,
		.at_ms = rig->now_ms,
	};
	core_rig_feed(rig, &event);
	core_rig_run(rig, 1);
	ck_assert_int_eq(node->gate, LANE_OPEN);
	ck_assert_uint_lt(node->until_ms, rig->now_ms + rig->knobs.ttl_ms);
	core_rig_free(rig);
}
END_TEST

START_TEST(grant_opens_with_an_until_and_shortens_it_only_with_a_new_g)
{
	struct core_rig *rig = fresh();
	struct core_rig_node *node;

	rig->knobs.stopped = false;
	rig->knobs.cache_off = true;
	(void)core_rig_admit(rig, "S", 5);
	ck_assert(core_rig_drain(rig, LONG));
	node = core_rig_node(rig, "S");
	ck_assert_uint_eq(node->until_ms, LANE_FOREVER); /* bypass */
	rig->knobs.cache_off = false;
	core_rig_run(rig, rig->knobs.ttl_ms);
	(void)core_rig_admit(rig, "S", 5);
	ck_assert(core_rig_drain(rig, LONG));
	ck_assert_int_eq(node->gate, LANE_OPEN);
	ck_assert_uint_lt(node->until_ms, rig->now_ms + rig->knobs.ttl_ms);
	core_rig_free(rig);
}
END_TEST

START_TEST(grant_of_other_marks_waits_for_the_credit)
{
	struct core_rig *rig = fresh();
	struct lane *leaf, *above;

	(void)core_rig_admit(rig, "S/A", 5);
	leaf = core_rig_lane_named(rig, "A");
	above = core_rig_lane_named(rig, "S");
	ck_assert_uint_eq(leaf->granted.marks, 3);
	lane_move(rig->core, (uint32_t)(above - rig->core->lanes), LANE_OPEN,
	          LANE_REASON_NONE);
	lane_move(rig->core, (uint32_t)(above - rig->core->lanes), LANE_LEAKY,
	          LANE_REASON_NEVER_READ);
	core_rig_run(rig, 1);
	ck_assert_uint_eq(rig->families[0].marks, 3); /* the credit is out */
	rig->knobs.stopped = false;
	core_rig_run(rig, 4000);
	ck_assert_uint_eq(rig->families[0].marks, 2);
	ck_assert_uint_gt(rig->core->families[0].marks_g, 1);
	ck_assert_uint_le(rig->core->families[0].marks_g, leaf->g);
	core_rig_free(rig);
}
END_TEST

START_TEST(grant_names_the_segments_root_first)
{
	struct core_rig *rig = fresh();
	struct command_list list;
	const struct command_grant *grant;

	(void)core_rig_admit(rig, "T/S/A", 5);
	list = disturb(rig, "A");
	grant = grant_of(&list, core_rig_node(rig, "A")->id);
	ck_assert_uint_eq(grant->chain_count, 3);
	ck_assert(id_equals(grant->chain[0], core_rig_node(rig, "T")->id));
	ck_assert(id_equals(grant->chain[1], core_rig_node(rig, "S")->id));
	ck_assert(id_equals(grant->chain[2], core_rig_node(rig, "A")->id));
	ck_assert(grant->has_family);
	core_rig_free(rig);
}
END_TEST

START_TEST(grant_leaves_ancestors_that_gate_nobody_alone)
{
	struct core_rig *rig = fresh();

	(void)core_rig_admit(rig, "T/S/A", 5); /* S and A are marked, T is not */
	core_rig_run(rig, 10);
	ck_assert_uint_eq(core_rig_node(rig, "T")->g, 0);
	ck_assert_uint_eq(core_rig_node(rig, "S")->g, 1);
	core_rig_free(rig);
}
END_TEST

START_TEST(grant_never_asks_for_more_than_a_step_may)
{
	struct core_config config = core_rig_config();
	struct core_rig *rig;
	struct command_list list;
	uint32_t steps = 0, grants = 0;

	config.families_max = config.lanes_max = 300;
	rig = core_rig_create(&config, 20);
	for (uint64_t i = 0; i < 300; i++) {
		struct event event = { .kind = EVENT_ADMITTED };

		event.admitted.pool = rig->core->pools[0].id;
		event.admitted.budget = rig->core->pacers[0].id;
		event.admitted.model = rig->core->models[0].traits.id;
		event.admitted.chain.count = 1;
		event.admitted.chain.nodes[0].id = (struct id128){ 1, i };
		event.admitted.jobs[EVENT_LIST_NORMAL] = 1;
		event.admitted.oldest_ms = rig->now_ms;
		list = step(rig, &event);
		grants += list.count;
	}
	rig->now_ms += 100;
	for (uint32_t i = 0; i < 300; i++)
		lane_touch(rig->core, i);
	for (uint32_t i = 0; i < 300; i++) /* all at once, as a switch of holding would */
		rig->core->lanes[i].bump = !rig->core->lanes[i].flight;
	do {
		list = tick(rig);
		ck_assert_uint_le(list.count, COMMAND_MAX);
		grants += list.count;
		steps++;
	} while (core_deadline(rig->core) <= rig->now_ms);
	ck_assert_uint_ge(grants, 300);
	ck_assert_uint_lt(steps, 50);
	core_audit(rig->core);
	core_rig_free(rig);
}
END_TEST

START_TEST(grant_for_a_family_without_room_lets_it_run_unheld)
{
	struct core_config config = core_rig_config();
	struct core_rig *rig;

	config.families_max = 1;
	config.lanes_max = 1;
	rig = core_rig_create(&config, 20);
	(void)core_rig_admit(rig, "A", 30);
	core_rig_run(rig, 10);
	core_rig_node(rig, "A")->window = LANE_WINDOW;
	(void)core_rig_admit(rig, "B", 30);
	core_rig_node(rig, "B")->g = 4; /* from an earlier life: refused once */
	rig->core->unheld[0].due = true;
	core_rig_run(rig, 10);
	ck_assert_int_eq(core_rig_node(rig, "B")->gate, LANE_BYPASS);
	ck_assert_int_eq(core_rig_node(rig, "B")->reason, LANE_REASON_UNHELD);
	ck_assert(core_rig_drain(rig, LONG));
	core_rig_free(rig);
}
END_TEST

START_TEST(grant_answers_of_nobody_are_ignored)
{
	struct core_rig *rig = fresh();
	struct event event = { .kind = EVENT_GRANTED };

	event.granted.lane.node = (struct id128){ 9, 9 };
	(void)step(rig, &event);
	(void)core_rig_admit(rig, "S", 5);
	event = answer(rig, "S", EVENT_STATUS_DONE, 55); /* not under way any more */
	(void)step(rig, &event);
	ck_assert_uint_eq(core_rig_lane_named(rig, "S")->g, 1);
	core_rig_free(rig);
}
END_TEST

START_TEST(grant_refused_after_a_lost_answer_by_a_third_is_not_taken_for_done)
{
	struct core_rig *rig = fresh();
	struct event event = { .kind = EVENT_WORK };
	struct command_list list;

	(void)core_rig_admit(rig, "S", 0);
	event.family.id = core_rig_node(rig, "S")->id;
	(void)step(rig, &event); /* elects */
	event = answer(rig, "S", EVENT_STATUS_UNKNOWN, 0);
	(void)step(rig, &event);
	event = answer(rig, "S", EVENT_STATUS_REFUSED, 40);
	list = step(rig, &event);
	ck_assert(rig->core->families[0].credit.pending);
	ck_assert_uint_eq(grant_of(&list, core_rig_node(rig, "S")->id)->g, 40);
	ck_assert_uint_eq(grant_of(&list, core_rig_node(rig, "S")->id)->credits, 1);
	core_rig_free(rig);
}
END_TEST

START_TEST(grant_of_several_without_room_is_repeated_until_each_is_done)
{
	struct core_config config = core_rig_config();
	struct core_rig *rig;

	config.families_max = 1;
	config.lanes_max = 1;
	rig = core_rig_create(&config, 1);
	(void)core_rig_admit(rig, "A", 9);
	core_rig_run(rig, 10);
	rig->knobs.deaf = 2;
	(void)core_rig_admit(rig, "B", 2);
	(void)core_rig_admit(rig, "C", 2);
	(void)core_rig_admit(rig, "D", 2);
	core_rig_run(rig, 10);
	ck_assert_int_eq(core_rig_node(rig, "B")->gate, LANE_BYPASS);
	ck_assert_int_eq(core_rig_node(rig, "C")->gate, LANE_BYPASS);
	ck_assert_int_eq(core_rig_node(rig, "D")->gate, LANE_BYPASS);
	for (uint32_t i = 0; i < STATE_UNHELD_MAX; i++)
		ck_assert(!rig->core->unheld[i].used);
	core_rig_free(rig);
}
END_TEST

SUITE_MAIN("core_grant", grant_has_one_outcome_before_there_is_a_second,
           grant_says_nothing_that_redis_knows_already,
           grant_raises_g_for_credits_and_not_for_ranks,
           grant_refused_takes_over_the_stored_g_and_says_it_again,
           grant_of_a_deleted_record_begins_anew,
           grant_is_made_again_when_holds_end_on_a_lane_that_should_be_open,
           grant_older_than_memory_asks_for_a_rebuild,
           grant_whose_answer_was_lost_is_said_again_without_a_second_credit,
           grant_is_proved_by_an_event_of_its_generation,
           grant_opens_with_an_until_also_while_a_credit_is_out,
           grant_opens_with_an_until_and_shortens_it_only_with_a_new_g,
           grant_of_other_marks_waits_for_the_credit, grant_names_the_segments_root_first,
           grant_leaves_ancestors_that_gate_nobody_alone,
           grant_never_asks_for_more_than_a_step_may,
           grant_for_a_family_without_room_lets_it_run_unheld,
           grant_answers_of_nobody_are_ignored,
           grant_refused_after_a_lost_answer_by_a_third_is_not_taken_for_done,
           grant_of_several_without_room_is_repeated_until_each_is_done)
