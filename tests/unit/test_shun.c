#include "tests/lib/suite.h"
#include "worker/core/shun.h"

#include <stdio.h>

#define UP SPAN("up")

static struct shun_list list;

/* Missed as often as it takes, at second 1. */
static void
begin(void)
{
	list = (struct shun_list){ .count = 0 };
	for (int i = 1; i < SHUN_MISSES; i++)
		ck_assert(!shun_miss(&list, 1000, UP, 0, false));
	ck_assert_uint_eq(shun_count(&list), 0);
	ck_assert(shun_miss(&list, 1000, UP, 0, false));
}

/* One job is tried, and its upstream missed again, at this time. */
static void
miss_again(uint64_t now_ms)
{
	uint32_t index = shun_due(&list, now_ms);

	ck_assert_uint_ne(index, SHUN_NONE);
	shun_try(&list, now_ms, index);
	ck_assert_uint_eq(shun_due(&list, now_ms + SHUN_TRY_MS - 1), SHUN_NONE);
	shun_tried(&list, now_ms, index, true, 0);
	ck_assert(!shun_miss(&list, now_ms, UP, 0, false));
}

static void
check_words(const char *expected)
{
	char words[SHUN_WORDS_SIZE];

	ck_assert(span_equals((struct span){ words, shun_print(&list, words) },
	                      span_from(expected)));
}

START_TEST(shun_takes_some_misses_in_a_row)
{
	begin();
	ck_assert_uint_eq(shun_count(&list), 1);
	check_words("up");
	ck_assert(shun_reach(&list, UP, false));
	ck_assert_uint_eq(shun_count(&list), 0);
	check_words("");
	for (int i = 0; i < 100; i++) {
		ck_assert(!shun_miss(&list, 1000, UP, 0, false));
		ck_assert(!shun_miss(&list, 1000, UP, 0, false));
		ck_assert(!shun_reach(&list, UP, false));
	}
	ck_assert_uint_eq(list.count, 0);
}
END_TEST

START_TEST(shun_of_what_another_answers_ends_by_an_answer)
{
	list = (struct shun_list){ .count = 0 };
	for (int i = 1; i < SHUN_MISSES; i++) {
		ck_assert(!shun_reach(&list, UP, false)); /* its request leaves */
		ck_assert(!shun_miss(&list, 1000, UP, 0, true));
	}
	ck_assert(shun_miss(&list, 1000, UP, 0, true));
	ck_assert(!shun_reach(&list, UP, false));
	ck_assert_uint_eq(shun_count(&list), 1);
	ck_assert(shun_reach(&list, UP, true));
	ck_assert_uint_eq(shun_count(&list), 0);
}
END_TEST

START_TEST(shun_tries_after_a_pause_and_not_for_those_claimed_before)
{
	begin();
	for (int i = 0; i < 50; i++)
		ck_assert(!shun_miss(&list, 1500, UP, 0, false));
	ck_assert_uint_eq(shun_due_ms(&list), 1000 + SHUN_MS);
	ck_assert_uint_eq(shun_due(&list, 1000 + SHUN_MS - 1), SHUN_NONE);
	ck_assert_uint_eq(shun_due(&list, 1000 + SHUN_MS), 0);
}
END_TEST

START_TEST(shun_pauses_longer_once_the_scheduler_had_time_to_call_it_away)
{
	uint64_t now_ms = 1000, pause_ms = 0;

	begin();
	while (now_ms < 1000 + SHUN_PATIENCE_MS) {
		ck_assert_uint_eq(shun_due_ms(&list), now_ms + SHUN_MS);
		now_ms += SHUN_MS;
		miss_again(now_ms);
	}
	for (pause_ms = 2 * SHUN_MS; pause_ms < SHUN_MS_MAX; pause_ms *= 2) {
		ck_assert_uint_eq(shun_due_ms(&list), now_ms + pause_ms);
		now_ms += pause_ms;
		miss_again(now_ms);
	}
	for (int i = 0; i < 5; i++) {
		ck_assert_uint_eq(shun_due_ms(&list), now_ms + SHUN_MS_MAX);
		now_ms += SHUN_MS_MAX;
		miss_again(now_ms);
	}
}
END_TEST

