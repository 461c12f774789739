/* health.h - two pages about the worker: /healthz for probes, /metrics for Prometheus.
 *
 * /healthz answers 200 while the worker has a session on a live connection, else 503 with
 * a word.  The names of the metrics are listed in docs/WORKER.md. */
#ifndef WORKER_HEALTH_H
#define WORKER_HEALTH_H

#include "common/io/http_server.h"
#include "worker/core/agent.h"
#include "worker/lag.h"

#define HEALTH_ERROR_SIZE HTTP_SERVER_MESSAGE_SIZE

struct health;

/* Both are borrowed until health_close. */
MUST_USE int health_open(uv_loop_t *loop, const char *address, const struct agent *agent,
                         const struct lag *lag, struct health **ret_health,
                         char ret_why[HEALTH_ERROR_SIZE]);

uint16_t health_port(const struct health *health);

/* Its memory goes when the loop has closed its handles.  Takes NULL. */
void health_close(struct health *health);

#endif
