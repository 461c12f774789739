#include "worker/health.h"

#include <stdlib.h>

struct health {
	const struct agent *agent;
	const struct lag *lag;
	struct http_server *server;
};

static void
add(struct buffer *out, const char *name, const char *kind, const char *help,
    uint64_t value)
{
	(void)buffer_append_format(out,
	                           "# HELP warmq_worker_%s %s\n"
	                           "# TYPE warmq_worker_%s %s\n"
	                           "warmq_worker_%s %llu\n",
	                           name, help, name, kind, name,
	                           (unsigned long long)value);
}

static void
write_metrics(const struct health *health, struct buffer *out)
{
	const struct lag *lag = health->lag;
	struct agent_stats stats;

	agent_stats(health->agent, &stats);
	add(out, "attached", "gauge", "1 while it has a session on a live connection.",
	    stats.attached);
	add(out, "fenced", "gauge", "1 while too long without a beat.", stats.is_fenced);
	add(out, "busy", "gauge", "Slots that hold a lease.", stats.busy);
	add(out, "running", "gauge", "Slots with a request or handler at work.",
	    stats.running);
	add(out, "claimed_total", "counter", "Jobs claimed.", stats.claimed);
	add(out, "settled_total", "counter", "Jobs done.", stats.settled);
	add(out, "failed_total", "counter", "Runs that ended in a failure.",
	    stats.failed);
	add(out, "released_total", "counter", "Leases given back.", stats.released);
	add(out, "late_accepted_total", "counter", "Late results that were wanted.",
	    stats.late_accepted);
	add(out, "late_refused_total", "counter", "Late results that were not.",
	    stats.late_refused);
	add(out, "sessions_total", "counter", "Sessions begun.", stats.sessions);
	add(out, "attaches_total", "counter", "Slot tables read again.", stats.attaches);
	add(out, "fenced_total", "counter", "Times it was fenced.", stats.fenced);
	add(out, "orphans_total", "counter", "Runs that lost their lease.",
	    stats.orphans);
	add(out, "resent_total", "counter", "Results sent again after a rollback.",
	    stats.resent);
	add(out, "timeouts_total", "counter", "Calls that Redis did not answer.",
	    stats.timeouts);
	add(out, "claims_empty_total", "counter", "Claims that found nothing.",
	    stats.claims_empty);
	add(out, "loop_busy_ms_total", "counter", "Time the loop has worked.",
	    lag->busy_ns / 1000000);
	add(out, "loop_hold_up_ms_max", "gauge", "Longest stretch without a turn.",
	    lag->worst_ns / 1000000);
}

static void
write_health(const struct health *health, struct http_server_response *response)
{
	struct agent_stats stats;

	agent_stats(health->agent, &stats);
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
		write_metrics(health, &response->body);
	} else {
		response->status = 404;
		(void)buffer_append_text(&response->body,
		                         "There is /healthz and /metrics.\n");
	}
}

int
health_open(uv_loop_t *loop, const char *address, const struct agent *agent,
            const struct lag *lag, struct health **ret_health,
            char ret_why[HEALTH_ERROR_SIZE])
{
	struct health *health = calloc(1, sizeof *health);
	int err;

	ret_why[0] = '\0';
	if (!health)
		return ERR_MEMORY;
	health->agent = agent;
	health->lag = lag;
	err = http_server_open(loop, address, on_request, health, &health->server,
	                       ret_why);
	if (err < 0) {
		free(health);
		return err;
	}
	*ret_health = health;
	return 0;
}

uint16_t
health_port(const struct health *health)
{
	return http_server_port(health->server);
}

void
health_close(struct health *health)
{
	if (!health)
		return;
	http_server_close(health->server, free, health);
}
