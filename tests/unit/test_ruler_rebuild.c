/* What a ruler finds in Redis when it takes over, and the audits and counts that say
 * whether it is right. */
#include "scheduler/ruler_view.h"
#include "tests/lib/ruler_rig.h"
#include "tests/lib/suite.h"

#include <stdio.h>
#include <stdlib.h>

#define TOOLS  "11111111111111111111111111111111"
#define SYSTEM "22222222222222222222222222222222"

static struct rig rig;

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
	ck_assert_int_eq(rig_phase(&rig), RULER_RULING);
	ck_assert(rig_has_said(&rig, "memory is complete: 1 families, 1 prefixes"));
	rig_hello(&rig);
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

/* The gate of a lane, found with that one and its reason, in the first grant behind what
 * `meta` has of its upstream's place; '-' if there was none. */
static char
gate_after(const char *places, uint64_t place, const char *gate)
{
	char meta[200], lanes[400];

	rig_anew(&rig);
	rig.upstream.place = place;
	(void)snprintf(meta, sizeof(meta),
	               "[0123456789abcdef0123456789abcdef '5-0 0' 1-0 on ~ ~ %s]",
	               places);
	(void)snprintf(lanes, sizeof(lanes),
	               "[0 [" SYSTEM ".0 '1%s0000000003000000000"
	               "9999910000000%014llu0000400000002900000%028d|default|claude:"
	               "large|" SYSTEM "|" SYSTEM "|']]",
	               gate, (unsigned long long)rig.now_ms + 200000, 0);
	rig_take_rule(&rig);
	rig_answer(&rig, rig_expect(&rig, "reap"), "[OK 1000 0 0 0]");
	rig_answer(&rig, rig_expect(&rig, "HMGET meta"), meta);
	rig_answer(&rig, rig_expect(&rig, "HKEYS unheld"), "[]");
	rig_answer(&rig, rig_expect(&rig, "audit"), "[OK 1000]");
	rig_answer(&rig, rig_expect(&rig, "HSCAN families"),
	           "[0 [" SYSTEM " '10081800000000000003000000000015000000642|default|"
	           "claude:large|" SYSTEM ".0||" SYSTEM "|triage|m']]");
	rig_answer(&rig, rig_expect(&rig, "HSCAN lanes"), lanes);
	rig_answer(&rig, rig_expect(&rig, "ZRANGE workers"), "[]");
	rig_step(&rig);
	rig_idle(&rig);
	rig_pass(&rig, 100);
	for (uint32_t i = 0; i < rig.calls_count; i++)
		if (strcmp(rig.calls[i].name, "grant") == 0 &&
		    rig_number(&rig.calls[i], 2) > 0)
			return rig_word(&rig.calls[i], 10)[0];
	return '-';
}

static char *
stored_places(void)
{
	for (uint32_t i = 0; i < rig.calls_count; i++)
		if (strcmp(rig.calls[i].name, "HSET meta") == 0 &&
		    strcmp(rig_word(&rig.calls[i], 1), "places") == 0)
			return strdup(rig_word(&rig.calls[i], 2));
	return NULL;
}

START_TEST(ruler_takes_for_cold_what_was_written_at_another_place)
{
	char *stored;

	/* the first one that looks finds nothing to compare with, and keeps what it has
	 */
	ck_assert_int_ne(gate_after("~", 7, "30"), '0');
	ck_assert(!rig_has_said(&rig, "go elsewhere than before"));
	stored = stored_places();
	ck_assert_ptr_nonnull(stored);
	ck_assert_int_ne(gate_after(stored, 7, "30"), '0');
	ck_assert_ptr_null(stored_places());
	ck_assert_int_eq(gate_after(stored, 8, "41"), '0');
	ck_assert_int_eq(gate_after(stored, 8, "55"), '0');
	ck_assert_int_eq(gate_after(stored, 8, "30"), '0');
	ck_assert(rig_has_said(&rig, "requests of claude go elsewhere than before"));
	free(stored);
	stored = stored_places();
	ck_assert_ptr_nonnull(stored);
	ck_assert_int_ne(gate_after(stored, 8, "30"), '0');
	ck_assert_int_ne(gate_after(stored, 8, "41"), '0');
	free(stored);
}
END_TEST

START_TEST(ruler_leaves_records_alone_that_it_cannot_read)
{
	rig_rule_over(&rig, "[0 [zz junk " TOOLS " 2junk]]",
	              "[0 [" SYSTEM ".0 junk x y]]");
	ck_assert_int_eq(rig_phase(&rig), RULER_RULING);
	ck_assert(rig_has_said(&rig, "the record of zz in families cannot be read"));
	ck_assert(
		rig_has_said(&rig, "the record of " SYSTEM ".0 in lanes cannot be read"));
}
END_TEST

START_TEST(ruler_audits_piece_by_piece)
{
	struct rig_call *call;

	rig_take_rule(&rig);
	rig_answer(&rig, rig_expect(&rig, "reap"), "[OK 1000 0 0 0]");
	rig_answer(&rig, rig_expect(&rig, "HMGET meta"), RIG_META);
	rig_answer(&rig, rig_expect(&rig, "HKEYS unheld"), "[]");
	call = rig_expect(&rig, "audit");
	ck_assert_str_eq(rig_word(call, 1), "1:0");
	rig_answer(&rig, call, "[OK 1000 2:512 ['in use' aa.0 2 1]]");
	ck_assert(
		rig_has_said(&rig, "the audit corrected in use of aa.0: it was 2, is 1"));
	call = rig_expect(&rig, "audit");
	ck_assert_str_eq(rig_word(call, 1), "2:512");
	ck_assert_ptr_null(rig_find(&rig, "HSCAN families"));
	rig_answer(&rig, call, "[OK 1000 '']");
	rig_answer(&rig, rig_expect(&rig, "HSCAN families"), "[0 []]");
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

START_TEST(ruler_says_so_when_the_books_do_not_balance_twice)
{
	rig_rule(&rig);
	rig_hold(&rig, "count");
	rig.now_ms += 600000;
	rig_answer(&rig, rig_expect(&rig, "count"), "[OK 1 1 5 3 4 0 0 1 0 0 0]");
	ck_assert(!rig_has_said(&rig, "the books do not balance"));
	rig.now_ms += 60000;
	rig_answer(&rig, rig_expect(&rig, "count"), "[OK 1 1 5 3 4 0 0 1 0 0 0]");
	ck_assert(
		rig_has_said(&rig, "the books do not balance: 3 jobs stand in no list"));
	rig.now_ms += 60000;
	rig_answer(&rig, rig_expect(&rig, "count"), "[OK 1 1 5 3 4 1 1 1 1 1 1]");
	ck_assert_uint_eq(ruler_view_health(rig.ruler, rig.now_ms).drift, 1);
}
END_TEST

RIG_SUITE_MAIN(
	"ruler_rebuild", ruler_finds_again_which_places_are_marked,
	ruler_takes_for_cold_what_was_written_at_another_place,
	ruler_leaves_records_alone_that_it_cannot_read, ruler_audits_piece_by_piece,
	ruler_audits_soon_when_functions_fail_and_once_more_behind_a_pass_under_way,
	ruler_says_so_when_the_books_do_not_balance_twice)
