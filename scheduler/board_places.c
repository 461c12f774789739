#include "scheduler/board_places.h"

#include "scheduler/ruler_ledger.h"
#include "scheduler/ruler_view_json.h"

#include <stdlib.h>

#define ROUTE_MS  3600000 /* a place without a job of a route for longer is left */
#define MINUTE_MS 60000
#define STEPS     8 /* of the hand, when all are taken */

/* A family, by the prefix that it shares with those at other places. */
struct cell {
	struct id128 twin;
	uint32_t row; /* of the board */
};

/* The cells of one prefix. */
struct line {
	uint32_t first, count;
	uint64_t work, seen_ms;
	bool everywhere;
};

struct used { /* the upstreams of one route, as bits */
	uint64_t route, places;
};

struct minute {
	uint32_t requests, hits, read, written;
};

/* `base` is what the sums of the family were when they were last looked at. */
struct past {
	struct id128 family;
	uint64_t minute, moved_ms;
	struct {
		uint64_t jobs, hits, read, written;
	} base;
	struct minute minutes[BOARD_PLACES_MINUTES];
};

struct board_places {
	struct cell *cells;
	struct line *lines;
	uint32_t cells_count, lines_count, everywhere;
	uint64_t taken_us; /* of the board that they were made of */
	struct used used[BOARD_PLACES_ROUTES];
	uint32_t *past_of; /* by place of the ruler, plus one; 0 none */
	struct past pasts[BOARD_PLACES_PASTS];
	uint32_t pasts_count, hand;
};

int
board_places_open(struct board *board)
{
	size_t families = board->ruler->config->families_max;
	struct board_places *it = calloc(1, sizeof(*it));

	board->places = it;
	if (!it)
		return ERR_MEMORY;
	it->cells = calloc(families, sizeof(*it->cells));
	it->lines = calloc(families, sizeof(*it->lines));
	it->past_of = calloc(families, sizeof(*it->past_of));
	return it->cells && it->lines && it->past_of ? 0 : ERR_MEMORY;
}

void
board_places_close(struct board *board)
{
	if (!board->places)
		return;
	free(board->places->cells);
	free(board->places->lines);
	free(board->places->past_of);
	free(board->places);
}

/* ---- what is known of a family --------------------------------------------------- */

static const struct ruler_family *
family_of(const struct board *board, const struct board_row *row)
{
	return &board->ruler->known.families[row->place];
}

/* By number; ruler_config's upstreams_count if it is none of the configuration. */
static size_t
upstream_of(const struct board *board, const struct board_row *row)
{
	const struct ruler *ruler = board->ruler;
	size_t upstream = ruler->known.budgets[family_of(board, row)->budget].upstream;

	return MIN(upstream, ruler->config->upstreams_count);
}

static struct span
place_name(const struct board *board, size_t upstream)
{
	return upstream < board->ruler->config->upstreams_count
	               ? board->ruler->config->upstreams[upstream].name
	               : SPAN("other");
}

static bool
find_entry(const struct board *board, const struct board_row *row,
           struct ledger_view_entry *ret_entry)
{
	struct span place = place_name(board, upstream_of(board, row));

	return ledger_view_entry(ruler_ledger(board->ruler), row->id, place, 0,
	                         ret_entry);
}

/* As far as can be told: its gate is open, or it was read or written within its life. */
static bool
is_kept(const struct board *board, const struct board_row *row, uint64_t now_ms)
{
	struct ledger_view_entry entry;

	if (row->gate == LANE_OPEN && row->until_ms > now_ms)
		return true;
	return find_entry(board, row, &entry) && entry.used_ms + entry.life_ms > now_ms;
}

/* ---- rows of the matrix ---------------------------------------------------------- */

static struct used *
find_used(struct board_places *it, const char *route)
{
	uint64_t hash = id_of(span_from(route), 0).low | 1;

	for (uint32_t i = 0; i < 16; i++) {
		struct used *used = &it->used[(hash / 2 + i) % BOARD_PLACES_ROUTES];

		if (used->route == hash)
			return used;
		if (used->route == 0) {
			used->route = hash;
			return used;
		}
	}
	return NULL; /* more routes than that: nothing is said of this one */
}

static int
by_twin(const void *left, const void *right)
{
	const struct cell *a = left, *b = right;
	int order = id_compare(a->twin, b->twin);

	return order != 0 ? order : (a->row < b->row ? -1 : 1);
}

static int
by_work(const void *left, const void *right)
{
	const struct line *a = left, *b = right;

	if (a->everywhere != b->everywhere)
		return a->everywhere ? -1 : 1;
	if (a->work != b->work)
		return a->work > b->work ? -1 : 1;
	if (a->seen_ms != b->seen_ms)
		return a->seen_ms > b->seen_ms ? -1 : 1;
	return a->first < b->first ? -1 : 1;
}

