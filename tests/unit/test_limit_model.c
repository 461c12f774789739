#include "provider/model/limit_model.h"
#include "tests/lib/suite.h"

#define SECOND_US 1000000ull
#define MINUTE_US (60 * SECOND_US)

/* 4,000 requests, 450,000 in, 90,000 out: the limits of a small paying account. */
static const struct limit_knobs tier = { .per_minute = { 4000, 450000, 90000 } };

static struct limit_model
model_with(struct limit_knobs knobs)
{
	struct limit_model model;

	limit_model_init(&model, 0, &knobs);
	return model;
}

static enum limit_verdict
start(struct limit_model *model, uint64_t now_us, struct limit_need need)
{
	uint64_t retry_us;

	return limit_model_start(model, now_us, &need, &retry_us);
}

static uint32_t
starts_at(struct limit_model *model, uint64_t now_us, struct limit_need need)
{
	uint32_t count = 0;

	while (count < 10000 && start(model, now_us, need) == LIMIT_VERDICT_OK)
		count++;
	return count;
}

START_TEST(limit_without_limits_everything_starts)
{
	struct limit_model model = model_with((struct limit_knobs){ 0 });

	ck_assert_uint_eq(
		starts_at(&model, 0, (struct limit_need){ 1000000, 0, 1000000 }), 10000);
	ck_assert_uint_eq(limit_model_level(&model, 0, LIMIT_BUCKET_INPUT).limit, 0);
}
END_TEST

START_TEST(limit_input_lets_fifteen_cold_prefixes_of_30000_start)
{
	struct limit_model model = model_with(tier);
	struct limit_need need = { .input_tokens = 30000 };
	uint64_t retry_us;

	ck_assert_uint_eq(starts_at(&model, 0, need), 15);
	ck_assert_int_eq(limit_model_start(&model, 0, &need, &retry_us),
	                 LIMIT_VERDICT_INPUT);
	ck_assert_uint_eq(retry_us, 4 * SECOND_US); /* 30,000 at 7,500 a second */
	ck_assert_int_eq(start(&model, 4 * SECOND_US - 1, need), LIMIT_VERDICT_INPUT);
	ck_assert_int_eq(start(&model, 4 * SECOND_US, need), LIMIT_VERDICT_OK);
}
END_TEST

START_TEST(limit_reads_are_free_of_input)
{
	struct limit_model model = model_with(tier);

	ck_assert_uint_eq(starts_at(&model, 0, (struct limit_need){ 100, 30000, 0 }),
	                  4000);
}
END_TEST

START_TEST(limit_reads_are_charged_where_the_provider_says_so)
{
	struct limit_knobs knobs = tier;
	struct limit_model model;

	knobs.reads_charged = true;
	model = model_with(knobs);
	ck_assert_uint_eq(starts_at(&model, 0, (struct limit_need){ 100, 29900, 0 }), 15);
}
END_TEST

START_TEST(limit_full_estimate_is_corrected_when_the_response_begins)
{
	struct limit_knobs knobs = tier;
	struct limit_model model;
	struct limit_need need = { 100, 29900, 0 };

	knobs.estimate_full = true;
	model = model_with(knobs);
	ck_assert_uint_eq(starts_at(&model, 0, need), 15);
	for (int i = 0; i < 15; i++)
		limit_model_respond(&model, 0, &need);
	ck_assert_uint_eq(limit_model_level(&model, 0, LIMIT_BUCKET_INPUT).remaining,
	                  450000 - 15 * 100);
}
END_TEST

START_TEST(limit_output_is_reserved_by_max_tokens_in_full)
{
	struct limit_model model = model_with(tier);
	struct limit_need need = { 100, 0, 8192 };
	uint64_t retry_us;

	ck_assert_uint_eq(starts_at(&model, 0, need), 10);
	ck_assert_int_eq(limit_model_start(&model, 0, &need, &retry_us),
	                 LIMIT_VERDICT_OUTPUT);
	ck_assert_uint_eq(model.output_reserved, 10 * 8192);
	/* An answer of 192 tokens gives 8,000 back; then one more fits. */
	limit_model_finish(&model, 0, &need, 192);
	ck_assert_uint_eq(limit_model_level(&model, 0, LIMIT_BUCKET_OUTPUT).remaining,
	                  90000 - 10 * 8192 + 8000);
	ck_assert_uint_eq(starts_at(&model, 0, need), 1);
}
END_TEST

