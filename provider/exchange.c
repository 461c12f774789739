#include "provider/exchange.h"

#include "provider/answer.h"
#include "provider/anthropic.h"
#include "provider/http_answer.h"
#include "provider/limit_headers.h"
#include "provider/openai.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <time.h>

#define SPLIT_GAP_US 2000

struct exchange {
	struct server *server;
	struct connection *connection; /* NULL: the client has gone */
	struct exchange *next;
	struct exchange *previous;
	uv_timer_t timer;
	struct ask_want want;
	struct engine_answer model;
	struct script script; /* written at the first byte */
	uint32_t sent;        /* pieces */
	uint64_t id;
	uint32_t output_tokens;
	int status;
	bool is_over;
};

/* --- headers ---------------------------------------------------------------------------
 */

static void
append_id(enum ask_dialect dialect, uint64_t id, struct buffer *out)
{
	(void)buffer_append_format(out, "%s: req_%016llx\r\n",
	                           dialect == ASK_ANTHROPIC ? "request-id"
	                                                    : "x-request-id",
	                           (unsigned long long)id);
}

static void
append_limits(struct server *server, enum ask_dialect dialect, uint64_t account,
              uint32_t class, struct buffer *out)
{
	enum {
		FULL,
		NO_HEADERS,
		NEGATIVE
	};
	uint64_t mode = settings_get(&server->settings, SETTINGS_LIMIT_HEADERS);
	struct limit_level levels[LIMIT_BUCKET_COUNT];

	if (mode == SETTINGS_LIMIT_HEADERS_NONE)
		return;
	for (int i = 0; i < LIMIT_BUCKET_COUNT; i++)
		levels[i] = engine_level(server->engine, server_now_us(server), account,
		                         class, (enum limit_bucket)i);
	limit_headers_append(dialect, levels, (uint64_t)time(NULL),
	                     mode == SETTINGS_LIMIT_HEADERS_NEGATIVE, out);
}

/* --- refusals --------------------------------------------------------------------------
 */

static void
answer_refusal(struct server *server, struct connection *connection,
               enum ask_dialect dialect, const struct ask_refusal *refusal,
               struct buffer *headers)
{
	struct buffer json = BUFFER_INIT(8192);
	char request_id[32];
	uint64_t id = ++server->last_id;

	snprintf(request_id, sizeof request_id, "req_%016llx", (unsigned long long)id);
	append_id(dialect, id, headers);
	answer_error(dialect, refusal->type, refusal->code, span_from(refusal->message),
	             request_id, &json);
	server_answer(server, connection, refusal->status, buffer_span(&json),
	              buffer_span(headers));
	buffer_fini(&json);
}

static void
refuse(struct server *server, struct connection *connection, enum ask_dialect dialect,
       const struct ask_refusal *refusal)
{
	struct buffer headers = BUFFER_INIT(4096);

	answer_refusal(server, connection, dialect, refusal, &headers);
	buffer_fini(&headers);
}

/* The words for a request the model has refused. */
static struct ask_refusal
describe(enum ask_dialect dialect, const struct engine_answer *model)
{
	static const char *const limits[LIMIT_VERDICT_COUNT] = {
		[LIMIT_VERDICT_OK] = "rate limit",
		[LIMIT_VERDICT_REQUESTS] = "number of requests per minute",
		[LIMIT_VERDICT_INPUT] = "number of input tokens per minute",
		[LIMIT_VERDICT_OUTPUT] = "number of output tokens per minute",
		[LIMIT_VERDICT_ACCELERATION] =
			"acceleration limit: traffic grew too fast",
	};
	bool is_chat = dialect == ASK_OPENAI;
	struct ask_refusal refusal = { .status = model->status };

	switch (model->status) {
	case 400:
		(void)ask_refuse(&refusal, 400, "invalid_request_error",
		                 "This request is refused on purpose.");
		break;
	case 429:
		(void)ask_refuse(&refusal, 429, is_chat ? "requests" : "rate_limit_error",
		                 "This request would exceed your account's %s.",
		                 limits[model->limit] ? limits[model->limit]
		                                      : "spend limit");
		refusal.code = is_chat ? "rate_limit_exceeded" : NULL;
		if (model->limit == LIMIT_VERDICT_SPEND)
			refusal.code = is_chat ? "insufficient_quota"
			                       : "enforced_spend_limit_reached";
		break;
	case 503:
	case 529:
		/* OpenAI has no 529. */
		(void)ask_refuse(&refusal, is_chat ? 503 : model->status,
		                 is_chat ? "server_error" : "overloaded_error",
		                 "Overloaded");
		break;
	default:
		(void)ask_refuse(&refusal, model->status,
		                 is_chat ? "server_error" : "api_error",
		                 "Internal server error");
	}
	return refusal;
}

