#include "scheduler/core/model.h"

#include "common/mark.h"
#include "scheduler/core/state.h"

/* A first reader that was sent later than this without need says nothing about the lag,
 * and is no reason to trust: it waited for something else, a slot or the pace. */
#define PROMPT_MS 500

uint32_t
model_find(const struct core *core, struct id128 id)
{
	return table_find(&core->models_by_id, id);
}

static void
apply_traits(struct core *core, uint32_t index)
{
	VERIFY(index < core->models_count);
	for (uint32_t i = 0; i < core->config.families_max; i++)
		if (core->families[i].lanes_count > 0 && core->families[i].model == index)
			family_settle(core, i);
	for (uint32_t i = 0; i < core->config.lanes_max; i++)
		if (core->lanes[i].below.count > 0 && core->lanes[i].model == index)
			lane_touch(core, i);
}

void
model_configure(struct core *core, const struct event_model *traits)
{
	uint32_t index = model_find(core, traits->id);

	if (index == LIST_NONE) {
		index = core->models_count;
		if (table_put(&core->models_by_id, traits->id, index) < 0)
			return; /* its families run unheld */
		core->models_count++;
		core->models[index] = (struct model){ .lag_ms = EVENT_UNKNOWN };
	}
	VERIFY(index < core->models_count);
	core->models[index].traits = *traits;
	apply_traits(core, index);
}

uint64_t
model_check_after(const struct model *model)
{
	return model->lag_ms == EVENT_UNKNOWN ? 0 : model->lag_ms;
}

uint64_t
model_recheck_after(const struct core *core, const struct model *model)
{
	VERIFY(core->config.recheck_ms > 0);
	return MAX(core->config.recheck_ms, 2 * model_check_after(model));
}

static void
set_lag(struct core *core, struct model *model, uint64_t lag_ms)
{
	VERIFY(lag_ms <= core->config.lag_ms_max);
	if (model->lag_ms == lag_ms)
		return;
	model->lag_ms = lag_ms;
	note_id(core, COMMAND_NOTE_LAG, model->traits.id, lag_ms, 0);
}

void
model_take_hit(struct core *core, struct model *model, uint64_t offset_ms,
               uint32_t misses)
{
	uint64_t lag_ms = MIN(offset_ms, core->config.lag_ms_max);
	bool is_prompt = offset_ms <= model_check_after(model) + PROMPT_MS;

	VERIFY(model->proofs <= core->config.trust_proofs);
	if (misses == 0 && is_prompt && model->proofs < core->config.trust_proofs)
		if (++model->proofs == core->config.trust_proofs)
			note_id(core, COMMAND_NOTE_TRUST, model->traits.id, 1,
			        model->proofs);

	if (misses > 0) {
		if (model->lag_ms == EVENT_UNKNOWN || lag_ms > model->lag_ms)
			set_lag(core, model, lag_ms);
	} else if (model->lag_ms == EVENT_UNKNOWN) {
		if (is_prompt)
			set_lag(core, model, lag_ms);
	} else if (lag_ms < model->lag_ms && lag_ms > model->lag_missed_ms) {
		set_lag(core, model, lag_ms);
	}
}

void
model_take_miss(struct core *core, struct model *model, uint64_t offset_ms)
{
	VERIFY(model->lag_missed_ms <= core->config.lag_ms_max);
	model->lag_missed_ms =
		MAX(model->lag_missed_ms, MIN(offset_ms, core->config.lag_ms_max));
	model_distrust(core, model);
}

void
model_distrust(struct core *core, struct model *model)
{
	if (model_is_trusted(core, model)) {
		MARK(model_loses_trust);
		note_id(core, COMMAND_NOTE_TRUST, model->traits.id, 0, 0);
	}
	model->proofs = 0;
}

bool
model_is_trusted(const struct core *core, const struct model *model)
{
	VERIFY(model->proofs <= core->config.trust_proofs);
	return model->proofs == core->config.trust_proofs;
}

void
model_take_leader(struct model *model, uint64_t first_ms)
{
	model->samples_ms[model->samples_count % MODEL_SAMPLES] = first_ms;
	model->samples_count++;
}

void
model_take_send_delay(struct model *model, uint64_t delay_ms)
{
	model->send_delay_ms = MAX(delay_ms, model->send_delay_ms * 7 / 8);
}

/* The longest of the last sixteen: their 95th percentile, as far as sixteen have one. */
static uint64_t
longest(const struct model *model)
{
	uint64_t ms = 0;

	for (uint32_t i = 0; i < MIN(model->samples_count, MODEL_SAMPLES); i++)
		ms = MAX(ms, model->samples_ms[i]);
	return ms;
}

uint64_t
model_patience(const struct core *core, const struct model *model, uint64_t hold_max_ms)
{
	uint64_t ms = core->config.leader_ms_first;

	VERIFY(core->config.leader_ms_max > 0);
	if (model->samples_count > 0)
		ms = MAX(3 * longest(model), core->config.look_ms);
	ms = MIN(ms, core->config.leader_ms_max);
	return MIN(ms, hold_max_ms * 6 / 10);
}

uint64_t
model_life(const struct core *core, const struct model *model, uint64_t ttl_ms)
{
	uint64_t margin_ms = MAX(core->config.margin_ms, model->send_delay_ms);

	VERIFY(core->config.margin_ms > 0);
	if (ttl_ms == 0)
		return LANE_FOREVER;
	return ttl_ms - MIN(margin_ms, ttl_ms / 2);
}
