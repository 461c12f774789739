#include "worker/run_http.h"

#include "worker/run_http_inside.h"

#include <stdlib.h>
#include <time.h>

static uint64_t
wall_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void
run_http_free(struct run *run)
{
	struct run_http_work *work = run->work;

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

/* ---- while it runs --------------------------------------------------------------- */

static void
on_sent(void *data)
{
	struct run_http_work *work = data;

	run_sent(work->run);
}

static void
on_status(int status, void *data)
{
	struct run_http_work *work = data;

	work->status = status;
	answer_headers_init(&work->headers, wall_ms());
}

static void
on_header(struct span name, struct span value, void *data)
{
	struct run_http_work *work = data;

	answer_header(&work->headers, name, value);
}

/* Gateways give streams the type of JSON, or none, and the reverse.  No JSON begins with
 * `event`, `data` or with a comment's colon, and no line of a stream with a brace; what
 * raw bytes are only their type says. */
static bool
looks_like_stream(struct span bytes)
{
	static const char *const starts[] = { "event", "data", ":" };

	for (size_t i = 0; i < ARRAY_SIZE(starts); i++) {
		size_t len = MIN(bytes.len, strlen(starts[i]));

		if (memcmp(bytes.data, starts[i], len) == 0)
			return true;
	}
	return false;
}

static bool
is_stream(const struct run_http_work *work, struct span bytes)
{
	bool typed = strcmp(work->headers.content_type, "text/event-stream") == 0;

	bytes = text_trim(bytes);
	if (work->request.upstream->dialect == DIALECT_RAW || bytes.len == 0)
		return typed;
	if (typed)
		return bytes.data[0] != '{' && bytes.data[0] != '<';
	return looks_like_stream(bytes);
}

static struct assemble *
make_assemble(const struct run_http_work *work)
{
	const struct splice_report *report = &work->request.report;
	struct assemble_options options = {
		.dialect = work->request.upstream->dialect,
		.sse = work->is_stream,
		.keep_sse = report->job_streams,
		.hide_usage = report->usage != SPLICE_KEPT,
		.usage_path = span_from(work->request.upstream->config->usage_path),
		.size_max = work->run->context->config->worker.response_size_max,
	};

	return assemble_create(&options);
}

static bool
on_body(struct span bytes, void *data)
{
	struct run_http_work *work = data;
	struct run *run = work->run;
	int err;

	work->size += bytes.len;
	if (!run_http_is_good(work)) {
		run_http_keep_error(work, bytes);
		return true;
	}
	if (!work->assemble) {
		work->is_stream = is_stream(work, bytes);
		work->assemble = make_assemble(work);
	}
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
		struct protocol_usage usage = run_http_told_usage(work);

		work->has_begun = true;
		run_began(run, &usage);
	}
	if (assemble_ended(work->assemble))
		http_whole(work->exchange);
	return true;
}

/* ---- how it begins --------------------------------------------------------------- */

static const struct http_handlers handlers = {
	.on_sent = on_sent,
	.on_status = on_status,
	.on_header = on_header,
	.on_body = on_body,
	.on_done = run_http_done,
};

static void
refuse(struct run *run, int err, const char *why)
{
	/* The scheduler knows this upstream: another worker's configuration may, too. */
	enum agent_end end =
		err == ERR_MEMORY || err == ERR_UNKNOWN_KEY ? AGENT_UNSENT : AGENT_FATAL;
	const char *reason = err == ERR_UNKNOWN_KEY   ? "unknown_upstream"
	                     : err == ERR_UNSUPPORTED ? "unsupported"
	                     : err == ERR_MEMORY      ? "memory"
	                                              : "malformed";

	run->has_missed = err == ERR_UNKNOWN_KEY;
	run_http_fail(run, end, reason, why, RUN_HTTP_UNREACHED_MS,
	              err == ERR_UNKNOWN_KEY ? RUN_HTTP_AWAY_MS : 0);
}

/* What comes as a whole begins when it is ready: then only the time-out counts. */
static uint64_t
first_byte_ms(const struct run_http_work *work)
{
	return work->request.report.streams
	               ? work->request.upstream->config->first_byte_ms
	               : 0;
}

void
run_http_send(struct run *run, unsigned refusals)
{
	struct run_http_work *work = calloc(1, sizeof *work);
	struct http_request request;
	char why[REQUEST_WHY_SIZE];
	int err;

	run->work = work;
	if (!work) {
		refuse(run, ERR_MEMORY, "There was no memory for the request.");
		return;
	}
	work->run = run;
	work->refusals = refusals;
	buffer_init(&work->error_body, RUN_HTTP_ERROR_BODY_MAX);
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
		.timeout_ms = run_timeout_ms(run),
		.first_byte_ms = first_byte_ms(work),
		/* A server that closes idle connections must not end a job by that. */
		.is_fresh = run->load && run->load->attempts > 0,
	};
	err = http_post(run->context->http, &request, &handlers, work, &work->exchange);
	if (err < 0)
		refuse(run, ERR_MEMORY, "The request could not be begun.");
}

static void
begin(struct run *run)
{
	run_http_send(run, 0);
}

static void
stop(struct run *run)
{
	const struct run_http_work *work = run->work;

	if (work)
		run->outcome.usage = run_http_spent_usage(work);
	run_http_free(run);
}

const struct executor run_http_executor = {
	.name = "http",
	.wants = STORE_PAYLOAD | STORE_SEGMENTS | STORE_PAST,
	.takes_ticket = true,
	.needs_keys = true,
	.files_per_slot = 2, /* a connection; a second one while a name is looked up */
	.begin = begin,
	.stop = stop,
};
