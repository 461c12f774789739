/* measure.h - what became of this worker's runs, in numbers for /metrics.
 *
 * By upstream of the configuration; jobs that name another one, and handlers, share the
 * last place. */
#ifndef WORKER_MEASURE_H
#define WORKER_MEASURE_H

#include "common/buffer.h"
#include "common/histogram.h"
#include "worker/run.h"

#define MEASURE_UPSTREAMS_MAX 32

struct measure_upstream {
	struct histogram first, total; /* from sending to the first event, to the end */
};

struct measure {
	const struct upstream_list *upstreams;
	uint64_t ends[AGENT_END_COUNT];
	struct measure_upstream by_upstream[MEASURE_UPSTREAMS_MAX + 1];
};

void measure_init(struct measure *measure, const struct upstream_list *upstreams);

/* A run has ended; its outcome stands in it. */
void measure_run(struct measure *measure, const struct run *run);

/* Prometheus text. */
void measure_write(const struct measure *measure, struct buffer *out);

#endif
