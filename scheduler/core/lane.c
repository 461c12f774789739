#include "scheduler/core/lane_state.h"

#include "common/mark.h"
#include "scheduler/core/credit.h"
#include "scheduler/core/gate.h"
#include "scheduler/core/state.h"

/* Which states may follow which; a bit is 1 << gate. */
#define TO(gate) (1u << (gate))
static const uint32_t followers[LANE_GATE_COUNT] = {
	[LANE_CLOSED] =
		TO(LANE_WRITING) | TO(LANE_CHECKING) | TO(LANE_OPEN) | TO(LANE_BYPASS),
	[LANE_WRITING] =
		TO(LANE_CLOSED) | TO(LANE_CHECKING) | TO(LANE_OPEN) | TO(LANE_BYPASS),
	[LANE_CHECKING] =
		TO(LANE_CLOSED) | TO(LANE_OPEN) | TO(LANE_BYPASS) | TO(LANE_LEAKY),
	[LANE_OPEN] = TO(LANE_CLOSED) | TO(LANE_BYPASS) | TO(LANE_LEAKY),
	[LANE_BYPASS] = TO(LANE_CLOSED) | TO(LANE_OPEN),
	[LANE_LEAKY] = TO(LANE_CLOSED) | TO(LANE_OPEN) | TO(LANE_BYPASS),
};

/* Jobs of a burst are admitted one by one.  The first would start cold, without a marker,
 * some milliseconds before its siblings show that they share its prefix.  So many tokens
 * are worth a millisecond of waiting: 2 % of what a provider takes to read them. */
#define COMPANY_TOKENS 500

/* A lane without a lifetime is tried again so often. */
#define RETRY_MS 300000

/* Lanes of one node on several domains are different keys. */
static struct id128
key_of(struct lane_id id)
{
	id.node.high ^= (uint64_t)id.domain * 0x9e3779b97f4a7c15;
	return id.node;
}

uint32_t
lane_find(const struct core *core, struct lane_id id)
{
	return table_find(&core->lanes_by_id, key_of(id));
}

uint32_t
lane_obtain(struct core *core, struct lane_id id, uint32_t model, uint32_t parent)
{
	uint32_t index = lane_find(core, id);

	VERIFY(parent == LANE_NONE || parent < core->config.lanes_max);
	VERIFY(model < core->models_count);
	if (index != LANE_NONE)
		return index;
	if (core->lanes_free.head == LIST_NONE ||
	    table_put(&core->lanes_by_id, key_of(id), core->lanes_free.head) < 0)
		return LANE_NONE;

	index = list_pop(&core->lanes_free, core->lane_home);
	core->lanes[index] = (struct lane){
		.id = id,
		.model = model,
		.parent = parent,
		.family = FAMILY_NONE,
		.gate = LANE_BYPASS,
		.reason = LANE_REASON_UNSHARED,
		.until_ms = LANE_FOREVER,
		.stage = 1,
		.granted = { .gate = LANE_GATE_COUNT },
	};
	list_init(&core->lanes[index].below);
	core->counts.lanes++;
	core->counts.lanes_by_gate[LANE_BYPASS]++;
	return index;
}

void
lane_release(struct core *core, uint32_t index)
{
	struct lane *lane = &core->lanes[index];

	VERIFY(index < core->config.lanes_max);
	if (lane->below.count > 0)
		return;
	VERIFY(lane->unproven == 0);
	VERIFY(lane->gating == 0);
	VERIFY(lane->family == FAMILY_NONE);
	VERIFY(table_remove(&core->lanes_by_id, key_of(lane->id)));
	if (core->lane_home[index].in)
		list_remove(&core->dirty, core->lane_home, index);
	state_arm(core, state_lane_timer(core, index), CORE_DEADLINE_NONE);
	core->counts.lanes--;
	core->counts.lanes_by_gate[lane->gate]--;
	list_push(&core->lanes_free, core->lane_home, index);
}

/* A reason that evidence cannot change. */
static bool
is_bypassed_for_good(const struct lane *lane)
{
	return lane->gate == LANE_BYPASS && lane->until_ms == LANE_FOREVER;
}

static uint64_t
retry_at(const struct core *core, const struct lane *lane, enum lane_reason reason)
{
	VERIFY(reason != LANE_REASON_NONE);
	VERIFY(reason < LANE_REASON_COUNT);
	if (reason == LANE_REASON_BELOW_MINIMUM || reason == LANE_REASON_UNSHARED ||
	    reason == LANE_REASON_OPAQUE || lane->gating == 0)
		return LANE_FOREVER;
	return core->now_ms + (lane->ttl_ms > 0 ? lane->ttl_ms : RETRY_MS);
}

