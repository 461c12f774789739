/* What a call is booked for: causes, prices, bounds, versions and bursts. */
#include "scheduler/ledger/ledger_row.h"
#include "scheduler/ledger/ledger_state.h"
#include "tests/lib/ledger_rig.h"

#include <stdio.h>

/* ---- a cause each ---------------------------------------------------------------- */

START_TEST(ledger_the_first_write_is_first)
{
	set_up();
	take(writer(1, T0));
	ck_assert_uint_eq(written_for(LEDGER_FIRST), PREFIX);
}
END_TEST

START_TEST(ledger_a_write_after_the_lifetime_is_expired)
{
	set_up();
	take(writer(1, T0));
	take(reader(1, T0 + 60000));
	take(writer(1, T0 + 60000 + TTL + 1));
	ck_assert_uint_eq(written_for(LEDGER_FIRST), PREFIX);
	ck_assert_uint_eq(written_for(LEDGER_EXPIRED), PREFIX);
}
END_TEST

START_TEST(ledger_a_write_beside_a_writer_is_a_stampede)
{
	set_up();
	for (int i = 0; i < 20; i++)
		take(writer(1, T0 + (uint64_t)i));
	ck_assert_uint_eq(written_for(LEDGER_FIRST), PREFIX);
	ck_assert_uint_eq(written_for(LEDGER_STAMPEDE), 19 * PREFIX);
}
END_TEST

START_TEST(ledger_a_job_past_its_hold_writes_for_the_hold_limit)
{
	struct ledger_call late = writer(1, T0 + 1000), now = writer(1, T0 + 1001);

	set_up();
	take(writer(1, T0));
	late.role = LANE_HOLD_LIMIT;
	now.role = LANE_NOW;
	take(late);
	take(now);
	ck_assert_uint_eq(written_for(LEDGER_HOLD_LIMIT), 2 * PREFIX);
}
END_TEST

START_TEST(ledger_a_canary_that_comes_too_early_is_a_proof_miss)
{
	struct ledger_call canary = writer(1, T0 + 3100);

	set_up();
	take(writer(1, T0));
	canary.role = LANE_CANARY;
	take(canary);
	ck_assert_uint_eq(written_for(LEDGER_PROOF_MISS), PREFIX);
}
END_TEST

START_TEST(ledger_another_prefix_of_a_route_is_a_new_version)
{
	set_up();
	take(writer(1, T0));
	take(reader(1, T0 + 5000));
	take(writer(2, T0 + 60000));
	ck_assert_uint_eq(written_for(LEDGER_FIRST), PREFIX);
	ck_assert_uint_eq(written_for(LEDGER_NEW_VERSION), PREFIX);
}
END_TEST

START_TEST(ledger_many_prefixes_alive_are_documents_and_no_deploys)
{
	set_up();
	for (uint64_t n = 1; n <= 10; n++)
		take(writer(n, T0 + n * 1000));
	ck_assert_uint_eq(written_for(LEDGER_NEW_VERSION), 2 * PREFIX);
	ck_assert_uint_eq(written_for(LEDGER_FIRST), 8 * PREFIX);
}
END_TEST

START_TEST(ledger_prefixes_of_one_job_that_look_alike_are_drift)
{
	set_up();
	for (uint64_t n = 1; n <= 5; n++)
		take(single(writer(n, T0 + n * 1000), n, true));
	/* The first two could still be something else: a marker of their own. */
	ck_assert_uint_eq(written_for(LEDGER_TAIL), 2 * PREFIX);
	ck_assert_uint_eq(written_for(LEDGER_DRIFT), 3 * PREFIX);
	set_up(); /* documents that only have the same length are none */
	for (uint64_t n = 1; n <= 5; n++)
		take(single(writer(n, T0 + n * 1000), n, false));
	ck_assert_uint_eq(written_for(LEDGER_TAIL), 5 * PREFIX);
	ck_assert_uint_eq(written_for(LEDGER_DRIFT), 0);
	set_up(); /* paid in full: nobody marked them, or nobody has to */
	for (uint64_t n = 1; n <= 4; n++) {
		struct ledger_call call = single(call_of(n, T0 + n * 1000), n, true);

		call.explicit = n % 2;
		call.uncached = PREFIX + 20;
		take(call);
	}
	ck_assert_uint_eq(full_for(LEDGER_DRIFT), 2 * PREFIX);
}
END_TEST

