#include "scheduler/board_store.h"

#include "scheduler/board_settings.h"
#include "scheduler/board_store_state.h"
#include "scheduler/ruler_view.h"

#include <stdlib.h>

int
board_store_open(struct board *board)
{
	size_t budgets = board->ruler->config->core.budgets_max;
	struct board_store *store = calloc(1, sizeof(*store));

	board->store = store;
	if (!store)
		return ERR_MEMORY;
	buffer_init(&store->text, BUFFER_SIZE_DEFAULT);
	buffer_init(&store->settings, BUFFER_SIZE_DEFAULT);
	store->sums = calloc(budgets, sizeof(*store->sums));
	return store->sums ? 0 : ERR_MEMORY;
}

void
board_store_close(struct board *board)
{
	if (!board->store)
		return;
	buffer_fini(&board->store->text);
	buffer_fini(&board->store->settings);
	free(board->store->sums);
	free(board->store);
	board->store = NULL;
}

int
board_store_know(struct board *board, const struct config *config)
{
	return board_settings_print(config, &board->store->settings);
}

/* ---- words ----------------------------------------------------------------------- */

static void
put_number(struct buffer *out, char before, uint64_t value)
{
	if (out->len > 0)
		(void)buffer_append_byte(out, before);
	(void)buffer_append_unsigned(out, value);
}

static void
put_numbers(struct buffer *out, char before, const uint64_t *values, size_t count)
{
	for (size_t i = 0; i < count; i++)
		put_number(out, before, values[i]);
}

static void
put_id(struct buffer *out, char before, struct id128 id)
{
	if (out->len > 0)
		(void)buffer_append_byte(out, before);
	(void)buffer_append_id(out, id);
}

static void
put_sum(struct buffer *out, char before, const struct ruler_usage_sum *sum)
{
	const uint64_t numbers[] = { sum->jobs,    sum->hits,     sum->known, sum->read,
		                     sum->written, sum->uncached, sum->output };

	put_numbers(out, before, numbers, ARRAY_SIZE(numbers));
}

/* ---- fields: each answers whether it has changed --------------------------------- */

/* Of a ring: the newest that stands at `at`, if it is not stored. */
static bool
find_newest(uint64_t serial, uint64_t stored, uint32_t size, uint32_t at,
            uint64_t *ret_serial)
{
	uint64_t last = serial - 1;
	uint64_t back = (last % size + size - at) % size;

	if (serial == 0 || back > last || last - back < stored)
		return false;
	*ret_serial = last - back;
	return true;
}

static bool
print_head(const struct board *board, struct buffer *out)
{
	const struct ruler *ruler = board->ruler;
	struct ruler_counts ever = ruler_view_health(ruler, board->now_ms).ever;
	const uint64_t numbers[] = {
		ever.admitted,
		ever.done,
		ever.dead,
		board->samples,
		board->totals_serial,
		board->notes.serial,
		board->changes.serial,
		ruler->writers_serial,
	};

	put_numbers(out, ' ', numbers, ARRAY_SIZE(numbers));
	return memcmp(&ever, &board->store->counts, sizeof(ever)) != 0 ||
	       board->samples != board->samples_stored ||
	       board->notes.serial != board->notes.stored ||
	       ruler->writers_serial != board->store->writers;
}

/* A sample that says what the one before it said is stored once a minute. */
static bool
is_news(const struct board *board, uint64_t serial)
{
	const struct board_totals *it = &board->totals[serial % BOARD_TOTALS];
	struct board_totals last =
		board->totals[(serial + BOARD_TOTALS - 1) % BOARD_TOTALS];

	last.at_ms = it->at_ms;
	return serial % BOARD_STORE_QUIET == 0 || memcmp(it, &last, sizeof(last)) != 0;
}

static bool
print_totals(const struct board *board, uint32_t at, struct buffer *out)
{
	const struct board_totals *it = &board->totals[at];
	const uint64_t numbers[] = {
		it->at_ms,    it->admitted, it->done,   it->dead,
		it->waiting,  it->running,  it->read,   it->written,
		it->uncached, it->output,   it->failed,
	};
	uint64_t serial;

	if (!find_newest(board->totals_serial, board->totals_stored, BOARD_TOTALS, at,
	                 &serial) ||
	    !is_news(board, serial))
		return false;
	put_number(out, ' ', serial);
	put_numbers(out, ' ', numbers, ARRAY_SIZE(numbers));
	return true;
}

static bool
print_budget(const struct board *board, uint32_t at, struct buffer *out)
{
	const struct ruler_known *known = &board->ruler->known;
	const struct ruler_budget_name *budget = &known->budgets[at];

	if (at >= known->budgets_count ||
	    memcmp(&budget->sum, &board->store->sums[at], sizeof(budget->sum)) == 0)
		return false;
	put_sum(out, ' ', &budget->sum);
	(void)buffer_append_text(out, " |");
	(void)buffer_append_text(out, budget->name);
	return true;
}