static void
collect(struct board *board, uint64_t now_ms)
{
	struct board_places *it = board->places;

	it->cells_count = 0;
	memset(it->used, 0, sizeof(it->used));
	for (uint32_t i = 0; i < board->rows_count; i++) {
		const struct board_row *row = &board->rows[i];
		const struct ruler_family *family = family_of(board, row);
		struct used *used;

		if (row->single || !id_equals(family->id, row->id))
			continue;
		it->cells[it->cells_count++] = (struct cell){
			.twin = ruler_known_twin(&board->ruler->known, row->id),
			.row = i,
		};
		if (family->seen_ms + ROUTE_MS < now_ms)
			continue;
		used = find_used(it, family->route);
		if (used)
			used->places |= (uint64_t)1 << (upstream_of(board, row) & 63);
	}
}

/* Two cells of a row may be one place: accounts with two classes of models. */
static bool
is_everywhere(struct board *board, const struct line *line, uint64_t now_ms)
{
	struct board_places *it = board->places;
	const struct board_row *first = &board->rows[it->cells[line->first].row];
	const struct used *used;
	uint64_t kept = 0;

	if (line->count < 2)
		return false;
	for (uint32_t i = 0; i < line->count; i++) {
		const struct board_row *row =
			&board->rows[it->cells[line->first + i].row];

		if (is_kept(board, row, now_ms))
			kept |= (uint64_t)1 << (upstream_of(board, row) & 63);
	}
	used = find_used(it, family_of(board, first)->route);
	return used && (kept & (kept - 1)) != 0 && (used->places & ~kept) == 0;
}

static void
add_cell(struct board *board, struct line *line, uint32_t at)
{
	const struct board_row *row = &board->rows[board->places->cells[at].row];
	uint64_t seen_ms = family_of(board, row)->seen_ms;

	line->count++;
	line->work += (uint64_t)row->waiting + row->running;
	line->seen_ms = MAX(line->seen_ms, seen_ms);
}

static void
arrange(struct board *board, uint64_t now_ms)
{
	struct board_places *it = board->places;

	collect(board, now_ms);
	if (board->ruler->known.budgets_count > 1)
		qsort(it->cells, it->cells_count, sizeof(*it->cells), by_twin);
	it->lines_count = 0;
	it->everywhere = 0;
	for (uint32_t i = 0; i < it->cells_count; i++) {
		if (i == 0 || !id_equals(it->cells[i].twin, it->cells[i - 1].twin))
			it->lines[it->lines_count++] = (struct line){ .first = i };
		add_cell(board, &it->lines[it->lines_count - 1], i);
	}
	for (uint32_t i = 0; i < it->lines_count; i++) {
		it->lines[i].everywhere = is_everywhere(board, &it->lines[i], now_ms);
		it->everywhere += it->lines[i].everywhere;
	}
	qsort(it->lines, it->lines_count, sizeof(*it->lines), by_work);
	it->taken_us = board->taken_us;
}

static void
refresh(struct board *board, uint64_t now_ms)
{
	board_refresh(board, now_ms);
	if (board->places->taken_us != board->taken_us)
		arrange(board, now_ms);
}

void
board_places_count(struct board *board, uint64_t now_ms)
{
	if (board->ruler->known.budgets_count > 1)
		refresh(board, now_ms);
	board->ruler->health.everywhere = board->places->everywhere;
}

/* ---- the past -------------------------------------------------------------------- */

static struct past *
find_past(const struct board *board, const struct board_row *row)
{
	struct board_places *it = board->places;
	uint32_t at = it->past_of[row->place];
	struct past *past = at > 0 ? &it->pasts[at - 1] : NULL;

	return past && id_equals(past->family, row->id) ? past : NULL;
}

/* One that was idle for a minute goes, if there is one near; else nobody does: where more
 * families work than there is room for, those that came first are shown. */
static struct past *
free_past(struct board_places *it, uint64_t now_ms)
{
	if (it->pasts_count < BOARD_PLACES_PASTS)
		return &it->pasts[it->pasts_count++];
	for (uint32_t i = 0; i < STEPS; i++) {
		struct past *past = &it->pasts[it->hand];

		it->hand = (it->hand + 1) % BOARD_PLACES_PASTS;
		if (past->moved_ms + MINUTE_MS < now_ms)
			return past;
	}
	return NULL;
}