static void
enter(struct core *core, struct lane *lane)
{
	VERIFY(lane->gate < LANE_GATE_COUNT);
	VERIFY(lane->model < core->models_count);
	switch (lane->gate) {
	case LANE_CLOSED:
		lane->until_ms = 0;
		lane->stage = 1;
		break;
	case LANE_WRITING:
		lane->until_ms = 0;
		break;
	case LANE_CHECKING:
		lane->stage = 1;
		lane->hits = 0;
		lane->misses = lane->retrying ? core->config.misses_max - 1 : 0;
		break;
	case LANE_OPEN:
		lane->misses = lane->failures = lane->refusals = 0;
		lane->retrying = lane->careful = false;
		memset(lane->miss_ms, 0, sizeof lane->miss_ms);
		core->counts.opened++;
		break;
	case LANE_LEAKY:
		lane->retrying = true;
		lane->until_ms = retry_at(core, lane, lane->reason);
		break;
	case LANE_BYPASS:
		lane->failures = lane->refusals = 0;
		lane->until_ms = retry_at(core, lane, lane->reason);
		break;
	case LANE_GATE_COUNT:
		VERIFY(false);
	}
}

/* All families whose chain leads through the lane find their place again. */
static void
settle_below(struct core *core, struct lane *lane, bool marks_changed)
{
	VERIFY(lane->below.count > 0);
	for (uint32_t i = lane->below.head; i != LIST_NONE; i = core->below[i].next) {
		uint32_t family = i / LINEAGE_MAX;

		family_settle(core, family);
		if (marks_changed)
			lane_touch(core, family_leaf(&core->families[family]));
	}
}

void
lane_move(struct core *core, uint32_t index, enum lane_gate gate, enum lane_reason reason)
{
	struct lane *lane = &core->lanes[index];
	enum lane_gate from = lane->gate;

	VERIFY(index < core->config.lanes_max);
	VERIFY(core->lanes[index].below.count > 0);
	VERIFY(gate < LANE_GATE_COUNT);
	VERIFY(followers[from] & TO(gate));
	VERIFY((reason != LANE_REASON_NONE) ==
	       (gate == LANE_BYPASS || gate == LANE_LEAKY));

	core->counts.closed += from == LANE_OPEN && gate == LANE_CLOSED;
	core->counts.lanes_by_gate[from]--;
	core->counts.lanes_by_gate[gate]++;
	lane->gate = gate;
	lane->reason = reason;
	lane->company_ms = 0;
	enter(core, lane);

	if (lane->g > 0 || gate != LANE_CLOSED) /* to be made is no news */
		note_lane(core, COMMAND_NOTE_GATE, index, from, gate, reason);
	lane_arm(core, index);
	lane_touch(core, index);
	if (lane_gate_starts(from) != lane_gate_starts(gate) || from == LANE_LEAKY ||
	    gate == LANE_LEAKY)
		settle_below(core, lane, from == LANE_LEAKY || gate == LANE_LEAKY);
	pool_plan_all(core);
	if (gate == LANE_CLOSED && from != LANE_WRITING)
		credit_join(core, index);
}

bool
lane_starts(const struct core *core, const struct lane *lane)
{
	VERIFY(lane->model < core->models_count);
	VERIFY(lane->gate < LANE_GATE_COUNT);
	if (!core->hold || !core->models[lane->model].traits.hold)
		return true;
	return lane_gate_starts(lane->gate);
}

uint32_t
lane_admits(const struct core *core, const struct lane *lane)
{
	VERIFY(lane->stage >= 1);
	VERIFY(!lane_gate_starts(lane->gate));
	if (core->now_ms < lane->ready_ms)
		return 0;
	/* What is on its way to Redis still lets plain jobs start. */
	if (lane->flight && lane_gate_starts(lane->granted.gate)) {
		MARK(lane_is_shut_and_redis_has_not_heard);
		return 0;
	}
	if (lane->gate == LANE_CLOSED)
		return lane->unproven == 0 ? 1 : 0;
	if (lane->gate == LANE_WRITING)
		return 0;
	return lane->stage - MIN(lane->stage, lane->unproven);
}

uint64_t
lane_life(const struct core *core, const struct lane *lane)
{
	VERIFY(lane->model < core->models_count);
	return model_life(core, &core->models[lane->model], lane->ttl_ms);
}

