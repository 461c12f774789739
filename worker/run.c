#include "worker/run.h"

#include "common/io/log.h"
#include "worker/run_log.h"

#include <stdlib.h>

#define REDIS_REFUSED_MS 2000 /* before it is tried again */

/* Of a result whose job names a reply list, too: lists die if nobody reads them. */
static uint64_t
result_ttl_ms(const struct run *run)
{
	return run->context->config->scheduler.result_ttl_ms;
}

struct report *
run_report(struct run *run)
{
	if (run->report)
		return run->report;
	run->report = report_create(&run->context->reports, run_id(run));
	if (!run->report)
		return NULL;
	run->report->result_ttl_ms = result_ttl_ms(run);
	if (run->envelope.reply.len > 0 &&
	    run->envelope.reply.len < sizeof run->report->reply)
		memcpy(run->report->reply, run->envelope.reply.data,
		       run->envelope.reply.len);
	return run->report;
}

uint64_t
run_ms_max(const struct config *config)
{
	return MAX(config->worker.timeout_ms, RUN_MS_MAX);
}

uint64_t
run_timeout_ms(const struct run *run)
{
	const struct config *config = run->context->config;

	if (run_is_ticket(run) || run->envelope.timeout_ms == 0)
		return config->worker.timeout_ms;
	return MIN(run->envelope.timeout_ms, run_ms_max(config));
}

struct span
run_upstream(const struct run *run)
{
	const char *budget;

	if (!run_is_ticket(run))
		return run->envelope.upstream;
	/* "upstream:class" or "upstream@account:class" */
	budget = run->load ? run->load->budget : "";
	return (struct span){ budget, strcspn(budget, "@:") };
}

static struct protocol_usage
usage_of(const struct run *run)
{
	struct protocol_usage usage = run->outcome.usage;

	if (run->sent_ms > 0)
		usage.sent_ms = (int64_t)run->sent_ms;
	if (run->first_ms > 0)
		usage.first_ms = (int64_t)run->first_ms;
	if (run->wait_ms >= 0)
		usage.wait_ms = run->wait_ms;
	return usage;
}

struct report_facts
run_facts(const struct run *run, const char *state)
{
	uint64_t now_ms = run->context->now_ms(run->context->data);
	uint64_t sent_ms = run->context->redis_ms(run->sent_ms, run->context->data);

	return (struct report_facts){
		.id = run_id(run),
		.ref = run->envelope.ref,
		.upstream = run->envelope.upstream,
		.traceparent = run->envelope.traceparent,
		.state = state,
		.usage = run->outcome.usage,
		.attempts = run->load ? run->load->attempts : 0,
		.delivery = run->load ? run->load->deliveries + 1 : 1,
		.sent_ms = run->sent_ms > 0 ? sent_ms : 0,
		.first_ms = run->first_ms > 0 ? run->first_ms - run->sent_ms : 0,
		.total_ms = run->sent_ms > 0 ? now_ms - run->sent_ms : 0,
	};
}

void
run_end(struct run *run, enum agent_end end)
{
	struct agent_outcome *outcome = &run->outcome;
	struct report *report = run->report;

	VERIFY(run->state == RUN_LOADING || run->state == RUN_AT_WORK);
	run->state = RUN_ENDED;
	outcome->end = end;
	outcome->usage = usage_of(run);
	outcome->attempts = run->load ? run->load->attempts : 0;
	outcome->attempts_max = run->envelope.attempts;
	if (report && end != AGENT_STOPPED && end != AGENT_UNFETCHED) {
		outcome->handle = report_handle(report);
		outcome->reason = span_from(report->reason);
		outcome->text = span_from(report->text);
		if (run->has_missed)
			(void)snprintf(report->missed, sizeof report->missed, "%.*s",
			               (int)run_upstream(run).len,
			               run_upstream(run).data);
		outcome->missed = span_from(report->missed);
		outcome->reply = span_from(report->reply);
		outcome->result_ttl_ms = report->result_ttl_ms;
		upstream_redact(run->context->upstreams, report->result.data,
		                report->result.len);
		outcome->result = buffer_span(&report->result);
	}
	run->context->on_ended(run, run->context->data);
}

