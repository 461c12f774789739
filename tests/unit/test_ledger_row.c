/* A ledger as rows in Redis, and back after a restart. */
#include "scheduler/ledger/ledger_row.h"
#include "scheduler/ledger/ledger_state.h"
#include "tests/lib/ledger_rig.h"

#include <stdio.h>

#define FIELDS_MAX 512

static struct {
	uint32_t count;
	struct ledger_row rows[FIELDS_MAX];
} redis;

/* What Redis would hold after all that was ever written. */
static void
store(void)
{
	struct ledger_row row;
	uint32_t cursor = 0;

	while (ledger_row_next(ledger, &cursor, &row)) {
		uint32_t at = 0;

		while (at < redis.count && (redis.rows[at].hour != row.hour ||
		                            strcmp(redis.rows[at].field, row.field) != 0))
			at++;
		ck_assert_uint_lt(at, FIELDS_MAX);
		redis.rows[at] = row;
		redis.count = MAX(redis.count, at + 1);
	}
	ledger_row_mark_clean(ledger);
	cursor = 0;
	ck_assert(!ledger_row_next(ledger, &cursor, &row));
}

static void
load_pass(bool hours)
{
	for (uint32_t i = 0; i < redis.count; i++) {
		const struct ledger_row *row = &redis.rows[i];

		if ((row->hour > 0) == hours)
			ck_assert_int_eq(ledger_row_load(ledger, row->hour,
			                                 span_from(row->field),
			                                 (struct span){ row->value,
			                                                row->value_len }),
			                 0);
	}
}

static void
restart(void)
{
	store();
	set_up();
	load_pass(false);
	ledger_row_settle(ledger);
	load_pass(true);
}

/* Some of everything, over some hours. */
static void
live(void)
{
	for (uint64_t hour = 0; hour < 5; hour++) {
		for (uint64_t i = 0; i < 12; i++) {
			struct ledger_call call =
				i == 0 ? writer(1 + hour % 2, T0 + hour * HOUR)
				       : reader(1 + hour % 2,
			                        T0 + hour * HOUR + 3500 + i);

			call.waited_ms = call.sent_ms - T0 - hour * HOUR;
			take(call);
		}
		for (uint64_t i = 0; i < 3; i++) {
			struct ledger_call call = writer(50 + i, T0 + hour * HOUR + i);

			call.route = SPAN("a route, with | and words");
			call.place = SPAN("vllm/3");
			call.kind = i == 2 ? LEDGER_SPENT : LEDGER_DONE;
			take(call);
		}
	}
	ledger_take_gap(ledger, T0 + 7);
}

START_TEST(ledger_rows_bring_everything_back)
{
	struct ledger_sums hours[2], hour[2];
	struct ledger_view_health health[2];
	struct ledger_view_route route[2];
	struct ledger_view_version version[2];
	struct ledger_view_burst burst[2];
	struct ledger_view_place place[2];

	set_up();
	redis.count = 0;
	live();
	for (int i = 0; i < 2; i++) {
		uint32_t row = ledger_view_find(ledger, SPAN("triage"));

		ledger_view_hours(ledger, LEDGER_VIEW_ALL, 0, UINT64_MAX, &hours[i]);
		ledger_view_hours(ledger, row, T0 + HOUR, T0 + HOUR + 1, &hour[i]);
		ledger_view_health(ledger, &health[i]);
		ledger_view_route(ledger, row, T0 + 5 * HOUR, &route[i]);
		ck_assert(
			ledger_view_version(ledger, row, 1, T0 + 5 * HOUR, &version[i]));
		ck_assert(ledger_view_burst(ledger, row, 3, &burst[i]));
		ck_assert(ledger_view_place(ledger, 1, &place[i]));
		if (i == 0)
			restart();
	}
	ck_assert_int_eq(memcmp(&hours[0], &hours[1], sizeof(hours[0])), 0);
	ck_assert_int_eq(memcmp(&hour[0], &hour[1], sizeof(hour[0])), 0);
	ck_assert_int_eq(memcmp(&health[0].total, &health[1].total, sizeof(hour[0])), 0);
	ck_assert_uint_eq(health[0].since_ms, health[1].since_ms);
	ck_assert_uint_eq(health[1].gaps, 1);
	ck_assert_int_eq(memcmp(&route[0].week, &route[1].week, sizeof(hour[0])), 0);
	ck_assert_int_eq(memcmp(&route[0].ever, &route[1].ever, sizeof(hour[0])), 0);
	ck_assert_uint_eq(route[0].versions_seen, route[1].versions_seen);
	ck_assert(id_equals(version[0].family, version[1].family));
	ck_assert_uint_eq(version[0].hits, version[1].hits);
	ck_assert_uint_gt(version[1].hits, 0);
	ck_assert_uint_eq(burst[0].start_ms, burst[1].start_ms);
	ck_assert_uint_eq(burst[0].naive_cost, burst[1].naive_cost);
	ck_assert_uint_gt(burst[1].naive_cost, burst[1].cost);
	ck_assert(span_equals(place[1].name, SPAN("vllm/3")));
	ck_assert_uint_eq(place[0].ever.written, place[1].ever.written);
}
END_TEST

