/* metrics_pools.h - what is now: pools, accounts, lanes.  Part of metrics.c.
 *
 *   all families ── metrics_pools_look ──► sums by pool and reason ──► gauges
 *
 * A look walks all families that the core knows; its sums stay in the ruler (pools,
 * rooms) until the next one.  Writers append to `out` and leave errors to its owner. */
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
