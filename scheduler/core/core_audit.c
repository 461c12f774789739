/* The core against itself: whatever can be recounted is recounted. */
#include "scheduler/core/credit.h"
#include "scheduler/core/evidence.h"
#include "scheduler/core/state.h"

static void
audit_lane(const struct core *core, uint32_t index)
{
	const struct lane *lane = &core->lanes[index];
	uint32_t unproven = 0, gating = 0;

	VERIFY(lane_find(core, lane->id) == index);
	VERIFY(lane->gate < LANE_GATE_COUNT);
	VERIFY(lane->model < core->models_count);
	list_audit(&lane->below, core->below);
	for (uint32_t i = lane->below.head; i != LIST_NONE; i = core->below[i].next) {
		const struct family *family = &core->families[i / LINEAGE_MAX];
		uint32_t place = i % LINEAGE_MAX;

		VERIFY(place < family->lanes_count);
		VERIFY(family->lanes[place] == index);
		gating += family->gates >> place & 1;
		if (family->credit.lanes >> place & 1)
			unproven += family->credit.out;
	}
	VERIFY(lane->gating == gating);
	VERIFY(lane->unproven == unproven);
}

static void
audit_gate(const struct core *core, uint32_t index)
{
	const struct lane *lane = &core->lanes[index];
	uint32_t timer = state_lane_timer(core, index);

	VERIFY(lane->stage >= 1);
	VERIFY(lane->stage <= CREDIT_MAX);
	VERIFY(lane->stage == 1 || lane->gate >= LANE_CHECKING);
	VERIFY((lane->reason != LANE_REASON_NONE) ==
	       (lane->gate == LANE_BYPASS || lane->gate == LANE_LEAKY));
	VERIFY(lane->gate != LANE_WRITING || lane->unproven > 0 || core->recovering);
	VERIFY(lane->gate != LANE_CHECKING || lane->misses < core->config.misses_max);
	VERIFY(lane->gating > 0 || lane->gate == LANE_BYPASS);
	VERIFY(lane->company_ms == 0 || lane->gate == LANE_BYPASS);
	/* Whatever ends by time has a timer. */
	if ((lane->gate == LANE_OPEN || lane->gate == LANE_BYPASS ||
	     lane->gate == LANE_LEAKY) &&
	    lane->until_ms < LANE_FOREVER)
		VERIFY(heap_contains(&core->timers, timer));
	if (lane->family != FAMILY_NONE)
		VERIFY(family_leaf(&core->families[lane->family]) == index);
	if (lane->parent != LANE_NONE)
		VERIFY(core->lanes[lane->parent].below.count >= lane->below.count);
}

static void
audit_credit(const struct core *core, uint32_t index)
{
	const struct family *family = &core->families[index];
	const struct credit *credit = &family->credit;

	VERIFY(credit->out <= CREDIT_MAX);
	VERIFY(credit->started <= credit->out);
	VERIFY(credit->begun_count <= CREDIT_MAX);
	VERIFY(credit->lanes >> family->lanes_count == 0);
	if (credit->out == 0)
		return;
	VERIFY(credit->lanes != 0);
	VERIFY(credit->look_ms > 0);
	VERIFY(core->recovering ||
	       heap_contains(&core->timers, state_family_timer(core, index)));
}

/* The state fits what is known: family_settle() would not move it. */
static void
audit_state(const struct core *core, const struct family *family)
{
	bool starts = family_starts(core, family);

	switch (family->state) {
	case FAMILY_IDLE:
		VERIFY(family->waiting == 0 || core->recovering);
		VERIFY(starts || family->credit.out == 0);
		break;
	case FAMILY_WAITING:
		VERIFY(family->waiting > 0);
		VERIFY(!starts);
		VERIFY(family->credit.out == 0);
		break;
	case FAMILY_COLD:
		VERIFY(!starts);
		VERIFY(family->rank < POOL_RANK_LAST);
		break;
	case FAMILY_READY:
		VERIFY(starts);
		VERIFY(family->rank < POOL_RANK_LAST);
		break;
	case FAMILY_PAUSED:
		VERIFY(family->flags & EVENT_FAMILY_PAUSED);
		break;
	case FAMILY_STATE_COUNT:
		VERIFY(false);
	}
}

