/* ruler_events.h - lines of ns:events for the core: hints, read from a cursor.
 *
 *   stored (in meta, trimmed up to) ≤ told (the core has seen it) ≤ read (queued)
 *
 * Reading consumes nothing; the cursor travels with the grant that carries what was
 * decided.  The stream is read every 10 to 20 ms while the core waits for something. */
#ifndef SCHEDULER_RULER_EVENTS_H
#define SCHEDULER_RULER_EVENTS_H

#include "scheduler/ruler_state.h"

void ruler_events_start(struct ruler *ruler, struct span cursor);

/* True when all that was read was told. */
bool ruler_events_are_told(const struct ruler *ruler);
void ruler_events_ask(struct ruler *ruler, struct call_list *out);
void ruler_events_on_read(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                          const struct reply *reply);

/* `hold on` or `hold off`, by a line or seen in meta. */
void ruler_events_set_hold(struct ruler *ruler, uint64_t now_ms, bool on,
                           struct span who);

/* What words of the protocol mean to the core. */
enum lane_role ruler_events_role(enum protocol_role role);
struct event_usage ruler_events_usage(const struct protocol_usage *usage);

#endif
