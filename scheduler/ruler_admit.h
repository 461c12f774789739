/* ruler_admit.h - jobs of a page, up to 500 at a time, into one call of `admit`.
 *
 *   parse ─► prefix? ─► segments known? ─► batch ─► call ──► OK      on with the next
 *              │            │                         ├────► NEED    the same jobs again,
 *              └── GET ◄────┘                         │               with bytes
 *                                                     └────► CURSOR  memory is void
 *
 * One admit is under way at a time, and never for two pages; the core hears of the jobs
 * when the call goes out, so that its grants travel in the same pipeline.
 *
 * An entry that kills the scheduler must not kill all its successors.  At each take-over
 * the cursor is compared with that of the one before (meta `admit_try`); after two deaths
 * at one cursor entries go one by one, each announced before it is looked at, and the one
 * whose announcement is found at the next take-over is dead without being looked at.  The
 * announcement goes before its admission is sent, and who finds his own is alive: a link
 * that was lost says nothing against the entry.
 *
 * An entry that Redis refuses when it comes alone is buried, too; but only one a minute
 * as long as no other is admitted: then it is not the entries that are wrong. */
#ifndef SCHEDULER_RULER_ADMIT_H
#define SCHEDULER_RULER_ADMIT_H

#include "scheduler/ruler_state.h"

MUST_USE int ruler_admit_open(struct ruler *ruler);
void ruler_admit_close(struct ruler *ruler);
void ruler_admit_clear(struct ruler *ruler);

/* From meta: "<entry> <n>", and "<entry> <n> <count> <state>" of the last take-over. */
void ruler_admit_set_cursor(struct ruler *ruler, struct span text);
void ruler_admit_set_tries(struct ruler *ruler, struct span text);

/* True if the stored cursor, as of an answer in its turn, is not where this ruler has
 * left it: who only reads behind his own would never notice. */
bool ruler_admit_is_elsewhere(const struct ruler *ruler, struct span text);

void ruler_admit_step(struct ruler *ruler, uint64_t now_ms, struct call_list *out);
uint64_t ruler_admit_deadline(const struct ruler *ruler, uint64_t now_ms);

/* Remembers the take-over in meta; once after each. */
void ruler_admit_announce(struct ruler *ruler, struct call_list *out);

/* One of the answers that admission waits for has come. */
void ruler_admit_answered(struct ruler *ruler);

/* NEED: what Redis does not have is not stored. */
void ruler_admit_need(struct ruler *ruler, const struct reply *reply);

void ruler_admit_on_answer(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                           const struct reply *reply);
void ruler_admit_on_try(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                        const struct reply *reply);

#endif
