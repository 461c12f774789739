#include "scheduler/tally.h"

#include "tests/lib/suite.h"

#include <stdio.h>
#include <stdlib.h>

#define NOW 1000000

static struct tally tally;

static void
clear(void)
{
	memset(&tally, 0, sizeof(tally));
}

static uint32_t
see(uint64_t now_ms, const char *kind, int number)
{
	char name[32];

	(void)snprintf(name, sizeof(name), "%s-%d", kind, number);
	return tally_route(&tally, now_ms, span_from(name));
}

/* ---- routes ---------------------------------------------------------------------- */

START_TEST(tally_the_first_routes_have_names_the_others_share_one)
{
	clear();
	for (int i = 0; i < TALLY_ROUTES; i++)
		ck_assert_int_eq((int)see(NOW, "route", i), i);
	for (int i = 0; i < TALLY_ROUTES; i++)
		ck_assert_int_eq((int)see(NOW, "route", i), i);
	for (int i = 0; i < 100000; i++)
		SUITE_HOLDS(see(NOW, "stranger", i) == TALLY_OTHER);
	ck_assert_uint_eq(tally.routes_count, TALLY_ROUTES);
}
END_TEST

START_TEST(tally_no_route_can_be_called_as_the_others_are)
{
	clear();
	ck_assert_uint_eq(tally_route(&tally, NOW, SPAN("other")), TALLY_OTHER);
	ck_assert_uint_eq(tally_route(&tally, NOW, SPAN("")), TALLY_OTHER);
	ck_assert_uint_eq(tally.routes_count, 0);
}
END_TEST

static void
call(uint64_t now_ms, const char *route, uint64_t read)
{
	struct protocol_usage usage = protocol_usage_none();

	usage.read = (int64_t)read;
	tally_call(&tally, now_ms,
	           &(struct tally_call){
			   .route = span_from(route), .usage = &usage, .job = true });
}

START_TEST(tally_a_busier_route_takes_the_place_of_the_least_one_and_begins_at_zero)
{
	uint32_t place;

	clear();
	for (int i = 0; i < 10 * TALLY_ROUTES; i++)
		(void)see(NOW, i % TALLY_ROUTES ? "busy" : "lazy", i % TALLY_ROUTES);
	call(NOW, "lazy-0", 500);
	place = see(NOW, "lazy", 0);
	ck_assert_uint_eq(tally.routes[place].done, 1);
	for (int i = 0; i < 1000; i++)
		ck_assert_uint_eq(see(NOW, "new", 0), TALLY_OTHER); /* too soon */
	ck_assert_uint_ne(see(NOW + TALLY_SWAP_MS, "new", 0), TALLY_OTHER);
	for (int i = 0; i < 1000; i++) /* one at a time */
		ck_assert_uint_eq(see(NOW + TALLY_SWAP_MS, "newer", 0), TALLY_OTHER);
	place = see(NOW + TALLY_SWAP_MS, "new", 0);
	ck_assert_uint_eq(tally.routes[place].done, 0);
	for (uint32_t i = 0; i < tally.rows_count; i++)
		ck_assert_uint_ne(tally.rows[i].route, place);
	call(NOW + TALLY_SWAP_MS, "new-0", 7);
	ck_assert_uint_eq(tally.rows[tally.rows_count - 1].read, 7);
}
END_TEST

START_TEST(tally_a_route_that_is_no_busier_does_not_push_another_one_out)
{
	clear();
	for (int round = 0; round < 200; round++)
		for (int i = 0; i < TALLY_ROUTES + 5; i++)
			(void)see(NOW + (uint64_t)round * TALLY_SWAP_MS, "even", i);
	for (int i = 0; i < TALLY_ROUTES; i++)
		ck_assert_int_eq((int)see(NOW + 200 * TALLY_SWAP_MS, "even", i), i);
}
END_TEST

/* ---- calls ----------------------------------------------------------------------- */

