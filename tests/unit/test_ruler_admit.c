/* How a ruler admits the jobs of the inbox. */
#include "scheduler/ruler_view.h"
#include "tests/lib/ruler_rig.h"
#include "tests/lib/suite.h"

#include <stdio.h>
#include <stdlib.h>

static struct rig rig;

START_TEST(ruler_admits_from_the_stored_cursor_to_the_last_entry)
{
	struct rig_call *admit;
	uint32_t count, at;

	rig_rule(&rig);
	ck_assert_str_eq(rig_word(rig_expect(&rig, "XREAD jobs"), 4), "5-0");
	rig_inbox(&rig, "[[6-0 " RIG_SMALL "] [7-3 " RIG_SMALL "]]");
	admit = rig_expect(&rig, "admit");
	ck_assert_str_eq(rig_word(admit, 0), RIG_OWNER);
	ck_assert_str_eq(rig_word(admit, 1), "5-0");
	ck_assert_str_eq(rig_word(admit, 3), "7-3");
	ck_assert_str_eq(rig_word(admit, 4), "0");
	at = rig_group(admit, 'E', &count);
	ck_assert_uint_eq(count, 2);
	ck_assert_str_eq(rig_word(admit, at), "6-0");
	ck_assert_str_eq(rig_word(admit, at + 1), "7-3");
	ck_assert_uint_eq(rig_group_count(admit, 'F'), 1);
	ck_assert_uint_eq(rig_group_count(admit, 'R'), 1);
	rig_answer(&rig, admit, "[OK 1000]");
	rig_inbox(&rig, "[[8-0 " RIG_SMALL "]]");
	admit = rig_expect(&rig, "admit");
	ck_assert_str_eq(rig_word(admit, 1), "7-3");
	ck_assert_uint_eq(rig_group_count(admit, 'F'),
	                  0); /* nothing new to say of the family */
}
END_TEST

START_TEST(ruler_sends_grants_in_the_pipeline_of_the_admit)
{
	rig_rule(&rig);
	rig_hold(&rig, "admit");
	rig_send_large(&rig, "6-0", 'a');
	rig_send_large(&rig, "7-0", 'a');
	ck_assert_ptr_nonnull(rig_find(&rig, "admit"));
	ck_assert_ptr_nonnull(rig_find(&rig, "grant"));
}
END_TEST

START_TEST(ruler_has_one_admit_under_way)
{
	rig_rule(&rig);
	rig_hold(&rig, "admit");
	rig_inbox(&rig, "[[6-0 " RIG_SMALL "]]");
	rig_inbox(&rig, "[[7-0 " RIG_SMALL "]]");
	rig_pass(&rig, 100);
	ck_assert_str_eq(rig_word(rig_find(&rig, "admit"), 3), "6-0");
	rig_answer(&rig, rig_find(&rig, "admit"), "[OK 1000]");
	ck_assert_str_eq(rig_word(rig_find(&rig, "admit"), 1), "6-0");
	ck_assert_str_eq(rig_word(rig_find(&rig, "admit"), 3), "7-0");
}
END_TEST

START_TEST(ruler_reads_all_anew_when_the_cursor_is_another)
{
	struct rig_call *admit;

	rig_rule(&rig);
	rig_inbox(&rig, "[[6-0 " RIG_SMALL "]]");
	admit = rig_expect(&rig, "admit");
	rig_forget(&rig);
	admit->answered = false;
	rig_answer(&rig, admit, "[CURSOR 4-0 0]");
	ck_assert_int_eq(rig_phase(&rig), RULER_REBUILDING);
	rig_answer(&rig, rig_find(&rig, "HMGET meta"), "[- '4-0 0' 1-0 on ~]");
	rig_answer(&rig, rig_expect(&rig, "HKEYS unheld"), "[]");
	rig_hold(&rig, "XREAD jobs");
	rig_idle(&rig);
	ck_assert_str_eq(rig_word(rig_expect(&rig, "XREAD jobs"), 4), "4-0");
	ck_assert_ptr_null(rig_find(&rig, "admit"));
}
END_TEST

