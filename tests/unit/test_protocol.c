/* Ids, usage, records and events there and back, and what strangers may write. */
#include "common/codec/protocol_event.h"
#include "common/codec/protocol_record.h"
#include "common/prng.h"
#include "tests/lib/suite.h"

#include <stdlib.h>

#define NODE  "00112233445566778899aabbccddeeff"
#define LANE  NODE ".0"
#define OTHER "ffeeddccbbaa99887766554433221100"

static struct span
as_span(const char *text, size_t len)
{
	return (struct span){ text, len };
}

/* ---- ids, elements, tickets ------------------------------------------------------ */

START_TEST(protocol_lane_id_round_trips)
{
	struct protocol_lane_id id;
	char text[PROTOCOL_LANE_ID_SIZE];

	ck_assert_int_eq(protocol_parse_lane_id(SPAN(NODE ".4294967295"), &id), 0);
	ck_assert_uint_eq(id.domain, UINT32_MAX);
	SUITE_SPAN(as_span(text, protocol_print_lane_id(id, text)), NODE ".4294967295");
}
END_TEST

START_TEST(protocol_lane_id_refuses_what_is_none)
{
	static const char *const bad[] = {
		"",
		NODE,
		NODE ".",
		NODE ".x",
		NODE "/0",
		NODE ".4294967296",
		NODE ".-1",
		"0." NODE,
		"00112233445566778899aabbccddeefG.0",
		"00112233445566778899AABBCCDDEEFF.0",
	};
	struct protocol_lane_id id;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		ck_assert_msg(protocol_parse_lane_id(span_from(bad[i]), &id) ==
		                      ERR_MALFORMED,
		              "'%s'", bad[i]);
}
END_TEST

START_TEST(protocol_job_ids_stand_in_the_order_of_the_stream)
{
	static const struct protocol_job_id rising[] = {
		{ 0 }, { 1, 0, 0 }, { 1, 0, 1 }, { 1, 0, 2 }, { 1, 1, 0 }, { 2, 0, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rising); i++)
		for (size_t j = 0; j < ARRAY_SIZE(rising); j++)
			ck_assert_int_eq(protocol_compare_job_ids(rising[i], rising[j]),
			                 (i > j) - (i < j));
}
END_TEST

START_TEST(protocol_element_round_trips)
{
	static const char *const good[] = {
		"0-0",
		"1700000000000-3",
		"1700000000000-3~",
		"1-2.7~",
		"1-2/30,40",
		"1-2~/0,18446744073709551615",
		"18446744073709551615-18446744073709551615.4294967295~/1,2",
	};
	struct protocol_element element;
	char text[PROTOCOL_ELEMENT_SIZE];

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		ck_assert_int_eq(protocol_parse_element(span_from(good[i]), &element), 0);
		SUITE_SPAN(as_span(text, protocol_print_element(&element, text)),
		           good[i]);
	}
}
END_TEST

START_TEST(protocol_element_refuses_what_is_none)
{
	static const char *const bad[] = {
		"",       "-",         "1",
		"1-",     "-1",        "1-2.",
		"1-2.0",  "1-2.x",     "a-2",
		"1-2~~",  "1-2/",      "1-2/3",
		"1-2/3,", "1-2/3,4,5", "1-2/x,4",
		"1-2 ",   "1--2",      "18446744073709551616-0",
		"01-2",   "1-02",      "1-2.01",
	};
	struct protocol_element element;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		ck_assert_msg(protocol_parse_element(span_from(bad[i]), &element) ==
		                      ERR_MALFORMED,
		              "'%s'", bad[i]);
	ck_assert_int_eq(protocol_parse_element(SPAN("w:" LANE ":3"), &element),
	                 ERR_UNSUPPORTED);
}
END_TEST