/* What a family did before it had a past here is not known, unless it is new. */
static struct past *
begin_past(struct board *board, const struct board_row *row, uint64_t now_ms)
{
	const struct board_trail *trail = &board->trails[row->place];
	struct past *past = free_past(board->places, now_ms);
	bool fresh = !id_equals(trail->id, row->id) || trail->first + 2 > board->samples;

	if (!past)
		return NULL;
	*past = (struct past){
		.family = row->id,
		.minute = now_ms / MINUTE_MS,
		.moved_ms = now_ms,
	};
	if (!fresh) {
		past->base.jobs = row->jobs;
		past->base.hits = family_of(board, row)->sum.hits;
		past->base.read = row->read;
		past->base.written = row->written;
	}
	board->places->past_of[row->place] = (uint32_t)(past - board->places->pasts) + 1;
	return past;
}

/* Minutes in which nobody looked are empty. */
static struct minute *
turn_to(struct past *past, uint64_t minute)
{
	uint64_t skipped = minute > past->minute ? minute - past->minute : 0;

	for (uint64_t i = 0; i < MIN(skipped, BOARD_PLACES_MINUTES); i++)
		past->minutes[(minute - i) % BOARD_PLACES_MINUTES] = (struct minute){ 0 };
	past->minute = MAX(past->minute, minute);
	return &past->minutes[past->minute % BOARD_PLACES_MINUTES];
}

static void
grow(uint32_t *to, uint64_t *base, uint64_t now)
{
	uint64_t more = now > *base ? now - *base : 0;

	*to = (uint32_t)MIN(*to + more, UINT32_MAX);
	*base = now;
}

static void
sample(struct board *board, const struct board_row *row, uint64_t now_ms)
{
	struct past *past = find_past(board, row);
	struct minute *minute;

	if (!past && row->jobs == 0 && row->running == 0)
		return; /* of most families, this is all that is looked at */
	if (!past && row->waiting == 0 && row->running == 0 &&
	    family_of(board, row)->seen_ms + MINUTE_MS < now_ms)
		return;
	if (!past)
		past = begin_past(board, row, now_ms);
	if (!past)
		return;
	if (past->base.jobs != row->jobs)
		past->moved_ms = now_ms;
	minute = turn_to(past, now_ms / MINUTE_MS);
	grow(&minute->requests, &past->base.jobs, row->jobs);
	grow(&minute->hits, &past->base.hits, family_of(board, row)->sum.hits);
	grow(&minute->read, &past->base.read, row->read);
	grow(&minute->written, &past->base.written, row->written);
}

void
board_places_sample(struct board *board, uint64_t now_ms)
{
	for (uint32_t i = 0; i < board->rows_count; i++)
		if (!board->rows[i].single)
			sample(board, &board->rows[i], now_ms);
}

static void
put_column(const struct past *past, const char *name, size_t offset, struct buffer *out)
{
	ruler_view_json_open(out, name, '[');
	for (uint64_t i = 1; i <= BOARD_PLACES_MINUTES; i++) {
		const struct minute *minute =
			&past->minutes[(past->minute + i) % BOARD_PLACES_MINUTES];
		uint32_t value;

		memcpy(&value, (const char *)minute + offset, sizeof(value));
		ruler_view_json_number(out, NULL, value);
	}
	ruler_view_json_close(out, ']');
}

static void
put_past(struct board *board, const struct board_row *row, uint64_t now_ms,
         struct buffer *out)
{
	struct past *past = find_past(board, row);

	if (!past)
		return;
	(void)turn_to(past, now_ms / MINUTE_MS);
	ruler_view_json_number(out, "minute_ms", past->minute * MINUTE_MS);
	put_column(past, "requests_a_minute", offsetof(struct minute, requests), out);
	put_column(past, "hits_a_minute", offsetof(struct minute, hits), out);
	put_column(past, "read_a_minute", offsetof(struct minute, read), out);
	put_column(past, "written_a_minute", offsetof(struct minute, written), out);
}

/* ---- as JSON --------------------------------------------------------------------- */

static void
put_cell(struct board *board, const struct board_row *row, uint64_t now_ms,
         bool with_past, struct buffer *out)
{
	size_t upstream = upstream_of(board, row);
	struct ledger_view_entry entry = { 0 };
	bool kept = is_kept(board, row, now_ms);

	(void)find_entry(board, row, &entry);
	ruler_view_json_open(out, NULL, '{');
	ruler_view_json_text(out, "place", place_name(board, upstream));
	ruler_view_json_bool(out, "kept", kept);
	ruler_view_json_number(out, "used_ms", entry.used_ms);
	ruler_view_json_number(out, "written_ms", kept ? entry.written_ms : 0);
	board_put_brief(board, row, out);
	if (with_past)
		put_past(board, row, now_ms, out);
	ruler_view_json_close(out, '}');
}

static void
put_line(struct board *board, const struct line *line, uint64_t now_ms, bool with_past,
         struct buffer *out)
{
	const struct cell *cells = &board->places->cells[line->first];
	const struct ruler_family *family = family_of(board, &board->rows[cells[0].row]);