START_TEST(tally_times_of_a_job_go_where_they_belong)
{
	struct protocol_usage usage = protocol_usage_none();
	struct tally_call job = { .pool = 1,
		                  .upstream = 2,
		                  .route = SPAN("r"),
		                  .usage = &usage,
		                  .at_ms = NOW + 5000,
		                  .held_ms = 3000,
		                  .job = true };
	const struct histogram *times;

	clear();
	usage.wait_ms = 4000;
	usage.sent_ms = NOW;
	usage.first_ms = NOW + 250;
	usage.read = 900;
	tally_call(&tally, NOW, &job);
	times = tally.groups[0].times;
	ck_assert_uint_eq(times[TALLY_WAIT].sum_ms, 4000);
	ck_assert_uint_eq(times[TALLY_HELD].sum_ms, 3000);
	ck_assert_uint_eq(times[TALLY_FIRST].sum_ms, 250);
	ck_assert_uint_eq(times[TALLY_RUN].sum_ms, 5000);
	ck_assert_uint_eq(tally.routes[0].done + tally.routes[0].hits, 2);
	job.held_ms = 0; /* it was not held: it says nothing of holds */
	usage.wait_ms = PROTOCOL_UNKNOWN;
	tally_call(&tally, NOW, &job);
	ck_assert_uint_eq(histogram_count(&times[TALLY_HELD]), 1);
	ck_assert_uint_eq(histogram_count(&times[TALLY_WAIT]), 1);
	ck_assert_uint_eq(histogram_count(&times[TALLY_RUN]), 2);
	job.job = false; /* a warm-up costs tokens and is no job */
	tally_call(&tally, NOW, &job);
	ck_assert_uint_eq(histogram_count(&times[TALLY_RUN]), 2);
	ck_assert_uint_eq(tally.routes[0].done, 2);
	ck_assert_uint_eq(tally.rows[0].read, 2700);
}
END_TEST

START_TEST(tally_whatever_comes_the_number_of_series_is_bounded_and_nothing_is_lost)
{
	struct protocol_usage usage = protocol_usage_none();
	uint64_t read = 0, runs = 0;

	clear();
	usage.read = 1;
	usage.sent_ms = NOW;
	for (uint32_t i = 0; i < 20000; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "route-%u", i % 3000);
		tally_call(&tally, NOW,
		           &(struct tally_call){ .pool = i % 40,
		                                 .upstream = i % 7,
		                                 .domain = i % 100,
		                                 .route = span_from(name),
		                                 .at_ms = NOW,
		                                 .usage = &usage,
		                                 .job = true });
	}
	ck_assert_uint_eq(tally.rows_count, TALLY_ROWS);
	ck_assert_uint_eq(tally.groups_count, TALLY_GROUPS);
	for (uint32_t i = 0; i < tally.rows_count; i++)
		read += tally.rows[i].read;
	for (uint32_t i = 0; i < tally.groups_count; i++)
		runs += histogram_count(&tally.groups[i].times[TALLY_RUN]);
	ck_assert_uint_eq(read, 20000);
	ck_assert_uint_eq(runs, 20000);
}
END_TEST

START_TEST(tally_words_that_nobody_listed_are_counted_as_other)
{
	const char *const *words;
	uint32_t count = tally_words(TALLY_DEAD, &words);

	clear();
	tally_count(&tally, TALLY_DEAD, SPAN("poison"));
	tally_count(&tally, TALLY_DEAD, SPAN("made-up"));
	tally_count(&tally, TALLY_DEAD, SPAN(""));
	for (uint32_t i = 0; i < count; i++)
		ck_assert_uint_eq(tally.counts[TALLY_DEAD][i],
		                  strcmp(words[i], "poison") == 0  ? 1
		                  : strcmp(words[i], "other") == 0 ? 2
		                                                   : 0);
}
END_TEST

/* ---- holds ----------------------------------------------------------------------- */

START_TEST(tally_held_is_what_a_wait_and_a_hold_have_in_common)
{
	struct tally_hold hold = { 0 };

	ck_assert_uint_eq(tally_hold_within(&hold, 0, NOW), 0); /* never held */
	tally_hold_begin(&hold, 1000);
	ck_assert_uint_eq(tally_hold_within(&hold, 500, 1200), 200);
	ck_assert_uint_eq(tally_hold_within(&hold, 1100, 1200), 100);
	tally_hold_begin(&hold, 1500); /* another writer: the same hold */
	ck_assert_uint_eq(tally_hold_within(&hold, 500, 1600), 600);
	tally_hold_end(&hold, 2000);
	ck_assert_uint_eq(tally_hold_within(&hold, 500, 9000), 1000);
	ck_assert_uint_eq(tally_hold_within(&hold, 2000, 9000), 0);
	ck_assert_uint_eq(tally_hold_within(&hold, 100, 900), 0);
	tally_hold_end(&hold, 3000); /* nothing to end */
	ck_assert_uint_eq(hold.to_ms, 2000);
	tally_hold_begin(&hold, 5000); /* the next one; the old one is forgotten */
	ck_assert_uint_eq(tally_hold_within(&hold, 500, 6000), 1000);
}
END_TEST

SUITE_MAIN("tally", tally_the_first_routes_have_names_the_others_share_one,
           tally_no_route_can_be_called_as_the_others_are,
           tally_a_busier_route_takes_the_place_of_the_least_one_and_begins_at_zero,
           tally_a_route_that_is_no_busier_does_not_push_another_one_out,
           tally_times_of_a_job_go_where_they_belong,
           tally_whatever_comes_the_number_of_series_is_bounded_and_nothing_is_lost,
           tally_words_that_nobody_listed_are_counted_as_other,
           tally_held_is_what_a_wait_and_a_hold_have_in_common)
