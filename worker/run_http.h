/* run_http.h - the built-in executor: a request to a provider, and what its answer means.
 *
 *   segments + own part ─ splice ─► POST ─┬─► events ─ assemble ─► in the job's own shape
 *                                         └─► 4xx, 5xx, broken ─► retry, defer, fatal
 *
 * A request that is refused for something WarmQ added is sent once more without it, and
 * the addition is left out for that model from then on. */
#ifndef WORKER_RUN_HTTP_H
#define WORKER_RUN_HTTP_H

#include "worker/run.h"

extern const struct executor run_http_executor;

#endif
