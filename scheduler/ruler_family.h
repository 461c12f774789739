/* ruler_family.h - what a new job changes in what is known of its family.
 *
 *   lineage     nodes, who shares them, which of them may hold the family back
 *   estimates   running means of tail and reserved output, and what of its prefix nothing
 *               is cached of; a job that differs more than four times carries its own
 *
 * Whenever the stored record would say something else, the family's F goes along. */
#ifndef SCHEDULER_RULER_FAMILY_H
#define SCHEDULER_RULER_FAMILY_H

#include "scheduler/ruler_state.h"

/* What a start of one of its jobs takes of an input limit: its tail, and of its prefix
 * what no gate covers.  Where a gate is closed, `claim` adds the prefix that is to be
 * written. */
uint32_t ruler_family_input(const struct ruler_family *family);

/* `fresh`: just made; `told`: this job was counted before (its batch goes out again).
 * Answers whether the job needs an estimate of its own. */
bool ruler_family_update(struct ruler *ruler, uint64_t now_ms, uint32_t place,
                         const struct ruler_job *job, bool fresh, bool told);

#endif
