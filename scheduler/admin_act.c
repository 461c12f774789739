#include "scheduler/admin_act.h"

#include "common/io/log.h"
#include "scheduler/admin_ask.h"
#include "scheduler/admin_jobs.h"
#include "scheduler/ruler_view_json.h"
#include "scheduler/ruler_warm.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#define CHUNK      250 /* jobs of one call, and of one round */
#define CHUNK_LAST 249
#define PASSES_MAX 4
#define WHO        SPAN("the dashboard")

/* ---- one call -------------------------------------------------------------------- */

/* A function's answer: OK now what. */
static void
finish_call(struct admin_ask *ask)
{
	const struct reply *reply = ask->replies[0];
	struct span what = reply_text(reply_at(reply, 2));

	if (!reply_is(reply_at(reply, 0), "OK")) {
		admin_ask_fail(ask, 502, "Redis refused the call; its log says why");
		return;
	}
	if (span_equals(what, SPAN("gone")) || span_equals(what, SPAN("lost"))) {
		admin_ask_fail(ask, 404,
		               span_equals(what, SPAN("gone"))
		                       ? "it is not there any more"
		                       : "its payload is lost: enqueue it again");
		return;
	}
	ruler_view_json_open(&ask->response.body, NULL, '{');
	ruler_view_json_text(&ask->response.body, "what",
	                     what.len > 0 ? what : SPAN("done"));
	ruler_view_json_close(&ask->response.body, '}');
	admin_ask_finish(ask);
}

static void
call_one(struct admin *admin, const struct http_server_request *request,
         struct http_server_response *response, const char *function, struct span first,
         struct span second)
{
	struct admin_ask *ask = admin_ask_open(admin, request, response, finish_call);
	struct span words[2] = { first, second };

	if (!ask)
		return;
	admin_ask_function(ask, function, words, second.len > 0 ? 2 : 1);
	admin_ask_round(ask, finish_call);
}

/* ---- all waiting jobs of a family ------------------------------------------------ */

/* ask->number: list and pass, as list + ADMIN_JOBS_LISTS * pass; ask->offset: where in
 * the list; ask->total: ended so far; ask->limit: ended in this pass; ask->text: family.
 *
 * Ids of ended jobs stay in their list for a while, so the offset goes on; claims take
 * from the head meanwhile, so a pass may miss some: again, until one finds none. */
static void ask_for_list(struct admin_ask *ask);

static void
finish_family(struct admin_ask *ask)
{
	ruler_view_json_open(&ask->response.body, NULL, '{');
	ruler_view_json_number(&ask->response.body, "cancelled", ask->total);
	ruler_view_json_close(&ask->response.body, '}');
	admin_ask_finish(ask);
}

static void
on_cancelled(struct admin_ask *ask)
{
	for (uint32_t i = 0; i < ask->replies_count; i++) {
		if (!reply_is(reply_at(ask->replies[i], 2), "ended"))
			continue;
		ask->total++;
		ask->limit++;
	}
	ask_for_list(ask);
}

static void
on_list(struct admin_ask *ask)
{
	const struct reply *list = ask->replies[0];

	if (list->count == 0) { /* on to the next one */
		ask->number++;
		ask->offset = 0;
		if (ask->number % ADMIN_JOBS_LISTS == 0) {
			if (ask->limit == 0 ||
			    ask->number >= (uint64_t)ADMIN_JOBS_LISTS * PASSES_MAX) {
				finish_family(ask);
				return;
			}
			ask->limit = 0;
		}
		ask_for_list(ask);
		return;
	}
	ask->offset += list->count;
	for (size_t i = 0; i < list->count && i < CHUNK; i++) {
		struct span id = admin_jobs_id(reply_text(&list->items[i]));

		admin_ask_function(ask, "cancel", &id, 1);
	}
	admin_ask_round(ask, on_cancelled);
}

static void
ask_for_list(struct admin_ask *ask)
{
	const char *name = admin_jobs_lists[ask->number % ADMIN_JOBS_LISTS];

	ADMIN_ASK(ask, SPAN("LRANGE"), admin_ask_key(ask, name, span_from(ask->text)),
	          admin_ask_number(ask->offset),
	          admin_ask_number(ask->offset + CHUNK_LAST));
	admin_ask_round(ask, on_list);
}

static void
cancel_family(struct admin *admin, struct span family,
              const struct http_server_request *request,
              struct http_server_response *response)
{
	struct admin_ask *ask = admin_ask_open(admin, request, response, on_list);

	if (!ask)
		return;
	memcpy(ask->text, family.data, family.len); /* 32 digits */
	ask_for_list(ask);
}

