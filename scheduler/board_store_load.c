/* The way back from Redis: whatever is not as board_store.c writes it is left out. */
#include "common/text.h"
#include "scheduler/board_settings.h"
#include "scheduler/board_store_state.h"
#include "scheduler/ruler_note.h"
#include "scheduler/ruler_view.h"

#include <stdlib.h>

/* One reading of the whole hash. */
struct load {
	struct board *board;
	uint64_t now_ms;
	uint64_t notes, changes; /* serials */
	struct span settings;    /* of the scheduler before this one */
};

/* ---- words ----------------------------------------------------------------------- */

static bool
take_number(struct span *text, char separator, uint64_t *ret_value)
{
	struct span word;

	return protocol_cut(text, separator, &word) &&
	       text_parse_unsigned(word, UINT64_MAX, ret_value) == 0;
}

static bool
take_numbers(struct span *text, char separator, uint64_t *ret_values, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!take_number(text, separator, &ret_values[i]))
			return false;
	return true;
}

static bool
take_id(struct span *text, char separator, struct id128 *ret_id)
{
	struct span word;

	return protocol_cut(text, separator, &word) && id_decode(word, ret_id) == 0;
}

static bool
take_sum(struct span *text, char separator, struct ruler_usage_sum *ret_sum)
{
	uint64_t v[7];

	if (!take_numbers(text, separator, v, ARRAY_SIZE(v)))
		return false;
	*ret_sum = (struct ruler_usage_sum){ v[0], v[1], v[2], v[3], v[4], v[5], v[6] };
	return true;
}

/* The last `size` of a ring that had `serial` of them ever. */
static bool
is_of_ring(uint64_t it, uint64_t serial, uint32_t size, uint32_t at)
{
	return it < serial && it + size >= serial && it % size == at;
}

/* ---- what all others lean on ----------------------------------------------------- */

static bool
load_head(struct load *load, struct span value)
{
	struct board *board = load->board;
	struct ruler *ruler = board->ruler;
	uint64_t v[8];

	if (!take_numbers(&value, ' ', v, ARRAY_SIZE(v)) || v[3] > UINT32_MAX)
		return false;
	/* Ends are read from the event stream again; what was admitted is not. */
	ruler->before.admitted =
		MAX(v[0], ruler->health.admitted + ruler->before.admitted) -
		ruler->health.admitted;
	ruler->before.done = v[1] - ruler->health.done;
	ruler->before.dead = v[2] - ruler->health.dead;
	board->samples = (uint32_t)v[3];
	board->totals_serial = v[4];
	board->totals_count = (uint32_t)MIN(v[4], BOARD_TOTALS);
	load->notes = v[5];
	load->changes = v[6];
	ruler->writers_serial = v[7];
	memset(board->totals, 0, sizeof(board->totals));
	memset(ruler->writers, 0, sizeof(ruler->writers));
	board_past_clear(board);
	return true;
}

static void
load_budget(struct load *load, struct span value)
{
	struct ruler_known *known = &load->board->ruler->known;
	struct ruler_usage_sum sum;

	if (!take_sum(&value, ' ', &sum) || value.len < 2 || value.data[0] != '|')
		return;
	value = (struct span){ value.data + 1, value.len - 1 };
	for (uint32_t i = 0; i < known->budgets_count; i++)
		if (span_equals(value, span_from(known->budgets[i].name)))
			known->budgets[i].sum = sum;
}

/* The family knows again what was counted of it, if there is room for it. */
static void
tell_family(struct board *board, const struct board_past *past, uint64_t trail_first)
{
	struct ruler_known *known = &board->ruler->known;
	uint32_t place = ruler_shelf_find(&known->family_shelf, past->family);
	uint32_t node = ruler_shelf_find(&known->node_shelf, past->family);
	struct board_trail *trail;

	if (node != RULER_SHELF_NONE && id_is_none(known->nodes[node].twin))
		known->nodes[node].twin = past->twin;
	if (place == RULER_SHELF_NONE)
		return;
	known->families[place].sum = past->sum;
	known->families[place].seen_ms =
		MAX(known->families[place].seen_ms, past->seen_ms);
	trail = &board->trails[place];
	*trail = (struct board_trail){
		.id = past->family,
		.first = (uint32_t)MIN(trail_first, board->samples),
	};
	for (uint32_t i = 0; i < BOARD_TRAIL; i++) /* as if it had stood still */
		trail->done[i] = (uint32_t)MIN(past->sum.jobs, UINT32_MAX);
}

static bool
take_past(struct span item, uint64_t now_ms, struct board_past *ret_past,
          uint64_t *ret_trail_first)
{
	struct board_past past = { .minute = now_ms / BOARD_MINUTE_MS };
	uint64_t v[4];

	if (!take_id(&item, ',', &past.family) || !take_id(&item, ',', &past.twin) ||
	    !take_numbers(&item, ',', v, ARRAY_SIZE(v)) ||
	    !take_sum(&item, ',', &past.sum))
		return false;
	past.since = v[0];
	past.seen_ms = v[2];
	past.moved_ms = v[3];
	*ret_trail_first = v[1];
	*ret_past = past;
	return true;
}

