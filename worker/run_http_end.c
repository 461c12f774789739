#include "worker/run_http_inside.h"

#include "common/io/log.h"
#include "worker/run_log.h"

#define DEFER_MS     1000   /* pause of an account that did not name one */
#define OVERLOAD_MS  5000   /* the provider as a whole has no room */
#define SPEND_CAP_MS 900000 /* an account out of money: look again in 15 minutes */
#define KEY_MS       300000 /* a key that is refused: people have to act */
#define DEFER_MS_MAX 3600000
#define FOREIGN_MS   600000 /* between two tries of a job that others answered */

/* The end of the run; what the work still holds is freed first, as the outcome may not
 * point into it. */
void
run_http_fail(struct run *run, enum agent_end end, const char *reason, const char *text,
              uint64_t delay_ms, uint64_t park_ms)
{
	char copy[REPORT_TEXT_SIZE];

	(void)snprintf(copy, sizeof copy, "%s", text);
	run_http_free(run);
	run_fail(run, end, reason, span_from(copy), delay_ms, park_ms);
}

static int64_t
limit_of(const struct answer_headers *headers, enum answer_bucket bucket)
{
	return headers->bucket[bucket].limit;
}

/* What is known of usage, and what of it may be told to the scheduler. */
static struct protocol_usage
usage_of(const struct run_http_work *work)
{
	struct protocol_usage usage = protocol_usage_none();
	const struct answer_headers *headers = &work->headers;

	if (work->assemble) {
		const struct usage *known = assemble_usage(work->assemble);

		usage.read = known->read;
		usage.written = known->written;
		usage.uncached = known->uncached;
		usage.output = known->output;
		if (known->written > 0) /* of what was only read it says nothing */
			usage.written_1h = known->written_1h;
		if (known->server_tool)
			usage.server_tool = 1;
	}
	usage.limit_requests = limit_of(headers, ANSWER_REQUESTS);
	usage.left_requests = headers->bucket[ANSWER_REQUESTS].remaining;
	usage.limit_input = limit_of(headers, ANSWER_INPUT);
	usage.limit_output = limit_of(headers, ANSWER_OUTPUT);
	if (usage.limit_input == ANSWER_UNKNOWN)
		usage.limit_input = limit_of(headers, ANSWER_TOKENS);
	return usage;
}

/* Where entries are made at markers only, the figures of a request that could not carry
 * the node's marker prove nothing: neither that it is cached nor that it is not. */
static bool
is_evidence(const struct run_http_work *work)
{
	const struct run *run = work->run;
	unsigned count = run->load->segments_count;

	if (work->request.traits.markers == MARKER_NONE || count == 0)
		return true;
	if (run->role != PROTOCOL_LEAD && run->role != PROTOCOL_CANARY)
		return true;
	return work->request.report.plan.wire & 1u << (count - 1);
}

struct protocol_usage
run_http_told_usage(const struct run_http_work *work)
{
	struct protocol_usage usage = usage_of(work);

	if (!is_evidence(work)) {
		usage.billed_read = usage.read;
		usage.billed_written = usage.written;
		usage.read = PROTOCOL_UNKNOWN;
		usage.written = PROTOCOL_UNKNOWN;
	}
	return usage;
}

/* Of an attempt without an answer: once its request was out and nothing was refused, the
 * provider may bill it, even if it never said how much. */
struct protocol_usage
run_http_spent_usage(const struct run_http_work *work)
{
	struct protocol_usage usage = usage_of(work);

	if (work->run->was_sent && (work->status == 0 || run_http_is_good(work)))
		usage.may_bill = 1;
	return usage;
}

bool
run_http_is_good(const struct run_http_work *work)
{
	return work->status >= 200 && work->status < 300;
}

void
run_http_keep_error(struct run_http_work *work, struct span bytes)
{
	size_t room = RUN_HTTP_ERROR_BODY_MAX - work->error_body.len;

	bytes.len = MIN(bytes.len, room);
	(void)buffer_append(&work->error_body, bytes);
}

/* ---- how it ends ----------------------------------------------------------------- */

static struct report_facts
facts_of(const struct run_http_work *work, const char *state)
{
	struct report_facts facts = run_facts(work->run, state);

	facts.model = request_model(&work->request);
	facts.http_status = work->status;
	facts.request_id = span_from(work->headers.request_id);
	return facts;
}

static enum report_format
format_of(const struct assemble_result *result)
{
	switch (result->format) {
	case ASSEMBLE_JSON:
		return REPORT_JSON;
	case ASSEMBLE_SSE:
		return REPORT_SSE;
	case ASSEMBLE_PLAIN:
		break;
	}
	return report_format_of(result->body);
}

