#include "worker/run_http.h"

#include "common/codec/answer.h"
#include "common/codec/assemble.h"
#include "common/io/log.h"
#include "worker/request.h"

#include <stdlib.h>
#include <time.h>

#define ERROR_BODY_MAX ((size_t)64 << 10)
#define UNREACHED_MS   2000   /* before a request that found nobody is tried again */
#define DEFER_MS       1000   /* pause of an account that did not name one */
#define OVERLOAD_MS    5000   /* the provider as a whole has no room */
#define SPEND_CAP_MS   900000 /* an account out of money: look again in 15 minutes */
#define KEY_MS         300000 /* a key that is refused: people have to act */
#define DEFER_MS_MAX   3600000

struct work {
	struct run *run;
	struct request request;
	struct http_exchange *exchange;
	struct answer_headers headers;
	int status;
	struct assemble *assemble; /* of a good answer */
	struct buffer error_body;  /* of a bad one */
	bool has_begun;
	bool is_too_large;
	bool is_second; /* sent again without what was refused */
	uint64_t size;  /* of the answer so far */
};

static uint64_t
wall_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void
free_work(struct run *run)
{
	struct work *work = run->work;

	if (!work)
		return;
	if (work->exchange)
		http_cancel(work->exchange);
	work->assemble = assemble_destroy(work->assemble);
	buffer_fini(&work->error_body);
	request_fini(&work->request);
	free(work);
	run->work = NULL;
}

/* The end of the run; what the work still holds is freed first, as the outcome may not
 * point into it. */
static void
fail(struct run *run, enum agent_end end, const char *reason, const char *text,
     uint64_t delay_ms, uint64_t park_ms)
{
	char copy[REPORT_TEXT_SIZE];

	(void)snprintf(copy, sizeof copy, "%s", text);
	free_work(run);
	run_fail(run, end, reason, span_from(copy), delay_ms, park_ms);
}

/* ---- while it runs --------------------------------------------------------------- */

static void
on_sent(void *data)
{
	struct work *work = data;

	run_sent(work->run);
}

static void
on_status(int status, void *data)
{
	struct work *work = data;

	work->status = status;
	answer_headers_init(&work->headers, wall_ms());
}

static void
on_header(struct span name, struct span value, void *data)
{
	struct work *work = data;

	answer_header(&work->headers, name, value);
}

static int64_t
limit_of(const struct answer_headers *headers, enum answer_bucket bucket)
{
	return headers->bucket[bucket].limit;
}

static struct protocol_usage
usage_of(const struct work *work)
{
	struct protocol_usage usage = protocol_usage_none();
	const struct answer_headers *headers = &work->headers;

	if (work->assemble) {
		const struct usage *known = assemble_usage(work->assemble);

		usage.read = known->read;
		usage.written = known->written;
		usage.uncached = known->uncached;
		usage.output = known->output;
	}
	usage.limit_requests = limit_of(headers, ANSWER_REQUESTS);
	usage.limit_input = limit_of(headers, ANSWER_INPUT);
	usage.limit_output = limit_of(headers, ANSWER_OUTPUT);
	if (usage.limit_input == ANSWER_UNKNOWN)
		usage.limit_input = limit_of(headers, ANSWER_TOKENS);
	return usage;
}

/* Where entries are made at markers only, the figures of a request that could not carry
 * the node's marker prove nothing: neither that it is cached nor that it is not. */
static bool
is_evidence(const struct work *work)
{
	const struct run *run = work->run;
	unsigned count = run->load->segments_count;

	if (work->request.traits.markers == MARKER_NONE || count == 0)
		return true;
	if (run->role != PROTOCOL_LEAD && run->role != PROTOCOL_CANARY)
		return true;
	return work->request.report.plan.wire & 1u << (count - 1);
}

static struct protocol_usage
told_usage_of(const struct work *work)
{
	struct protocol_usage usage = usage_of(work);

	if (!is_evidence(work)) {
		usage.read = PROTOCOL_UNKNOWN;
		usage.written = PROTOCOL_UNKNOWN;
	}
	return usage;
}

static bool
is_good(const struct work *work)
{
	return work->status >= 200 && work->status < 300;
}

static bool
is_stream(const struct work *work)
{
	return strcmp(work->headers.content_type, "text/event-stream") == 0;
}

static struct assemble *
make_assemble(const struct work *work)
{
	const struct splice_report *report = &work->request.report;
	struct assemble_options options = {
		.dialect = work->request.upstream->dialect,
		.sse = is_stream(work),
		.keep_sse = report->job_streams,
		.hide_usage = report->usage != SPLICE_KEPT,
		.size_max = work->run->context->config->worker.response_size_max,
	};

	return assemble_create(&options);
}

static bool
keep_error_body(struct work *work, struct span bytes)
{
	size_t room = ERROR_BODY_MAX - work->error_body.len;

	bytes.len = MIN(bytes.len, room);
	(void)buffer_append(&work->error_body, bytes);
	return true;
}

