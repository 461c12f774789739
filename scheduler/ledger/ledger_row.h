/* ledger_row.h - the ledger as fields of hashes in Redis, and back.
 *
 *   hash               field        value
 *   ns:ledger          state        first call, gaps, ...
 *                      total        sums of all, ever
 *                      r:<row>      a route: times, sums ever, name
 *                      v:<row>:<i>  a version of it: figures, its entry in the book
 *                      p:<i>        a place: sums ever, name
 *                      l:<i>        how long its entries lived
 *                      b:<i>        a burst
 *                      hours        those that there are, with commas
 *   ns:ledger:<hour>   <route>      sums of that hour (since 1970)
 *
 * Fields are overwritten in place, so what Redis holds is bounded as the ledger is.  Sums
 * leave out what is zero.  A line of a later version may have more words: they are not
 * read. */
#ifndef SCHEDULER_LEDGER_LEDGER_ROW_H
#define SCHEDULER_LEDGER_LEDGER_ROW_H

#include "common/error.h"
#include "scheduler/ledger/ledger.h"

#define LEDGER_ROW_SIZE 3072 /* of any value */

struct ledger_row {
	uint64_t hour; /* 0: of ns:ledger */
	char field[LEDGER_NAME_SIZE];
	char value[LEDGER_ROW_SIZE];
	size_t value_len;
};

/* Walks what has changed since it was last marked clean: start with *cursor = 0; false at
 * the end. */
bool ledger_row_next(const struct ledger *ledger, uint32_t *cursor,
                     struct ledger_row *ret_row);

/* Is there a row that should not wait: a new version of a route?  Where else its prefix
 * is known from nobody tells again who has not seen its jobs come. */
bool ledger_row_has_news(const struct ledger *ledger);

/* All that was walked is on its way to Redis. */
void ledger_row_mark_clean(struct ledger *ledger);

/* One field back, into a ledger that has been told nothing yet: first those of ns:ledger
 * in any order, then ledger_row_settle, then those of the hours. */
MUST_USE int ledger_row_load(struct ledger *ledger, uint64_t hour, struct span field,
                             struct span value);
void ledger_row_settle(struct ledger *ledger);

/* The i-th hour that Redis has, from the field `hours`; 0 behind the last. */
uint64_t ledger_row_hour(const struct ledger *ledger, uint32_t i);

#endif
