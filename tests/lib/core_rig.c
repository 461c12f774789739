#include "tests/lib/core_rig.h"

#include "tests/lib/core_trace.h"

#include <stdlib.h>

#define NONE   UINT32_MAX
#define NEVER  UINT64_MAX
#define MARGIN 10000
#define STEPS  2000000 /* more of them in one run is a loop without progress */

static struct id128
named(const char *name)
{
	return id_of(span_from(name), 7);
}

struct core_config
core_rig_config(void)
{
	struct core_config config = CORE_CONFIG_DEFAULT;

	config.families_max = CORE_RIG_FAMILIES;
	config.lanes_max = CORE_RIG_NODES;
	config.pools_max = CORE_RIG_POOLS;
	config.budgets_max = 2;
	config.models_max = 2;
	return config;
}

static void
put(struct core_rig_queue *queue, const struct event *event, uint64_t due_ms)
{
	uint32_t place = (queue->first + queue->count) % CORE_RIG_EVENTS;

	VERIFY(queue->count < CORE_RIG_EVENTS);
	queue->events[place] = *event;
	queue->due_ms[place] = due_ms;
	queue->count++;
}

static bool
take(struct core_rig_queue *queue, uint64_t now_ms, struct event *ret_event)
{
	if (queue->count == 0 || queue->due_ms[queue->first] > now_ms)
		return false;
	*ret_event = queue->events[queue->first];
	queue->first = (queue->first + 1) % CORE_RIG_EVENTS;
	queue->count--;
	return true;
}

static void
answer(struct core_rig *rig, const struct event *event)
{
	put(&rig->answers, event, rig->now_ms + rig->knobs.answer_ms);
}

/* A line of the event stream: may be lost. */
static void
say(struct core_rig *rig, const struct event *event)
{
	if (!rig->knobs.mute)
		put(&rig->lines, event, rig->now_ms + rig->knobs.line_ms);
}

static struct lane_id
lane_of(const struct core_rig *rig, uint32_t node)
{
	return (struct lane_id){ rig->nodes[node].id, 0 };
}

static uint32_t
leaf_of(const struct core_rig_family *family)
{
	return family->chain[family->chain_count - 1];
}

static uint32_t
node_by_id(const struct core_rig *rig, struct id128 id)
{
	for (uint32_t i = 0; i < rig->nodes_count; i++)
		if (id_equals(rig->nodes[i].id, id))
			return i;
	VERIFY(!"a lane that the rig knows");
	return NONE;
}

static uint32_t
family_by_id(const struct core_rig *rig, struct id128 id)
{
	for (uint32_t i = 0; i < rig->families_count; i++)
		if (id_equals(rig->nodes[leaf_of(&rig->families[i])].id, id))
			return i;
	return NONE;
}

/* --- What Redis does with commands --- */

static bool
is_lost(struct core_rig *rig)
{
	if (rig->knobs.deaf == 0)
		return false;
	rig->knobs.deaf--;
	return true;
}

static void
grant(struct core_rig *rig, const struct command_grant *command)
{
	struct core_rig_node *node = &rig->nodes[node_by_id(rig, command->lane.node)];
	uint32_t family = family_by_id(rig, command->lane.node);
	struct event event = { .kind = EVENT_GRANTED };
	bool done = node->g == command->g;

	rig->grants++;
	if (done) {
		if (command->g_new != node->g) {
			node->credits = command->credits;
			node->role = command->role;
			node->ticket =
				command->ticket ? LANE_TICKET_WANTED : LANE_TICKET_NONE;
			node->ticket_deadline_ms = command->ticket_deadline_ms;
		}
		if (command->until_ms == COMMAND_KEEP)
			;
		else if (command->g_new != node->g || node->gate != LANE_OPEN)
			node->until_ms = command->until_ms;
		else
			node->until_ms = MAX(node->until_ms, command->until_ms);
		node->g = command->g_new;
		node->gate = command->gate;
		node->reason = command->reason;
		node->window = command->window;
		node->rank = command->rank;
		node->life_ms = command->life_ms;
		if (command->p != COMMAND_KEEP)
			node->p = (uint32_t)command->p;
		if (family != NONE)
			rig->families[family].marks = command->marks;
	}
	event.granted = (struct event_granted){
		.lane = command->lane,
		.g_new = command->g_new,
		.status = is_lost(rig) ? EVENT_STATUS_UNKNOWN
		          : done       ? EVENT_STATUS_DONE
		                       : EVENT_STATUS_REFUSED,
		.g = node->g,
		.in_use = node->in_use,
	};
	if (family != NONE && rig->families[family].backlog > 0) {
		event.granted.bits = 8;
		event.granted.head_ms = rig->families[family].oldest_ms;
	}
	answer(rig, &event);
}

