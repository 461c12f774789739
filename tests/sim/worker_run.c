#include "tests/sim/worker_run.h"

#include "common/codec/protocol.h"
#include "tests/sim/payload.h"
#include "tests/sim/producer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define TAG_OURS      (1ull << 63)
#define TAG_KIND_AT   56
#define BODY_MAX      ((size_t)1 << 20)
#define PARK_MS       1000  /* a 429 without retry-after */
#define SPEND_MS      60000 /* nobody pays that quickly */
#define RESULT_TTL_MS 3600000
#define UNREACHED_MS  2000

enum fetch {
	FETCH_PAYLOAD,
	FETCH_SEGMENTS,
	FETCH_PAST,
};

bool
worker_run_owns_tag(uint64_t tag)
{
	return (tag & TAG_OURS) != 0;
}

static void
clear(struct worker_run *run)
{
	buffer_fini(&run->body);
	for (size_t i = 0; i < WORKER_RUN_SEGMENTS_MAX; i++)
		buffer_fini(&run->segments[i]);
	*run = (struct worker_run){ .worker = run->worker, .number = run->number };
}

void
worker_run_drop(struct worker_run *run)
{
	if (run->phase == WORKER_RUN_SENT)
		site_hang_up(run->call);
	clear(run);
}

/* The last word about a run. */
static void
end(struct worker_run *run, struct agent_outcome outcome)
{
	struct worker_host *worker = run->worker;
	uint32_t slot = run->slot;
	uint64_t q = run->q;

	outcome.attempts = run->attempts;
	outcome.attempts_max = run->attempts_max;
	trace_line(worker->trace, "%s %s ends %d %.*s", worker->name, run->id,
	           (int)outcome.end, (int)outcome.reason.len, outcome.reason.data);
	run->phase = WORKER_RUN_NONE;
	agent_ended(worker->agent, worker_host_now_ms(worker), slot, q, &outcome);
	clear(run);
}

static void
end_as(struct worker_run *run, enum agent_end how, const char *reason)
{
	end(run, (struct agent_outcome){
			 .end = how,
			 .reason = span_from(reason),
			 .usage = protocol_usage_none(),
		 });
}

static int64_t
limit_of(const struct worker_run *run, enum limit_bucket bucket)
{
	uint32_t limit = run->worker->weather->provider.limits[0].per_minute[bucket];

	return limit > 0 ? (int64_t)limit : PROTOCOL_UNKNOWN;
}

static struct protocol_usage
usage_of(const struct worker_run *run, bool complete)
{
	const struct cache_usage *seen = &run->call->answer.usage;
	struct protocol_usage usage = protocol_usage_none();

	if (run->worker->weather->tells_limits) {
		usage.limit_requests = limit_of(run, LIMIT_BUCKET_REQUESTS);
		usage.limit_input = limit_of(run, LIMIT_BUCKET_INPUT);
		usage.limit_output = limit_of(run, LIMIT_BUCKET_OUTPUT);
	}
	usage.sent_ms = (int64_t)run->sent_ms;
	if (run->first_ms != 0)
		usage.first_ms = (int64_t)run->first_ms;
	if (complete)
		usage.output = run->call->ask.output_tokens;
	if (!seen->known)
		return usage;
	usage.read = seen->read_tokens;
	usage.written = seen->written_tokens + run->tool_tokens;
	usage.uncached = seen->uncached_tokens;
	return usage;
}

static void
on_first(void *context, struct site_call *call)
{
	struct worker_host *worker = context;
	struct worker_run *run = &worker->runs[call->ask.slot];
	struct protocol_usage usage;

	VERIFY(run->call == call);
	run->first_ms = worker_host_now_ms(worker);
	usage = usage_of(run, false);
	agent_began(worker->agent, run->first_ms, run->slot, run->q, &usage);
	worker_host_pump(worker);
}

static void
end_done(struct worker_run *run)
{
	struct worker_result *result;

	if (run->first_ms == 0)
		run->first_ms = worker_host_now_ms(run->worker);
	if (run->ticket) {
		end(run, (struct agent_outcome){ .end = AGENT_DONE,
		                                 .usage = usage_of(run, true) });
		return;
	}
	result = worker_host_result(run->worker, run->id, run->reply);
	end(run, (struct agent_outcome){
			 .end = AGENT_DONE,
			 .handle = result->handle,
			 .usage = usage_of(run, true),
			 .reply = span_from(result->reply),
			 .result_ttl_ms = RESULT_TTL_MS,
			 .result = span_from(result->text),
		 });
}

/* It was sent: that tells a refusal from a request that could not be made. */
static void
end_refused(struct worker_run *run)
{
	struct protocol_usage usage = protocol_usage_none();

	usage.sent_ms = (int64_t)run->sent_ms;
	end(run, (struct agent_outcome){
			 .end = AGENT_FATAL,
			 .reason = SPAN("400"),
			 .usage = usage,
		 });
}

