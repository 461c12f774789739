/* The scheduler without sockets, against written answers: whom it obeys, what it asks,
 * and what it makes of answers that are late, lost, or not what it hoped for. */
#include "scheduler/ruler_view.h"
#include "tests/lib/ruler_rig.h"
#include "tests/lib/suite.h"

#include <stdio.h>
#include <stdlib.h>

#define TOOLS  "11111111111111111111111111111111"
#define SYSTEM "22222222222222222222222222222222"

static struct rig rig;

static void
open_rig(void)
{
	rig_init(&rig);
}

static void
close_rig(void)
{
	rig_fini(&rig);
}

static enum ruler_phase
phase(void)
{
	return ruler_view_health(rig.ruler, rig.now_ms).phase;
}

static bool
has_said(const char *text)
{
	return strstr(rig.notes, text) != NULL;
}

#define SMALL "[upstream claude body '{\"model\":\"m\",\"messages\":[]}']"

/* ---- who rules ------------------------------------------------------------------- */

START_TEST(ruler_reaps_before_it_reads_anything)
{
	struct rig_call *rule;

	ruler_connected(rig.ruler, rig.now_ms);
	rig_step(&rig);
	rule = rig_find(&rig, "rule");
	ck_assert_str_eq(rig_word(rule, 1), "6000");
	ck_assert_uint_eq(rig.calls_count, 1);
	rig_answer(&rig, rule, "[OK 1000 " RIG_OWNER " 1]");
	ck_assert_uint_eq(rig.calls_count, 2);
	ck_assert_str_eq(rig_word(rig_find(&rig, "reap"), 0), RIG_OWNER);
	rig_answer(&rig, rig_find(&rig, "reap"), "[OK 1000 100 1 0]");
	rig_answer(&rig, rig_find(&rig, "reap"), "[OK 1000 20 0 0]");
	ck_assert_ptr_nonnull(rig_find(&rig, "HMGET meta"));
	ck_assert_int_eq(phase(), RULER_REBUILDING);
}
END_TEST

START_TEST(ruler_stands_by_while_another_one_rules)
{
	struct rig_call *rule;
	char first[32];

	ruler_connected(rig.ruler, rig.now_ms);
	rule = rig_expect(&rig, "rule");
	(void)snprintf(first, sizeof(first), "%s", rig_word(rule, 0));
	rig_answer(&rig, rule, "[HELD 2:00000000000000cd 5000]");
	ck_assert_int_eq(phase(), RULER_STANDBY);
	ck_assert_ptr_null(rig_find(&rig, "rule"));
	rig.now_ms += 1000; /* takes over within 10 s of a death, whatever HELD says */
	rig_step(&rig);
	rule = rig_find(&rig, "rule");
	ck_assert_ptr_nonnull(rule);
	ck_assert_str_ne(rig_word(rule, 0), first);
}
END_TEST

START_TEST(ruler_obeys_epoch_wherever_it_hears_it)
{
	static const char *const names[] = { "promote", "audit", "grant", "admit" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		rig_fini(&rig);
		rig_init(&rig);
		rig.config.audit_ms = 100;
		rig_rule(&rig);
		rig_hold(&rig, names[i]);
		rig_inbox(&rig, "[[6-0 " SMALL "]]");
		rig_answer(&rig, rig_expect(&rig, names[i]),
		           "[EPOCH 4:00000000000000cd]");
		ck_assert_int_eq(phase(), RULER_STANDBY);
		ck_assert(has_said("another scheduler took the rule over"));
	}
}
END_TEST

START_TEST(ruler_audits_piece_by_piece)
{
	struct rig_call *call;

	ruler_connected(rig.ruler, rig.now_ms);
	rig_answer(&rig, rig_expect(&rig, "rule"), "[OK 1000 " RIG_OWNER " 1]");
	rig_answer(&rig, rig_expect(&rig, "reap"), "[OK 1000 0 0 0]");
	rig_answer(&rig, rig_expect(&rig, "HMGET meta"),
	           "[0123456789abcdef0123456789abcdef '5-0 0' 1-0 on ~]");
	rig_answer(&rig, rig_expect(&rig, "HKEYS unheld"), "[]");
	call = rig_expect(&rig, "audit");
	ck_assert_str_eq(rig_word(call, 1), "1:0");
	rig_answer(&rig, call, "[OK 1000 2:512 ['in use' aa.0 2 1]]");
	ck_assert(has_said("the audit corrected in use of aa.0: it was 2, is 1"));
	call = rig_expect(&rig, "audit");
	ck_assert_str_eq(rig_word(call, 1), "2:512");
	ck_assert_ptr_null(rig_find(&rig, "HSCAN families"));
	rig_answer(&rig, call, "[OK 1000 '']");
	rig_answer(&rig, rig_expect(&rig, "HSCAN families"), "[0 []]");
}
END_TEST