static const struct board_trail *
find_trail(const struct board *board, struct id128 family)
{
	uint32_t place = ruler_shelf_find(&board->ruler->known.family_shelf, family);

	if (place == RULER_SHELF_NONE || !id_equals(board->trails[place].id, family))
		return NULL;
	return &board->trails[place];
}

static void
put_past(const struct board *board, const struct board_past *past, struct buffer *out)
{
	const struct board_trail *trail = find_trail(board, past->family);
	const uint64_t numbers[] = {
		past->since,
		trail ? trail->first : board->samples,
		past->seen_ms,
		past->moved_ms,
	};

	if (id_is_none(past->family)) {
		(void)buffer_append_text(out, out->len > 0 ? " -" : "-");
		return;
	}
	put_id(out, ' ', past->family);
	put_id(out, ',', past->twin);
	put_numbers(out, ',', numbers, ARRAY_SIZE(numbers));
	put_sum(out, ',', &past->sum);
}

static bool
print_chunk(const struct board *board, uint32_t at, struct buffer *out)
{
	const struct board_past *pasts = &board->pasts->at[at * BOARD_STORE_CHUNK];
	bool dirty = false;

	for (uint32_t i = 0; i < BOARD_STORE_CHUNK; i++)
		dirty |= pasts[i].dirty;
	for (uint32_t i = 0; dirty && i < BOARD_STORE_CHUNK; i++)
		put_past(board, &pasts[i], out);
	return dirty;
}

/* The latest minute that stands at `at` in anybody's hour. */
static uint64_t
find_minute(const struct board_pasts *pasts, uint32_t at)
{
	uint64_t latest = 0;

	for (uint32_t i = 0; i < pasts->count; i++) {
		uint64_t minute = pasts->at[i].minute;
		uint64_t back = (minute + BOARD_PAST_MINUTES - at) % BOARD_PAST_MINUTES;

		latest = MAX(latest, minute - MIN(back, minute));
	}
	return latest;
}

static void
put_minute(const struct board_past *past, uint32_t place, uint64_t minute,
           struct buffer *out)
{
	const struct board_minute *it = &past->minutes[minute % BOARD_PAST_MINUTES];

	if (minute > past->minute || minute < past->since ||
	    minute + BOARD_PAST_MINUTES <= past->minute || it->requests == 0)
		return;
	put_number(out, ' ', place);
	put_number(out, ':', it->requests);
	put_number(out, ',', it->hits);
	put_number(out, ',', it->read);
	put_number(out, ',', it->written);
}

static bool
print_minute(const struct board *board, uint32_t at, struct buffer *out)
{
	const struct board_pasts *pasts = board->pasts;
	uint64_t minute;

	if (!pasts->dirty[at])
		return false;
	minute = find_minute(pasts, at);
	put_number(out, ' ', minute);
	for (uint32_t i = 0; i < pasts->count; i++)
		put_minute(&pasts->at[i], i, minute, out);
	return true;
}

static bool
print_backlogs(const struct board *board, uint32_t at, struct buffer *out)
{
	uint64_t sample;

	if (!find_newest(board->samples, board->samples_stored, BOARD_TRAIL, at, &sample))
		return false;
	put_number(out, ' ', sample);
	for (uint32_t i = 0; i < board->pasts->count; i++) {
		const struct board_trail *trail =
			find_trail(board, board->pasts->at[i].family);

		if (!trail || trail->first > sample || trail->waiting[at] == 0)
			continue;
		put_number(out, ' ', i);
		put_number(out, ':', trail->waiting[at]);
	}
	return true;
}

static bool
print_writer(const struct board *board, uint32_t at, struct buffer *out)
{
	const struct ruler *ruler = board->ruler;
	char text[PROTOCOL_USAGE_SIZE];
	const struct ruler_writer *it;
	uint64_t serial;
	size_t len;

	if (!find_newest(ruler->writers_serial, board->store->writers,
	                 BOARD_STORE_WRITERS, at, &serial))
		return false;
	it = &ruler->writers[serial % RULER_WRITERS_MAX];
	put_number(out, ' ', serial);
	put_id(out, ' ', it->family);
	put_number(out, ' ', it->at_ms);
	put_number(out, ' ', it->role);
	len = protocol_print_usage(&it->usage, text);
	(void)buffer_append_byte(out, ' ');
	(void)buffer_append(out, (struct span){ text, len });
	return true;
}

static void
put_line(struct buffer *out, const char *text)
{
	size_t from = out->len + 1;

	(void)buffer_append_byte(out, '\n');
	(void)buffer_append_text(out, text);
	for (size_t i = from; i < out->len; i++)
		if (out->data[i] == '\n')
			out->data[i] = ' ';
}

