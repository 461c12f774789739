#include "scheduler/board.h"

#include "scheduler/board_past.h"
#include "scheduler/board_places.h"
#include "scheduler/board_store.h"
#include "scheduler/ruler_view.h"

#include <stdlib.h>
#include <uv.h>

#define SHARE_OF_TIME 100  /* the table costs at most one part of so many */
#define USE_MS        8000 /* what Redis said is believed so long */
#define PLACES_TURN   6    /* samples between two counts of what is everywhere */

int
board_open(struct board *board, struct ruler *ruler)
{
	size_t families = ruler->config->families_max;

	*board = (struct board){ .ruler = ruler };
	/* Fresh pages of zeros cost nothing until a family has a number to write there.
	 */
	board->rows = calloc(families, sizeof(*board->rows));
	board->trails = calloc(families, sizeof(*board->trails));
	board->uses = calloc(families, sizeof(*board->uses));
	board->drains = calloc(families, sizeof(*board->drains));
	board->picks = calloc(families, 2 * sizeof(uint64_t));
	board->notes.notes = calloc(BOARD_NOTES, sizeof(*board->notes.notes));
	board->changes.notes = calloc(BOARD_NOTES, sizeof(*board->changes.notes));
	if (board->rows && board->trails && board->uses && board->drains &&
	    board->picks && board->notes.notes && board->changes.notes &&
	    board_places_open(board) == 0 && board_past_open(board) == 0 &&
	    board_store_open(board) == 0)
		return 0;
	board_close(board);
	return ERR_MEMORY;
}

void
board_close(struct board *board)
{
	free(board->rows);
	free(board->trails);
	free(board->uses);
	free(board->drains);
	free(board->picks);
	free(board->notes.notes);
	free(board->changes.notes);
	board_store_close(board);
	board_past_close(board);
	board_places_close(board);
	*board = (struct board){ 0 };
}

/* ---- the table ------------------------------------------------------------------- */

static void
add(const struct board *board, struct board_sum *sum, const struct board_row *row)
{
	sum->families++;
	sum->waiting += row->waiting;
	sum->running += row->running;
	sum->read += row->read;
	sum->written += row->written;
	sum->uncached += row->uncached;
	if (row->oldest_ms > 0 &&
	    (sum->oldest_ms == 0 || row->oldest_ms < sum->oldest_ms))
		sum->oldest_ms = row->oldest_ms;
	if (row->waiting > sum->most_waiting) {
		sum->most_waiting = row->waiting;
		sum->most = (uint32_t)(row - board->rows);
	}
}

void
board_set_use(struct board *board, uint32_t place, struct id128 id, uint32_t in_use)
{
	VERIFY(place < board->ruler->config->families_max);
	board->uses[place] = (struct board_use){ id, in_use, uv_hrtime() / 1000000 };
}

/* Splits what waits and runs by what Redis said of it. */
static void
split(const struct board *board, struct board_row *row)
{
	const struct board_use *use = &board->uses[row->place];
	uint32_t all = row->waiting + row->running;

	if (all > 0 && id_equals(use->id, row->id) &&
	    uv_hrtime() / 1000000 < use->at_ms + USE_MS) {
		row->running = MIN(all, use->in_use);
		row->waiting = row->waiting > 0 ? all - row->running : 0;
	}
	if (row->waiting == 0) {
		row->oldest_ms = 0;
		if (row->blocked_on != CORE_BLOCKED_PAUSED)
			row->blocked_on = CORE_BLOCKED_NO_WORK;
	}
}

static void
follow_drain(struct board *board, const struct board_row *row, uint64_t now_ms)
{
	struct board_drain *drain = &board->drains[row->place];
	bool is_known = drain->since_ms > 0 && id_equals(drain->id, row->id);

	if (row->running > 0 && !is_known)
		*drain = (struct board_drain){ row->id, now_ms };
	else if (row->running + row->waiting == 0 && drain->since_ms > 0)
		*drain = (struct board_drain){ 0 };
}

uint64_t
board_drains_since(const struct board *board, uint32_t place)
{
	const struct board_drain *drain = &board->drains[place];

	return id_equals(drain->id, board->ruler->known.families[place].id)
	               ? drain->since_ms
	               : 0;
}

static struct board_row
row_of(const struct board *board, uint32_t place)
{
	const struct ruler *ruler = board->ruler;
	const struct ruler_family *family = &ruler->known.families[place];
	struct core_family_view view;
	struct board_row row = {
		.id = family->id,
		.place = place,
		.blocked_on = CORE_BLOCKED_NO_WORK,
		.gate = LANE_GATE_COUNT,
		.jobs = family->sum.jobs,
		.read = family->sum.read,
		.written = family->sum.written,
		.uncached = family->sum.uncached,
	};

	if (ruler_view_core(ruler, family, &view) < 0)
		return row;
	row.known = true;
	row.waiting = view.waiting;
	row.running = view.running;
	row.rank = view.rank;
	row.oldest_ms = view.oldest_ms;
	row.blocked_on = view.blocked_on;
	row.gate = view.lanes[view.lanes_count - 1].gate;
	row.until_ms = view.lanes[view.lanes_count - 1].until_ms;
	row.single = row.gate == LANE_BYPASS &&
	             view.lanes[view.lanes_count - 1].reason == LANE_REASON_UNSHARED;
	split(board, &row);
	return row;
}