/* `head`, then 6 KB that is always the same, then `tail`. */
static struct ledger_sketch
framed(const char *head, const char *tail)
{
	char text[8192];
	size_t len = 0;

	len += (size_t)snprintf(text, sizeof(text), "%s", head);
	for (size_t i = 0; i < 6000; i++)
		text[len++] = (char)('A' + (i * i / 7) % 58);
	len += (size_t)snprintf(text + len, sizeof(text) - len, "%s", tail);
	return ledger_sketch_of((struct span){ text, len });
}

START_TEST(ledger_a_sketch_knows_what_is_nearly_the_same)
{
	struct ledger_sketch none = { 0 }, plain = framed("", "");
	struct ledger_sketch longer = framed("user 4711 of acme, ", "");
	struct ledger_sketch later = framed("", " Today is the 4th.");
	struct ledger_sketch both = framed("ab", " x"), swapped = framed("ba", " x");
	struct ledger_sketch tiny = ledger_sketch_of(SPAN("short"));
	struct ledger_sketch tiny2 = ledger_sketch_of(SPAN("trohs"));

	ck_assert(ledger_sketch_resembles(&plain, &plain));
	ck_assert(ledger_sketch_resembles(&plain, &longer));
	ck_assert(ledger_sketch_resembles(&plain, &later));
	ck_assert(ledger_sketch_resembles(&both, &swapped)); /* in another order */
	ck_assert(ledger_sketch_resembles(&tiny, &tiny2));
	ck_assert(!ledger_sketch_resembles(&tiny, &plain));
	ck_assert(!ledger_sketch_resembles(&none, &none));
	ck_assert(!ledger_sketch_resembles(&plain, &none));
}
END_TEST

START_TEST(ledger_what_lived_shorter_than_asked_is_a_ttl_mismatch)
{
	struct ledger_call first = writer(1, T0), again = writer(1, T0 + TTL + 60000);

	set_up();
	first.ttl_ms = again.ttl_ms = HOUR;
	first.written_1h = again.written_1h = 0;
	take(first);
	take(again);
	ck_assert_uint_eq(written_for(LEDGER_TTL_MISMATCH), PREFIX);
}
END_TEST

START_TEST(ledger_what_should_be_there_was_evicted_early)
{
	set_up();
	take(writer(1, T0));
	take(reader(1, T0 + 5000));
	take(writer(1, T0 + 60000));
	ck_assert_uint_eq(written_for(LEDGER_EVICTED_EARLY), PREFIX);
}
END_TEST

START_TEST(ledger_what_is_warm_on_another_replica_is_other_place)
{
	struct ledger_call there = writer(1, T0 + 60000);

	set_up();
	take(writer(1, T0));
	there.domain = 2;
	take(there);
	ck_assert_uint_eq(written_for(LEDGER_OTHER_PLACE), PREFIX);
}
END_TEST

START_TEST(ledger_the_same_text_at_another_upstream_is_other_place)
{
	struct ledger_view_version version;
	struct ledger_view_route route;
	uint64_t now = T0 + 12 * 60000;

	set_up();
	take(twinned(writer(1, T0)));
	take(elsewhere(writer(1, T0 + 60000)));
	ck_assert_uint_eq(written_for(LEDGER_OTHER_PLACE), PREFIX);
	for (uint64_t t = 1; t <= 11; t++) {
		take(twinned(reader(1, T0 + 60000 * t + 5000)));
		take(elsewhere(reader(1, T0 + 60000 * t + 6000)));
	}
	/* It is no second version, so they are no variants. */
	ledger_view_route(ledger, 0, now, &route);
	ck_assert_uint_eq(route.variants, 0);
	ck_assert_uint_eq(route.split_cost, 0);
	ck_assert(ledger_view_version(ledger, 0, 0, now, &version));
	ck_assert(version.twin);
	ck_assert(span_equals(version.place, SPAN("backup")));
	ck_assert(ledger_view_version(ledger, 0, 1, now, &version));
	ck_assert(!version.twin);
	/* Once it is cold everywhere, whoever comes first has no other place. */
	take(elsewhere(writer(1, now + TTL)));
	ck_assert_uint_eq(written_for(LEDGER_EXPIRED), PREFIX);
}
END_TEST

