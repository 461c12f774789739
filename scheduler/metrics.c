#include "scheduler/metrics.h"

#include "common/prometheus.h"
#include "scheduler/metrics_money.h"
#include "scheduler/metrics_pools.h"
#include "scheduler/ruler_ledger.h"
#include "scheduler/ruler_state.h"
#include "scheduler/ruler_view.h"

#include <stdio.h>

#define NAME(text) span_from(text)

/* ---- the process ----------------------------------------------------------------- */

static void
put_process(const struct ruler *ruler, const struct ruler_health *health,
            const char *version, struct buffer *out)
{
	prometheus_head(out, "warmq_build_info", "gauge",
	                "Always 1; the version is a label.");
	prometheus_sample(out, "warmq_build_info",
	                  PROMETHEUS_LABELS({ "version", NAME(version) }), 1);
	prometheus_single(out, "warmq_ruling", "gauge", "1 if this process rules.",
	                  health->phase == RULER_RULING);
	prometheus_single(out, "warmq_admitting", "gauge",
	                  "0 if the cursor of the inbox is missing.", health->admits);
	prometheus_single(out, "warmq_holding", "gauge",
	                  "0 while `hold off`: nobody waits for a prefix.", health->hold);
	prometheus_head(out, "warmq_inbox_lag_seconds", "gauge",
	                "Age of the oldest entry that was read and is not admitted.");
	prometheus_seconds(out, "warmq_inbox_lag_seconds", NULL,
	                   (int64_t)health->inbox_lag_ms);
	prometheus_head(out, "warmq_redis_memory_ratio", "gauge",
	                "Memory that Redis uses, of its maxmemory; 0 without one.");
	prometheus_seconds(out, "warmq_redis_memory_ratio", NULL,
	                   (int64_t)ruler->memory_percent * 10);
	prometheus_single(out, "warmq_redis_evicts", "gauge",
	                  "1 if Redis throws keys away when it is full.", health->evicts);
	prometheus_head(out, "warmq_redis_round_trip_seconds", "gauge",
	                "How long Redis took for the last look at its counters.");
	prometheus_seconds(out, "warmq_redis_round_trip_seconds", NULL,
	                   (int64_t)ruler->sizes.round_trip_ms);
}

/* ---- counters of one number ------------------------------------------------------ */

struct number {
	const char *name, *help;
	uint64_t value;
};

static void
put_counters(const struct number *numbers, size_t count, struct buffer *out)
{
	for (size_t i = 0; i < count; i++)
		prometheus_single(out, numbers[i].name, "counter", numbers[i].help,
		                  numbers[i].value);
}

/* Counted in Redis by whoever did it, so they outlive this process.  Only the ruler tells
 * them: from a stand-by that takes over they would jump from 0 to all that ever was. */
static void
put_kept(const struct ruler *ruler, struct buffer *out)
{
	const struct ruler_sizes *sizes = &ruler->sizes;
	const struct number numbers[] = {
		{ "warmq_retries_total", "Failed runs whose job is tried again.",
		  sizes->retried },
		{ "warmq_deferrals_total",
		  "Runs given back because the account was at its limit or overloaded.",
		  sizes->deferred },
		{ "warmq_unsent_total", "Runs given back before anything went out.",
		  sizes->unsent },
		{ "warmq_recoveries_total", "Jobs taken back from workers that died.",
		  sizes->recovered },
		{ "warmq_late_accepted_total",
		  "Results that came after their lease had gone, and were taken.",
		  sizes->late_accepted },
		{ "warmq_late_refused_total",
		  "Results that came after their lease had gone, in vain.",
		  sizes->late_refused },
		{ "warmq_replies_trimmed_total",
		  "Results dropped from reply lists that nobody reads.",
		  sizes->replies_trimmed },
		{ "warmq_dead_trimmed_total", "Dead jobs dropped for their number.",
		  sizes->dead_trimmed },
		{ "warmq_clamped_total", "Numbers cut to their column in a record.",
		  ruler->lane_drift },
		{ "warmq_function_errors_total", "Errors inside the functions of Redis.",
		  ruler->function_errors },
		{ "warmq_delivery_errors_total",
		  "Results that could not be pushed and were kept by id instead.",
		  ruler->delivery_errors },
	};

	if (sizes->known)
		put_counters(numbers, ARRAY_SIZE(numbers), out);
}

