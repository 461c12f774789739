#include "tests/lib/core_rig_inside.h"

#include "scheduler/core/state.h"

uint32_t
core_rig_node_by_id(const struct core_rig *rig, struct id128 id)
{
	for (uint32_t i = 0; i < rig->nodes_count; i++)
		if (id_equals(rig->nodes[i].id, id))
			return i;
	VERIFY(!"a lane that the rig knows");
	return CORE_RIG_NONE;
}

uint32_t
core_rig_family_by_id(const struct core_rig *rig, struct id128 id)
{
	for (uint32_t i = 0; i < rig->families_count; i++)
		if (id_equals(rig->nodes[core_rig_leaf(&rig->families[i])].id, id))
			return i;
	return CORE_RIG_NONE;
}

void
core_rig_tell_model(struct core_rig *rig)
{
	struct event event = { .kind = EVENT_MODEL };

	event.model = rig->model;
	core_rig_step(rig, &event);
}

void
core_rig_tell_pool(struct core_rig *rig, const struct core_rig_pool *pool)
{
	struct event event = { .kind = EVENT_POOL };

	event.pool.id = core_rig_id(pool->name);
	event.pool.slots = pool->slots;
	core_rig_step(rig, &event);
}

void
core_rig_tell_budget(struct core_rig *rig)
{
	struct event event = { .kind = EVENT_BUDGET };

	event.budget.id = core_rig_id("budget");
	core_rig_step(rig, &event);
}

void
core_rig_elsewhere(struct core_rig *rig, bool on)
{
	struct event event = { .kind = EVENT_BUDGET };

	rig->elsewhere = on;
	event.budget.id = core_rig_id("other");
	if (on)
		core_rig_feed(rig, &event);
}

static struct id128
route_of(const struct core_rig *rig, const struct core_rig_family *family)
{
	return (struct id128){ 9, rig->nodes[core_rig_leaf(family)].id.low };
}

struct event
core_rig_hold_event(const struct core_rig *rig, const struct core_rig_family *family)
{
	struct event event = { .kind = EVENT_HOLD };

	event.hold.on = !family->unheld;
	event.hold.route = route_of(rig, family);
	return event;
}

static struct event
admission_of(const struct core_rig *rig, uint32_t index, const struct lineage *chain)
{
	const struct core_rig_family *family = &rig->families[index];
	struct event event = { .kind = EVENT_ADMITTED };

	event.admitted = (struct event_admitted){
		.pool = core_rig_id(rig->pools[family->pool].name),
		.budget = core_rig_id(family->elsewhere ? "other" : "budget"),
		.model = core_rig_id("model"),
		.route = route_of(rig, family),
		.chain = *chain,
		.flags = family->flags,
		.oldest_ms = family->oldest_ms > 0 ? family->oldest_ms : EVENT_UNKNOWN,
		.hold_max_ms = rig->knobs.hold_max_ms,
		.marks = family->marks,
	};
	return event;
}

/* Cuts one "name[?!-]" off the chain; finds or adds the node. */
static uint32_t
parse_node(struct core_rig *rig, const char **chain, uint32_t parent, uint32_t *ret_flags)
{
	char name[CORE_RIG_NAME] = "";
	size_t len = strcspn(*chain, "/?!-");
	uint32_t index;

	VERIFY(len > 0);
	VERIFY(len < CORE_RIG_NAME);
	memcpy(name, *chain, len);
	*chain += len;
	*ret_flags = LINEAGE_SHARED | LINEAGE_MARKABLE;
	for (; **chain && **chain != '/'; (*chain)++) {
		if (**chain == '?')
			*ret_flags &= ~(uint32_t)LINEAGE_SHARED;
		if (**chain == '!')
			*ret_flags |= LINEAGE_MARKED;
		if (**chain == '-')
			*ret_flags &= ~(uint32_t)LINEAGE_MARKABLE;
	}
	*chain += **chain == '/';

	for (index = 0; index < rig->nodes_count; index++)
		if (strcmp(rig->nodes[index].name, name) == 0)
			return index;
	VERIFY(rig->nodes_count < CORE_RIG_NODES);
	rig->nodes[rig->nodes_count++] = (struct core_rig_node){
		.id = core_rig_id(name),
		.parent = parent,
		.window = LANE_WINDOW,
		.until_ms = LANE_FOREVER,
		.readable_ms = CORE_RIG_NEVER,
		.tokens =
			10000 + (parent == CORE_RIG_NONE ? 0 : rig->nodes[parent].tokens),
	};
	snprintf(rig->nodes[index].name, CORE_RIG_NAME, "%s", name);
	return index;
}

static uint32_t
parse_family(struct core_rig *rig, const char *chain, uint32_t pool,
             struct lineage *ret_chain)
{
	uint32_t parent = CORE_RIG_NONE, nodes[LINEAGE_MAX] = { 0 }, index;
	struct core_rig_family *family;