START_TEST(ruler_renews_every_two_seconds)
{
	uint64_t start_ms = rig.now_ms;
	struct rig_call *renewal;

	rig_rule(&rig);
	renewal = rig_expect(&rig, "rule");
	ck_assert_uint_le(rig.now_ms - start_ms, 2100);
	rig_answer(&rig, renewal, "[OK 3000 " RIG_OWNER " 0]");
	ck_assert_int_eq(phase(), RULER_RULING);
}
END_TEST

START_TEST(ruler_that_lost_its_lease_begins_anew)
{
	rig_rule(&rig);
	rig_answer(&rig, rig_expect(&rig, "rule"), "[OK 3000 9:00000000000000ab 1]");
	ck_assert_int_eq(phase(), RULER_REAPING);
	ck_assert_str_eq(rig_word(rig_find(&rig, "reap"), 0), "9:00000000000000ab");
}
END_TEST

START_TEST(ruler_gives_up_an_old_rule_and_asks_with_a_fresh_nonce)
{
	struct rig_call *old, *fresh;
	char nonce[32];

	ruler_connected(rig.ruler, rig.now_ms);
	old = rig_expect(&rig, "rule");
	(void)snprintf(nonce, sizeof(nonce), "%s", rig_word(old, 0));
	rig_answer(&rig, old, "[OK 1000 " RIG_OWNER " 1]");
	ruler_lost(rig.ruler, rig.now_ms);
	ck_assert_uint_eq(ruler_deadline(rig.ruler, rig.now_ms), RULER_DEADLINE_NONE);
	ruler_connected(rig.ruler, rig.now_ms);
	rig_step(&rig);
	old = rig_find(&rig, "rule");
	ck_assert_str_eq(rig_word(old, 0), nonce);
	ck_assert_str_eq(rig_word(old, 1), "0");
	rig_answer(&rig, old, "[OK 1000 - 0]");
	fresh = rig_find(&rig, "rule");
	ck_assert_str_ne(rig_word(fresh, 0), nonce);
	ck_assert_str_eq(rig_word(fresh, 1), "6000");
}
END_TEST

START_TEST(ruler_ignores_answers_of_an_earlier_life)
{
	struct rig_call *promote;

	rig_rule(&rig);
	promote = rig_expect(&rig, "promote");
	ruler_lost(rig.ruler, rig.now_ms);
	ruler_connected(rig.ruler, rig.now_ms);
	rig_step(&rig);
	rig_answer(&rig, promote, "[EPOCH 4:00000000000000cd]");
	ck_assert_int_eq(phase(), RULER_ASKING);
}
END_TEST

START_TEST(ruler_asks_for_the_library_when_a_function_is_missing)
{
	ruler_connected(rig.ruler, rig.now_ms);
	rig_answer(&rig, rig_expect(&rig, "rule"), "!ERR Function not found");
	ck_assert(ruler_wants_library(rig.ruler));
	ck_assert_uint_eq(ruler_deadline(rig.ruler, rig.now_ms), RULER_DEADLINE_NONE);
	ruler_connected(rig.ruler, rig.now_ms);
	ck_assert(!ruler_wants_library(rig.ruler));
}
END_TEST

START_TEST(ruler_waits_for_a_redis_that_loads)
{
	ruler_connected(rig.ruler, rig.now_ms);
	rig_answer(&rig, rig_expect(&rig, "rule"), "!LOADING Redis is loading");
	ck_assert_int_eq(phase(), RULER_ASKING);
	ck_assert_ptr_null(rig_find(&rig, "rule"));
	ck_assert_ptr_nonnull(rig_expect(&rig, "rule"));
}
END_TEST