/* What the core did since it last began with an empty memory. */
static void
put_core(const struct ruler *ruler, struct buffer *out)
{
	struct core_counts counts = core_counts(ruler->core);
	const struct number numbers[] = {
		{ "warmq_elections_total", "Writers chosen for a cold prefix.",
		  counts.elections },
		{ "warmq_pool_switches_total", "Times a pool turned to a further prefix.",
		  counts.switches },
		{ "warmq_prefix_opened_total", "Times a prefix was found readable.",
		  counts.opened },
		{ "warmq_prefix_closed_total", "Times a readable prefix went cold.",
		  counts.closed },
		{ "warmq_proofs_total", "Readers sent to prove a prefix that read it.",
		  counts.proofs },
		{ "warmq_proof_misses_total", "Such readers that did not.",
		  counts.misses },
		{ "warmq_revoked_total",
		  "Turns to write that were taken back: no request was heard of in time.",
		  counts.revoked },
	};

	put_counters(numbers, ARRAY_SIZE(numbers), out);
}

static void
put_words(const struct tally *tally, enum tally_event event, const char *name,
          const char *label, const char *help, struct buffer *out)
{
	const char *const *words;
	uint32_t count = tally_words(event, &words);

	prometheus_head(out, name, "counter", help);
	for (uint32_t i = 0; i < count; i++)
		prometheus_sample(out, name, PROMETHEUS_LABELS({ label, NAME(words[i]) }),
		                  tally->counts[event][i]);
}

/* ---- routes ---------------------------------------------------------------------- */

static struct span
route_name(const struct tally *tally, uint32_t route)
{
	return route < TALLY_ROUTES ? span_from(tally->routes[route].name)
	                            : SPAN("other");
}

static void
put_routes(const struct tally *tally, const char *name, const char *help, size_t offset,
           struct buffer *out)
{
	prometheus_head(out, name, "counter", help);
	for (uint32_t i = 0; i <= TALLY_ROUTES; i++) {
		const char *at = (const char *)&tally->routes[i] + offset;

		if (i == TALLY_OTHER || i < tally->routes_count)
			prometheus_sample(
				out, name,
				PROMETHEUS_LABELS({ "route", route_name(tally, i) }),
				*(const uint64_t *)(const void *)at);
	}
}

static struct span
upstream_name(const struct ruler *ruler, uint32_t upstream)
{
	return upstream < ruler->config->upstreams_count
	               ? ruler->config->upstreams[upstream].name
	               : SPAN("other");
}

/* "vllm", or "vllm/3" for one of its replicas: the words of the ledger. */
static struct span
place_name(const struct ruler *ruler, const struct tally_tokens *row, char text[160])
{
	struct span upstream = upstream_name(ruler, row->upstream);

	if (row->upstream >= ruler->config->upstreams_count || row->domain == 0)
		return upstream;
	(void)snprintf(text, 160, "%.*s/%u", (int)MIN(upstream.len, 128), upstream.data,
	               row->domain);
	return span_from(text);
}

static void
put_tokens(const struct ruler *ruler, struct buffer *out)
{
	const struct tally *tally = &ruler->tally;

	prometheus_head(out, "warmq_tokens_total", "counter",
	                "Tokens that calls with known usage took, by kind.");
	for (uint32_t i = 0; i < tally->rows_count; i++) {
		const struct tally_tokens *row = &tally->rows[i];
		const struct {
			const char *kind;
			uint64_t value;
		} kinds[] = {
			{ "read", row->read },
			{ "written", row->written },
			{ "uncached", row->uncached },
			{ "output", row->output },
		};
		char place[160];

		for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
			prometheus_sample(
				out, "warmq_tokens_total",
				PROMETHEUS_LABELS(
					{ "upstream",
			                  upstream_name(ruler, row->upstream) },
					{ "place", place_name(ruler, row, place) },
					{ "route", route_name(tally, row->route) },
					{ "kind", NAME(kinds[k].kind) }),
				kinds[k].value);
	}
}

