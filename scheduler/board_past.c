#include "scheduler/board_past.h"

#include "scheduler/ruler_view_json.h"

#include <stdlib.h>

#define STEPS 8 /* of the hand, when all places are taken */

int
board_past_open(struct board *board)
{
	struct board_pasts *pasts = calloc(1, sizeof(*pasts));

	board->pasts = pasts;
	if (!pasts)
		return ERR_MEMORY;
	pasts->index_memory = malloc(table_size(BOARD_PASTS));
	if (!pasts->index_memory)
		return ERR_MEMORY;
	table_init(&pasts->index, pasts->index_memory, BOARD_PASTS);
	return 0;
}

void
board_past_close(struct board *board)
{
	if (!board->pasts)
		return;
	free(board->pasts->index_memory);
	free(board->pasts);
	board->pasts = NULL;
}

void
board_past_clear(struct board *board)
{
	struct board_pasts *pasts = board->pasts;

	memset(pasts->at, 0, sizeof(pasts->at));
	memset(pasts->dirty, 0, sizeof(pasts->dirty));
	pasts->count = 0;
	pasts->hand = 0;
	table_clear(&pasts->index);
}

struct board_past *
board_past_find(const struct board *board, struct id128 family)
{
	uint32_t at = table_find(&board->pasts->index, family);

	return at == TABLE_NONE ? NULL : &board->pasts->at[at];
}

/* ---- places ---------------------------------------------------------------------- */

static struct board_past *
free_place(struct board_pasts *pasts, uint64_t now_ms)
{
	if (pasts->count < BOARD_PASTS)
		return &pasts->at[pasts->count++];
	for (uint32_t i = 0; i < STEPS; i++) {
		struct board_past *past = &pasts->at[pasts->hand];

		pasts->hand = (pasts->hand + 1) % BOARD_PASTS;
		if (past->moved_ms + BOARD_MINUTE_MS < now_ms)
			return past;
	}
	return NULL;
}

static void
give(struct board_pasts *pasts, struct board_past *past, const struct board_past *to)
{
	int err;

	if (!id_is_none(past->family))
		(void)table_remove(&pasts->index, past->family);
	*past = *to;
	err = table_put(&pasts->index, past->family, (uint32_t)(past - pasts->at));
	VERIFY(err == 0); /* it has room for all places */
}

/* What a family did before it had a past here is not known, unless it is new. */
static struct board_past *
begin(struct board *board, const struct board_row *row, uint64_t now_ms)
{
	const struct ruler_family *family = &board->ruler->known.families[row->place];
	const struct board_trail *trail = &board->trails[row->place];
	bool fresh = !id_equals(trail->id, row->id) || trail->first + 2 > board->samples;
	struct board_past *past = free_place(board->pasts, now_ms);
	struct board_past to = {
		.family = row->id,
		.since = now_ms / BOARD_MINUTE_MS,
		.minute = now_ms / BOARD_MINUTE_MS,
		.moved_ms = now_ms,
		.dirty = true,
	};

	if (!fresh)
		to.sum = family->sum;
	if (past)
		give(board->pasts, past, &to);
	return past;
}

int
board_past_restore(struct board *board, uint32_t at, const struct board_past *past)
{
	struct board_pasts *pasts = board->pasts;

	if (at >= BOARD_PASTS || id_is_none(past->family))
		return ERR_LIMIT;
	if (table_find(&pasts->index, past->family) != TABLE_NONE)
		return ERR_FULL;
	give(pasts, &pasts->at[at], past);
	pasts->count = MAX(pasts->count, at + 1);
	return 0;
}

/* ---- looking --------------------------------------------------------------------- */

/* Minutes in which nobody looked are empty. */
static struct board_minute *
turn_to(struct board_past *past, uint64_t minute)
{
	uint64_t skipped = minute > past->minute ? minute - past->minute : 0;

	for (uint64_t i = 0; i < MIN(skipped, BOARD_PAST_MINUTES); i++)
		past->minutes[(minute - i) % BOARD_PAST_MINUTES] =
			(struct board_minute){ 0 };
	past->minute = MAX(past->minute, minute);
	return &past->minutes[past->minute % BOARD_PAST_MINUTES];
}