START_TEST(shun_does_not_pause_longer_for_what_is_away_for_everybody)
{
	uint64_t now_ms = 1000;

	begin();
	for (int i = 0; i < 100; i++) {
		ck_assert_uint_eq(shun_due_ms(&list), now_ms + SHUN_MS);
		now_ms += SHUN_MS;
		shun_pace(&list, now_ms, UP, 1);
		miss_again(now_ms);
	}
}
END_TEST

START_TEST(shun_that_grew_is_short_again_when_it_is_away_for_everybody)
{
	begin();
	for (int i = 0; i < 20; i++)
		miss_again(shun_due_ms(&list));
	ck_assert_uint_gt(list.shuns[0].pause_ms, SHUN_MS);
	shun_pace(&list, 500000, UP, 32);
	ck_assert_uint_gt(list.shuns[0].pause_ms, SHUN_MS);
	shun_pace(&list, 500000, UP, 1);
	ck_assert_uint_le(shun_due_ms(&list), 500000 + SHUN_MS);
}
END_TEST

START_TEST(shun_asks_again_soon_if_there_was_no_job_to_try)
{
	begin();
	shun_try(&list, 3000, 0);
	shun_tried(&list, 3010, 0, false, 60000);
	ck_assert_uint_eq(shun_due_ms(&list), 3010 + SHUN_MS);
	shun_tried(&list, 5000, 0, false, 0);
	ck_assert_uint_eq(shun_due_ms(&list), 5000 + SHUN_MS / 2);
}
END_TEST

START_TEST(shun_jitter_shortens_a_pause_by_a_quarter_at_most)
{
	for (uint64_t jitter = 0; jitter < 5000; jitter += 7) {
		list = (struct shun_list){ .count = 0 };
		for (int i = 0; i < SHUN_MISSES; i++)
			(void)shun_miss(&list, 0, UP, jitter, false);
		ck_assert_uint_ge(shun_due_ms(&list), SHUN_MS - SHUN_MS / 4);
		ck_assert_uint_le(shun_due_ms(&list), SHUN_MS);
	}
}
END_TEST

START_TEST(shun_knows_upstreams_apart_up_to_its_bound)
{
	char name[8];

	list = (struct shun_list){ .count = 0 };
	for (int i = 0; i < SHUN_MISSES; i++) {
		for (int u = 0; u < SHUN_MAX + 4; u++) {
			(void)snprintf(name, sizeof name, "u%d", u);
			(void)shun_miss(&list, 1000 + (uint64_t)u, span_from(name), 0,
			                false);
		}
	}
	ck_assert_uint_eq(shun_count(&list), SHUN_MAX);
	ck_assert_uint_eq(shun_due(&list, 100000), 0); /* the first is due for longest */
	ck_assert(shun_reach(&list, SPAN("u0"), false));
	ck_assert(!shun_reach(&list, SPAN("u17"), false));
	ck_assert_uint_eq(shun_due(&list, 100000), 1);
	ck_assert_uint_eq(shun_due_ms(&list), 1001 + SHUN_MS);
}
END_TEST

START_TEST(shun_takes_names_only)
{
	list = (struct shun_list){ .count = 0 };
	for (int i = 0; i < 10; i++) {
		ck_assert(!shun_miss(&list, 1, SPAN(""), 0, false));
		ck_assert(!shun_miss(&list, 1, SPAN("a,b"), 0, false));
	}
	ck_assert(!shun_reach(&list, SPAN(""), false));
	shun_pace(&list, 1, SPAN(""), 1);
	ck_assert_uint_eq(list.count, 0);
	ck_assert_uint_eq(shun_due_ms(&list), UINT64_MAX);
}
END_TEST

SUITE_MAIN("shun", shun_takes_some_misses_in_a_row,
           shun_of_what_another_answers_ends_by_an_answer,
           shun_tries_after_a_pause_and_not_for_those_claimed_before,
           shun_pauses_longer_once_the_scheduler_had_time_to_call_it_away,
           shun_does_not_pause_longer_for_what_is_away_for_everybody,
           shun_that_grew_is_short_again_when_it_is_away_for_everybody,
           shun_asks_again_soon_if_there_was_no_job_to_try,
           shun_jitter_shortens_a_pause_by_a_quarter_at_most,
           shun_knows_upstreams_apart_up_to_its_bound, shun_takes_names_only)
