#include "scheduler/ruler_events.h"

#include "common/codec/protocol_event.h"
#include "common/text.h"
#include "scheduler/ruler_clock.h"
#include "scheduler/ruler_core.h"
#include "scheduler/ruler_ledger.h"
#include "scheduler/ruler_line.h"

#define EVENTS_COUNT    250  /* entries of one read; each may have many lines */
#define ANSWERS_RESERVE 2000 /* room for the outcomes of all calls under way */

/* ---- cursors --------------------------------------------------------------------- */

static bool
is_before(struct protocol_job_id a, struct protocol_job_id b)
{
	return protocol_compare_job_ids(a, b) < 0;
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
	ruler->ledger_stored_ms = 0;
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

/* For pages: who wrote, and what the provider said of it. */
static void
remember_writer(struct ruler *ruler, uint64_t at_ms, const struct protocol_event *line)
{
	if (line->usage.written <= 0 && line->usage.billed_written <= 0)
		return;
	ruler->writers[ruler->writers_serial++ % RULER_WRITERS_MAX] =
		(struct ruler_writer){
			id_is_none(line->family) ? line->lane.node : line->family, at_ms,
			line->kind == PROTOCOL_EVENT_TICKET ? LANE_TICKET
							    : ruler_line_role(line->role),
			line->usage
		};
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

/* What is shown is counted where the ledger counts, and stored with its cursor: so no
 * line counts twice, whoever rules next. */
static void
count_line(struct ruler *ruler, uint64_t at_ms, const struct protocol_event *line)
{
	if (line->kind == PROTOCOL_EVENT_DONE)
		count_usage(ruler, at_ms, line);
	else if (line->kind == PROTOCOL_EVENT_TICKET)
		remember_writer(ruler, at_ms, line);
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
			ruler_line_take(ruler, now_ms, id.ms, &event);
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
		if (++ruler->ledger_entries >= RULER_LEDGER_ENTRIES)
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
