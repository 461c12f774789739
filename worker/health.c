#include "worker/health.h"

#include "common/io/log.h"
#include "common/prometheus.h"

#include <stdlib.h>
#include <time.h>

#define CONNECTIONS_MAX 32 /* they come out of FILES_OWN */

struct health {
	const struct health_sources *sources;
	struct http_server *server;
};

struct number {
	const char *name, *kind, *help;
	uint64_t value;
};

static void
write_numbers(const struct number *numbers, size_t count, struct buffer *out)
{
	for (size_t i = 0; i < count; i++)
		prometheus_single(out, numbers[i].name, numbers[i].kind, numbers[i].help,
		                  numbers[i].value);
}

static void
write_stats(const struct agent_stats *stats, struct buffer *out)
{
	const struct number numbers[] = {
		{ "warmq_worker_attached", "gauge",
		  "1 while it has a session on a live connection.", stats->attached },
		{ "warmq_worker_fenced", "gauge", "1 while too long without a beat.",
		  stats->is_fenced },
		{ "warmq_worker_quiet", "gauge", "1 while it was told to claim nothing.",
		  stats->is_quiet },
		{ "warmq_worker_unreached", "gauge",
		  "Upstreams that it does not reach, whose jobs it leaves to others.",
		  stats->shunned },
		{ "warmq_worker_slots", "gauge", "Jobs it takes at once.", stats->slots },
		{ "warmq_worker_busy", "gauge", "Slots that hold a lease.", stats->busy },
		{ "warmq_worker_running", "gauge",
		  "Slots with a request or handler at work.", stats->running },
		{ "warmq_worker_claimed_total", "counter", "Jobs claimed.",
		  stats->claimed },
		{ "warmq_worker_settled_total", "counter", "Jobs done.", stats->settled },
		{ "warmq_worker_failed_total", "counter", "Runs that ended in a failure.",
		  stats->failed },
		{ "warmq_worker_released_total", "counter", "Leases given back.",
		  stats->released },
		{ "warmq_worker_late_accepted_total", "counter",
		  "Late results that were wanted.", stats->late_accepted },
		{ "warmq_worker_late_refused_total", "counter",
		  "Late results that were not.", stats->late_refused },
		{ "warmq_worker_sessions_total", "counter", "Sessions begun.",
		  stats->sessions },
		{ "warmq_worker_attaches_total", "counter", "Slot tables read again.",
		  stats->attaches },
		{ "warmq_worker_fenced_total", "counter", "Times it was fenced.",
		  stats->fenced },
		{ "warmq_worker_orphans_total", "counter", "Runs that lost their lease.",
		  stats->orphans },
		{ "warmq_worker_resent_total", "counter",
		  "Results sent again after a rollback.", stats->resent },
		{ "warmq_worker_timeouts_total", "counter",
		  "Calls that Redis did not answer.", stats->timeouts },
		{ "warmq_worker_claims_empty_total", "counter",
		  "Claims that found nothing.", stats->claims_empty },
	};

	write_numbers(numbers, ARRAY_SIZE(numbers), out);
}

static uint64_t
local_ms(void)
{
	return uv_hrtime() / 1000000;
}

/* Zero while no slot is free, or it is quiet: nobody asks then. */
static uint64_t
claim_age_ms(const struct agent_stats *stats)
{
	uint64_t now_ms = local_ms();

	if (stats->busy >= stats->slots || stats->is_quiet)
		return 0;
	return now_ms - MIN(stats->claim_answered_ms, now_ms);
}

static int64_t
clock_offset_ms(const struct agent *agent)
{
	struct timespec wall;

	VERIFY(clock_gettime(CLOCK_REALTIME, &wall) == 0);
	return (int64_t)agent_redis_ms(agent, local_ms()) -
	       ((int64_t)wall.tv_sec * 1000 + wall.tv_nsec / 1000000);
}

