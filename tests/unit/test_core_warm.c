/* A prefix that is written ahead of its jobs: once, or not at all and with a reason. */
#include "tests/lib/core_rig.h"
#include "tests/lib/suite.h"

#define LONG  3600000
#define STALE 600000 /* longer than an entry lives */

static void
warm(struct core_rig *rig, const char *name)
{
	struct event event = { .kind = EVENT_WARM };

	event.family.id = core_rig_node(rig, name)->id;
	core_rig_feed(rig, &event);
}

static enum core_warm
verdict(struct core_rig *rig, const char *name)
{
	return core_warm_verdict(rig->core, core_rig_node(rig, name)->id);
}

static void
set_calls(struct core_rig *rig, bool calls)
{
	struct event event = { .kind = EVENT_MODEL };

	rig->model.calls = calls;
	event.model = rig->model;
	core_rig_feed(rig, &event);
}

/* Known, and cold again. */
static struct core_rig *
cold(const char *chain)
{
	struct core_rig *rig = core_rig_fresh(20);

	set_calls(rig, true);
	(void)core_rig_admit(rig, chain, 2);
	ck_assert(core_rig_drain(rig, LONG));
	core_rig_run(rig, STALE);
	return rig;
}

START_TEST(warm_writes_once_and_the_jobs_read_it)
{
	struct core_rig *rig = cold("S");
	uint32_t writes = core_rig_node(rig, "S")->writes;

	ck_assert_int_eq(verdict(rig, "S"), CORE_WARM_YES);
	warm(rig, "S");
	core_rig_run(rig, 1);
	ck_assert_uint_eq(rig->starts_count, 1);
	ck_assert_int_eq(verdict(rig, "S"), CORE_WARM_WRITING);
	core_rig_run(rig, 10000);
	ck_assert_uint_eq(rig->starts_count, 0);
	ck_assert_int_eq(verdict(rig, "S"), CORE_WARM_WRITTEN);
	(void)core_rig_admit(rig, "S", 20);
	ck_assert(core_rig_drain(rig, LONG));
	ck_assert_uint_eq(core_rig_node(rig, "S")->writes, writes + 1);
	ck_assert_uint_eq(rig->too_many, 0);
	ck_assert_int_eq(verdict(rig, "S"), CORE_WARM_OPEN);
	core_audit(rig->core);
	core_rig_free(rig);
}
END_TEST

START_TEST(warm_writes_the_parts_above_too)
{
	struct core_rig *rig = cold("S/A");
	uint32_t writes = core_rig_node(rig, "S")->writes;

	warm(rig, "A");
	core_rig_run(rig, 10000);
	ck_assert_uint_eq(core_rig_node(rig, "S")->writes, writes + 1);
	ck_assert_int_eq(core_rig_node(rig, "S")->gate, LANE_CHECKING);
	ck_assert_int_eq(core_rig_node(rig, "A")->gate, LANE_CHECKING);
	core_rig_free(rig);
}
END_TEST

START_TEST(warm_that_nobody_uses_is_forgotten)
{
	struct core_rig *rig = cold("S");

	warm(rig, "S");
	core_rig_run(rig, STALE);
	ck_assert_int_eq(core_rig_node(rig, "S")->gate, LANE_CLOSED);
	ck_assert_uint_eq(rig->starts_count, 0);
	ck_assert_int_eq(verdict(rig, "S"), CORE_WARM_YES);
	core_audit(rig->core);
	core_rig_free(rig);
}
END_TEST

START_TEST(warm_is_tried_once)
{
	struct core_rig *rig = cold("S");
	struct event event = { .kind = EVENT_TICKET };
	uint64_t elections = core_counts(rig->core).elections;

	warm(rig, "S");
	core_rig_run(rig, 1);
	event.ticket.usage.lane = (struct lane_id){ core_rig_node(rig, "S")->id, 0 };
	event.ticket.usage.g = core_rig_node(rig, "S")->g;
	core_rig_feed(rig, &event); /* 500 */
	ck_assert_int_eq(verdict(rig, "S"), CORE_WARM_LATER);
	core_rig_run(rig, STALE);
	ck_assert_int_eq(verdict(rig, "S"), CORE_WARM_YES);
	ck_assert_uint_eq(core_counts(rig->core).elections, elections + 1);
	core_audit(rig->core);
	core_rig_free(rig);
}
END_TEST

START_TEST(warm_goes_one_at_a_time_for_each_account)
{
	struct core_rig *rig = cold("S");

	(void)core_rig_admit(rig, "B", 2);
	ck_assert(core_rig_drain(rig, LONG));
	core_rig_run(rig, STALE);
	warm(rig, "S");
	ck_assert_int_eq(verdict(rig, "B"), CORE_WARM_BUSY);
	warm(rig, "B");
	core_rig_run(rig, 1);
	ck_assert_uint_eq(rig->starts_count, 1);
	core_rig_run(rig, 10000);
	ck_assert_int_eq(verdict(rig, "B"), CORE_WARM_YES);
	core_rig_free(rig);
}
END_TEST

