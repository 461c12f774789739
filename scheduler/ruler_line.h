/* ruler_line.h - what one line of ns:events tells the core, in the core's own words.
 *
 *   line ──► ruler_line_take ──┬─► struct event for the core
 *                              └─► sessions, pauses, warm-ups, holding: who acts on it
 *
 * Lines are hints: one that is missed costs time, never a job.  Money is counted
 * elsewhere (ruler_events, by the ledger's own cursor).  Times are Redis's, in ms. */
#ifndef SCHEDULER_RULER_LINE_H
#define SCHEDULER_RULER_LINE_H

#include "common/codec/protocol_event.h"
#include "scheduler/ruler_state.h"

/* `at_ms`: when the line was written. */
void ruler_line_take(struct ruler *ruler, uint64_t now_ms, uint64_t at_ms,
                     const struct protocol_event *line);

/* `hold on` or `hold off`, by a line or seen in meta. */
void ruler_line_set_hold(struct ruler *ruler, uint64_t now_ms, bool on, struct span who);

/* What words of the protocol mean to the core. */
enum lane_role ruler_line_role(enum protocol_role role);
enum event_pressure_kind ruler_line_pressure(struct span what);

#endif
