/* ruler_warm.h - prefixes that somebody wants to be written ahead of their jobs.
 *
 *   warm <family> <who> ─► the core ─► a ticket, or a reason why not
 *                                  └─► ns:warm:<family>, for who asked, for a minute */
#ifndef SCHEDULER_RULER_WARM_H
#define SCHEDULER_RULER_WARM_H

#include "scheduler/ruler_state.h"

/* A line of the event stream, written at `at_ms`.  Old wishes are no wishes. */
void ruler_warm_ask(struct ruler *ruler, uint64_t now_ms, uint64_t at_ms,
                    struct id128 family, struct span who);

/* What the core has decided. */
void ruler_warm_take(struct ruler *ruler, struct id128 family, enum core_warm verdict);

/* Emits what is still to be told. */
void ruler_warm_step(struct ruler *ruler, struct call_list *out);

/* A sentence for people; NULL for a word that is none. */
const char *ruler_warm_reason(enum core_warm verdict);
const char *ruler_warm_reason_of(struct span word);

#endif
