#include "provider/refusal.h"

#include "provider/answer.h"
#include "provider/limit_headers.h"

#include <stdio.h>
#include <time.h>

void
refusal_append_id(enum ask_dialect dialect, uint64_t id, struct buffer *out)
{
	(void)buffer_append_format(out, "%s: req_%016llx\r\n",
	                           dialect == ASK_ANTHROPIC ? "request-id"
	                                                    : "x-request-id",
	                           (unsigned long long)id);
}

void
refusal_append_limits(struct server *server, enum ask_dialect dialect, uint64_t account,
                      uint32_t class, struct buffer *out)
{
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

static void
answer_refusal(struct server *server, struct connection *connection,
               enum ask_dialect dialect, const struct ask_refusal *refusal,
               struct buffer *headers)
{
	struct buffer json = BUFFER_INIT(8192);
	char request_id[32];
	uint64_t id = ++server->last_id;

	snprintf(request_id, sizeof request_id, "req_%016llx", (unsigned long long)id);
	refusal_append_id(dialect, id, headers);
	answer_error(dialect, refusal->type, refusal->code, span_from(refusal->message),
	             request_id, &json);
	server_count_status(server, refusal->status);
	server_answer(connection, refusal->status, buffer_span(&json),
	              buffer_span(headers));
	buffer_fini(&json);
}

void
refusal_answer(struct server *server, struct connection *connection,
               enum ask_dialect dialect, const struct ask_refusal *refusal)
{
	struct buffer headers = BUFFER_INIT(4096);

	answer_refusal(server, connection, dialect, refusal, &headers);
	buffer_fini(&headers);
}

/* The error type that goes with a status; messages first, then chat. */
static const char *
type_of(enum ask_dialect dialect, int status)
{
	static const struct {
		int status;
		const char *type;
	} types[] = {
		{ 401, "authentication_error" },
		{ 402, "billing_error" },
		{ 403, "permission_error" },
		{ 404, "not_found_error" },
		{ 413, "request_too_large" },
		{ 429, "rate_limit_error" },
		{ 500, "api_error" },
		{ 503, "overloaded_error" },
		{ 504, "timeout_error" },
		{ 529, "overloaded_error" },
	};

	if (dialect == ASK_OPENAI && status == 429)
		return "requests";
	if (dialect == ASK_OPENAI)
		return status < 500 ? "invalid_request_error" : "server_error";
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (types[i].status == status)
			return types[i].type;
	return status < 500 ? "invalid_request_error" : "api_error";
}

static struct ask_refusal
describe_limit(enum ask_dialect dialect, enum limit_verdict limit)
{
	static const char *const limits[LIMIT_VERDICT_COUNT] = {
		[LIMIT_VERDICT_OK] = "rate limit",
		[LIMIT_VERDICT_REQUESTS] = "number of requests per minute",
		[LIMIT_VERDICT_INPUT] = "number of input tokens per minute",
		[LIMIT_VERDICT_OUTPUT] = "number of output tokens per minute",
		[LIMIT_VERDICT_ACCELERATION] =
			"acceleration limit: traffic grew too fast",
		[LIMIT_VERDICT_SPEND] = "spend limit",
	};
	bool is_chat = dialect == ASK_OPENAI;
	struct ask_refusal refusal;

	(void)ask_refuse(&refusal, 429, type_of(dialect, 429),
	                 "This request would exceed your account's %s.", limits[limit]);
	refusal.code = is_chat ? "rate_limit_exceeded" : NULL;
	if (limit == LIMIT_VERDICT_SPEND)
		refusal.code =
			is_chat ? "insufficient_quota" : "enforced_spend_limit_reached";
	return refusal;
}

/* The words for a request the model has refused. */
static struct ask_refusal
describe(enum ask_dialect dialect, const struct engine_answer *model)
{
	/* OpenAI has no 529. */
	int status = model->status == 529 && dialect == ASK_OPENAI ? 503 : model->status;
	struct ask_refusal refusal;

	if (status == 429)
		return describe_limit(dialect, model->limit);
	(void)ask_refuse(&refusal, status, type_of(dialect, status), "%s",
	                 status < 500                     ? "Refused on purpose"
	                 : status == 503 || status == 529 ? "Overloaded"
	                                                  : "Internal server error");
	return refusal;
}

void
refusal_answer_model(struct server *server, struct connection *connection,
                     enum ask_dialect dialect, const struct engine_request *request,
                     const struct engine_answer *model)
{
	struct buffer headers = BUFFER_INIT(4096);
	struct ask_refusal refusal;

	if (model->status == 0) {
		server->unanswered++;
		if (model->fault == FAULT_REFUSE)
			connection_reset(connection);
		return; /* FAULT_HANG: the connection waits for its client to go */
	}
	refusal = describe(dialect, model);
	refusal_append_limits(server, dialect, request->account, request->class,
	                      &headers);
	limit_headers_append_retry(model->retry_after_us, &headers);
	answer_refusal(server, connection, dialect, &refusal, &headers);
	buffer_fini(&headers);
}
