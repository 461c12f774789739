#include "scheduler/metrics_pools.h"

#include "common/prometheus.h"
#include "scheduler/ruler_state.h"

#define LOOK_FAMILIES 20000 /* so many are looked at for each scrape */
#define LOOK_MS       6000  /* a look at more of them is good for so long */
#define NAME(text)    span_from(text)

/* ---- pools ----------------------------------------------------------------------- */

static struct span
pool_name(const struct ruler *ruler, struct id128 id)
{
	uint32_t place = ruler_known_pool_find(&ruler->known, id);

	return place == UINT32_MAX ? SPAN("other")
	                           : span_from(ruler->known.pools[place].name);
}

struct view {
	const struct ruler *ruler;
	uint32_t count;
	uint64_t now_ms;
	struct buffer *out;
};

static void
put_each(const struct view *view, const char *name, const char *help,
         uint64_t (*value)(const struct core_pool_view *pool))
{
	prometheus_head(view->out, name, "gauge", help);
	for (uint32_t i = 0; i < view->count; i++) {
		const struct core_pool_view *pool = &view->ruler->pools[i];

		prometheus_sample(
			view->out, name,
			PROMETHEUS_LABELS({ "pool", pool_name(view->ruler, pool->id) }),
			value(pool));
	}
}

static uint64_t
waiting_of(const struct core_pool_view *pool)
{
	return pool->waiting;
}

static uint64_t
runnable_of(const struct core_pool_view *pool)
{
	return pool->runnable;
}

static uint64_t
running_of(const struct core_pool_view *pool)
{
	return pool->running;
}

static uint64_t
slots_of(const struct core_pool_view *pool)
{
	return pool->slots;
}

static void
put_oldest(const struct view *view)
{
	static const char name[] = "warmq_oldest_wait_seconds";

	prometheus_head(view->out, name, "gauge", "Age of the oldest waiting job.");
	for (uint32_t i = 0; i < view->count; i++) {
		const struct core_pool_view *pool = &view->ruler->pools[i];
		uint64_t since_ms = pool->oldest_ms > 0 ? pool->oldest_ms : view->now_ms;

		prometheus_seconds(
			view->out, name,
			PROMETHEUS_LABELS({ "pool", pool_name(view->ruler, pool->id) }),
			(int64_t)(view->now_ms - MIN(since_ms, view->now_ms)));
	}
}

/* "no_worker", as a label. */
static struct span
reason_of(uint32_t blocked, char text[32])
{
	const char *words = core_blocked_text((enum core_blocked)blocked);
	size_t len = 0;

	for (; words[len] && len < 31; len++)
		text[len] = words[len] == ' ' ? '_' : words[len];
	return (struct span){ text, len };
}

static void
put_blocked(const struct view *view, const char *name, const char *help, bool jobs)
{
	char text[32];

	prometheus_head(view->out, name, "gauge", help);
	for (uint32_t i = 0; i < view->count; i++) {
		const struct core_pool_view *pool = &view->ruler->pools[i];

		for (uint32_t k = 0; k < CORE_BLOCKED_COUNT; k++) {
			if (k == CORE_BLOCKED_NO_WORK)
				continue;
			prometheus_sample(
				view->out, name,
				PROMETHEUS_LABELS(
					{ "pool", pool_name(view->ruler, pool->id) },
					{ "on", reason_of(k, text) }),
				jobs ? pool->jobs[k] : pool->families[k]);
		}
	}
}

static void
put_pools(const struct view *view)
{
	put_each(view, "warmq_backlog", "Jobs that wait, held ones included.",
	         waiting_of);
	put_each(view, "warmq_runnable",
	         "Waiting jobs that would start if slots came now: scale on this.",
	         runnable_of);
	put_each(view, "warmq_in_flight", "Jobs that run.", running_of);
	put_each(view, "warmq_slots", "Slots of live workers.", slots_of);
	put_oldest(view);
	put_blocked(view, "warmq_blocked_jobs",
	            "Waiting jobs, by what stands between their family and a start.",
	            true);
	put_blocked(view, "warmq_blocked_families",
	            "Families with waiting jobs, by what stands in their way.", false);
}

static void
put_lanes(const struct ruler *ruler, struct buffer *out)
{
	struct core_counts counts = core_counts(ruler->core);

	prometheus_head(out, "warmq_lanes", "gauge",
	                "Prefixes that are remembered at a place, by state.");
	for (uint32_t i = 0; i < LANE_GATE_COUNT; i++)
		prometheus_sample(
			out, "warmq_lanes",
			PROMETHEUS_LABELS(
				{ "gate", NAME(lane_gate_text((enum lane_gate)i)) }),
			counts.lanes_by_gate[i]);
}

static uint32_t
workers_of(const struct ruler *ruler)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < ruler->sessions_count; i++)
		count += ruler->sessions[i].nonce != 0;
	return count;
}

void
metrics_pools_look(struct ruler *ruler, uint64_t now_ms)
{
	ruler->pools_looked = core_pools_view(ruler->core, ruler->pools, ruler->rooms);
	ruler->pools_looked_ms = now_ms;
}

