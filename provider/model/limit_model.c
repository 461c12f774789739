#include "provider/model/limit_model.h"

#define UNITS     60000000ll /* of balance per token: microseconds in a minute */
#define SECOND_US 1000000ull

static int64_t
limit_of(const struct limit_model *model, enum limit_bucket bucket)
{
	return model->knobs.per_minute[bucket];
}

/* A full bucket, in units. */
static int64_t
capacity_of(const struct limit_model *model, enum limit_bucket bucket)
{
	uint32_t burst_ms = model->knobs.burst_ms[bucket];

	return limit_of(model, bucket) * (burst_ms > 0 ? burst_ms : 60000) * 1000;
}

static void
refill(struct limit_model *model, uint64_t now_us)
{
	uint64_t elapsed_us = now_us - model->refilled_us;

	VERIFY(now_us >= model->refilled_us);
	for (enum limit_bucket i = 0; i < LIMIT_BUCKET_COUNT; i++) {
		int64_t capacity = capacity_of(model, i);
		int64_t missing = capacity - model->balance[i];
		int64_t limit = limit_of(model, i);

		if (limit == 0)
			continue;
		/* Compared before multiplying: a week of idleness must not overflow. */
		if (elapsed_us >= (uint64_t)(missing / limit + 1))
			model->balance[i] = capacity;
		else
			model->balance[i] += (int64_t)elapsed_us * limit;
	}
	model->refilled_us = now_us;
}

static void
give_back(struct limit_model *model, enum limit_bucket bucket, uint32_t tokens)
{
	if (limit_of(model, bucket) > 0)
		model->balance[bucket] = MIN(capacity_of(model, bucket),
		                             model->balance[bucket] + tokens * UNITS);
}

/* 0 if the bucket has what is needed, else how long until it will. */
static uint64_t
wait_for(const struct limit_model *model, enum limit_bucket bucket, uint32_t tokens)
{
	int64_t limit = limit_of(model, bucket);
	int64_t need = MIN(tokens * UNITS, capacity_of(model, bucket));

	if (limit == 0 || model->balance[bucket] >= need)
		return 0;
	return (uint64_t)((need - model->balance[bucket] + limit - 1) / limit);
}

static uint32_t
input_at_start(const struct limit_model *model, const struct limit_need *need)
{
	bool full = model->knobs.reads_charged || model->knobs.estimate_full;

	return need->input_tokens + (full ? need->read_tokens : 0) +
	       (model->knobs.output_joined ? need->output_tokens : 0);
}

/* Moves the window of the acceleration limit to `now`.  An idle second takes a quarter
 * off the peak, so that a fleet which pauses has to climb again. */
static void
turn_second(struct limit_model *model, uint64_t now_us)
{
	uint64_t second = now_us / SECOND_US;

	for (uint32_t turns = 0; model->second < second && turns < 64; turns++) {
		model->starts_peak = MAX(model->starts, model->starts_peak / 4 * 3);
		model->starts = 0;
		model->second++;
	}
	model->second = second;
}

static bool
is_too_steep(const struct limit_model *model)
{
	uint64_t growth = model->knobs.acceleration_permille;
	uint64_t allowed = model->starts_peak * (growth > 0 ? growth : 2000) / 1000;

	if (model->knobs.acceleration_floor == 0)
		return false;
	return model->starts >= MAX(allowed, model->knobs.acceleration_floor);
}

static enum limit_verdict
judge(const struct limit_model *model, uint64_t now_us, const uint32_t *need,
      uint64_t *ret_retry_us)
{
	static const enum limit_verdict verdicts[LIMIT_BUCKET_COUNT] = {
		[LIMIT_BUCKET_REQUESTS] = LIMIT_VERDICT_REQUESTS,
		[LIMIT_BUCKET_INPUT] = LIMIT_VERDICT_INPUT,
		[LIMIT_BUCKET_OUTPUT] = LIMIT_VERDICT_OUTPUT,
	};

	*ret_retry_us = 0;
	if (model->knobs.spend_cap)
		return LIMIT_VERDICT_SPEND;
	if (is_too_steep(model)) {
		*ret_retry_us = SECOND_US - now_us % SECOND_US;
		return LIMIT_VERDICT_ACCELERATION;
	}
	for (enum limit_bucket i = 0; i < LIMIT_BUCKET_COUNT; i++) {
		*ret_retry_us = wait_for(model, i, need[i]);
		if (*ret_retry_us > 0)
			return verdicts[i];
	}
	return LIMIT_VERDICT_OK;
}

