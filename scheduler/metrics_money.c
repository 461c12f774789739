#include "scheduler/metrics_money.h"

#include "common/prometheus.h"

#define RECENT_MS 600000 /* bursts that the gauges speak of */

/* ---- by cause -------------------------------------------------------------------- */

static void
put_cause_tokens(const struct ledger_sums *sums, struct buffer *out)
{
	static const char name[] = "warmq_cause_tokens_total";

	prometheus_head(out, name, "counter",
	                "Tokens written, or of a prefix and paid in full, by cause.");
	for (uint32_t i = 0; i < LEDGER_CAUSE_COUNT; i++) {
		struct span cause = span_from(ledger_cause_text((enum ledger_cause)i));

		prometheus_sample(out, name,
		                  PROMETHEUS_LABELS({ "cause", cause },
		                                    { "kind", SPAN("written") }),
		                  sums->causes[i].written);
		prometheus_sample(
			out, name,
			PROMETHEUS_LABELS({ "cause", cause }, { "kind", SPAN("full") }),
			sums->causes[i].full);
	}
}

/* Beyond what reading the same tokens would have cost. */
static void
put_cause_dollars(const struct ledger_sums *sums, struct buffer *out)
{
	static const char name[] = "warmq_cause_dollars_total";

	prometheus_head(out, name, "counter",
	                "What they cost more than reading them would have, by cause.");
	for (uint32_t i = 0; i < LEDGER_CAUSE_COUNT; i++) {
		enum ledger_cause cause = (enum ledger_cause)i;
		bool avoidable = ledger_cause_is_avoidable(cause);

		prometheus_nano(
			out, name,
			PROMETHEUS_LABELS(
				{ "cause", span_from(ledger_cause_text(cause)) },
				{ "avoidable", avoidable ? SPAN("yes") : SPAN("no") }),
			sums->causes[i].extra);
	}
}

/* ---- by route -------------------------------------------------------------------- */

static uint64_t
cost_of(const struct ledger_sums *sums)
{
	return sums->cost;
}

static uint64_t
saved_of(const struct ledger_sums *sums)
{
	return sums->saved;
}

static void
put_dollars(const struct ledger *ledger, uint64_t now_ms, const char *name,
            const char *help, uint64_t (*value)(const struct ledger_sums *sums),
            struct buffer *out)
{
	uint32_t count = ledger_view_routes(ledger);

	prometheus_head(out, name, "counter", help);
	for (uint32_t i = 0; i < count; i++) {
		struct ledger_view_route route;

		ledger_view_route(ledger, i, now_ms, &route);
		prometheus_nano(out, name, PROMETHEUS_LABELS({ "route", route.name }),
		                value(&route.ever));
	}
}

/* ---- bursts ---------------------------------------------------------------------- */

static void
put_bursts(const struct ledger *ledger, uint64_t now_ms, struct buffer *out)
{
	uint64_t bursts = 0, extra = 0;
	struct ledger_view_burst burst;

	for (uint32_t i = 0; ledger_view_burst(ledger, LEDGER_VIEW_ALL, i, &burst); i++) {
		if (burst.start_ms + RECENT_MS < now_ms)
			break;
		bursts++;
		extra += burst.extra_writes;
	}
	prometheus_single(out, "warmq_recent_bursts", "gauge",
	                  "Bursts that began in the last ten minutes.", bursts);
	prometheus_single(out, "warmq_recent_burst_extra_writes", "gauge",
	                  "Writes in them that holding should have avoided.", extra);
}

/* ---- its own health -------------------------------------------------------------- */

static void
put_health(const struct ledger_view_health *health, struct buffer *out)
{
	prometheus_single(out, "warmq_ledger_balanced", "gauge",
	                  "1 if all causes sum up to what was written, and nothing was "
	                  "lost.",
	                  health->sums_up);
	prometheus_single(out, "warmq_ledger_gaps_total", "counter",
	                  "Times that lines of the event stream were lost.",
	                  health->gaps);
	prometheus_single(out, "warmq_calls_unreported_total", "counter",
	                  "Calls that may have been paid for and said nothing of usage.",
	                  health->total.unreported);
	prometheus_single(out, "warmq_calls_unpriced_total", "counter",
	                  "Calls of models without a price in the configuration.",
	                  health->total.unpriced);
}

void
metrics_money_write(const struct ledger *ledger, uint64_t now_ms, struct buffer *out)
{
	struct ledger_view_health health;

	ledger_view_health(ledger, &health);
	put_cause_tokens(&health.total, out);
	put_cause_dollars(&health.total, out);
	put_dollars(ledger, now_ms, "warmq_dollars_total",
	            "Price of all calls with known usage.", cost_of, out);
	put_dollars(ledger, now_ms, "warmq_avoidable_dollars_total",
	            "Of that, what a better set-up would have saved.",
	            ledger_view_avoidable, out);
	put_dollars(ledger, now_ms, "warmq_saved_dollars_total",
	            "What holding saved in bursts, against starting all on arrival.",
	            saved_of, out);
	put_bursts(ledger, now_ms, out);
	put_health(&health, out);
}
