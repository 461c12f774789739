/* ruler_undecided.h - jobs whose named prefix was missing when they were admitted.
 *
 *   admit ─► later, without a family ─► prefix there? ─► "undecided" ─► admit
 *                     ▲                    │ no        10 s old ─► dead
 *                     └────────────────────┘
 *
 * The function `promote` looks for the prefix and says the line once it has come.
 * The inbox does not wait for them.  Their payload stands in Redis, so a scheduler that
 * dies forgets nothing: the next one is told of them by the same lines. */
#ifndef SCHEDULER_RULER_UNDECIDED_H
#define SCHEDULER_RULER_UNDECIDED_H

#include "scheduler/ruler_state.h"

void ruler_undecided_clear(struct ruler *ruler);

/* From the event line.  Those that find no room come again a second later. */
void ruler_undecided_add(struct ruler *ruler, struct span id);

void ruler_undecided_step(struct ruler *ruler, uint64_t now_ms, struct call_list *out);
bool ruler_undecided_is_due(const struct ruler *ruler);

void ruler_undecided_on_payload(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                                const struct reply *reply);

/* The answer to an admit that was about one of them. */
void ruler_undecided_on_admit(struct ruler *ruler, uint64_t now_ms,
                              const struct reply *reply);

#endif