static void
answer_refused(struct server *server, struct connection *connection,
               enum ask_dialect dialect, const struct engine_request *request,
               const struct engine_answer *model)
{
	struct buffer headers = BUFFER_INIT(4096);
	struct ask_refusal refusal = describe(dialect, model);

	if (model->status == 0) {
		server->unanswered++;
		if (model->fault == FAULT_REFUSE)
			connection_reset(connection);
		return; /* FAULT_HANG: the connection waits for its client to go */
	}
	append_limits(server, dialect, request->account, request->class, &headers);
	limit_headers_append_retry(model->retry_after_us, &headers);
	answer_refusal(server, connection, dialect, &refusal, &headers);
	buffer_fini(&headers);
}

/* --- sending ---------------------------------------------------------------------------
 */

static void
on_timer_closed(uv_handle_t *handle)
{
	struct exchange *exchange = handle->data;

	script_fini(&exchange->script);
	free(exchange);
}

/* Tells the model and takes the exchange out of the world. */
static void
finish(struct exchange *exchange)
{
	uint64_t total = exchange->script.count;
	uint64_t used = 0;

	VERIFY(!exchange->is_over);
	exchange->is_over = true;
	if (exchange->model.ticket.responded && total > 0)
		used = (uint64_t)exchange->output_tokens * exchange->sent / total;
	engine_finish(exchange->server->engine, server_now_us(exchange->server),
	              &exchange->model.ticket, (uint32_t)used);
	if (exchange->previous)
		exchange->previous->next = exchange->next;
	else
		exchange->server->exchanges = exchange->next;
	if (exchange->next)
		exchange->next->previous = exchange->previous;
	uv_close((uv_handle_t *)&exchange->timer, on_timer_closed);
}

/* The client has gone. */
static void
on_gone(void *data)
{
	struct exchange *exchange = data;
	bool goes_on = settings_get(&exchange->server->settings, SETTINGS_FINISH_ABORTED);

	exchange->connection = NULL;
	if (!goes_on || exchange->model.ticket.responded)
		finish(exchange);
}

static bool
is_chunked(const struct exchange *exchange)
{
	return exchange->want.stream && !connection_request(exchange->connection)->is_old;
}

static void
send_head(struct exchange *exchange)
{
	struct buffer headers = BUFFER_INIT(4096), out = BUFFER_INIT(8192);
	bool keep_alive = connection_request(exchange->connection)->keep_alive;
	bool stream = exchange->want.stream;
	size_t length = exchange->script.bytes.len;

	append_id(exchange->want.dialect, exchange->id, &headers);
	append_limits(exchange->server, exchange->want.dialect,
	              exchange->model.ticket.account, exchange->model.ticket.class,
	              &headers);
	if (is_chunked(exchange))
		length = HTTP_ANSWER_CHUNKED;
	http_answer_head(&out, exchange->status,
	                 stream ? "text/event-stream; charset=utf-8" : "application/json",
	                 length, keep_alive, buffer_span(&headers));
	exchange->server->statuses[exchange->status]++;
	connection_send(exchange->connection, buffer_span(&out));
	buffer_fini(&headers);
	buffer_fini(&out);
}

static void
send_piece(struct exchange *exchange)
{
	const struct script *script = &exchange->script;
	uint32_t index = exchange->sent++;
	size_t start = index > 0 ? script->pieces[index - 1].end : 0;
	struct span bytes = { buffer_text(&script->bytes) + start,
		              script->pieces[index].end - start };
	struct buffer out = BUFFER_INIT(BUFFER_SIZE_DEFAULT * 2);

	if (!is_chunked(exchange)) {
		connection_send(exchange->connection, bytes);
		return;
	}
	http_answer_chunk(&out, bytes);
	connection_send(exchange->connection, buffer_span(&out));
	buffer_fini(&out);
}

