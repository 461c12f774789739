/* ruler_place.h - where one job goes: into a list, into `later`, or to the dead.
 *
 *   job ── prefix known? ── identified ── family, segments ──► batch: list or `later`
 *            │ no: it waits for it          │ bytes unknown: WAITS
 *            ▼ 10 s later                   ▼
 *          dead, like all that cannot be read or has no upstream
 *
 * Nothing is remembered here: a job that WAITS is placed from the start once more, when
 * what was asked for is there.  What it adds to the batch is the batch's. */
#ifndef SCHEDULER_RULER_PLACE_H
#define SCHEDULER_RULER_PLACE_H

#include "scheduler/ruler_state.h"

enum ruler_place {
	RULER_PLACE_TAKEN,
	RULER_PLACE_WAITS, /* something has to be asked of Redis first */
	RULER_PLACE_FULL,  /* send what is there, then come back */
	RULER_PLACE_LATER, /* an undecided job stays one: its prefix is still missing */
};

/* Adds a job, as it was read, to the batch.  `told`: the core knows of it already.
 * *ret_slim: nothing of it is left in the stream (written when TAKEN). */
enum ruler_place ruler_place_job(struct ruler *ruler, uint64_t now_ms,
                                 struct protocol_job_id id, bool told,
                                 struct ruler_job *job, bool *ret_slim,
                                 struct call_list *out);

/* A whole entry that must not be looked at. */
void ruler_place_dead(struct ruler *ruler, const struct ruler_entry *entry);

#endif
