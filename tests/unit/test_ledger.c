/* How a call is taken apart, at which price, and what the books have room for; versions
 * and bursts. */
#include "scheduler/ledger/ledger_state.h"
#include "tests/lib/ledger_rig.h"

#include <stdio.h>

/* ---- how a call is taken apart --------------------------------------------------- */

START_TEST(ledger_a_beginning_teaches_and_books_nothing)
{
	struct ledger_call leader = writer(1, T0), again;

	set_up();
	leader.role = LANE_LEAD;
	again = leader;
	leader.kind = LEDGER_BEGAN;
	take(leader);
	ck_assert_uint_eq(hour_at(T0).calls, 0);
	take(reader(1, T0 + 4000)); /* ends before the leader does */
	take(writer(1, T0 + 1000)); /* started before the leader was answered */
	take(again);
	ck_assert_uint_eq(written_for(LEDGER_STAMPEDE), PREFIX);
	ck_assert_uint_eq(written_for(LEDGER_FIRST), PREFIX);
}
END_TEST

/* Workers tell times by their measure of Redis's clock, which they correct meanwhile. */
START_TEST(ledger_an_end_finds_its_beginning_although_the_clock_was_corrected)
{
	struct ledger_call began = writer(1, T0), done = writer(1, T0 + 7);

	set_up();
	began.kind = LEDGER_BEGAN;
	take(began);
	take(reader(1, T0 + 5000));
	take(done);
	ck_assert_uint_eq(written_for(LEDGER_FIRST), PREFIX);
	ck_assert_uint_eq(written_for(LEDGER_STAMPEDE), 0);
	/* And the reader's use of the entry still counts. */
	take(writer(1, T0 + 7 + TTL + 1000));
	ck_assert_uint_eq(written_for(LEDGER_EVICTED_EARLY), PREFIX);
	ck_assert_uint_eq(written_for(LEDGER_EXPIRED), 0);
}
END_TEST

START_TEST(ledger_each_node_of_a_prefix_has_its_own_cause)
{
	struct ledger_call a = writer(10, T0), b;

	set_up();
	a.nodes[0] = (struct ledger_node){ node(1), 20000, true, true };
	a.nodes[1] = (struct ledger_node){ node(10), PREFIX, true, true };
	a.nodes_count = 2;
	b = a;
	b.family = node(11);
	b.nodes[1].id = node(11);
	b.sent_ms += 100;
	b.first_ms += 100;
	take(a);
	take(b); /* the shared system twice, its own document once */
	ck_assert_uint_eq(written_for(LEDGER_FIRST), PREFIX);
	ck_assert_uint_eq(written_for(LEDGER_STAMPEDE), 20000);
	ck_assert_uint_eq(written_for(LEDGER_NEW_VERSION), 10000);
}
END_TEST

START_TEST(ledger_implicit_caching_has_causes_without_writes)
{
	struct ledger_call first = call_of(1, T0), next = call_of(1, T0 + 60000);

	set_up();
	first.explicit = next.explicit = false;
	first.written = next.written = EVENT_UNKNOWN;
	first.uncached = PREFIX + 20;
	next.read = PREFIX - 100; /* rounded down to a step: a hit */
	next.uncached = 120;
	take(first);
	take(next);
	ck_assert_uint_eq(full_for(LEDGER_FIRST), PREFIX);
	ck_assert_uint_eq(hour_at(T0).hits, 1);
	ck_assert_uint_eq(hour_at(T0).uncached, PREFIX + 140);
}
END_TEST

START_TEST(ledger_a_call_without_usage_is_estimated_apart)
{
	struct ledger_call silent = call_of(1, T0);

	set_up();
	silent.read = silent.written = silent.uncached = EVENT_UNKNOWN;
	silent.estimate = 30500;
	take(silent);
	ck_assert_uint_eq(hour_at(T0).unreported, 1);
	ck_assert_uint_eq(hour_at(T0).estimated, 30500);
	ck_assert_uint_eq(hour_at(T0).calls, 0);
	ck_assert_uint_eq(hour_at(T0).cost, 0);
}
END_TEST

