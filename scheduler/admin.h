/* admin.h - the scheduler's HTTP pages: health, metrics, the dashboard and its API.
 *
 *   GET  /                       the dashboard (scheduler/dashboard), built in
 *   GET  /healthz /readyz        200 while it lives; while it rules or stands by
 *   GET  /metrics                Prometheus text
 *   GET  /api/v1/…               everything the dashboard shows
 *   POST /api/v1/…               everything it does: needs the token
 *
 *   admin_guard    who may ask: Host, Origin, token
 *   admin_api      what the ruler's memory answers at once, from the board
 *   admin_ledger   what was paid, and why
 *   admin_ask      what Redis has to be asked for, on a connection of its own
 *   admin_jobs     jobs, dead letters;  admin_worker, admin_prefix, admin_drift
 *   admin_act      actions
 *   admin_live     the stream that feeds open pages, once a second for all of them
 *
 * docs/STATUS.md names every field, docs/openapi.json every path.  Loopback by default:
 * whoever can connect may read. */
#ifndef SCHEDULER_ADMIN_H
#define SCHEDULER_ADMIN_H

#include "common/base.h"
#include "common/error.h"
#include "common/io/config.h"
#include "common/io/redis_url.h"
#include "scheduler/ruler.h"

#include <uv.h>

#define ADMIN_LAG_MS_MAX 30000 /* DATAPATH 25: above it /readyz is red */

struct admin;

/* All but `url` outlives the pages. */
struct admin_options {
	const struct config *config;
	struct redis_url url;
	struct ruler *ruler;
	const uint64_t *now_ms; /* read at each request */
};

/* scheduler.listen "off" opens nothing and answers NULL.  A failure was logged when it is
 * answered. */
MUST_USE int admin_open(uv_loop_t *loop, const struct admin_options *options,
                        struct admin **ret_admin);
struct admin *admin_close(struct admin *admin); /* answers NULL, takes NULL */

/* The pages show it among what happened.  Takes NULL. */
void admin_note(struct admin *admin, const struct ruler_note *note);

#endif
