#include "tests/lib/core_rig_inside.h"

static bool
gate_starts(struct core_rig *rig, uint32_t index)
{
	struct core_rig_node *node = &rig->nodes[index];
	struct event event = { .kind = EVENT_EXPIRED };

	if (!lane_gate_starts(node->gate))
		return false;
	if (rig->now_ms < node->until_ms)
		return true;
	node->gate = LANE_CLOSED;
	event.expired.lane = core_rig_lane(rig, index);
	event.expired.g = node->g;
	core_rig_say(rig, &event);
	return false;
}

static bool
gates_start(struct core_rig *rig, const struct core_rig_family *family)
{
	for (uint32_t i = 0; i + 1 < family->chain_count; i++)
		if ((family->gates & 1u << i) && !gate_starts(rig, family->chain[i]))
			return false;
	return gate_starts(rig, core_rig_leaf(family));
}

static bool
budget_starts(const struct core_rig *rig, const struct core_rig_family *family)
{
	return family->elsewhere || (rig->now_ms >= rig->parked_ms &&
	                             (rig->pace == 0 || rig->in_flight < rig->pace));
}

/* Answers the role a job of the family could start with now; LANE_ROLE_COUNT: none. */
static enum lane_role
role_now(struct core_rig *rig, struct core_rig_family *family)
{
	struct core_rig_node *node = &rig->nodes[core_rig_leaf(family)];

	if (rig->pools[family->pool].used >= rig->pools[family->pool].slots ||
	    !budget_starts(rig, family) || (family->flags & EVENT_FAMILY_PAUSED))
		return LANE_ROLE_COUNT;
	if (node->ticket == LANE_TICKET_WANTED)
		return LANE_TICKET;
	if (family->backlog == 0 || node->in_use >= node->window)
		return LANE_ROLE_COUNT;
	if (node->credits > 0)
		return node->role;
	if (!rig->hold || family->unheld || gates_start(rig, family))
		return LANE_PLAIN;
	if (family->held_ms > 0 &&
	    rig->now_ms >= family->held_ms + rig->knobs.hold_max_ms)
		return LANE_HOLD_LIMIT;
	return LANE_ROLE_COUNT;
}

/* How many unproven starts the gate of this place allows at once, by what the core says
 * of its stage. */
static uint32_t
allowed(const struct core_rig *rig, const struct core_rig_family *family, uint32_t place)
{
	struct core_family_view view;

	if (core_family_view(rig->core, rig->nodes[core_rig_leaf(family)].id, &view) < 0)
		return 1;
	/* Open by proof; its grant is on the way. */
	if (lane_gate_starts(view.lanes[place].gate))
		return UINT32_MAX;
	return view.lanes[place].allowed;
}

/* Starts that may write while the gate of a marked node is shut are counted there. */
static void
count_unproven(struct core_rig *rig, struct core_rig_start *start)
{
	const struct core_rig_family *family = &rig->families[start->family];

	if (start->role == LANE_HOLD_LIMIT || !rig->hold || family->unheld)
		return;
	for (uint32_t i = 0; i < family->chain_count; i++) {
		struct core_rig_node *node = &rig->nodes[family->chain[i]];

		if (!(start->marks & 1u << i) || lane_gate_starts(node->gate))
			continue;
		start->unproven |= 1u << i;
		node->unproven++;
		node->unproven_max = MAX(node->unproven_max, node->unproven);
		if (node->unproven <= allowed(rig, family, i))
			continue;
		rig->too_many++;
		if (rig->trace)
			fprintf(rig->trace, "%llu ! %s: %u unproven, now by %s, %s\n",
			        (unsigned long long)(rig->now_ms - CORE_RIG_START_MS),
			        node->name, node->unproven,
			        rig->nodes[core_rig_leaf(family)].name,
			        lane_role_text(start->role));
	}
}

static void
tell_start(struct core_rig *rig, const struct core_rig_start *start)
{
	struct event event = { .kind = EVENT_START };

	event.start = (struct event_start){
		.lane = core_rig_lane(rig, core_rig_leaf(&rig->families[start->family])),
		.g = start->g,
		.role = start->role,
		.at_ms = rig->now_ms,
	};
	if (start->role != LANE_PLAIN)
		core_rig_say(rig, &event);
}

static struct core_rig_start *
free_start(struct core_rig *rig)
{
	for (uint32_t i = 0; i < CORE_RIG_STARTS; i++)
		if (!rig->starts[i].used)
			return &rig->starts[i];
	VERIFY(!"room for one more start");
	return NULL;
}

