/* ruler_clock.h - what a ruling scheduler does every so often.
 *
 *   renew 2 s · reap promote expire 1 s · audit 60 s · events 10 to 200 ms · hold 1 s
 *   workers 5 s · memory 5 s · status 5 s · trim 1 s · ledger 5 or 120 s · books 10 min
 *
 * A timer whose call is under way waits for the answer: nothing piles up behind a slow
 * Redis. */
#ifndef SCHEDULER_RULER_CLOCK_H
#define SCHEDULER_RULER_CLOCK_H

#include "scheduler/ruler_state.h"

void ruler_clock_start(struct ruler *ruler, uint64_t now_ms);
void ruler_clock_step(struct ruler *ruler, uint64_t now_ms, struct call_list *out);
uint64_t ruler_clock_deadline(const struct ruler *ruler);

/* The call of a timer was answered; when it is due next. */
void ruler_clock_done(struct ruler *ruler, enum ruler_timer timer, uint64_t due_ms);
void ruler_clock_hurry(struct ruler *ruler, enum ruler_timer timer, uint64_t now_ms);
void ruler_clock_events_done(struct ruler *ruler, uint64_t now_ms, bool more);

/* An audit goes piece by piece, each a call of a few ms; `anew` begins it again. */
void ruler_clock_audit_anew(struct ruler *ruler);
void ruler_clock_audit(struct ruler *ruler, struct call_list *out);

void ruler_clock_on_audit(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                          const struct reply *reply);
void ruler_clock_on_promote(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                            const struct reply *reply);
void ruler_clock_on_expire(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                           const struct reply *reply);
void ruler_clock_on_hold(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                         const struct reply *reply);
void ruler_clock_on_size(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                         const struct reply *reply);
void ruler_clock_on_info(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                         const struct reply *reply);
void ruler_clock_on_books(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                          const struct reply *reply);
void ruler_clock_on_note(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                         const struct reply *reply);

#endif
