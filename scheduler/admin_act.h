/* admin_act.h - what may be done from a page: POSTs with a JSON body and the token.
 *
 *   /api/v1/check                         nothing: says whether the token is right
 *   /api/v1/hold                          {"on": true}   holding, for everybody, or
 *                                         {"on": false, "route": "..."}   for one route
 *   /api/v1/unpark                        {"budget": "..."}   an account starts again
 *   /api/v1/families/<id>/pause, /resume  nothing of it starts, or again
 *   /api/v1/families/<id>/warm            its prefix is written ahead of its jobs
 *   /api/v1/families/<id>/cancel          ends its waiting jobs; those that run go on
 *   /api/v1/workers/<session>/quiet, /resume   claims nothing more, or again
 *   /api/v1/workers/<session>/stop             finishes what it runs and ends
 *   /api/v1/jobs/<id>/cancel, /retry      ends one; queues a dead one again
 *   /api/v1/dead/retry                    {"ids": [...]} or {"all": true}
 *   /api/v1/dead/drop                     likewise; forgets them for good
 *
 * Each is one or more calls of Redis's functions, so that it holds without us. */
#ifndef SCHEDULER_ADMIN_ACT_H
#define SCHEDULER_ADMIN_ACT_H

#include "scheduler/admin_state.h"

/* The request has passed admin_guard_action. */
void admin_act_serve(struct admin *admin, const struct http_server_request *request,
                     struct http_server_response *response);

#endif
