/* metrics_pools.h - what is now: pools, accounts, lanes.  Part of metrics.c. */
#ifndef SCHEDULER_METRICS_POOLS_H
#define SCHEDULER_METRICS_POOLS_H

#include "common/buffer.h"
#include "scheduler/ruler.h"

/* What waits and runs, and why the rest does not; only while it rules. */
void metrics_pools_now(struct ruler *ruler, uint64_t now_ms, struct buffer *out);

/* One look at all families.  Where there are many it is taken ahead of scrapes, every few
 * seconds, so that nobody waits for it. */
void metrics_pools_look(struct ruler *ruler, uint64_t now_ms);

/* Pace, limits and pressure of accounts. */
void metrics_pools_budgets(const struct ruler *ruler, uint64_t now_ms,
                           struct buffer *out);

#endif
