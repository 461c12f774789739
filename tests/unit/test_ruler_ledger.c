/* The ledger behind the ruler: what its lines become, and that nothing is booked twice or
 * left out over a restart. */
#include "common/codec/protocol_record.h"
#include "scheduler/ledger/ledger_view.h"
#include "scheduler/ruler_ledger.h"
#include "tests/lib/ruler_rig.h"
#include "tests/lib/suite.h"

#include <stdio.h>

static struct rig rig;

#define FAMILY "000000000000000000000000000000f1"
#define PX     FAMILY

/* One family of route triage, shared, with a node of its own. */
static void
rule_over(const char *meta, const char *head, const char *hour)
{
	char record[1024], families[1200];
	const struct protocol_family family = {
		.flags = PROTOCOL_SHARED,
		.marks = 1,
		.input = 40,
		.output = 64,
		.pool = SPAN("default"),
		.budget = SPAN("claude:default"),
		.lanes = SPAN(FAMILY ".0"),
		.px = SPAN(PX),
		.route = SPAN("triage"),
	};
	size_t len;

	ck_assert_int_eq(
		protocol_record_print_family(&family, record, sizeof(record), &len), 0);
	record[len] = '\0';
	(void)snprintf(families, sizeof(families), "[0 [" FAMILY " '%s']]", record);
	rig_take_rule(&rig);
	rig_answer(&rig, rig_expect(&rig, "reap"), "[OK 1000 0 0 0]");
	rig_answer(&rig, rig_expect(&rig, "HMGET meta"), meta);
	rig_answer(&rig, rig_expect(&rig, "HKEYS unheld"), "[]");
	rig_answer(&rig, rig_expect(&rig, "HGETALL ledger"), head);
	if (hour)
		rig_answer(&rig, rig_expect(&rig, "HGETALL ledger:500"), hour);
	rig_answer(&rig, rig_expect(&rig, "audit"), "[OK 1000 '']");
	rig_answer(&rig, rig_expect(&rig, "HSCAN families"), families);
	rig_answer(&rig, rig_expect(&rig, "HSCAN lanes"), "[0 []]");
	rig_answer(&rig, rig_expect(&rig, "ZRANGE workers"), "[]");
	rig_hold(&rig, "XREAD events"); /* written by hand, from the first on */
	rig_step(&rig);
	rig_idle(&rig);
}

#define META(events, ledger) \
	"[0123456789abcdef0123456789abcdef '5-0 0' " events " on ~ " ledger "]"

#define DONE(id, sent, read, written)                                               \
	"[" id " [e 'done " FAMILY ".0 " FAMILY " 1 p " sent " - " read " " written \
	" 20 64']]"

static struct ledger_view_health
health(void)
{
	struct ledger_view_health now;

	ledger_view_health(ruler_ledger(rig.ruler), &now);
	return now;
}

START_TEST(ruler_ledger_books_a_line_under_its_route_and_place)
{
	struct ledger_view_route route;
	struct ledger_view_place place;

	rule_over(META("1-0", "1-0"), "[]", NULL);
	rig_events(&rig, "[1-0 [e x]] " DONE("2000000-0", "1999000", "0", "30000"));
	ck_assert_uint_eq(health().total.written, 30000);
	ck_assert_uint_eq(ledger_view_routes(ruler_ledger(rig.ruler)), 1);
	ledger_view_route(ruler_ledger(rig.ruler), 0, rig.now_ms, &route);
	ck_assert_uint_eq(route.name.len, 6);
	ck_assert_int_eq(memcmp(route.name.data, "triage", 6), 0);
	ck_assert_uint_eq(route.ever.written, 30000);
	ck_assert(ledger_view_place(ruler_ledger(rig.ruler), 0, &place));
	ck_assert(span_equals(place.name, SPAN("claude")));
	ck_assert(health().sums_up);
}
END_TEST

