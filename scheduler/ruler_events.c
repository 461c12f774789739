#include "scheduler/ruler_events.h"

#include "common/codec/protocol_event.h"
#include "common/text.h"
#include "scheduler/ruler_clock.h"
#include "scheduler/ruler_core.h"
#include "scheduler/ruler_ledger.h"
#include "scheduler/ruler_note.h"
#include "scheduler/ruler_session.h"
#include "scheduler/ruler_tally.h"
#include "scheduler/ruler_undecided.h"
#include "scheduler/ruler_unheld.h"
#include "scheduler/ruler_warm.h"

#define EVENTS_COUNT    250  /* entries of one read; each may have many lines */
#define STORE_ENTRIES   5000 /* read by the ledger: it is time to store */
#define CLOCK_NOISE_MS  2    /* between our measure of Redis's clock and its own */
#define ANSWERS_RESERVE 2000 /* room for the outcomes of all calls under way */

/* ---- cursors --------------------------------------------------------------------- */

static bool
is_before(struct protocol_job_id a, struct protocol_job_id b)
{
	return a.ms != b.ms ? a.ms < b.ms : a.sequence < b.sequence;
}

static struct protocol_job_id
read_cursor(struct span text)
{
	struct protocol_job_id id = { 0 };

	(void)!protocol_parse_job_id(text, &id);
	return id;
}

/* The largest id below. */
static struct protocol_job_id
just_before(struct protocol_job_id id)
{
	if (id.sequence > 0)
		id.sequence--;
	else if (id.ms > 0)
		id = (struct protocol_job_id){ id.ms - 1, UINT64_MAX, 0 };
	return id;
}

void
ruler_events_start(struct ruler *ruler, struct span cursor, struct span ledger)
{
	struct span from = ledger.len > 0 ? ledger : cursor;

	ruler->core_from = read_cursor(cursor);
	ruler->ledger_from = read_cursor(from);
	ruler_copy(ruler->events_read, RULER_CURSOR_SIZE,
	           is_before(ruler->ledger_from, ruler->core_from) ? from : cursor);
	ruler_copy(ruler->events_told, RULER_CURSOR_SIZE, cursor);
	ruler_copy(ruler->events_stored, RULER_CURSOR_SIZE, cursor);
	ruler_copy(ruler->ledger_told, RULER_CURSOR_SIZE, from);
	ruler_copy(ruler->ledger_stored, RULER_CURSOR_SIZE, ledger);
	ruler->ledger_entries = 0;
	ruler->events_told_at = 0;
	ruler->events_check = is_before((struct protocol_job_id){ 0 },
	                                read_cursor(span_from(ruler->events_read)));
}

bool
ruler_events_are_ahead(const struct ruler *ruler)
{
	return is_before(ruler->core_from, read_cursor(span_from(ruler->events_read)));
}

bool
ruler_events_are_told(const struct ruler *ruler)
{
	return ruler->queue_out >= ruler->events_told_at;
}

void
ruler_events_ask(struct ruler *ruler, struct call_list *out)
{
	struct protocol_job_id from = { 0 };
	char text[PROTOCOL_JOB_ID_SIZE];
	size_t len;

	call_begin(out, ruler_tag(ruler, RULER_CALL_EVENTS, 0));
	call_text(out, "XREAD");
	call_text(out, "COUNT");
	call_integer(out, EVENTS_COUNT);
	call_text(out, "STREAMS");
	protocol_call_key(out, ruler->config->ns, "events");
	if (ruler->events_check)
		from = just_before(read_cursor(span_from(ruler->events_read)));
	len = protocol_print_job_id(from, text);
	call_word(out, ruler->events_check ? (struct span){ text, len }
	                                   : span_from(ruler->events_read));
}

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
ruler_events_role(enum protocol_role role)
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
ruler_events_pressure(struct span what)
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

/* For pages: who wrote, and what the provider said of it. */
static void
remember_writer(struct ruler *ruler, uint64_t at_ms, const struct protocol_event *line)
{
	if (line->usage.written <= 0 && line->usage.billed_written <= 0)
		return;
	ruler->writers[ruler->writers_serial++ % RULER_WRITERS_MAX] =
		(struct ruler_writer){ line->family, at_ms, ruler_events_role(line->role),
		                       line->usage };
}

static void
count_usage(struct ruler *ruler, uint64_t at_ms, const struct protocol_event *line)
{
	uint32_t place = ruler_shelf_find(&ruler->known.family_shelf, line->family);
	struct ruler_family *family;

	ruler->health.done++;
	remember_writer(ruler, at_ms, line);
	if (place == RULER_SHELF_NONE)
		return;
	ruler_shelf_touch(&ruler->known.family_shelf, place);
	family = &ruler->known.families[place];
	ruler_known_add(&family->sum, &line->usage);
	ruler_known_add(&ruler->known.budgets[family->budget].sum, &line->usage);
}

