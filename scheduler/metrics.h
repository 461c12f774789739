/* metrics.h - what the scheduler tells Prometheus.
 *
 * One text per scrape, written from the ruler's memory: nothing is asked of Redis, and
 * the number of series does not grow with families.  docs/METRICS.md names every metric,
 * what it means and what to do about it. */
#ifndef SCHEDULER_METRICS_H
#define SCHEDULER_METRICS_H

#include "common/buffer.h"
#include "scheduler/ruler.h"

/* `version` of the program. */
void metrics_write(struct ruler *ruler, uint64_t now_ms, const char *version,
                   struct buffer *out);

#endif
