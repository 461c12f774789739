#include "tests/lib/core_trace.h"

#include "scheduler/core/pool.h"
#include "tests/lib/core_rig.h"

#define BACK_LIST(X)                            \
	X(LANE_BACK_RELEASED, "released")       \
	X(LANE_BACK_UNSENT, "unsent")           \
	X(LANE_BACK_WORKER_DIED, "worker_died") \
	X(LANE_BACK_DEFERRED, "deferred")       \
	X(LANE_BACK_FAILED, "failed")           \
	X(LANE_BACK_OVERDUE, "overdue")         \
	X(LANE_BACK_DEAD, "dead")               \
	X(LANE_BACK_MISSING, "missing")         \
	X(LANE_BACK_DROPPED, "dropped")         \
	X(LANE_BACK_EXHAUSTED, "exhausted")

static const char *
back_text(enum lane_back why)
{
	static const char *const texts[] = {
#define X(name, text) [name] = text,
		BACK_LIST(X)
#undef X
	};

	return texts[why];
}

/* The name of a node; of anything else, what it can only be. */
static const char *
name_of(const struct core_rig *rig, struct id128 id)
{
	for (uint32_t i = 0; i < rig->nodes_count; i++)
		if (id_equals(rig->nodes[i].id, id))
			return rig->nodes[i].name;
	for (uint32_t i = 0; i < rig->pools_count; i++)
		if (id_equals(id_of(span_from(rig->pools[i].name), 7), id))
			return rig->pools[i].name;
	if (id_equals(id_of(SPAN("budget"), 7), id))
		return "budget";
	if (id_equals(id_of(SPAN("model"), 7), id))
		return "model";
	return "?";
}

static void
print_time(FILE *out, const char *name, uint64_t ms)
{
	if (ms == LANE_FOREVER)
		fprintf(out, " %s=forever", name);
	else if (ms != EVENT_UNKNOWN && ms != 0)
		fprintf(out, " %s=%lld", name, (long long)(ms - CORE_RIG_START_MS));
}

static void
print_count(FILE *out, const char *name, uint64_t value)
{
	if (value == EVENT_UNKNOWN)
		fprintf(out, " %s=-", name);
	else
		fprintf(out, " %s=%llu", name, (unsigned long long)value);
}

static void
print_usage(FILE *out, const struct core_rig *rig, const struct event_usage *usage)
{
	fprintf(out, "%s g=%llu %s", name_of(rig, usage->lane.node),
	        (unsigned long long)usage->g, lane_role_text(usage->role));
	print_time(out, "sent", usage->sent_ms);
	print_time(out, "first", usage->first_ms);
	print_count(out, "read", usage->read);
	print_count(out, "written", usage->written);
}

static void
print_admitted(FILE *out, const struct core_rig *rig, const struct event_admitted *event)
{
	for (uint32_t i = 0; i < event->chain.count; i++)
		fprintf(out, "%s%s%s", i > 0 ? "/" : "",
		        name_of(rig, event->chain.nodes[i].id),
		        event->chain.nodes[i].flags & LINEAGE_SHARED ? "" : "?");
	for (uint32_t i = 0; i < EVENT_LIST_COUNT; i++)
		if (event->jobs[i] > 0)
			fprintf(out, " %c=%u", "hnl!"[i], event -> jobs[i]);
}

static void
print_granted(FILE *out, const struct core_rig *rig, const struct event_granted *event)
{
	static const char *const words[] = { "done", "refused", "unknown" };

	fprintf(out, "%s %s g=%llu", name_of(rig, event->lane.node), words[event->status],
	        (unsigned long long)event->g);
	if (event->in_use > 0)
		fprintf(out, " in_use=%u", event->in_use);
	if (event->bits == 0)
		fprintf(out, " empty");
}

static void
print_lane(FILE *out, const struct core_rig *rig, struct id128 node, uint64_t g,
           const char *word)
{
	fprintf(out, "%s g=%llu %s", name_of(rig, node), (unsigned long long)g, word);
}

static void
print_switch(FILE *out, const char *name, bool on)
{
	fprintf(out, "%s%s%s", name, name[0] ? " " : "", on ? "on" : "off");
}

static void
print_glanced(FILE *out, const struct core_rig *rig, const struct event_glanced *glanced)
{
	fputs(name_of(rig, glanced->family), out);
	print_count(out, "backlog", glanced->backlog);
	print_count(out, "in_use", glanced->in_use);
}

/* What people did. */
static void
print_deed(FILE *out, const struct core_rig *rig, const struct event *event)
{
	if (event->kind == EVENT_HOLD)
		print_switch(out, id_is_none(event->hold.route) ? "" : "route",
		             event->hold.on);
	else if (event->kind == EVENT_PAUSE)
		print_switch(out, name_of(rig, event->pause.family), event->pause.on);
	else
		fputs(name_of(rig, event->unpark.budget), out);
}