uint64_t
lane_warm_until(const struct core *core, const struct lane *lane, uint64_t sent_ms)
{
	VERIFY(sent_ms <= core->now_ms);
	return MIN(sent_ms + lane_life(core, lane), LANE_FOREVER);
}

void
lane_refresh(struct core *core, uint32_t index, uint64_t sent_ms)
{
	struct lane *lane = &core->lanes[index];
	uint64_t until_ms = lane_warm_until(core, lane, sent_ms);

	VERIFY(index < core->config.lanes_max);
	if (lane->gate != LANE_CHECKING && lane->gate != LANE_OPEN)
		return;
	if (until_ms <= lane->until_ms)
		return;
	lane->until_ms = until_ms;
	lane_arm(core, index);
}

void
lane_await_company(struct core *core, uint32_t index, uint32_t tokens)
{
	struct lane *lane = &core->lanes[index];
	uint64_t wait_ms = MIN(tokens / COMPANY_TOKENS, core->config.company_ms_max);

	VERIFY(index < core->config.lanes_max);
	if (lane->granted.gate != LANE_GATE_COUNT || lane->gate != LANE_BYPASS ||
	    lane->reason != LANE_REASON_UNSHARED || wait_ms == 0)
		return;
	lane->company_ms = core->now_ms + wait_ms;
	lane_arm(core, index);
}

bool
lane_awaits_company(const struct core *core, const struct lane *lane)
{
	VERIFY(lane->model < core->models_count);
	return core->hold && core->models[lane->model].traits.hold &&
	       core->now_ms < lane->company_ms;
}

void
lane_touch(struct core *core, uint32_t index)
{
	VERIFY(index < core->config.lanes_max);
	VERIFY(core->lanes[index].below.count > 0);
	if (!core->lane_home[index].in)
		list_push(&core->dirty, core->lane_home, index);
}

void
lane_arm(struct core *core, uint32_t index)
{
	const struct lane *lane = &core->lanes[index];
	uint64_t due_ms = CORE_DEADLINE_NONE;

	VERIFY(index < core->config.lanes_max);
	VERIFY(lane->below.count > 0);
	switch (lane->gate) {
	case LANE_CLOSED:
		if (lane->ready_ms > core->now_ms)
			due_ms = lane->ready_ms;
		break;
	case LANE_WRITING:
		break; /* the credit has a timer */
	case LANE_CHECKING:
		due_ms = lane->until_ms;
		if (lane->ready_ms > core->now_ms)
			due_ms = MIN(due_ms, lane->ready_ms);
		break;
	case LANE_OPEN:
	case LANE_BYPASS:
	case LANE_LEAKY:
		due_ms = lane->until_ms;
		if (lane->company_ms > 0)
			due_ms = MIN(due_ms, lane->company_ms);
		break;
	case LANE_GATE_COUNT:
		VERIFY(false);
	}
	if (due_ms >= LANE_FOREVER)
		due_ms = CORE_DEADLINE_NONE;
	state_arm(core, state_lane_timer(core, index), due_ms);
}

void
lane_expire(struct core *core, uint32_t index)
{
	struct lane *lane = &core->lanes[index];

	VERIFY(index < core->config.lanes_max);
	VERIFY(lane->below.count > 0);
	state_arm(core, state_lane_timer(core, index), CORE_DEADLINE_NONE);
	if (lane->company_ms > 0 && core->now_ms >= lane->company_ms) {
		lane->company_ms = 0;
		lane_touch(core, index);
		lane_arm(core, index);
		return;
	}
	if (lane->gate == LANE_CLOSED) {
		pool_plan_all(core);
	} else if (lane->gate == LANE_CHECKING && core->now_ms < lane->until_ms) {
		gate_take_trust(core, index);
		pool_plan_all(core);
		lane_arm(core, index);
	} else if (lane->gate != LANE_WRITING && core->now_ms >= lane->until_ms) {
		lane_move(core, index, LANE_CLOSED, LANE_REASON_NONE);
	}
}

void
lane_regate(struct core *core, uint32_t index, enum lane_reason reason)
{
	struct lane *lane = &core->lanes[index];

	VERIFY(index < core->config.lanes_max);
	if (lane->gating > 0) {
		if (is_bypassed_for_good(lane))
			lane_move(core, index, LANE_CLOSED, LANE_REASON_NONE);
		return;
	}
	VERIFY(reason != LANE_REASON_NONE);
	if (lane->gate != LANE_BYPASS) {
		lane_move(core, index, LANE_BYPASS, reason);
		return;
	}
	lane->reason = reason;
	lane->until_ms = LANE_FOREVER;
	lane_arm(core, index);
	lane_touch(core, index);
}
