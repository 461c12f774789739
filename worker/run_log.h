/* run_log.h - lines of the log about one run: which job, whose trace, and what now.
 *
 *   level=warning event="a run failed; the job is tried again" job=1764450000000-0
 *   route=triage upstream=claude reason=http_500 text="…" attempt=1 of=3 ms=212
 *   traceparent=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
 *
 * A job that is done is told at level debug only. */
#ifndef WORKER_RUN_LOG_H
#define WORKER_RUN_LOG_H

#include "common/io/log.h"
#include "worker/run.h"

#define RUN_LOG_WHO_MAX 6

/* Who it is about: up to RUN_LOG_WHO_MAX fields, behind the first one, which log_write
 * skips.  Answers where the next field goes.  `run` may be NULL or free. */
size_t run_log_who(const struct run *run, struct log_field *ret_fields);

/* The run has ended; its outcome stands in it. */
void run_log_end(const struct run *run);

#endif