START_TEST(ruler_ledger_stores_its_rows_with_the_cursor)
{
	struct rig_call *ledger;
	bool found = false;

	rule_over(META("1-0", "1-0"), "[]", NULL);
	rig_events(&rig, "[1-0 [e x]] " DONE("2000000-0", "1999000", "0", "30000"));
	ledger = rig_expect(&rig, "ledger");
	ck_assert_str_eq(rig_word(ledger, 0), RIG_OWNER);
	ck_assert_str_eq(rig_word(ledger, 1), "2000000-0");
	for (uint32_t i = 0; i < rig_number(ledger, 3); i++)
		found |= strcmp(rig_word(ledger, 5 + 3 * i), "total") == 0 &&
		         strncmp(rig_word(ledger, 6 + 3 * i), "1 1 ", 4) == 0;
	ck_assert(found);
	rig_answer(&rig, ledger, "[OK 1000]");
	/* Nothing has changed: nothing is written. */
	rig_hold(&rig, "ledger");
	rig_pass(&rig, 20000);
	ck_assert_ptr_null(rig_find(&rig, "ledger"));
}
END_TEST

/* How often rows were stored since. */
static uint32_t
stores(void)
{
	uint32_t count = 0;

	for (struct rig_call *it; (it = rig_find(&rig, "ledger")); count++)
		rig_answer(&rig, it, "[OK 1000]");
	return count;
}

/* One line each three seconds, for so long; likewise. */
static uint32_t
trickle(uint32_t *serial, uint32_t seconds)
{
	uint64_t end_ms = rig.now_ms + 1000ULL * seconds;
	uint32_t count = 0;
	char line[256];

	while (rig.now_ms < end_ms) {
		(void)snprintf(line, sizeof(line), DONE("%u-0", "1999000", "30000", "0"),
		               3000000 + (*serial)++);
		rig_events(&rig, line);
		rig_pass(&rig, 3000);
		count += stores();
	}
	return count;
}

static void
begin_to_trickle(void)
{
	rig_hold(&rig, "ledger");
	rule_over(META("1-0", "1-0"), "[]", NULL);
	rig_events(&rig, "[1-0 [e x]] " DONE("2000000-0", "1999000", "0", "30000"));
}

START_TEST(ruler_ledger_stores_each_two_minutes_while_jobs_trickle_in)
{
	uint32_t serial = 0;

	begin_to_trickle();
	ck_assert_uint_eq(trickle(&serial, 30), 1); /* the first ones, at once */
	ck_assert_uint_eq(trickle(&serial, 360), 3);
	rig_pass(&rig, 12000);
	ck_assert_uint_eq(stores(), 1); /* none has come for 5 s */
	ck_assert_uint_eq(trickle(&serial, 30), 0);
}
END_TEST

START_TEST(ruler_ledger_stores_many_entries_at_once)
{
	char text[4000];
	uint32_t serial = 0;

	begin_to_trickle();
	ck_assert_uint_eq(trickle(&serial, 9), 1);
	for (uint32_t i = 0; i < RULER_LEDGER_ENTRIES; i += 25) {
		size_t len = 0;

		for (uint32_t j = i; j < i + 25; j++)
			len += (size_t)snprintf(text + len, sizeof(text) - len,
			                        " [4000000-%u [e 'x']]", j);
		rig_events(&rig, text);
	}
	rig_pass(&rig, 100);
	ck_assert_uint_eq(stores(), 1);
}
END_TEST

/* Whoever rules next finds all of it, and the cursor behind it. */
START_TEST(ruler_ledger_stores_before_it_gives_up_the_rule)
{
	struct rig_call *ledger, *yield;
	uint32_t serial = 0;

	begin_to_trickle();
	ck_assert_uint_eq(trickle(&serial, 9), 1);
	rig_hold(&rig, "rule");
	rig_events(&rig, DONE("5000000-0", "1999000", "30000", "0"));
	ruler_stop(rig.ruler);
	rig_step(&rig);
	ledger = rig_find(&rig, "ledger");
	yield = rig_find(&rig, "rule");
	ck_assert_ptr_nonnull(ledger);
	ck_assert_ptr_nonnull(yield);
	ck_assert(ledger < yield); /* in that order */
	ck_assert_str_eq(rig_word(ledger, 1), "5000000-0");
	rig_answer(&rig, ledger, "[OK 1000]");
	rig_answer(&rig, yield, "[OK 1000]");
	ck_assert(ruler_is_stopped(rig.ruler));
}
END_TEST

