/* admin_prefix.h - GET /api/v1/families/<id>/prefix: its segments, root to leaf.
 *
 * Their text is answered only if scheduler.reveal is set and the token is given. */
#ifndef SCHEDULER_ADMIN_PREFIX_H
#define SCHEDULER_ADMIN_PREFIX_H

#include "scheduler/admin_state.h"

void admin_prefix_serve(struct admin *admin, struct id128 id,
                        const struct http_server_request *request,
                        struct http_server_response *response);

#endif
