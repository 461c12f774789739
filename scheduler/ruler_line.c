#include "scheduler/ruler_line.h"

#include "common/text.h"
#include "scheduler/ruler_clock.h"
#include "scheduler/ruler_core.h"
#include "scheduler/ruler_note.h"
#include "scheduler/ruler_session.h"
#include "scheduler/ruler_tally.h"
#include "scheduler/ruler_undecided.h"
#include "scheduler/ruler_unheld.h"
#include "scheduler/ruler_warm.h"

#define CLOCK_NOISE_MS 2 /* between our measure of Redis's clock and its own */

/* ---- words of the protocol, words of the core ------------------------------------ */

static uint64_t
known(int64_t value)
{
	return value < 0 ? EVENT_UNKNOWN : (uint64_t)value;
}

static struct event_usage
event_usage(const struct protocol_usage *usage)
{
	return (struct event_usage){
		.sent_ms = known(usage->sent_ms),
		.first_ms = known(usage->first_ms),
		.read = known(usage->read),
		.written = known(usage->written),
		.uncached = known(usage->uncached),
		.output = known(usage->output),
		.limits = { (uint64_t)MAX(usage->limit_requests, 0),
		            (uint64_t)MAX(usage->limit_input, 0),
		            (uint64_t)MAX(usage->limit_output, 0) },
	};
}

enum lane_role
ruler_line_role(enum protocol_role role)
{
	switch (role) {
	case PROTOCOL_PLAIN:
		return LANE_PLAIN;
	case PROTOCOL_LEAD:
		return LANE_LEAD;
	case PROTOCOL_CANARY:
		return LANE_CANARY;
	case PROTOCOL_HOLD_LIMIT:
		return LANE_HOLD_LIMIT;
	case PROTOCOL_NOW:
		return LANE_NOW;
	case PROTOCOL_TICKET:
		return LANE_TICKET;
	}
	return LANE_PLAIN;
}

