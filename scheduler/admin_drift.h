/* admin_drift.h - GET /api/v1/drift?route=: why the last two versions of a route are two.
 *
 * Their stored parts are compared byte by byte, as `warmq explain a.json b.json` does.
 * Both sides of the difference are prompts: they are shown as the text of prefixes is. */
#ifndef SCHEDULER_ADMIN_DRIFT_H
#define SCHEDULER_ADMIN_DRIFT_H

#include "scheduler/admin_state.h"

void admin_drift_serve(struct admin *admin, const struct http_server_request *request,
                       struct http_server_response *response);

#endif
