/* histogram.h - how long something took, by size: milliseconds into fixed buckets.
 *
 * The bounds go from 10 ms to an hour, dense where the life of a job is: a first byte, a
 * prefix that is being written, a hold of 30 s, a time-out of 10 minutes. */
#ifndef COMMON_HISTOGRAM_H
#define COMMON_HISTOGRAM_H

#include "common/base.h"

#define HISTOGRAM_BUCKETS 17

extern const uint64_t histogram_bounds_ms[HISTOGRAM_BUCKETS]; /* upper ends, included */
extern const char *const histogram_bounds_text[HISTOGRAM_BUCKETS]; /* in seconds */

struct histogram {
	uint64_t counts[HISTOGRAM_BUCKETS + 1]; /* the last one is above all bounds */
	uint64_t sum_ms;
};

void histogram_add(struct histogram *histogram, uint64_t ms);
uint64_t histogram_count(const struct histogram *histogram);

#endif
