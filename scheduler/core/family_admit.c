/* How a family comes to be known, changes its gates, and is forgotten. */
#include "common/mark.h"
#include "scheduler/core/grant.h"
#include "scheduler/core/state.h"

/* Takes the family off its lanes, which go with their last family. */
static void
detach(struct core *core, uint32_t index)
{
	struct family *family = &core->families[index];

	VERIFY(family->lanes_count > 0);
	VERIFY(family->state == FAMILY_IDLE);
	VERIFY(family->credit.out == 0);
	core->lanes[family_leaf(family)].family = FAMILY_NONE;
	for (uint32_t i = family->lanes_count; i-- > 0;) {
		struct lane *lane = &core->lanes[family->lanes[i]];

		if (family->gates & 1u << i) {
			VERIFY(lane->gating > 0);
			lane->gating--;
		}
		list_remove(&lane->below, core->below, index * LINEAGE_MAX + i);
		if (lane->below.count == 0)
			lane_release(core, family->lanes[i]);
		else if (lane->gating == 0)
			lane_regate(core, family->lanes[i], LANE_REASON_UNSHARED);
	}
	family->lanes_count = 0;
}

static void
forget(struct core *core, uint32_t index)
{
	struct family *family = &core->families[index];

	VERIFY(family->weight == 0);
	VERIFY(family->waiting == 0);
	VERIFY(family->state == FAMILY_IDLE);
	detach(core, index);
	VERIFY(table_remove(&core->families_by_id, family->id));
	if (core->family_glance[index].in)
		list_remove(&core->glance, core->family_glance, index);
	state_arm(core, state_family_timer(core, index), CORE_DEADLINE_NONE);
	list_remove(&core->idle, core->family_home, index);
	list_push(&core->families_free, core->family_home, index);
	core->counts.families--;
}

#define IDLE_LOOKS 32

/* While memory is being recovered those with work rest among the idle, too. */
static bool
is_needed(const struct family *family)
{
	return family->credit.out > 0 || family->waiting > 0 || family->weight > 0;
}

/* Forgets the family that has been idle longest.  False if none is, as far as a look at
 * some of them tells. */
static bool
forget_idle(struct core *core)
{
	uint32_t index = core->idle.head;

	for (uint32_t i = 0; i < IDLE_LOOKS && index != FAMILY_NONE; i++) {
		if (!is_needed(&core->families[index])) {
			forget(core, index);
			return true;
		}
		index = core->family_home[index].next;
	}
	return false;
}

/* Finds or adds the lanes of the chain, root first.  False if there is no room; lanes
 * without families are given back then. */
static bool
obtain_lanes(struct core *core, const struct event_admitted *admitted, uint32_t model,
             uint32_t ret_lanes[LINEAGE_MAX])
{
	uint32_t parent = LANE_NONE;

	VERIFY(admitted->chain.count <= LINEAGE_MAX);
	VERIFY(model < core->models_count);
	for (uint32_t i = 0; i < admitted->chain.count; i++) {
		struct lane_id id = { admitted->chain.nodes[i].id, admitted->domain };

		ret_lanes[i] = lane_obtain(core, id, model, parent);
		if (ret_lanes[i] == LANE_NONE) {
			while (i-- > 0)
				lane_release(core, ret_lanes[i]);
			return false;
		}
		parent = ret_lanes[i];
	}
	return true;
}

