/* Filters, orders and cuts: what ten thousand families come down to on one page. */
#include "scheduler/board.h"

#include <ctype.h>
#include <stdlib.h>

/* The key of a row; ties keep the order of the table, the latest first. */
struct board_pick {
	uint64_t key;
	uint64_t index;
};

const char *
board_sort_text(enum board_sort sort)
{
	static const char *const texts[BOARD_SORT_COUNT] = {
		[BOARD_SORT_WORK] = "work",
		[BOARD_SORT_WAITING] = "waiting",
		[BOARD_SORT_RUNNING] = "running",
		[BOARD_SORT_OLDEST] = "oldest",
		[BOARD_SORT_ROUTE] = "route",
		[BOARD_SORT_STATE] = "state",
		[BOARD_SORT_BLOCKED] = "blocked",
		[BOARD_SORT_TOKENS] = "tokens",
		[BOARD_SORT_READ] = "read",
		[BOARD_SORT_WRITTEN] = "written",
		[BOARD_SORT_UNCACHED] = "uncached",
		[BOARD_SORT_HITS] = "prefix_hit_ratio",
		[BOARD_SORT_RATIO] = "token_read_ratio",
	};

	VERIFY(sort < BOARD_SORT_COUNT);
	return texts[sort];
}

const char *
board_show_text(enum board_show show)
{
	static const char *const texts[BOARD_SHOW_COUNT] = {
		[BOARD_SHOW_FAMILIES] = "families", [BOARD_SHOW_BUSY] = "busy",
		[BOARD_SHOW_HELD] = "held",         [BOARD_SHOW_SINGLES] = "singles",
		[BOARD_SHOW_ALL] = "all",
	};

	VERIFY(show < BOARD_SHOW_COUNT);
	return texts[show];
}

/* ---- which ----------------------------------------------------------------------- */

static bool
is_shown(const struct board_row *row, enum board_show show)
{
	switch (show) {
	case BOARD_SHOW_FAMILIES:
		return !row->single;
	case BOARD_SHOW_BUSY:
		return !row->single && (row->waiting > 0 || row->running > 0);
	case BOARD_SHOW_HELD:
		return row->waiting > 0 && row->blocked_on != CORE_BLOCKED_NOTHING;
	case BOARD_SHOW_SINGLES:
		return row->single;
	case BOARD_SHOW_ALL:
	case BOARD_SHOW_COUNT:
		break;
	}
	return true;
}

static bool
contains(const char *text, struct span part)
{
	size_t len = strlen(text);

	for (size_t from = 0; from + part.len <= len; from++) {
		size_t i = 0;

		while (i < part.len && tolower((unsigned char)text[from + i]) ==
		                               tolower((unsigned char)part.data[i]))
			i++;
		if (i == part.len)
			return true;
	}
	return false;
}

static bool
has_text(const struct board *board, const struct board_row *row, struct span text)
{
	const struct ruler_known *known = &board->ruler->known;
	const struct ruler_family *family = &known->families[row->place];
	char hex[ID_HEX_LEN + 1] = "";

	id_encode(row->id, hex);
	return contains(family->route, text) || contains(hex, text) ||
	       contains(known->pools[family->pool].name, text) ||
	       contains(known->budgets[family->budget].name, text);
}

bool
board_matches(const struct board *board, const struct board_row *row,
              const struct board_query *query)
{
	const struct ruler_family *family = &board->ruler->known.families[row->place];

	if (!is_shown(row, query->show) || !id_equals(family->id, row->id))
		return false; /* its place has another family by now */
	if (query->blocked >= 0 && row->blocked_on != (enum core_blocked)query->blocked)
		return false;
	if (query->route.len > 0 && !span_equals(span_from(family->route), query->route))
		return false;
	return query->text.len == 0 || has_text(board, row, query->text);
}

/* ---- in which order -------------------------------------------------------------- */

/* Big-endian, so that numbers compare as texts do. */
static uint64_t
text_key(const char *text)
{
	uint64_t key = 0;

	for (size_t i = 0; i < 8; i++)
		key = key << 8 | (uint64_t)(*text ? tolower((unsigned char)*text++) : 0);
	return key;
}

/* Millionths, plus one; 0 where there is none. */
static uint64_t
ratio_key(uint64_t part, uint64_t whole)
{
	return whole > 0 ? part * 1000000 / whole + 1 : 0;
}

static uint64_t
key_of(const struct board *board, const struct board_row *row, enum board_sort sort)
{
	const struct ruler_family *family = &board->ruler->known.families[row->place];

	switch (sort) {
	case BOARD_SORT_WORK:
		return (uint64_t)row->waiting + row->running;
	case BOARD_SORT_WAITING:
		return row->waiting;
	case BOARD_SORT_RUNNING:
		return row->running;
	case BOARD_SORT_OLDEST: /* the longest wait is the largest */
		return row->oldest_ms > 0 ? UINT64_MAX - row->oldest_ms : 0;
	case BOARD_SORT_ROUTE:
		return UINT64_MAX - text_key(family->route);
	case BOARD_SORT_STATE:
		return (uint64_t)LANE_GATE_COUNT - row->gate;
	case BOARD_SORT_BLOCKED:
		return row->blocked_on;
	case BOARD_SORT_TOKENS:
		return row->read + row->written + row->uncached;
	case BOARD_SORT_READ:
		return row->read;
	case BOARD_SORT_WRITTEN:
		return row->written;
	case BOARD_SORT_UNCACHED:
		return row->uncached;
	case BOARD_SORT_HITS:
		return ratio_key(family->sum.hits, family->sum.known);
	case BOARD_SORT_RATIO:
		return ratio_key(row->read, row->read + row->written + row->uncached);
	case BOARD_SORT_COUNT:
		break;
	}
	return 0;
}

static int
compare(const void *left, const void *right)
{
	const struct board_pick *a = left, *b = right;

	if (a->key != b->key)
		return a->key > b->key ? -1 : 1;
	return a->index < b->index ? -1 : 1;
}

uint32_t
board_select(struct board *board, const struct board_query *query,
             const struct board_row **ret_rows, uint32_t *ret_count)
{
	uint32_t found = 0, count = 0;

	for (uint32_t i = 0; i < board->rows_count; i++) {
		const struct board_row *row = &board->rows[i];
		uint64_t key;

		if (!board_matches(board, row, query))
			continue;
		key = key_of(board, row, query->sort);
		board->picks[found].key = query->ascending ? UINT64_MAX - key : key;
		board->picks[found++].index = i;
	}
	qsort(board->picks, found, sizeof(*board->picks), compare);
	for (uint32_t i = query->offset;
	     i < found && count < MIN(query->limit, (uint32_t)BOARD_LIMIT_MAX); i++)
		ret_rows[count++] = &board->rows[board->picks[i].index];
	*ret_count = count;
	return found;
}
