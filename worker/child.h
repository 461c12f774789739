/* child.h - programs of the user's as processes that cannot outlive their worker.
 *
 *   child_start ─ fork ─► its own group ─► tells the guard ─► exec ─► runs ─► on_exit
 *                          └ the pipe to the guard closes with the exec, not before
 *
 * So there is no instant in which it runs and the guard could see the end of the worker
 * without having heard of it: not even if the worker is killed between fork and exec.
 *
 * It inherits three pipes, the environment that it is given, default signals and the
 * limit of files that the worker was started with; no other descriptor.
 *
 * What a program leaves behind in its group, such as the child of a shell that a signal
 * ended, would run beside the next try of the same job: child_release ends it.
 *
 * A child lies inside its owner, who may free it once it was released; the list lies
 * inside the worker, until its loop is closed. */
#ifndef WORKER_CHILD_H
#define WORKER_CHILD_H

#include "common/base.h"
#include "common/error.h"
#include "worker/guard.h"

#include <uv.h>

struct child {
	struct child_list *list;
	struct child *previous, *next;
	void (*on_exit)(struct child *child, int status); /* as of waitpid(2) */
	pid_t pid;                                        /* and its group's */
	int in, out, err; /* our ends of its pipes: the owner's to close */
};

struct child_list { /* of those that run */
	struct guard *guard;
	uint64_t files_max; /* the soft limit of open files they get; 0: as ours is */
	uv_signal_t signal;
	struct child *first;
	bool is_closing;
};

/* From here on SIGCHLD is heard in the loop.  The guard may be none. */
void child_list_open(struct child_list *list, uv_loop_t *loop, struct guard *guard,
                     uint64_t files_max);

/* Starts none any more; its handle closes behind the end of the last one. */
void child_list_close(struct child_list *list);

/* Returns when the program runs.  `words`: it, looked for in PATH, and its arguments;
 * these and `environment` end in NULL.  ERR_IO: it cannot be run, and errno says why. */
MUST_USE int child_start(struct child_list *list, char *const *words,
                         char *const *environment, struct child *child);

/* Kills what is left of its group.  Once, behind on_exit; soon: the number of a group
 * that is empty may be given to another one. */
void child_release(struct child *child);

#endif