START_TEST(ruler_sends_the_same_jobs_again_with_what_is_needed)
{
	struct rig_call *admit;
	char node[33], need[64];
	uint32_t at, count;
	uint64_t admitted;

	rig_rule(&rig);
	rig_send_large(&rig, "6-0", 'a');
	admit = rig_expect(&rig, "admit");
	at = rig_group(admit, 'X', &count);
	ck_assert_uint_eq(count, 2); /* tools and system */
	(void)snprintf(node, sizeof(node), "%s", rig_word(admit, at + 2));
	rig_answer(&rig, admit, "[OK 1000]");

	rig_send_large(&rig, "7-0", 'a');
	admit = rig_expect(&rig, "admit");
	ck_assert_uint_eq(rig_group_count(admit, 'X'), 0);
	admitted = ruler_view_health(rig.ruler, rig.now_ms).admitted;
	(void)snprintf(need, sizeof(need), "[NEED %s]", node);
	rig_answer(&rig, admit, need);
	admit = rig_find(&rig, "admit");
	at = rig_group(admit, 'X', &count);
	ck_assert_uint_eq(count, 1);
	ck_assert_str_eq(rig_word(admit, at), node);
	ck_assert_uint_eq(rig_group_count(admit, 'F'), 1);
	ck_assert_str_eq(rig_word(admit, 1), "6-0");
	ck_assert_str_eq(rig_word(admit, 3), "7-0");
	ck_assert_uint_eq(rig_group_count(admit, 'E'), 1);
	ck_assert_uint_eq(ruler_view_health(rig.ruler, rig.now_ms).admitted, admitted);
	rig_answer(&rig, admit, "[OK 1000]");
	ck_assert_int_eq(rig_phase(&rig), RULER_RULING);
}
END_TEST

/* A batch that is not taken has stored nothing, whatever it is that Redis misses. */
START_TEST(ruler_says_the_segments_again_of_a_batch_that_was_not_taken)
{
	struct rig_call *admit;
	uint32_t at, count;
	char need[64];

	rig_rule(&rig);
	rig_send_large(&rig, "6-0", 'a');
	admit = rig_expect(&rig, "admit");
	ck_assert_uint_eq(rig_group_count(admit, 'X'), 2);
	at = rig_group(admit, 'F', &count);
	(void)snprintf(need, sizeof(need), "[NEED %s]", rig_word(admit, at));
	rig_answer(&rig, admit, need);
	admit = rig_expect(&rig, "admit");
	ck_assert_uint_eq(rig_group_count(admit, 'X'), 2);
	rig_answer(&rig, admit, "[OK 1000]");
	rig_send_large(&rig, "7-0", 'a');
	ck_assert_uint_eq(rig_group_count(rig_expect(&rig, "admit"), 'X'), 0);
}
END_TEST

START_TEST(ruler_that_is_always_told_need_gives_up_its_memory)
{
	char need[64];
	struct rig_call *admit;
	uint32_t at, count;

	rig_rule(&rig);
	rig_send_large(&rig, "6-0", 'a');
	for (int i = 0; i < 10 && rig_phase(&rig) == RULER_RULING; i++) {
		admit = rig_expect(&rig, "admit");
		at = rig_group(admit, 'F', &count);
		(void)snprintf(need, sizeof(need), "[NEED %s]", rig_word(admit, at));
		rig_answer(&rig, admit, need);
	}
	ck_assert_int_eq(rig_phase(&rig), RULER_REBUILDING);
}
END_TEST

START_TEST(ruler_isolates_what_redis_refuses_and_buries_the_culprit)
{
	struct rig_call *admit;
	uint32_t at, count;

	rig_rule(&rig);
	rig_inbox(&rig, "[[6-0 " RIG_SMALL "] [7-0 " RIG_SMALL "]]");
	rig_answer(&rig, rig_expect(&rig, "admit"), "!ERR warmq admit: E: no");
	admit = rig_expect(&rig, "admit"); /* announced in meta, then alone */
	ck_assert_str_eq(rig_word(admit, 3), "6-0");
	ck_assert_uint_eq(rig_group_count(admit, 'E'), 1);
	rig_answer(&rig, admit, "!ERR warmq admit: E: no");
	admit = rig_expect(&rig, "admit");
	at = rig_group(admit, 'D', &count);
	ck_assert_uint_eq(count, 1);
	ck_assert_str_eq(rig_word(admit, at), "6-0");
	rig_answer(&rig, admit, "[OK 1000]");
	admit = rig_expect(&rig, "admit");
	ck_assert_uint_eq(rig_group_count(admit, 'E'), 1);
	ck_assert_str_eq(rig_word(admit, 3), "7-0");
}
END_TEST

