/* ruler_ledger.h - what the events say of money, for the ledger.
 *
 *   line of an event ── whose family? ── route, prefix, prices ──► ledger_take
 *
 * The ledger hears each line once, at the moment it is read, whether or not the core has
 * room for it. */
#ifndef SCHEDULER_RULER_LEDGER_H
#define SCHEDULER_RULER_LEDGER_H

#include "common/codec/protocol_event.h"
#include "scheduler/ledger/ledger_view.h"
#include "scheduler/ruler.h"

/* For readers; never NULL.  What is read there is true until the ruler is told anything
 * or takes a step. */
const struct ledger *ruler_ledger(const struct ruler *ruler);

MUST_USE int ruler_ledger_open(struct ruler *ruler);
void ruler_ledger_close(struct ruler *ruler);

/* Forgets everything: the memory is being rebuilt. */
void ruler_ledger_restart(struct ruler *ruler, uint64_t now_ms);

/* `at_ms`: time of the event entry. */
void ruler_ledger_take(struct ruler *ruler, uint64_t at_ms,
                       const struct protocol_event *line);

#endif
