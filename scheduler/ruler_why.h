/* ruler_why.h - what stands between a family and its next start, in words.
 *
 *   "blocked_kind":"window", "blocked_on":"window (2 at once)", "blocked_until_ms":0,
 *   "advice":"more workers do not help; …", "why":"As many requests run as the account …"
 *
 * The kind is for programs, the rest for people: the page, `warmq why` and `warmq top`
 * all print these words, so they say the same.  docs/STATUS.md names the kinds. */
#ifndef SCHEDULER_RULER_WHY_H
#define SCHEDULER_RULER_WHY_H

#include "common/buffer.h"
#include "scheduler/ruler_state.h"

/* As members of an object that is open. */
void ruler_why_put(const struct ruler *ruler, const struct ruler_family *family,
                   const struct core_family_view *view, struct buffer *out);

/* Nothing asks its provider to keep the prefix of this lane. */
bool ruler_why_is_unmarked(const struct ruler_family *family,
                           const struct core_lane_view *leaf);

#endif
