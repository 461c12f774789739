/* ruler_intern.h - segments of a job: stored once, and only reused byte for byte.
 *
 *   node ── known? ── bytes at hand? ── equal ──► reuse
 *            │ no        │ no              │ other bytes: next salt, another id
 *            ▼           ▼ GET px:<id>     ▼
 *          X of this batch (pending until it was admitted)
 *
 * An id is a hash and no proof.  Bytes at hand are kept in ruler->segments, within
 * config.segments_size_max; those that are asked for are at most RULER_WANTED_MAX. */
#ifndef SCHEDULER_RULER_INTERN_H
#define SCHEDULER_RULER_INTERN_H

#include "scheduler/ruler_state.h"

/* Makes sure that each node of the job stands for its bytes: new segments go into the
 * batch; a place taken by other bytes gives the node another id.  ERR_AGAIN: the stored
 * bytes had to be asked for; ERR_FULL: send the batch first. */
MUST_USE int ruler_intern_job(struct ruler *ruler, struct ruler_job *job,
                              struct call_list *out);

/* The batch was admitted, or was not: its new segments are stored, or are not. */
void ruler_intern_stored(struct ruler *ruler);
void ruler_intern_undo(struct ruler *ruler);

/* The same bytes of a job whose turn is not yet: false if no more may be asked for.  So
 * much is asked for at once as fits well into what is kept for comparison. */
MUST_USE bool ruler_intern_ahead(struct ruler *ruler,
                                 const struct ruler_job_reader *reader,
                                 const struct ruler_job *job, struct call_list *out);

/* Answers that are under way will not come. */
void ruler_intern_forget(struct ruler_admit *admit);

void ruler_intern_on_segment(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                             const struct reply *reply);

#endif
