#include "provider/exchange.h"

#include "provider/answer.h"
#include "provider/anthropic.h"
#include "provider/http_answer.h"
#include "provider/openai.h"
#include "provider/refusal.h"
#include "provider/spoil.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <time.h>

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
	bool is_kept; /* its first byte was due, but keep_waiting */
	bool is_over;
};

/* --- sending ----------------------------------------------------------------------- */

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

/* The functions below append to the connection's output; step flushes it once. */

static void
add_head(struct exchange *exchange)
{
	struct connection *connection = exchange->connection;
	struct buffer headers = BUFFER_INIT(4096);
	bool stream = exchange->want.stream;
	size_t length =
		is_chunked(exchange) ? HTTP_ANSWER_CHUNKED : exchange->script.bytes.len;

	refusal_append_id(exchange->want.dialect, exchange->id, &headers);
	refusal_append_limits(exchange->server, exchange->want.dialect,
	                      exchange->model.ticket.account,
	                      exchange->model.ticket.class, &headers);
	http_answer_head(connection_output(connection), exchange->status,
	                 stream ? "text/event-stream; charset=utf-8" : "application/json",
	                 length, connection_request(connection)->keep_alive,
	                 buffer_span(&headers));
	server_count_status(exchange->server, exchange->status);
	buffer_fini(&headers);
}

static void
add_piece(struct exchange *exchange)
{
	const struct script *script = &exchange->script;
	uint32_t index = exchange->sent++;
	size_t start = index > 0 ? script->pieces[index - 1].end : 0;
	struct span bytes = { buffer_text(&script->bytes) + start,
		              script->pieces[index].end - start };

	if (is_chunked(exchange))
		http_answer_chunk(connection_output(exchange->connection), bytes);
	else
		(void)buffer_append(connection_output(exchange->connection), bytes);
}

/* The script is over: so are answer and exchange, except where silence follows. */
static void
end(struct exchange *exchange)
{
	struct connection *connection = exchange->connection;
	bool keep_alive = connection_request(connection)->keep_alive;

	switch (exchange->script.ending) {
	case SCRIPT_STALL:
		connection_flush(connection);
		break;
	case SCRIPT_CLOSE:
		finish(exchange);
		connection_abort(connection);
		break;
	case SCRIPT_END:
		if (is_chunked(exchange))
			http_answer_last_chunk(connection_output(connection));
		finish(exchange);
		connection_end(connection, keep_alive);
		break;
	}
}

/* --- time -------------------------------------------------------------------------- */

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
	const struct spoil spoil = {
		.fault = exchange->model.fault,
		.dialect = exchange->want.dialect,
		.stream = exchange->want.stream,
		.decode_us = answer.decode_us,
		.settings = answer.settings,
	};

	engine_respond(exchange->server->engine, server_now_us(exchange->server),
	               &exchange->model.ticket);
	if (!exchange->connection)
		return 0;
	answer_write(&answer, &exchange->script);
	if (script_error(&exchange->script) == 0)
		exchange->status = spoil_apply(&spoil, &exchange->script);
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
			add_head(exchange);
		if (exchange->sent == exchange->script.count) {
			end(exchange);
			return;
		}
		add_piece(exchange);
	}
	connection_flush(exchange->connection);
	wait_until(exchange, next_due_us(exchange));
}

static void
on_timer(uv_timer_t *timer)
{
	struct exchange *exchange = timer->data;
	bool begins = !exchange->model.ticket.responded;

	exchange->is_kept = begins && settings_get(&exchange->server->settings,
	                                           SETTINGS_KEEP_WAITING);
	if (exchange->is_kept)
		return;
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
		add_head(exchange);
	step(exchange);
}

/* --- beginning --------------------------------------------------------------------- */

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
	err = body_load(&body, buffer_span(&request->body), BODY_LONG_STRING, &error);
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
	refusal_answer(server, connection, dialect, refusal);
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
		refusal_answer_model(server, connection, dialect, &request, &model);
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
	server_count_status(server, 200);
	server_answer(connection, 200, span_from(json), SPAN(""));
}

void
exchange_go_on(struct server *server)
{
	uint64_t now_us = server_now_us(server);

	for (struct exchange *it = server->exchanges; it; it = it->next) {
		if (!it->is_kept)
			continue;
		it->model.done_us += now_us - it->model.first_byte_us;
		it->model.first_byte_us = now_us;
		wait_until(it, now_us);
	}
}

void
exchange_end_all(struct server *server)
{
	while (server->exchanges)
		finish(server->exchanges);
}
