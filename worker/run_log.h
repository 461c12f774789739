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

#define RUN_LOG_WHO_MAX    6
#define RUN_LOG_FIELDS_MAX 4

/* Who it is about: up to RUN_LOG_WHO_MAX fields, behind the first one, which log_write
 * skips.  Answers where the next field goes.  `run` may be NULL or free. */
size_t run_log_who(const struct run *run, struct log_field *ret_fields);

/* A line about a run: who it is about, then those of the fields that this does not say
 * already.  `fields[0]` is skipped; at most RUN_LOG_FIELDS_MAX behind it. */
void run_log_write(enum log_level level, struct log_site *site, const struct run *run,
                   const char *event, const struct log_field *fields,
                   size_t fields_count);

#define RUN_LOG_AT(level, run, event, ...)                                       \
	do {                                                                     \
		static struct log_site log_site_;                                \
		const struct log_field log_fields_[] = { { 0 }, ##__VA_ARGS__ }; \
		run_log_write(level, &log_site_, run, event, log_fields_,        \
		              ARRAY_SIZE(log_fields_));                          \
	} while (0)

#define run_log_info(run, event, ...) \
	RUN_LOG_AT(LOG_LEVEL_INFO, run, event, ##__VA_ARGS__)
#define run_log_warning(run, event, ...) \
	RUN_LOG_AT(LOG_LEVEL_WARNING, run, event, ##__VA_ARGS__)
#define run_log_error(run, event, ...) \
	RUN_LOG_AT(LOG_LEVEL_ERROR, run, event, ##__VA_ARGS__)

/* The run has ended; its outcome stands in it. */
void run_log_end(const struct run *run);

#endif