/* The core has heard up to 4-0, the ledger up to 3-0: it goes on there. */
START_TEST(ruler_ledger_goes_on_where_its_rows_end)
{
	struct rig_call *read;

	rule_over(META("2000004-0", "2000003-0"),
	          "[total '7 7 0 0 0 210000 0 0 0 0 0 0 0 first:7,210000,0,0,0']", NULL);
	ck_assert_uint_eq(health().total.written, 210000);
	read = rig_expect(&rig, "XREAD events");
	ck_assert_str_eq(rig_word(read, 4), "2000002-18446744073709551615");
	rig_events(&rig, DONE("2000003-0", "1", "0", "30000") " " DONE("2000004-0", "1",
	                                                               "0", "30000"));
	ck_assert_uint_eq(health().total.written, 240000);
	ck_assert_uint_eq(health().total.calls, 8);
	ck_assert_uint_eq(health().gaps, 0);
}
END_TEST

/* The other way round: the core hears what the ledger has booked. */
START_TEST(ruler_ledger_books_nothing_twice)
{
	rule_over(META("2000001-0", "2000003-0"), "[]", NULL);
	rig_events(&rig,
	           DONE("2000001-0", "1", "0", "1") " " DONE(
			   "2000002-0", "1", "0",
			   "10") " " DONE("2000003-0", "1", "0",
	                                  "100") " " DONE("2000004-0", "1", "0", "1000"));
	ck_assert_uint_eq(health().total.written, 1000);
}
END_TEST

START_TEST(ruler_ledger_shows_that_lines_were_lost)
{
	rule_over(META("2000003-0", "2000003-0"), "[]", NULL);
	rig_events(&rig, DONE("2000009-0", "1", "0", "30000")); /* where is 2000003-0? */
	ck_assert_uint_eq(health().gaps, 1);
	ck_assert(!health().sums_up);
	ck_assert(rig_has_said(&rig, "were trimmed before they were read"));
	rig_events(&rig, DONE("2000010-0", "1", "0", "30000")); /* looked at once */
	ck_assert_uint_eq(health().gaps, 1);
}
END_TEST

START_TEST(ruler_ledger_remembers_over_a_restart)
{
	struct ledger_sums sums;

	rule_over(META("2000003-0", "2000003-0"),
	          "[state '1000 0 0 0 0' "
	          "r:0 '1000 2000 1 7 7 0 0 0 210000 0 0 0 0 0 0 0 |triage' hours '500']",
	          "[triage '7 7 0 0 0 210000 0 0 0 0 0 0 0 first:7,210000,0,9,8' "
	          "gone '1 1 0 0 0 1 0 0 0 0 0 0 0']");
	ledger_view_hours(ruler_ledger(rig.ruler), 0, 500 * LEDGER_VIEW_HOUR_MS,
	                  501 * LEDGER_VIEW_HOUR_MS, &sums);
	ck_assert_uint_eq(sums.written, 210000);
	ck_assert_uint_eq(sums.causes[LEDGER_FIRST].extra, 8);
	ck_assert_uint_eq(health().since_ms, 1000);
	ck_assert_uint_eq(ledger_view_find(ruler_ledger(rig.ruler), SPAN("triage")), 0);
}
END_TEST