START_TEST(protocol_ticket_round_trips)
{
	struct protocol_lane_id lane;
	uint64_t g;
	char text[PROTOCOL_TICKET_SIZE];

	ck_assert_int_eq(protocol_parse_ticket(SPAN("w:" LANE ":12"), &lane, &g), 0);
	ck_assert_uint_eq(g, 12);
	SUITE_SPAN(as_span(text, protocol_print_ticket(lane, g, text)), "w:" LANE ":12");
	ck_assert_int_eq(protocol_parse_ticket(SPAN("w:" LANE), &lane, &g),
	                 ERR_MALFORMED);
	ck_assert_int_eq(protocol_parse_ticket(SPAN("w:" LANE ":1:2"), &lane, &g),
	                 ERR_MALFORMED);
	ck_assert_int_eq(protocol_parse_ticket(SPAN("x:" LANE ":1"), &lane, &g),
	                 ERR_MALFORMED);
}
END_TEST

START_TEST(protocol_list_of_nothing_has_no_items)
{
	struct span list = SPAN(""), item;

	ck_assert(!protocol_list_next(&list, &item));
	list = SPAN("a,,b");
	ck_assert(protocol_list_next(&list, &item));
	SUITE_SPAN(item, "a");
	ck_assert(protocol_list_next(&list, &item));
	SUITE_SPAN(item, "");
	ck_assert(protocol_list_next(&list, &item));
	SUITE_SPAN(item, "b");
	ck_assert(!protocol_list_next(&list, &item));
}
END_TEST

START_TEST(protocol_budget_names_what_is_paid_together)
{
	char text[PROTOCOL_BUDGET_SIZE];
	size_t len;

	len = protocol_print_budget(SPAN("claude"), SPAN("claude"), SPAN("sonnet"), text);
	SUITE_SPAN(as_span(text, len), "claude:sonnet");
	len = protocol_print_budget(SPAN("claude"), SPAN("org-2"), SPAN("sonnet"), text);
	SUITE_SPAN(as_span(text, len), "claude@org-2:sonnet");
	ck_assert_uint_eq(
		protocol_print_budget(SPAN("a,b"), SPAN("a"), SPAN("sonnet"), text), 0);
}
END_TEST

/* ---- usage ----------------------------------------------------------------------- */

START_TEST(protocol_usage_keeps_unknown_apart_from_zero)
{
	struct protocol_usage usage;
	char text[PROTOCOL_USAGE_SIZE];

	ck_assert_int_eq(protocol_parse_usage(SPAN("17 18 0 - 40 -"), &usage), 0);
	ck_assert_int_eq(usage.read, 0);
	ck_assert_int_eq(usage.written, PROTOCOL_UNKNOWN);
	ck_assert_int_eq(usage.limit_input, PROTOCOL_UNKNOWN);
	SUITE_SPAN(as_span(text, protocol_print_usage(&usage, text)), "17 18 0 - 40 -");
}
END_TEST

START_TEST(protocol_usage_carries_limits)
{
	static const char want[] = "1 2 3 4 5 6 r=4000,o=90000";
	struct protocol_usage usage;
	char text[PROTOCOL_USAGE_SIZE];

	ck_assert_int_eq(protocol_parse_usage(SPAN(want), &usage), 0);
	ck_assert_int_eq(usage.limit_requests, 4000);
	ck_assert_int_eq(usage.limit_output, 90000);
	SUITE_SPAN(as_span(text, protocol_print_usage(&usage, text)), want);
	ck_assert_int_eq(protocol_parse_usage(SPAN("1 2 3 4 5 6 z=1,i=7"), &usage), 0);
	ck_assert_int_eq(usage.limit_input, 7);
	ck_assert_int_eq(usage.wait_ms, PROTOCOL_UNKNOWN);
	ck_assert_int_eq(protocol_parse_usage(SPAN("1 2 - - - - w=1250"), &usage), 0);
	ck_assert_int_eq(usage.wait_ms, 1250);
	ck_assert_int_eq(usage.limit_input, PROTOCOL_UNKNOWN);
	SUITE_SPAN(as_span(text, protocol_print_usage(&usage, text)),
	           "1 2 - - - - w=1250");
}
END_TEST