/* A stream that could not be put together again is not asked of this model any more. */
static void
note_stream(struct run_http_work *work, const struct assemble_result *result)
{
	struct run *run = work->run;

	if (!result->why_sse || work->request.report.job_streams ||
	    work->request.upstream->dialect == DIALECT_RAW) /* it was not asked to */
		return;
	refusal_add(&run->context->refusals, work->request.upstream,
	            request_model(&work->request), REFUSAL_STREAM);
	run_log_warning(
		run,
		"a streamed answer could not be assembled; this model is not asked to "
		"stream any more",
		LOG_SPAN("model", request_model(&work->request)),
		LOG_TEXT("reason", result->why_sse));
}

static void
finish_done(struct run_http_work *work, const struct assemble_result *result)
{
	struct run *run = work->run;
	struct report *report;
	struct report_facts facts;

	run->outcome.usage = usage_of(work);
	if (!work->has_begun) {
		struct protocol_usage usage = run_http_told_usage(work);

		run_began(run, &usage);
	}
	if (run_is_ticket(run)) {
		run_http_free(run);
		run_end(run, AGENT_DONE);
		return;
	}
	report = run_report(run);
	facts = facts_of(work, "done");
	note_stream(work, result);
	if (!report ||
	    report_write(report, &facts, format_of(result), result->body) < 0) {
		run_http_fail(run, AGENT_RETRY, "memory",
		              "There was no memory for the result.", 0, 0);
		return;
	}
	run->outcome.usage = run_http_told_usage(work);
	run_http_free(run);
	run_end(run, AGENT_DONE);
}

/* Paid work is never done twice because its result is large. */
static void
finish_too_large(struct run_http_work *work)
{
	struct assemble_result result = {
		.format = ASSEMBLE_PLAIN,
		.body = { "", work->size > REPORT_RESULT_MAX ? (size_t)work->size
		                                             : REPORT_RESULT_MAX + 1 },
		.complete = true,
	};
	struct run *run = work->run;
	struct report *report = run_report(run);
	struct report_facts facts;

	run->outcome.usage = usage_of(work);
	if (run_is_ticket(run) || !report) {
		run_http_free(run);
		run_end(run, AGENT_DONE);
		return;
	}
	facts = facts_of(work, "done");
	if (report_write(report, &facts, REPORT_TEXT, result.body) < 0)
		buffer_clear(&report->result);
	run_http_free(run);
	run_end(run, AGENT_DONE);
}

static unsigned
refusal_for(enum answer_addition addition)
{
	switch (addition) {
	case ANSWER_ADDED_MARKER:
		return REFUSAL_MARKERS;
	case ANSWER_ADDED_CACHE_KEY:
		return REFUSAL_CACHE_KEY;
	case ANSWER_ADDED_USAGE:
		return REFUSAL_USAGE;
	case ANSWER_ADDED_STREAM:
		return REFUSAL_STREAM;
	case ANSWER_ADDED_NONE:
		break;
	}
	return 0;
}

/* Whether the request had this addition at all; else the fault is the job's own. */
static bool
was_added(const struct splice_report *report, enum answer_addition addition)
{
	switch (addition) {
	case ANSWER_ADDED_MARKER:
		return report->plan.insert != 0 || report->mode != SPLICE_KEPT;
	case ANSWER_ADDED_CACHE_KEY:
		return report->key != SPLICE_KEPT;
	case ANSWER_ADDED_USAGE:
		return report->usage != SPLICE_KEPT;
	case ANSWER_ADDED_STREAM:
		return report->stream != SPLICE_KEPT;
	case ANSWER_ADDED_NONE:
		break;
	}
	return false;
}

/* Each refusal costs one addition, until none is left.  The bound is for a list of
 * refusals that is full, and forgets. */
static bool
send_without(struct run_http_work *work, const struct answer *answer)
{
	struct run *run = work->run;
	unsigned refusals = work->refusals + 1;

	if (refusals > REFUSAL_KINDS ||
	    !was_added(&work->request.report, answer->addition))
		return false;
	run_log_warning(
		run,
		"a model refused what was added to a request; it is left out from now on",
		LOG_TEXT("upstream", work->request.upstream->config->name),
		LOG_SPAN("model", request_model(&work->request)),
		LOG_TEXT("answer", answer->text));
	refusal_add(&run->context->refusals, work->request.upstream,
	            request_model(&work->request), refusal_for(answer->addition));
	run_http_free(run);
	run_http_send(run, refusals);
	return true;
}

static uint64_t
wait_ms(const struct answer *answer, uint64_t fallback_ms)
{
	if (answer->after_ms == ANSWER_UNKNOWN)
		return fallback_ms;
	return MIN((uint64_t)answer->after_ms, DEFER_MS_MAX);
}

