/* board_store.h - what pages show of the recent past, over restarts and take-overs.
 *
 *   hash ns:recent   h:0         jobs ever; how many there are of all that follows
 *                    t:<n>       a sample of the totals, n from 0 to BOARD_TOTALS - 1
 *                    b:<i>       an account: its sums, name
 *                    f:<i>       BOARD_STORE_CHUNK places of pasts: family, twin, sums
 *                    m:<n>       a minute of the last hour: counts by place
 *                    s:<n>       a sample of the backlogs: by place
 *                    w:<n>       a request that wrote
 *                    n:<n> c:<n> a note, a change
 *                    g:0         hashes of the parts of the configuration
 *
 * All of it goes with the rows of the ledger, in one call, and only what has changed: the
 * cost grows with families that work and with minutes, not with jobs.  A change hurries
 * that call (within 5 s); a scheduler that is killed may forget up to two minutes of
 * the rest, which its log has, and no sum, since those are counted again from the events.
 * Fields are overwritten in place; with BOARD_PASTS families that work for an hour they
 * are about 2 MB, with fifty 100 KB.
 *
 * Whatever cannot be read is left out: a page lacks it then, and nothing else does. */
#ifndef SCHEDULER_BOARD_STORE_H
#define SCHEDULER_BOARD_STORE_H

#include "common/io/config.h"
#include "scheduler/board.h"

#define BOARD_STORE_CHUNK   8
#define BOARD_STORE_WRITERS 128 /* of RULER_WRITERS_MAX */
#define BOARD_STORE_NOTES   64  /* of BOARD_NOTES */
#define BOARD_STORE_QUIET   12  /* totals that say nothing new are stored each minute */

MUST_USE int board_store_open(struct board *board);

/* What is stored of another configuration than this one becomes a note. */
MUST_USE int board_store_know(struct board *board, const struct config *config);
void board_store_close(struct board *board);

/* For ruler_keep. */
struct ruler_keeper board_store_keeper(struct board *board);

#endif
