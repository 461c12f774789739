#include "provider/model/fault_model.h"
#include "tests/lib/suite.h"

START_TEST(fault_without_knobs_nothing_goes_wrong)
{
	struct fault_model model;

	fault_model_init(&model, 1, &(struct fault_knobs){ 0 });
	for (int i = 0; i < 1000; i++)
		ck_assert_int_eq(fault_model_draw(&model), FAULT_NONE);
}
END_TEST

START_TEST(fault_script_is_exact_and_runs_out)
{
	struct fault_model model;

	fault_model_init(
		&model, 1,
		&(struct fault_knobs){ .next = FAULT_OVERLOADED, .next_count = 3 });
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(fault_model_draw(&model), FAULT_OVERLOADED);
	ck_assert_int_eq(fault_model_draw(&model), FAULT_NONE);
}
END_TEST

START_TEST(fault_rates_are_per_thousand)
{
	struct fault_knobs knobs = { .permille = {
					     [FAULT_HANG] = 100, [FAULT_CUT] = 300 } };
	struct fault_model model;
	int counts[FAULT_COUNT] = { 0 };

	fault_model_init(&model, 1, &knobs);
	for (int i = 0; i < 10000; i++)
		counts[fault_model_draw(&model)]++;
	ck_assert_int_gt(counts[FAULT_HANG], 900);
	ck_assert_int_lt(counts[FAULT_HANG], 1100);
	ck_assert_int_gt(counts[FAULT_CUT], 2800);
	ck_assert_int_lt(counts[FAULT_CUT], 3200);
	ck_assert_int_eq(counts[FAULT_NONE] + counts[FAULT_HANG] + counts[FAULT_CUT],
	                 10000);
}
END_TEST

START_TEST(fault_rates_of_a_thousand_leave_nothing_whole)
{
	struct fault_knobs knobs = {
		.permille = { [FAULT_BAD_REQUEST] = 500, [FAULT_GARBAGE] = 500 }
	};
	struct fault_model model;

	fault_model_init(&model, 1, &knobs);
	for (int i = 0; i < 1000; i++)
		ck_assert_int_ne(fault_model_draw(&model), FAULT_NONE);
}
END_TEST

START_TEST(fault_comes_before_or_during_the_work)
{
	ck_assert(!fault_is_before(FAULT_NONE));
	ck_assert(fault_is_before(FAULT_BAD_REQUEST));
	ck_assert(fault_is_before(FAULT_OVERLOADED));
	ck_assert(fault_is_before(FAULT_HANG));
	ck_assert(!fault_is_before(FAULT_LOSE_REPLY));
	ck_assert(!fault_is_before(FAULT_GARBAGE));
}
END_TEST

SUITE_MAIN("fault_model", fault_without_knobs_nothing_goes_wrong,
           fault_script_is_exact_and_runs_out, fault_rates_are_per_thousand,
           fault_rates_of_a_thousand_leave_nothing_whole,
           fault_comes_before_or_during_the_work)