void
run_fail(struct run *run, enum agent_end end, const char *reason, struct span text,
         uint64_t delay_ms, uint64_t park_ms)
{
	struct report *report = run_report(run);

	run->outcome.delay_ms = delay_ms;
	run->outcome.park_ms = park_ms;
	if (!report) {
		/* Better to run it again than to fail it for our own lack of memory. */
		run_end(run, AGENT_UNSENT);
		return;
	}
	report_explain(report, reason, text);
	if (!run_is_ticket(run) && report->result.len == 0) {
		struct report_facts facts = run_facts(run, "dead");

		facts.reason = report->reason;
		facts.text = report->text;
		/* Without memory the store writes a short one. */
		if (report_write(report, &facts, REPORT_NONE, (struct span){ 0 }) < 0)
			buffer_clear(&report->result);
	}
	run_end(run, end);
}

/* Since the job was enqueued, or since the time before which it did not want to run. */
static int64_t
wait_ms(const struct run *run)
{
	uint64_t sent_ms = run->context->redis_ms(run->sent_ms, run->context->data);
	struct protocol_job_id id;
	uint64_t due_ms;

	if (run_is_ticket(run) || protocol_parse_job_id(run_id(run), &id) < 0)
		return PROTOCOL_UNKNOWN;
	due_ms = MAX(id.ms, run->envelope.not_before_ms);
	return sent_ms > due_ms ? (int64_t)(sent_ms - due_ms) : 0;
}

void
run_sent(struct run *run)
{
	if (run->was_sent)
		return;
	run->was_sent = true;
	run->sent_ms = run->context->now_ms(run->context->data);
	run->wait_ms = wait_ms(run);
	run->context->on_sent(run, run->context->data);
}

void
run_began(struct run *run, const struct protocol_usage *usage)
{
	struct protocol_usage known = *usage;

	if (run->first_ms == 0)
		run->first_ms = run->context->now_ms(run->context->data);
	known.sent_ms = (int64_t)run->sent_ms;
	known.first_ms = (int64_t)run->first_ms;
	run->context->on_began(run, &known, run->context->data);
}

static int
read_fields(struct run *run, const struct envelope_pair *pairs, size_t count,
            struct envelope_error *reterr)
{
	/* How large a job may be was for the scheduler to say, which let this one in. */
	static const struct envelope_limits limits = { SIZE_MAX, ENVELOPE_PACK_MAX };
	int err;

	run->reader = calloc(1, sizeof *run->reader);
	if (!run->reader)
		return ERR_MEMORY;
	envelope_init(run->reader, &limits);
	err = envelope_open(run->reader, pairs, count, run->load->entry_ms, reterr);
	if (err < 0)
		return err;
	return envelope_next(run->reader, &run->envelope, reterr);
}

static int
read_envelope(struct run *run, struct envelope_error *reterr)
{
	struct envelope_pair pairs[ENVELOPE_FIELDS_MAX];
	struct span payload = run->load->payload;
	size_t count;

	if (!run->load->slim)
		return read_fields(run, run->load->pairs, run->load->pairs_count, reterr);
	if (!envelope_is_moved(payload))
		return envelope_read_slim(payload, &run->envelope, reterr);
	count = envelope_read_moved(payload, pairs);
	if (count == 0) {
		(void)snprintf(reterr->text, sizeof reterr->text,
		               "The stored entry cannot be taken apart.");
		return ERR_MALFORMED;
	}
	return read_fields(run, pairs, count, reterr);
}