/* A new family without gates and work.  FAMILY_NONE if there is no room. */
static uint32_t
add(struct core *core, const struct event_admitted *admitted, uint32_t pool,
    uint32_t budget, uint32_t model)
{
	uint32_t lanes[LINEAGE_MAX] = { 0 }, count = admitted->chain.count, index;
	struct family *family;

	VERIFY(count > 0);
	VERIFY(pool < core->pools_count);
	VERIFY(budget < core->pacers_count);
	VERIFY(model < core->models_count);
	while (core->families_free.count == 0 ||
	       core->lanes_free.count < admitted->chain.count)
		if (!forget_idle(core))
			return FAMILY_NONE;
	if (!obtain_lanes(core, admitted, model, lanes))
		return FAMILY_NONE;

	index = list_pop(&core->families_free, core->family_home);
	family = &core->families[index];
	*family = (struct family){
		.id = admitted->chain.nodes[count - 1].id,
		.pool = pool,
		.budget = budget,
		.model = model,
		.lanes_count = count,
		.band = EVENT_LIST_LOW,
		.rank = POOL_RANK_LAST,
		.linger_for_ms = core->config.linger_ms,
		.hold_max_ms = core->config.hold_max_ms,
	};
	VERIFY(table_put(&core->families_by_id, family->id, index) == 0);
	memcpy(family->lanes, lanes, sizeof lanes);
	for (uint32_t i = 0; i < count; i++)
		list_push(&core->lanes[lanes[i]].below, core->below,
		          index * LINEAGE_MAX + i);
	core->lanes[family_leaf(family)].family = index;
	list_push(&core->idle, core->family_home, index);
	core->counts.families++;
	return index;
}

/* Why a node holds nobody. */
static enum lane_reason
reason_of(const struct event_admitted *admitted, uint32_t place, uint32_t minimum)
{
	const struct lineage_node *node = &admitted->chain.nodes[place];

	VERIFY(place < admitted->chain.count);
	if (admitted->flags & EVENT_FAMILY_OPAQUE)
		return LANE_REASON_OPAQUE;
	if (!(node->flags & LINEAGE_SHARED))
		return LANE_REASON_UNSHARED;
	if (node->tokens > 0 && node->tokens < minimum)
		return LANE_REASON_BELOW_MINIMUM;
	return LANE_REASON_UNCACHEABLE;
}

/* Takes over which lanes hold the family, and what is known of them. */
static void
regate(struct core *core, uint32_t index, const struct event_admitted *admitted)
{
	struct family *family = &core->families[index];
	const struct event_model *traits = &core->models[family->model].traits;
	uint32_t gates = 0;

	VERIFY(family->lanes_count == admitted->chain.count);
	if (!(admitted->flags & EVENT_FAMILY_OPAQUE))
		gates = lineage_gates(&admitted->chain, traits->needs_marker,
		                      traits->minimum_tokens);
	family->users = 0;
	for (uint32_t i = 0; i < family->lanes_count; i++) {
		struct lane *lane = &core->lanes[family->lanes[i]];
		uint32_t bit = 1u << i;

		lane->tokens = admitted->chain.nodes[i].tokens;
		lane->ttl_ms = admitted->ttl_ms > 0 ? admitted->ttl_ms : traits->ttl_ms;
		if (admitted->chain.nodes[i].flags & LINEAGE_MARKED)
			family->users |= bit;
		VERIFY(lane->gating >= (family->gates & bit ? 1 : 0));
		lane->gating += (gates & bit ? 1 : 0);
		lane->gating -= (family->gates & bit ? 1 : 0);
	}
	family->gates = gates;
	for (uint32_t i = 0; i < family->lanes_count; i++)
		lane_regate(core, family->lanes[i],
		            reason_of(admitted, i, traits->minimum_tokens));
}

/* Nothing held the family, so it was active before its turn; now a lane that nobody wrote
 * holds it.  It takes its turn like the others, unless what runs may be writing. */
static void
give_up_turn(struct core *core, uint32_t index, uint32_t gates_before)
{
	const struct family *family = &core->families[index];

	VERIFY(family->lanes_count > 0);
	if (family->state != FAMILY_COLD || (family->gates & ~gates_before) == 0 ||
	    family->running > 0 || family->credit.out > 0)
		return;
	MARK(family_gives_up_a_turn_it_had_for_nothing);
	family_rest(core, index);
}

/* The first job of a family, if nobody shares its leaf. */
static void
await_company(struct core *core, uint32_t index, const struct event_admitted *admitted)
{
	const struct family *family = &core->families[index];
	uint32_t tokens = core->lanes[family_leaf(family)].tokens, above = 0, held = 0;

	VERIFY(!core->recovering);
	VERIFY(family->lanes_count > 0);
	for (uint32_t i = 0; i < POOL_BANDS; i++)
		held += admitted->jobs[i];
	for (uint32_t i = 0; i < family->lanes_count; i++)
		if (family->gates & 1u << i)
			above = core->lanes[family->lanes[i]].tokens;
	if (held > 0 && tokens > above)
		lane_await_company(core, family_leaf(family), tokens - above);
}

