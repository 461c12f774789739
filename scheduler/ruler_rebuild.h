/* ruler_rebuild.h - the memory of a ruler, read from Redis.
 *
 *   meta ─► ledger ─► audit ─► families ◄─► moves ─► lanes ─► sessions, leases ─► budgets
 *                                 │ those that the configuration has elsewhere, page by
 *                                 │ page: whether or not there is room to remember them
 *                                 ▼                                            ─► ruling
 *
 * Grows with families and workers, never with jobs: no list is read. */
#ifndef SCHEDULER_RULER_REBUILD_H
#define SCHEDULER_RULER_REBUILD_H

#include "scheduler/ruler_state.h"

void ruler_rebuild_start(struct ruler *ruler, uint64_t now_ms);
void ruler_rebuild_step(struct ruler *ruler, uint64_t now_ms, struct call_list *out);
bool ruler_rebuild_is_due(const struct ruler *ruler);

/* The sessions are complete. */
void ruler_rebuild_sessions_done(struct ruler *ruler);
void ruler_rebuild_routes_done(struct ruler *ruler);
void ruler_rebuild_audited(struct ruler *ruler, bool is_over);

void ruler_rebuild_on_ledger(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                             const struct reply *reply);
void ruler_rebuild_on_recent(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                             const struct reply *reply);
void ruler_rebuild_on_meta(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                           const struct reply *reply);
void ruler_rebuild_on_families(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                               const struct reply *reply);
void ruler_rebuild_on_moved(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                            const struct reply *reply);
void ruler_rebuild_on_lanes(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                            const struct reply *reply);
void ruler_rebuild_on_budget(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                             const struct reply *reply);

#endif
