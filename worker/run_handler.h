/* run_handler.h - the executor that runs a program of the user's, one process per job.
 *
 *   stdin   the job's body, whole; then end of file
 *   stdout  the result: JSON, or text
 *   stderr  into the worker's log; its last line explains a failure
 *   exit    0 done · 75 (EX_TEMPFAIL) try again · else the job is dead
 *
 * The environment says what is beside the body: WARMQ_JOB, WARMQ_ROUTE, WARMQ_UPSTREAM,
 * WARMQ_REF, WARMQ_HANDLER, WARMQ_ATTEMPT, TRACEPARENT.  Provider keys that the
 * configuration names are not in it.
 *
 * A process that outlives the job's time-out, or whose job is cancelled, gets SIGTERM,
 * and SIGKILL after HANDLER_GRACE_MS; both go to its whole process group.  If the worker
 * itself is killed, its guard does the same (worker/guard.h). */
#ifndef WORKER_RUN_HANDLER_H
#define WORKER_RUN_HANDLER_H

#include "worker/run.h"

#define HANDLER_GRACE_MS 5000

extern const struct executor run_handler_executor;

#endif