/* The script is over: so are answer and exchange, except where silence follows. */
static void
end(struct exchange *exchange)
{
	struct connection *connection = exchange->connection;
	bool keep_alive = connection_request(connection)->keep_alive;
	struct buffer out = BUFFER_INIT(64);

	if (exchange->script.ending == SCRIPT_STALL)
		return;
	if (exchange->script.ending == SCRIPT_CLOSE) {
		finish(exchange);
		connection_abort(connection);
		return;
	}
	if (is_chunked(exchange)) {
		http_answer_last_chunk(&out);
		connection_send(connection, buffer_span(&out));
		buffer_fini(&out);
	}
	finish(exchange);
	connection_end(connection, keep_alive);
}

/* --- faults ----------------------------------------------------------------------------
 */

static void
spoil_stream(struct exchange *exchange)
{
	struct script *script = &exchange->script;

	script_cut(script, 1, SCRIPT_END);
	buffer_truncate(&script->bytes, script->pieces[0].end);
	(void)buffer_append(
		&script->bytes,
		SPAN("\xff\xfe event::: data\r\rdata: {\"type\":\"content_blo\n\n"
	             "<html>502</html>\n\n"));
	script_add(script, exchange->model.done_us - exchange->model.first_byte_us);
}

/* Puts other bytes in the place of a whole answer. */
static void
replace_whole(struct exchange *exchange, struct span bytes)
{
	struct script *script = &exchange->script;
	uint64_t due_us = script->pieces[0].due_us;

	script->count = 0;
	buffer_clear(&script->bytes);
	(void)buffer_append(&script->bytes, bytes);
	script_add(script, due_us);
}

/* Late trouble: an event in mid-stream, or a 500 after all that time. */
static void
break_late(struct exchange *exchange)
{
	enum ask_dialect dialect = exchange->want.dialect;
	struct script *script = &exchange->script;
	uint32_t half = MAX(1, script->count / 2);
	struct buffer json = BUFFER_INIT(4096);

	if (exchange->want.stream) {
		script_cut(script, half, SCRIPT_END);
		buffer_truncate(&script->bytes, script->pieces[half - 1].end);
		answer_stream_error(dialect, &exchange->server->settings, script,
		                    script->pieces[half - 1].due_us);
		return;
	}
	answer_error(dialect, dialect == ASK_OPENAI ? "server_error" : "api_error", NULL,
	             SPAN("Internal server error"), "", &json);
	exchange->status = 500;
	replace_whole(exchange, buffer_span(&json));
	buffer_fini(&json);
}

/* Bends the script to what the fault says. */
static void
apply_fault(struct exchange *exchange)
{
	const struct settings *settings = &exchange->server->settings;
	struct script *script = &exchange->script;
	bool stream = exchange->want.stream;

	switch (exchange->model.fault) {
	case FAULT_LOSE_REPLY:
		break; /* see step: nothing is sent at all */
	case FAULT_CUT:
		if (!stream)
			script_split(script, 0);
		script_cut(script, MAX(1, script->count / 2), SCRIPT_CLOSE);
		break;
	case FAULT_CUT_USAGE:
		script_cut(script, MIN(script->usage_piece, script->count), SCRIPT_CLOSE);
		break;
	case FAULT_STREAM_ERROR:
		break_late(exchange);
		break;
	case FAULT_STALL:
		script_cut(script, stream, SCRIPT_STALL);
		break;
	case FAULT_DRIP:
		script_drip(script, settings_get(settings, SETTINGS_DRIP_BYTES),
		            settings_get(settings, SETTINGS_DRIP_MS) * 1000);
		break;
	case FAULT_GARBAGE:
		if (stream)
			spoil_stream(exchange);
		else
			replace_whole(exchange,
			              SPAN("<html>\xff\xfe{\"type\":\"mess</html>"));
		break;
	default:
		if (stream && settings_get(settings, SETTINGS_SSE_SPLIT))
			script_split(script, SPLIT_GAP_US);
	}
}

/* --- time ------------------------------------------------------------------------------
 */

static void on_timer(uv_timer_t *timer);

