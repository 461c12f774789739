/* admin_jumps.h - since when a route is dearer, and what came then.
 *
 *   dollars an hour        ┌─────────── to ──────────┐
 *   ───── from ────────────┘ at                until └──────
 *                     v2 came: a date in its system part, byte 1,234
 *
 * An hour is dearer if it costs half as much again as the day before it, as the same hour
 * of that day, and five cents more.  A jump goes on until an hour costs less again. */
#ifndef SCHEDULER_ADMIN_JUMPS_H
#define SCHEDULER_ADMIN_JUMPS_H

#include "scheduler/admin_state.h"

/* Members of a route: "jump", if it is dearer now, and "jumps" of the week, the newest
 * first, each with the version that came within an hour of it. */
void admin_jumps_put(const struct admin *admin, uint32_t route, uint64_t now_ms,
                     struct buffer *out);

#endif