START_TEST(warm_is_refused_where_it_makes_no_sense)
{
	struct core_rig *rig = cold("S");
	struct event event = { .kind = EVENT_PAUSE };

	ck_assert_int_eq(core_warm_verdict(rig->core, (struct id128){ 1, 2 }),
	                 CORE_WARM_UNKNOWN);
	(void)core_rig_admit(rig, "U?", 1);
	ck_assert(core_rig_drain(rig, LONG));
	ck_assert_int_eq(verdict(rig, "U"), CORE_WARM_UNSHARED);
	event.pause.family = core_rig_node(rig, "S")->id;
	event.pause.on = true;
	core_rig_feed(rig, &event);
	ck_assert_int_eq(verdict(rig, "S"), CORE_WARM_PAUSED);
	event.pause.on = false;
	core_rig_feed(rig, &event);
	core_rig_hold(rig, false);
	ck_assert_int_eq(verdict(rig, "S"), CORE_WARM_OFF);
	core_rig_hold(rig, true);
	core_rig_hold_route(rig, "S", false);
	ck_assert_int_eq(verdict(rig, "S"), CORE_WARM_OFF);
	core_rig_hold_route(rig, "S", true);
	rig->knobs.stopped = true;
	(void)core_rig_admit(rig, "S", 2);
	core_rig_run(rig, 1);
	warm(rig, "S");
	ck_assert_uint_eq(rig->starts_count, 0);
	ck_assert_int_ne(verdict(rig, "S"), CORE_WARM_YES);
	core_rig_free(rig);
}
END_TEST

/* Their turn comes, and one of them writes it then. */
START_TEST(warm_is_refused_where_jobs_wait_for_their_turn)
{
	struct core_rig *rig = cold("S");

	(void)core_rig_admit(rig, "B?", 900);
	core_rig_run(rig, 100);
	(void)core_rig_admit(rig, "S", 2);
	core_rig_run(rig, 100);
	ck_assert_int_eq(core_rig_node(rig, "S")->gate, LANE_CLOSED);
	ck_assert_int_eq(verdict(rig, "S"), CORE_WARM_WORK);
	warm(rig, "S");
	core_rig_run(rig, 1);
	ck_assert_int_eq(core_rig_node(rig, "S")->gate, LANE_CLOSED);
	core_rig_free(rig);
}
END_TEST

START_TEST(warm_is_refused_by_what_the_provider_says)
{
	struct core_rig *rig = cold("S");
	struct event event = { .kind = EVENT_TICKET };

	set_calls(rig, false);
	ck_assert_int_eq(verdict(rig, "S"), CORE_WARM_NO_CALL);
	set_calls(rig, true);
	warm(rig, "S");
	core_rig_run(rig, 1);
	event.ticket.usage.lane = (struct lane_id){ core_rig_node(rig, "S")->id, 0 };
	event.ticket.usage.g = core_rig_node(rig, "S")->g;
	event.ticket.refused = true; /* 400: it does not know such requests */
	core_rig_feed(rig, &event);
	ck_assert_int_eq(core_rig_node(rig, "S")->gate, LANE_CLOSED);
	ck_assert_int_eq(verdict(rig, "S"), CORE_WARM_NO_CALL);
	core_audit(rig->core);
	core_rig_free(rig);
}
END_TEST

START_TEST(warm_survives_a_restart_in_its_midst)
{
	struct core_rig *rig = cold("S");
	uint32_t writes = core_rig_node(rig, "S")->writes;

	warm(rig, "S");
	core_rig_run(rig, 100);
	core_rig_restart(rig);
	core_rig_run(rig, 10000);
	(void)core_rig_admit(rig, "S", 10);
	ck_assert(core_rig_drain(rig, LONG));
	ck_assert_uint_eq(core_rig_node(rig, "S")->writes, writes + 1);
	ck_assert_uint_eq(rig->too_many, 0);
	core_rig_free(rig);
}
END_TEST

SUITE_MAIN("core_warm", warm_writes_once_and_the_jobs_read_it,
           warm_writes_the_parts_above_too, warm_that_nobody_uses_is_forgotten,
           warm_is_tried_once, warm_goes_one_at_a_time_for_each_account,
           warm_is_refused_where_it_makes_no_sense,
           warm_is_refused_where_jobs_wait_for_their_turn,
           warm_is_refused_by_what_the_provider_says,
           warm_survives_a_restart_in_its_midst)
