/* admin_use.h - how many jobs of each busy family run, as their lanes in Redis say.
 *
 * The core counts what waits and runs together: plain starts are told to nobody.  One
 * HMGET a second for all busy families, while somebody looks, makes them two numbers. */
#ifndef SCHEDULER_ADMIN_USE_H
#define SCHEDULER_ADMIN_USE_H

#include "scheduler/admin_state.h"

/* Asks, and calls admin->on_use when the board knows, or at once if there is nothing to
 * ask or nobody to be asked. */
void admin_use_look(struct admin *admin);

#endif