static void
wait_until(struct exchange *exchange, uint64_t due_us)
{
	uint64_t now_us = server_now_us(exchange->server);
	uint64_t wait_us = due_us > now_us ? due_us - now_us : 0;

	uv_update_time(&exchange->server->loop);
	uv_timer_start(&exchange->timer, on_timer, (wait_us + 999) / 1000, 0);
}

/* The response begins: the model's cache learns of it, the answer is written. */
static int
respond(struct exchange *exchange)
{
	const struct answer answer = {
		.want = &exchange->want,
		.settings = &exchange->server->settings,
		.usage = exchange->model.usage,
		.id = exchange->id,
		.created_s = (uint64_t)time(NULL),
		.output_tokens = exchange->output_tokens,
		.decode_us = exchange->model.done_us - exchange->model.first_byte_us,
	};

	engine_respond(exchange->server->engine, server_now_us(exchange->server),
	               &exchange->model.ticket);
	if (!exchange->connection)
		return 0;
	answer_write(&answer, &exchange->script);
	if (script_error(&exchange->script) == 0)
		apply_fault(exchange);
	return script_error(&exchange->script);
}

/* When the next thing is due: a piece, or the moment the lost reply would have ended. */
static uint64_t
next_due_us(const struct exchange *exchange)
{
	const struct script *script = &exchange->script;

	if (exchange->model.fault == FAULT_LOSE_REPLY)
		return exchange->model.done_us;
	if (exchange->sent == script->count)
		return 0;
	return exchange->model.first_byte_us + script->pieces[exchange->sent].due_us;
}

static void
lose_reply(struct exchange *exchange)
{
	struct connection *connection = exchange->connection;

	exchange->sent = exchange->script.count; /* it was all generated, and paid for */
	exchange->server->unanswered++;
	finish(exchange);
	connection_reset(connection);
}

/* Sends what is due.  A whole answer's head goes out with its first piece, a stream's at
 * the first byte. */
static void
step(struct exchange *exchange)
{
	uint64_t now_us = server_now_us(exchange->server);
	bool is_lost = exchange->model.fault == FAULT_LOSE_REPLY;

	while (next_due_us(exchange) <= now_us) {
		if (is_lost) {
			lose_reply(exchange);
			return;
		}
		if (exchange->sent == 0 && !exchange->want.stream)
			send_head(exchange);
		if (exchange->sent == exchange->script.count) {
			end(exchange);
			return;
		}
		send_piece(exchange);
	}
	wait_until(exchange, next_due_us(exchange));
}

static void
on_timer(uv_timer_t *timer)
{
	struct exchange *exchange = timer->data;
	bool begins = !exchange->model.ticket.responded;

	if (begins && respond(exchange) < 0) {
		struct connection *connection = exchange->connection;

		finish(exchange);
		connection_reset(connection); /* no memory for an answer */
		return;
	}
	if (!exchange->connection) {
		finish(exchange);
		return;
	}
	if (begins && exchange->want.stream && exchange->model.fault != FAULT_LOSE_REPLY)
		send_head(exchange);
	step(exchange);
}

/* --- beginning -------------------------------------------------------------------------
 */

/* x-api-key, or a bearer token; both at once is refused by the vendor. */
static const struct catalog_key *
find_key(const struct server *server, const struct http_request *request)
{
	static const char bearer[] = "Bearer ";
	struct span key = http_request_header(request, "x-api-key");
	struct span auth = http_request_header(request, "authorization");
	size_t len = sizeof bearer - 1;

	if (auth.len > 0 && key.len > 0)
		return NULL;
	if (auth.len > len && strncasecmp(auth.data, bearer, len) == 0)
		key = (struct span){ auth.data + len, auth.len - len };
	return catalog_find_key(&server->catalog, key);
}

static int
read_ask(struct server *server, struct connection *connection, enum ask_dialect dialect,
         bool counting, struct ask *ret_ask, const struct catalog_key **ret_key,
         struct ask_refusal *refusal)
{
	const struct http_request *request = connection_request(connection);
	struct ask_context context = {
		.catalog = &server->catalog,
		.key = find_key(server, request),
		.version = http_request_header(request, "anthropic-version"),
		.betas = http_request_header(request, "anthropic-beta"),
	};
	bool is_chat = dialect == ASK_OPENAI;
	struct body_error error;
	struct body body;
	int err;

