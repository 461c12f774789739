/* board.h - what pages show: a table of all families, and the recent past of some
 * numbers.
 *
 *   ruler ── board_refresh ──► rows ── board_select ──► one page of them, in an order
 *     └───── board_sample ───► totals of the last hour, backlogs of the last ten minutes
 *
 * The table of a few families is as fresh as its reader; that of thousands is taken so
 * seldom that it costs 1 % of the time, however many pages look.
 *
 * Rows borrow texts from the ruler: they live until the loop turns. */
#ifndef SCHEDULER_BOARD_H
#define SCHEDULER_BOARD_H

#include "common/buffer.h"
#include "scheduler/ruler_state.h"

#define BOARD_TOTALS        720 /* an hour */
#define BOARD_TOTALS_MS     5000
#define BOARD_TRAIL         60 /* ten minutes */
#define BOARD_TRAIL_SAMPLES 2  /* totals between two of them */
#define BOARD_NOTES         256
#define BOARD_LIMIT_MAX     200 /* rows of one page */

/* What all families of one kind have together. */
struct board_sum {
	uint32_t families, waiting, running, warm; /* warm: can be read now */
	uint64_t oldest_ms;               /* of the job that waits longest; 0 none */
	uint64_t read, written, uncached; /* tokens, since the process began */
	uint32_t most, most_waiting;      /* row with most waiting jobs, if any wait */
};

struct board_row {
	struct id128 id;
	uint32_t place; /* of the ruler */
	uint32_t waiting, running, rank;
	uint64_t oldest_ms;
	enum core_blocked blocked_on;
	enum lane_gate gate;
	uint64_t until_ms; /* of its gate */
	bool known;        /* to the core */
	bool single;       /* one job, and nobody shares its prefix */
	uint64_t jobs, read, written, uncached;
};

struct board_totals { /* counters since the first scheduler began; gauges */
	uint64_t at_ms;
	uint64_t admitted, done, dead, waiting, running;
	uint64_t read, written, uncached, output;
	uint64_t failed; /* tries without an answer, after which the job goes on */
};

struct board_note {
	uint64_t at_ms;
	enum ruler_level level;
	char text[200];
	char route[RULER_ROUTE_SIZE];
	char family[ID_HEX_LEN + 1];
	char budget[PROTOCOL_BUDGET_SIZE + 1];
};

/* A ring of the last ones; the i-th newest stands at (serial - i) % BOARD_NOTES. */
struct board_log {
	uint64_t serial; /* so many ever */
	uint64_t stored; /* so many of them */
	struct board_note *notes;
};

/* Backlogs every BOARD_TRAIL_SAMPLES * BOARD_TOTALS_MS, and jobs done then. */
struct board_trail {
	struct id128 id;
	uint32_t first; /* number of the oldest sample */
	uint32_t waiting[BOARD_TRAIL];
	uint32_t done[BOARD_TRAIL];
};

/* Jobs that run, as Redis said last. */
struct board_use {
	struct id128 id;
	uint32_t in_use;
	uint64_t at_ms; /* monotonic */
};

/* Since when a family is being drained: jobs of it run, or have run and more wait. */
struct board_drain {
	struct id128 id;
	uint64_t since_ms;
};

struct board {
	struct ruler *ruler;
	struct board_row *rows; /* all families, the latest first */
	uint32_t rows_count;
	uint64_t taken_us, took_us; /* monotonic: when it was taken, and how long */
	uint64_t now_ms;            /* of Redis, when they were taken */
	struct board_sum all, singles, by_blocked[CORE_BLOCKED_COUNT];
	struct board_totals totals[BOARD_TOTALS]; /* the i-th newest as in a log */
	uint64_t totals_serial, totals_stored;
	uint32_t totals_count;
	struct board_trail *trails; /* by place of the ruler */
	struct board_use *uses;     /* likewise */
	struct board_drain *drains; /* likewise */
	uint32_t samples;           /* of trails, ever */
	uint32_t samples_stored;
	uint32_t turn; /* of board_sample */
	struct board_log notes;
	struct board_log changes; /* of them, those that change what goes on */
	struct board_pick *picks; /* of board_select */
	struct board_places *places;
	struct board_pasts *pasts;
	struct board_store *store;
};

