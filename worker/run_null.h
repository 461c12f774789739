/* run_null.h - an executor that does nothing: for benchmarks and trials.
 *
 * It fetches each job as the others do and answers it at once, with a result that names
 * the job and nothing else. */
#ifndef WORKER_RUN_NULL_H
#define WORKER_RUN_NULL_H

#include "worker/run.h"

extern const struct executor run_null_executor;

#endif