/* ---- dead letters ---------------------------------------------------------------- */

/* ask->text: the function; ask->offset: dead ones that it did not take; ask->total: those
 * it took; ask->number: 1 for all. */
static void ask_for_dead(struct admin_ask *ask);

static bool
is_taken(struct span word)
{
	return span_equals(word, SPAN("queued")) || span_equals(word, SPAN("dropped"));
}

static void
on_taken(struct admin_ask *ask)
{
	const struct reply *words = ask->replies[0];

	if (!reply_is(reply_at(words, 0), "OK")) {
		admin_ask_fail(ask, 502, "Redis refused the call; its log says why");
		return;
	}
	for (size_t i = 2; i < words->count; i++) {
		bool taken = is_taken(reply_text(&words->items[i]));

		ask->total += taken;
		ask->offset += !taken;
	}
	if (ask->number == 1) {
		ask_for_dead(ask);
		return;
	}
	ruler_view_json_open(&ask->response.body, NULL, '{');
	ruler_view_json_number(&ask->response.body, "done", ask->total);
	ruler_view_json_number(&ask->response.body, "left", ask->offset);
	ruler_view_json_close(&ask->response.body, '}');
	admin_ask_finish(ask);
}

static void
on_dead(struct admin_ask *ask)
{
	const struct reply *ids = ask->replies[0];
	struct span words[CHUNK];
	size_t count = 0;

	for (; count < ids->count && count < MIN(CHUNK, ask->limit); count++)
		words[count] = reply_text(&ids->items[count]);
	ask->limit -= count;
	if (count == 0)
		ask->number = 0; /* the last round: nothing is left to take */
	admin_ask_function(ask, ask->text, words, count);
	admin_ask_round(ask, on_taken);
}

static void
ask_for_dead(struct admin_ask *ask)
{
	ADMIN_ASK(ask, SPAN("ZRANGE"), admin_ask_key(ask, "dead", SPAN("")),
	          admin_ask_number(ask->offset),
	          admin_ask_number(ask->offset + CHUNK_LAST));
	admin_ask_round(ask, on_dead);
}

/* So many are taken, each once: who dies meanwhile stands behind them, and is perhaps one
 * of them again. */
static void
on_dead_count(struct admin_ask *ask)
{
	ask->limit = (uint64_t)MAX(reply_integer(ask->replies[0], 0), 0);
	ask_for_dead(ask);
}

/* The ids of a body {"ids": [...]}; false if they are none. */
static bool
read_ids(const json_t *body, struct span words[CHUNK], size_t *ret_count)
{
	const json_t *ids = json_object_get(body, "ids"), *item;
	size_t i;

	if (!json_is_array(ids) || json_array_size(ids) == 0 ||
	    json_array_size(ids) > CHUNK)
		return false;
	json_array_foreach(ids, i, item)
	{
		const char *text = json_string_value(item);

		if (!text || !admin_jobs_is_id(text))
			return false;
		words[i] = span_from(text);
	}
	*ret_count = json_array_size(ids);
	return true;
}

static void
take_dead(struct admin *admin, const char *function, const json_t *body,
          const struct http_server_request *request,
          struct http_server_response *response)
{
	bool all = json_is_true(json_object_get(body, "all"));
	struct span words[CHUNK];
	struct admin_ask *ask;
	size_t count = 0;

	if (all ? json_object_get(body, "ids") != NULL : !read_ids(body, words, &count)) {
		admin_put_error(response, 400,
		                "the body is {\"all\": true}, or {\"ids\": [...]} with 1 "
		                "to 250 ids");
		return;
	}
	ask = admin_ask_open(admin, request, response, on_taken);
	if (!ask)
		return;
	(void)snprintf(ask->text, sizeof(ask->text), "%s", function);
	ask->number = all;
	if (all) {
		ADMIN_ASK(ask, SPAN("ZCARD"), admin_ask_key(ask, "dead", SPAN("")));
		admin_ask_round(ask, on_dead_count);
		return;
	}
	admin_ask_function(ask, function, words, count);
	admin_ask_round(ask, on_taken);
}

/* ---- which action ---------------------------------------------------------------- */

static const char *
behind(const char *path, const char *prefix)
{
	size_t len = strlen(prefix);

	return strncmp(path, prefix, len) == 0 ? path + len : NULL;
}

/* Words of the function that say no. */
static void
finish_warm(struct admin_ask *ask)
{
	const struct reply *reply = ask->replies[0];
	struct span what = reply_text(reply_at(reply, 2));
	const char *reason = ruler_warm_reason_of(what);

	if (reason && !span_equals(what, SPAN("asked")) &&
	    !span_equals(what, SPAN("gone")))
		admin_ask_fail(ask, 409, reason);
	else
		finish_call(ask);
}