static enum lane_back
core_back(struct span why)
{
	static const struct {
		const char *word;
		enum lane_back why;
	} words[] = {
		{ "released", LANE_BACK_RELEASED },
		{ "unsent", LANE_BACK_UNSENT },
		{ "worker_died", LANE_BACK_WORKER_DIED },
		{ "deferred", LANE_BACK_DEFERRED },
		{ "failed", LANE_BACK_FAILED },
		{ "overdue", LANE_BACK_OVERDUE },
		{ "dead", LANE_BACK_DEAD },
		{ "missing", LANE_BACK_MISSING },
		{ "dropped", LANE_BACK_DROPPED },
		{ "exhausted", LANE_BACK_EXHAUSTED },
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (span_equals(why, span_from(words[i].word)))
			return words[i].why;
	return LANE_BACK_FAILED;
}

enum event_pressure_kind
ruler_line_pressure(struct span what)
{
	if (span_equals(what, SPAN("429")))
		return EVENT_PRESSURE_BUSY;
	if (span_equals(what, SPAN("529")))
		return EVENT_PRESSURE_OVER;
	if (span_equals(what, SPAN("spend")))
		return EVENT_PRESSURE_SPEND;
	if (span_equals(what, SPAN("unreached")) || span_equals(what, SPAN("timeout")) ||
	    span_equals(what, SPAN("unsent")))
		return EVENT_PRESSURE_AWAY;
	return EVENT_PRESSURE_ERROR;
}

/* ---- one line -------------------------------------------------------------------- */

static void
tell_usage(struct ruler *ruler, uint64_t now_ms, uint64_t at_ms, enum event_kind kind,
           const struct protocol_event *line)
{
	struct event event = { .kind = kind, .usage = event_usage(&line->usage) };

	event.usage.lane = (struct lane_id){ line->lane.node, line->lane.domain };
	event.usage.g = line->generation;
	event.usage.role = ruler_line_role(line->role);
	event.usage.at_ms = at_ms;
	ruler_core_tell(ruler, now_ms, &event);
}

static void
tell_ticket(struct ruler *ruler, uint64_t now_ms, uint64_t at_ms,
            const struct protocol_event *line)
{
	struct event event = { .kind = EVENT_TICKET };

	event.ticket.usage = event_usage(&line->usage);
	event.ticket.usage.lane = (struct lane_id){ line->lane.node, line->lane.domain };
	event.ticket.usage.g = line->generation;
	event.ticket.usage.role = LANE_TICKET;
	event.ticket.usage.at_ms = at_ms;
	event.ticket.ok = line->ok;
	event.ticket.refused = !line->ok && span_equals(line->word, SPAN("dead"));
	ruler_core_tell(ruler, now_ms, &event);
}

static void
forget_family(struct ruler *ruler, struct id128 id)
{
	uint32_t place = ruler_shelf_find(&ruler->known.family_shelf, id);

	if (place == RULER_SHELF_NONE)
		return;
	/* Its segments may be gone too: the next admit hears NEED and sends them. */
	ruler->known.families[place].stored = false;
}

static void
set_pause(struct ruler *ruler, uint64_t now_ms, struct id128 id, bool on)
{
	const struct event event = { .kind = EVENT_PAUSE, .pause = { id, on } };
	uint32_t place = ruler_shelf_find(&ruler->known.family_shelf, id);
	struct ruler_note about = { 0 };
	struct ruler_family *family;
	char hex[ID_HEX_LEN];

	if (place == RULER_SHELF_NONE)
		return;
	family = &ruler->known.families[place];
	if (family->paused == on)
		return;
	family->paused = on; /* the next admission writes it into the record again */
	id_encode(id, hex);
	about.family = (struct span){ hex, ID_HEX_LEN };
	about.route = span_from(family->route);
	ruler_note_about(ruler, RULER_WARNING, &about, "%s",
	                 on ? "paused: nothing of this family starts until it is resumed"
	                    : "resumed: jobs of this family start again");
	ruler_core_tell(ruler, now_ms, &event);
}

void
ruler_line_set_hold(struct ruler *ruler, uint64_t now_ms, bool on, struct span who)
{
	const struct event event = { .kind = EVENT_HOLD, .hold.on = on };

	if (ruler->health.hold == on)
		return;
	ruler_note(ruler, RULER_WARNING, "holding was switched %s%s%.*s",
	           on ? "on" : "off", who.len > 0 ? " by " : "", (int)MIN(who.len, 100),
	           who.data);
	ruler->health.hold = on;
	ruler_core_tell(ruler, now_ms, &event);
}

static void
tell_pressure(struct ruler *ruler, uint64_t now_ms, const struct protocol_event *line)
{
	uint32_t place = ruler_core_budget_named(ruler, now_ms, line->name);
	const struct event event = {
		.kind = EVENT_PRESSURE,
		.pressure = { ruler->known.budgets[place].id,
		              ruler_line_pressure(line->word), line->until_ms },
	};

	ruler_core_tell(ruler, now_ms, &event);
}

static void
tell_unpark(struct ruler *ruler, uint64_t now_ms, const struct protocol_event *line)
{
	uint32_t place = ruler_core_budget_named(ruler, now_ms, line->name);
	const struct event event = {
		.kind = EVENT_UNPARK,
		.unpark.budget = ruler->known.budgets[place].id,
	};
	const struct ruler_note about = { .budget = line->name };

	ruler_note_about(ruler, RULER_WARNING, &about,
	                 "the account was unparked%s%.*s: its jobs start again",
	                 line->word.len > 0 ? " by " : "", (int)MIN(line->word.len, 100),
	                 line->word.data);
	ruler_core_tell(ruler, now_ms, &event);
}

static void
tell_short(struct ruler *ruler, uint64_t now_ms, const struct protocol_event *line)
{
	uint32_t place = ruler_core_pool(ruler, now_ms, line->name);
	const struct event event = {
		.kind = EVENT_SHORT,
		.short_pool = { ruler->known.pools[place].id, line->count },
	};

	ruler_core_tell(ruler, now_ms, &event);
}

static void
note_dead(struct ruler *ruler, const struct protocol_event *line)
{
	ruler_note_job(ruler, RULER_WARNING, line->name, SPAN(""),
	               "dead: %.*s; it is kept until somebody requeues or drops it",
	               (int)MIN(line->word.len, 100), line->word.data);
}

/* A family ran empty, but jobs were admitted to it since then: the line is read later
 * than the core heard of them, and would take a credit back that somebody needs. */
static bool
is_refilled(const struct ruler *ruler, const struct protocol_event *line, uint64_t at_ms)
{
	uint32_t place = ruler_shelf_find(&ruler->known.family_shelf, line->family);

	return line->kind == PROTOCOL_EVENT_EMPTY && place != RULER_SHELF_NONE &&
	       at_ms <= ruler->known.families[place].seen_ms + CLOCK_NOISE_MS;
}

static void
tell_family(struct ruler *ruler, uint64_t now_ms, uint64_t at_ms,
            const struct protocol_event *line)
{
	const struct event event = {
		.kind = line->kind == PROTOCOL_EVENT_EMPTY ? EVENT_EMPTY : EVENT_WORK,
		.family.id = line->family,
	};

	if (!is_refilled(ruler, line, at_ms))
		ruler_core_tell(ruler, now_ms, &event);
}

static void
tell_back(struct ruler *ruler, uint64_t now_ms, const struct protocol_event *line)
{
	const struct event event = {
		.kind = EVENT_BACK,
		.back = { { line->lane.node, line->lane.domain },
		          line->generation,
		          ruler_line_role(line->role),
		          core_back(line->word) },
	};

	ruler_core_tell(ruler, now_ms, &event);
}

static void
tell_start(struct ruler *ruler, uint64_t now_ms, uint64_t at_ms,
           const struct protocol_event *line)
{
	const struct event event = {
		.kind = EVENT_START,
		.start = { { line->lane.node, line->lane.domain },
		           line->generation,
		           ruler_line_role(line->role),
		           at_ms },
	};

	ruler_core_tell(ruler, now_ms, &event);
}

static void
tell_expired(struct ruler *ruler, uint64_t now_ms, const struct protocol_event *line)
{
	const struct event event = {
		.kind = EVENT_EXPIRED,
		.expired = { { line->lane.node, line->lane.domain }, line->generation },
	};

	ruler_core_tell(ruler, now_ms, &event);
}

static void
take_worker(struct ruler *ruler, uint64_t now_ms, const struct protocol_event *line)
{
	if (line->kind == PROTOCOL_EVENT_HELLO)
		ruler_session_add(ruler, now_ms, line->nonce, line->name, line->count);
	else if (line->kind == PROTOCOL_EVENT_BYE)
		ruler_session_remove(ruler, now_ms, line->nonce);
	else
		ruler_session_steer(ruler, now_ms, line->nonce, line->word, line->name);
}

/* What people did. */
static void
take_deed(struct ruler *ruler, uint64_t now_ms, uint64_t at_ms,
          const struct protocol_event *line)
{
	if (line->kind == PROTOCOL_EVENT_HOLD)
		ruler_line_set_hold(ruler, now_ms, line->ok, line->name);
	else if (line->kind == PROTOCOL_EVENT_PAUSE)
		set_pause(ruler, now_ms, line->family, line->ok);
	else if (line->kind == PROTOCOL_EVENT_HOLD_ROUTE)
		ruler_unheld_set(ruler, now_ms, line->ok, line->name, line->word);
	else if (line->kind == PROTOCOL_EVENT_WARM)
		ruler_warm_ask(ruler, now_ms, at_ms, line->family, line->name);
	else
		tell_unpark(ruler, now_ms, line);
}

void
ruler_line_take(struct ruler *ruler, uint64_t now_ms, uint64_t at_ms,
                const struct protocol_event *line)
{
	ruler_tally_line(ruler, now_ms, at_ms, line);
	switch (line->kind) {
	case PROTOCOL_EVENT_START:
		tell_start(ruler, now_ms, at_ms, line);
		return;
	case PROTOCOL_EVENT_BEGAN:
		tell_usage(ruler, now_ms, at_ms, EVENT_BEGAN, line);
		return;
	case PROTOCOL_EVENT_DONE:
		tell_usage(ruler, now_ms, at_ms, EVENT_DONE, line);
		return;
	case PROTOCOL_EVENT_BACK:
		tell_back(ruler, now_ms, line);
		return;
	case PROTOCOL_EVENT_TICKET:
		tell_ticket(ruler, now_ms, at_ms, line);
		return;
	case PROTOCOL_EVENT_PRESSURE:
		tell_pressure(ruler, now_ms, line);
		return;
	case PROTOCOL_EVENT_EMPTY:
	case PROTOCOL_EVENT_WORK:
		tell_family(ruler, now_ms, at_ms, line);
		return;
	case PROTOCOL_EVENT_EXPIRED:
		tell_expired(ruler, now_ms, line);
		return;
	case PROTOCOL_EVENT_SHORT:
		tell_short(ruler, now_ms, line);
		return;
	case PROTOCOL_EVENT_HELLO:
	case PROTOCOL_EVENT_BYE:
	case PROTOCOL_EVENT_STEER:
		take_worker(ruler, now_ms, line);
		return;
	case PROTOCOL_EVENT_DEAD:
		note_dead(ruler, line);
		return;
	case PROTOCOL_EVENT_UNDECIDED:
		ruler_undecided_add(ruler, line->name);
		return;
	case PROTOCOL_EVENT_HOLD:
	case PROTOCOL_EVENT_HOLD_ROUTE:
	case PROTOCOL_EVENT_PAUSE:
	case PROTOCOL_EVENT_UNPARK:
	case PROTOCOL_EVENT_WARM:
		take_deed(ruler, now_ms, at_ms, line);
		return;
	case PROTOCOL_EVENT_FORGOT:
		forget_family(ruler, line->family);
		return;
	case PROTOCOL_EVENT_DRIFT: /* the audit will say what was wrong */
		ruler_clock_hurry(ruler, RULER_TIMER_AUDIT, now_ms);
		return;
	case PROTOCOL_EVENT_ENDED:
	case PROTOCOL_EVENT_SPENT: /* of money, for the ledger */
	case PROTOCOL_EVENT_COUNT:
		return;
	}
}
