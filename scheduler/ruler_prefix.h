/* ruler_prefix.h - named prefixes: bound when a job is admitted, not when it was sent.
 *
 * A content that came through the inbox is known at once and in order.  One that was SET
 * is asked of Redis once for each page of the inbox, by the job that needs it and for
 * those behind that one (ruler_scout.h).  A content that cannot be a prefix
 * does not replace the last good one: nobody's jobs die of the operator's mistake. */
#ifndef SCHEDULER_RULER_PREFIX_H
#define SCHEDULER_RULER_PREFIX_H

#include "scheduler/ruler_state.h"

/* 0 and the content (borrowed until the next call), ERR_AGAIN: ask first,
 * ERR_NOT_FOUND: there is none. */
MUST_USE int ruler_prefix_find(struct ruler *ruler, struct span name,
                               struct span *ret_content);
/* Why a prefix that was looked for is missing, as a sentence.  `is_early`: for a job
 * whose id is of the future, which could wait for it for ever, and so does not. */
const char *ruler_prefix_why(struct ruler *ruler, struct span name, bool is_early);

void ruler_prefix_ask(struct ruler *ruler, struct span name, struct call_list *out);

/* Asks ahead of its turn while admission waits for another one: for its size, and in a
 * later round, if `*room` has so many bytes, for its content.  One that is missing costs
 * no round of its own.  False: nothing more may be asked for now. */
MUST_USE bool ruler_prefix_ahead(struct ruler *ruler, struct span name, size_t *room,
                                 struct call_list *out);

/* Through the inbox. */
void ruler_prefix_put(struct ruler *ruler, struct span name, struct span content);

void ruler_prefix_on_answer(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                            const struct reply *reply);
void ruler_prefix_on_size(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                          const struct reply *reply);

#endif