START_TEST(ruler_admits_nothing_until_there_is_a_cursor)
{
	ruler_connected(rig.ruler, rig.now_ms);
	rig_hold(&rig, "rule");
	rig_answer(&rig, rig_expect(&rig, "rule"), "[OK 1000 " RIG_OWNER " 2]");
	for (int i = 0; i < 3; i++) { /* each renewal finds it missing still */
		rig_pass(&rig, 3000);
		ck_assert_int_eq(phase(), RULER_RULING);
		rig_answer(&rig, rig_expect(&rig, "rule"), "[OK 1000 " RIG_OWNER " 2]");
	}
	ck_assert(has_said("cursor of the inbox is missing"));
	ck_assert_uint_eq(rig_count(&rig, "XREAD jobs"), 0);
	ck_assert_uint_eq(rig_count(&rig, "HSCAN families"), 1);
	ck_assert(!ruler_view_health(rig.ruler, rig.now_ms).admits);
	rig_answer(&rig, rig_expect(&rig, "rule"), "[OK 1000 " RIG_OWNER " 0]");
	(void)rig_expect(&rig, "XREAD jobs");
	ck_assert(has_said("admitting goes on"));
	ck_assert(ruler_view_health(rig.ruler, rig.now_ms).admits);
	ck_assert_uint_eq(rig_count(&rig, "HSCAN families"), 2);
}
END_TEST

/* A hundred thousand families take longer than a lease of the rule. */
START_TEST(ruler_renews_its_rule_while_it_takes_over)
{
	struct rig_call *renewal;

	rig_hold(&rig, "HSCAN families");
	rig_hold(&rig, "rule");
	ruler_connected(rig.ruler, rig.now_ms);
	rig_answer(&rig, rig_expect(&rig, "rule"), "[OK 1000 " RIG_OWNER " 1]");
	for (int i = 0; i < 10; i++) {
		rig_pass(&rig, 2500);
		ck_assert_int_eq(phase(), RULER_REBUILDING);
		renewal = rig_find(&rig, "rule");
		ck_assert_ptr_nonnull(renewal);
		rig_answer(&rig, renewal, "[OK 1000 " RIG_OWNER " 0]");
	}
	rig_pass(&rig, 2500);
	rig_answer(&rig, rig_expect(&rig, "rule"), "[HELD 4:00000000000000cd 6000]");
	ck_assert_int_eq(phase(), RULER_STANDBY);
	rig_answer(&rig, rig_expect(&rig, "HSCAN families"), "[0 []]"); /* nobody's now */
	ck_assert_int_eq(phase(), RULER_STANDBY);
}
END_TEST

START_TEST(ruler_stops_by_giving_up_its_rule)
{
	struct rig_call *yield;

	rig_rule(&rig);
	ruler_stop(rig.ruler);
	rig_step(&rig);
	yield = rig_find(&rig, "rule");
	ck_assert_str_eq(rig_word(yield, 1), "0");
	ck_assert(!ruler_is_stopped(rig.ruler));
	rig_answer(&rig, yield, "[OK 1000 - 0]");
	ck_assert(ruler_is_stopped(rig.ruler));
}
END_TEST

/* ---- events and grants ----------------------------------------------------------- */

START_TEST(ruler_stores_the_event_cursor_with_what_it_decided)
{
	struct rig_call *grant;

	rig_rule(&rig);
	rig_answer(&rig, rig_expect(&rig, "XREAD events"),
	           "[[w:events [[2-0 [e 'hello 0123456789abcdef default 8']] "
	           "[3-0 [e 'short default 8\nfuture words 1 2']]]]]");
	grant = rig_expect(&rig, "grant");
	ck_assert_str_eq(rig_word(grant, 1), "3-0");
	ck_assert_str_eq(rig_word(rig_expect(&rig, "XREAD events"), 4), "3-0");
}
END_TEST

START_TEST(ruler_reads_events_often_while_something_is_due)
{
	uint64_t from_ms;

	rig_rule(&rig);
	rig_answer(&rig, rig_expect(&rig, "XREAD events"),
	           "[[w:events [[2-0 [e 'hello 0123456789abcdef default 8']]]]]");
	rig_send_large(&rig, "6-0", 'a');
	rig_send_large(&rig, "7-0", 'a');
	rig_step(&rig);
	rig_idle(&rig);
	from_ms = rig.now_ms;
	(void)rig_expect(&rig, "XREAD events");
	ck_assert_uint_le(rig.now_ms - from_ms, 20);
}
END_TEST

