/* health.h - two pages about the worker: /healthz for probes, /metrics for Prometheus.
 *
 * /healthz answers 200 while the worker has a session on a live connection, else 503 with
 * a word.  The names of the metrics are listed in docs/METRICS.md. */
#ifndef WORKER_HEALTH_H
#define WORKER_HEALTH_H

#include "common/io/http_server.h"
#include "worker/core/agent.h"
#include "worker/lag.h"
#include "worker/measure.h"

struct health;

/* What the pages tell of; all of it is borrowed until health_close. */
struct health_sources {
	const char *version, *pool, *label;
	const struct agent *agent;
	const struct lag *lag;
	const struct measure *measure;
	const struct report_list *reports;
};

/* NULL if `address` is "off", or if it cannot be: a page that nobody can reach is no
 * reason to run no jobs.  The log says which port it is. */
struct health *health_open(uv_loop_t *loop, const char *address,
                           const struct health_sources *sources);

/* Its memory goes when the loop has closed its handles.  Takes NULL. */
void health_close(struct health *health);

#endif