/* The body of the error goes into the result, in case the job ends with it. */
static void
write_dead(struct run_http_work *work, const char *reason, const struct answer *answer)
{
	struct run *run = work->run;
	struct report *report = run_report(run);
	struct report_facts facts;

	if (!report || run_is_ticket(run))
		return;
	facts = facts_of(work, "dead");
	facts.reason = reason;
	facts.text = answer->text;
	if (report_write(report, &facts, report_format_of(buffer_span(&work->error_body)),
	                 buffer_span(&work->error_body)) < 0)
		buffer_clear(&report->result);
}

/* The provider was not reached, though something else was: nothing is charged, and other
 * jobs would fare no better.  Should it be the provider after all, one job is not paid
 * for again and again: its tries come further and further apart. */
static void
finish_foreign(struct run_http_work *work, const struct answer *answer)
{
	struct run *run = work->run;
	uint32_t doublings = run->load ? MIN(run->load->deliveries, 16) : 0;
	uint64_t delay_ms = (uint64_t)RUN_HTTP_UNREACHED_MS << doublings;

	log_warning("something answers in place of the provider; its jobs wait",
	            LOG_TEXT("upstream", work->request.upstream->config->name),
	            LOG_TEXT("answer", answer->text));
	run->outcome.usage = usage_of(work);
	run->has_missed = true;
	write_dead(work, answer->type, answer);
	run_http_fail(run, AGENT_UNSENT, "unreached", answer->text,
	              MIN(delay_ms, FOREIGN_MS), RUN_HTTP_AWAY_MS);
}

static void
finish_bad(struct run_http_work *work, struct answer *answer)
{
	struct run *run = work->run;
	const char *name = work->request.upstream->config->name;

	run->outcome.usage = run_http_spent_usage(work);
	switch (answer->kind) {
	case ANSWER_OK:
	case ANSWER_RETRY:
		write_dead(work, answer->type, answer);
		run_http_fail(run, AGENT_RETRY, answer->type, answer->text,
		              wait_ms(answer, 0), 0);
		return;
	case ANSWER_DEFER:
		write_dead(work, answer->type, answer);
		run_http_fail(
			run, AGENT_DEFER, answer->overloaded ? "529" : "429",
			answer->text, 0,
			wait_ms(answer, answer->overloaded ? OVERLOAD_MS : DEFER_MS));
		return;
	case ANSWER_SPEND_CAP:
		log_error(
			"the account's spend limit is reached; it rests. Raise it at the "
			"provider, then say: warmq budget unpark",
			LOG_TEXT("upstream", name), LOG_TEXT("answer", answer->text),
			LOG_NUMBER("rest_ms", SPEND_CAP_MS));
		run_http_fail(run, AGENT_DEFER, "spend", answer->text, 0, SPEND_CAP_MS);
		return;
	case ANSWER_KEY:
		log_error("the provider refuses the key; set another one and restart the "
		          "worker",
		          LOG_TEXT("upstream", name), LOG_TEXT("answer", answer->text),
		          LOG_NUMBER("rest_ms", KEY_MS));
		run_http_fail(run, AGENT_DEFER, "key", answer->text, 0, KEY_MS);
		return;
	case ANSWER_BAD_MARKER:
		if (send_without(work, answer))
			return;
		answer_blame_job(answer);
		write_dead(work, "refused", answer);
		run_http_fail(run, AGENT_FATAL, "refused", answer->text, 0, 0);
		return;
	case ANSWER_FOREIGN:
		finish_foreign(work, answer);
		return;
	case ANSWER_FATAL:
	case ANSWER_COUNT:
		break;
	}
	write_dead(work, answer->type, answer);
	run_http_fail(run, AGENT_FATAL, answer->type, answer->text, 0, 0);
}

/* Errors go to logs and into Redis, so what is secret in them goes first. */
static void
classify(struct run_http_work *work, int status)
{
	const struct upstream_list *upstreams = work->run->context->upstreams;
	struct answer answer;

	upstream_redact(upstreams, work->error_body.data, work->error_body.len);
	upstream_redact(upstreams, work->headers.request_id,
	                strlen(work->headers.request_id));
	answer_classify(work->request.upstream->dialect, status, &work->headers,
	                buffer_span(&work->error_body), &answer);
	finish_bad(work, &answer);
}

/* What raw bytes should look like nobody knows, nor how their streams end: all that came
 * is the answer. */
static bool
is_whole(const struct run_http_work *work, const struct assemble_result *result)
{
	if (work->request.upstream->dialect == DIALECT_RAW)
		return true;
	return work->assemble && result->complete;
}

/* A job that ends dead for it shows what came: a page of a proxy, an answer in some other
 * format. */
