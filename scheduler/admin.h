/* admin.h - the scheduler's HTTP pages: health, metrics, and what it says of families.
 *
 *   GET /healthz                 200 while the process lives
 *   GET /readyz                  200 if it rules or stands by, and the inbox does not lag
 *   GET /metrics                 Prometheus text
 *   GET /api/v1/families         the status as JSON; ?max=N families
 *   GET /api/v1/families/<id>    one of them
 *
 * Loopback by default: whoever can connect may read. */
#ifndef SCHEDULER_ADMIN_H
#define SCHEDULER_ADMIN_H

#include "common/base.h"
#include "common/error.h"
#include "scheduler/ruler.h"

#include <uv.h>

#define ADMIN_LAG_MS_MAX 30000 /* DATAPATH 25: above it /readyz is red */

struct admin;

/* `address` "off" opens nothing.  `now_ms` is read at each request.  A failure was logged
 * when it is answered. */
MUST_USE int admin_open(uv_loop_t *loop, const char *address, struct ruler *ruler,
                        const uint64_t *now_ms, struct admin **ret_admin);
struct admin *admin_close(struct admin *admin); /* answers NULL, takes NULL */

#endif