START_TEST(ledger_reading_what_only_another_upstream_wrote_is_a_false_split)
{
	set_up();
	take(twinned(writer(1, T0)));
	take(twinned(reader(1, T0 + 4000)));
	take(elsewhere(reader(1, T0 + 8000))); /* two names of one account */
	take(elsewhere(writer(1, T0 + 8000 + TTL + 1)));
	ck_assert_uint_eq(written_for(LEDGER_FALSE_SPLIT), PREFIX);
}
END_TEST

START_TEST(ledger_tells_how_long_entries_live)
{
	struct ledger_view_place place;

	set_up();
	take(writer(1, T0));
	take(reader(1, T0 + 4999)); /* a burst is no rest */
	take(reader(1, T0 + 4999 + 45000));
	take(reader(1, T0 + 4999 + 45000 + 250000));
	take(writer(1, T0 + 4999 + 45000 + 250000 + 20000));
	take(writer(1, T0 + 4999 + 45000 + 250000 + 20000 + 2 * HOUR));
	ck_assert(ledger_view_place(ledger, 0, &place));
	ck_assert_uint_eq(place.ttl_ms, TTL);
	for (uint32_t i = 0; i < LEDGER_VIEW_RESTS; i++) {
		const struct ledger_view_rest *rest = &place.rests[i];
		uint64_t from_s = rest->from_ms / 1000;

		ck_assert_uint_eq(rest->kept, from_s == 30 || from_s == 240);
		ck_assert_uint_eq(rest->gone, from_s == 5 || from_s == 7200);
		ck_assert(rest->to_ms > rest->from_ms || i == LEDGER_VIEW_RESTS - 1);
	}
}
END_TEST

START_TEST(ledger_what_is_written_behind_the_prefix_is_tail)
{
	struct ledger_call call = reader(1, T0 + 10000);

	set_up();
	take(writer(1, T0));
	call.written = 1479;
	call.tail_marked = true;
	take(call);
	ck_assert_uint_eq(written_for(LEDGER_TAIL), 1479);
}
END_TEST

START_TEST(ledger_a_writer_with_a_marked_tail_is_cut_at_its_prefix)
{
	struct ledger_call call = writer(1, T0);

	set_up();
	call.written = PREFIX + 5000;
	call.tail_marked = true;
	take(call);
	ck_assert_uint_eq(written_for(LEDGER_FIRST), PREFIX);
	ck_assert_uint_eq(written_for(LEDGER_TAIL), 5000);
}
END_TEST

START_TEST(ledger_what_the_tools_of_the_provider_write_is_server_tool)
{
	struct ledger_call call = reader(1, T0 + 10000);

	set_up();
	take(writer(1, T0));
	call.written = 800;
	call.server_tool = true;
	take(call);
	ck_assert_uint_eq(written_for(LEDGER_SERVER_TOOL), 800);
}
END_TEST

START_TEST(ledger_a_ping_that_writes_is_keepwarm)
{
	struct ledger_call ping = writer(1, T0 + TTL + 5000);

	set_up();
	take(writer(1, T0));
	ping.role = LANE_TICKET;
	ping.purpose = LEDGER_FOR_KEEPING;
	take(ping);
	ck_assert_uint_eq(written_for(LEDGER_KEEPWARM), PREFIX);
}
END_TEST

