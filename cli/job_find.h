/* job_find.h - where a job is: running, waiting, delayed, dead, ended; or that nobody
 * knows.
 *
 * A job has no record of its own.  It is looked for in its result, the leases, `later`,
 * `dead` and its payload (docs/PROTOCOL.md), by several commands: one that moves
 * meanwhile may be seen where it just was. */
#ifndef CLI_JOB_FIND_H
#define CLI_JOB_FIND_H

#include "cli/store.h"

/* Adds what is known of the job to the object: `state`, then by state `result`,
 * `time_ms` (ms since 1970), or family, route, role, worker, session, slot, delivery; and
 * `past`, its history.  Without `state` nothing is known.  CLI_OK, or the code to leave
 * with. */
MUST_USE int job_find(struct store *store, const char *id, json_t *job);

/* Appends an object for each leased job of the live workers; `id` keeps one, NULL all. */
MUST_USE int job_find_running(struct store *store, const char *id, json_t *rows);

/* Says why nothing is known of it: it never was, or it ended and its result is gone.
 * CLI_NOT_FOUND, or the code of a lost connection. */
MUST_USE int job_find_refuse(struct store *store, const char *id);

#endif
