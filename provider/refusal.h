/* refusal.h - how a request is told no: status, headers and body of each vendor.
 *
 * Inside provider/ only. */
#ifndef PROVIDER_REFUSAL_H
#define PROVIDER_REFUSAL_H

#include "provider/ask.h"
#include "provider/server.h"

/* request-id or x-request-id. */
void refusal_append_id(enum ask_dialect dialect, uint64_t id, struct buffer *headers);

/* The rate-limit headers of this account and class, as the knobs want them. */
void refusal_append_limits(struct server *server, enum ask_dialect dialect,
                           uint64_t account, uint32_t class, struct buffer *headers);

/* Answers a request that was not read. */
void refusal_answer(struct server *server, struct connection *connection,
                    enum ask_dialect dialect, const struct ask_refusal *refusal);

/* Answers a request the model has refused.  It may also be dropped, or left hanging. */
void refusal_answer_model(struct server *server, struct connection *connection,
                          enum ask_dialect dialect, const struct engine_request *request,
                          const struct engine_answer *model);

#endif