static void
finish_unfinished(struct run_http_work *work, const struct assemble_result *result)
{
	struct answer answer = {
		.kind = ANSWER_RETRY,
		.after_ms = ANSWER_UNKNOWN,
		.type = "cut_off",
		.text = "The provider's stream ended in the middle of the answer.",
	};
	static const struct answer silence = {
		.kind = ANSWER_RETRY,
		.after_ms = ANSWER_UNKNOWN,
		.type = "no_answer",
		.text = "The provider's stream ended without an answer.",
	};

	run_http_keep_error(work, result->body);
	upstream_redact(work->run->context->upstreams, work->error_body.data,
	                work->error_body.len);
	if (work->is_stream && result->silent)
		answer = silence;
	else if (!work->is_stream)
		answer_classify_strange(work->status, &work->headers,
		                        buffer_span(&work->error_body), &answer);
	finish_bad(work, &answer);
}

static void
finish_good(struct run_http_work *work)
{
	struct assemble_result result = { .format = ASSEMBLE_PLAIN, .complete = true };
	struct run *run = work->run;

	if (work->assemble && assemble_finish(work->assemble, &result) < 0) {
		run->outcome.usage = run_http_spent_usage(work);
		run_http_fail(run, AGENT_RETRY, "memory",
		              "There was no memory for the answer.", 0, 0);
		return;
	}
	if (result.error.len > 0) {
		run_http_keep_error(work, result.error);
		classify(work, 200);
		return;
	}
	if (!is_whole(work, &result)) {
		finish_unfinished(work, &result);
		return;
	}
	finish_done(work, &result);
}

/* We had enough of it. */
static void
finish_stopped(struct run_http_work *work)
{
	work->run->outcome.usage = run_http_spent_usage(work);
	if (work->is_too_large)
		finish_too_large(work);
	else
		run_http_fail(work->run, AGENT_RETRY, "memory",
		              "There was no memory for the answer.", 0, 0);
}

/* For want of files of ours it is no news for the scheduler: nobody else is away. */
static void
finish_unreached(struct run_http_work *work, const struct http_outcome *outcome)
{
	char text[REPORT_TEXT_SIZE];

	(void)snprintf(text, sizeof text, "The provider was not reached: %s.",
	               outcome->text);
	work->run->has_missed = true;
	run_http_fail(work->run, AGENT_UNSENT,
	              outcome->lacks_files ? "files" : "unreached", text,
	              RUN_HTTP_UNREACHED_MS, outcome->lacks_files ? 0 : RUN_HTTP_AWAY_MS);
}

/* The request was out: `text` says what became of it. */
static void
finish_lost(struct run_http_work *work, const char *reason, const char *text,
            uint64_t park_ms)
{
	work->run->outcome.usage = run_http_spent_usage(work);
	run_http_fail(work->run, AGENT_RETRY, reason, text, 0, park_ms);
}

static void
finish_timed_out(struct run_http_work *work)
{
	char text[REPORT_TEXT_SIZE];

	(void)snprintf(
		text, sizeof text,
		"The job's time-out of %llu ms passed before the answer was whole.",
		(unsigned long long)run_timeout_ms(work->run));
	finish_lost(work, "timeout", text, work->status == 0 ? RUN_HTTP_AWAY_MS : 0);
}

static void
finish_silent(struct run_http_work *work)
{
	const struct config_upstream *upstream = work->request.upstream->config;
	char text[REPORT_TEXT_SIZE];

	(void)snprintf(text, sizeof text,
	               "Not a byte of the answer came within upstreams.%s.first_byte, "
	               "%llu ms.",
	               upstream->name, (unsigned long long)upstream->first_byte_ms);
	finish_lost(work, "timeout", text, RUN_HTTP_AWAY_MS);
}

static void
finish_broken(struct run_http_work *work, const struct http_outcome *outcome)
{
	char text[REPORT_TEXT_SIZE];

	(void)snprintf(text, sizeof text, "The connection broke off: %s.", outcome->text);
	finish_lost(work, "broken_off", text, 0);
}

static bool
ended_badly(const struct http_outcome *outcome)
{
	return outcome->end == HTTP_BROKEN || outcome->end == HTTP_TIMED_OUT;
}

void
run_http_done(const struct http_outcome *outcome, void *data)
{
	struct run_http_work *work = data;

	work->exchange = NULL;
	if (ended_badly(outcome) && work->assemble &&
	    assemble_is_settled(work->assemble)) {
		finish_good(work);
		return;
	}
	switch (outcome->end) {
	case HTTP_ANSWERED:
		if (run_http_is_good(work))
			finish_good(work);
		else
			classify(work, work->status);
		return;
	case HTTP_STOPPED:
		finish_stopped(work);
		return;
	case HTTP_UNREACHED:
		finish_unreached(work, outcome);
		return;
	case HTTP_TIMED_OUT:
		finish_timed_out(work);
		return;
	case HTTP_SILENT:
		finish_silent(work);
		return;
	case HTTP_BROKEN:
		finish_broken(work, outcome);
		return;
	}
}
