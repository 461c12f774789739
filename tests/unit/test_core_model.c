#include "scheduler/core/model.h"

#include "scheduler/core/state.h"
#include "tests/lib/core_rig.h"
#include "tests/lib/suite.h"

/* The one model of a fresh rig. */
static struct model *
model_of(struct core_rig *rig)
{
	VERIFY(rig->core->models_count == 1);
	return &rig->core->models[0];
}

static struct core_rig *
fresh(void)
{
	struct core_config config = core_rig_config();

	return core_rig_create(&config, 10);
}

START_TEST(model_before_anything_is_known_the_first_reader_goes_at_once)
{
	struct core_rig *rig = fresh();

	ck_assert_uint_eq(model_check_after(model_of(rig)), 0);
	ck_assert_uint_eq(model_recheck_after(rig->core, model_of(rig)), 2000);
	core_rig_free(rig);
}
END_TEST

START_TEST(model_lag_is_the_time_of_the_first_hit)
{
	struct core_rig *rig = fresh();
	struct model *model = model_of(rig);

	model_take_hit(rig->core, model, 120, 0);
	ck_assert_uint_eq(model_check_after(model), 120);
	model_take_hit(rig->core, model, 80, 0); /* shorter: known better */
	ck_assert_uint_eq(model_check_after(model), 80);
	model_take_hit(rig->core, model, 300, 0); /* longer says nothing new */
	ck_assert_uint_eq(model_check_after(model), 80);
	core_rig_free(rig);
}
END_TEST

START_TEST(model_lag_after_a_miss_is_that_of_the_next_hit)
{
	struct core_rig *rig = fresh();
	struct model *model = model_of(rig);

	model_take_hit(rig->core, model, 80, 0);
	model_take_miss(rig->core, model, 90);
	model_take_hit(rig->core, model, 2010, 1);
	ck_assert_uint_eq(model_check_after(model), 2010);
	ck_assert_uint_eq(model_recheck_after(rig->core, model), 4020);
	model_take_hit(rig->core, model, 85, 0); /* somebody missed later than that */
	ck_assert_uint_eq(model_check_after(model), 2010);
	core_rig_free(rig);
}
END_TEST

START_TEST(model_lag_is_never_believed_beyond_its_limit)
{
	struct core_rig *rig = fresh();
	struct model *model = model_of(rig);

	model_take_miss(rig->core, model, 5000);
	model_take_hit(rig->core, model, 60000, 2);
	ck_assert_uint_eq(model_check_after(model), rig->core->config.lag_ms_max);
	core_rig_free(rig);
}
END_TEST

START_TEST(model_a_first_reader_that_was_late_for_other_reasons_teaches_no_lag)
{
	struct core_rig *rig = fresh();

	model_take_hit(rig->core, model_of(rig), 3000, 0);
	ck_assert_uint_eq(model_check_after(model_of(rig)), 0);
	core_rig_free(rig);
}
END_TEST

START_TEST(model_is_not_trusted_for_readers_that_were_late_for_other_reasons)
{
	struct core_rig *rig = fresh();
	struct model *model = model_of(rig);
	uint32_t proofs = rig->core->config.trust_proofs;

	for (uint32_t i = 0; i < proofs; i++)
		model_take_hit(rig->core, model, 501, 0);
	ck_assert(!model_is_trusted(rig->core, model)); /* the lag may be half a second */
	model_take_miss(rig->core, model, 90);
	model_take_hit(rig->core, model, 2000, 1);
	for (uint32_t i = 1; i < proofs; i++)
		model_take_hit(rig->core, model, 2500, 0);
	ck_assert(!model_is_trusted(rig->core, model));
	model_take_hit(rig->core, model, 2501, 0);
	ck_assert(!model_is_trusted(rig->core, model));
	model_take_hit(rig->core, model, 2500, 0);
	ck_assert(model_is_trusted(rig->core, model));
	core_rig_free(rig);
}
END_TEST

START_TEST(model_is_trusted_after_twenty_proofs_in_a_row_until_a_miss)
{
	struct core_rig *rig = fresh();
	struct model *model = model_of(rig);

	for (int i = 0; i < 19; i++)
		model_take_hit(rig->core, model, 10, 0);
	ck_assert(!model_is_trusted(rig->core, model));
	model_take_hit(rig->core, model, 10, 0);
	ck_assert(model_is_trusted(rig->core, model));
	model_take_miss(rig->core, model, 10);
	ck_assert(!model_is_trusted(rig->core, model));
	model_take_hit(rig->core, model, 10, 1); /* not a first reader */
	ck_assert_uint_eq(model->proofs, 0);
	core_rig_free(rig);
}
END_TEST

START_TEST(model_patience_is_three_times_the_slowest_leader_within_bounds)
{
	struct core_rig *rig = fresh();
	struct model *model = model_of(rig);
	uint64_t long_hold = 1000000;

	ck_assert_uint_eq(model_patience(rig->core, model, long_hold), 30000);
	ck_assert_uint_eq(model_patience(rig->core, model, 30000), 18000);
	model_take_leader(model, 8000);
	model_take_leader(model, 4000);
	ck_assert_uint_eq(model_patience(rig->core, model, long_hold), 24000);
	model_take_leader(model, 90000);
	ck_assert_uint_eq(model_patience(rig->core, model, long_hold), 60000);
	for (int i = 0; i < MODEL_SAMPLES; i++)
		model_take_leader(model, 100);
	ck_assert_uint_eq(model_patience(rig->core, model, long_hold), 5000);
	core_rig_free(rig);
}
END_TEST

START_TEST(model_life_is_the_ttl_less_a_margin)
{
	struct core_rig *rig = fresh();
	struct model *model = model_of(rig);

	ck_assert_uint_eq(model_life(rig->core, model, 300000), 290000);
	ck_assert_uint_eq(model_life(rig->core, model, 5000), 2500);
	ck_assert_uint_eq(model_life(rig->core, model, 0), LANE_FOREVER);
	model_take_send_delay(model, 40000);
	ck_assert_uint_eq(model_life(rig->core, model, 300000), 260000);
	model_take_send_delay(model, 0); /* forgotten by and by */
	ck_assert_uint_eq(model_life(rig->core, model, 300000), 265000);
	core_rig_free(rig);
}
END_TEST

SUITE_MAIN("core_model", model_before_anything_is_known_the_first_reader_goes_at_once,
           model_lag_is_the_time_of_the_first_hit,
           model_lag_after_a_miss_is_that_of_the_next_hit,
           model_lag_is_never_believed_beyond_its_limit,
           model_a_first_reader_that_was_late_for_other_reasons_teaches_no_lag,
           model_is_not_trusted_for_readers_that_were_late_for_other_reasons,
           model_is_trusted_after_twenty_proofs_in_a_row_until_a_miss,
           model_patience_is_three_times_the_slowest_leader_within_bounds,
           model_life_is_the_ttl_less_a_margin)