START_TEST(ledger_after_a_restart_causes_are_judged_as_before)
{
	struct ledger_call spot, ancestor;

	set_up();
	redis.count = 0;
	take(writer(1, T0));
	take(reader(1, T0 + 5000));
	restart();
	ledger->since_ms = T0 + 20000;
	take(writer(1, T0 + 60000)); /* it knows that 1 should still be there */
	ck_assert_uint_eq(written_for(LEDGER_EVICTED_EARLY), PREFIX);
	take(writer(2, T0 + 70000)); /* and that 2 is new */
	ck_assert_uint_eq(written_for(LEDGER_NEW_VERSION), PREFIX);
	take(writer(1, T0 + 60000 + TTL + 1));
	ck_assert_uint_eq(written_for(LEDGER_EXPIRED), PREFIX);
	/* Of nodes above the versions it knows nothing yet, and says so. */
	ancestor = writer(3, T0 + 80000);
	ancestor.nodes[1] = ancestor.nodes[0];
	ancestor.nodes[0] = (struct ledger_node){ node(90), 10000, true, true };
	ancestor.nodes_count = 2;
	take(ancestor);
	ck_assert_uint_eq(written_for(LEDGER_UNKNOWN), 10000);
	spot = writer(4, T0 + 20000 + TTL);
	spot.nodes[1] = spot.nodes[0];
	spot.nodes[0] = (struct ledger_node){ node(91), 10000, true, true };
	spot.nodes_count = 2;
	take(spot); /* a lifetime later it would know */
	ck_assert_uint_eq(written_for(LEDGER_UNKNOWN), 10000);
}
END_TEST

START_TEST(ledger_after_a_restart_twins_are_known_again)
{
	set_up();
	redis.count = 0;
	take(twinned(writer(1, T0)));
	restart();
	take(elsewhere(writer(1, T0 + 60000)));
	ck_assert_uint_eq(written_for(LEDGER_OTHER_PLACE), PREFIX);
}
END_TEST

START_TEST(ledger_after_a_restart_drift_goes_on)
{
	set_up();
	redis.count = 0;
	for (uint64_t n = 1; n <= 3; n++)
		take(single(writer(n, T0 + n * 1000), n, true));
	take(single(writer(10, T0 + 5000), 10, false));
	restart();
	for (uint64_t n = 1; n <= 2; n++) { /* nobody has their bytes any more */
		struct ledger_call began = single(writer(n, T0 + n * 1000), n, true);

		began.nodes[0].sketch.len = 0;
		began.kind = LEDGER_BEGAN;
		take(began);
	}
	take(single(writer(4, T0 + 60000), 4, true));
	take(single(writer(11, T0 + 60000), 11, false));
	ck_assert_uint_eq(written_for(LEDGER_DRIFT), 2 * PREFIX);
	ck_assert_uint_eq(written_for(LEDGER_TAIL), 4 * PREFIX);
}
END_TEST

START_TEST(ledger_after_a_restart_it_still_tells_how_long_entries_live)
{
	struct ledger_view_place place[2];

	set_up();
	redis.count = 0;
	take(writer(1, T0));
	take(reader(1, T0 + 45000));
	take(writer(1, T0 + 45000 + 250000));
	ck_assert(ledger_view_place(ledger, 0, &place[0]));
	restart();
	ck_assert(ledger_view_place(ledger, 0, &place[1]));
	ck_assert_uint_eq(place[1].ttl_ms, TTL);
	ck_assert_int_eq(memcmp(place[0].rests, place[1].rests, sizeof(place[0].rests)),
	                 0);
	take(reader(1, T0 + 45000 + 250000 + 45000));
	ck_assert(ledger_view_place(ledger, 0, &place[1]));
	ck_assert_uint_eq(place[1].rests[1].kept, 2);
}
END_TEST

static struct ledger_call
warm_up(uint64_t n, uint64_t sent_ms)
{
	struct ledger_call call = writer(n, sent_ms);

	call.role = LANE_TICKET;
	call.purpose = LEDGER_FOR_WARMTH;
	return call;
}

