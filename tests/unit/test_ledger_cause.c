/* What each write is booked for: a cause each, by what the provider was seen to do. */
#include "scheduler/ledger/ledger_state.h"
#include "tests/lib/ledger_rig.h"

#include <stdio.h>

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

SUITE_MAIN("ledger_cause", ledger_the_first_write_is_first,
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
           ledger_every_cause_has_a_name_and_a_meaning)
