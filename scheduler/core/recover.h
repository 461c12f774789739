/* recover.h - from what Redis holds to the core's memory: events, like everything else.
 *
 *   RECOVERED_FAMILY*  RECOVERED_LANE*  RECOVERED_LEASE*  RECOVERED_BUDGET*  _END
 *
 * Until the end nothing settles, no timer runs and no command is made; then all lanes are
 * compared with what they should be, and what differs is granted.  What had been learned
 * of a model (lag, trust) is learned again. */
#ifndef SCHEDULER_CORE_RECOVER_H
#define SCHEDULER_CORE_RECOVER_H

#include "scheduler/core/event.h"

struct core;

void recover_family(struct core *core, const struct event_admitted *admitted);
void recover_lane(struct core *core, const struct event_lane *event);
void recover_lease(struct core *core, const struct event_start *lease);
void recover_end(struct core *core);

#endif