/* What is wrong with all of them is the fault of none. */
START_TEST(ruler_buries_one_a_minute_while_nobody_is_admitted)
{
	static const char denied[] = "!ERR warmq admit: ERR value is not an integer";
	uint32_t count;

	rig_rule(&rig);
	rig_inbox(&rig, "[[6-0 " RIG_SMALL "] [7-0 " RIG_SMALL "]]");
	rig_answer(&rig, rig_expect(&rig, "admit"), denied);
	rig_answer(&rig, rig_expect(&rig, "admit"), denied);
	(void)rig_group(rig_expect(&rig, "admit"), 'D', &count);
	ck_assert_uint_eq(count, 1);
	rig_answer(&rig, rig_expect(&rig, "admit"), "[OK 1000]");
	rig_answer(&rig, rig_expect(&rig, "admit"), denied);
	/* 7-0 is tried again, for a minute */
	ck_assert_int_eq(rig_phase(&rig), RULER_ASKING);
}
END_TEST

/* A link that loses answers must not make an entry look like one that kills. */
START_TEST(ruler_takes_an_announcement_back_before_it_admits)
{
	struct rig_call *admit, *last = NULL;

	rig_rule(&rig);
	rig_inbox(&rig, "[[6-0 " RIG_SMALL "] [7-0 " RIG_SMALL "]]");
	rig_answer(&rig, rig_expect(&rig, "admit"), "!ERR warmq admit: E: no");
	admit = rig_expect(&rig, "admit");
	for (uint32_t i = 0; i < rig.calls_count && &rig.calls[i] != admit; i++)
		if (rig_position(&rig.calls[i], "admit_try", 0) != UINT32_MAX)
			last = &rig.calls[i];
	ck_assert_ptr_nonnull(last);
	ck_assert_str_eq(rig_word(last, last->count - 1), "5-0 0 1 -");
}
END_TEST

START_TEST(ruler_buries_nobody_for_a_redis_that_cannot_write)
{
	static const char *const answers[] = {
		"!MISCONF Redis is configured to save RDB snapshots, but is unable to",
		"!READONLY You can't write against a read only replica.",
		"!BUSY Redis is busy running a script.",
		"!ERR Error running script: Script killed by user with FUNCTION KILL.",
		"!ERR warmq admit: WRONGTYPE Operation against a key holding the wrong",
		"!ERR warmq admit: ERR The user executing the script can't access",
		"!ERR warmq speaks protocol 2, not 1",
	};
	for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
		rig_rule(&rig);
		rig_inbox(&rig, "[[6-0 " RIG_SMALL "]]");
		rig_answer(&rig, rig_expect(&rig, "admit"), answers[i]);
		/* it waits, and begins anew */
		ck_assert_int_eq(rig_phase(&rig), RULER_ASKING);
		rig_anew(&rig);
	}
}
END_TEST

/* Any producer can write an id of its own. */
START_TEST(ruler_counts_from_now_what_an_id_from_the_future_asks_for)
{
	static const char *const ids[] = { "99999999999998-0", "18446744073709551615-0" };

	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		char text[200];
		struct rig_call *admit;
		uint32_t at, count;

		rig_rule(&rig);
		(void)snprintf(text, sizeof(text),
		               "[[%s [upstream claude not_before +5s body {}]]]", ids[i]);
		rig_inbox(&rig, text);
		admit = rig_expect(&rig, "admit");
		at = rig_group(admit, 'L', &count);
		ck_assert_uint_eq(count, 1);
		ck_assert_uint_le(strtoull(rig_word(admit, at + 1), NULL, 10),
		                  rig.now_ms + 5000);
		rig_answer(&rig, admit, "[OK 1000]");

		/* Nor does it wait for its prefix until then. */
		(void)snprintf(text, sizeof(text),
		               "[[%s [upstream claude prefix none body {}]]]", ids[i]);
		rig_inbox(&rig, text);
		rig_answer(&rig, rig_expect(&rig, "GET prefix:none"), "~");
		admit = rig_expect(&rig, "admit");
		at = rig_group(admit, 'D', &count);
		ck_assert_uint_eq(count, 1);
		ck_assert_ptr_nonnull(strstr(rig_word(admit, at + 2), "does not wait"));
		rig_anew(&rig);
	}
}
END_TEST

