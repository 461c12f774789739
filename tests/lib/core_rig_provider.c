#include "tests/lib/core_rig_inside.h"

static bool
is_readable(const struct core_rig *rig, const struct core_rig_node *node)
{
	return !rig->knobs.never_read && node->readable_ms <= rig->now_ms &&
	       rig->now_ms < node->expires_ms;
}

/* Decides what a request reads and writes, when it is sent. */
void
core_rig_look_up(struct core_rig *rig, struct core_rig_start *start)
{
	const struct core_rig_family *family = &rig->families[start->family];
	uint32_t deepest = 0;

	if (rig->knobs.cache_off)
		return;
	for (uint32_t i = 0; i < family->chain_count; i++) {
		struct core_rig_node *node = &rig->nodes[family->chain[i]];

		if (!(start->marks & 1u << i))
			continue;
		deepest = node->tokens;
		if (is_readable(rig, node)) {
			start->read = node->tokens;
			node->expires_ms = rig->now_ms + rig->knobs.ttl_ms;
		}
	}
	start->written = deepest - start->read;
}

/* The first event: what was written becomes readable after the lag. */
static void
respond(struct core_rig *rig, struct core_rig_start *start)
{
	const struct core_rig_family *family = &rig->families[start->family];

	for (uint32_t i = 0; i < family->chain_count; i++) {
		struct core_rig_node *node = &rig->nodes[family->chain[i]];

		if (start->unproven & 1u << i)
			node->unproven--;
		if (!(start->marks & 1u << i) || start->written == 0 ||
		    node->tokens <= start->read)
			continue;
		node->writes++;
		node->readable_ms =
			MIN(node->readable_ms, rig->now_ms + rig->knobs.lag_ms);
		node->expires_ms = start->sent_ms + rig->knobs.ttl_ms;
	}
	start->unproven = 0;
	start->begun = true;
}

void
core_rig_expire_entries(struct core_rig *rig)
{
	for (uint32_t i = 0; i < rig->nodes_count; i++)
		if (rig->nodes[i].expires_ms <= rig->now_ms)
			rig->nodes[i].readable_ms = CORE_RIG_NEVER;
}

static struct event_usage
usage_of(const struct core_rig *rig, const struct core_rig_start *start)
{
	bool known = !rig->knobs.usage_unknown;

	return (struct event_usage){
		.lane = core_rig_lane(rig, core_rig_leaf(&rig->families[start->family])),
		.g = start->g,
		.role = start->role,
		.at_ms = rig->now_ms,
		.sent_ms = start->sent_ms - rig->knobs.behind_ms,
		.first_ms = start->first_ms - rig->knobs.behind_ms,
		.read = known ? start->read : EVENT_UNKNOWN,
		.written = known ? start->written : EVENT_UNKNOWN,
		.uncached = known ? 100 : EVENT_UNKNOWN,
		.output = EVENT_UNKNOWN,
	};
}

/* `begin` and `settle` raise `until` themselves. */
static void
refresh(struct core_rig *rig, const struct core_rig_start *start)
{
	const struct core_rig_family *family = &rig->families[start->family];

	if (rig->knobs.usage_unknown || start->read + start->written == 0)
		return;
	for (uint32_t i = 0; i < family->chain_count; i++) {
		struct core_rig_node *node = &rig->nodes[family->chain[i]];

		if ((start->marks & 1u << i) && node->life_ms > 0)
			node->until_ms =
				MAX(node->until_ms, start->sent_ms + node->life_ms);
	}
}

static void
begin(struct core_rig *rig, struct core_rig_start *start)
{
	struct event event = { .kind = EVENT_BEGAN };

	respond(rig, start);
	refresh(rig, start);
	if (!start->report)
		return;
	event.usage = usage_of(rig, start);
	core_rig_say(rig, &event);
}

static void
leave(struct core_rig *rig, struct core_rig_start *start)
{
	struct core_rig_family *family = &rig->families[start->family];

	for (uint32_t i = 0; i < family->chain_count; i++)
		if (start->unproven & 1u << i)
			rig->nodes[family->chain[i]].unproven--;
	rig->nodes[core_rig_leaf(family)].in_use--;
	rig->pools[start->pool].used--;
	rig->in_flight -= !family->elsewhere;
	rig->starts_count--;
	start->used = false;
}

static void
finish(struct core_rig *rig, struct core_rig_start *start)
{
	struct event event = { .kind = EVENT_DONE };

	refresh(rig, start);
	if (start->role == LANE_TICKET) {
		event.kind = EVENT_TICKET;
		event.ticket.usage = usage_of(rig, start);
		event.ticket.ok = true;
		rig->nodes[core_rig_leaf(&rig->families[start->family])].ticket =
			LANE_TICKET_OK;
	} else {
		event.usage = usage_of(rig, start);
		rig->families[start->family].done++;
	}
	if (!rig->knobs.usage_unknown || start->role != LANE_PLAIN)
		core_rig_say(rig, &event);
	leave(rig, start);
}

void
core_rig_come_back(struct core_rig *rig, struct core_rig_start *start, enum lane_back why)
{
	struct core_rig_family *family = &rig->families[start->family];
	struct core_rig_node *node = &rig->nodes[core_rig_leaf(family)];
	struct event event = { .kind = EVENT_BACK };

	event.back = (struct event_back){
		.lane = core_rig_lane(rig, core_rig_leaf(family)),
		.g = start->g,
		.role = start->role,
		.why = why,
	};
	if (why <= LANE_BACK_OVERDUE && node->g == start->g && !start->begun &&
	    (start->role == LANE_LEAD || start->role == LANE_CANARY)) {
		node->credits++;
		node->role = start->role;
	}
	if (why < LANE_BACK_DEAD) {
		family->backlog++;
		family->returned++;
	} else {
		family->done++;
	}
	if (start->role != LANE_PLAIN)
		core_rig_say(rig, &event);
	leave(rig, start);
}

/* Whether this start meets one of the failures that were ordered. */
static bool
meets_failure(struct core_rig *rig, struct core_rig_start *start)
{
	struct event event = { .kind = EVENT_PRESSURE };

	event.pressure.budget = core_rig_id("budget");
	if (rig->knobs.pressure > 0) {
		rig->knobs.pressure--;
		rig->parked_ms = event.pressure.until_ms = rig->now_ms + 1000;
		event.pressure.what = EVENT_PRESSURE_BUSY;
		core_rig_say(rig, &event);
		core_rig_come_back(rig, start, LANE_BACK_DEFERRED);
	} else if (rig->knobs.broken > 0) {
		rig->knobs.broken--;
		core_rig_come_back(rig, start, LANE_BACK_FAILED);
	} else if (rig->knobs.exhausted > 0) {
		rig->knobs.exhausted--;
		core_rig_come_back(rig, start, LANE_BACK_EXHAUSTED);
	} else if (rig->knobs.refused > 0) {
		rig->knobs.refused--;
		core_rig_come_back(rig, start, LANE_BACK_DEAD);
	} else {
		return false;
	}
	return true;
}

void
core_rig_serve(struct core_rig *rig)
{
	for (uint32_t i = 0; i < CORE_RIG_STARTS; i++) {
		struct core_rig_start *start = &rig->starts[i];

		if (start->used && !start->begun && start->first_ms <= rig->now_ms &&
		    !meets_failure(rig, start))
			begin(rig, start);
		if (start->used && start->begun && start->end_ms <= rig->now_ms)
			finish(rig, start);
	}
}
