/* ruler_ledger.h - what the events say of money, for the ledger; its rows in Redis.
 *
 *   line of an event ── whose family? ── route, prefix, prices ──► ledger_take
 *   rows that changed + cursor of the events ── now and then ──► ns:ledger…
 *
 * The ledger hears each line once, at the moment it is read, whether or not the core has
 * room for it.  Rows and cursor are stored in one call: whoever rules next goes on at
 * that cursor, so nothing is booked twice and nothing is left out.
 *
 * That call costs Redis 0.2 ms and more, however few jobs there were.  So it is made each
 * two minutes while they trickle in, and within 5 s when none has come for as long, 5,000
 * entries have, or something came that no event tells again: a new version, a note of a
 * change; and at last by a ruler that is told to stop. */
#ifndef SCHEDULER_RULER_LEDGER_H
#define SCHEDULER_RULER_LEDGER_H

#include "common/codec/protocol_event.h"
#include "scheduler/ledger/ledger_view.h"
#include "scheduler/ruler.h"

#define RULER_LEDGER_ENTRIES 5000 /* of the stream: enough to be stored at once */

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

/* The model of the configuration whose prices a family had last; SIZE_MAX if it is not
 * known. */
size_t ruler_ledger_model(const struct ruler *ruler, struct span route,
                          struct id128 family);

/* Lines of the event stream were lost before they were read. */
void ruler_ledger_gap(struct ruler *ruler, uint64_t now_ms);

/* Each 5 s: stores what has changed if it is time; false if it is not, if there is
 * nothing, or no room in `out` yet. */
bool ruler_ledger_step(struct ruler *ruler, uint64_t now_ms, struct call_list *out);

/* Stores what there is, before others rule; false if there is no room in `out` yet. */
bool ruler_ledger_leave(struct ruler *ruler, uint64_t now_ms, struct call_list *out);
void ruler_ledger_on_stored(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                            const struct reply *reply);

/* Reading it back: its head (hour 0), then its hours, until there is no i-th one. */
void ruler_ledger_ask(struct ruler *ruler, uint64_t hour, struct call_list *out);
bool ruler_ledger_ask_hour(struct ruler *ruler, uint32_t i, struct call_list *out);
void ruler_ledger_load(struct ruler *ruler, uint32_t hour, const struct reply *reply);

#endif
