/* The board as JSON. */
#include "scheduler/board.h"

#include "scheduler/ruler_view_json.h"

#include <stdlib.h>

/* ---- sums ------------------------------------------------------------------------ */

static void
put_counts(const char *name, const struct board_sum *sum, struct buffer *out)
{
	ruler_view_json_open(out, name, '{');
	ruler_view_json_number(out, "families", sum->families);
	ruler_view_json_number(out, "waiting", sum->waiting);
	ruler_view_json_number(out, "running", sum->running);
	ruler_view_json_number(out, "oldest_ms", sum->oldest_ms);
}

static void
put_sum(const char *name, const struct board_sum *sum, struct buffer *out)
{
	put_counts(name, sum, out);
	ruler_view_json_number(out, "warm", sum->warm);
	ruler_view_json_number(out, "read", sum->read);
	ruler_view_json_number(out, "written", sum->written);
	ruler_view_json_number(out, "uncached", sum->uncached);
	ruler_view_json_close(out, '}');
}

/* With the family that has most of the waiting jobs: what exactly binds there. */
static void
put_blocked(const struct board *board, enum core_blocked kind, struct buffer *out)
{
	const struct board_sum *sum = &board->by_blocked[kind];

	put_counts(core_blocked_text(kind), sum, out);
	if (sum->most_waiting > 0) {
		ruler_view_json_open(out, "most", '{');
		ruler_view_json_reason(board->ruler, board->rows[sum->most].place, out);
		ruler_view_json_close(out, '}');
	}
	ruler_view_json_close(out, '}');
}

void
board_put_sums(const struct board *board, struct buffer *out)
{
	put_sum("all", &board->all, out);
	put_sum("singles", &board->singles, out);
	ruler_view_json_open(out, "blocked", '{');
	for (uint32_t i = 0; i < CORE_BLOCKED_COUNT; i++)
		if (board->by_blocked[i].families > 0)
			put_blocked(board, (enum core_blocked)i, out);
	ruler_view_json_close(out, '}');
}

/* ---- a family -------------------------------------------------------------------- */

static uint32_t
samples_of(const struct board *board, const struct board_trail *trail)
{
	return MIN(board->samples - MIN(trail->first, board->samples),
	           (uint32_t)BOARD_TRAIL);
}

uint64_t
board_done_lately(const struct board *board, const struct board_row *row,
                  uint64_t *ret_seconds)
{
	const struct board_trail *trail = &board->trails[row->place];
	uint32_t count = MIN(samples_of(board, trail), 6u);
	uint32_t from = (board->samples - count) % BOARD_TRAIL;

	*ret_seconds = (uint64_t)count * BOARD_TRAIL_SAMPLES * BOARD_TOTALS_MS / 1000;
	if (count < 2 || !id_equals(trail->id, row->id))
		return 0;
	return row->jobs - MIN(row->jobs, trail->done[from]);
}

/* From the pace of its last minute; nothing if it stood still. */
static void
put_drain(const struct board *board, const struct board_row *row, struct buffer *out)
{
	uint64_t seconds, done = board_done_lately(board, row, &seconds);

	if (done == 0 || row->waiting == 0 || row->blocked_on == CORE_BLOCKED_PAUSED)
		return;
	ruler_view_json_number(out, "drain_s", row->waiting * seconds / done);
}

static void
put_trail(const struct board *board, const struct board_trail *trail, struct buffer *out)
{
	uint32_t count = samples_of(board, trail);

	ruler_view_json_open(out, "backlog", '[');
	for (uint32_t i = 0; i < count; i++)
		ruler_view_json_number(
			out, NULL,
			trail->waiting[(board->samples - count + i) % BOARD_TRAIL]);
	ruler_view_json_close(out, ']');
}

void
board_put_row(const struct board *board, const struct board_row *row, bool with_trail,
              struct buffer *out)
{
	const struct ruler_view_use use = { row->running };
	const struct board_trail *trail = &board->trails[row->place];

	ruler_view_json_open(out, NULL, '{');
	ruler_view_json_members(board->ruler, row->place, &use, out);
	ruler_view_json_bool(out, "single", row->single);
	ruler_view_json_number(out, "seen_ms",
	                       board->ruler->known.families[row->place].seen_ms);
	put_drain(board, row, out);
	if (with_trail && id_equals(trail->id, row->id))
		put_trail(board, trail, out);
	ruler_view_json_close(out, '}');
}

