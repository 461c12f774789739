/* exchange.h - one request to the model, from its last byte in to its last byte out.
 *
 *   read, judged ──► waiting ──► answering ──► over
 *        │              │ first byte due, │ pieces due, one by one
 *        │              │ no keep_waiting │
 *        └── refused    └── client gone ──┴──► the model is told, the rest is dropped
 *
 * An exchange owns its timer and its script and frees itself when the timer has closed.
 * It outlives its connection if the client goes and `finish_aborted` says that the model
 * goes on. */
#ifndef PROVIDER_EXCHANGE_H
#define PROVIDER_EXCHANGE_H

#include "provider/ask.h"
#include "provider/server.h"

/* Answers the request of this connection, now or in time. */
void exchange_begin(struct server *server, struct connection *connection,
                    enum ask_dialect dialect);

/* Answers how many tokens the request has, at once. */
void exchange_count(struct server *server, struct connection *connection);

/* Begins the answers that were kept waiting: their own time counts from now.  To be
 * called when the knobs have changed; while they say keep_waiting, it has no effect. */
void exchange_go_on(struct server *server);

/* Ends what goes on without a client.  Clients are closed before. */
void exchange_end_all(struct server *server);

#endif
