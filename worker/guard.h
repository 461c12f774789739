/* guard.h - ends the handlers of a worker that could not do so himself.
 *
 *   worker ─┬─ pipe: -group, it has ended ──────►┐
 *           ├─► child ─ pipe: +group, then exec ─┼─► guard, a small process that is
 *           └─ killed, crashed: end of file ────►┘   forked first: SIGTERM to each group
 *                                                    that is left, then SIGKILL
 *
 * Without it a handler would go on beside the next run of the same job, and its answer
 * would go nowhere.  The guard holds nothing but the pipe's end: no socket, no log, no
 * key; it ignores the signals that end its worker.  Fork it after keys were taken and
 * before threads exist.
 *
 * The pipe ends when the last of its writers has closed it.  A child is one until it
 * execs, and has joined by then: so no handler ever runs of which the guard, at the end
 * of the pipe, has not heard. */
#ifndef WORKER_GUARD_H
#define WORKER_GUARD_H

#include "common/base.h"
#include "common/error.h"

#include <sys/types.h>

#define GUARD_GROUPS_MAX 8192 /* twice the slots a worker may have */
#define GUARD_GRACE_MS   5000

struct guard {
	pid_t pid;
	int fd; /* -1: there is none */
};

/* ERR_IO: no pipe or no process; handlers run all the same, unguarded. */
MUST_USE int guard_open(struct guard *ret_guard);

/* Ends it; what it still guards ends as well.  Takes a guard that was never opened. */
void guard_close(struct guard *guard);

/* In a child that leads a group of its own, between fork and exec. */
void guard_join(const struct guard *guard);

/* `group`: one of which nothing is left. */
void guard_remove(struct guard *guard, pid_t group);

#endif