static void
load_chunk(struct load *load, uint32_t chunk, struct span value)
{
	struct board_past past;
	uint64_t trail_first;
	struct span item;

	for (uint32_t i = 0; i < BOARD_STORE_CHUNK && protocol_cut(&value, ' ', &item);
	     i++)
		if (chunk < BOARD_PASTS / BOARD_STORE_CHUNK &&
		    take_past(item, load->now_ms, &past, &trail_first) &&
		    board_past_restore(load->board, chunk * BOARD_STORE_CHUNK + i,
		                       &past) == 0)
			tell_family(load->board, &past, trail_first);
}

/* ---- the hour -------------------------------------------------------------------- */

/* "<place>:<rest>"; NULL if nobody has that place. */
static struct board_past *
take_place(const struct board *board, struct span *item)
{
	uint64_t place;

	if (!take_number(item, ':', &place) || place >= BOARD_PASTS || !item->data)
		return NULL;
	return id_is_none(board->pasts->at[place].family) ? NULL
	                                                  : &board->pasts->at[place];
}

static uint32_t
clamped(uint64_t value)
{
	return (uint32_t)MIN(value, UINT32_MAX);
}

static void
load_minute(struct load *load, uint32_t at, struct span value)
{
	uint64_t now = load->now_ms / BOARD_MINUTE_MS, minute, v[4];
	struct span item;

	if (!take_number(&value, ' ', &minute) ||
	    !is_of_ring(minute, now + 1, BOARD_PAST_MINUTES, at))
		return;
	while (protocol_cut(&value, ' ', &item)) {
		struct board_past *past = take_place(load->board, &item);

		if (past && minute >= past->since && take_numbers(&item, ',', v, 4))
			past->minutes[at] = (struct board_minute){
				clamped(v[0]),
				clamped(v[1]),
				clamped(v[2]),
				clamped(v[3]),
			};
	}
}

static void
load_backlogs(struct load *load, uint32_t at, struct span value)
{
	struct board *board = load->board;
	const struct ruler_shelf *shelf = &board->ruler->known.family_shelf;
	uint64_t sample, waiting;
	struct span item;

	if (!take_number(&value, ' ', &sample) ||
	    !is_of_ring(sample, board->samples, BOARD_TRAIL, at))
		return;
	while (protocol_cut(&value, ' ', &item)) {
		const struct board_past *past = take_place(board, &item);
		uint32_t place =
			past ? ruler_shelf_find(shelf, past->family) : RULER_SHELF_NONE;

		if (place != RULER_SHELF_NONE && sample >= board->trails[place].first &&
		    take_number(&item, ',', &waiting))
			board->trails[place].waiting[at] = clamped(waiting);
	}
}

static void
load_totals(struct load *load, uint32_t at, struct span value)
{
	struct board *board = load->board;
	uint64_t serial, v[11];

	if (take_number(&value, ' ', &serial) &&
	    is_of_ring(serial, board->totals_serial, BOARD_TOTALS, at) &&
	    take_numbers(&value, ' ', v, ARRAY_SIZE(v)))
		board->totals[at] = (struct board_totals){
			v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10],
		};
}

/* ---- what was said --------------------------------------------------------------- */

static void
load_writer(struct load *load, uint32_t at, struct span value)
{
	struct ruler *ruler = load->board->ruler;
	struct ruler_writer writer = { .family = ID_NONE };
	uint64_t serial, v[2];

	if (!take_number(&value, ' ', &serial) ||
	    !is_of_ring(serial, ruler->writers_serial, BOARD_STORE_WRITERS, at) ||
	    !take_id(&value, ' ', &writer.family) || !take_numbers(&value, ' ', v, 2) ||
	    v[1] >= LANE_ROLE_COUNT || protocol_parse_usage(value, &writer.usage) < 0)
		return;
	writer.at_ms = v[0];
	writer.role = (enum lane_role)v[1];
	ruler->writers[serial % RULER_WRITERS_MAX] = writer;
}

static void
take_line(struct span *text, char *to, size_t size)
{
	struct span line = SPAN("");

	(void)protocol_cut(text, '\n', &line);
	ruler_copy(to, size, line);
}

static void
load_note(struct board_log *log, uint32_t at, struct span value)
{
	struct board_note note = { 0 };
	struct span numbers;
	uint64_t v[3];

	if (!protocol_cut(&value, '\n', &numbers) || !take_numbers(&numbers, ' ', v, 3) ||
	    !is_of_ring(v[0], log->serial, BOARD_STORE_NOTES, at) || v[2] > RULER_ERROR)
		return;
	note.at_ms = v[1];
	note.level = (enum ruler_level)v[2];
	take_line(&value, note.text, sizeof(note.text));
	take_line(&value, note.route, sizeof(note.route));
	take_line(&value, note.family, sizeof(note.family));
	take_line(&value, note.budget, sizeof(note.budget));
	log->notes[v[0] % BOARD_NOTES] = note;
}