/* A batch is bounded whatever becomes of its jobs. */
START_TEST(ruler_takes_a_page_of_jobs_that_wait_in_no_list)
{
	static const char *const jobs[] = {
		"upstream claude not_before +1d",
		"upstream nobody", /* dead */
		"put_prefix p",
	};
	static char list[2000 * 12], text[sizeof(list) + 100];

	memset(list, 0, sizeof(list));
	for (int i = 0; i < 1500; i++)
		memcpy(list + i * 12, i == 0 ? "{\"body\":{}} " : ",{\"body\":{}}", 12);
	rig_rule(&rig);
	for (size_t i = 0; i < ARRAY_SIZE(jobs); i++) {
		uint32_t taken = 0;

		(void)snprintf(text, sizeof(text), "[[6-0 [%s json '[%s]']]]", jobs[i],
		               list);
		rig_inbox(&rig, text);
		for (int calls = 0; calls < 3; calls++) {
			struct rig_call *admit = rig_expect(&rig, "admit");

			taken += rig_group_count(admit, 'L') +
			         rig_group_count(admit, 'D') +
			         rig_group_count(admit, 'P');
			rig_answer(&rig, admit, "[OK 1000]");
		}
		ck_assert_uint_eq(taken, 1500);
	}
}
END_TEST

START_TEST(ruler_goes_on_inside_a_pack)
{
	struct rig_call *rest, *admit;
	uint32_t at, count;

	rig_take_rule(&rig);
	rig_answer(&rig, rig_expect(&rig, "reap"), "[OK 1000 0 0 0]");
	rig_answer(&rig, rig_expect(&rig, "HMGET meta"), "[- '6-0 2' 1-0 on ~]");
	rig_answer(&rig, rig_expect(&rig, "HKEYS unheld"), "[]");
	rest = rig_expect(&rig, "XRANGE jobs");
	ck_assert_str_eq(rig_word(rest, 1), "6-0");
	rig_answer(&rig, rest,
	           "[[6-0 [upstream claude json "
	           "'[{\"body\":{}},{\"body\":{}},{\"body\":{}}]']]]");
	admit = rig_expect(&rig, "admit");
	ck_assert_str_eq(rig_word(admit, 1), "6-0");
	ck_assert_str_eq(rig_word(admit, 2), "2");
	ck_assert_str_eq(rig_word(admit, 3), "6-0");
	ck_assert_str_eq(rig_word(admit, 4), "0");
	at = rig_group(admit, 'E', &count);
	ck_assert_uint_eq(count, 1);
	ck_assert_str_eq(rig_word(admit, at), "6-0.3~");
	ck_assert_uint_eq(rig_group_count(admit, 'G'), 1);
}
END_TEST

START_TEST(ruler_reads_fewer_entries_when_they_are_large)
{
	char entries[30000] = "[";
	size_t len = 1;

	rig_rule(&rig);
	ck_assert_str_eq(rig_word(rig_expect(&rig, "XREAD jobs"), 1), "8");
	for (int i = 0; i < 8; i++) {
		char id[32];

		(void)snprintf(id, sizeof(id), "6-%d", i);
		len += (size_t)snprintf(entries + len, sizeof(entries) - len, "%s ",
		                        rig_large_entry(id, 'a'));
	}
	(void)snprintf(entries + len, sizeof(entries) - len, "]");
	rig_inbox(&rig, entries); /* 16 KB, more than the 10,000 aimed at */
	ck_assert_str_eq(rig_word(rig_expect(&rig, "XREAD jobs"), 1), "4");
	rig_inbox(&rig, "[[7-0 " RIG_SMALL "] [7-1 " RIG_SMALL "] [7-2 " RIG_SMALL
	                "] [7-3 " RIG_SMALL "]]");
	ck_assert_str_eq(rig_word(rig_expect(&rig, "XREAD jobs"), 1), "8");
}
END_TEST

/* Redis has no bound in bytes: the count is what a sudden run of large bodies can do. */
START_TEST(ruler_never_reads_so_many_that_large_ones_could_flood_it)
{
	static char entries[65536];
	unsigned count = 8, id = 0;

	rig_rule(&rig);
	for (int page = 0; page < 8; page++) {
		size_t len = 1;

		ck_assert_uint_le(count, 64);
		entries[0] = '[';
		for (unsigned i = 0; i < count; i++)
			len += (size_t)snprintf(entries + len, sizeof(entries) - len,
			                        "[6-%u [upstream claude body {}]] ",
			                        id++);
		(void)snprintf(entries + len, sizeof(entries) - len, "]");
		rig_inbox(&rig, entries);
		count = (unsigned)strtoul(rig_word(rig_expect(&rig, "XREAD jobs"), 1),
		                          NULL, 10);
	}
	ck_assert_uint_eq(count, 64);
}
END_TEST

#define ASKS(n)                                                    \
	"[upstream claude body '{\"model\":\"m\",\"messages\":[]," \
	"\"max_tokens\":" n "}']"