/* 429 and overload: the job is as good as before, the account rests. */
static void
end_deferred(struct worker_run *run, const struct site_end *how)
{
	uint64_t park_ms = how->retry_after_us / 1000;

	if (park_ms == 0)
		park_ms = how->spend_cap ? SPEND_MS : PARK_MS;
	end(run, (struct agent_outcome){
			 .end = AGENT_DEFER,
			 .park_ms = park_ms,
			 .reason = span_from(how->spend_cap       ? "spend"
	                                     : how->status == 429 ? "429"
	                                                          : "529"),
			 .usage = protocol_usage_none(),
		 });
}

static void
on_end(void *context, struct site_call *call, const struct site_end *how)
{
	struct worker_host *worker = context;
	struct worker_run *run = &worker->runs[call->ask.slot];

	VERIFY(run->call == call);
	if (how->refused)
		end_as(run, AGENT_UNSENT, "refused");
	else if (how->status == 200)
		end_done(run);
	else if (how->status == 0)
		end_as(run, AGENT_RETRY, "connection");
	else if (how->status == 400)
		end_refused(run);
	else if (how->status == 500)
		end_as(run, AGENT_RETRY, "5xx");
	else
		end_deferred(run, how);
	worker_host_pump(worker);
}

static void
on_timeout(void *context, uint64_t number)
{
	struct worker_run *run = context;

	if (run->number != number || run->phase != WORKER_RUN_SENT)
		return;
	if (run->worker->agenda->now_us < run->worker->frozen_until_us) {
		agenda_at(run->worker->agenda, run->worker->frozen_until_us, on_timeout,
		          run, number);
		return;
	}
	site_hang_up(run->call);
	end_as(run, AGENT_RETRY, "timeout");
	worker_host_pump(run->worker);
}

/* The model's name stands in the bytes of the request, wherever it was split. */
static struct span
find_model(const struct worker_run *run)
{
	static const char KEY[] = "\"model\":\"";

	for (uint32_t i = 0; i <= run->segments_count; i++) {
		const struct buffer *part =
			i < run->segments_count ? &run->segments[i] : &run->body;
		const char *at = strstr(buffer_text(part), KEY);
		const char *close = at ? strchr(at + sizeof KEY - 1, '"') : NULL;

		if (close)
			return (struct span){ at + sizeof KEY - 1,
				              (size_t)(close - at) - sizeof KEY + 1 };
	}
	return (struct span){ 0 };
}

static uint32_t
tokens_of(const struct worker_run *run, size_t len)
{
	return (uint32_t)(len * run->worker->weather->tokens_per_kb / 1024);
}

/* Markers of the user's at the boundaries are kept in the third column of an own value,
 * one letter for T, S and M. */
static bool
is_marked(const struct worker_run *run, uint32_t segment)
{
	static const char TIERS[] = "TSM";
	const char *own = buffer_text(&run->body);
	const char *tier = strchr(TIERS, run->tiers[segment]);

	if ((run->marks >> segment & 1) != 0)
		return true;
	if (strncmp(own, "own1 ", 5) != 0 || run->body.len < 10 || !tier || *tier == '\0')
		return false;
	return own[7 + (tier - TIERS)] != '-';
}

/* What the provider will see. */
static void
fill_ask(const struct worker_run *run, struct site_ask *ask)
{
	struct span model = find_model(run);
	struct id_hash hash;
	bool is_openai = model.len > 0 && model.data[0] == 'o';
	uint32_t at = 0;

	id_hash_init(&hash, 0);
	*ask = (struct site_ask){
		.scope = id_of(model, 1).low,
		.mode = is_openai ? CACHE_MODE_IMPLICIT : CACHE_MODE_MARKERS,
		.minimum_tokens = 1024,
		.account = is_openai,
		.class = model.len > 0 ? (uint32_t)model.data[model.len - 1] % 4 : 0,
		.output_tokens = run->ticket ? 0 : run->worker->weather->output_tokens,
		.streams = !run->ticket,
		.slot = run->slot,
		.q = run->q,
	};
	(void)snprintf(ask->id, sizeof ask->id, "%s", run->id);
	for (; at < run->segments_count; at++) {
		bool marked = is_marked(run, at) ||
		              (run->ticket && at + 1 == run->segments_count);

		id_hash_field(&hash, buffer_span(&run->segments[at]));
		ask->blocks[at] = (struct cache_block){
			.hash = id_hash_final(&hash),
			.tokens = tokens_of(run, run->segments[at].len),
			.marker = marked ? CACHE_MARKER_5M : CACHE_MARKER_NONE,
		};
	}
	id_hash_field(&hash, buffer_span(&run->body));
	ask->blocks[at] = (struct cache_block){
		.hash = id_hash_final(&hash),
		.tokens = run->segments_count > 0 ? 100 : tokens_of(run, run->body.len),
	};
	ask->blocks_count = at + 1;
}

