/* ruler_grant.h - commands of the core into calls, and their outcomes back to it.
 *
 * All grants and budgets that wait go into one `grant`, in their order, up to 128 lanes;
 * glances are collected into one `glance`.  Both only grow stale while they wait, so
 * what is due is sent at the end of each step. */
#ifndef SCHEDULER_RULER_GRANT_H
#define SCHEDULER_RULER_GRANT_H

#include "scheduler/ruler_state.h"

void ruler_grant_step(struct ruler *ruler, uint64_t now_ms, struct call_list *out);

/* A grant of nothing: stores the cursor of the events that were told. */
void ruler_grant_trim(struct ruler *ruler, struct call_list *out);
bool ruler_grant_has_cursor(const struct ruler *ruler);
bool ruler_grant_is_due(const struct ruler *ruler);

void ruler_grant_on_answer(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                           const struct reply *reply);
void ruler_grant_on_glance(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                           const struct reply *reply);

#endif