	if (!context.key) {
		err = ask_refuse(
			refusal, 401,
			is_chat ? "invalid_request_error" : "authentication_error",
			is_chat ? "Incorrect API key provided." : "invalid x-api-key");
		refusal->code = is_chat ? "invalid_api_key" : NULL;
		return err;
	}
	err = body_load(&body, buffer_span(&request->body), &error);
	if (err == ERR_MALFORMED)
		return ask_refuse(refusal, 400, "invalid_request_error",
		                  "The request body is not valid JSON: %s", error.text);
	if (err < 0)
		return err;
	err = is_chat ? openai_read(&body, &context, ret_ask, refusal)
	              : anthropic_read(&body, &context, counting, ret_ask, refusal);
	body_fini(&body);
	*ret_key = context.key;
	return err;
}

static void
refuse_for(struct server *server, struct connection *connection, enum ask_dialect dialect,
           int err, struct ask_refusal *refusal)
{
	if (err != ERR_MALFORMED)
		(void)ask_refuse(refusal, 500, "api_error",
		                 "The simulator is out of memory.");
	refuse(server, connection, dialect, refusal);
}

static void
start(struct server *server, struct connection *connection, const struct ask *ask,
      const struct engine_answer *model, uint32_t output_tokens)
{
	struct exchange *exchange = calloc(1, sizeof *exchange);

	if (!exchange) {
		struct engine_ticket ticket = model->ticket;

		engine_finish(server->engine, server_now_us(server), &ticket, 0);
		connection_reset(connection);
		return;
	}
	exchange->server = server;
	exchange->connection = connection;
	exchange->want = ask->want;
	exchange->model = *model;
	exchange->id = ++server->last_id;
	exchange->output_tokens = output_tokens;
	exchange->status = 200;
	exchange->next = server->exchanges;
	if (server->exchanges)
		server->exchanges->previous = exchange;
	server->exchanges = exchange;
	script_init(&exchange->script);
	exchange->timer.data = exchange;
	uv_timer_init(&server->loop, &exchange->timer);
	connection_watch(connection, on_gone, exchange);
	connection_drop_body(connection);
	wait_until(exchange, model->first_byte_us);
}

void
exchange_begin(struct server *server, struct connection *connection,
               enum ask_dialect dialect)
{
	struct ask_refusal refusal;
	const struct catalog_key *key;
	struct engine_request request;
	struct engine_answer model;
	struct ask ask;
	int err = read_ask(server, connection, dialect, false, &ask, &key, &refusal);

	if (err < 0) {
		refuse_for(server, connection, dialect, err, &refusal);
		return;
	}
	request = (struct engine_request){
		.cache = { .scope = ask.scope,
		           .routing = ask.routing,
		           .mode = ask.mode,
		           .minimum_tokens = ask.entry->minimum_tokens,
		           .step_tokens = ask.entry->step_tokens,
		           .blocks = ask.prompt.blocks,
		           .blocks_count = ask.prompt.count },
		.account = ask_scope(&(struct span){ key->account, strlen(key->account) },
		                     1),
		.class = ask.entry->class,
		.output_tokens_max = ask.want.output_max,
		.output_tokens = answer_tokens(&ask.want, &server->settings),
	};
	engine_start(server->engine, server_now_us(server), &request, &model);
	if (model.accepted)
		start(server, connection, &ask, &model, request.output_tokens);
	else
		answer_refused(server, connection, dialect, &request, &model);
	ask_fini(&ask);
}

void
exchange_count(struct server *server, struct connection *connection)
{
	struct ask_refusal refusal;
	const struct catalog_key *key;
	struct ask ask;
	char json[64];
	int err = read_ask(server, connection, ASK_ANTHROPIC, true, &ask, &key, &refusal);

	if (err < 0) {
		refuse_for(server, connection, ASK_ANTHROPIC, err, &refusal);
		return;
	}
	snprintf(json, sizeof json, "{\"input_tokens\":%u}", prompt_tokens(&ask.prompt));
	ask_fini(&ask);
	server_answer(server, connection, 200, span_from(json), SPAN(""));
}

void
exchange_end_all(struct server *server)
{
	while (server->exchanges)
		finish(server->exchanges);
}
