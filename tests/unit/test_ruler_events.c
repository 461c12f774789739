/* What a ruler hears of workers, in events and by looking for them, and what it grants.
 */
#include "scheduler/ruler_view.h"
#include "tests/lib/ruler_rig.h"
#include "tests/lib/suite.h"

#include <stdio.h>

static struct rig rig;

/* ---- events and grants ----------------------------------------------------------- */

START_TEST(ruler_stores_the_event_cursor_with_what_it_decided)
{
	struct rig_call *grant;

	rig_rule(&rig);
	rig_events(&rig, "[2-0 [e 'hello 0123456789abcdef default 8']] "
	                 "[3-0 [e 'short default 8\nfuture words 1 2']]");
	grant = rig_expect(&rig, "grant");
	ck_assert_str_eq(rig_word(grant, 1), "3-0");
	ck_assert_str_eq(rig_word(rig_expect(&rig, "XREAD events"), 4), "3-0");
}
END_TEST

START_TEST(ruler_reads_events_often_while_something_is_due)
{
	uint64_t from_ms;

	rig_rule(&rig);
	rig_hello(&rig);
	rig_send_large(&rig, "6-0", 'a');
	rig_send_large(&rig, "7-0", 'a');
	rig_step(&rig);
	rig_idle(&rig);
	from_ms = rig.now_ms;
	(void)rig_expect(&rig, "XREAD events");
	ck_assert_uint_le(rig.now_ms - from_ms, 20);
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
	rig_hello(&rig);
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

	rig_hello(&rig);
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

/* ---- workers and routes ---------------------------------------------------------- */

/* Whether the page of the scheduler's state has it. */
static bool
status_has(const char *part)
{
	struct buffer text = BUFFER_INIT(1 << 20);
	bool has;

	ruler_view_status(rig.ruler, rig.now_ms, 10, false, &text);
	has = strstr(buffer_text(&text), part) != NULL;
	buffer_fini(&text);
	return has;
}

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

START_TEST(ruler_counts_slots_of_live_workers_only)
{
	rig_rule(&rig);
	rig_events(&rig, "[2-0 [e 'hello 0123456789abcdef default 8\n"
	                 "hello 00000000000000ff default 4\nbye 0123456789abcdef']]");
	rig_pass(&rig, 50);
	ck_assert(status_has("\"name\":\"default\",\"slots\":4"));
	rig_answer(&rig, rig_expect(&rig, "ZRANGE workers"), "[]"); /* it died */
	rig_pass(&rig, 50);
	ck_assert(status_has("\"name\":\"default\",\"slots\":0"));
}
END_TEST

START_TEST(ruler_finds_workers_and_their_leases_again)
{
	struct rig_call *slots, *leases;

	rig_take_rule(&rig);
	rig_hold(&rig, "ZRANGE workers");
	rig_answer(&rig, rig_expect(&rig, "ZRANGE workers"), "[0123456789abcdef junk]");
	slots = rig_find(&rig, "HGET session:0123456789abcdef");
	leases = rig_find(&rig, "HGETALL lease:0123456789abcdef");
	rig_answer(&rig, slots, "12");
	rig_answer(&rig, leases, "[s 3|batch|0|* 4 junk]");
	rig_pass(&rig, 50);
	ck_assert_int_eq(rig_phase(&rig), RULER_RULING);
	ck_assert(status_has("\"name\":\"batch\",\"slots\":12"));
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
	ck_assert_int_eq(rig_phase(&rig), RULER_RULING);
}
END_TEST

START_TEST(ruler_knows_the_routes_that_are_not_held)
{
	rig_take_rule(&rig);
	rig_answer(&rig, rig_expect(&rig, "HKEYS unheld"), "[triage 'a b']");
	rig_hold(&rig, "HKEYS unheld");
	rig_pass(&rig, 1000);
	ck_assert_int_eq(rig_phase(&rig), RULER_RULING);
	ck_assert(status_has("\"unheld\":[\"triage\",\"a b\"]"));
	rig_hold(&rig, "audit"); /* the line of the event is lost: a look finds it */
	rig_answer(&rig, rig_expect(&rig, "HKEYS unheld"), "['a b']");
	ck_assert(
		rig_has_said(&rig, "holding of this route was switched on by somebody"));
	ck_assert_str_eq(rig_word(rig_expect(&rig, "audit"), 1), "1:0");
}
END_TEST

RIG_SUITE_MAIN("ruler_events", ruler_stores_the_event_cursor_with_what_it_decided,
               ruler_reads_events_often_while_something_is_due,
               ruler_elects_one_writer_when_a_worker_is_there,
               ruler_lets_no_old_line_take_a_new_credit_back,
               ruler_looks_for_workers_when_jobs_come,
               ruler_counts_slots_of_live_workers_only,
               ruler_finds_workers_and_their_leases_again,
               ruler_looks_at_many_workers_a_few_at_a_time,
               ruler_knows_the_routes_that_are_not_held)