static void
set_budget(struct core_rig *rig, const struct command_budget *command)
{
	struct event event = { .kind = EVENT_PACED };

	rig->pace = command->pace;
	rig->begin = true;
	if (command->parked_until_ms != COMMAND_KEEP)
		rig->parked_ms = command->parked_until_ms;
	event.paced.budget = command->id;
	event.paced.status = is_lost(rig) ? EVENT_STATUS_UNKNOWN : EVENT_STATUS_DONE;
	answer(rig, &event);
}

static void
glance(struct core_rig *rig, const struct command_glance *command)
{
	const struct core_rig_family *family =
		&rig->families[family_by_id(rig, command->family)];
	struct event event = { .kind = EVENT_GLANCED };

	event.glanced = (struct event_glanced){
		.family = command->family,
		.status = is_lost(rig) ? EVENT_STATUS_UNKNOWN : EVENT_STATUS_DONE,
		.backlog = family->backlog,
		.in_use = rig->nodes[leaf_of(family)].in_use,
		.head_ms = family->backlog > 0 ? family->oldest_ms : 0,
	};
	answer(rig, &event);
}

static void
execute(struct core_rig *rig, const struct command_list *list)
{
	for (uint32_t i = 0; i < list->count; i++) {
		const struct command *command = &list->commands[i];

		if (rig->trace)
			core_trace_command(rig->trace, rig, command);
		switch (command->kind) {
		case COMMAND_GRANT:
			grant(rig, &command->grant);
			break;
		case COMMAND_BUDGET:
			set_budget(rig, &command->budget);
			break;
		case COMMAND_GLANCE:
			glance(rig, &command->glance);
			break;
		case COMMAND_REBUILD:
		case COMMAND_NOTE:
		case COMMAND_KIND_COUNT:
			break;
		}
	}
}

static void
step(struct core_rig *rig, const struct event *event)
{
	struct command_list list;

	if (rig->trace)
		core_trace_event(rig->trace, rig, event);
	rig->step++;
	core_step(rig->core, rig->now_ms, event, &list);
	execute(rig, &list);
}

static void
deliver(struct core_rig *rig)
{
	static const struct event tick = { .kind = EVENT_TICK };
	uint32_t turns = 0;

	struct event event;

	for (;;) {
		VERIFY(++turns < 100000);
		if (take(&rig->answers, rig->now_ms, &event) ||
		    take(&rig->lines, rig->now_ms, &event))
			step(rig, &event);
		else if (core_deadline(rig->core) <= rig->now_ms)
			step(rig, &tick);
		else
			return;
	}
}

void
core_rig_feed(struct core_rig *rig, const struct event *event)
{
	step(rig, event);
	deliver(rig);
}

/* --- The provider --- */

static bool
is_readable(const struct core_rig *rig, const struct core_rig_node *node)
{
	return !rig->knobs.never_read && node->readable_ms <= rig->now_ms &&
	       rig->now_ms < node->expires_ms;
}

/* Decides what a request reads and writes, when it is sent. */
static void
look_up(struct core_rig *rig, struct core_rig_start *start)
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

static void
expire_entries(struct core_rig *rig)
{
	for (uint32_t i = 0; i < rig->nodes_count; i++)
		if (rig->nodes[i].expires_ms <= rig->now_ms)
			rig->nodes[i].readable_ms = NEVER;
}

/* --- The workers --- */