	*ret_chain = (struct lineage){ 0 };
	while (*chain) {
		uint32_t flags, node = parse_node(rig, &chain, parent, &flags);

		VERIFY(ret_chain->count < LINEAGE_MAX);
		nodes[ret_chain->count] = node;
		ret_chain->nodes[ret_chain->count++] = (struct lineage_node){
			.id = rig->nodes[node].id,
			.tokens = rig->nodes[node].tokens,
			.flags = flags,
		};
		parent = node;
	}
	index = core_rig_family_by_id(rig, rig->nodes[parent].id);
	if (index == CORE_RIG_NONE) {
		VERIFY(rig->families_count < CORE_RIG_FAMILIES);
		index = rig->families_count++;
		rig->families[index].elsewhere = rig->elsewhere;
	}
	family = &rig->families[index];
	rig->nodes[parent].has_family = true;
	family->chain_count = ret_chain->count;
	memcpy(family->chain, nodes, sizeof nodes);
	family->pool = pool;
	family->gates = lineage_gates(ret_chain, rig->model.needs_marker,
	                              rig->model.minimum_tokens);
	return index;
}

uint32_t
core_rig_admit_as(struct core_rig *rig, const char *text, uint32_t pool,
                  enum event_list list, uint32_t jobs)
{
	struct lineage chain;
	uint32_t index = parse_family(rig, text, pool, &chain);
	struct core_rig_family *family = &rig->families[index];
	struct event event;

	if (family->backlog == 0)
		family->oldest_ms = rig->now_ms;
	family->backlog += jobs;
	event = admission_of(rig, index, &chain);
	event.admitted.jobs[list] = jobs;
	core_rig_feed(rig, &event);
	return index;
}

uint32_t
core_rig_admit(struct core_rig *rig, const char *chain, uint32_t jobs)
{
	return core_rig_admit_as(rig, chain, 0, EVENT_LIST_NORMAL, jobs);
}

static void
recover_families(struct core_rig *rig)
{
	for (uint32_t i = 0; i < rig->families_count; i++) {
		const struct core_rig_family *family = &rig->families[i];
		struct lineage chain = { .count = family->chain_count };
		struct event event;

		for (uint32_t place = 0; place < chain.count; place++) {
			const struct core_rig_node *node =
				&rig->nodes[family->chain[place]];
			bool gates = family->gates & 1u << place;

			chain.nodes[place] = (struct lineage_node){
				.id = node->id,
				.tokens = node->tokens,
				.flags = gates ? LINEAGE_SHARED | LINEAGE_MARKABLE : 0,
			};
		}
		event = admission_of(rig, i, &chain);
		event.kind = EVENT_RECOVERED_FAMILY;
		event.admitted.jobs[EVENT_LIST_NORMAL] = family->backlog > 0 ? 1 : 0;
		core_rig_step(rig, &event);
	}
}

static void
recover_lanes(struct core_rig *rig)
{
	for (uint32_t i = 0; i < rig->nodes_count; i++) {
		const struct core_rig_node *node = &rig->nodes[i];
		struct event event = { .kind = EVENT_RECOVERED_LANE };

		event.lane = (struct event_lane){
			.lane = core_rig_lane(rig, i),
			.gate = node->gate,
			.reason = node->reason,
			.g = node->g,
			.credits = node->credits,
			.role = node->role,
			.in_use = node->in_use,
			.until_ms = node->until_ms,
			.life_ms = node->life_ms,
			.p = node->p,
			.ticket = node->ticket,
			.window = node->window,
			.rank = node->rank,
		};
		core_rig_step(rig, &event);
	}
}

static void
recover_leases(struct core_rig *rig)
{
	for (uint32_t i = 0; i < CORE_RIG_STARTS; i++) {
		const struct core_rig_start *start = &rig->starts[i];
		struct event event = { .kind = EVENT_RECOVERED_LEASE };

		if (!start->used || start->role == LANE_PLAIN)
			continue;
		event.start = (struct event_start){
			.lane = core_rig_lane(
				rig, core_rig_leaf(&rig->families[start->family])),
			.g = start->g,
			.role = start->role,
		};
		core_rig_step(rig, &event);
	}
}

void
core_rig_restart(struct core_rig *rig)
{
	struct core_config config = rig->core->config;
	struct event event;

	rig->answers.count = 0; /* answers to the dead; the stream is read on */
	rig->core = core_init(rig->memory, core_size(&config), &config);
	core_rig_tell_model(rig);
	core_rig_tell_budget(rig);
	for (uint32_t i = 0; i < rig->pools_count; i++)
		core_rig_tell_pool(rig, &rig->pools[i]);
	event = (struct event){ .kind = EVENT_HOLD };
	event.hold.on = rig->hold;
	core_rig_step(rig, &event);
	for (uint32_t i = 0; i < rig->families_count; i++) {
		event = core_rig_hold_event(rig, &rig->families[i]);
		if (!event.hold.on)
			core_rig_step(rig, &event);
	}
	recover_families(rig);
	recover_lanes(rig);
	recover_leases(rig);
	event = (struct event){ .kind = EVENT_RECOVERED_BUDGET };
	event.recovered_budget.id = core_rig_id("budget");
	event.recovered_budget.pace = rig->pace;
	event.recovered_budget.in_flight = rig->in_flight;
	event.recovered_budget.parked_until_ms = rig->parked_ms;
	core_rig_step(rig, &event);
	event = (struct event){ .kind = EVENT_RECOVERED_END };
	core_rig_feed(rig, &event);
}