void
metrics_pools_now(struct ruler *ruler, uint64_t now_ms, struct buffer *out)
{
	struct view view = { .ruler = ruler, .now_ms = now_ms, .out = out };

	if (ruler->known.family_shelf.count <= LOOK_FAMILIES ||
	    ruler->pools_looked_ms + LOOK_MS < now_ms)
		metrics_pools_look(ruler, now_ms);
	view.count = ruler->pools_looked;
	put_pools(&view);
	put_lanes(ruler, out);
	prometheus_single(out, "warmq_families", "gauge", "Families that are remembered.",
	                  ruler->known.family_shelf.count);
	prometheus_single(out, "warmq_workers", "gauge", "Live worker sessions.",
	                  workers_of(ruler));
	prometheus_single(
		out, "warmq_jobs", "gauge",
		"Payloads in Redis: jobs in any state, and entries of the inbox.",
		ruler->sizes.entries + ruler->sizes.slims);
	prometheus_single(out, "warmq_later", "gauge",
	                  "Jobs that wait for their time or for their next try.",
	                  ruler->sizes.later);
	prometheus_single(
		out, "warmq_dead_letters", "gauge",
		"Dead jobs that are kept until somebody requeues or drops them.",
		ruler->sizes.dead);
}

/* ---- accounts -------------------------------------------------------------------- */

static void
put_budget_gauge(const struct ruler *ruler, const char *name, const char *help,
                 int64_t (*value)(const struct core_budget_view *view, uint64_t now_ms),
                 uint64_t now_ms, struct buffer *out)
{
	prometheus_head(out, name, "gauge", help);
	for (uint32_t i = 0; i < ruler->known.budgets_count; i++) {
		const struct ruler_budget_name *budget = &ruler->known.budgets[i];
		struct core_budget_view view;

		if (core_budget_view(ruler->core, budget->id, &view) == 0)
			prometheus_seconds(
				out, name,
				PROMETHEUS_LABELS({ "budget", NAME(budget->name) }),
				value(&view, now_ms));
	}
}

static int64_t
pace_of(const struct core_budget_view *view, uint64_t now_ms)
{
	(void)now_ms;
	return (int64_t)view->pace * 1000;
}

static int64_t
parked_of(const struct core_budget_view *view, uint64_t now_ms)
{
	return (int64_t)(view->parked_until_ms - MIN(view->parked_until_ms, now_ms));
}

static void
put_outside(const struct ruler *ruler, uint64_t now_ms, struct buffer *out)
{
	static const char name[] = "warmq_outside_requests";

	prometheus_head(out, name, "gauge",
	                "Requests of the last 15 minutes, at least, that did not come "
	                "through WarmQ.");
	for (uint32_t i = 0; i < ruler->known.budgets_count; i++) {
		const struct ruler_budget_name *budget = &ruler->known.budgets[i];
		struct core_budget_view view = { 0 };

		(void)!core_budget_view(ruler->core, budget->id, &view);
		prometheus_sample(out, name,
		                  PROMETHEUS_LABELS({ "budget", NAME(budget->name) }),
		                  outside_sum(&budget->outside, now_ms,
		                              MIN(view.pending, view.pace))
		                          .foreign);
	}
}

static void
put_limits(const struct ruler *ruler, struct buffer *out)
{
	static const char *const buckets[EVENT_BUCKET_COUNT] = { "requests", "input",
		                                                 "output" };

	prometheus_head(out, "warmq_limit", "gauge",
	                "Limits per minute that are configured or known; 0: none known.");
	for (uint32_t i = 0; i < ruler->known.budgets_count; i++) {
		const struct ruler_budget_name *budget = &ruler->known.budgets[i];
		struct core_budget_view view;

		if (core_budget_view(ruler->core, budget->id, &view) < 0)
			continue;
		for (uint32_t k = 0; k < EVENT_BUCKET_COUNT; k++)
			prometheus_sample(
				out, "warmq_limit",
				PROMETHEUS_LABELS({ "budget", NAME(budget->name) },
			                          { "bucket", NAME(buckets[k]) }),
				view.limits[k]);
	}
}

static void
put_pressure(const struct ruler *ruler, struct buffer *out)
{
	static const char *const kinds[RULER_PRESSURES] = {
		[EVENT_PRESSURE_BUSY] = "429",    [EVENT_PRESSURE_OVER] = "529",
		[EVENT_PRESSURE_ERROR] = "error", [EVENT_PRESSURE_SPEND] = "spend",
		[EVENT_PRESSURE_AWAY] = "away",
	};

	prometheus_head(out, "warmq_pressure_total", "counter",
	                "Answers of the provider after which an account rested.");
	for (uint32_t i = 0; i < ruler->known.budgets_count; i++)
		for (uint32_t k = 0; k < RULER_PRESSURES; k++)
			prometheus_sample(
				out, "warmq_pressure_total",
				PROMETHEUS_LABELS(
					{ "budget", NAME(ruler->known.budgets[i].name) },
					{ "kind", NAME(kinds[k]) }),
				ruler->known.budgets[i].pressures[k]);
}

void
metrics_pools_budgets(const struct ruler *ruler, uint64_t now_ms, struct buffer *out)
{
	put_budget_gauge(ruler, "warmq_pace",
	                 "Requests that the account may have in flight now.", pace_of,
	                 now_ms, out);
	put_budget_gauge(ruler, "warmq_parked_seconds",
	                 "How long nothing will start on the account; 0: not parked.",
	                 parked_of, now_ms, out);
	put_limits(ruler, out);
	put_outside(ruler, now_ms, out);
	put_pressure(ruler, out);
}