/* Keeps every product inside 63 bits. */
static void
verify_knobs(const struct limit_knobs *knobs)
{
	for (enum limit_bucket i = 0; i < LIMIT_BUCKET_COUNT; i++) {
		VERIFY(knobs->per_minute[i] <= LIMIT_MODEL_PER_MINUTE_MAX);
		VERIFY(knobs->burst_ms[i] <= LIMIT_MODEL_BURST_MS_MAX);
	}
}

void
limit_model_init(struct limit_model *model, uint64_t now_us,
                 const struct limit_knobs *knobs)
{
	verify_knobs(knobs);
	*model = (struct limit_model){ .knobs = *knobs,
		                       .refilled_us = now_us,
		                       .second = now_us / SECOND_US };
	for (enum limit_bucket i = 0; i < LIMIT_BUCKET_COUNT; i++)
		model->balance[i] = capacity_of(model, i);
}

void
limit_model_set_knobs(struct limit_model *model, uint64_t now_us,
                      const struct limit_knobs *knobs)
{
	struct limit_knobs old = model->knobs;

	verify_knobs(knobs);
	refill(model, now_us);
	model->knobs = *knobs;
	for (enum limit_bucket i = 0; i < LIMIT_BUCKET_COUNT; i++) {
		int64_t capacity = capacity_of(model, i);

		if (old.per_minute[i] == 0)
			model->balance[i] = capacity;
		model->balance[i] = MIN(model->balance[i], capacity);
	}
}

enum limit_verdict
limit_model_start(struct limit_model *model, uint64_t now_us,
                  const struct limit_need *need, uint64_t *ret_retry_us)
{
	const uint32_t tokens[LIMIT_BUCKET_COUNT] = {
		[LIMIT_BUCKET_REQUESTS] = 1,
		[LIMIT_BUCKET_INPUT] = input_at_start(model, need),
		[LIMIT_BUCKET_OUTPUT] = need->output_tokens,
	};
	enum limit_verdict verdict;

	refill(model, now_us);
	turn_second(model, now_us);
	verdict = judge(model, now_us, tokens, ret_retry_us);
	if (verdict != LIMIT_VERDICT_OK) {
		if (model->knobs.refusals_counted &&
		    limit_of(model, LIMIT_BUCKET_REQUESTS))
			model->balance[LIMIT_BUCKET_REQUESTS] -= UNITS;
		return verdict;
	}
	for (enum limit_bucket i = 0; i < LIMIT_BUCKET_COUNT; i++)
		if (limit_of(model, i) > 0)
			model->balance[i] -= tokens[i] * UNITS;
	model->starts++;
	model->output_reserved += need->output_tokens;
	return LIMIT_VERDICT_OK;
}

void
limit_model_respond(struct limit_model *model, uint64_t now_us,
                    const struct limit_need *need)
{
	refill(model, now_us);
	if (model->knobs.estimate_full && !model->knobs.reads_charged)
		give_back(model, LIMIT_BUCKET_INPUT, need->read_tokens);
}

void
limit_model_finish(struct limit_model *model, uint64_t now_us,
                   const struct limit_need *need, uint32_t output_used)
{
	refill(model, now_us);
	VERIFY(output_used <= need->output_tokens);
	VERIFY(model->output_reserved >= need->output_tokens);
	model->output_reserved -= need->output_tokens;
	give_back(model, LIMIT_BUCKET_OUTPUT, need->output_tokens - output_used);
	if (model->knobs.output_joined)
		give_back(model, LIMIT_BUCKET_INPUT, need->output_tokens - output_used);
}

struct limit_level
limit_model_level(struct limit_model *model, uint64_t now_us, enum limit_bucket bucket)
{
	int64_t limit = limit_of(model, bucket);
	struct limit_level level = { .limit = (uint32_t)limit };

	refill(model, now_us);
	if (limit == 0)
		return level;
	level.remaining = (uint32_t)(MAX(model->balance[bucket], 0) / UNITS);
	level.full_us = (uint64_t)((capacity_of(model, bucket) - model->balance[bucket] +
	                            limit - 1) /
	                           limit);
	return level;
}
