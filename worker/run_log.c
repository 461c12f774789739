#include "worker/run_log.h"

#include <string.h>

static void
add_span(struct log_field *fields, size_t *count, const char *name, struct span value)
{
	if (value.len > 0)
		fields[(*count)++] = LOG_SPAN(name, value);
}

size_t
run_log_who(const struct run *run, struct log_field *ret_fields)
{
	size_t count = 1;

	if (!run || run->state == RUN_FREE)
		return count;
	add_span(ret_fields, &count, run_is_ticket(run) ? "ticket" : "job", run_id(run));
	if (run_is_ticket(run))
		return count;
	add_span(ret_fields, &count, "route", run->envelope.route);
	add_span(ret_fields, &count, "upstream", run->envelope.upstream);
	add_span(ret_fields, &count, "ref", run->envelope.ref);
	add_span(ret_fields, &count, "traceparent", run->envelope.traceparent);
	return count;
}

static bool
says(const struct log_field *fields, size_t count, const char *key)
{
	for (size_t i = 1; i < count; i++)
		if (strcmp(fields[i].key, key) == 0)
			return true;
	return false;
}

void
run_log_write(enum log_level level, struct log_site *site, const struct run *run,
              const char *event, const struct log_field *fields, size_t fields_count)
{
	struct log_field all[RUN_LOG_WHO_MAX + RUN_LOG_FIELDS_MAX] = { { 0 } };
	size_t who = run_log_who(run, all), count = who;

	VERIFY(fields_count <= RUN_LOG_FIELDS_MAX + 1);
	for (size_t i = 1; i < fields_count; i++)
		if (!says(all, who, fields[i].key))
			all[count++] = fields[i];
	log_write(level, site, event, all, count);
}

/* ---- ends ------------------------------------------------------------------------ */

enum what_now {
	DONE,
	AGAIN,
	LAST,
	DEFERRED,
	REFUSED,
	MISSING,
	UNSENT,
	UNFETCHED,
	STOPPED,
	WARMED,
	NOT_WARMED,
	WHAT_COUNT,
};

static const struct {
	enum log_level level;
	const char *event;
} lines[WHAT_COUNT] = {
	[DONE] = { LOG_LEVEL_DEBUG, "a job is done" },
	[AGAIN] = { LOG_LEVEL_WARNING, "a run failed; the job is tried again" },
	[LAST] = { LOG_LEVEL_WARNING, "a run failed for the last time; the job is dead" },
	[DEFERRED] = { LOG_LEVEL_INFO,
	               "the account rests; the job goes back to its queue" },
	[REFUSED] = { LOG_LEVEL_WARNING, "the job was refused; it is dead" },
	[MISSING] = { LOG_LEVEL_ERROR, "the payload of a job is gone; it is dead" },
	[UNSENT] = { LOG_LEVEL_WARNING,
	             "nothing was sent; the job goes back to its queue" },
	[UNFETCHED] = { LOG_LEVEL_DEBUG,
	                "Redis was lost before the payload came; it is fetched again" },
	[STOPPED] = { LOG_LEVEL_DEBUG, "a run was stopped" },
	[WARMED] = { LOG_LEVEL_DEBUG, "a prefix was written ahead of its jobs" },
	[NOT_WARMED] = { LOG_LEVEL_WARNING,
	                 "a warm-up failed; a job writes the prefix instead" },
};

static enum what_now
what_now(const struct run *run)
{
	const struct agent_outcome *outcome = &run->outcome;

	if (run_is_ticket(run) && outcome->end != AGENT_STOPPED &&
	    outcome->end != AGENT_UNFETCHED)
		return outcome->end == AGENT_DONE ? WARMED : NOT_WARMED;
	switch (outcome->end) {
	case AGENT_DONE:
		return DONE;
	case AGENT_RETRY:
		return outcome->attempts + 1 >= outcome->attempts_max ? LAST : AGAIN;
	case AGENT_DEFER:
		return DEFERRED;
	case AGENT_FATAL:
		return REFUSED;
	case AGENT_MISSING:
		return MISSING;
	case AGENT_UNSENT:
		return UNSENT;
	case AGENT_UNFETCHED:
		return UNFETCHED;
	case AGENT_STOPPED:
	case AGENT_END_COUNT:
		break;
	}
	return STOPPED;
}

void
run_log_end(const struct run *run)
{
	static struct log_site sites[WHAT_COUNT];
	const struct agent_outcome *outcome = &run->outcome;
	struct log_field fields[RUN_LOG_WHO_MAX + 8] = { { 0 } };
	enum what_now what = what_now(run);
	size_t count;

	if (!log_wants(lines[what].level))
		return;
	count = run_log_who(run, fields);
	add_span(fields, &count, "reason", outcome->reason);
	add_span(fields, &count, "text", outcome->text);
	if (what == AGAIN || what == LAST) {
		fields[count++] = LOG_NUMBER("attempt", outcome->attempts + 1);
		fields[count++] = LOG_NUMBER("of", outcome->attempts_max);
	}
	if (outcome->delay_ms > 0)
		fields[count++] = LOG_NUMBER("wait_ms", outcome->delay_ms);
	if (outcome->park_ms > 0)
		fields[count++] = LOG_NUMBER("rest_ms", outcome->park_ms);
	if (run->sent_ms > 0)
		fields[count++] = LOG_NUMBER(
			"ms", run->context->now_ms(run->context->data) - run->sent_ms);
	log_write(lines[what].level, &sites[what], lines[what].event, fields, count);
}