static struct event_usage
usage_of(const struct core_rig *rig, const struct core_rig_start *start)
{
	bool known = !rig->knobs.usage_unknown;

	return (struct event_usage){
		.lane = lane_of(rig, leaf_of(&rig->families[start->family])),
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
	say(rig, &event);
}

static void
leave(struct core_rig *rig, struct core_rig_start *start)
{
	struct core_rig_family *family = &rig->families[start->family];

	for (uint32_t i = 0; i < family->chain_count; i++)
		if (start->unproven & 1u << i)
			rig->nodes[family->chain[i]].unproven--;
	rig->nodes[leaf_of(family)].in_use--;
	rig->pools[start->pool].used--;
	rig->in_flight--;
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
		rig->nodes[leaf_of(&rig->families[start->family])].ticket =
			LANE_TICKET_OK;
	} else {
		event.usage = usage_of(rig, start);
		rig->families[start->family].done++;
	}
	if (!rig->knobs.usage_unknown || start->role != LANE_PLAIN)
		say(rig, &event);
	leave(rig, start);
}

static void
come_back(struct core_rig *rig, struct core_rig_start *start, enum lane_back why)
{
	struct core_rig_family *family = &rig->families[start->family];
	struct core_rig_node *node = &rig->nodes[leaf_of(family)];
	struct event event = { .kind = EVENT_BACK };

	event.back = (struct event_back){
		.lane = lane_of(rig, leaf_of(family)),
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
		say(rig, &event);
	leave(rig, start);
}

/* Whether this start meets one of the failures that were ordered. */
static bool
meets_failure(struct core_rig *rig, struct core_rig_start *start)
{
	struct event event = { .kind = EVENT_PRESSURE };

	event.pressure.budget = named("budget");
	if (rig->knobs.pressure > 0) {
		rig->knobs.pressure--;
		rig->parked_ms = event.pressure.until_ms = rig->now_ms + 1000;
		event.pressure.what = EVENT_PRESSURE_BUSY;
		say(rig, &event);
		come_back(rig, start, LANE_BACK_DEFERRED);
	} else if (rig->knobs.broken > 0) {
		rig->knobs.broken--;
		come_back(rig, start, LANE_BACK_FAILED);
	} else if (rig->knobs.refused > 0) {
		rig->knobs.refused--;
		come_back(rig, start, LANE_BACK_DEAD);
	} else {
		return false;
	}
	return true;
}

static void
serve(struct core_rig *rig)
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

/* --- claim --- */

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
	event.expired.lane = lane_of(rig, index);
	event.expired.g = node->g;
	say(rig, &event);
	return false;
}

static bool
gates_start(struct core_rig *rig, const struct core_rig_family *family)
{
	for (uint32_t i = 0; i + 1 < family->chain_count; i++)
		if ((family->gates & 1u << i) && !gate_starts(rig, family->chain[i]))
			return false;
	return gate_starts(rig, leaf_of(family));
}

static bool
budget_starts(const struct core_rig *rig)
{
	return rig->now_ms >= rig->parked_ms &&
	       (rig->pace == 0 || rig->in_flight < rig->pace);
}

/* Answers the role a job of the family could start with now; LANE_ROLE_COUNT: none. */
static enum lane_role
role_now(struct core_rig *rig, struct core_rig_family *family)
{
	struct core_rig_node *node = &rig->nodes[leaf_of(family)];

	if (rig->pools[family->pool].used >= rig->pools[family->pool].slots ||
	    !budget_starts(rig) || (family->flags & EVENT_FAMILY_PAUSED))
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

	if (core_family_view(rig->core, rig->nodes[leaf_of(family)].id, &view) < 0)
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
			        rig->nodes[leaf_of(family)].name,
			        lane_role_text(start->role));
	}
}