static void
tell_usage(struct ruler *ruler, uint64_t now_ms, uint64_t at_ms, enum event_kind kind,
           const struct protocol_event *line)
{
	struct event event = { .kind = kind, .usage = event_usage(&line->usage) };

	event.usage.lane = (struct lane_id){ line->lane.node, line->lane.domain };
	event.usage.g = line->generation;
	event.usage.role = ruler_events_role(line->role);
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
ruler_events_set_hold(struct ruler *ruler, uint64_t now_ms, bool on, struct span who)
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
		              ruler_events_pressure(line->word), line->until_ms },
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
		          ruler_events_role(line->role),
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
		           ruler_events_role(line->role),
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
		ruler_events_set_hold(ruler, now_ms, line->ok, line->name);
	else if (line->kind == PROTOCOL_EVENT_PAUSE)
		set_pause(ruler, now_ms, line->family, line->ok);
	else if (line->kind == PROTOCOL_EVENT_HOLD_ROUTE)
		ruler_unheld_set(ruler, now_ms, line->ok, line->name, line->word);
	else if (line->kind == PROTOCOL_EVENT_WARM)
		ruler_warm_ask(ruler, now_ms, at_ms, line->family, line->name);
	else
		tell_unpark(ruler, now_ms, line);
}

static void
take_line(struct ruler *ruler, uint64_t now_ms, uint64_t at_ms,
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

/* ---- a read ---------------------------------------------------------------------- */

static uint32_t
count_lines(struct span text)
{
	uint32_t lines = 0;
	struct span line;

	while (protocol_cut(&text, '\n', &line))
		lines++;
	return lines;
}

/* What is shown is counted where the ledger counts, and stored with its cursor: so no
 * line counts twice, whoever rules next. */
static void
count_line(struct ruler *ruler, uint64_t at_ms, const struct protocol_event *line)
{
	if (line->kind == PROTOCOL_EVENT_DONE)
		count_usage(ruler, at_ms, line);
	else if (line->kind == PROTOCOL_EVENT_DEAD)
		ruler->health.dead++;
}

/* The ledger hears all of them; the core may miss hints. */
static void
take_lines(struct ruler *ruler, uint64_t now_ms, struct protocol_job_id id,
           struct span text)
{
	bool for_ledger = is_before(ruler->ledger_from, id);
	bool for_core = is_before(ruler->core_from, id);
	struct protocol_event event;
	struct span line;

	while (protocol_cut(&text, '\n', &line)) {
		if (line.len == 0 || protocol_event_parse(line, &event) < 0)
			continue;
		if (for_ledger) {
			ruler_ledger_take(ruler, id.ms, &event);
			count_line(ruler, id.ms, &event);
		}
		if (for_core && ruler_core_room(ruler) > ANSWERS_RESERVE)
			take_line(ruler, now_ms, id.ms, &event);
	}
}

static struct span
lines_of(const struct reply *entry)
{
	const struct reply *fields = reply_at(entry, 1);

	for (size_t i = 0; fields->kind == REPLY_ARRAY && i + 1 < fields->count; i += 2)
		if (reply_is(&fields->items[i], "e"))
			return reply_text(&fields->items[i + 1]);
	return SPAN("");
}

/* Whole entries as far as the queue has room; the rest is read once more. */
static bool
take_entry(struct ruler *ruler, uint64_t now_ms, const struct reply *entry)
{
	struct span id = reply_text(reply_at(entry, 0)), lines = lines_of(entry);
	struct protocol_job_id at = { 0 };

	if (protocol_parse_job_id(id, &at) < 0)
		return true;
	if (ruler->queue_count > 0 &&
	    ruler_core_room(ruler) < count_lines(lines) + ANSWERS_RESERVE)
		return false;
	take_lines(ruler, now_ms, at, lines);
	ruler_copy(ruler->events_read, RULER_CURSOR_SIZE, id);
	if (is_before(ruler->ledger_from, at)) {
		ruler_copy(ruler->ledger_told, RULER_CURSOR_SIZE, id);
		if (++ruler->ledger_entries >= STORE_ENTRIES)
			ruler_clock_hurry(ruler, RULER_TIMER_LEDGER, now_ms);
	}
	return true;
}

/* 1 if the first entry is the one that was read last, 0 if that is gone. */
static size_t
see_witness(struct ruler *ruler, uint64_t now_ms, const struct reply *entries)
{
	if (reply_is(reply_at(reply_at(entries, 0), 0), ruler->events_read))
		return 1;
	ruler_ledger_gap(ruler, now_ms);
	return 0;
}

void
ruler_events_on_read(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                     const struct reply *reply)
{
	const struct reply *entries = reply_at(reply_at(reply, 0), 1);
	size_t count = entries->kind == REPLY_ARRAY ? entries->count : 0;
	size_t taken = ruler->events_check ? see_witness(ruler, now_ms, entries) : 0;

	(void)index;
	while (taken < count && take_entry(ruler, now_ms, &entries->items[taken]))
		taken++;
	ruler->events_told_at = ruler->queue_in;
	ruler->events_check = taken < count || count >= EVENTS_COUNT;
	ruler_clock_events_done(ruler, now_ms, ruler->events_check);
}
