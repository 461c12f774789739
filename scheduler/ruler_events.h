/* ruler_events.h - ns:events, read from its two cursors: hints for the core, and money.
 *
 *   stored (in meta) ≤ told (the core has seen it) ≤ read (queued)
 *
 * Reading consumes nothing; the cursor travels with the grant that carries what was
 * decided.  The stream is read every 10 to 20 ms while the core waits for something.
 *
 * The ledger has a cursor of its own, stored with its rows; what both have is trimmed,
 * but for the entry at the cursor.  After a start, reading begins at whichever is older,
 * and each hears only what it does not know.  That the entry at the cursor is still there
 * proves that nothing behind it was lost: it is looked at after a start and whenever the
 * reader had fallen behind. */
#ifndef SCHEDULER_RULER_EVENTS_H
#define SCHEDULER_RULER_EVENTS_H

#include "scheduler/ruler_state.h"

/* `ledger`: the cursor of the ledger, empty if there is none yet. */
void ruler_events_start(struct ruler *ruler, struct span cursor, struct span ledger);

/* True when what the core was told may be called told: it has been read up to there. */
bool ruler_events_are_ahead(const struct ruler *ruler);

/* True when all that was read was told. */
bool ruler_events_are_told(const struct ruler *ruler);
void ruler_events_ask(struct ruler *ruler, struct call_list *out);
void ruler_events_on_read(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                          const struct reply *reply);

#endif