START_TEST(limit_joined_output_takes_from_the_input_bucket)
{
	struct limit_knobs knobs = { .per_minute = { 0, 10000 }, .output_joined = true };
	struct limit_model model = model_with(knobs);
	struct limit_need need = { 1000, 0, 4000 };

	ck_assert_uint_eq(starts_at(&model, 0, need), 2);
	limit_model_finish(&model, 0, &need, 0);
	ck_assert_uint_eq(limit_model_level(&model, 0, LIMIT_BUCKET_INPUT).remaining,
	                  4000);
}
END_TEST

START_TEST(limit_need_larger_than_the_bucket_starts_from_a_full_one_and_leaves_debt)
{
	struct limit_model model = model_with(tier);
	struct limit_need need = { .output_tokens = 120000 };

	ck_assert_int_eq(start(&model, 0, need), LIMIT_VERDICT_OK);
	ck_assert_uint_eq(limit_model_level(&model, 0, LIMIT_BUCKET_OUTPUT).remaining, 0);
	/* 30,000 of debt and 90,000 of capacity, at 1,500 a second: 80 s. */
	ck_assert_uint_eq(limit_model_level(&model, 0, LIMIT_BUCKET_OUTPUT).full_us,
	                  80 * SECOND_US);
	ck_assert_int_eq(start(&model, 80 * SECOND_US - 1, need), LIMIT_VERDICT_OUTPUT);
	ck_assert_int_eq(start(&model, 80 * SECOND_US, need), LIMIT_VERDICT_OK);
}
END_TEST

START_TEST(limit_refused_request_takes_nothing)
{
	struct limit_model model = model_with(tier);

	ck_assert_uint_eq(starts_at(&model, 0, (struct limit_need){ 0, 0, 8192 }), 10);
	ck_assert_uint_eq(limit_model_level(&model, 0, LIMIT_BUCKET_REQUESTS).remaining,
	                  3990);
	ck_assert_uint_eq(limit_model_level(&model, 0, LIMIT_BUCKET_INPUT).remaining,
	                  450000);
}
END_TEST

START_TEST(limit_refused_request_may_still_count_as_one)
{
	struct limit_knobs knobs = { .per_minute = { 60, 0, 90000 },
		                     .refusals_counted = true };
	struct limit_model model = model_with(knobs);

	ck_assert_uint_eq(starts_at(&model, 0, (struct limit_need){ 0, 0, 90000 }), 1);
	ck_assert_uint_eq(limit_model_level(&model, 0, LIMIT_BUCKET_REQUESTS).remaining,
	                  58);
}
END_TEST

START_TEST(limit_sixty_per_minute_may_be_one_per_second)
{
	struct limit_knobs knobs = { .per_minute = { 60 }, .burst_ms = { 1000 } };
	struct limit_model model = model_with(knobs);
	struct limit_need need = { 0 };

	ck_assert_uint_eq(starts_at(&model, 0, need), 1);
	ck_assert_int_eq(start(&model, SECOND_US - 1, need), LIMIT_VERDICT_REQUESTS);
	ck_assert_int_eq(start(&model, SECOND_US, need), LIMIT_VERDICT_OK);
}
END_TEST

START_TEST(limit_bucket_never_holds_more_than_a_minute)
{
	struct limit_model model = model_with(tier);
	struct limit_need need = { .input_tokens = 30000 };

	ck_assert_uint_eq(starts_at(&model, 365ull * 24 * 60 * MINUTE_US, need), 15);
	ck_assert_uint_eq(starts_at(&model, 1000ull * 365 * 24 * 60 * MINUTE_US, need),
	                  15);
}
END_TEST

START_TEST(limit_many_small_refills_lose_nothing)
{
	struct limit_model model =
		model_with((struct limit_knobs){ .per_minute = { 0, 7 } });

	ck_assert_int_eq(start(&model, 0, (struct limit_need){ .input_tokens = 7 }),
	                 LIMIT_VERDICT_OK);
	for (uint64_t us = 1; us < MINUTE_US; us += 997)
		(void)limit_model_level(&model, us, LIMIT_BUCKET_INPUT);
	ck_assert_uint_eq(
		limit_model_level(&model, MINUTE_US - 1, LIMIT_BUCKET_INPUT).remaining,
		6);
	ck_assert_uint_eq(
		limit_model_level(&model, MINUTE_US, LIMIT_BUCKET_INPUT).remaining, 7);
}
END_TEST

