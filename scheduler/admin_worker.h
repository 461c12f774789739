/* admin_worker.h - GET /api/v1/workers: live sessions, and what each one drains now.
 *
 * Sessions and leases are read from Redis, in a few rounds for all of them; the answer
 * comes later, or as an error if Redis is away (admin_ask.h). */
#ifndef SCHEDULER_ADMIN_WORKER_H
#define SCHEDULER_ADMIN_WORKER_H

#include "scheduler/admin_state.h"

void admin_worker_serve(struct admin *admin, const struct http_server_request *request,
                        struct http_server_response *response);

#endif