static void
grow(uint32_t *to, uint64_t before, uint64_t now)
{
	*to = (uint32_t)MIN(*to + (now > before ? now - before : 0), UINT32_MAX);
}

static void
look(struct board *board, struct board_past *past, const struct ruler_family *family,
     uint64_t now_ms)
{
	const struct ruler_usage_sum *sum = &family->sum;
	struct id128 twin = ruler_known_twin(&board->ruler->known, family->id);
	struct board_minute *minute = turn_to(past, now_ms / BOARD_MINUTE_MS);

	past->dirty |= past->seen_ms != family->seen_ms || !id_equals(past->twin, twin);
	past->seen_ms = family->seen_ms;
	past->twin = twin;
	if (past->sum.jobs == sum->jobs)
		return;
	past->moved_ms = now_ms;
	grow(&minute->requests, past->sum.jobs, sum->jobs);
	grow(&minute->hits, past->sum.hits, sum->hits);
	grow(&minute->read, past->sum.read, sum->read);
	grow(&minute->written, past->sum.written, sum->written);
	past->sum = *sum;
	past->dirty = true;
	board->pasts->dirty[past->minute % BOARD_PAST_MINUTES] = true;
}

static void
sample(struct board *board, const struct board_row *row, uint64_t now_ms)
{
	const struct ruler_family *family = &board->ruler->known.families[row->place];
	struct board_past *past = board_past_find(board, row->id);

	if (!past && row->jobs == 0 && row->running == 0)
		return; /* of most families, this is all that is looked at */
	if (!past && row->waiting == 0 && row->running == 0 &&
	    family->seen_ms + BOARD_MINUTE_MS < now_ms)
		return;
	if (!past)
		past = begin(board, row, now_ms);
	if (past && id_equals(family->id, row->id))
		look(board, past, family, now_ms);
}

void
board_past_sample(struct board *board, uint64_t now_ms)
{
	for (uint32_t i = 0; i < board->rows_count; i++)
		if (!board->rows[i].single)
			sample(board, &board->rows[i], now_ms);
}

void
board_past_look(struct board *board, uint64_t now_ms)
{
	struct ruler_known *known = &board->ruler->known;

	for (uint32_t i = 0; i < board->pasts->count; i++) {
		struct board_past *past = &board->pasts->at[i];
		uint32_t place = ruler_shelf_find(&known->family_shelf, past->family);

		if (place != RULER_SHELF_NONE)
			look(board, past, &known->families[place], now_ms);
	}
}

/* ---- as JSON --------------------------------------------------------------------- */

static void
put_column(const struct board_past *past, const char *name, size_t offset,
           struct buffer *out)
{
	ruler_view_json_open(out, name, '[');
	for (uint64_t i = 1; i <= BOARD_PAST_MINUTES; i++) {
		const struct board_minute *minute =
			&past->minutes[(past->minute + i) % BOARD_PAST_MINUTES];
		uint32_t value;

		memcpy(&value, (const char *)minute + offset, sizeof(value));
		ruler_view_json_number(out, NULL, value);
	}
	ruler_view_json_close(out, ']');
}

void
board_past_put(struct board *board, struct id128 family, uint64_t now_ms,
               struct buffer *out)
{
	struct board_past *past = board_past_find(board, family);

	if (!past)
		return;
	(void)turn_to(past, now_ms / BOARD_MINUTE_MS);
	ruler_view_json_number(out, "minute_ms", past->minute * BOARD_MINUTE_MS);
	put_column(past, "requests_a_minute", offsetof(struct board_minute, requests),
	           out);
	put_column(past, "hits_a_minute", offsetof(struct board_minute, hits), out);
	put_column(past, "read_a_minute", offsetof(struct board_minute, read), out);
	put_column(past, "written_a_minute", offsetof(struct board_minute, written), out);
}