START_TEST(protocol_usage_carries_what_only_the_ledger_needs)
{
	static const char want[] = "1 2 - - 5 6 h=10,R=7,W=8,s=1,b=1";
	struct protocol_usage usage;
	char text[PROTOCOL_USAGE_SIZE];

	ck_assert_int_eq(protocol_parse_usage(SPAN(want), &usage), 0);
	ck_assert_int_eq(usage.read, PROTOCOL_UNKNOWN);
	ck_assert_int_eq(usage.written_1h, 10);
	ck_assert_int_eq(usage.billed_read, 7);
	ck_assert_int_eq(usage.billed_written, 8);
	ck_assert_int_eq(usage.server_tool, 1);
	ck_assert_int_eq(usage.may_bill, 1);
	SUITE_SPAN(as_span(text, protocol_print_usage(&usage, text)), want);
}
END_TEST

/* Their sums were beyond what JSON can say, and no page could be read any more. */
START_TEST(protocol_usage_believes_no_absurd_number)
{
	struct protocol_usage usage;

	ck_assert_int_eq(
		protocol_parse_usage(SPAN("1 2 9223372036854775807 99999999 100000000 7 "
	                                  "w=9223372036854775807,R=100000000"),
	                             &usage),
		0);
	ck_assert_int_eq(usage.read, PROTOCOL_TOKENS_MAX);
	ck_assert_int_eq(usage.written, 99999999);
	ck_assert_int_eq(usage.uncached, PROTOCOL_TOKENS_MAX);
	ck_assert_int_eq(usage.output, 7);
	ck_assert_int_eq(usage.billed_read, PROTOCOL_TOKENS_MAX);
	ck_assert_int_eq(usage.wait_ms, INT64_MAX);
}
END_TEST

START_TEST(protocol_usage_refuses_what_is_none)
{
	static const char *const bad[] = {
		"1",
		"1 2 3 4 5",
		"1 2 3 4 5 x",
		"1 2 3 4 5 -6",
		"1 2 3 4 5 6 7",
		"1 2 3 4 5 6 r=",
		"1 2 3 4 5 6 r=x",
		"1 2 3 4 5 6 r=1 i=2",
		"1  2 3 4 5 6",
		"1 2 3 4 5 9223372036854775808",
	};
	struct protocol_usage usage;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		ck_assert_msg(protocol_parse_usage(span_from(bad[i]), &usage) ==
		                      ERR_MALFORMED,
		              "'%s'", bad[i]);
	ck_assert_int_eq(protocol_parse_usage(SPAN(""), &usage), 0);
	ck_assert_int_eq(usage.read, PROTOCOL_UNKNOWN);
}
END_TEST

START_TEST(protocol_usage_size_is_enough_for_the_largest)
{
	struct protocol_usage usage = {
		INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX,
		INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX,
		INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX,
	};
	char text[PROTOCOL_USAGE_SIZE];

	ck_assert_uint_le(protocol_print_usage(&usage, text), sizeof(text));
}
END_TEST

/* ---- records --------------------------------------------------------------------- */