/* Its worker may have greeted just before; while none does, nobody looks without cause.
 */
START_TEST(ruler_looks_for_workers_when_jobs_come)
{
	uint64_t from_ms;

	rig_rule(&rig);
	rig_idle(&rig);
	rig_send_large(&rig, "6-0", 'a');
	rig_send_large(&rig, "7-0", 'a');
	rig_step(&rig);
	rig_idle(&rig);
	from_ms = rig.now_ms;
	ck_assert(rig_answer_idly(&rig, rig_expect(&rig, "XREAD events")));
	ck_assert_uint_le(rig.now_ms - from_ms, 20);
	from_ms = rig.now_ms;
	(void)rig_expect(&rig, "XREAD events");
	ck_assert_uint_ge(rig.now_ms - from_ms, 100);
}
END_TEST

/* lane family px pool budget g g_new gate reason credits role … of the lane that is
 * being written; 0 if there is none in this grant. */
static uint32_t
find_writing(const struct rig_call *grant)
{
	uint32_t lanes = rig_number(grant, 2);

	for (uint32_t at = 3; at < 3 + lanes * 19; at += 19)
		if (strcmp(rig_word(grant, at + 7), "1") == 0)
			return at;
	return 0;
}

START_TEST(ruler_elects_one_writer_when_a_worker_is_there)
{
	struct rig_call *grant = NULL;
	uint32_t at = 0;

	rig_rule(&rig);
	rig_answer(&rig, rig_expect(&rig, "XREAD events"),
	           "[[w:events [[2-0 [e 'hello 0123456789abcdef default 8']]]]]");
	rig_hold(&rig, "grant");
	rig_send_large(&rig, "6-0", 'a');
	rig_send_large(&rig, "7-0", 'a');
	for (int i = 0; i < 20 && at == 0; i++) {
		grant = rig_expect(&rig, "grant");
		at = find_writing(grant);
		if (at == 0)
			ck_assert(rig_answer_idly(&rig, grant));
	}
	ck_assert_uint_ne(at, 0);
	ck_assert_str_eq(rig_word(grant, at + 3), "default");
	ck_assert_str_eq(rig_word(grant, at + 4), "claude:large");
	ck_assert_str_eq(rig_word(grant, at + 9), "1");
	ck_assert_str_eq(rig_word(grant, at + 10), "1"); /* lead */
}
END_TEST

/* Two jobs and a worker: answers grants until the lane is being written, and that one. */
static uint32_t
elect_writer(char family[33])
{
	struct rig_call *grant;
	uint32_t at;

	rig_answer(&rig, rig_expect(&rig, "XREAD events"),
	           "[[w:events [[2-0 [e 'hello 0123456789abcdef default 8']]]]]");
	rig_hold(&rig, "grant");
	rig_send_large(&rig, "6-0", 'a');
	rig_send_large(&rig, "7-0", 'a');
	do {
		grant = rig_expect(&rig, "grant");
		at = find_writing(grant);
		if (at > 0)
			(void)snprintf(family, 33, "%s", rig_word(grant, at + 1));
		ck_assert(rig_answer_idly(&rig, grant));
	} while (at == 0);
	return at;
}

START_TEST(ruler_lets_no_old_line_take_a_new_credit_back)
{
	char family[33], events[200];

	rig_rule(&rig);
	(void)elect_writer(family);
	(void)snprintf(events, sizeof(events), "[[w:events [[%llu-0 [e 'empty %s']]]]]",
	               (unsigned long long)rig.now_ms - 10000, family);
	rig_answer(&rig, rig_expect(&rig, "XREAD events"), events);
	rig_pass(&rig, 500);
	ck_assert_ptr_null(rig_find(&rig, "grant"));

	(void)snprintf(events, sizeof(events), "[[w:events [[%llu-0 [e 'empty %s']]]]]",
	               (unsigned long long)rig.now_ms, family);
	rig_answer(&rig, rig_expect(&rig, "XREAD events"), events);
	ck_assert_ptr_nonnull(rig_expect(&rig, "grant")); /* this one is news */
}
END_TEST