START_TEST(limit_time_to_full_is_rounded_up)
{
	struct limit_model model =
		model_with((struct limit_knobs){ .per_minute = { 0, 7 } });

	ck_assert_int_eq(start(&model, 0, (struct limit_need){ .input_tokens = 1 }),
	                 LIMIT_VERDICT_OK);
	/* 60,000,000 / 7 = 8,571,428.57 */
	ck_assert_uint_eq(limit_model_level(&model, 0, LIMIT_BUCKET_INPUT).full_us,
	                  8571429);
}
END_TEST

START_TEST(limit_spend_cap_refuses_without_a_retry_time)
{
	struct limit_knobs knobs = { .spend_cap = true };
	struct limit_model model = model_with(knobs);
	struct limit_need need = { 0 };
	uint64_t retry_us = 7;

	ck_assert_int_eq(limit_model_start(&model, 0, &need, &retry_us),
	                 LIMIT_VERDICT_SPEND);
	ck_assert_uint_eq(retry_us, 0);
	ck_assert_int_eq(start(&model, 100 * MINUTE_US, need), LIMIT_VERDICT_SPEND);
}
END_TEST

START_TEST(limit_acceleration_allows_doubling_per_second)
{
	struct limit_knobs knobs = { .acceleration_floor = 32 };
	struct limit_model model = model_with(knobs);
	struct limit_need need = { 0 };
	uint64_t retry_us;

	ck_assert_uint_eq(starts_at(&model, 0, need), 32);
	ck_assert_int_eq(limit_model_start(&model, 250000, &need, &retry_us),
	                 LIMIT_VERDICT_ACCELERATION);
	ck_assert_uint_eq(retry_us, 750000);
	ck_assert_uint_eq(starts_at(&model, 1 * SECOND_US, need), 64);
	ck_assert_uint_eq(starts_at(&model, 2 * SECOND_US, need), 128);
	/* A long silence and the fleet begins at the floor again. */
	ck_assert_uint_eq(starts_at(&model, 600 * SECOND_US, need), 32);
}
END_TEST

START_TEST(limit_change_keeps_debt_and_cuts_to_the_new_capacity)
{
	struct limit_model model = model_with(tier);
	struct limit_knobs knobs = tier;

	knobs.per_minute[LIMIT_BUCKET_INPUT] = 1000;
	knobs.per_minute[LIMIT_BUCKET_OUTPUT] = 0;
	limit_model_set_knobs(&model, 0, &knobs);
	ck_assert_uint_eq(limit_model_level(&model, 0, LIMIT_BUCKET_INPUT).remaining,
	                  1000);
	ck_assert_uint_eq(starts_at(&model, 0, (struct limit_need){ 0, 0, 1000000 }),
	                  4000);
}
END_TEST

START_TEST(limit_dies_of_an_answer_longer_than_asked_for)
{
	struct limit_model model = model_with(tier);
	struct limit_need need = { 0, 0, 10 };

	ck_assert_int_eq(start(&model, 0, need), LIMIT_VERDICT_OK);
	limit_model_finish(&model, 0, &need, 11);
}
END_TEST

SUITE_MAIN_WITH_DEATHS(
	"limit_model",
	SUITE_LIST(
		limit_without_limits_everything_starts,
		limit_input_lets_fifteen_cold_prefixes_of_30000_start,
		limit_reads_are_free_of_input,
		limit_reads_are_charged_where_the_provider_says_so,
		limit_full_estimate_is_corrected_when_the_response_begins,
		limit_output_is_reserved_by_max_tokens_in_full,
		limit_joined_output_takes_from_the_input_bucket,
		limit_need_larger_than_the_bucket_starts_from_a_full_one_and_leaves_debt,
		limit_refused_request_takes_nothing,
		limit_refused_request_may_still_count_as_one,
		limit_sixty_per_minute_may_be_one_per_second,
		limit_bucket_never_holds_more_than_a_minute,
		limit_many_small_refills_lose_nothing, limit_time_to_full_is_rounded_up,
		limit_spend_cap_refuses_without_a_retry_time,
		limit_acceleration_allows_doubling_per_second,
		limit_change_keeps_debt_and_cuts_to_the_new_capacity),
	SUITE_LIST(limit_dies_of_an_answer_longer_than_asked_for))