/* Who rules knows more reasons than Redis does. */
static void
warm(struct admin *admin, struct span id, const struct http_server_request *request,
     struct http_server_response *response)
{
	enum core_warm verdict = CORE_WARM_YES;
	const struct span words[] = { id, WHO };
	struct admin_ask *ask;
	struct id128 family;

	if (admin->ruler->phase == RULER_RULING && id_decode(id, &family) == 0)
		verdict = core_warm_verdict(admin->ruler->core, family);
	if (verdict != CORE_WARM_YES) {
		admin_put_error(response, verdict == CORE_WARM_UNKNOWN ? 404 : 409,
		                ruler_warm_reason(verdict));
		return;
	}
	ask = admin_ask_open(admin, request, response, finish_warm);
	if (!ask)
		return;
	admin_ask_function(ask, "warm", words, ARRAY_SIZE(words));
	admin_ask_round(ask, finish_warm);
}

static void
act_on_family(struct admin *admin, const char *rest,
              const struct http_server_request *request,
              struct http_server_response *response)
{
	struct span id = { rest, strcspn(rest, "/") };
	const char *what = rest[id.len] ? rest + id.len + 1 : "";
	struct id128 parsed;

	if (id_decode(id, &parsed) < 0)
		admin_put_error(response, 400, "the id of a family is 32 hex digits");
	else if (strcmp(what, "pause") == 0)
		call_one(admin, request, response, "pause", id, SPAN("on"));
	else if (strcmp(what, "resume") == 0)
		call_one(admin, request, response, "pause", id, SPAN("off"));
	else if (strcmp(what, "warm") == 0)
		warm(admin, id, request, response);
	else if (strcmp(what, "cancel") == 0)
		cancel_family(admin, id, request, response);
	else
		admin_put_error(response, 404,
		                "there are pause, resume, warm and cancel");
}

static void
act_on_job(struct admin *admin, const char *rest,
           const struct http_server_request *request,
           struct http_server_response *response)
{
	size_t len = strcspn(rest, "/");
	const char *what = rest[len] ? rest + len + 1 : "";
	char id[PROTOCOL_JOB_ID_SIZE + 1] = "";

	if (len <= PROTOCOL_JOB_ID_SIZE)
		memcpy(id, rest, len);
	if (!admin_jobs_is_id(id))
		admin_put_error(response, 400, "the id of a job is <ms>-<number>");
	else if (strcmp(what, "cancel") == 0)
		call_one(admin, request, response, "cancel", span_from(id), SPAN(""));
	else if (strcmp(what, "retry") == 0)
		call_one(admin, request, response, "requeue", span_from(id), SPAN(""));
	else
		admin_put_error(response, 404, "there are cancel and retry");
}

static void
steer(struct admin *admin, struct span nonce, struct span word,
      const struct http_server_request *request, struct http_server_response *response)
{
	struct admin_ask *ask = admin_ask_open(admin, request, response, finish_call);
	const struct span words[] = { nonce, word, WHO };

	if (!ask)
		return;
	admin_ask_function(ask, "steer", words, ARRAY_SIZE(words));
	admin_ask_round(ask, finish_call);
}

static void
act_on_worker(struct admin *admin, const char *rest,
              const struct http_server_request *request,
              struct http_server_response *response)
{
	struct span nonce = { rest, strcspn(rest, "/") };
	const char *what = rest[nonce.len] ? rest + nonce.len + 1 : "";

	if (nonce.len != 16 || strspn(rest, "0123456789abcdef") != 16)
		admin_put_error(response, 400, "the id of a worker is 16 hex digits");
	else if (strcmp(what, "quiet") == 0)
		steer(admin, nonce, SPAN("quiet"), request, response);
	else if (strcmp(what, "stop") == 0)
		steer(admin, nonce, SPAN("stop"), request, response);
	else if (strcmp(what, "resume") == 0)
		steer(admin, nonce, SPAN("run"), request, response);
	else
		admin_put_error(response, 404, "there are quiet, resume and stop");
}

/* What may be the name of a route: the function would refuse others. */
static bool
is_route(const json_t *value)
{
	const char *name = json_string_value(value);
	size_t len = name ? strlen(name) : 0;

	if (len == 0 || len >= RULER_ROUTE_SIZE)
		return false;
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f || name[i] == '|')
			return false;
	return true;
}

