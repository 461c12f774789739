/* admin_guard.h - who may ask the pages, and who may act on them.
 *
 *   any request   its Host is an IP address, localhost, or one of scheduler.hosts: a page
 *                 of somebody else whose name suddenly leads here cannot read us
 *   an action     as well: not from another origin; JSON; the token in Authorization.
 *                 No cookie takes part, so a browser cannot be made to act by others
 *
 * Health and metrics are for machines that know us by any name: they are not guarded. */
#ifndef SCHEDULER_ADMIN_GUARD_H
#define SCHEDULER_ADMIN_GUARD_H

#include "scheduler/admin_state.h"

/* Reads the token as the configuration says; without one, actions are refused.  Logs a
 * failure. */
MUST_USE int admin_guard_open(struct admin *admin);

/* True, or `response` says what is wrong. */
bool admin_guard_host(const struct admin *admin,
                      const struct http_server_request *request,
                      struct http_server_response *response);
bool admin_guard_action(const struct admin *admin,
                        const struct http_server_request *request,
                        struct http_server_response *response);

/* Whether the request carries the token. */
bool admin_guard_has_token(const struct admin *admin,
                           const struct http_server_request *request);

#endif
