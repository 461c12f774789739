/* ruler_segments.h - bytes kept for comparison: an id is an index, never a proof.
 *
 * Whoever would reuse a stored segment compares its bytes first.  The latest ones stand
 * here, at most `size_max` bytes in all and at most `count_max` of them; the rest is
 * asked of Redis. */
#ifndef SCHEDULER_RULER_SEGMENTS_H
#define SCHEDULER_RULER_SEGMENTS_H

#include "scheduler/ruler_shelf.h"

struct ruler_segments {
	struct ruler_shelf shelf;
	struct span *values; /* by place; malloc()ed */
	size_t size, size_max;
};

MUST_USE int ruler_segments_open(struct ruler_segments *segments, uint32_t count_max,
                                 size_t size_max);
void ruler_segments_close(struct ruler_segments *segments);

/* The bytes, or a span with data NULL.  They live until the next put. */
struct span ruler_segments_find(struct ruler_segments *segments, struct id128 id);

/* Copies the value; replaces an older one.  What is larger than everything allowed, or
 * finds no memory, is simply not kept. */
void ruler_segments_put(struct ruler_segments *segments, struct id128 id,
                        struct span value);

#endif