static bool
on_body(struct span bytes, void *data)
{
	struct work *work = data;
	struct run *run = work->run;
	int err;

	work->size += bytes.len;
	if (!is_good(work))
		return keep_error_body(work, bytes);
	if (!work->assemble)
		work->assemble = make_assemble(work);
	if (!work->assemble)
		return false;
	err = assemble_feed(work->assemble, bytes);
	if (err == ERR_LIMIT) {
		work->is_too_large = true;
		return false;
	}
	if (err == ERR_MEMORY)
		return false;
	if (!work->has_begun && assemble_began(work->assemble)) {
		struct protocol_usage usage = told_usage_of(work);

		work->has_begun = true;
		run_began(run, &usage);
	}
	return true;
}

/* ---- how it ends ----------------------------------------------------------------- */

static struct report_facts
facts_of(const struct work *work, const char *state)
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
note_stream(struct work *work, const struct assemble_result *result)
{
	struct run *run = work->run;

	if (!result->why_sse || work->request.report.job_streams)
		return;
	refusal_add(&run->context->refusals, work->request.upstream,
	            request_model(&work->request), REFUSAL_STREAM);
	log_warning(
		"a streamed answer could not be assembled; this model is not asked to "
		"stream any more",
		LOG_TEXT("upstream", work->request.upstream->config->name),
		LOG_SPAN("model", request_model(&work->request)),
		LOG_TEXT("reason", result->why_sse));
}

static void
finish_done(struct work *work, const struct assemble_result *result)
{
	struct run *run = work->run;
	struct report *report;
	struct report_facts facts;

	run->outcome.usage = usage_of(work);
	if (!work->has_begun) {
		struct protocol_usage usage = told_usage_of(work);

		run_began(run, &usage);
	}
	if (run_is_ticket(run)) {
		free_work(run);
		run_end(run, AGENT_DONE);
		return;
	}
	report = run_report(run);
	facts = facts_of(work, "done");
	note_stream(work, result);
	if (!report ||
	    report_write(report, &facts, format_of(result), result->body) < 0) {
		fail(run, AGENT_RETRY, "memory", "There was no memory for the result.", 0,
		     0);
		return;
	}
	run->outcome.usage = told_usage_of(work);
	free_work(run);
	run_end(run, AGENT_DONE);
}

/* Paid work is never done twice because its result is large. */
static void
finish_too_large(struct work *work)
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
		free_work(run);
		run_end(run, AGENT_DONE);
		return;
	}
	facts = facts_of(work, "done");
	if (report_write(report, &facts, REPORT_TEXT, result.body) < 0)
		buffer_clear(&report->result);
	free_work(run);
	run_end(run, AGENT_DONE);
}

static void send_request(struct run *run, bool is_second);

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