static uint32_t
draw_tool_tokens(const struct worker_run *run)
{
	struct worker_host *worker = run->worker;
	uint32_t permille = worker->weather->tools_permille;

	if (permille == 0 || run->ticket || !prng_chance(&worker->prng, permille))
		return 0;
	return (uint32_t)prng_between(&worker->prng, 100, 10000);
}

static bool
is_cut_off(const struct worker_host *worker)
{
	const struct weather *weather = worker->weather;
	uint64_t now_us = worker->agenda->now_us;

	return worker->index < weather->cut_off_workers &&
	       now_us >= weather->cut_off_at_us &&
	       now_us - weather->cut_off_at_us < weather->cut_off_us;
}

static void
end_unreached(struct worker_run *run, struct span upstream)
{
	end(run, (struct agent_outcome){
			 .end = AGENT_UNSENT,
			 .delay_ms = UNREACHED_MS,
			 .park_ms = 1, /* so that the scheduler hears of it */
			 .reason = SPAN("unreached"),
			 .missed = upstream,
			 .usage = protocol_usage_none(),
		 });
}

static void
send_request(struct worker_run *run)
{
	struct worker_host *worker = run->worker;
	struct site_client client = {
		.on_first = on_first,
		.on_end = on_end,
		.context = worker,
		.frozen_until_us = &worker->frozen_until_us,
	};
	struct site_ask ask;
	struct span upstream;

	fill_ask(run, &ask);
	upstream = span_from(producer_upstream((uint32_t)ask.account));
	if (is_cut_off(worker)) {
		end_unreached(run, upstream);
		return;
	}
	ask.nonce = worker->disk_nonce;
	ask.pool = id_of(span_from(worker->pool), 0);
	run->phase = WORKER_RUN_SENT;
	run->sent_ms = worker_host_now_ms(worker);
	run->tool_tokens = draw_tool_tokens(run);
	run->call = site_start(worker->site, &ask, client);
	trace_line(worker->trace, "%s %s is sent as request %" PRIu64, worker->name,
	           run->id, run->call->number);
	agenda_in(worker->agenda, run->timeout_ms * 1000, on_timeout, run, run->number);
	agent_sent(worker->agent, run->sent_ms, run->slot, run->q, upstream,
	           run->deliveries);
}

static void
take_payload(struct worker_run *run, const struct reply *reply)
{
	struct payload payload;
	bool ok = false;

	if (run->slim && reply->kind == REPLY_TEXT)
		ok = payload_read_slim(reply->text, &payload);
	else if (!run->slim && reply->kind == REPLY_ARRAY && reply->count == 1)
		ok = payload_read_entry(reply_at(&reply->items[0], 1), &payload);
	if (!ok) {
		run->is_missing = true;
		return;
	}
	run->attempts_max = payload.attempts;
	run->timeout_ms = MIN(payload.timeout_ms, run->worker->weather->timeout_ms);
	(void)snprintf(run->reply, sizeof run->reply, "%.*s", (int)payload.reply.len,
	               payload.reply.data);
	buffer_append(&run->body, payload.body);
}

/* A px value is a line of columns, then the bytes that go out. */
static void
take_segments(struct worker_run *run, const struct reply *reply)
{
	for (size_t i = 0; i < reply->count; i++) {
		struct span value = reply_text(&reply->items[i]);
		const char *newline = memchr(value.data, '\n', value.len);

		if (!newline || run->segments_count == WORKER_RUN_SEGMENTS_MAX)
			continue; /* a small prefix stays in its job's body */
		run->tiers[run->segments_count] = value.len > 6 ? value.data[6] : '?';
		buffer_append(
			&run->segments[run->segments_count++],
			(struct span){ newline + 1,
		                       value.len - (size_t)(newline + 1 - value.data) });
	}
}

static void
take_past(struct worker_run *run, const struct reply *reply)
{
	run->attempts = (uint32_t)reply_integer(reply_at(reply, 0), 0);
	run->deliveries = (uint32_t)reply_integer(reply_at(reply, 1), 0);
}

static struct worker_run *
find_run(struct worker_host *worker, uint64_t number)
{
	for (uint32_t i = 0; i < worker->weather->slots; i++) {
		if (worker->runs[i].phase == WORKER_RUN_FETCHING &&
		    worker->runs[i].number == number)
			return &worker->runs[i];
	}
	return NULL;
}

