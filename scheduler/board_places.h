/* board_places.h - where each prefix is kept: a matrix of prefixes and places.
 *
 *             main          backup            a row: one prefix, wherever it is sent
 *   triage    warm, 4 min   warm, 2 min  ◄──  kept at every place of its route
 *   review    warm, 1 h     ·                 a cell: one family
 *
 * A place is an upstream: an account, or one replica.  The families of one row are those
 * whose prefix is the same text (ruler_known_twin).  A prefix is *everywhere* when it is
 * kept at each of the two or more places to which its route has sent jobs within an hour:
 * it is then written and paid for at each of them.
 *
 * The last hour of cells is kept minute by minute (board_past.h).
 *
 * Rows and cells are worked out once for each look at all families, not for each reader.
 */
#ifndef SCHEDULER_BOARD_PLACES_H
#define SCHEDULER_BOARD_PLACES_H

#include "scheduler/board.h"

#define BOARD_PLACES_ROUTES 4096 /* whose places are known; a power of 2 */

struct board_places;

MUST_USE int board_places_open(struct board *board);
void board_places_close(struct board *board);

/* Counts what is everywhere, for metrics; once a minute is enough. */
void board_places_count(struct board *board, uint64_t now_ms);

/* As members of an object that is open: `total`, `everywhere`, `places`, `rows`.  Of the
 * query: show (only_everywhere adds to it), text, route, offset, limit. */
void board_places_put(struct board *board, uint64_t now_ms,
                      const struct board_query *query, bool only_everywhere,
                      struct buffer *out);

/* The cells of one family's prefix with their past; false if the family is not known. */
bool board_places_put_family(struct board *board, uint64_t now_ms, struct id128 family,
                             struct buffer *out);

#endif