/* ---- times ----------------------------------------------------------------------- */

static void
put_times(const struct ruler *ruler, enum tally_time time, const char *name,
          const char *help, struct buffer *out)
{
	const struct tally *tally = &ruler->tally;
	const struct ruler_known *known = &ruler->known;

	prometheus_head(out, name, "histogram", help);
	for (uint32_t i = 0; i < tally->groups_count; i++) {
		const struct tally_group *group = &tally->groups[i];
		struct span pool = group->pool < known->pools_count
		                           ? span_from(known->pools[group->pool].name)
		                           : SPAN("other");

		prometheus_histogram(
			out, name,
			PROMETHEUS_LABELS(
				{ "pool", pool },
				{ "upstream", upstream_name(ruler, group->upstream) }),
			&group->times[time]);
	}
}

static void
put_tally(const struct ruler *ruler, struct buffer *out)
{
	const struct tally *tally = &ruler->tally;

	put_words(tally, TALLY_DEAD, "warmq_dead_total", "reason",
	          "Jobs that ended dead.", out);
	put_words(tally, TALLY_ENDED, "warmq_ended_total", "reason",
	          "Jobs that ended before they ran.", out);
	put_words(tally, TALLY_STARTS, "warmq_starts_total", "role",
	          "Starts that were not plain.", out);
	put_words(tally, TALLY_WARMUPS, "warmq_warmups_total", "outcome",
	          "Warm-up requests, ahead of jobs.", out);
	put_words(tally, TALLY_SPENT, "warmq_unanswered_total", "why",
	          "Attempts that were paid for, or may have been, and gave no answer.",
	          out);
	put_routes(tally, "warmq_done_total", "Jobs done.",
	           offsetof(struct tally_route, done), out);
	put_routes(tally, "warmq_usage_known_total",
	           "Jobs done of which it is known what they read.",
	           offsetof(struct tally_route, known), out);
	put_routes(tally, "warmq_prefix_hits_total", "Of those, jobs that read a prefix.",
	           offsetof(struct tally_route, hits), out);
	put_tokens(ruler, out);
	put_times(ruler, TALLY_WAIT, "warmq_wait_seconds",
	          "From when a job was due until its request left.", out);
	put_times(
		ruler, TALLY_HELD, "warmq_held_seconds",
		"Of that, while its prefix was being written or proved; held jobs only.",
		out);
	put_times(ruler, TALLY_FIRST, "warmq_first_event_seconds",
	          "From when the request left to the first event of its answer.", out);
	put_times(ruler, TALLY_RUN, "warmq_run_seconds",
	          "From when the request left until its result was settled.", out);
}

void
metrics_write(struct ruler *ruler, uint64_t now_ms, const char *version,
              struct buffer *out)
{
	struct ruler_health health = ruler_view_health(ruler, now_ms);

	put_process(ruler, &health, version, out);
	prometheus_single(out, "warmq_admitted_total", "counter", "Jobs admitted.",
	                  health.admitted);
	put_tally(ruler, out);
	put_core(ruler, out);
	prometheus_single(out, "warmq_corrections_total", "counter",
	                  "Numbers that an audit had to correct: each is a bug.",
	                  health.drift);
	metrics_pools_budgets(ruler, now_ms, out);
	/* Who stands by knows nothing of what waits; a zero would be an answer. */
	if (health.phase != RULER_RULING)
		return;
	put_kept(ruler, out);
	prometheus_single(out, "warmq_prefixes_everywhere", "gauge",
	                  "Prefixes kept at every place of their route, two or more.",
	                  health.everywhere);
	metrics_money_write(ruler_ledger(ruler), now_ms, out);
	metrics_pools_now(ruler, now_ms, out);
}
