/* spool.h - paid results that Redis could not take yet, on disk.
 *
 *   <state_dir>/worker.<n>/lock         held by the process that uses the directory
 *                          session      nonce of its session, for the next process
 *                          queue        whose results these are: namespace and Redis
 *                          <id>.result  one undelivered result: header line, then bytes
 *
 * Each process takes the first directory whose lock is free; what it finds there a dead
 * process left behind.  Results of another queue stay where they are: ours would refuse
 * them, and they would be gone.  Writing, syncing and deleting happen in libuv's threads:
 * a disk that hangs must not cost the leases of jobs that run. */
#ifndef WORKER_SPOOL_H
#define WORKER_SPOOL_H

#include "common/base.h"
#include "common/error.h"
#include "worker/report.h"

#include <uv.h>

#define SPOOL_ERROR_SIZE 512

struct spool;

/* The result of a job is on disk, or was not to be written: that is in the log. */
typedef void spool_written_fn(struct span id, bool is_written, void *data);

/* Opens and locks a directory below `state_dir`, for the results of `queue`, a line of
 * text, and says in the log what waits in the others.  `ret_nonce` is the session of the
 * predecessor, 0 if there is none.  ERR_IO: `reterr` says what to do.  ERR_MEMORY. */
MUST_USE int spool_create(uv_loop_t *loop, const char *state_dir, const char *queue,
                          struct spool **ret_spool, uint64_t *ret_nonce,
                          char reterr[SPOOL_ERROR_SIZE]);

/* Who hears of the end of each spool_write. */
void spool_listen(struct spool *spool, spool_written_fn *fn, void *data);

/* Gives the lock back.  No thread may be at work: see spool_is_busy.  Answers NULL; takes
 * NULL. */
struct spool *spool_destroy(struct spool *spool);

/* Remembers the session. */
void spool_note_session(struct spool *spool, uint64_t nonce);

/* Copies the report and writes it, which ends in the function of spool_listen, mostly on
 * a later turn.  What fails is logged. */
void spool_write(struct spool *spool, const struct report *report);

/* The result was delivered, or is not wanted any more. */
void spool_remove(struct spool *spool, const struct report *report);

/* The next result that a predecessor left, as a report of its own; NULL: no more. */
struct report *spool_next(struct spool *spool, struct report_list *list);

/* True while there may be a next one. */
bool spool_has_next(const struct spool *spool);

/* True while a thread is at work. */
bool spool_is_busy(const struct spool *spool);

const char *spool_dir(const struct spool *spool);

#endif
