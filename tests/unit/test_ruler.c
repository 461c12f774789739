/* The scheduler without sockets, against written answers: whom it obeys, when it rules
 * and what it asks for first, and that no answer brings it down. */
#include "scheduler/ruler_view.h"
#include "tests/lib/ruler_rig.h"
#include "tests/lib/suite.h"

#include <stdio.h>

static struct rig rig;

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
	ck_assert_int_eq(rig_phase(&rig), RULER_REBUILDING);
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
	ck_assert_int_eq(rig_phase(&rig), RULER_STANDBY);
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
		rig_anew(&rig);
		rig.config.audit_ms = 100;
		rig_rule(&rig);
		rig_hold(&rig, names[i]);
		rig_inbox(&rig, "[[6-0 " RIG_SMALL "]]");
		rig_answer(&rig, rig_expect(&rig, names[i]),
		           "[EPOCH 4:00000000000000cd]");
		ck_assert_int_eq(rig_phase(&rig), RULER_STANDBY);
		ck_assert(rig_has_said(&rig, "another scheduler took the rule over"));
	}
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
	ck_assert_int_eq(rig_phase(&rig), RULER_RULING);
}
END_TEST

START_TEST(ruler_that_lost_its_lease_begins_anew)
{
	rig_rule(&rig);
	rig_answer(&rig, rig_expect(&rig, "rule"), "[OK 3000 9:00000000000000ab 1]");
	ck_assert_int_eq(rig_phase(&rig), RULER_REAPING);
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
	ck_assert_int_eq(rig_phase(&rig), RULER_ASKING);
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
	ck_assert_int_eq(rig_phase(&rig), RULER_ASKING);
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
		ck_assert_int_eq(rig_phase(&rig), RULER_RULING);
		rig_answer(&rig, rig_expect(&rig, "rule"), "[OK 1000 " RIG_OWNER " 2]");
	}
	ck_assert(rig_has_said(&rig, "cursor of the inbox is missing"));
	ck_assert_uint_eq(rig_count(&rig, "XREAD jobs"), 0);
	ck_assert_uint_eq(rig_count(&rig, "HSCAN families"), 1);
	ck_assert(!ruler_view_health(rig.ruler, rig.now_ms).admits);
	rig_answer(&rig, rig_expect(&rig, "rule"), "[OK 1000 " RIG_OWNER " 0]");
	(void)rig_expect(&rig, "XREAD jobs");
	ck_assert(rig_has_said(&rig, "admitting goes on"));
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
	rig_take_rule(&rig);
	for (int i = 0; i < 10; i++) {
		rig_pass(&rig, 2500);
		ck_assert_int_eq(rig_phase(&rig), RULER_REBUILDING);
		renewal = rig_find(&rig, "rule");
		ck_assert_ptr_nonnull(renewal);
		rig_answer(&rig, renewal, "[OK 1000 " RIG_OWNER " 0]");
	}
	rig_pass(&rig, 2500);
	rig_answer(&rig, rig_expect(&rig, "rule"), "[HELD 4:00000000000000cd 6000]");
	ck_assert_int_eq(rig_phase(&rig), RULER_STANDBY);
	rig_answer(&rig, rig_expect(&rig, "HSCAN families"), "[0 []]"); /* nobody's now */
	ck_assert_int_eq(rig_phase(&rig), RULER_STANDBY);
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

/* ---- answers --------------------------------------------------------------------- */

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
		rig_anew(&rig);
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
		rig_anew(&rig);
		rig_rule(&rig);
		rig_hello(&rig);
		rig_send_large(&rig, "6-0", 'a');
		rig_send_large(&rig, "7-0", 'b');
		rig_send_large(&rig, "8-0", 'a');
		rig_pass(&rig, 5000);
		traces[i] = rig.trace;
	}
	ck_assert_uint_eq(traces[0], traces[1]);
}
END_TEST

RIG_SUITE_MAIN("ruler", ruler_reaps_before_it_reads_anything,
               ruler_stands_by_while_another_one_rules,
               ruler_obeys_epoch_wherever_it_hears_it, ruler_renews_every_two_seconds,
               ruler_that_lost_its_lease_begins_anew,
               ruler_gives_up_an_old_rule_and_asks_with_a_fresh_nonce,
               ruler_ignores_answers_of_an_earlier_life,
               ruler_asks_for_the_library_when_a_function_is_missing,
               ruler_waits_for_a_redis_that_loads,
               ruler_admits_nothing_until_there_is_a_cursor,
               ruler_renews_its_rule_while_it_takes_over,
               ruler_stops_by_giving_up_its_rule, ruler_survives_answers_of_any_shape,
               ruler_says_the_same_for_the_same_answers)