START_TEST(ruler_ledger_books_attempts_without_an_answer_as_waste)
{
	rule_over(META("1-0", "1-0"), "[]", NULL);
	rig_events(&rig, "[1-0 [e x]] [2000000-0 [e 'spent " FAMILY ".0 " FAMILY
	                 " 1 p failed 1 2 0 30000 20 - b=1\nspent " FAMILY ".0 " FAMILY
	                 " 1 p worker_died - - - - - - b=1']]");
	ck_assert_uint_eq(health().total.causes[LEDGER_RETRY_WASTE].written, 30000);
	ck_assert_uint_eq(health().total.answers, 0);
	ck_assert_uint_eq(health().total.unreported, 1);
	ck_assert_uint_ge(health().total.estimated, 40);
}
END_TEST

START_TEST(ruler_ledger_books_what_was_billed_and_is_no_evidence)
{
	rule_over(META("1-0", "1-0"), "[]", NULL);
	rig_events(&rig, "[1-0 [e x]] [2000000-0 [e 'done " FAMILY ".0 " FAMILY
	                 " 1 l 1 2 - - 20 64 R=5,W=30000']]");
	ck_assert_uint_eq(health().total.written, 30000);
	ck_assert_uint_eq(health().total.read, 5);
	ck_assert_uint_eq(health().total.unreported, 0);
}
END_TEST

START_TEST(ruler_ledger_books_each_token_at_the_price_of_its_day)
{
	static const struct ruler_price prices[] = {
		{ 0, { .input = 3000000, .write = 3750000, .read = 300000 } },
		{ 2000005, { .input = 2000000, .write = 2500000, .read = 200000 } },
	};

	rig.model.prices = prices;
	rig.model.prices_count = 2;
	rule_over(META("1-0", "1-0"), "[]", NULL);
	rig_events(&rig, "[1-0 [e x]] " DONE("2000004-0", "1999000", "0", "10000"));
	ck_assert_uint_eq(health().total.cost, 10000 * 3750 + 20 * 3000);
	rig_events(&rig, DONE("2000005-0", "1999900", "10000", "0"));
	ck_assert_uint_eq(health().total.cost,
	                  10000 * 3750 + 20 * 3000 + 10000 * 200 + 20 * 2000);
	ck_assert_uint_eq(health().total.unpriced, 0);
}
END_TEST

START_TEST(ruler_ledger_counts_refusals_of_a_burst)
{
	struct ledger_view_burst burst;
	char text[4000] = "[1-0 [e x]]";
	size_t len = strlen(text);

	rule_over(META("1-0", "1-0"), "[]", NULL);
	for (unsigned i = 0; i < 12; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
		                        " [2000%03u-0 [e 'done " FAMILY ".0 " FAMILY
		                        " 1 p 19990%02u 1999500 0 30000 20 64']]",
		                        i, i);
	rig_events(&rig, text);
	rig_events(&rig, "[2000100-0 [e 'pressure claude:default 429 2000200']] "
	                 "[2000101-0 [e 'pressure claude:default 5xx 2000200\n"
	                 "pressure another:default 529 2000200']]");
	ck_assert(ledger_view_burst(ruler_ledger(rig.ruler), 0, 0, &burst));
	ck_assert_uint_eq(burst.starts, 12);
	ck_assert_uint_eq(burst.extra_writes, 11);
	ck_assert_uint_eq(burst.refusals, 1);
}
END_TEST

RIG_SUITE_MAIN("ruler_ledger", ruler_ledger_books_a_line_under_its_route_and_place,
               ruler_ledger_stores_its_rows_with_the_cursor,
               ruler_ledger_stores_each_two_minutes_while_jobs_trickle_in,
               ruler_ledger_stores_many_entries_at_once,
               ruler_ledger_stores_before_it_gives_up_the_rule,
               ruler_ledger_goes_on_where_its_rows_end, ruler_ledger_books_nothing_twice,
               ruler_ledger_shows_that_lines_were_lost,
               ruler_ledger_remembers_over_a_restart,
               ruler_ledger_books_attempts_without_an_answer_as_waste,
               ruler_ledger_books_what_was_billed_and_is_no_evidence,
               ruler_ledger_books_each_token_at_the_price_of_its_day,
               ruler_ledger_counts_refusals_of_a_burst)