START_TEST(ledger_prices_are_exact)
{
	struct ledger_call call = writer(1, T0);
	struct ledger_sums sums;

	set_up();
	call.written_1h = 10000;
	take(call);
	sums = hour_at(T0);
	/* 20,000 at $3.75 and 10,000 at $6, 20 at $3, 64 at $15 a million. */
	ck_assert_uint_eq(sums.cost, 75000000u + 60000000u + 60000u + 960000u);
	ck_assert_uint_eq(sums.causes[LEDGER_FIRST].cost, 135000000u);
	ck_assert_uint_eq(sums.causes[LEDGER_FIRST].extra, 135000000u - 9000000u);
	ck_assert_uint_eq(sums.unpriced, 0);
}
END_TEST

START_TEST(ledger_a_model_without_a_price_is_counted)
{
	struct ledger_call call = writer(1, T0);

	set_up();
	call.price = (struct ledger_price){ 0 };
	take(call);
	ck_assert_uint_eq(hour_at(T0).unpriced, 1);
	ck_assert_uint_eq(hour_at(T0).cost, 0);
}
END_TEST

/* ---- bounds ---------------------------------------------------------------------- */

START_TEST(ledger_routes_above_the_limit_share_a_row)
{
	struct ledger_view_health health;
	char name[16];

	set_up();
	for (uint64_t i = 0; i < LEDGER_ROUTES + 5; i++) {
		struct ledger_call call = writer(1000 + i, T0 + i);

		snprintf(name, sizeof(name), "route-%03d", (int)i);
		call.route = span_from(name);
		take(call);
	}
	ledger_view_health(ledger, &health);
	ck_assert_uint_eq(health.hidden, 5);
	ck_assert_uint_eq(health.total.written, (LEDGER_ROUTES + 5) * PREFIX);
	ck_assert_uint_eq(ledger_view_routes(ledger), LEDGER_ROUTES + 1);
	ck_assert_uint_eq(ledger_view_find(ledger, SPAN("other")), LEDGER_ROUTES);
}
END_TEST

START_TEST(ledger_an_hour_older_than_a_week_is_forgotten)
{
	struct ledger_sums sums;

	set_up();
	take(writer(1, T0));
	take(writer(1, T0 + LEDGER_HOURS * HOUR));
	ledger_view_hours(ledger, LEDGER_VIEW_ALL, 0, UINT64_MAX, &sums);
	ck_assert_uint_eq(sums.written, PREFIX);
}
END_TEST

START_TEST(ledger_a_small_book_forgets_and_goes_on)
{
	set_up();
	for (uint64_t n = 1; n <= 2000; n++)
		take(writer(n, T0 + n));
	ck_assert_uint_eq(hour_at(T0).written, 2000 * PREFIX);
}
END_TEST

/* ---- versions, bursts ------------------------------------------------------------ */

START_TEST(ledger_variants_are_versions_side_by_side)
{
	struct ledger_view_route route;
	struct ledger_view_version version;

	set_up();
	for (uint64_t t = 0; t <= 15; t++) {
		take(t % 6 == 0 ? writer(1, T0 + t * 60000) : reader(1, T0 + t * 60000));
		take(t == 0 ? writer(2, T0 + 1000) : reader(2, T0 + 1000 + t * 60000));
	}
	ledger_view_route(ledger, 0, T0 + 16 * 60000, &route);
	ck_assert_uint_eq(route.variants, 2);
	/* Merged: 3 writes.  Apart: 3 + 1. */
	ck_assert_uint_eq(route.split_cost, PREFIX * (uint64_t)(3750 - 300));
	ck_assert(ledger_view_version(ledger, 0, 0, T0 + 16 * 60000, &version));
	ck_assert_uint_eq(version.number, 2);
	ck_assert(version.variant);
	ck_assert_uint_eq(version.share_permille, 500);
	ck_assert(!ledger_view_version(ledger, 0, 2, T0 + 16 * 60000, &version));
}
END_TEST

