/* view.h - a snapshot told in the words of the page.  No I/O: the same snapshot gives
 * the same text.
 *
 * Views are JSON objects, so that what people read and what --json prints are the same
 * facts; the caller releases them.  Times are ms, of Redis's clock or as durations.
 *
 *   state       cold | being written | checking | warm until 14:07:12 | not held: below
 *               minimum | …
 *   blocked_on  what the oldest waiting job waits for, with the number and, where there
 *               is one, the advice; empty if nothing waits */
#ifndef CLI_VIEW_H
#define CLI_VIEW_H

#include "cli/snapshot.h"

/* All families as an array, largest backlog first: family, route, pool, budget, state,
 * blocked_on, backlog, in_flight, window, prefix_tokens, oldest_ms (age of the oldest
 * waiting job, 0 = none).  Left out are those whose record cannot be read, and those at
 * which no job has ended (a part that families share).  `filter` keeps those whose id
 * begins with it or whose route is it; NULL keeps all. */
json_t *view_families(const struct snapshot *snapshot, const char *filter);

/* Adds `places` (root to leaf, each with state, marker: who set one there, or why there
 * is none, generation, prefix_tokens, in_flight, credits), and `account` (pace,
 * in_flight, limits) to such a row. */
void view_add_details(const struct snapshot *snapshot, json_t *row);

/* All live sessions: label, session, pool, slots, busy, seen_ms ago. */
json_t *view_workers(const struct snapshot *snapshot);

#endif