static bool
send_without(struct work *work, const struct answer *answer)
{
	struct run *run = work->run;

	if (work->is_second || !was_added(&work->request.report, answer->addition))
		return false;
	log_warning(
		"a model refused what was added to a request; it is left out from now on",
		LOG_TEXT("upstream", work->request.upstream->config->name),
		LOG_SPAN("model", request_model(&work->request)),
		LOG_TEXT("answer", answer->text));
	refusal_add(&run->context->refusals, work->request.upstream,
	            request_model(&work->request), refusal_for(answer->addition));
	free_work(run);
	send_request(run, true);
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
write_dead(struct work *work, const char *reason, const struct answer *answer)
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

static void
finish_bad(struct work *work, const struct answer *answer)
{
	struct run *run = work->run;
	const char *name = work->request.upstream->config->name;

	run->outcome.usage = usage_of(work);
	switch (answer->kind) {
	case ANSWER_OK:
	case ANSWER_RETRY:
		write_dead(work, answer->type, answer);
		fail(run, AGENT_RETRY, answer->type, answer->text, wait_ms(answer, 0), 0);
		return;
	case ANSWER_DEFER:
		write_dead(work, answer->type, answer);
		fail(run, AGENT_DEFER, answer->overloaded ? "529" : "429", answer->text,
		     0, wait_ms(answer, answer->overloaded ? OVERLOAD_MS : DEFER_MS));
		return;
	case ANSWER_SPEND_CAP:
		log_error("the account's spend limit is reached; it rests",
		          LOG_TEXT("upstream", name), LOG_TEXT("answer", answer->text),
		          LOG_NUMBER("rest_ms", SPEND_CAP_MS));
		fail(run, AGENT_DEFER, "spend", answer->text, 0, SPEND_CAP_MS);
		return;
	case ANSWER_KEY:
		log_error("the provider refuses the key; set another one and restart the "
		          "worker",
		          LOG_TEXT("upstream", name), LOG_TEXT("answer", answer->text),
		          LOG_NUMBER("rest_ms", KEY_MS));
		fail(run, AGENT_DEFER, "key", answer->text, 0, KEY_MS);
		return;
	case ANSWER_BAD_MARKER:
		if (send_without(work, answer))
			return;
		write_dead(work, "refused", answer);
		fail(run, AGENT_FATAL, "refused", answer->text, 0, 0);
		return;
	case ANSWER_FATAL:
	case ANSWER_COUNT:
		break;
	}
	write_dead(work, answer->type, answer);
	fail(run, AGENT_FATAL, answer->type, answer->text, 0, 0);
}

static void
classify(struct work *work, int status, struct span body)
{
	struct answer answer;

	answer_classify(work->request.upstream->dialect, status, &work->headers, body,
	                &answer);
	finish_bad(work, &answer);
}

/* What raw bytes should look like nobody knows: all that came is the answer. */
static bool
is_whole(const struct work *work, const struct assemble_result *result)
{
	return result->complete ||
	       (work->request.upstream->dialect == DIALECT_RAW && !is_stream(work));
}

static void
finish_good(struct work *work)
{
	struct assemble_result result = { .format = ASSEMBLE_PLAIN, .complete = true };
	struct run *run = work->run;

	if (work->assemble && assemble_finish(work->assemble, &result) < 0) {
		fail(run, AGENT_RETRY, "memory", "There was no memory for the answer.", 0,
		     0);
		return;
	}
	if (result.error.len > 0) {
		(void)keep_error_body(work, result.error);
		classify(work, 200, result.error);
		return;
	}
	if (!is_whole(work, &result)) {
		run->outcome.usage = usage_of(work);
		fail(run, AGENT_RETRY, is_stream(work) ? "cut_off" : "not_json",
		     is_stream(work)
		             ? "The provider's stream ended in the middle of the answer."
		             : "The provider's answer is not what it should be: no JSON.",
		     0, 0);
		return;
	}
	finish_done(work, &result);
}

static void
on_done(const struct http_outcome *outcome, void *data)
{
	struct work *work = data;
	struct run *run = work->run;
	char text[REPORT_TEXT_SIZE];

	work->exchange = NULL;
	switch (outcome->end) {
	case HTTP_ANSWERED:
		if (is_good(work))
			finish_good(work);
		else
			classify(work, work->status, buffer_span(&work->error_body));
		return;
	case HTTP_STOPPED:
		if (work->is_too_large)
			finish_too_large(work);
		else
			fail(run, AGENT_RETRY, "memory",
			     "There was no memory for the answer.", 0, 0);
		return;
	case HTTP_UNREACHED:
		(void)snprintf(text, sizeof text, "The provider was not reached: %s.",
		               outcome->text);
		fail(run, AGENT_UNSENT, "unreached", text, UNREACHED_MS, 0);
		return;
	case HTTP_TIMED_OUT:
		run->outcome.usage = usage_of(work);
		(void)snprintf(
			text, sizeof text,
			"The job's time-out of %llu ms passed before the answer was "
			"whole.",
			(unsigned long long)run->envelope.timeout_ms);
		fail(run, AGENT_RETRY, "timeout", text, 0, 0);
		return;
	case HTTP_BROKEN:
		run->outcome.usage = usage_of(work);
		(void)snprintf(text, sizeof text, "The connection broke off: %s.",
		               outcome->text);
		fail(run, AGENT_RETRY, "broken_off", text, 0, 0);
		return;
	}
}

/* ---- how it begins --------------------------------------------------------------- */

static const struct http_handlers handlers = {
	.on_sent = on_sent,
	.on_status = on_status,
	.on_header = on_header,
	.on_body = on_body,
	.on_done = on_done,
};

static uint64_t
timeout_ms(const struct run *run)
{
	if (run_is_ticket(run) || run->envelope.timeout_ms == 0)
		return run->context->config->worker.timeout_ms;
	return run->envelope.timeout_ms;
}

static void
refuse(struct run *run, int err, const char *why)
{
	enum agent_end end = err == ERR_MEMORY ? AGENT_UNSENT : AGENT_FATAL;
	const char *reason = err == ERR_UNKNOWN_KEY   ? "unknown_upstream"
	                     : err == ERR_UNSUPPORTED ? "unsupported"
	                     : err == ERR_MEMORY      ? "memory"
	                                              : "malformed";

	fail(run, end, reason, why, UNREACHED_MS, 0);
}

static void
send_request(struct run *run, bool is_second)
{
	struct work *work = calloc(1, sizeof *work);
	struct http_request request;
	char why[REQUEST_WHY_SIZE];
	int err;

	run->work = work;
	if (!work) {
		refuse(run, ERR_MEMORY, "There was no memory for the request.");
		return;
	}
	work->run = run;
	work->is_second = is_second;
	buffer_init(&work->error_body, ERROR_BODY_MAX);
	answer_headers_init(&work->headers, wall_ms());
	err = request_build(run, &work->request, why);
	if (err < 0) {
		refuse(run, err, why);
		return;
	}
	request = (struct http_request){
		.url = work->request.upstream->url,
		.headers = work->request.headers,
		.body = buffer_span(&work->request.body),
		.timeout_ms = timeout_ms(run),
	};
	err = http_post(run->context->http, &request, &handlers, work, &work->exchange);
	if (err < 0)
		refuse(run, ERR_MEMORY, "The request could not be begun.");
}

static void
begin(struct run *run)
{
	send_request(run, false);
}

const struct executor run_http_executor = {
	.name = "http",
	.wants = STORE_PAYLOAD | STORE_SEGMENTS | STORE_PAST,
	.takes_ticket = true,
	.needs_keys = true,
	.begin = begin,
	.stop = free_work,
};
