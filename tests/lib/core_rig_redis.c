#include "tests/lib/core_rig_inside.h"

#include "tests/lib/core_trace.h"

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
void
core_rig_say(struct core_rig *rig, const struct event *event)
{
	if (!rig->knobs.mute)
		put(&rig->lines, event, rig->now_ms + rig->knobs.line_ms);
}

static bool
is_lost(struct core_rig *rig)
{
	if (rig->knobs.deaf == 0)
		return false;
	rig->knobs.deaf--;
	return true;
}

/* `until` of an open lane never moves back, since starts move it, too. */
static void
set_until(struct core_rig_node *node, const struct command_grant *command)
{
	if (command->until_ms == COMMAND_KEEP)
		return;
	if (command->g_new == node->g && node->gate == LANE_OPEN)
		node->until_ms = MAX(node->until_ms, command->until_ms);
	else
		node->until_ms = command->until_ms;
}

static void
set_lane(struct core_rig_node *node, const struct command_grant *command)
{
	if (command->g_new != node->g) {
		node->credits = command->credits;
		node->role = command->role;
		node->ticket = command->ticket ? LANE_TICKET_WANTED : LANE_TICKET_NONE;
		node->ticket_deadline_ms = command->ticket_deadline_ms;
	}
	set_until(node, command);
	node->g = command->g_new;
	node->gate = command->gate;
	node->reason = command->reason;
	node->window = command->window;
	node->rank = command->rank;
	node->life_ms = command->life_ms;
	if (command->p != COMMAND_KEEP)
		node->p = (uint32_t)command->p;
}

static void
grant(struct core_rig *rig, const struct command_grant *command)
{
	struct core_rig_node *node =
		&rig->nodes[core_rig_node_by_id(rig, command->lane.node)];
	uint32_t index = core_rig_family_by_id(rig, command->lane.node);
	struct core_rig_family *family =
		index == CORE_RIG_NONE ? NULL : &rig->families[index];
	struct event event = { .kind = EVENT_GRANTED };
	bool done = node->g == command->g;

	rig->grants++;
	if (done)
		set_lane(node, command);
	if (done && family)
		family->marks = command->marks;
	event.granted = (struct event_granted){
		.lane = command->lane,
		.g_new = command->g_new,
		.status = is_lost(rig) ? EVENT_STATUS_UNKNOWN
		          : done       ? EVENT_STATUS_DONE
		                       : EVENT_STATUS_REFUSED,
		.g = node->g,
		.in_use = node->in_use,
	};
	if (family && family->backlog > 0) {
		event.granted.bits = 8;
		event.granted.head_ms = family->oldest_ms;
	}
	answer(rig, &event);
}

static void
set_budget(struct core_rig *rig, const struct command_budget *command)
{
	struct event event = { .kind = EVENT_PACED };

	if (id_equals(command->id, core_rig_id("budget"))) {
		rig->pace = command->pace;
		rig->begin = true;
		if (command->parked_until_ms != COMMAND_KEEP)
			rig->parked_ms = command->parked_until_ms;
	}
	event.paced.budget = command->id;
	event.paced.status = is_lost(rig) ? EVENT_STATUS_UNKNOWN : EVENT_STATUS_DONE;
	answer(rig, &event);
}

static void
glance(struct core_rig *rig, const struct command_glance *command)
{
	const struct core_rig_family *family =
		&rig->families[core_rig_family_by_id(rig, command->family)];
	struct event event = { .kind = EVENT_GLANCED };

	event.glanced = (struct event_glanced){
		.family = command->family,
		.status = is_lost(rig) ? EVENT_STATUS_UNKNOWN : EVENT_STATUS_DONE,
		.backlog = family->backlog,
		.in_use = rig->nodes[core_rig_leaf(family)].in_use,
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

void
core_rig_step(struct core_rig *rig, const struct event *event)
{
	struct command_list list;

	if (rig->trace)
		core_trace_event(rig->trace, rig, event);
	rig->step++;
	core_step(rig->core, rig->now_ms, event, &list);
	execute(rig, &list);
}

void
core_rig_deliver(struct core_rig *rig)
{
	static const struct event tick = { .kind = EVENT_TICK };
	uint32_t turns = 0;

	struct event event;

	for (;;) {
		VERIFY(++turns < 100000);
		if (take(&rig->answers, rig->now_ms, &event) ||
		    take(&rig->lines, rig->now_ms, &event))
			core_rig_step(rig, &event);
		else if (core_deadline(rig->core) <= rig->now_ms)
			core_rig_step(rig, &tick);
		else
			return;
	}
}

void
core_rig_feed(struct core_rig *rig, const struct event *event)
{
	core_rig_step(rig, event);
	core_rig_deliver(rig);
}