static void
audit_family(const struct core *core, uint32_t index)
{
	const struct family *family = &core->families[index];

	VERIFY(family_find(core, family->id) == index);
	VERIFY(family->lanes_count <= LINEAGE_MAX);
	VERIFY(family->pool < core->pools_count);
	VERIFY(family->budget < core->pacers_count);
	VERIFY(family->gates >> family->lanes_count == 0);
	VERIFY(core->lanes[family_leaf(family)].family == index);
	VERIFY(core->family_home[index].in);
	VERIFY((family->waiting > 0) == (family->oldest_ms > 0));
	VERIFY(family->unheld == core_route_is_unheld(core, family->route));
	for (uint32_t i = 0; i < family->lanes_count; i++)
		VERIFY(core->below[index * LINEAGE_MAX + i].in);
	audit_credit(core, index);
	audit_state(core, family);
}

static uint32_t
shares_of(const struct core *core, uint32_t pool)
{
	uint32_t load = 0;

	for (uint32_t i = 0; i < core->pacers_count; i++) {
		const struct pool_share *share =
			&core->shares[(size_t)pool * core->config.budgets_max + i];

		VERIFY(share->busy <= share->load);
		load += share->load;
	}
	return load;
}

static void
audit_pool(const struct core *core, uint32_t index)
{
	const struct pool *pool = &core->pools[index];
	uint32_t load = 0, queued = 0, overdue = 0, active = 0;

	VERIFY(pool_find(core, pool->id) == index);
	list_audit(&pool->cold, core->family_home);
	list_audit(&pool->ready, core->family_home);
	for (uint32_t i = 0; i < POOL_BANDS; i++)
		list_audit(&pool->waiting[i], core->family_home);
	for (uint32_t i = 0; i < core->config.families_max; i++) {
		const struct family *family = &core->families[i];

		if (family->lanes_count == 0 || family->pool != index)
			continue;
		load += family->weight;
		queued += family->queued;
		overdue += family->overdue;
		active += family->state == FAMILY_COLD || family->state == FAMILY_READY;
	}
	VERIFY(pool->load == load);
	VERIFY(shares_of(core, index) == load);
	VERIFY(pool->queued == queued);
	VERIFY(pool->overdue == overdue);
	VERIFY(pool->cold.count + pool->ready.count == active);
}

static void
audit_pacer(const struct core *core, uint32_t index)
{
	const struct pacer *pacer = &core->pacers[index];
	uint32_t load = 0;

	VERIFY(pacer_find(core, pacer->id) == index);
	VERIFY(pacer->pace > 0);
	VERIFY(pacer->pace <= PACER_PACE_MAX);
	for (uint32_t i = 0; i < core->config.families_max; i++)
		if (core->families[i].lanes_count > 0 &&
		    core->families[i].budget == index)
			load += core->families[i].weight;
	VERIFY(pacer->load == load);
	VERIFY(heap_contains(&core->timers, state_pacer_timer(core, index)));
}

static void
audit_counts(const struct core *core)
{
	uint32_t lanes = 0, families = 0, cold = 0, gates[LANE_GATE_COUNT] = { 0 };

	for (uint32_t i = 0; i < core->config.lanes_max; i++) {
		if (core->lanes[i].below.count == 0)
			continue;
		lanes++;
		gates[core->lanes[i].gate]++;
	}
	for (uint32_t i = 0; i < core->config.families_max; i++) {
		families += core->families[i].lanes_count > 0;
		cold += core->families[i].lanes_count > 0 &&
		        core->families[i].state == FAMILY_COLD;
	}
	VERIFY(core->counts.lanes == lanes);
	VERIFY(core->counts.families == families);
	VERIFY(core->cold_count == cold);
	VERIFY(core->lanes_free.count == core->config.lanes_max - lanes);
	VERIFY(core->families_free.count == core->config.families_max - families);
	for (uint32_t i = 0; i < LANE_GATE_COUNT; i++)
		VERIFY(core->counts.lanes_by_gate[i] == gates[i]);
}

void
core_audit(const struct core *core)
{
	table_audit(&core->lanes_by_id);
	table_audit(&core->families_by_id);
	heap_audit(&core->timers);
	list_audit(&core->dirty, core->lane_home);
	list_audit(&core->idle, core->family_home);
	list_audit(&core->paused, core->family_home);
	list_audit(&core->glance, core->family_glance);
	for (uint32_t i = 0; i < core->config.lanes_max; i++) {
		if (core->lanes[i].below.count == 0)
			continue;
		audit_lane(core, i);
		audit_gate(core, i);
	}
	for (uint32_t i = 0; i < core->config.families_max; i++)
		if (core->families[i].lanes_count > 0)
			audit_family(core, i);
	for (uint32_t i = 0; i < core->pools_count; i++)
		audit_pool(core, i);
	for (uint32_t i = 0; i < core->pacers_count; i++)
		audit_pacer(core, i);
	audit_counts(core);
}