void
board_put_brief(const struct board *board, const struct board_row *row,
                struct buffer *out)
{
	const struct ruler_view_use use = { row->running };

	ruler_view_json_brief(board->ruler, row->place, &use, out);
	put_drain(board, row, out);
}

/* ---- the past -------------------------------------------------------------------- */

void
board_put_totals(const struct board *board, struct buffer *out)
{
	static const struct {
		const char *name;
		size_t offset;
	} columns[] = {
#define COLUMN(name) { #name, offsetof(struct board_totals, name) }
		COLUMN(at_ms),    COLUMN(admitted), COLUMN(done),   COLUMN(dead),
		COLUMN(waiting),  COLUMN(running),  COLUMN(read),   COLUMN(written),
		COLUMN(uncached), COLUMN(output),   COLUMN(failed),
#undef COLUMN
	};

	for (size_t c = 0; c < ARRAY_SIZE(columns); c++) {
		ruler_view_json_open(out, columns[c].name, '[');
		for (uint32_t i = 0; i < board->totals_count; i++) {
			uint64_t serial = board->totals_serial - board->totals_count + i;
			uint32_t at = (uint32_t)(serial % BOARD_TOTALS);
			const char *base = (const char *)&board->totals[at];
			uint64_t value;

			if (board->totals[at].at_ms == 0)
				continue; /* it said nothing new and was not kept */
			memcpy(&value, base + columns[c].offset, sizeof(value));
			ruler_view_json_number(out, NULL, value);
		}
		ruler_view_json_close(out, ']');
	}
}

static void
put_note(const struct board_note *note, struct buffer *out)
{
	static const char *const levels[] = { "debug", "info", "warning", "error" };

	ruler_view_json_open(out, NULL, '{');
	ruler_view_json_number(out, "at_ms", note->at_ms);
	ruler_view_json_text(out, "level", span_from(levels[note->level]));
	ruler_view_json_text(out, "text", span_from(note->text));
	ruler_view_json_text(out, "route", span_from(note->route));
	ruler_view_json_text(out, "family", span_from(note->family));
	ruler_view_json_text(out, "budget", span_from(note->budget));
	ruler_view_json_close(out, '}');
}

static void
put_log(const struct board_log *log, uint32_t max, struct buffer *out)
{
	uint64_t count = MIN(log->serial, MIN(max, BOARD_NOTES));

	ruler_view_json_open(out, "notes", '[');
	for (uint64_t i = 1; i <= count; i++) {
		const struct board_note *note =
			&log->notes[(log->serial - i) % BOARD_NOTES];

		if (note->at_ms > 0) /* else it was not stored */
			put_note(note, out);
	}
	ruler_view_json_close(out, ']');
}

void
board_put_notes(const struct board *board, uint32_t max, struct buffer *out)
{
	put_log(&board->notes, max, out);
}

void
board_put_changes(const struct board *board, uint32_t max, struct buffer *out)
{
	put_log(&board->changes, max, out);
}

/* ---- writers --------------------------------------------------------------------- */

#define WRITERS_SHOWN 12

static void
put_known(struct buffer *out, const char *name, int64_t value)
{
	if (value >= 0)
		ruler_view_json_number(out, name, (uint64_t)value);
}

static void
put_writer(const struct ruler_writer *writer, struct buffer *out)
{
	const struct protocol_usage *usage = &writer->usage;

	ruler_view_json_open(out, NULL, '{');
	ruler_view_json_number(out, "at_ms", writer->at_ms);
	ruler_view_json_text(out, "role", span_from(lane_role_text(writer->role)));
	put_known(out, "sent_ms", usage->sent_ms);
	put_known(out, "first_ms", usage->first_ms);
	put_known(out, "read", MAX(usage->read, usage->billed_read));
	put_known(out, "written", MAX(usage->written, usage->billed_written));
	put_known(out, "uncached", usage->uncached);
	put_known(out, "output", usage->output);
	ruler_view_json_close(out, '}');
}