START_TEST(ledger_after_a_restart_warm_ups_still_wait_for_their_readers)
{
	struct ledger_call began = reader(2, T0 + 60000);
	struct ledger_view_ahead ahead[2];

	set_up();
	redis.count = 0;
	for (uint64_t n = 1; n <= 3; n++)
		take(warm_up(n, T0));
	take(reader(3, T0 + 30000));
	ahead[0] = ledger_view_ahead(ledger);
	restart();
	ahead[1] = ledger_view_ahead(ledger);
	ck_assert_int_eq(memcmp(&ahead[0], &ahead[1], sizeof(ahead[0])), 0);
	began.kind = LEDGER_BEGAN; /* its first event is enough */
	take(began);
	restart();
	ledger_tick(ledger, T0 + 60000 + TTL + 1);
	ck_assert_uint_eq(written_for(LEDGER_PREWARM_WASTED), PREFIX);
	restart();
	ledger_tick(ledger, T0 + 60000 + 2 * TTL);
	ck_assert_uint_eq(written_for(LEDGER_PREWARM_WASTED), PREFIX);
	ahead[1] = ledger_view_ahead(ledger);
	ck_assert_uint_eq(ahead[1].calls, 3);
	ck_assert_uint_eq(ahead[1].cost, ahead[0].cost);
	ck_assert_uint_eq(ahead[1].used, 2);
	ck_assert_uint_eq(ahead[1].wasted, 1);
}
END_TEST

/* Versions as the release before wrote them: no sketch, nothing ahead. */
START_TEST(ledger_reads_rows_of_the_release_before)
{
	struct ledger_view_version version;

	set_up();
	redis.count = 0;
	take(writer(1, T0));
	store();
	set_up();
	for (struct ledger_row *row = redis.rows; row < redis.rows + redis.count; row++) {
		if (row->field[0] == 'v')
			row->value_len -= strlen(" - -");
		if (strcmp(row->field, "state") == 0)
			row->value_len = strlen("1800000010000 0 0 0 0");
	}
	load_pass(false);
	ledger_row_settle(ledger);
	ck_assert(ledger_view_version(ledger, 0, 0, T0, &version));
	ck_assert_uint_eq(version.written, PREFIX);
	ck_assert_uint_eq(ledger_view_ahead(ledger).calls, 0);
}
END_TEST

#define VERSION                                                                          \
	"00000000000000000000000000000001 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 " \
	"19 20 0 1 00000000000000000000000000000001"

START_TEST(ledger_rows_that_cannot_be_read_change_nothing)
{
	static const struct {
		const char *field, *value;
	} bad[] = {
		{ "total", "1 2 3" },
		{ "total", "1 2 3 4 5 6 7 8 9 10 11 12 13 first:1,2" },
		{ "total", "1 2 3 4 5 6 7 8 9 10 11 12 x" },
		{ "r:0", "1 2 3 1 2 3 4 5 6 7 8 9 10 11 12 13" },
		{ "r:65", "1 2 3 1 2 3 4 5 6 7 8 9 10 11 12 13 |x" },
		{ "v:0:16", "x" },
		{ "v:0:1", "00000000000000000000000000000001 1" },
		{ "v:0:2", VERSION " abc -" },
		{ "v:0:2", VERSION " - 1,2,3,4,5,6,luck" },
		{ "v:0:2", VERSION " - 1,2,3,99,5,6,first" },
		{ "l:0", "300000 1,2" },
		{ "l:33",
		  "300000 0,0 0,0 0,0 0,0 0,0 0,0 0,0 0,0 0,0 0,0 0,0 0,0 0,0 0,0" },
		{ "state", "1 2 3 4 5 6 7" },
		{ "b:0", "" },
		{ "p:x", "1" },
		{ "zebra", "1" },
		{ "", "1" },
		{ "hours", "1,x" },
	};
	struct ledger_view_health health;

	set_up();
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		ck_assert_msg(ledger_row_load(ledger, 0, span_from(bad[i].field),
		                              span_from(bad[i].value)) < 0,
		              "%s", bad[i].field);
	ledger_view_health(ledger, &health);
	ck_assert_uint_eq(health.total.calls, 0);
	ck_assert_uint_eq(ledger_view_routes(ledger), 0);
}
END_TEST

START_TEST(ledger_rows_have_room_for_the_largest)
{
	struct ledger_call call = writer(1, T0);
	char name[LEDGER_NAME_SIZE + 20];
	struct ledger_row row;
	uint32_t cursor = 0, rows = 0;

	set_up();
	memset(name, 'x', sizeof(name));
	call.route = (struct span){ name, sizeof(name) };
	take(call);
	memset(&ledger->routes[0].ever, 0xff, sizeof(ledger->routes[0].ever));
	memset(&ledger->total, 0xff, sizeof(ledger->total));
	while (ledger_row_next(ledger, &cursor, &row))
		rows++;
	ck_assert_uint_ge(rows, 6);
}
END_TEST

SUITE_MAIN("ledger_row", ledger_rows_bring_everything_back,
           ledger_after_a_restart_causes_are_judged_as_before,
           ledger_after_a_restart_twins_are_known_again,
           ledger_after_a_restart_drift_goes_on,
           ledger_after_a_restart_it_still_tells_how_long_entries_live,
           ledger_after_a_restart_warm_ups_still_wait_for_their_readers,
           ledger_reads_rows_of_the_release_before,
           ledger_rows_that_cannot_be_read_change_nothing,
           ledger_rows_have_room_for_the_largest)