static void
write_times(const struct health *health, const struct agent_stats *stats,
            struct buffer *out)
{
	const struct {
		const char *name, *kind, *help;
		int64_t ms;
	} times[] = {
		{ "warmq_worker_claim_age_seconds", "gauge",
		  "Since a claim was last answered, while slots are free.",
		  (int64_t)claim_age_ms(stats) },
		{ "warmq_worker_clock_offset_seconds", "gauge",
		  "How far the clock of Redis is ahead of this machine's.",
		  stats->attached ? clock_offset_ms(health->sources->agent) : 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		prometheus_head(out, times[i].name, times[i].kind, times[i].help);
		prometheus_seconds(out, times[i].name, NULL, times[i].ms);
	}
}

/* A turn of the loop takes less than a millisecond. */
static void
write_lag(const struct lag *lag, struct buffer *out)
{
	prometheus_head(out, "warmq_worker_loop_busy_seconds_total", "counter",
	                "Time the loop has worked.");
	prometheus_nano(out, "warmq_worker_loop_busy_seconds_total", NULL, lag->busy_ns);
	prometheus_head(out, "warmq_worker_loop_hold_up_seconds_max", "gauge",
	                "Longest stretch of the loop without a turn.");
	prometheus_nano(out, "warmq_worker_loop_hold_up_seconds_max", NULL,
	                lag->worst_ns);
}

static void
write_spool(const struct report_list *reports, struct buffer *out)
{
	uint64_t results = 0, bytes = 0;

	for (const struct report *it = reports->first; it; it = it->next) {
		results += it->is_spooled;
		bytes += it->is_spooled ? it->result.len : 0;
	}
	prometheus_single(out, "warmq_worker_spool_results", "gauge",
	                  "Results on disk that Redis has not taken yet.", results);
	prometheus_single(out, "warmq_worker_spool_bytes", "gauge", "Their size.", bytes);
}

static void
write_metrics(const struct health *health, struct buffer *out)
{
	const struct health_sources *sources = health->sources;
	struct agent_stats stats;

	agent_stats(sources->agent, &stats);
	prometheus_head(out, "warmq_worker_build_info", "gauge",
	                "Always 1; version, pool and label are labels.");
	prometheus_sample(out, "warmq_worker_build_info",
	                  PROMETHEUS_LABELS({ "version", span_from(sources->version) },
	                                    { "pool", span_from(sources->pool) },
	                                    { "label", span_from(sources->label) }),
	                  1);
	write_stats(&stats, out);
	write_times(health, &stats, out);
	write_lag(sources->lag, out);
	write_spool(sources->reports, out);
	measure_write(sources->measure, out);
}

static void
write_health(const struct health *health, struct http_server_response *response)
{
	struct agent_stats stats;

	agent_stats(health->sources->agent, &stats);
	if (stats.attached && !stats.is_fenced) {
		(void)buffer_append_text(&response->body, "ok\n");
		return;
	}
	response->status = 503;
	(void)buffer_append_text(&response->body,
	                         stats.is_fenced ? "fenced\n" : "no session in Redis\n");
}

static void
on_request(const struct http_server_request *request,
           struct http_server_response *response, void *data)
{
	const struct health *health = data;

	if (strcmp(request->method, "GET") != 0) {
		response->status = 405;
		response->allow = "GET";
	} else if (strcmp(request->path, "/healthz") == 0) {
		write_health(health, response);
	} else if (strcmp(request->path, "/metrics") == 0) {
		response->content_type = PROMETHEUS_CONTENT_TYPE;
		write_metrics(health, &response->body);
	} else {
		response->status = 404;
		(void)buffer_append_text(&response->body,
		                         "There is /healthz and /metrics.\n");
	}
}

struct health *
health_open(uv_loop_t *loop, const char *address, const struct health_sources *sources)
{
	struct http_server_options options = {
		.address = address,
		.connections_max = CONNECTIONS_MAX,
		.fn = on_request,
	};
	char why[HTTP_SERVER_MESSAGE_SIZE] = "out of memory";
	struct health *health;

	if (strcmp(address, "off") == 0)
		return NULL;
	health = calloc(1, sizeof *health);
	options.data = health;
	if (!health || http_server_open(loop, &options, &health->server, why) < 0) {
		log_warning("there is no health page; jobs run without it",
		            LOG_TEXT("listen", address), LOG_TEXT("cause", why));
		free(health);
		return NULL;
	}
	health->sources = sources;
	log_info("health page", LOG_NUMBER("port", http_server_port(health->server)));
	return health;
}

void
health_close(struct health *health)
{
	if (!health)
		return;
	http_server_close(health->server, free, health);
}