	ruler_view_json_id(out, "prefix", cells[0].twin);
	ruler_view_json_text(out, "route", span_from(family->route));
	ruler_view_json_bool(out, "everywhere", line->everywhere);
	ruler_view_json_open(out, "cells", '[');
	for (uint32_t i = 0; i < line->count; i++)
		put_cell(board, &board->rows[cells[i].row], now_ms, with_past, out);
	ruler_view_json_close(out, ']');
}

/* What all families of one upstream have together. */
struct place_sum {
	uint32_t families, kept;
	uint64_t waiting, running;
	uint64_t done, seconds; /* jobs of the last minute */
	struct ruler_usage_sum usage;
};

static void
add_to(const struct board *board, const struct board_row *row, uint64_t now_ms,
       struct place_sum *sum)
{
	uint64_t seconds = 0;

	sum->families++;
	sum->kept += row->gate == LANE_OPEN && row->until_ms > now_ms;
	sum->waiting += row->waiting;
	sum->running += row->running;
	sum->done += board_done_lately(board, row, &seconds);
	sum->seconds = MAX(sum->seconds, seconds);
}

static void
put_place(const struct board *board, size_t upstream, const struct place_sum *sum,
          struct buffer *out)
{
	ruler_view_json_open(out, NULL, '{');
	ruler_view_json_text(out, "place", place_name(board, upstream));
	ruler_view_json_number(out, "families", sum->families);
	ruler_view_json_number(out, "kept", sum->kept);
	ruler_view_json_number(out, "waiting", sum->waiting);
	ruler_view_json_number(out, "running", sum->running);
	if (sum->done > 0 && sum->waiting > 0)
		ruler_view_json_number(out, "drain_s",
		                       sum->waiting * sum->seconds / sum->done);
	ruler_view_json_sum(out, &sum->usage);
	ruler_view_json_close(out, '}');
}

static void
put_places(struct board *board, uint64_t now_ms, struct buffer *out)
{
	const struct ruler *ruler = board->ruler;
	size_t count = ruler->config->upstreams_count;
	struct place_sum *sums = calloc(count + 1, sizeof(*sums));

	ruler_view_json_open(out, "places", '[');
	for (uint32_t i = 0; sums && i < board->rows_count; i++)
		add_to(board, &board->rows[i], now_ms,
		       &sums[upstream_of(board, &board->rows[i])]);
	for (uint32_t i = 0; sums && i < ruler->known.budgets_count; i++)
		ruler_known_merge(
			&sums[MIN(ruler->known.budgets[i].upstream, count)].usage,
			&ruler->known.budgets[i].sum);
	for (size_t i = 0; sums && i <= count; i++)
		if (sums[i].families > 0 || sums[i].usage.jobs > 0)
			put_place(board, i, &sums[i], out);
	ruler_view_json_close(out, ']');
	free(sums);
}

static bool
is_wanted(const struct board *board, const struct line *line,
          const struct board_query *query, bool only_everywhere)
{
	if (only_everywhere && !line->everywhere)
		return false;
	for (uint32_t i = 0; i < line->count; i++) {
		uint32_t row = board->places->cells[line->first + i].row;

		if (board_matches(board, &board->rows[row], query))
			return true;
	}
	return false;
}

void
board_places_put(struct board *board, uint64_t now_ms, const struct board_query *query,
                 bool only_everywhere, struct buffer *out)
{
	struct board_places *it = board->places;
	uint32_t found = 0;

	refresh(board, now_ms);
	put_places(board, now_ms, out);
	ruler_view_json_number(out, "everywhere", it->everywhere);
	ruler_view_json_open(out, "rows", '[');
	for (uint32_t i = 0; i < it->lines_count; i++) {
		if (!is_wanted(board, &it->lines[i], query, only_everywhere))
			continue;
		if (found >= query->offset && found - query->offset < query->limit) {
			ruler_view_json_open(out, NULL, '{');
			put_line(board, &it->lines[i], now_ms, false, out);
			ruler_view_json_close(out, '}');
		}
		found++;
	}
	ruler_view_json_close(out, ']');
	ruler_view_json_number(out, "total", found);
}

bool
board_places_put_family(struct board *board, uint64_t now_ms, struct id128 family,
                        struct buffer *out)
{
	struct board_places *it = board->places;

	refresh(board, now_ms);
	for (uint32_t i = 0; i < it->lines_count; i++) {
		const struct line *line = &it->lines[i];

		for (uint32_t j = 0; j < line->count; j++) {
			uint32_t row = it->cells[line->first + j].row;

			if (!id_equals(board->rows[row].id, family))
				continue;
			put_line(board, line, now_ms, true, out);
			return true;
		}
	}
	return false;
}
