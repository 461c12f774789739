/* admin_api.h - pages that are answered at once, from the ruler's memory.
 *
 * They ask nothing of Redis, so they answer while it is away: with what was true last,
 * and `phase` says so.  Each fills `response` with one JSON object (docs/openapi.json),
 * or with an error and its status. Texts are borrowed from the ruler and copied into the
 * body before these return. */
#ifndef SCHEDULER_ADMIN_API_H
#define SCHEDULER_ADMIN_API_H

#include "scheduler/admin_state.h"

void admin_api_serve_overview(struct admin *admin,
                              const struct http_server_request *request,
                              struct http_server_response *response);
void admin_api_serve_session(struct admin *admin,
                             const struct http_server_request *request,
                             struct http_server_response *response);
void admin_api_serve_families(struct admin *admin,
                              const struct http_server_request *request,
                              struct http_server_response *response);
void admin_api_serve_family(struct admin *admin, struct id128 id,
                            const struct http_server_request *request,
                            struct http_server_response *response);
void admin_api_serve_writers(struct admin *admin, struct id128 id,
                             struct http_server_response *response);
void admin_api_serve_routes(struct admin *admin,
                            const struct http_server_request *request,
                            struct http_server_response *response);
void admin_api_serve_places(struct admin *admin,
                            const struct http_server_request *request,
                            struct http_server_response *response);
void admin_api_serve_family_places(struct admin *admin, struct id128 id,
                                   struct http_server_response *response);
void admin_api_serve_history(struct admin *admin,
                             const struct http_server_request *request,
                             struct http_server_response *response);
void admin_api_serve_notes(struct admin *admin, const struct http_server_request *request,
                           struct http_server_response *response);

/* The overview as an object: also what the stream sends. */
void admin_api_put_overview(struct admin *admin, struct buffer *out);

#endif