void
worker_run_answer(struct worker_host *worker, uint64_t tag, const struct reply *reply)
{
	enum fetch fetch = (enum fetch)(tag >> TAG_KIND_AT & 0x7f);
	struct worker_run *run = find_run(worker, tag & ((1ull << TAG_KIND_AT) - 1));

	if (!run)
		return;
	switch (fetch) {
	case FETCH_PAYLOAD:
		take_payload(run, reply);
		break;
	case FETCH_SEGMENTS:
		take_segments(run, reply);
		break;
	case FETCH_PAST:
		take_past(run, reply);
		break;
	}
	if (--run->fetches > 0)
		return;
	if (run->is_missing || (run->ticket && run->segments_count == 0))
		end_as(run, AGENT_MISSING, "missing");
	else
		send_request(run);
}

static void
fetch(struct worker_run *run, enum fetch kind, const struct span *argv, size_t argc)
{
	uint64_t tag = TAG_OURS | (uint64_t)kind << TAG_KIND_AT | run->number;

	run->fetches++;
	wire_send(&run->worker->wire, tag, argv, argc);
}

static void
fetch_payload(struct worker_run *run)
{
	char key[SITE_ID_SIZE + 16];
	struct span id = span_from(run->id);

	if (run->slim) {
		(void)snprintf(key, sizeof key, "warmq:slim:%s", run->id);
		fetch(run, FETCH_PAYLOAD, (struct span[]){ SPAN("GET"), span_from(key) },
		      2);
	} else {
		fetch(run, FETCH_PAYLOAD,
		      (struct span[]){ SPAN("XRANGE"), SPAN("warmq:jobs"), id, id }, 4);
	}
	(void)snprintf(key, sizeof key, "warmq:past:%s", run->id);
	fetch(run, FETCH_PAST,
	      (struct span[]){ SPAN("HMGET"), span_from(key), SPAN("attempts"),
	                       SPAN("deliveries") },
	      4);
}

static void
fetch_segments(struct worker_run *run)
{
	char keys[WORKER_RUN_SEGMENTS_MAX][64];
	struct span argv[WORKER_RUN_SEGMENTS_MAX + 1] = { SPAN("MGET") };
	struct span list = span_from(run->px);
	struct span id;
	size_t count = 0;

	while (protocol_list_next(&list, &id) && count < WORKER_RUN_SEGMENTS_MAX) {
		(void)snprintf(keys[count], sizeof keys[0], "warmq:px:%.*s", (int)id.len,
		               id.data);
		argv[count + 1] = span_from(keys[count]);
		count++;
	}
	if (count > 0)
		fetch(run, FETCH_SEGMENTS, argv, count + 1);
}

void
worker_run_start(struct worker_host *worker, const struct agent_job *job)
{
	struct worker_run *run = &worker->runs[job->slot];

	VERIFY(run->phase == WORKER_RUN_NONE);
	*run = (struct worker_run){
		.worker = worker,
		.phase = WORKER_RUN_FETCHING,
		.number = ++worker->runs_count,
		.q = job->q,
		.slot = job->slot,
		.slim = job->slim,
		.ticket = job->role == PROTOCOL_TICKET,
		.marks = job->marks,
		.attempts_max = 3,
		.timeout_ms = worker->weather->timeout_ms,
		.body = BUFFER_INIT(BODY_MAX),
	};
	for (size_t i = 0; i < WORKER_RUN_SEGMENTS_MAX; i++)
		buffer_init(&run->segments[i], BODY_MAX);
	(void)snprintf(run->id, sizeof run->id, "%.*s", (int)job->id.len, job->id.data);
	(void)snprintf(run->px, sizeof run->px, "%.*s", (int)job->px.len, job->px.data);
	trace_line(worker->trace, "%s starts %s as %c in slot %u", worker->name, run->id,
	           job->role, job->slot);
	if (!wire_is_up(&worker->wire)) {
		end_as(run, AGENT_UNFETCHED, "");
		return;
	}
	if (!run->ticket)
		fetch_payload(run);
	fetch_segments(run);
}

void
worker_run_abort(struct worker_host *worker, uint32_t slot, uint64_t q)
{
	struct worker_run *run = &worker->runs[slot];

	if (run->phase == WORKER_RUN_NONE || run->q != q)
		return; /* it ended before it heard */
	if (run->phase == WORKER_RUN_SENT)
		site_hang_up(run->call);
	end_as(run, AGENT_STOPPED, "stopped");
}

void
worker_run_lose(struct worker_host *worker)
{
	for (uint32_t i = 0; i < worker->weather->slots; i++) {
		if (worker->runs[i].phase == WORKER_RUN_FETCHING)
			end_as(&worker->runs[i], AGENT_UNFETCHED, "");
	}
}
