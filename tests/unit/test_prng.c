#include "common/prng.h"
#include "tests/lib/suite.h"

START_TEST(prng_matches_the_published_generators)
{
	struct prng prng = { { 1, 2, 3, 4 } };
	struct prng seeded;

	/* xoshiro256** from state 1, 2, 3, 4: the vectors of the Rust rand crate. */
	ck_assert_uint_eq(prng_next(&prng), 11520);
	ck_assert_uint_eq(prng_next(&prng), 0);
	ck_assert_uint_eq(prng_next(&prng), 1509978240);
	ck_assert_uint_eq(prng_next(&prng), 1215971899390074240);

	/* splitmix64 of seed 1234567 begins so. */
	prng_init(&seeded, 1234567);
	ck_assert_uint_eq(seeded.state[0], 6457827717110365317u);
	ck_assert_uint_eq(seeded.state[1], 3203168211198807973u);
}
END_TEST

START_TEST(prng_same_seed_same_numbers)
{
	struct prng a, b, c;
	bool differs = false;

	prng_init(&a, 7);
	prng_init(&b, 7);
	prng_init(&c, 8);
	for (int i = 0; i < 100; i++) {
		uint64_t x = prng_next(&a);

		ck_assert_uint_eq(x, prng_next(&b));
		differs |= x != prng_next(&c);
	}
	ck_assert(differs);
}
END_TEST

START_TEST(prng_below_reaches_every_value_and_none_beyond)
{
	unsigned seen[6] = { 0 };
	struct prng prng;

	prng_init(&prng, 1);
	for (int i = 0; i < 6000; i++) {
		uint64_t x = prng_below(&prng, 6);

		ck_assert_uint_lt(x, 6);
		seen[x]++;
	}
	for (int i = 0; i < 6; i++) {
		ck_assert_uint_gt(seen[i], 850); /* 1000 +- 5 standard deviations */
		ck_assert_uint_lt(seen[i], 1150);
	}
	ck_assert_uint_eq(prng_below(&prng, 1), 0);
}
END_TEST

START_TEST(prng_between_includes_both_ends)
{
	bool low = false, high = false;
	struct prng prng;

	prng_init(&prng, 1);
	for (int i = 0; i < 200; i++) {
		uint64_t x = prng_between(&prng, 3, 5);

		ck_assert_uint_ge(x, 3);
		ck_assert_uint_le(x, 5);
		low |= x == 3;
		high |= x == 5;
	}
	ck_assert(low);
	ck_assert(high);
	ck_assert_uint_eq(prng_between(&prng, 9, 9), 9);
	(void)prng_between(&prng, 0, UINT64_MAX);
}
END_TEST

START_TEST(prng_chance_zero_never_and_thousand_always)
{
	unsigned hits = 0;
	struct prng prng;

	prng_init(&prng, 3);
	for (int i = 0; i < 10000; i++) {
		SUITE_HOLDS(!prng_chance(&prng, 0));
		SUITE_HOLDS(prng_chance(&prng, 1000));
		hits += prng_chance(&prng, 250);
	}
	ck_assert_uint_gt(hits, 2280);
	ck_assert_uint_lt(hits, 2720);
}
END_TEST

START_TEST(prng_fork_leaves_the_parent_one_draw_further)
{
	struct prng a, b, child;

	prng_init(&a, 5);
	prng_init(&b, 5);
	child = prng_fork(&a);
	(void)prng_next(&child);
	(void)prng_next(&b);
	ck_assert_uint_eq(prng_next(&a), prng_next(&b));
}
END_TEST

START_TEST(prng_below_zero_dies)
{
	struct prng prng;

	prng_init(&prng, 1);
	(void)prng_below(&prng, 0);
}
END_TEST

SUITE_MAIN_WITH_DEATHS("prng",
                       SUITE_LIST(prng_matches_the_published_generators,
                                  prng_same_seed_same_numbers,
                                  prng_below_reaches_every_value_and_none_beyond,
                                  prng_between_includes_both_ends,
                                  prng_chance_zero_never_and_thousand_always,
                                  prng_fork_leaves_the_parent_one_draw_further),
                       SUITE_LIST(prng_below_zero_dies))