START_TEST(ledger_a_warm_up_that_nobody_reads_becomes_wasted)
{
	struct ledger_call warm = writer(1, T0), used = writer(2, T0);
	struct ledger_view_ahead ahead;

	set_up();
	warm.role = used.role = LANE_TICKET;
	warm.purpose = used.purpose = LEDGER_FOR_WARMTH;
	take(warm);
	take(used);
	take(reader(2, T0 + 60000));
	ck_assert_uint_eq(written_for(LEDGER_PREWARM_WASTED), 0);
	ledger_tick(ledger, T0 + 60000 + TTL + 1);
	ck_assert_uint_eq(written_for(LEDGER_PREWARM_WASTED), PREFIX);
	ck_assert_uint_eq(written_for(LEDGER_FIRST) + written_for(LEDGER_NEW_VERSION),
	                  PREFIX);
	ahead = ledger_view_ahead(ledger);
	ck_assert_uint_eq(ahead.calls, 2);
	ck_assert_uint_eq(ahead.used, 1);
	ck_assert_uint_eq(ahead.wasted, 1);
	ck_assert_uint_gt(ahead.cost, 2 * (uint64_t)PREFIX * 3750);
}
END_TEST

START_TEST(ledger_versions_that_the_provider_holds_as_one_are_a_false_split)
{
	set_up();
	take(writer(1, T0));
	take(reader(1, T0 + 4000));
	take(reader(2, T0 + 8000)); /* nobody has ever written 2 */
	take(writer(2, T0 + 8000 + TTL + 1));
	take(writer(2, T0 + 8000 + TTL + 100));
	ck_assert_uint_eq(written_for(LEDGER_FALSE_SPLIT), 2 * PREFIX);
}
END_TEST

START_TEST(ledger_an_attempt_without_an_answer_is_retry_waste)
{
	struct ledger_call cut = writer(1, T0);

	set_up();
	cut.kind = LEDGER_SPENT;
	take(cut);
	take(reader(1, T0 + 10000));
	ck_assert_uint_eq(written_for(LEDGER_RETRY_WASTE), PREFIX);
	ck_assert_uint_eq(hour_at(T0).answers, 1);
	ck_assert_uint_eq(hour_at(T0).calls, 2);
}
END_TEST

START_TEST(ledger_without_a_time_the_cause_is_unknown)
{
	struct ledger_call call = writer(1, T0);

	set_up();
	call.sent_ms = EVENT_UNKNOWN;
	take(call);
	ck_assert_uint_eq(written_for(LEDGER_UNKNOWN), PREFIX);
}
END_TEST

START_TEST(ledger_every_cause_has_a_name_and_a_meaning)
{
	set_up();
	for (int i = 0; i < LEDGER_CAUSE_COUNT; i++) {
		ck_assert_uint_gt(strlen(ledger_cause_text((enum ledger_cause)i)), 3);
		ck_assert_uint_gt(strlen(ledger_cause_meaning((enum ledger_cause)i)), 20);
	}
}
END_TEST

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

SUITE_MAIN("ledger", ledger_the_first_write_is_first,
           ledger_a_write_after_the_lifetime_is_expired,
           ledger_a_write_beside_a_writer_is_a_stampede,
           ledger_a_job_past_its_hold_writes_for_the_hold_limit,
           ledger_a_canary_that_comes_too_early_is_a_proof_miss,
           ledger_another_prefix_of_a_route_is_a_new_version,
           ledger_many_prefixes_alive_are_documents_and_no_deploys,
           ledger_prefixes_of_one_job_that_look_alike_are_drift,
           ledger_a_sketch_knows_what_is_nearly_the_same,
           ledger_what_lived_shorter_than_asked_is_a_ttl_mismatch,
           ledger_what_should_be_there_was_evicted_early,
           ledger_what_is_warm_on_another_replica_is_other_place,
           ledger_the_same_text_at_another_upstream_is_other_place,
           ledger_reading_what_only_another_upstream_wrote_is_a_false_split,
           ledger_tells_how_long_entries_live,
           ledger_what_is_written_behind_the_prefix_is_tail,
           ledger_a_writer_with_a_marked_tail_is_cut_at_its_prefix,
           ledger_what_the_tools_of_the_provider_write_is_server_tool,
           ledger_a_ping_that_writes_is_keepwarm,
           ledger_a_warm_up_that_nobody_reads_becomes_wasted,
           ledger_versions_that_the_provider_holds_as_one_are_a_false_split,
           ledger_an_attempt_without_an_answer_is_retry_waste,
           ledger_without_a_time_the_cause_is_unknown,
           ledger_every_cause_has_a_name_and_a_meaning,
           ledger_a_beginning_teaches_and_books_nothing,
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