static void
tell_start(struct core_rig *rig, const struct core_rig_start *start)
{
	struct event event = { .kind = EVENT_START };

	event.start = (struct event_start){
		.lane = lane_of(rig, leaf_of(&rig->families[start->family])),
		.g = start->g,
		.role = start->role,
		.at_ms = rig->now_ms,
	};
	if (start->role != LANE_PLAIN)
		say(rig, &event);
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
	struct core_rig_node *node = &rig->nodes[leaf_of(family)];
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
	say(rig, &event);
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
		.g = rig->nodes[leaf_of(family)].g,
		.marks = family->marks,
		.sent_ms = rig->now_ms,
		.report = role != LANE_PLAIN || rig->begin,
	};
	rig->begin = false;
	count_unproven(rig, start);
	look_up(rig, start);
	start->first_ms = rig->now_ms + (start->written > 0 || rig->knobs.cache_off
	                                         ? rig->knobs.cold_ms
	                                         : rig->knobs.warm_ms);
	start->end_ms = start->first_ms + (role == LANE_TICKET ? 0 : rig->knobs.job_ms);
	rig->nodes[leaf_of(family)].in_use++;
	rig->pools[family->pool].used++;
	rig->in_flight++;
	rig->starts_count++;
	rig->starts_max = MAX(rig->starts_max, rig->starts_count);
	tell_start(rig, start);
	take_from(rig, index, role);
}