/* ---- all of it ------------------------------------------------------------------- */

static void
load_field(struct load *load, char kind, uint32_t at, struct span value)
{
	switch (kind) {
	case 't':
		load_totals(load, at, value);
		return;
	case 'm':
		load_minute(load, at, value);
		return;
	case 's':
		load_backlogs(load, at, value);
		return;
	case 'w':
		load_writer(load, at, value);
		return;
	case 'n':
		load_note(&load->board->notes, at, value);
		return;
	case 'c':
		load_note(&load->board->changes, at, value);
		return;
	case 'g':
		load->settings = value;
		return;
	default: /* of a later release, or somebody else's */
		return;
	}
}

/* "m:17" */
static bool
read_field(struct span field, char *ret_kind, uint32_t *ret_at)
{
	uint64_t at;

	if (field.len < 3 || field.data[1] != ':' ||
	    text_parse_unsigned((struct span){ field.data + 2, field.len - 2 },
	                        UINT32_MAX, &at) < 0)
		return false;
	*ret_kind = field.data[0];
	*ret_at = (uint32_t)at;
	return true;
}

/* Fields come in any order; the first pass takes what the others lean on. */
static void
load_pass(struct load *load, const struct reply *reply, bool first)
{
	for (size_t i = 0; i + 1 < reply->count; i += 2) {
		struct span value = reply_text(&reply->items[i + 1]);
		uint32_t at;
		char kind;

		if (value.len == 0 ||
		    !read_field(reply_text(&reply->items[i]), &kind, &at))
			continue;
		if (!first)
			load_field(load, kind, at, value);
		else if (kind == 'f')
			load_chunk(load, at, value);
		else if (kind == 'b')
			load_budget(load, value);
	}
}

static bool
find_head(struct load *load, const struct reply *reply)
{
	for (size_t i = 0; reply->kind == REPLY_ARRAY && i + 1 < reply->count; i += 2)
		if (reply_is(&reply->items[i], "h:0"))
			return load_head(load, reply_text(&reply->items[i + 1]));
	return false;
}

/* Notes of this process that are newer than all that is stored come behind it. */
static struct board_note *
set_aside(struct board_log *log, uint64_t serial)
{
	struct board_note *own = calloc(BOARD_NOTES, sizeof(*own));
	uint64_t count = MIN(log->serial, BOARD_NOTES);

	for (uint64_t i = 0; own && i < count; i++)
		own[i] = log->notes[(log->serial - count + i) % BOARD_NOTES];
	memset(log->notes, 0, BOARD_NOTES * sizeof(*log->notes));
	log->serial = serial;
	log->stored = serial;
	return own;
}

static void
add_again(struct board_log *log, struct board_note *own)
{
	uint64_t latest_ms = 0;

	for (uint32_t i = 0; i < BOARD_NOTES; i++)
		latest_ms = MAX(latest_ms, log->notes[i].at_ms);
	for (uint32_t i = 0; own && i < BOARD_NOTES; i++)
		if (own[i].at_ms > latest_ms)
			board_log_add(log, &own[i]);
	free(own);
}

static void
compare_settings(struct board *board, struct span before)
{
	struct board_store *store = board->store;
	struct buffer names;

	buffer_init(&names, BUFFER_SIZE_DEFAULT);
	if (before.len > 0)
		board_settings_differ(before, buffer_span(&store->settings), &names);
	store->settings_stored = before.len > 0 && names.len == 0;
	if (names.len > 0 && !store->settings_told)
		ruler_note(board->ruler, RULER_WARNING,
		           "the configuration has changed: %s", buffer_text(&names));
	store->settings_told = true;
	buffer_fini(&names);
}

void
board_store_load(void *data, uint64_t now_ms, const struct reply *reply)
{
	struct load load = { .board = data, .now_ms = now_ms };
	struct board *board = data;
	struct board_note *notes, *changes;

	if (!find_head(&load, reply))
		return;
	notes = set_aside(&board->notes, load.notes);
	changes = set_aside(&board->changes, load.changes);
	load_pass(&load, reply, true);
	load_pass(&load, reply, false);
	add_again(&board->notes, notes);
	add_again(&board->changes, changes);
	compare_settings(board, load.settings);
	board->totals_stored = board->totals_serial;
	board->samples_stored = board->samples;
	board->store->writers = board->ruler->writers_serial;
	board->store->counts = ruler_view_health(board->ruler, now_ms).ever;
	for (uint32_t i = 0; i < board->ruler->known.budgets_count; i++)
		board->store->sums[i] = board->ruler->known.budgets[i].sum;
}