START_TEST(ruler_counts_slots_of_live_workers_only)
{
	struct buffer text = BUFFER_INIT(1 << 20);

	rig_rule(&rig);
	rig_answer(&rig, rig_expect(&rig, "XREAD events"),
	           "[[w:events [[2-0 [e 'hello 0123456789abcdef default 8\n"
	           "hello 00000000000000ff default 4\nbye 0123456789abcdef']]]]]");
	rig_pass(&rig, 50);
	ruler_view_status(rig.ruler, rig.now_ms, 10, false, &text);
	ck_assert_ptr_nonnull(
		strstr(buffer_text(&text), "\"name\":\"default\",\"slots\":4"));
	rig_answer(&rig, rig_expect(&rig, "ZRANGE workers"), "[]"); /* it died */
	rig_pass(&rig, 50);
	buffer_clear(&text);
	ruler_view_status(rig.ruler, rig.now_ms, 10, false, &text);
	ck_assert_ptr_nonnull(
		strstr(buffer_text(&text), "\"name\":\"default\",\"slots\":0"));
	buffer_fini(&text);
}
END_TEST

START_TEST(ruler_knows_the_routes_that_are_not_held)
{
	struct buffer text = BUFFER_INIT(1 << 20);

	ruler_connected(rig.ruler, rig.now_ms);
	rig_answer(&rig, rig_expect(&rig, "rule"), "[OK 1000 " RIG_OWNER " 1]");
	rig_answer(&rig, rig_expect(&rig, "HKEYS unheld"), "[triage 'a b']");
	rig_hold(&rig, "HKEYS unheld");
	rig_pass(&rig, 1000);
	ck_assert_int_eq(phase(), RULER_RULING);
	ruler_view_status(rig.ruler, rig.now_ms, 10, false, &text);
	ck_assert_ptr_nonnull(
		strstr(buffer_text(&text), "\"unheld\":[\"triage\",\"a b\"]"));
	rig_hold(&rig, "audit"); /* the line of the event is lost: a look finds it */
	rig_answer(&rig, rig_expect(&rig, "HKEYS unheld"), "['a b']");
	ck_assert(has_said("holding of this route was switched on by somebody"));
	ck_assert_str_eq(rig_word(rig_expect(&rig, "audit"), 1), "1:0");
	buffer_fini(&text);
}
END_TEST

START_TEST(ruler_finds_workers_and_their_leases_again)
{
	struct buffer text = BUFFER_INIT(1 << 20);
	struct rig_call *slots, *leases;

	ruler_connected(rig.ruler, rig.now_ms);
	rig_answer(&rig, rig_expect(&rig, "rule"), "[OK 1000 " RIG_OWNER " 1]");
	rig_hold(&rig, "ZRANGE workers");
	rig_answer(&rig, rig_expect(&rig, "ZRANGE workers"), "[0123456789abcdef junk]");
	slots = rig_find(&rig, "HGET session:0123456789abcdef");
	leases = rig_find(&rig, "HGETALL lease:0123456789abcdef");
	rig_answer(&rig, slots, "12");
	rig_answer(&rig, leases, "[s 3|batch|0|* 4 junk]");
	rig_pass(&rig, 50);
	ck_assert_int_eq(phase(), RULER_RULING);
	ruler_view_status(rig.ruler, rig.now_ms, 10, false, &text);
	ck_assert_ptr_nonnull(
		strstr(buffer_text(&text), "\"name\":\"batch\",\"slots\":12"));
	buffer_fini(&text);
}
END_TEST

/* Each look is two calls; a list has room for 64. */
START_TEST(ruler_looks_at_many_workers_a_few_at_a_time)
{
	char text[200 * 17 + 3] = "[";
	uint32_t looks = 0;

	for (unsigned i = 1; i <= 200; i++)
		(void)snprintf(text + 1 + (i - 1) * 17, 18, "%016x ", i);
	text[1 + 200 * 17] = ']';
	rig_rule(&rig);
	(void)rig_expect(&rig, "ZRANGE workers");
	rig.now_ms += 500; /* other calls are due in the same step, an odd number */
	rig_answer(&rig, rig_find(&rig, "ZRANGE workers"), text);
	for (int rounds = 0; rounds < 100 && looks < 200; rounds++) {
		char slots[64], leases[64];

		(void)snprintf(slots, sizeof(slots), "HGET session:%016x", looks + 1);
		(void)snprintf(leases, sizeof(leases), "HGETALL lease:%016x", looks + 1);
		while (looks < 200 && rig_find(&rig, leases)) {
			rig_answer(&rig, rig_find(&rig, slots), "2");
			rig_answer(&rig, rig_find(&rig, leases), "[s 1|crowd|0|*]");
			looks++;
			(void)snprintf(slots, sizeof(slots), "HGET session:%016x",
			               looks + 1);
			(void)snprintf(leases, sizeof(leases), "HGETALL lease:%016x",
			               looks + 1);
		}
		rig_step(&rig);
	}
	ck_assert_uint_eq(looks, 200);
	ck_assert_int_eq(phase(), RULER_RULING);
}
END_TEST