START_TEST(protocol_family_record_round_trips)
{
	struct protocol_family family = {
		.bits = 64 + 8, .flags = PROTOCOL_SHARED, .live = 1234, .hold_max_ms = 30000,
		.input = 200, .output = 900, .marks = 3, .pool = SPAN("batch"),
		.budget = SPAN("acct:sonnet"), .lanes = SPAN(LANE "," NODE ".1"),
		.ancestors = SPAN(""), .px = SPAN(OTHER "," NODE), .route = SPAN("a b"),
	}, got;
	char text[512], again[512];
	size_t len, again_len;

	ck_assert_int_eq(protocol_record_print_family(&family, text, sizeof(text), &len),
	                 0);
	ck_assert_int_eq(protocol_record_parse_family(as_span(text, len), &got), 0);
	ck_assert_uint_eq(got.bits, 72);
	ck_assert_uint_eq(got.live, 1234);
	ck_assert_uint_eq(got.marks, 3);
	SUITE_SPAN(got.budget, "acct:sonnet");
	SUITE_SPAN(got.ancestors, "");
	SUITE_SPAN(got.route, "a b");
	ck_assert_ptr_null(got.model.data);
	ck_assert_int_eq(
		protocol_record_print_family(&got, again, sizeof(again), &again_len), 0);
	ck_assert(span_equals(as_span(text, len), as_span(again, again_len)));

	family.model = SPAN(""); /* known, and none */
	ck_assert_int_eq(protocol_record_print_family(&family, text, sizeof(text), &len),
	                 0);
	ck_assert_int_eq(protocol_record_parse_family(as_span(text, len), &got), 0);
	SUITE_SPAN(got.route, "a b");
	ck_assert_ptr_nonnull(got.model.data);
	ck_assert_uint_eq(got.model.len, 0);
	family.model = SPAN("claude-opus-4-1");
	ck_assert_int_eq(protocol_record_print_family(&family, text, sizeof(text), &len),
	                 0);
	ck_assert_int_eq(protocol_record_parse_family(as_span(text, len), &got), 0);
	SUITE_SPAN(got.model, "claude-opus-4-1");
}
END_TEST

START_TEST(protocol_lane_record_round_trips)
{
	struct protocol_lane lane = {
		.gate = PROTOCOL_CHECKING, .reason = 5, .generation = 77, .credits = 1,
		.credit_role = 2, .in_use = 3, .window = 200, .rank = 9,
		.until_ms = PROTOCOL_UNTIL_NONE, .tokens = 30012, .life_ms = 290000,
		.ticket = PROTOCOL_TICKET_TAKEN, .ticket_deadline_ms = 1700000000000,
		.must_begin_ms = 1700000000001, .pool = SPAN("p"), .budget = SPAN("b"),
		.family = SPAN(NODE), .px = SPAN(OTHER), .ticket_note = SPAN("by|x"),
	}, got;
	char text[512];
	size_t len;

	ck_assert_int_eq(protocol_record_print_lane(&lane, text, sizeof(text), &len), 0);
	ck_assert_int_eq(text[96], '|');
	ck_assert_int_eq(protocol_record_parse_lane(as_span(text, len), &got), 0);
	ck_assert_int_eq(got.gate, PROTOCOL_CHECKING);
	ck_assert_uint_eq(got.until_ms, PROTOCOL_UNTIL_NONE);
	ck_assert_uint_eq(got.must_begin_ms, 1700000000001);
	ck_assert_int_eq(got.ticket, PROTOCOL_TICKET_TAKEN);
	SUITE_SPAN(got.ticket_note, "by|x");
}
END_TEST

START_TEST(protocol_record_clamps_a_number_to_its_column)
{
	struct protocol_lane lane = {
		.in_use = 123456, .window = 100000, .pool = SPAN(""), .budget = SPAN(""),
		.family = SPAN(""), .px = SPAN(""), .ticket_note = SPAN(""),
	}, got;
	char text[256];
	size_t len;

	ck_assert_int_eq(protocol_record_print_lane(&lane, text, sizeof(text), &len), 0);
	ck_assert_int_eq(protocol_record_parse_lane(as_span(text, len), &got), 0);
	ck_assert_uint_eq(got.in_use, 99999);
	ck_assert_uint_eq(got.window, 99999);
	ck_assert_int_eq(protocol_record_print_lane(&lane, text, 96, &len), ERR_FULL);
}
END_TEST

