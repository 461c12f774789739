/* ruler_scout.h - looks ahead in the inbox while admission waits for an answer.
 *
 * Where more prefixes are alive than are kept for comparison (ruler_segments.h), every
 * other job wants bytes that Redis has; where each job names another prefix, each wants
 * one that has not been looked for yet (ruler_prefix.h).  To ask for them one by one
 * would cost each job a round trip and an admission of its own; so whenever one has to be
 * asked for, those of the jobs behind it are asked for as well.  What is learned here is
 * forgotten: the jobs are read again when their turn comes. */
#ifndef SCHEDULER_RULER_SCOUT_H
#define SCHEDULER_RULER_SCOUT_H

#include "scheduler/ruler_state.h"

/* Admission waits for what the job needs that stands at admit.entry and admit.job of the
 * page. */
void ruler_scout(struct ruler *ruler, uint64_t now_ms, const struct ruler_page *page,
                 struct call_list *out);

#endif
