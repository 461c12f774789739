/* admin_ledger.h - GET /api/v1/ledger: what was paid, and why; of all, or of ?route=.
 *
 * Money is dollars, exact to the nanodollar.  Hours begin at the full hour, UTC. */
#ifndef SCHEDULER_ADMIN_LEDGER_H
#define SCHEDULER_ADMIN_LEDGER_H

#include "scheduler/admin_state.h"
#include "scheduler/ledger/ledger_view.h"

void admin_ledger_serve(struct admin *admin, const struct http_server_request *request,
                        struct http_server_response *response);

/* A number of JSON: dollars. */
void admin_ledger_put_money(struct buffer *out, const char *name, uint64_t nanodollars);

/* The hour that began `back` hours before this one. */
struct ledger_sums admin_ledger_hour(const struct ledger *ledger, uint32_t route,
                                     uint64_t now_ms, uint32_t back);

#endif
