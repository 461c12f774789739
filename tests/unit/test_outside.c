#include "scheduler/outside.h"

#include "tests/lib/suite.h"

#define T0 1800000000000u

static struct outside outside;

/* A bucket of `limit` a minute that `own` requests a second of ours and `foreign` of
 * somebody else's take from, for `seconds`; ours say what is left. */
static struct outside_sum
play(uint32_t limit, uint32_t own, uint32_t foreign, uint32_t seconds, uint32_t unsaid)
{
	uint64_t thousandths = (uint64_t)limit * 1000;

	memset(&outside, 0, sizeof(outside));
	for (uint64_t ms = 0; ms < (uint64_t)seconds * 1000; ms += 10) {
		uint32_t all = own + foreign;

		thousandths = MIN(thousandths + (uint64_t)limit * 10 / 60,
		                  (uint64_t)limit * 1000);
		for (uint32_t i = 0; i < all; i++) {
			if (ms % 1000 != i * 1000 / all / 10 * 10 || thousandths < 1000)
				continue;
			thousandths -= 1000;
			if (i % all >= own)
				continue;
			if (ms + 1000 * (uint64_t)unsaid >= (uint64_t)seconds * 1000)
				continue; /* it still runs */
			outside_take(&outside, T0 + ms, (int64_t)(thousandths / 1000),
			             limit);
		}
	}
	return outside_sum(&outside, T0 + (uint64_t)seconds * 1000, own * unsaid);
}

START_TEST(outside_our_own_requests_are_not_foreign)
{
	ck_assert_uint_eq(play(600, 4, 0, 300, 0).foreign, 0);
	ck_assert_uint_eq(play(600, 9, 0, 300, 0).foreign, 0);
	ck_assert_uint_eq(play(600, 30, 0, 300, 0).foreign, 0); /* far above the limit */
	ck_assert_uint_eq(play(600, 4, 0, 300, 0).own, 4 * 300);
	ck_assert_uint_eq(play(600, 12, 0, 120, 8).foreign, 0); /* some still run */
}
END_TEST

START_TEST(outside_what_takes_from_us_is_seen)
{
	/* 4 + 10 a second where 10 a second refill: from the beginning they take. */
	struct outside_sum sum = play(600, 4, 10, 120, 0);

	ck_assert_uint_ge(sum.foreign, 4 * 120 * 6 / 10);
	ck_assert_uint_le(sum.foreign, 10 * 120);
	/* What refills at once is hidden: never more than there was. */
	sum = play(600, 1, 2, 300, 0);
	ck_assert_uint_le(sum.foreign, 2 * 300);
}
END_TEST

START_TEST(outside_nothing_is_said_without_a_limit)
{
	memset(&outside, 0, sizeof(outside));
	for (uint64_t i = 0; i < 60; i++)
		outside_take(&outside, T0 + i * 1000, 60 - (int64_t)i, -1);
	ck_assert_uint_eq(outside_sum(&outside, T0 + 60000, 0).foreign, 0);
	ck_assert_uint_eq(outside_sum(&outside, T0 + 60000, 0).own, 60);
	/* Long ago is forgotten, and what is older than the ring changes nothing. */
	ck_assert_uint_eq(outside_sum(&outside, T0 + 3600000, 0).own, 0);
	outside_take(&outside, T0 + OUTSIDE_SECONDS * 1000, 5, 100);
	outside_take(&outside, T0, 1, 100);
	ck_assert_uint_eq(outside_sum(&outside, T0 + OUTSIDE_SECONDS * 1000, 0).own, 1);
}
END_TEST

/* Bursts of ours over the end of a second: the provider takes them in an order of its
 * own, so what the last one to be sent was told is not what was left at last. */
START_TEST(outside_a_burst_that_overtakes_itself_is_not_foreign)
{
	enum {
		BURST = 100
	};
	uint64_t left = 1100;

	memset(&outside, 0, sizeof(outside));
	for (uint64_t second = 0; second < 300; second += 5) {
		left = MIN(left + 1100 * 5 / 60, 1100);
		for (uint64_t i = 0; i < BURST; i++) {
			/* By turns the first one and the last one of them reports last.
			 */
			uint64_t taken = second % 10 ? i + 1 : BURST - i;

			outside_take(&outside, T0 + second * 1000 + 950 + i,
			             (int64_t)(left - taken), 1100);
		}
		left -= BURST;
	}
	ck_assert_uint_eq(outside_sum(&outside, T0 + 300000, 0).own, 60 * BURST);
	ck_assert_uint_eq(outside_sum(&outside, T0 + 300000, 0).foreign, 0);
}
END_TEST

SUITE_MAIN("outside", outside_our_own_requests_are_not_foreign,
           outside_what_takes_from_us_is_seen,
           outside_a_burst_that_overtakes_itself_is_not_foreign,
           outside_nothing_is_said_without_a_limit)
