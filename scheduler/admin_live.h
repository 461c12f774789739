/* admin_live.h - GET /api/v1/events: the overview, once a second, to all who look.
 *
 * It is taken once however many look, and not at all while nobody does.  Who has not read
 * the last one yet skips this one. */
#ifndef SCHEDULER_ADMIN_LIVE_H
#define SCHEDULER_ADMIN_LIVE_H

#include "scheduler/admin_state.h"

void admin_live_start(struct admin *admin);
void admin_live_serve(struct admin *admin, const struct http_server_request *request,
                      struct http_server_response *response);

#endif