START_TEST(protocol_record_tells_another_format_from_damage)
{
	struct protocol_lane lane;
	struct protocol_family family;
	char text[200];

	memset(text, '0', sizeof(text));
	text[0] = '2';
	ck_assert_int_eq(protocol_record_parse_lane(as_span(text, 200), &lane),
	                 ERR_UNSUPPORTED);
	ck_assert_int_eq(protocol_record_parse_family(as_span(text, 10), &family),
	                 ERR_UNSUPPORTED);
	text[0] = '1';
	ck_assert_int_eq(protocol_record_parse_lane(as_span(text, 200), &lane),
	                 ERR_MALFORMED);
	ck_assert_int_eq(protocol_record_parse_lane(SPAN(""), &lane), ERR_MALFORMED);
}
END_TEST

/* Flips, cuts and grows good records: whatever comes out, it is an answer. */
START_TEST(protocol_parsers_survive_any_bytes)
{
	static const char lane_text[] =
		"10000000000010010000000200000000001700000000000000300120000290000"
		"0000000000000000000000000000000|p|b|" NODE "|" OTHER "|";
	static const char lease_text[] =
		"17|" NODE "|" LANE "|1-2~/3,4|l|12|200,900|1700000000000|1|n";
	static const char event_text[] =
		"began " LANE " " NODE " 12 l 1 2 3 4 5 6 r=1,i=2";
	const char *const seeds[] = { lane_text, lease_text, event_text };
	struct prng prng;
	char text[256];

	prng_init(&prng, 42);
	for (int round = 0; round < 30000; round++) {
		const char *seed = seeds[(unsigned)round % ARRAY_SIZE(seeds)];
		size_t len = strlen(seed);
		struct protocol_lane lane;
		struct protocol_family family;
		struct protocol_lease lease;
		struct protocol_event event;
		struct span bytes;
		char *copy;

		memcpy(text, seed, len);
		for (uint64_t n = prng_below(&prng, 4); n > 0; n--)
			text[prng_below(&prng, len)] = (char)prng_below(&prng, 256);
		len -= prng_below(&prng, 4) == 0 ? prng_below(&prng, len + 1) : 0;
		copy = malloc(len + 1); /* exact size: sanitizers see a step too far */
		SUITE_HOLDS(copy);
		memcpy(copy, text, len);
		bytes = as_span(copy, len);
		SUITE_HOLDS(protocol_record_parse_lane(bytes, &lane) <= 0);
		SUITE_HOLDS(protocol_record_parse_family(bytes, &family) <= 0);
		SUITE_HOLDS(protocol_record_parse_lease(bytes, &lease) <= 0);
		SUITE_HOLDS(protocol_event_parse(bytes, &event) <= 0);
		free(copy);
	}
}
END_TEST

START_TEST(protocol_lease_round_trips)
{
	static const char want[] =
		"17|" NODE "|" LANE "|1-2~/3,4|l|12|200,900|1700000000000|1|n";
	struct protocol_lease lease;
	char text[256];
	size_t len;

	ck_assert_int_eq(protocol_record_parse_lease(SPAN(want), &lease), 0);
	ck_assert_int_eq(lease.role, PROTOCOL_LEAD);
	ck_assert_uint_eq(lease.output, 900);
	ck_assert_int_eq(protocol_record_print_lease(&lease, text, sizeof(text), &len),
	                 0);
	SUITE_SPAN(as_span(text, len), want);
	ck_assert(!lease.begun);
	lease.begun = true;
	ck_assert_int_eq(protocol_record_print_lease(&lease, text, sizeof(text), &len),
	                 0);
	ck_assert_ptr_nonnull(strstr(text, "|L|"));
	ck_assert_int_eq(protocol_record_parse_lease(as_span(text, len), &lease), 0);
	ck_assert(lease.begun);
	ck_assert_int_eq(lease.role, PROTOCOL_LEAD);
	ck_assert_int_eq(
		protocol_record_parse_lease(SPAN("17|a|b|1-2|x|1|1,1|1|1|n"), &lease),
		ERR_MALFORMED);
	ck_assert_int_eq(
		protocol_record_parse_lease(SPAN("17|a|b|1-2|p|1|1,1|1|1|n|"), &lease),
		ERR_MALFORMED);
	ck_assert_int_eq(
		protocol_record_parse_lease(SPAN("17|a|b|1-2|p|1|1,1|1|1|x"), &lease),
		ERR_MALFORMED);
}
END_TEST