/* The clock of hold_max runs while nothing but a gate stops the family. */
static void
hold_clocks(struct core_rig *rig)
{
	for (uint32_t i = 0; i < rig->families_count; i++) {
		struct core_rig_family *family = &rig->families[i];
		struct core_rig_node *node = &rig->nodes[leaf_of(family)];
		bool held =
			family->backlog > 0 && node->credits == 0 && rig->hold &&
			!family->unheld && budget_starts(rig) && !rig->knobs.stopped &&
			!(family->flags & EVENT_FAMILY_PAUSED) &&
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

static void
claim(struct core_rig *rig)
{
	for (;;) {
		uint32_t best = NONE;
		enum lane_role best_role = LANE_ROLE_COUNT;

		if (rig->knobs.stopped)
			return;
		for (uint32_t i = 0; i < rig->families_count; i++) {
			enum lane_role role = role_now(rig, &rig->families[i]);

			if (role == LANE_ROLE_COUNT)
				continue;
			if (best == NONE || role == LANE_TICKET ||
			    (best_role != LANE_TICKET &&
			     rig->nodes[leaf_of(&rig->families[i])].rank <
			             rig->nodes[leaf_of(&rig->families[best])].rank)) {
				best = i;
				best_role = role;
			}
		}
		if (best == NONE)
			return;
		start_job(rig, best, best_role);
	}
}

/* A claim that left slots free says so. */
static void
tell_short(struct core_rig *rig)
{
	for (uint32_t i = 0; i < rig->pools_count; i++) {
		const struct core_rig_pool *pool = &rig->pools[i];
		struct event event = { .kind = EVENT_SHORT };

		if (pool->used == pool->slots || rig->knobs.stopped)
			continue;
		event.short_pool.pool = named(pool->name);
		event.short_pool.free = pool->slots - pool->used;
		say(rig, &event);
	}
}

/* --- time --- */

static uint64_t
next_time(const struct core_rig *rig, uint64_t end_ms)
{
	uint64_t next_ms = MIN(end_ms, core_deadline(rig->core));

	for (uint32_t i = 0; i < CORE_RIG_STARTS; i++) {
		const struct core_rig_start *start = &rig->starts[i];

		if (start->used)
			next_ms = MIN(next_ms,
			              start->begun ? start->end_ms : start->first_ms);
	}
	for (uint32_t i = 0; i < rig->families_count; i++)
		if (rig->families[i].held_ms > 0)
			next_ms = MIN(next_ms, MAX(rig->now_ms + 1,
			                           rig->families[i].held_ms +
			                                   rig->knobs.hold_max_ms));
	if (rig->parked_ms > rig->now_ms)
		next_ms = MIN(next_ms, rig->parked_ms);
	if (rig->lines.count > 0)
		next_ms = MIN(next_ms, rig->lines.due_ms[rig->lines.first]);
	if (rig->answers.count > 0)
		next_ms = MIN(next_ms, rig->answers.due_ms[rig->answers.first]);
	/* Workers poll once a second. */
	next_ms = MIN(next_ms, (rig->now_ms / 1000 + 1) * 1000);
	return MAX(next_ms, rig->now_ms);
}

static void
turn(struct core_rig *rig)
{
	expire_entries(rig);
	serve(rig);
	deliver(rig);
	claim(rig);
	hold_clocks(rig);
	if (rig->now_ms % 1000 == 0)
		tell_short(rig);
	deliver(rig);
	claim(rig);
	deliver(rig);
}

void
core_rig_run(struct core_rig *rig, uint64_t ms)
{
	uint64_t end_ms = rig->now_ms + ms;

	for (uint32_t i = 0; i < STEPS; i++) {
		turn(rig);
		if (rig->now_ms >= end_ms)
			return;
		rig->now_ms = next_time(rig, end_ms);
	}
	VERIFY(!"time goes on");
}

static bool
is_drained(const struct core_rig *rig)
{
	for (uint32_t i = 0; i < rig->families_count; i++)
		if (rig->families[i].backlog > 0)
			return false;
	return rig->starts_count == 0;
}

bool
core_rig_drain(struct core_rig *rig, uint64_t ms)
{
	uint64_t end_ms = rig->now_ms + ms;

	while (rig->now_ms < end_ms) {
		if (is_drained(rig))
			return true;
		turn(rig);
		rig->now_ms = next_time(rig, end_ms);
	}
	return is_drained(rig);
}

/* --- set-up --- */

static void
tell_model(struct core_rig *rig)
{
	struct event event = { .kind = EVENT_MODEL };

	event.model = rig->model;
	step(rig, &event);
}

static void
tell_pool(struct core_rig *rig, const struct core_rig_pool *pool)
{
	struct event event = { .kind = EVENT_POOL };

	event.pool.id = named(pool->name);
	event.pool.slots = pool->slots;
	step(rig, &event);
}

static void
tell_budget(struct core_rig *rig)
{
	struct event event = { .kind = EVENT_BUDGET };

	event.budget.id = named("budget");
	step(rig, &event);
}

uint32_t
core_rig_pool(struct core_rig *rig, const char *name, uint32_t slots)
{
	uint32_t index = 0;

	while (index < rig->pools_count && strcmp(rig->pools[index].name, name) != 0)
		index++;
	if (index == rig->pools_count) {
		VERIFY(rig->pools_count < CORE_RIG_POOLS);
		rig->pools_count++;
	}
	snprintf(rig->pools[index].name, CORE_RIG_NAME, "%s", name);
	rig->pools[index].slots = slots;
	tell_pool(rig, &rig->pools[index]);
	deliver(rig);
	return index;
}

struct core_rig *
core_rig_create(const struct core_config *config, uint32_t slots)
{
	struct core_rig *rig = calloc(1, sizeof *rig);
	struct event end = { .kind = EVENT_RECOVERED_END };

	VERIFY(rig);
	rig->memory = aligned_alloc(16, core_size(config));
	VERIFY(rig->memory);
	memset(rig->memory, 0xa5, core_size(config)); /* init must not rely on zeros */
	rig->core = core_init(rig->memory, core_size(config), config);
	rig->now_ms = CORE_RIG_START_MS;
	rig->hold = true;
	rig->pace = config->pace_start;
	rig->knobs = (struct core_rig_knobs){
		.cold_ms = 3000,
		.warm_ms = 500,
		.job_ms = 2000,
		.ttl_ms = 300000,
		.hold_max_ms = 30000,
	};
	rig->model = (struct event_model){
		.id = named("model"),
		.hold = true,
		.needs_marker = true,
		.exact = true,
		.proves = true,
		.streams = true,
		.calls = false,
		.minimum_tokens = 1024,
		.ttl_ms = rig->knobs.ttl_ms,
	};
	tell_model(rig);
	tell_budget(rig);
	(void)core_rig_pool(rig, "p", slots);
	core_rig_feed(rig, &end);
	return rig;
}

struct core_rig *
core_rig_free(struct core_rig *rig)
{
	if (rig)
		free(rig->memory);
	free(rig);
	return NULL;
}

struct core_rig_node *
core_rig_node(struct core_rig *rig, const char *name)
{
	return &rig->nodes[node_by_id(rig, named(name))];
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
		.id = named(name),
		.parent = parent,
		.window = LANE_WINDOW,
		.until_ms = LANE_FOREVER,
		.readable_ms = NEVER,
		.tokens = 10000 + (parent == NONE ? 0 : rig->nodes[parent].tokens),
	};
	snprintf(rig->nodes[index].name, CORE_RIG_NAME, "%s", name);
	return index;
}

static uint32_t
parse_family(struct core_rig *rig, const char *chain, uint32_t pool,
             struct lineage *ret_chain)
{
	uint32_t parent = NONE, nodes[LINEAGE_MAX], index;
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
	index = family_by_id(rig, rig->nodes[parent].id);
	if (index == NONE) {
		VERIFY(rig->families_count < CORE_RIG_FAMILIES);
		index = rig->families_count++;
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

static struct id128
route_of(const struct core_rig *rig, const struct core_rig_family *family)
{
	return (struct id128){ 9, rig->nodes[leaf_of(family)].id.low };
}

static struct event
hold_event(const struct core_rig *rig, const struct core_rig_family *family)
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
		.pool = named(rig->pools[family->pool].name),
		.budget = named("budget"),
		.model = named("model"),
		.route = route_of(rig, family),
		.chain = *chain,
		.flags = family->flags,
		.oldest_ms = family->oldest_ms > 0 ? family->oldest_ms : EVENT_UNKNOWN,
		.hold_max_ms = rig->knobs.hold_max_ms,
		.marks = family->marks,
	};
	return event;
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

void
core_rig_hold(struct core_rig *rig, bool on)
{
	struct event event = { .kind = EVENT_HOLD };

	rig->hold = on;
	rig->was_off |= !on;
	event.hold.on = on;
	core_rig_feed(rig, &event);
}

void
core_rig_hold_route(struct core_rig *rig, const char *leaf, bool on)
{
	for (uint32_t i = 0; i < rig->families_count; i++) {
		struct core_rig_family *family = &rig->families[i];
		struct event event;

		if (strcmp(rig->nodes[leaf_of(family)].name, leaf) != 0)
			continue;
		family->unheld = !on;
		event = hold_event(rig, family);
		core_rig_feed(rig, &event);
	}
}

void
core_rig_evict(struct core_rig *rig)
{
	for (uint32_t i = 0; i < rig->nodes_count; i++)
		rig->nodes[i].readable_ms = NEVER;
}

void
core_rig_kill(struct core_rig *rig)
{
	for (uint32_t i = 0; i < CORE_RIG_STARTS; i++)
		if (rig->starts[i].used)
			come_back(rig, &rig->starts[i], LANE_BACK_WORKER_DIED);
	deliver(rig);
}

/* --- recovery --- */

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
		step(rig, &event);
	}
}