/* All arrive at T0; the leader is answered after 3 s, the rest starts then. */
START_TEST(ledger_a_burst_has_its_price_and_its_naive_price)
{
	struct ledger_view_burst burst;
	struct ledger_call leader = writer(1, T0);

	set_up();
	leader.waited_ms = 0;
	take(leader);
	for (uint64_t i = 1; i < 200; i++) {
		struct ledger_call call = reader(1, T0 + 3100 + i);

		call.waited_ms = 3100 + i;
		take(call);
	}
	ck_assert(ledger_view_burst(ledger, LEDGER_VIEW_ALL, 0, &burst));
	ck_assert_uint_eq(burst.starts, 200);
	ck_assert_uint_eq(burst.writes, 1);
	ck_assert_uint_eq(burst.extra_writes, 0);
	ck_assert_uint_eq(burst.hits, 199);
	ck_assert(!burst.spike);
	ck_assert_uint_eq(burst.readable_ms, 3000);
	ck_assert_uint_eq(burst.held_ms, 199 * 3000);
	ck_assert_uint_eq(burst.cost, 112500000 + 199 * (uint64_t)9000000 + 200 * 60000);
	ck_assert_uint_eq(burst.naive_cost, 200 * (uint64_t)112560000);
	ck_assert_uint_eq(hour_at(T0).saved, burst.naive_cost - burst.cost);
	ck_assert(!ledger_view_burst(ledger, LEDGER_VIEW_ALL, 1, &burst));
}
END_TEST

START_TEST(ledger_an_extra_write_in_a_burst_is_a_spike)
{
	struct ledger_view_burst burst;

	set_up();
	for (uint64_t i = 0; i < 12; i++)
		take(writer(1, T0 + i));
	ledger_take_pressure(ledger, SPAN("claude"), T0 + 500);
	ledger_take_pressure(ledger, SPAN("another"), T0 + 500);
	ck_assert(ledger_view_burst(ledger, 0, 0, &burst));
	ck_assert_uint_eq(burst.writes, 12);
	ck_assert_uint_eq(burst.extra_writes, 11);
	ck_assert_uint_eq(burst.refusals, 1);
	ck_assert(burst.spike);
	ck_assert(burst.open);
	ledger_tick(ledger, T0 + 61000);
	ck_assert(ledger_view_burst(ledger, 0, 0, &burst));
	ck_assert(!burst.open);
}
END_TEST

START_TEST(ledger_nine_starts_are_no_burst_and_ten_slow_ones_neither)
{
	struct ledger_view_burst burst;

	set_up();
	for (uint64_t i = 0; i < 9; i++)
		take(writer(1, T0 + i));
	for (uint64_t i = 0; i < 10; i++)
		take(writer(2, T0 + i * 2000));
	ck_assert(!ledger_view_burst(ledger, LEDGER_VIEW_ALL, 0, &burst));
}
END_TEST

START_TEST(ledger_a_burst_after_a_minute_of_rest_is_another_one)
{
	struct ledger_view_burst burst;

	set_up();
	for (uint64_t t = 0; t < 3; t++)
		for (uint64_t i = 0; i < 10; i++)
			take(t + i == 0 ? writer(1, T0) : reader(1, T0 + t * 61000 + i));
	ck_assert(ledger_view_burst(ledger, LEDGER_VIEW_ALL, 2, &burst));
	ck_assert_uint_eq(burst.start_ms, T0);
	ck_assert(!ledger_view_burst(ledger, LEDGER_VIEW_ALL, 3, &burst));
}
END_TEST

START_TEST(ledger_lost_lines_are_shown)
{
	struct ledger_view_health health;

	set_up();
	take(writer(1, T0));
	ledger_take_gap(ledger, T0 + 5);
	ledger_view_health(ledger, &health);
	ck_assert(!health.sums_up);
	ck_assert_uint_eq(health.gaps, 1);
	ck_assert_uint_eq(health.gap_ms, T0 + 5);
}
END_TEST

SUITE_MAIN("ledger", ledger_a_beginning_teaches_and_books_nothing,
           ledger_an_end_finds_its_beginning_although_the_clock_was_corrected,
           ledger_each_node_of_a_prefix_has_its_own_cause,
           ledger_implicit_caching_has_causes_without_writes,
           ledger_a_call_without_usage_is_estimated_apart, ledger_prices_are_exact,
           ledger_a_model_without_a_price_is_counted,
           ledger_routes_above_the_limit_share_a_row,
           ledger_an_hour_older_than_a_week_is_forgotten,
           ledger_a_small_book_forgets_and_goes_on,
           ledger_variants_are_versions_side_by_side,
           ledger_a_burst_has_its_price_and_its_naive_price,
           ledger_an_extra_write_in_a_burst_is_a_spike,
           ledger_nine_starts_are_no_burst_and_ten_slow_ones_neither,
           ledger_a_burst_after_a_minute_of_rest_is_another_one,
           ledger_lost_lines_are_shown)