START_TEST(ruler_says_so_when_the_books_do_not_balance_twice)
{
	rig_rule(&rig);
	rig_hold(&rig, "count");
	rig.now_ms += 600000;
	rig_answer(&rig, rig_expect(&rig, "count"), "[OK 1 1 5 3 4 0 0 1 0 0 0]");
	ck_assert(!has_said("the books do not balance"));
	rig.now_ms += 60000;
	rig_answer(&rig, rig_expect(&rig, "count"), "[OK 1 1 5 3 4 0 0 1 0 0 0]");
	ck_assert(has_said("the books do not balance: 3 jobs stand in no list"));
	rig.now_ms += 60000;
	rig_answer(&rig, rig_expect(&rig, "count"), "[OK 1 1 5 3 4 1 1 1 1 1 1]");
	ck_assert_uint_eq(ruler_view_health(rig.ruler, rig.now_ms).drift, 1);
}
END_TEST

/* A function that failed while a pass of the audit was under way may have failed behind
 * the piece that would have seen why. */
START_TEST(ruler_audits_soon_when_functions_fail_and_once_more_behind_a_pass_under_way)
{
	struct rig_call *audit;

	rig_rule(&rig);
	rig_hold(&rig, "audit");
	rig_hold(&rig, "HMGET meta");
	rig_answer(&rig, rig_expect(&rig, "HMGET meta"), "[on 0 1 0]");
	audit = rig_expect(&rig, "audit");
	rig_answer(&rig, rig_expect(&rig, "HMGET meta"), "[on 0 2 0]");
	rig_answer(&rig, audit, "[OK 1000]");
	audit = rig_expect(&rig, "audit");
	rig_answer(&rig, audit, "[OK 1000]");
	rig_pass(&rig, 5000);
	ck_assert_ptr_null(rig_find(&rig, "audit"));
}
END_TEST

/* A lane that is open since g 3, whose readers carry a marker behind the system part. */
START_TEST(ruler_finds_again_which_places_are_marked)
{
	char families[600], lanes[400];
	unsigned grants = 0;

	(void)snprintf(families, sizeof(families),
	               "[0 [" TOOLS " '10000000000000010000000000000000000000000|default|"
	               "claude:large|||" TOOLS "|' " SYSTEM
	               " '10081800000000000003000000000015000000642|default|"
	               "claude:large|" SYSTEM ".0||" TOOLS "," SYSTEM "|triage|m']]");
	(void)snprintf(lanes, sizeof(lanes),
	               "[0 [" SYSTEM ".0 '130"
	               "0000000003"
	               "00000000099999"
	               "10000000"
	               "%014llu"
	               "00004000"
	               "00002900000"
	               "%028d|default|claude:large|" SYSTEM "|" TOOLS "," SYSTEM "|']]",
	               (unsigned long long)rig.now_ms + 200000, 0);
	rig_rule_over(&rig, families, lanes);
	ck_assert_int_eq(phase(), RULER_RULING);
	ck_assert(has_said("memory is complete: 1 families, 1 prefixes"));
	rig_answer(&rig, rig_expect(&rig, "XREAD events"),
	           "[[w:events [[2-0 [e 'hello 0123456789abcdef default 8']]]]]");
	rig_pass(&rig, 1000);
	for (uint32_t i = 0; i < rig.calls_count; i++) {
		if (strcmp(rig.calls[i].name, "grant") != 0 ||
		    rig_number(&rig.calls[i], 2) == 0)
			continue;
		ck_assert_str_eq(rig_word(&rig.calls[i], 3), SYSTEM ".0");
		ck_assert_str_eq(rig_word(&rig.calls[i], 8), "3");
		ck_assert_str_eq(rig_word(&rig.calls[i], 9), "3"); /* no other marks */
		grants++;
	}
	ck_assert_uint_gt(grants, 0);
}
END_TEST

