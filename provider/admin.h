/* admin.h - the doors for people and tests: /stats, /knobs, /reset, /healthz.
 *
 *   GET  /stats?prefixes=20   the books: writes, duplicates, reads, tokens, concurrency
 *   GET  /knobs               all knobs
 *   POST /knobs               sets those in the body, answers all
 *   POST /reset               forgets entries and counts; knobs stay
 *   GET  /healthz             {"ok":true} */
#ifndef PROVIDER_ADMIN_H
#define PROVIDER_ADMIN_H

#include "provider/server.h"

void admin_stats(struct server *server, struct connection *connection);
void admin_get_knobs(struct server *server, struct connection *connection);
void admin_set_knobs(struct server *server, struct connection *connection);
void admin_reset(struct server *server, struct connection *connection);
void admin_health(struct server *server, struct connection *connection);

#endif
