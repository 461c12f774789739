/* ruler_core.h - the core and its two queues: events in, commands out.
 *
 * Answers of Redis only enqueue; steps tell the core, in order, as long as its commands
 * find room.  While the memory is being rebuilt the core emits nothing, so then it is
 * told at once. */
#ifndef SCHEDULER_RULER_CORE_H
#define SCHEDULER_RULER_CORE_H

#include "scheduler/ruler_state.h"

/* The first core; and one step of it, which everybody takes by this door. */
void ruler_core_begin(struct ruler *ruler);
void ruler_core_step(struct ruler *ruler, uint64_t now_ms, const struct event *event);

/* A new core, told nothing yet but to recover. */
void ruler_core_restart(struct ruler *ruler);

void ruler_core_tell(struct ruler *ruler, uint64_t now_ms, const struct event *event);

/* Obeys the commands of the core's last step. */
void ruler_core_take(struct ruler *ruler, uint64_t now_ms);

/* How many more events the queue takes. */
uint32_t ruler_core_room(const struct ruler *ruler);

/* Names that the core has to know first; they answer places in ruler->known. */
uint32_t ruler_core_pool(struct ruler *ruler, uint64_t now_ms, struct span name);
uint32_t ruler_core_budget(struct ruler *ruler, uint64_t now_ms, size_t upstream,
                           struct span class_name);
uint32_t ruler_core_budget_named(struct ruler *ruler, uint64_t now_ms, struct span name);
uint32_t ruler_core_model(struct ruler *ruler, uint64_t now_ms, size_t upstream,
                          size_t model);

/* Tells it what waits, at most `max` events, and lets it act on the time. */
void ruler_core_run(struct ruler *ruler, uint64_t now_ms, uint32_t max);
uint64_t ruler_core_deadline(const struct ruler *ruler, uint64_t now_ms);

#endif
