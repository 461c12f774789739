/* ruler_session.h - the live workers: how many slots each pool has.
 *
 * `hello` and `bye` lines say it at once; every few seconds the list is compared with
 * ns:workers, since a line may be lost and a dead worker says nothing.  Slots of workers
 * that were told to claim nothing do not count: nothing can start in them. */
#ifndef SCHEDULER_RULER_SESSION_H
#define SCHEDULER_RULER_SESSION_H

#include "scheduler/ruler_state.h"

void ruler_session_clear(struct ruler *ruler);
void ruler_session_add(struct ruler *ruler, uint64_t now_ms, uint64_t nonce,
                       struct span pool, uint32_t slots);
void ruler_session_remove(struct ruler *ruler, uint64_t now_ms, uint64_t nonce);

/* A worker was told to run, to be quiet or to stop. */
void ruler_session_steer(struct ruler *ruler, uint64_t now_ms, uint64_t nonce,
                         struct span word, struct span who);

/* Emits the look at ns:workers, then one look per session not known yet. */
void ruler_session_look(struct ruler *ruler, struct call_list *out);
bool ruler_session_fetch(struct ruler *ruler, struct call_list *out);

void ruler_session_on_workers(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                              const struct reply *reply);
void ruler_session_on_leases(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                             const struct reply *reply);
void ruler_session_on_slots(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                            const struct reply *reply);

/* Tells the core the slots of pools that changed. */
void ruler_session_tell(struct ruler *ruler, uint64_t now_ms);

#endif
