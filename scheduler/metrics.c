#include "scheduler/metrics.h"

#include "scheduler/ruler_state.h"
#include "scheduler/ruler_view.h"

static void
put_metric(struct buffer *out, const char *name, const char *type, const char *help,
           uint64_t value)
{
	(void)buffer_append_format(out, "# HELP %s %s\n# TYPE %s %s\n%s %llu\n", name,
	                           help, name, type, name, (unsigned long long)value);
}

/* A label's value: names of upstreams and classes need no escapes. */
static void
put_tokens(const struct ruler *ruler, struct buffer *out)
{
	(void)buffer_append_text(
		out, "# HELP warmq_tokens_total Tokens of jobs that are done, by kind.\n"
		     "# TYPE warmq_tokens_total counter\n");
	for (uint32_t i = 0; i < ruler->known.budgets_count; i++) {
		const struct ruler_budget_name *it = &ruler->known.budgets[i];
		const struct {
			const char *kind;
			uint64_t value;
		} kinds[] = {
			{ "read", it->sum.read },
			{ "written", it->sum.written },
			{ "uncached", it->sum.uncached },
			{ "output", it->sum.output },
		};

		for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
			(void)buffer_append_format(
				out,
				"warmq_tokens_total{budget=\"%s\",kind=\"%s\"} %llu\n",
				it->name, kinds[k].kind,
				(unsigned long long)kinds[k].value);
	}
}

void
metrics_write(struct ruler *ruler, uint64_t now_ms, struct buffer *out)
{
	struct ruler_health health;

	ruler_view_count(ruler);
	health = ruler_view_health(ruler, now_ms);
	put_metric(out, "warmq_ruling", "gauge", "1 if this process rules.",
	           health.phase == RULER_RULING);
	put_metric(out, "warmq_backlog", "gauge", "Jobs that wait, held ones included.",
	           health.backlog);
	put_metric(out, "warmq_runnable", "gauge",
	           "Waiting jobs that a free slot could start now: scale on this.",
	           health.runnable);
	put_metric(out, "warmq_in_flight", "gauge", "Jobs that run.", health.in_flight);
	put_metric(out, "warmq_families", "gauge", "Families that are remembered.",
	           health.families);
	put_metric(out, "warmq_inbox_lag_ms", "gauge",
	           "Age of the oldest entry that is not yet admitted.",
	           health.inbox_lag_ms);
	put_metric(out, "warmq_admitted_total", "counter", "Jobs admitted.",
	           health.admitted);
	put_metric(out, "warmq_done_total", "counter", "Jobs done, with usage.",
	           health.done);
	put_metric(out, "warmq_dead_total", "counter", "Jobs that ended dead.",
	           health.dead);
	put_metric(out, "warmq_corrections_total", "counter",
	           "Numbers that an audit had to correct: each is a bug.", health.drift);
	put_tokens(ruler, out);
}
