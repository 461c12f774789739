/* board_past.h - the last hour of families, minute by minute, for BOARD_PASTS of them.
 *
 *   sums of a family ── what they grew by since the last look ──► this minute
 *
 * A family that has been idle for a minute makes way for one that works; where more work
 * than there is room for, those that came first are kept.  Places are numbered, and what
 * is stored of an hour goes by these numbers: `since` says which minutes are this
 * family's and not those of another one that had the place before. */
#ifndef SCHEDULER_BOARD_PAST_H
#define SCHEDULER_BOARD_PAST_H

#include "common/table.h"
#include "scheduler/board.h"

#define BOARD_PASTS        1024
#define BOARD_PAST_MINUTES 60
#define BOARD_MINUTE_MS    60000

struct board_minute {
	uint32_t requests, hits, read, written;
};

struct board_past {
	struct id128 family;        /* none: free */
	struct id128 twin;          /* ruler_known_twin, as of the last look */
	uint64_t since;             /* the first minute, since 1970 */
	uint64_t minute;            /* the last one */
	uint64_t moved_ms;          /* when a job was done last */
	uint64_t seen_ms;           /* and admitted */
	struct ruler_usage_sum sum; /* of the family, as of the last look */
	bool dirty;                 /* not stored as it is, but for minutes */
	struct board_minute minutes[BOARD_PAST_MINUTES];
};

struct board_pasts {
	struct board_past at[BOARD_PASTS];
	uint32_t count, hand;
	struct table index; /* of families */
	void *index_memory;
	bool dirty[BOARD_PAST_MINUTES]; /* minutes, of whichever family */
};

MUST_USE int board_past_open(struct board *board);
void board_past_close(struct board *board);

/* Nobody has a past any more. */
void board_past_clear(struct board *board);

/* NULL: the family has none. */
struct board_past *board_past_find(const struct board *board, struct id128 family);

/* Looks at all rows; at those that have a past only. */
void board_past_sample(struct board *board, uint64_t now_ms);
void board_past_look(struct board *board, uint64_t now_ms);

/* A place that was stored; ERR_LIMIT if the number is none, ERR_FULL if the family has
 * one already. */
MUST_USE int board_past_restore(struct board *board, uint32_t at,
                                const struct board_past *past);

/* Members of an object that is open; nothing without a past. */
void board_past_put(struct board *board, struct id128 family, uint64_t now_ms,
                    struct buffer *out);

#endif