static bool
print_note(const struct board_log *log, uint32_t at, struct buffer *out)
{
	const struct board_note *note;
	uint64_t serial;

	if (!find_newest(log->serial, log->stored, BOARD_STORE_NOTES, at, &serial))
		return false;
	note = &log->notes[serial % BOARD_NOTES];
	put_number(out, ' ', serial);
	put_number(out, ' ', note->at_ms);
	put_number(out, ' ', note->level);
	put_line(out, note->text);
	put_line(out, note->route);
	put_line(out, note->family);
	put_line(out, note->budget);
	return true;
}

static bool
print_told(const struct board *board, uint32_t at, struct buffer *out)
{
	return print_note(&board->notes, at, out);
}

static bool
print_change(const struct board *board, uint32_t at, struct buffer *out)
{
	return print_note(&board->changes, at, out);
}

static bool
print_first(const struct board *board, uint32_t at, struct buffer *out)
{
	(void)at;
	return print_head(board, out);
}

static bool
print_settings(const struct board *board, uint32_t at, struct buffer *out)
{
	(void)at;
	(void)buffer_append(out, buffer_span(&board->store->settings));
	return !board->store->settings_stored;
}

/* ---- the walk -------------------------------------------------------------------- */

static const struct {
	char kind; /* of the field's name */
	uint32_t count;
	bool (*print)(const struct board *board, uint32_t at, struct buffer *out);
} kinds[] = {
	{ 'h', 1, print_first },
	{ 'g', 1, print_settings },
	{ 't', BOARD_TOTALS, print_totals },
	{ 'f', BOARD_PASTS / BOARD_STORE_CHUNK, print_chunk },
	{ 'm', BOARD_PAST_MINUTES, print_minute },
	{ 's', BOARD_TRAIL, print_backlogs },
	{ 'w', BOARD_STORE_WRITERS, print_writer },
	{ 'n', BOARD_STORE_NOTES, print_told },
	{ 'c', BOARD_STORE_NOTES, print_change },
	{ 'b', UINT32_MAX, print_budget }, /* as many as there are */
};

static void
prepare(void *data, uint64_t now_ms)
{
	board_past_look(data, now_ms);
}

static bool
print(struct board *board, size_t kind, uint32_t at, struct ruler_kept *ret_kept)
{
	struct buffer *out = &board->store->text;
	char digits[TEXT_NUMBER_SIZE];
	size_t len = text_print_unsigned(at, digits);

	buffer_clear(out);
	if (!kinds[kind].print(board, at, out) || buffer_error(out) < 0)
		return false;
	ret_kept->field[0] = kinds[kind].kind;
	ret_kept->field[1] = ':';
	memcpy(ret_kept->field + 2, digits, len + 1);
	ret_kept->value = buffer_span(out);
	return true;
}

static bool
next(void *data, uint32_t *cursor, struct ruler_kept *ret_kept)
{
	struct board *board = data;
	uint32_t from = 0;

	for (size_t kind = 0; kind < ARRAY_SIZE(kinds); kind++) {
		uint32_t count =
			MIN(kinds[kind].count, board->ruler->known.budgets_count);

		if (kinds[kind].count != UINT32_MAX)
			count = kinds[kind].count;
		while (*cursor < from + count) {
			uint32_t at = (*cursor)++ - from;

			if (print(board, kind, at, ret_kept))
				return true;
		}
		from += count;
	}
	return false;
}

static void
mark_clean(void *data)
{
	struct board *board = data;
	const struct ruler_known *known = &board->ruler->known;
	struct board_store *store = board->store;

	store->counts = ruler_view_health(board->ruler, board->now_ms).ever;
	store->writers = board->ruler->writers_serial;
	store->settings_stored = true;
	board->totals_stored = board->totals_serial;
	board->samples_stored = board->samples;
	board->notes.stored = board->notes.serial;
	board->changes.stored = board->changes.serial;
	for (uint32_t i = 0; i < known->budgets_count; i++)
		store->sums[i] = known->budgets[i].sum;
	for (uint32_t i = 0; i < board->pasts->count; i++)
		board->pasts->at[i].dirty = false;
	memset(board->pasts->dirty, 0, sizeof(board->pasts->dirty));
}

/* What has changed is worth more than figures: a mark of the event line. */
static bool
has_news(void *data)
{
	const struct board *board = data;

	return board->changes.stored != board->changes.serial ||
	       !board->store->settings_stored;
}

struct ruler_keeper
board_store_keeper(struct board *board)
{
	return (struct ruler_keeper){ board,      prepare,  next,
		                      mark_clean, has_news, board_store_load };
}
