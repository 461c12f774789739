#include "scheduler/board_places.h"

#include "scheduler/board_past.h"
#include "scheduler/ruler_ledger.h"
#include "scheduler/ruler_view_json.h"

#include <stdlib.h>

#define ROUTE_MS 3600000 /* a place without a job of a route for longer is left */

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

struct board_places {
	struct cell *cells;
	struct line *lines;
	uint32_t cells_count, lines_count, everywhere;
	uint64_t taken_us; /* of the board that they were made of */
	struct used used[BOARD_PLACES_ROUTES];
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
	return it->cells && it->lines ? 0 : ERR_MEMORY;
}

void
board_places_close(struct board *board)
{
	if (!board->places)
		return;
	free(board->places->cells);
	free(board->places->lines);
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
		board_past_put(board, row->id, now_ms, out);
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
