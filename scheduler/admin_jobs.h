/* admin_jobs.h - jobs: those in one state, page by page; and the story of one.
 *
 *   GET /api/v1/jobs?state=dead|later|running           all, or those of &family=,
 * &route= GET /api/v1/jobs?state=waiting&family=<id>          in the order of their queue
 *   GET /api/v1/jobs?state=waiting&route=<name>         family by family
 *   GET /api/v1/jobs/<id>
 *
 * There is no record per job in Redis: where its id stands is where it is. */
#ifndef SCHEDULER_ADMIN_JOBS_H
#define SCHEDULER_ADMIN_JOBS_H

#include "scheduler/admin_state.h"

void admin_jobs_serve_list(struct admin *admin, const struct http_server_request *request,
                           struct http_server_response *response);
void admin_jobs_serve_one(struct admin *admin, const char *id,
                          const struct http_server_request *request,
                          struct http_server_response *response);

/* "1700-0~/40,900" -> "1700-0" */
struct span admin_jobs_id(struct span element);

/* The names of a family's lists, in the order in which they are popped. */
#define ADMIN_JOBS_LISTS 7
extern const char *const admin_jobs_lists[ADMIN_JOBS_LISTS];

/* True for what may be the id of a job. */
bool admin_jobs_is_id(const char *text);

#endif