/* ---- events ---------------------------------------------------------------------- */

START_TEST(protocol_event_lines_round_trip)
{
	static const char *const lines[] = {
		"start " LANE " " NODE " 12 l 00000000000000ff 3 9",
		"began " LANE " " NODE " 12 l 1 2 0 30012 40 -",
		"done " LANE " - 12 t - - - - - -",
		"back " LANE " " NODE " 12 c worker_died",
		"spent " LANE " " NODE " 12 p failed 1 2 0 30012 40 - b=1",
		"ticket " LANE " 3 ok 1 2 3 4 5 6",
		"ticket " LANE " 3 failed overdue",
		"pressure acct:sonnet 429 1700000000000",
		"empty " NODE,
		"work " NODE,
		"expired " LANE " 3",
		"short batch 12",
		"hello 0123456789abcdef batch 200",
		"bye 0123456789abcdef",
		"dead 1-2 payload_missing",
		"ended 1-2 cancelled",
		"undecided 1-2",
		"hold off somebody with blanks",
		"hold_route off somebody a route with blanks",
		"pause on " NODE,
		"unpark acct:sonnet somebody with blanks",
		"warm " NODE " somebody with blanks",
		"steer 0123456789abcdef quiet somebody with blanks",
		"forgot " NODE,
		"drift " LANE,
	};
	struct protocol_event event;
	bool seen[PROTOCOL_EVENT_COUNT] = { false };
	char text[512];
	size_t len;

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		ck_assert_msg(protocol_event_parse(span_from(lines[i]), &event) == 0,
		              "'%s'", lines[i]);
		seen[event.kind] = true;
		ck_assert_int_eq(protocol_event_print(&event, text, sizeof(text), &len),
		                 0);
		SUITE_SPAN(as_span(text, len), lines[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(seen); i++)
		ck_assert(seen[i]);
}
END_TEST

START_TEST(protocol_event_of_a_later_version_is_told_apart)
{
	struct protocol_event event;

	ck_assert_int_eq(protocol_event_parse(SPAN("moved " LANE), &event),
	                 ERR_UNSUPPORTED);
	ck_assert_int_eq(protocol_event_parse(SPAN("expired " LANE " 3 more"), &event),
	                 0);
	ck_assert_int_eq(protocol_event_parse(SPAN("expired " LANE), &event),
	                 ERR_MALFORMED);
	ck_assert_int_eq(protocol_event_parse(SPAN("ticket " LANE " 3 maybe x"), &event),
	                 ERR_MALFORMED);
	ck_assert_int_eq(protocol_event_parse(SPAN("bye 00000000000000aab"), &event),
	                 ERR_MALFORMED);
}
END_TEST

SUITE_MAIN("protocol", protocol_lane_id_round_trips,
           protocol_lane_id_refuses_what_is_none,
           protocol_job_ids_stand_in_the_order_of_the_stream,
           protocol_element_round_trips, protocol_element_refuses_what_is_none,
           protocol_ticket_round_trips, protocol_list_of_nothing_has_no_items,
           protocol_budget_names_what_is_paid_together,
           protocol_usage_keeps_unknown_apart_from_zero, protocol_usage_carries_limits,
           protocol_usage_carries_what_only_the_ledger_needs,
           protocol_usage_believes_no_absurd_number, protocol_usage_refuses_what_is_none,
           protocol_usage_size_is_enough_for_the_largest,
           protocol_family_record_round_trips, protocol_lane_record_round_trips,
           protocol_record_clamps_a_number_to_its_column,
           protocol_record_tells_another_format_from_damage,
           protocol_parsers_survive_any_bytes, protocol_lease_round_trips,
           protocol_event_lines_round_trip,
           protocol_event_of_a_later_version_is_told_apart)