static void
print_event(FILE *out, const struct core_rig *rig, const struct event *event)
{
	switch (event->kind) {
	case EVENT_ADMITTED:
	case EVENT_RECOVERED_FAMILY:
		print_admitted(out, rig, &event->admitted);
		break;
	case EVENT_GRANTED:
		print_granted(out, rig, &event->granted);
		break;
	case EVENT_GLANCED:
		print_glanced(out, rig, &event->glanced);
		break;
	case EVENT_START:
	case EVENT_RECOVERED_LEASE:
		print_lane(out, rig, event->start.lane.node, event->start.g,
		           lane_role_text(event->start.role));
		break;
	case EVENT_BEGAN:
	case EVENT_DONE:
		print_usage(out, rig, &event->usage);
		break;
	case EVENT_TICKET:
		print_usage(out, rig, &event->ticket.usage);
		fputs(event->ticket.ok ? " ok" : " failed", out);
		break;
	case EVENT_BACK:
		print_lane(out, rig, event->back.lane.node, event->back.g,
		           lane_role_text(event->back.role));
		fprintf(out, " %s", back_text(event->back.why));
		break;
	case EVENT_PRESSURE:
		print_time(out, "until", event->pressure.until_ms);
		break;
	case EVENT_EMPTY:
	case EVENT_WORK:
	case EVENT_WARM:
		fputs(name_of(rig, event->family.id), out);
		break;
	case EVENT_EXPIRED:
		fputs(name_of(rig, event->expired.lane.node), out);
		break;
	case EVENT_SHORT:
		fputs(name_of(rig, event->short_pool.pool), out);
		print_count(out, "free", event->short_pool.free);
		break;
	case EVENT_POOL:
		fputs(name_of(rig, event->pool.id), out);
		print_count(out, "slots", event->pool.slots);
		break;
	case EVENT_HOLD:
	case EVENT_PAUSE:
	case EVENT_UNPARK:
		print_deed(out, rig, event);
		break;
	case EVENT_RECOVERED_LANE:
		print_lane(out, rig, event->lane.lane.node, event->lane.g,
		           lane_gate_text(event->lane.gate));
		break;
	case EVENT_TICK: /* these have nothing to add */
	case EVENT_MODEL:
	case EVENT_BUDGET:
	case EVENT_PACED:
	case EVENT_RECOVERED_BUDGET:
	case EVENT_RECOVERED_END:
	case EVENT_KIND_COUNT:
		break;
	}
}

static bool
says_nothing_more(enum event_kind kind)
{
	return kind == EVENT_MODEL || kind == EVENT_BUDGET ||
	       kind == EVENT_RECOVERED_BUDGET || kind == EVENT_RECOVERED_END;
}

void
core_trace_event(FILE *out, const struct core_rig *rig, const struct event *event)
{
	/* Answers that say "done", and polls, would drown the rest. */
	if (event->kind == EVENT_TICK || event->kind == EVENT_PACED ||
	    event->kind == EVENT_SHORT ||
	    (event->kind == EVENT_GRANTED && event->granted.status == EVENT_STATUS_DONE))
		return;
	fprintf(out, "%6llu > ", (unsigned long long)(rig->now_ms - CORE_RIG_START_MS));
	if (says_nothing_more(event->kind)) {
		fprintf(out, "%s\n", event_kind_text(event->kind));
		return;
	}
	fprintf(out, "%-8s ", event_kind_text(event->kind));
	print_event(out, rig, event);
	fprintf(out, "\n");
}

static void
print_grant(FILE *out, const struct core_rig *rig, const struct command_grant *grant)
{
	fprintf(out, "%s g=%llu", name_of(rig, grant->lane.node),
	        (unsigned long long)grant->g);
	if (grant->g_new != grant->g)
		fprintf(out, ">%llu", (unsigned long long)grant->g_new);
	fprintf(out, " %s", lane_gate_text(grant->gate));
	if (grant->reason != LANE_REASON_NONE)
		fprintf(out, " (%s)", lane_reason_text(grant->reason));
	if (grant->credits > 0)
		fprintf(out, " %s=%u", lane_role_text(grant->role), grant->credits);
	if (grant->ticket)
		fprintf(out, " ticket");
	if (grant->window != LANE_WINDOW)
		fprintf(out, " window=%u", grant->window);
	if (grant->has_family && grant->rank == POOL_RANK_LAST)
		fprintf(out, " rank=last");
	else if (grant->has_family)
		fprintf(out, " rank=%+d", (int)grant->rank - POOL_RANK_FIRST);
	print_time(out, "until", grant->until_ms);
	if (grant->p > 0)
		print_count(out, "p", grant->p);
	if (grant->marks > 0)
		fprintf(out, " marks=%u", grant->marks);
}

static void
print_note(FILE *out, const struct core_rig *rig, const struct command_note *note)
{
	struct id128 id = id_is_none(note->id) ? note->lane.node : note->id;

	fprintf(out, "%s %s", name_of(rig, id), command_note_text(note->kind));
	if (note->kind == COMMAND_NOTE_GATE) {
		fprintf(out, " %s > %s", lane_gate_text((enum lane_gate)note->a),
		        lane_gate_text((enum lane_gate)note->b));
		if (note->c != LANE_REASON_NONE)
			fprintf(out, " (%s)",
			        lane_reason_text((enum lane_reason)note->c));
		return;
	}
	fprintf(out, " %llu %llu", (unsigned long long)note->a,
	        (unsigned long long)note->b);
}

void
core_trace_command(FILE *out, const struct core_rig *rig, const struct command *command)
{
	fprintf(out, "%6llu < %-8s ",
	        (unsigned long long)(rig->now_ms - CORE_RIG_START_MS),
	        command_kind_text(command->kind));
	switch (command->kind) {
	case COMMAND_GRANT:
		print_grant(out, rig, &command->grant);
		break;
	case COMMAND_BUDGET:
		fprintf(out, "pace=%u", command->budget.pace);
		if (command->budget.parked_until_ms != COMMAND_KEEP)
			print_time(out, "parked", command->budget.parked_until_ms);
		break;
	case COMMAND_GLANCE:
		fprintf(out, "%s", name_of(rig, command->glance.family));
		break;
	case COMMAND_NOTE:
		print_note(out, rig, &command->note);
		break;
	case COMMAND_REBUILD:
	case COMMAND_KIND_COUNT:
		break;
	}
	fprintf(out, "\n");
}
