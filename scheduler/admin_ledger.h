/* admin_ledger.h - GET /api/v1/ledger: what was paid, and why; of all, or of ?route=.
 *
 * Money is dollars, exact to the nanodollar.  Hours begin at the full hour, UTC. */
#ifndef SCHEDULER_ADMIN_LEDGER_H
#define SCHEDULER_ADMIN_LEDGER_H

#include "scheduler/admin_state.h"

void admin_ledger_serve(struct admin *admin, const struct http_server_request *request,
                        struct http_server_response *response);

#endif