static void
take(struct board *board, uint64_t now_ms)
{
	const struct ruler *ruler = board->ruler;
	const struct ruler_shelf *shelf = &ruler->known.family_shelf;
	uint32_t place = shelf->newest;

	board->all = (struct board_sum){ 0 };
	board->singles = (struct board_sum){ 0 };
	memset(board->by_blocked, 0, sizeof(board->by_blocked));
	board->rows_count = 0;
	while (place != RULER_SHELF_NONE) {
		struct board_row *row = &board->rows[board->rows_count++];

		*row = row_of(board, place);
		follow_drain(board, row, now_ms);
		add(board, &board->all, row);
		board->all.warm += row->gate == LANE_OPEN && row->until_ms > now_ms;
		if (row->single)
			add(board, &board->singles, row);
		if (row->waiting > 0 || row->running > 0)
			add(board, &board->by_blocked[row->blocked_on], row);
		place = shelf->places[place].older;
	}
	board->ruler->health.backlog = board->all.waiting;
	board->ruler->health.in_flight = board->all.running;
	board->ruler->health.runnable = board->by_blocked[CORE_BLOCKED_NOTHING].waiting;
}

void
board_retake(struct board *board, uint64_t now_ms)
{
	uint64_t started_us = uv_hrtime() / 1000;

	take(board, now_ms);
	board->now_ms = now_ms;
	board->taken_us = started_us;
	board->took_us = uv_hrtime() / 1000 - started_us;
}

bool
board_is_due(const struct board *board)
{
	return board->taken_us == 0 ||
	       uv_hrtime() / 1000 >= board->taken_us + board->took_us * SHARE_OF_TIME;
}

void
board_refresh(struct board *board, uint64_t now_ms)
{
	if (board_is_due(board))
		board_retake(board, now_ms);
}

const struct board_row *
board_find(const struct board *board, struct id128 id)
{
	for (uint32_t i = 0; i < board->rows_count; i++)
		if (id_equals(board->rows[i].id, id))
			return &board->rows[i];
	return NULL;
}

/* ---- the recent past ------------------------------------------------------------- */

/* Counted in Redis; until that was read, it is what it was. */
static uint64_t
count_failed(const struct board *board)
{
	const struct ruler_sizes *sizes = &board->ruler->sizes;
	uint64_t newest = (board->totals_serial + BOARD_TOTALS - 1) % BOARD_TOTALS;

	return sizes->known ? sizes->retried + sizes->deferred + sizes->unsent +
	                              sizes->recovered
	                    : board->totals[newest].failed;
}

static void
sample_totals(struct board *board, uint64_t now_ms)
{
	struct ruler_health health = ruler_view_health(board->ruler, now_ms);
	struct board_totals totals = {
		.at_ms = now_ms,
		.admitted = health.ever.admitted,
		.done = health.ever.done,
		.dead = health.ever.dead,
		.waiting = board->all.waiting,
		.running = board->all.running,
		.failed = count_failed(board),
	};

	for (uint32_t i = 0; i < board->ruler->known.budgets_count; i++) {
		const struct ruler_usage_sum *sum = &board->ruler->known.budgets[i].sum;

		totals.read += sum->read;
		totals.written += sum->written;
		totals.uncached += sum->uncached;
		totals.output += sum->output;
	}
	board->totals[board->totals_serial++ % BOARD_TOTALS] = totals;
	board->totals_count = MIN(board->totals_count + 1, (uint32_t)BOARD_TOTALS);
}

/* A place may have another family by now; an idle one has nothing worth a page. */
static void
sample_trail(struct board *board, const struct board_row *row)
{
	struct board_trail *trail = &board->trails[row->place];
	uint32_t at = board->samples % BOARD_TRAIL;
	struct board_past *past;

	if (!id_equals(trail->id, row->id)) {
		if (row->waiting == 0 && row->jobs == 0)
			return;
		*trail = (struct board_trail){ .id = row->id, .first = board->samples };
		past = board_past_find(board, row->id);
		if (past)
			past->dirty = true; /* it says since when */
	}
	trail->waiting[at] = row->waiting;
	trail->done[at] = (uint32_t)MIN(row->jobs, UINT32_MAX);
}

void
board_sample(struct board *board, uint64_t now_ms)
{
	board_refresh(board, now_ms);
	sample_totals(board, now_ms);
	board_past_sample(board, now_ms);
	if (board->turn % PLACES_TURN == 0)
		board_places_count(board, now_ms);
	if (board->turn++ % BOARD_TRAIL_SAMPLES != 0)
		return;
	for (uint32_t i = 0; i < board->rows_count; i++)
		sample_trail(board, &board->rows[i]);
	board->samples++;
}

static void
copy(char *to, size_t size, struct span text)
{
	size_t len = MIN(text.len, size - 1);

	if (len > 0)
		memcpy(to, text.data, len);
	to[len] = '\0';
}

/* A warning, or a word about this process itself; not what happens to single jobs. */
static bool
is_change(const struct ruler_note *note)
{
	if (note->job.len > 0)
		return false;
	return note->level > RULER_INFO ||
	       note->route.len + note->family.len + note->budget.len == 0;
}

void
board_log_add(struct board_log *log, const struct board_note *note)
{
	log->notes[log->serial++ % BOARD_NOTES] = *note;
}

void
board_note(struct board *board, uint64_t now_ms, const struct ruler_note *note)
{
	struct board_note it = { .at_ms = now_ms, .level = note->level };

	if (note->level < RULER_INFO)
		return;
	copy(it.text, sizeof(it.text), span_from(note->text));
	copy(it.route, sizeof(it.route), note->route);
	copy(it.family, sizeof(it.family), note->family);
	copy(it.budget, sizeof(it.budget), note->budget);
	board_log_add(&board->notes, &it);
	if (is_change(note))
		board_log_add(&board->changes, &it);
}
