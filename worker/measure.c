#include "worker/measure.h"

#include "common/prometheus.h"

static const char *const end_words[AGENT_END_COUNT] = {
	[AGENT_DONE] = "done",       [AGENT_RETRY] = "failed",
	[AGENT_DEFER] = "deferred",  [AGENT_FATAL] = "refused",
	[AGENT_MISSING] = "missing", [AGENT_UNSENT] = "unsent",
	[AGENT_UNFETCHED] = "lost",  [AGENT_STOPPED] = "stopped",
};

void
measure_init(struct measure *measure, const struct upstream_list *upstreams)
{
	*measure = (struct measure){ .upstreams = upstreams };
}

static struct measure_upstream *
place_of(struct measure *measure, struct span upstream)
{
	size_t count = MIN(measure->upstreams->count, MEASURE_UPSTREAMS_MAX), i = 0;

	while (i < count &&
	       !span_equals(upstream,
	                    span_from(measure->upstreams->upstreams[i].config->name)))
		i++;
	return &measure->by_upstream[i < count ? i : MEASURE_UPSTREAMS_MAX];
}

void
measure_run(struct measure *measure, const struct run *run)
{
	struct measure_upstream *place = place_of(measure, run->envelope.upstream);
	uint64_t now_ms = run->context->now_ms(run->context->data);

	measure->ends[run->outcome.end]++;
	if (run->first_ms > 0)
		histogram_add(&place->first, run->first_ms - run->sent_ms);
	if (run->sent_ms > 0)
		histogram_add(&place->total, now_ms - run->sent_ms);
}

static struct span
name_of(const struct measure *measure, size_t place)
{
	return place < MEASURE_UPSTREAMS_MAX
	               ? span_from(measure->upstreams->upstreams[place].config->name)
	               : SPAN("other");
}

static void
put_times(const struct measure *measure, const char *name, const char *help, bool total,
          struct buffer *out)
{
	size_t count = MIN(measure->upstreams->count, MEASURE_UPSTREAMS_MAX);

	prometheus_head(out, name, "histogram", help);
	for (size_t i = 0; i <= MEASURE_UPSTREAMS_MAX; i++) {
		const struct measure_upstream *it = &measure->by_upstream[i];
		const struct histogram *times = total ? &it->total : &it->first;

		if (i < count || (i == MEASURE_UPSTREAMS_MAX && histogram_count(times)))
			prometheus_histogram(
				out, name,
				PROMETHEUS_LABELS({ "upstream", name_of(measure, i) }),
				times);
	}
}

void
measure_write(const struct measure *measure, struct buffer *out)
{
	prometheus_head(out, "warmq_worker_runs_total", "counter",
	                "Runs that have ended, by how.");
	for (size_t i = 0; i < AGENT_END_COUNT; i++)
		prometheus_sample(
			out, "warmq_worker_runs_total",
			PROMETHEUS_LABELS({ "outcome", span_from(end_words[i]) }),
			measure->ends[i]);
	put_times(measure, "warmq_worker_first_event_seconds",
	          "From when a request left to the first event of its answer.", false,
	          out);
	put_times(measure, "warmq_worker_run_seconds",
	          "From when a request left until its run had ended.", true, out);
}
