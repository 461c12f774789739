/* ruler_tally.h - feeds the tally with what the ruler hears.
 *
 *   line ── whose family, pool, upstream? ──► tally_call, tally_count
 *   gate moves ──► since when, and until when, a prefix held its jobs (tally_hold)
 *
 * It hears what the core hears: each line once, but for those that were read and not
 * stored when a process died.  So metrics may count a second twice over a crash; the
 * ledger does not.  Times are of Redis's clock.  Nothing here fails or allocates. */
#ifndef SCHEDULER_RULER_TALLY_H
#define SCHEDULER_RULER_TALLY_H

#include "common/codec/protocol_event.h"
#include "scheduler/ruler.h"

/* One line of the event stream, of the entry written at `at_ms`. */
void ruler_tally_line(struct ruler *ruler, uint64_t now_ms, uint64_t at_ms,
                      const struct protocol_event *line);

/* The core moved a gate. */
void ruler_tally_note(struct ruler *ruler, uint64_t now_ms,
                      const struct command_note *note);

#endif