static void
recover_lanes(struct core_rig *rig)
{
	for (uint32_t i = 0; i < rig->nodes_count; i++) {
		const struct core_rig_node *node = &rig->nodes[i];
		struct event event = { .kind = EVENT_RECOVERED_LANE };

		event.lane = (struct event_lane){
			.lane = lane_of(rig, i),
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
		step(rig, &event);
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
			.lane = lane_of(rig, leaf_of(&rig->families[start->family])),
			.g = start->g,
			.role = start->role,
		};
		step(rig, &event);
	}
}

void
core_rig_restart(struct core_rig *rig)
{
	struct core_config config = core_rig_config();
	struct event event;

	rig->answers.count = 0; /* answers to the dead; the stream is read on */
	rig->core = core_init(rig->memory, core_size(&config), &config);
	tell_model(rig);
	tell_budget(rig);
	for (uint32_t i = 0; i < rig->pools_count; i++)
		tell_pool(rig, &rig->pools[i]);
	event = (struct event){ .kind = EVENT_HOLD };
	event.hold.on = rig->hold;
	step(rig, &event);
	for (uint32_t i = 0; i < rig->families_count; i++) {
		event = hold_event(rig, &rig->families[i]);
		if (!event.hold.on)
			step(rig, &event);
	}
	recover_families(rig);
	recover_lanes(rig);
	recover_leases(rig);
	event = (struct event){ .kind = EVENT_RECOVERED_BUDGET };
	event.recovered_budget.id = named("budget");
	event.recovered_budget.pace = rig->pace;
	event.recovered_budget.in_flight = rig->in_flight;
	event.recovered_budget.parked_until_ms = rig->parked_ms;
	step(rig, &event);
	event = (struct event){ .kind = EVENT_RECOVERED_END };
	core_rig_feed(rig, &event);
}