static void
take_from(struct core_rig *rig, uint32_t index, enum lane_role role)
{
	struct core_rig_family *family = &rig->families[index];
	struct core_rig_node *node = &rig->nodes[core_rig_leaf(family)];
	struct event event = { .kind = EVENT_EMPTY };

	if (role == LANE_TICKET) {
		node->ticket = LANE_TICKET_TAKEN;
		return;
	}
	if (node->credits > 0 && role == node->role)
		node->credits--;
	if (role == LANE_HOLD_LIMIT) {
		rig->hold_limits++;
		family->held_ms = rig->now_ms - rig->knobs.hold_max_ms;
	}
	family->started++;
	family->last_step = rig->step;
	if (--family->backlog > 0)
		return;
	event.family.id = node->id;
	core_rig_say(rig, &event);
}

static void
start_job(struct core_rig *rig, uint32_t index, enum lane_role role)
{
	struct core_rig_family *family = &rig->families[index];
	struct core_rig_start *start = free_start(rig);

	*start = (struct core_rig_start){
		.used = true,
		.family = index,
		.pool = family->pool,
		.role = role,
		.g = rig->nodes[core_rig_leaf(family)].g,
		.marks = family->marks,
		.sent_ms = rig->now_ms,
		.report = role != LANE_PLAIN || rig->begin,
	};
	rig->begin = false;
	count_unproven(rig, start);
	core_rig_look_up(rig, start);
	start->first_ms = rig->now_ms + (start->written > 0 || rig->knobs.cache_off
	                                         ? rig->knobs.cold_ms
	                                         : rig->knobs.warm_ms);
	start->end_ms = start->first_ms + (role == LANE_TICKET ? 0 : rig->knobs.job_ms);
	rig->nodes[core_rig_leaf(family)].in_use++;
	rig->pools[family->pool].used++;
	rig->in_flight += !family->elsewhere;
	rig->starts_count++;
	rig->starts_max = MAX(rig->starts_max, rig->starts_count);
	tell_start(rig, start);
	take_from(rig, index, role);
}

/* The clock of hold_max runs while nothing but a gate stops the family. */
void
core_rig_hold_clocks(struct core_rig *rig)
{
	for (uint32_t i = 0; i < rig->families_count; i++) {
		struct core_rig_family *family = &rig->families[i];
		struct core_rig_node *node = &rig->nodes[core_rig_leaf(family)];
		bool held =
			family->backlog > 0 && node->credits == 0 && rig->hold &&
			!family->unheld && budget_starts(rig, family) &&
			!rig->knobs.stopped && !(family->flags & EVENT_FAMILY_PAUSED) &&
			rig->pools[family->pool].used < rig->pools[family->pool].slots &&
			!gates_start(rig, family);

		if (!held) {
			family->held_ms = 0;
		} else if (family->held_ms == 0) {
			family->held_ms = MAX(rig->now_ms, 1);
		} else {
			family->held_ms_max =
				MAX(family->held_ms_max, rig->now_ms - family->held_ms);
		}
	}
}

void
core_rig_claim(struct core_rig *rig)
{
	for (;;) {
		uint32_t best = CORE_RIG_NONE;
		enum lane_role best_role = LANE_ROLE_COUNT;

		if (rig->knobs.stopped)
			return;
		for (uint32_t i = 0; i < rig->families_count; i++) {
			enum lane_role role = role_now(rig, &rig->families[i]);

			if (role == LANE_ROLE_COUNT)
				continue;
			if (best == CORE_RIG_NONE || role == LANE_TICKET ||
			    (best_role != LANE_TICKET &&
			     rig->nodes[core_rig_leaf(&rig->families[i])].rank <
			             rig->nodes[core_rig_leaf(&rig->families[best])]
			                     .rank)) {
				best = i;
				best_role = role;
			}
		}
		if (best == CORE_RIG_NONE)
			return;
		start_job(rig, best, best_role);
	}
}

/* A claim that left slots free says so. */
void
core_rig_tell_short(struct core_rig *rig)
{
	for (uint32_t i = 0; i < rig->pools_count; i++) {
		const struct core_rig_pool *pool = &rig->pools[i];
		struct event event = { .kind = EVENT_SHORT };

		if (pool->used == pool->slots || rig->knobs.stopped)
			continue;
		event.short_pool.pool = core_rig_id(pool->name);
		event.short_pool.free = pool->slots - pool->used;
		core_rig_say(rig, &event);
	}
}
