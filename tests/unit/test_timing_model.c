#include "provider/model/timing_model.h"
#include "tests/lib/suite.h"

static struct timing_model
model_with(uint64_t seed, struct timing_knobs knobs)
{
	struct timing_model model;

	timing_model_init(&model, seed, &knobs);
	return model;
}

START_TEST(timing_prefill_is_uncached_tokens_at_ten_thousand_a_second)
{
	struct timing_model model =
		model_with(1, (struct timing_knobs){ .latency_us = 100000,
	                                             .prefill_per_second = 10000 });

	ck_assert_uint_eq(timing_model_plan(&model, 0, 0).first_byte_us, 100000);
	ck_assert_uint_eq(timing_model_plan(&model, 30000, 0).first_byte_us, 3100000);
	ck_assert_uint_eq(timing_model_plan(&model, 1, 0).first_byte_us, 100100);
}
END_TEST

START_TEST(timing_latency_spreads_twenty_percent_each_way)
{
	struct timing_model model =
		model_with(1, (struct timing_knobs)TIMING_KNOBS_DEFAULT);
	uint64_t low_us = UINT64_MAX, high_us = 0, sum_us = 0;

	for (int i = 0; i < 1000; i++) {
		uint64_t us = timing_model_plan(&model, 0, 0).first_byte_us;

		low_us = MIN(low_us, us);
		high_us = MAX(high_us, us);
		sum_us += us;
	}
	ck_assert_uint_ge(low_us, 80000);
	ck_assert_uint_lt(low_us, 81000);
	ck_assert_uint_le(high_us, 120000);
	ck_assert_uint_gt(high_us, 119000);
	ck_assert_uint_gt(sum_us / 1000, 98000);
	ck_assert_uint_lt(sum_us / 1000, 102000);
}
END_TEST

START_TEST(timing_job_time_wins_over_the_decode_rate)
{
	struct timing_knobs knobs = { .decode_per_second = 80 };
	struct timing_model model = model_with(1, knobs);

	ck_assert_uint_eq(timing_model_plan(&model, 0, 400).decode_us, 5000000);
	model.knobs.job_us = 2000000;
	ck_assert_uint_eq(timing_model_plan(&model, 0, 400).decode_us, 2000000);
}
END_TEST

START_TEST(timing_with_everything_zero_takes_no_time)
{
	struct timing_model model = model_with(1, (struct timing_knobs){ 0 });
	struct timing_plan plan = timing_model_plan(&model, UINT32_MAX, UINT32_MAX);

	ck_assert_uint_eq(plan.first_byte_us, 0);
	ck_assert_uint_eq(plan.decode_us, 0);
}
END_TEST

START_TEST(timing_same_seed_gives_the_same_times)
{
	struct timing_knobs knobs = TIMING_KNOBS_DEFAULT;
	struct timing_model a, b, c;
	bool differ = false;

	knobs.job_permille = 500;
	a = model_with(1, knobs);
	b = model_with(1, knobs);
	c = model_with(2, knobs);
	for (uint32_t i = 0; i < 100; i++) {
		struct timing_plan plan = timing_model_plan(&a, i, i);
		struct timing_plan same = timing_model_plan(&b, i, i);
		struct timing_plan other = timing_model_plan(&c, i, i);

		ck_assert_uint_eq(plan.first_byte_us, same.first_byte_us);
		ck_assert_uint_eq(plan.decode_us, same.decode_us);
		differ = differ || plan.first_byte_us != other.first_byte_us;
	}
	ck_assert(differ);
}
END_TEST

SUITE_MAIN("timing_model", timing_prefill_is_uncached_tokens_at_ten_thousand_a_second,
           timing_latency_spreads_twenty_percent_each_way,
           timing_job_time_wins_over_the_decode_rate,
           timing_with_everything_zero_takes_no_time,
           timing_same_seed_gives_the_same_times)