START_TEST(ruler_leaves_records_alone_that_it_cannot_read)
{
	rig_rule_over(&rig, "[0 [zz junk " TOOLS " 2junk]]",
	              "[0 [" SYSTEM ".0 junk x y]]");
	ck_assert_int_eq(phase(), RULER_RULING);
	ck_assert(has_said("the record of zz in families cannot be read"));
	ck_assert(has_said("the record of " SYSTEM ".0 in lanes cannot be read"));
}
END_TEST

static struct rig_call *
first_open(void)
{
	for (uint32_t i = 0; i < rig.calls_count; i++)
		if (!rig.calls[i].answered)
			return &rig.calls[i];
	return NULL;
}

/* Answers that no Redis of ours gives must not bring it down. */
START_TEST(ruler_survives_answers_of_any_shape)
{
	static const char *const shapes[] = {
		"~",
		"[]",
		"7",
		"[OK]",
		"[OK x y z]",
		"[[[]]]",
		"[OK 1 [a b] [c]]",
		"[STALE]",
		"[NEED]",
		"[HELD]",
		"[[w:jobs [[x [a]]]]]",
		"[[w:events [[9-9 [e 'bye x']]]]]",
		"!ERR odd",
		"[GONE 1-1]",
	};

	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
		rig_fini(&rig);
		rig_init(&rig);
		rig_rule(&rig);
		for (int round = 0; round < 40; round++) {
			rig_step(&rig);
			for (int n = 0; n < 100 && first_open(); n++)
				rig_answer(
					&rig, first_open(),
					shapes[(i + (size_t)round) % ARRAY_SIZE(shapes)]);
			rig_forget(&rig);
			rig.now_ms += 100;
		}
	}
}
END_TEST

START_TEST(ruler_says_the_same_for_the_same_answers)
{
	uint64_t traces[2];

	for (int i = 0; i < 2; i++) {
		rig_fini(&rig);
		rig_init(&rig);
		rig_rule(&rig);
		rig_answer(&rig, rig_expect(&rig, "XREAD events"),
		           "[[w:events [[2-0 [e 'hello 0123456789abcdef default 8']]]]]");
		rig_send_large(&rig, "6-0", 'a');
		rig_send_large(&rig, "7-0", 'b');
		rig_send_large(&rig, "8-0", 'a');
		rig_pass(&rig, 5000);
		traces[i] = rig.trace;
	}
	ck_assert_uint_eq(traces[0], traces[1]);
}
END_TEST

SUITE_MAIN_AROUND(
	"ruler", open_rig, close_rig, ruler_reaps_before_it_reads_anything,
	ruler_stands_by_while_another_one_rules, ruler_obeys_epoch_wherever_it_hears_it,
	ruler_audits_piece_by_piece, ruler_renews_every_two_seconds,
	ruler_that_lost_its_lease_begins_anew,
	ruler_gives_up_an_old_rule_and_asks_with_a_fresh_nonce,
	ruler_ignores_answers_of_an_earlier_life,
	ruler_asks_for_the_library_when_a_function_is_missing,
	ruler_waits_for_a_redis_that_loads, ruler_admits_nothing_until_there_is_a_cursor,
	ruler_renews_its_rule_while_it_takes_over, ruler_stops_by_giving_up_its_rule,
	ruler_stores_the_event_cursor_with_what_it_decided,
	ruler_reads_events_often_while_something_is_due,
	ruler_looks_for_workers_when_jobs_come,
	ruler_elects_one_writer_when_a_worker_is_there,
	ruler_lets_no_old_line_take_a_new_credit_back,
	ruler_counts_slots_of_live_workers_only, ruler_knows_the_routes_that_are_not_held,
	ruler_finds_workers_and_their_leases_again,
	ruler_looks_at_many_workers_a_few_at_a_time,
	ruler_says_so_when_the_books_do_not_balance_twice,
	ruler_audits_soon_when_functions_fail_and_once_more_behind_a_pass_under_way,
	ruler_finds_again_which_places_are_marked,
	ruler_leaves_records_alone_that_it_cannot_read,
	ruler_survives_answers_of_any_shape, ruler_says_the_same_for_the_same_answers)