static void
act_on_hold(struct admin *admin, const json_t *body,
            const struct http_server_request *request,
            struct http_server_response *response)
{
	const json_t *on = json_object_get(body, "on");
	const json_t *route = json_object_get(body, "route");
	struct admin_ask *ask;
	struct span words[3];

	if (!json_is_boolean(on) || (route && !is_route(route))) {
		admin_put_error(response, 400,
		                "the body is {\"on\": true} or {\"on\": false}, with "
		                "\"route\" for one route only");
		return;
	}
	ask = admin_ask_open(admin, request, response, finish_call);
	if (!ask)
		return;
	words[0] = json_is_true(on) ? SPAN("on") : SPAN("off");
	words[1] = WHO;
	words[2] = span_from(route ? json_string_value(route) : "");
	admin_ask_function(ask, "hold", words, route ? 3 : 2);
	admin_ask_round(ask, finish_call);
}

static void
act_on_unpark(struct admin *admin, const json_t *body,
              const struct http_server_request *request,
              struct http_server_response *response)
{
	const char *budget = json_string_value(json_object_get(body, "budget"));

	if (!budget || !*budget) {
		admin_put_error(response, 400,
		                "the body is {\"budget\": \"...\"}: the name of a "
		                "budget, or of an account for all of its budgets");
		return;
	}
	call_one(admin, request, response, "unpark", span_from(budget), WHO);
}

/* Whoever comes here had the token. */
static void
act_on_nothing(struct http_server_response *response)
{
	response->content_type = "application/json";
	(void)buffer_append_text(&response->body, "{\"what\":\"done\"}\n");
}

/* What the body of an action may have; whoever misspells `route` must not switch holding
 * off for all routes. */
static const struct {
	const char *path;
	const char *members[2];
} bodies[] = {
	{ "/api/v1/hold", { "on", "route" } },
	{ "/api/v1/unpark", { "budget" } },
	{ "/api/v1/dead/", { "all", "ids" } },
	{ "", { NULL } },
};

/* The first member that the action does not know; NULL if it knows all. */
static const char *
find_unknown(const char *path, json_t *body)
{
	const char *const *members;
	const char *name;
	json_t *value;
	size_t i = 0;

	while (!behind(path, bodies[i].path))
		i++;
	members = bodies[i].members;
	json_object_foreach(body, name, value)
	{
		if (!(members[0] && strcmp(name, members[0]) == 0) &&
		    !(members[1] && strcmp(name, members[1]) == 0))
			return name;
	}
	return NULL;
}

static bool
check_body(const struct http_server_request *request, json_t *body,
           struct http_server_response *response)
{
	const char *unknown;
	char text[128];

	if (request->body.len > 0 && !json_is_object(body)) {
		admin_put_error(
			response, 400,
			"the body is a JSON object without repeated members, or nothing");
		return false;
	}
	unknown = body ? find_unknown(request->path, body) : NULL;
	if (!unknown)
		return true;
	(void)snprintf(text, sizeof(text), "this action knows no member `%.64s`",
	               unknown);
	admin_put_error(response, 400, text);
	return false;
}

void
admin_act_serve(struct admin *admin, const struct http_server_request *request,
                struct http_server_response *response)
{
	json_t *body = json_loadb(request->body.data ? request->body.data : "",
	                          request->body.len, JSON_REJECT_DUPLICATES, NULL);
	const char *path = request->path, *rest;

	if (strcmp(path, "/api/v1/check") != 0)
		log_info("somebody acts on the pages", LOG_TEXT("path", path));
	if (!check_body(request, body, response))
		; /* it was said */
	else if (strcmp(path, "/api/v1/check") == 0)
		act_on_nothing(response);
	else if (strcmp(path, "/api/v1/hold") == 0)
		act_on_hold(admin, body, request, response);
	else if (strcmp(path, "/api/v1/unpark") == 0)
		act_on_unpark(admin, body, request, response);
	else if (strcmp(path, "/api/v1/dead/retry") == 0)
		take_dead(admin, "requeue", body, request, response);
	else if (strcmp(path, "/api/v1/dead/drop") == 0)
		take_dead(admin, "drop", body, request, response);
	else if ((rest = behind(path, "/api/v1/families/")) != NULL)
		act_on_family(admin, rest, request, response);
	else if ((rest = behind(path, "/api/v1/workers/")) != NULL)
		act_on_worker(admin, rest, request, response);
	else if ((rest = behind(path, "/api/v1/jobs/")) != NULL)
		act_on_job(admin, rest, request, response);
	else
		admin_put_error(response, 404,
		                "there is no such action: docs/openapi.json lists them");
	json_decref(body);
}