static void
on_loaded(struct store_load *load, void *data)
{
	struct run *run = data;
	struct envelope_error error = { .text = "" };
	char text[256];
	int err;

	if (load->error == ERR_CONNECTION) {
		run_end(run, AGENT_UNFETCHED);
		return;
	}
	if (load->error == ERR_IO) {
		(void)snprintf(text, sizeof text, "Redis refused to give %s of this job.",
		               load->missing);
		run_log_error(
			run,
			"a job cannot be read; it goes back to its queue. Look at the "
			"type of its keys: warmq doctor",
			LOG_TEXT("cause", text));
		run_fail(run, AGENT_UNSENT, "redis", span_from(text), REDIS_REFUSED_MS,
		         0);
		return;
	}
	if (load->error < 0) {
		(void)snprintf(text, sizeof text, "Redis does not have %s of this job.",
		               load->missing);
		run_fail(run, AGENT_MISSING, "payload_missing", span_from(text), 0, 0);
		return;
	}
	if (!run_is_ticket(run)) {
		err = read_envelope(run, &error);
		if (err < 0) {
			run_fail(run, AGENT_FATAL, "malformed", span_from(error.text), 0,
			         0);
			return;
		}
	}
	run->state = RUN_AT_WORK;
	run->context->executor->begin(run);
}

static unsigned
wants_of(const struct run *run)
{
	unsigned wants = run->context->executor->wants;

	if (!run_is_ticket(run))
		return run->px_len > 0 ? wants : wants & ~(unsigned)STORE_SEGMENTS;
	return STORE_SEGMENTS | STORE_BUDGET;
}

void
run_start(struct run *run, struct run_context *context, const struct agent_job *job)
{
	char lane[PROTOCOL_LANE_ID_SIZE];
	struct store_request request;

	VERIFY(run->state == RUN_FREE);
	VERIFY(job->id.len <= sizeof run->id);
	VERIFY(job->px.len <= sizeof run->px);
	*run = (struct run){
		.context = context,
		.state = RUN_LOADING,
		.slot = job->slot,
		.q = job->q,
		.id_len = (uint32_t)job->id.len,
		.px_len = (uint32_t)job->px.len,
		.lane = job->lane,
		.family = job->family,
		.role = job->role,
		.marks = job->marks,
		.slim = job->slim,
		.begin = job->begin,
		.wait_ms = PROTOCOL_UNKNOWN,
		.outcome = { .usage = protocol_usage_none() },
	};
	run->envelope.attempts = ENVELOPE_ATTEMPTS;
	memcpy(run->id, job->id.data, job->id.len);
	if (job->px.len > 0)
		memcpy(run->px, job->px.data, job->px.len);
	if (run_is_ticket(run) && !context->executor->takes_ticket) {
		run_fail(run, AGENT_FATAL, "unsupported",
		         SPAN("This worker's executor sends no warm-up requests."), 0, 0);
		return;
	}
	request = (struct store_request){
		.want = wants_of(run),
		.id = run_id(run),
		.slim = run->slim,
		.px = { run->px, run->px_len },
		.lane = { lane, protocol_print_lane_id(run->lane, lane) },
	};
	if (store_load(context->store, &request, on_loaded, run, &run->load) < 0)
		run_end(run, AGENT_UNFETCHED);
}

void
run_stop(struct run *run)
{
	switch (run->state) {
	case RUN_FREE:
	case RUN_ENDED:
		return;
	case RUN_AT_WORK:
		run->context->executor->stop(run);
		break;
	case RUN_LOADING:
		run->load = store_release(run->load);
		break;
	}
	run_end(run, AGENT_STOPPED);
}

void
run_finish(struct run *run)
{
	VERIFY(run->state == RUN_ENDED);
	if (run->outcome.handle == 0)
		run->report = report_destroy(run->report);
	run->report = NULL; /* AGENT_DROP frees it */
	if (run->reader)
		envelope_fini(run->reader);
	free(run->reader);
	run->reader = NULL;
	run->load = store_release(run->load);
	VERIFY(!run->work);
	run->state = RUN_FREE;
}
