/* grant.h - makes Redis look like the core's memory: one GRANT per lane at a time.
 *
 *   lane_touch ──► dirty ──► compare ──► GRANT (g -> g_new) ──► done: granted = wanted
 *                    ▲                        │ refused: take over the stored g ┐
 *                    └── changed meanwhile ◄──┴ unknown: say the same again ◄───┘
 *
 * g rises only where the protocol needs it: new credits or tickets, credits taken back,
 * an `until` that gets shorter, other marks.  So the g of a lease tells which marks its
 * request carried.  While a credit is out, nothing but its revocation raises g. */
#ifndef SCHEDULER_CORE_GRANT_H
#define SCHEDULER_CORE_GRANT_H

#include "common/base.h"
#include "scheduler/core/command.h"
#include "scheduler/core/event.h"

struct core;

/* Appends commands to `out` until it is full or nothing is dirty. */
void grant_emit(struct core *core, struct command_list *out);

void grant_take(struct core *core, const struct event_granted *granted);

/* An event of generation g was seen: a grant whose answer is missing was done. */
void grant_take_proof(struct core *core, uint32_t lane, uint64_t g);

/* Redis holds a family that should start: say again what its lanes are. */
void grant_repair(struct core *core, uint32_t family);

/* Lets a family run that the core has no room for. */
void grant_unheld(struct core *core, const struct event_admitted *admitted, uint64_t g);

/* True iff emission has something to say. */
bool grant_is_due(const struct core *core);

#endif