/* Whatever mixes in a family: a provider reserves what each asks for. */
START_TEST(ruler_reserves_no_less_than_a_job_asks_for)
{
	struct rig_call *admit;
	uint32_t count, at;

	rig_rule(&rig);
	rig_expect(&rig, "XREAD jobs");
	rig_inbox(&rig, "[[6-0 " ASKS("10") "] [6-1 " ASKS("8000") "] [6-2 " ASKS(
				"10") "] [6-3 " ASKS("7500") "]]");
	admit = rig_expect(&rig, "admit");
	at = rig_group(admit, 'F', &count);
	ck_assert_uint_eq(count, 1);
	ck_assert_str_eq(rig_word(admit, at + 6), "8000");
	at = rig_group(admit, 'E', &count);
	ck_assert_uint_eq(count, 4);
	ck_assert_str_eq(rig_word(admit, at), "6-0");
	ck_assert_str_eq(rig_word(admit, at + 1), "6-1");
	ck_assert_ptr_nonnull(strstr(rig_word(admit, at + 2), "6-2/"));
	ck_assert_ptr_nonnull(strstr(rig_word(admit, at + 2), ",10"));
	ck_assert_str_eq(rig_word(admit, at + 3), "6-3");
	rig_answer(&rig, admit, "[OK 1000]");
	rig_inbox(&rig, "[[7-1 " ASKS("8001") "]]");
	admit = rig_expect(&rig, "admit");
	at = rig_group(admit, 'F', &count);
	ck_assert_uint_eq(count, 1);
	ck_assert_str_eq(rig_word(admit, at + 6), "8001");
}
END_TEST

START_TEST(ruler_forgets_the_one_that_asked_for_much)
{
	struct rig_call *admit;
	uint32_t count, at;

	rig_rule(&rig);
	rig_expect(&rig, "XREAD jobs");
	rig_inbox(&rig, "[[6-0 " ASKS("90000") "]]");
	rig_answer(&rig, rig_expect(&rig, "admit"), "[OK 1000]");
	for (unsigned i = 1; i <= 1000; i++) {
		char text[200];

		(void)snprintf(text, sizeof text, "[[6-%u " ASKS("1000") "]]", i);
		rig_inbox(&rig, text);
		admit = rig_expect(&rig, "admit");
		at = rig_group(admit, 'F', &count);
		ck_assert_uint_eq(count, i == 1000);
		if (count > 0)
			ck_assert_str_eq(rig_word(admit, at + 6), "1000");
		rig_answer(&rig, admit, "[OK 1000]");
	}
	rig_inbox(&rig, "[[7-0 " ASKS("1000") "]]");
	admit = rig_expect(&rig, "admit");
	ck_assert_str_eq(rig_word(admit, rig_group(admit, 'E', &count)), "7-0");
}
END_TEST

START_TEST(ruler_retries_a_blocking_read_that_was_lost_alone)
{
	struct rig_call *read;

	rig_anew(&rig);
	rig.config.block_ms = 1000;
	rig_rule(&rig);
	read = rig_expect(&rig, "XREAD jobs");
	ck_assert(ruler_tag_blocks(read->tag));
	read->answered = true;
	ruler_answer(rig.ruler, rig.now_ms, read->tag, NULL);
	ck_assert_int_eq(rig_phase(&rig), RULER_RULING);
	read = rig_expect(&rig, "XREAD jobs");
	ck_assert_str_eq(rig_word(read, 2), "BLOCK");
}
END_TEST

RIG_SUITE_MAIN("ruler_admit", ruler_admits_from_the_stored_cursor_to_the_last_entry,
               ruler_sends_grants_in_the_pipeline_of_the_admit,
               ruler_has_one_admit_under_way,
               ruler_reads_all_anew_when_the_cursor_is_another,
               ruler_sends_the_same_jobs_again_with_what_is_needed,
               ruler_says_the_segments_again_of_a_batch_that_was_not_taken,
               ruler_that_is_always_told_need_gives_up_its_memory,
               ruler_isolates_what_redis_refuses_and_buries_the_culprit,
               ruler_buries_one_a_minute_while_nobody_is_admitted,
               ruler_takes_an_announcement_back_before_it_admits,
               ruler_buries_nobody_for_a_redis_that_cannot_write,
               ruler_counts_from_now_what_an_id_from_the_future_asks_for,
               ruler_takes_a_page_of_jobs_that_wait_in_no_list,
               ruler_goes_on_inside_a_pack, ruler_reads_fewer_entries_when_they_are_large,
               ruler_never_reads_so_many_that_large_ones_could_flood_it,
               ruler_reserves_no_less_than_a_job_asks_for,
               ruler_forgets_the_one_that_asked_for_much,
               ruler_retries_a_blocking_read_that_was_lost_alone)