static void
set_band(struct core *core, struct family *family, const uint32_t *jobs)
{
	uint32_t band = EVENT_LIST_LOW;

	VERIFY(band < POOL_BANDS);
	VERIFY(family->pool < core->pools_count);
	for (uint32_t i = POOL_BANDS; i-- > 0;)
		if (jobs[i] > 0)
			band = i;
	VERIFY(family->state != FAMILY_WAITING);
	family->band = family->waiting > 0 ? MIN(family->band, band) : band;
}

/* The jobs themselves.  Those of the `now` list are nobody's to hold or to order. */
static void
add_jobs(struct core *core, uint32_t index, const struct event_admitted *admitted)
{
	struct family *family = &core->families[index];
	uint64_t hold_max_ms = admitted->hold_max_ms > 0 ? admitted->hold_max_ms
	                                                 : core->config.hold_max_ms;
	uint32_t count = 0;

	VERIFY(index < core->config.families_max);
	VERIFY(core->families[index].lanes_count > 0);
	for (uint32_t i = 0; i < POOL_BANDS; i++)
		count += admitted->jobs[i];
	if (admitted->input_tokens + admitted->output_tokens > 0) {
		family->input_tokens = admitted->input_tokens;
		family->output_tokens = admitted->output_tokens;
	}
	if (count == 0)
		return;
	if (family->state == FAMILY_WAITING) /* its band may change */
		family_rest(core, index);
	set_band(core, family, admitted->jobs);
	if (family->waiting == 0) {
		family->hold_max_ms = hold_max_ms;
		family->oldest_ms = MAX(core->now_ms, 1);
	}
	family->hold_max_ms = MIN(family->hold_max_ms, hold_max_ms);
	if (admitted->oldest_ms != EVENT_UNKNOWN && admitted->oldest_ms > 0)
		family->oldest_ms = MIN(family->oldest_ms, admitted->oldest_ms);
	family_count(core, index, family->waiting + count, family->running);
}

static void
set_flags(struct core *core, uint32_t index, uint32_t flags)
{
	struct family *family = &core->families[index];
	uint32_t sticky =
		family->flags & (EVENT_FAMILY_TAIL_MARKED | EVENT_FAMILY_PAUSED);

	VERIFY(index < core->config.families_max);
	VERIFY(core->families[index].lanes_count > 0);
	family->flags = flags | sticky;
}

void
family_admit(struct core *core, const struct event_admitted *admitted)
{
	uint32_t pool = pool_find(core, admitted->pool);
	uint32_t budget = pacer_find(core, admitted->budget);
	uint32_t model = model_find(core, admitted->model), index;
	bool known = pool != LIST_NONE && budget != LIST_NONE && model != LIST_NONE;
	uint32_t gates_before;
	struct family *family;
	bool is_new;

	VERIFY(admitted->chain.count > 0);
	VERIFY(admitted->chain.count <= LINEAGE_MAX);
	index = family_find(core, admitted->chain.nodes[admitted->chain.count - 1].id);
	is_new = index == FAMILY_NONE;
	if (is_new && known)
		index = add(core, admitted, pool, budget, model);
	if (index == FAMILY_NONE || !known) {
		grant_unheld(core, admitted, 0);
		return;
	}
	family = &core->families[index];
	if (family->pool != pool || family->budget != budget) {
		family_rest(core, index);
		family->pool = pool;
		family->budget = budget;
		core->lanes[family_leaf(family)].granted.gate = LANE_GATE_COUNT;
	}
	set_flags(core, index, admitted->flags);
	family->route = admitted->route;
	family->unheld = core_route_is_unheld(core, admitted->route);
	gates_before = family->gates;
	if (family->lanes_count == admitted->chain.count)
		regate(core, index, admitted);
	if (!is_new)
		give_up_turn(core, index, gates_before);
	if (is_new && !core->recovering)
		await_company(core, index, admitted);
	add_jobs(core, index, admitted);
	family_settle(core, index);
	lane_touch(core, family_leaf(family));
}