void
board_put_writers(const struct board *board, struct id128 family, struct buffer *out)
{
	const struct ruler *ruler = board->ruler;
	uint64_t count = MIN(ruler->writers_serial, RULER_WRITERS_MAX);
	uint32_t shown = 0;

	ruler_view_json_open(out, "writers", '[');
	for (uint64_t i = 1; i <= count && shown < WRITERS_SHOWN; i++) {
		const struct ruler_writer *writer =
			&ruler->writers[(ruler->writers_serial - i) % RULER_WRITERS_MAX];

		if (!id_equals(writer->family, family))
			continue;
		put_writer(writer, out);
		shown++;
	}
	ruler_view_json_close(out, ']');
}

/* ---- routes ---------------------------------------------------------------------- */

struct route {
	const char *name;
	struct board_sum sum;
	uint32_t singles;
	struct ruler_usage_sum usage;
	uint64_t seen_ms;
};

static int
by_name(const void *left, const void *right)
{
	return strcmp(((const struct route *)left)->name,
	              ((const struct route *)right)->name);
}

static int
by_work(const void *left, const void *right)
{
	const struct route *a = left, *b = right;
	uint64_t work_a = (uint64_t)a->sum.waiting + a->sum.running;
	uint64_t work_b = (uint64_t)b->sum.waiting + b->sum.running;

	if (work_a != work_b)
		return work_a > work_b ? -1 : 1;
	if (a->seen_ms != b->seen_ms)
		return a->seen_ms > b->seen_ms ? -1 : 1;
	return strcmp(a->name, b->name);
}

static struct route
route_of(const struct board *board, const struct board_row *row)
{
	const struct ruler_family *family = &board->ruler->known.families[row->place];

	return (struct route){
		.name = family->route,
		.sum = { .families = 1,
		         .waiting = row->waiting,
		         .running = row->running,
		         .oldest_ms = row->oldest_ms },
		.singles = row->single,
		.usage = family->sum,
		.seen_ms = family->seen_ms,
	};
}

static void
merge(struct route *to, const struct route *from)
{
	to->sum.families += from->sum.families;
	to->sum.waiting += from->sum.waiting;
	to->sum.running += from->sum.running;
	if (from->sum.oldest_ms > 0 &&
	    (to->sum.oldest_ms == 0 || from->sum.oldest_ms < to->sum.oldest_ms))
		to->sum.oldest_ms = from->sum.oldest_ms;
	to->singles += from->singles;
	ruler_known_merge(&to->usage, &from->usage);
	to->seen_ms = MAX(to->seen_ms, from->seen_ms);
}

static uint32_t
collect(const struct board *board, const struct board_query *query, struct route *routes)
{
	uint32_t count = 0, kept = 0;

	for (uint32_t i = 0; i < board->rows_count; i++) {
		routes[count] = route_of(board, &board->rows[i]);
		if (query->route.len == 0 ||
		    span_equals(query->route, span_from(routes[count].name)))
			count++;
	}
	qsort(routes, count, sizeof(*routes), by_name);
	for (uint32_t i = 0; i < count; i++) {
		if (kept > 0 && strcmp(routes[kept - 1].name, routes[i].name) == 0)
			merge(&routes[kept - 1], &routes[i]);
		else
			routes[kept++] = routes[i];
	}
	qsort(routes, kept, sizeof(*routes), by_work);
	return kept;
}

static void
put_route(const struct route *route, struct buffer *out)
{
	ruler_view_json_open(out, NULL, '{');
	ruler_view_json_text(out, "route", span_from(route->name));
	ruler_view_json_number(out, "families", route->sum.families);
	ruler_view_json_number(out, "singles", route->singles);
	ruler_view_json_number(out, "waiting", route->sum.waiting);
	ruler_view_json_number(out, "running", route->sum.running);
	ruler_view_json_number(out, "oldest_ms", route->sum.oldest_ms);
	ruler_view_json_number(out, "seen_ms", route->seen_ms);
	ruler_view_json_sum(out, &route->usage);
	ruler_view_json_close(out, '}');
}

void
board_put_routes(struct board *board, const struct board_query *query, struct buffer *out)
{
	struct route *routes = calloc(board->rows_count + 1, sizeof(*routes));
	uint32_t count = routes ? collect(board, query, routes) : 0;

	ruler_view_json_number(out, "total", count);
	ruler_view_json_open(out, "routes", '[');
	for (uint32_t i = query->offset; i < count && i < query->offset + query->limit;
	     i++)
		put_route(&routes[i], out);
	ruler_view_json_close(out, ']');
	free(routes);
}
