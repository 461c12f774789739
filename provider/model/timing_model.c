#include "provider/model/timing_model.h"

#define SECOND_US 1000000ull

static uint64_t
draw_spread(struct prng *prng, uint64_t value_us, uint32_t permille)
{
	uint64_t spread_us = value_us * permille / 1000;

	return prng_between(prng, value_us - spread_us, value_us + spread_us);
}

static uint64_t
span_us(uint32_t tokens, uint32_t per_second)
{
	return per_second > 0 ? tokens * SECOND_US / per_second : 0;
}

void
timing_model_init(struct timing_model *model, uint64_t seed,
                  const struct timing_knobs *knobs)
{
	VERIFY(knobs->latency_permille <= 1000);
	VERIFY(knobs->job_permille <= 1000);
	model->knobs = *knobs;
	prng_init(&model->prng, seed);
}

struct timing_plan
timing_model_plan(struct timing_model *model, uint32_t prefill_tokens,
                  uint32_t output_tokens)
{
	const struct timing_knobs *knobs = &model->knobs;
	struct timing_plan plan;
	uint64_t job_us = knobs->job_us > 0
	                          ? knobs->job_us
	                          : span_us(output_tokens, knobs->decode_per_second);

	/* Both are always drawn, so that one knob does not shift the other's numbers. */
	plan.first_byte_us =
		draw_spread(&model->prng, knobs->latency_us, knobs->latency_permille) +
		span_us(prefill_tokens, knobs->prefill_per_second);
	plan.decode_us = draw_spread(&model->prng, job_us, knobs->job_permille);
	return plan;
}