MUST_USE int board_open(struct board *board, struct ruler *ruler);
void board_close(struct board *board);

/* Takes the table anew unless it is fresh. */
bool board_is_due(const struct board *board);
void board_refresh(struct board *board, uint64_t now_ms);

/* Takes it anew in any case: something is known better now. */
void board_retake(struct board *board, uint64_t now_ms);
void board_set_use(struct board *board, uint32_t place, struct id128 id, uint32_t in_use);

/* Every BOARD_TOTALS_MS. */
void board_sample(struct board *board, uint64_t now_ms);
void board_note(struct board *board, uint64_t now_ms, const struct ruler_note *note);
void board_log_add(struct board_log *log, const struct board_note *note);

/* ---- one page of rows ------------------------------------------------------------- */

enum board_sort {
	BOARD_SORT_WORK, /* waiting and running */
	BOARD_SORT_WAITING,
	BOARD_SORT_RUNNING,
	BOARD_SORT_OLDEST,
	BOARD_SORT_ROUTE,
	BOARD_SORT_STATE,
	BOARD_SORT_BLOCKED,
	BOARD_SORT_TOKENS,
	BOARD_SORT_READ,
	BOARD_SORT_WRITTEN,
	BOARD_SORT_UNCACHED,
	BOARD_SORT_HITS,  /* prefix_hit_ratio */
	BOARD_SORT_RATIO, /* token_read_ratio */
	BOARD_SORT_COUNT,
};

enum board_show {
	BOARD_SHOW_FAMILIES, /* all but those of one job */
	BOARD_SHOW_BUSY,     /* those with jobs that wait or run, but for the singles */
	BOARD_SHOW_HELD,     /* those with jobs that wait and may not start */
	BOARD_SHOW_SINGLES,
	BOARD_SHOW_ALL,
	BOARD_SHOW_COUNT,
};

struct board_query {
	enum board_sort sort;
	bool ascending;
	enum board_show show;
	struct span text;       /* in the id, route, pool or account; any case */
	struct span route;      /* exactly; empty: all */
	int blocked;            /* enum core_blocked, or -1 */
	uint32_t offset, limit; /* limit at most BOARD_LIMIT_MAX */
};

/* Whether a row is one that is asked for. */
bool board_matches(const struct board *board, const struct board_row *row,
                   const struct board_query *query);

const char *board_sort_text(enum board_sort sort);
const char *board_show_text(enum board_show show);

/* Up to query.limit rows; answers how many match in all. */
uint32_t board_select(struct board *board, const struct board_query *query,
                      const struct board_row **ret_rows, uint32_t *ret_count);

/* ---- as JSON: members of an object that is open ----------------------------------- */

void board_put_sums(const struct board *board, struct buffer *out);
void board_put_row(const struct board *board, const struct board_row *row,
                   bool with_trail, struct buffer *out); /* an object of its own */
void board_put_brief(const struct board *board, const struct board_row *row,
                     struct buffer *out); /* members: what a cell of a table shows */
void board_put_totals(const struct board *board, struct buffer *out);
void board_put_notes(const struct board *board, uint32_t max, struct buffer *out);

/* Restarts, switches, accounts that are parked: not what goes on all the time. */
void board_put_changes(const struct board *board, uint32_t max, struct buffer *out);

/* The last requests of a family that wrote, the latest first, as an array. */
void board_put_writers(const struct board *board, struct id128 family,
                       struct buffer *out);

/* The routes that match `text`, most work first: name, families, jobs, tokens. */
void board_put_routes(struct board *board, const struct board_query *query,
                      struct buffer *out);

/* Jobs that were done in the last minute, and how many seconds that was; 0 if it is not
 * known. */
uint64_t board_done_lately(const struct board *board, const struct board_row *row,
                           uint64_t *ret_seconds);

const struct board_row *board_find(const struct board *board, struct id128 id);

/* Since when the family in this place of the ruler is being drained; 0: it is not. */
uint64_t board_drains_since(const struct board *board, uint32_t place);

#endif
