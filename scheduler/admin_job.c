/* The story of one job: where its id stands, what happened to it, and how it ended. */
#include "scheduler/admin_jobs.h"

#include "common/codec/protocol_record.h"
#include "common/text.h"
#include "scheduler/admin_ask.h"
#include "scheduler/admin_guard.h"
#include "scheduler/ruler_view.h"
#include "scheduler/ruler_view_json.h"

#include <jansson.h>
#include <stdlib.h>

#define RESULT_MAX SPAN("1048575") /* last byte looked at */
#define SLIM_MAX   SPAN("8191")    /* likewise: its fields stand first */
#define QUEUES_MAX 3               /* families of its route that are shown */

enum { /* the replies of the first round */
	SLIM,
	PAST,
	LATER,
	DEAD,
	ENDED,
	DEADLINE,
	RESULT,
	ENTRY,
	WORKERS,
	ROUND_COUNT,
};

static json_t *
text_of(struct span text)
{
	json_t *value = json_stringn(text.data ? text.data : "", text.len);

	return value ? value : json_string("(not UTF-8)");
}

static struct span
cut_element(struct span element)
{
	return admin_jobs_id(element);
}

/* A field of its entry, unless it is a prompt. */
static void
add_field(struct span name, struct span value, json_t *object)
{
	static const char *const hidden[] = { "body", "prefix", "json", "m" };
	bool hide = name.len == 0 || name.len > 64 || value.len > 512;

	for (size_t n = 0; n < ARRAY_SIZE(hidden); n++)
		hide |= span_equals(name, span_from(hidden[n]));
	if (!hide)
		json_object_setn_new(object, name.data, name.len, text_of(value));
}

static json_t *
fields_of(const struct reply *entries)
{
	const struct reply *fields = reply_at(reply_at(entries, 0), 1);
	json_t *object = json_object();

	for (size_t i = 0; fields->kind == REPLY_ARRAY && i + 1 < fields->count; i += 2)
		add_field(reply_text(&fields->items[i]),
		          reply_text(&fields->items[i + 1]), object);
	return object;
}

/* "5 route\n" -> "route" */
static bool
cut_sized(struct span *text, struct span *ret_word)
{
	struct span digits;
	uint64_t len;

	if (!protocol_cut(text, ' ', &digits) ||
	    text_parse_unsigned(digits, UINT32_MAX, &len) < 0 || len >= text->len)
		return false;
	*ret_word = (struct span){ text->data, (size_t)len };
	text->data += len + 1;
	text->len -= len + 1;
	return true;
}

/* Of a payload: a moved entry has its fields with their sizes (docs/PROTOCOL.md), a slim
 * one has one a line up to an empty one (docs/ENVELOPE.md). */
static void
add_slim_fields(struct span text, json_t *object)
{
	struct span line, name, value;

	if (!protocol_cut(&text, '\n', &line))
		return;
	if (span_equals(line, SPAN("entry"))) {
		while (cut_sized(&text, &name) && cut_sized(&text, &value))
			add_field(name, value, object);
		return;
	}
	if (line.len < 5 || memcmp(line.data, "slim1", 5) != 0)
		return;
	while (protocol_cut(&text, '\n', &line) && line.len > 0)
		if (protocol_cut(&line, ' ', &name) && name.len > 0)
			json_object_setn_new(object, name.data, name.len, text_of(line));
}

static json_t *
past_of(const struct reply *hash)
{
	json_t *object = json_object();

	for (size_t i = 0; hash->kind == REPLY_ARRAY && i + 1 < hash->count; i += 2) {
		struct span name = reply_text(&hash->items[i]);

		json_object_setn_new(object, name.data, name.len,
		                     text_of(reply_text(&hash->items[i + 1])));
	}
	return object;
}

/* What the result says, and its body only for those who may read it. */
static json_t *
result_of(struct span text, bool reveal)
{
	json_t *result = json_loadb(text.data, text.len, JSON_DECODE_ANY, NULL);

	if (!json_is_object(result)) {
		json_decref(result);
		return json_pack("{s:s}", "note", "too large to be shown here");
	}
	if (!reveal && json_object_del(result, "body") == 0)
		json_object_set_new(result, "body_hidden", json_true());
	return result;
}

static json_t *
story_of(struct admin_ask *ask)
{
	const struct reply *const *replies = ask->replies;
	struct protocol_job_id id = { 0 };
	struct span result = reply_text(replies[RESULT]);
	json_t *job = json_object(), *fields = fields_of(replies[ENTRY]);

	VERIFY(protocol_parse_job_id(span_from(ask->text), &id) == 0); /* checked */
	add_slim_fields(reply_text(replies[SLIM]), fields);
	json_object_set_new(job, "id", json_string(ask->text));
	json_object_set_new(job, "enqueued_ms", json_integer((json_int_t)id.ms));
	if (reply_text(replies[SLIM]).len > 0 || replies[ENTRY]->count > 0)
		json_object_set_new(job, "state", json_string("waiting"));
	if (result.len > 0) {
		json_t *object = result_of(result, ask->number > 0);
		json_t *state = json_object_get(object, "state");

		json_object_set(job, "state", state ? state : json_null());
		json_object_set_new(job, "result", object);
	}
	if (replies[ENDED]->kind == REPLY_TEXT)
		json_object_set_new(job, "state", text_of(reply_text(replies[ENDED])));
	if (replies[LATER]->kind != REPLY_NIL) {
		json_object_set_new(job, "state", json_string("later"));
		json_object_set_new(job, "due_ms",
		                    json_integer(reply_integer(replies[LATER], 0)));
	}
	if (replies[DEAD]->kind != REPLY_NIL) {
		json_object_set_new(job, "state", json_string("dead"));
		json_object_set_new(job, "dead_ms",
		                    json_integer(reply_integer(replies[DEAD], 0)));
	}
	if (replies[DEADLINE]->kind != REPLY_NIL)
		json_object_set_new(job, "deadline_ms",
		                    json_integer(reply_integer(replies[DEADLINE], 0)));
	if (replies[PAST]->count > 0)
		json_object_set_new(job, "past", past_of(replies[PAST]));
	if (json_object_size(fields) > 0)
		json_object_set(job, "fields", fields);
	json_decref(fields);
	return job;
}

static void
add_lease(json_t *job, const char *nonce, struct span slot,
          const struct protocol_lease *lease)
{
	json_object_set_new(job, "state", json_string("running"));
	json_object_set_new(job, "session", json_stringn(nonce, 16));
	json_object_set_new(job, "slot", text_of(slot));
	json_object_set_new(job, "role", json_string(protocol_role_text(lease->role)));
	json_object_set_new(job, "family", text_of(lease->family));
	json_object_set_new(job, "delivery", json_integer((json_int_t)lease->delivery));
}

/* ---- what a waiting job waits for ------------------------------------------------ */

static void
add_queue(const struct admin *admin, struct id128 family, json_t *queues)
{
	struct buffer text = BUFFER_INIT(BUFFER_SIZE_DEFAULT);
	json_t *queue = NULL;

	if (ruler_view_family(admin->ruler, family, &text) == 0)
		queue = json_loadb(text.data, text.len, 0, NULL);
	if (queue)
		json_array_append_new(queues, queue);
	buffer_fini(&text);
}

static void
add_queues_of(struct admin *admin, const char *route, json_t *queues)
{
	const struct board_query query = {
		.sort = BOARD_SORT_WAITING,
		.show = BOARD_SHOW_ALL,
		.route = span_from(route),
		.blocked = -1,
		.limit = QUEUES_MAX,
	};
	const struct board_row *rows[BOARD_LIMIT_MAX];
	uint32_t count;

	board_refresh(&admin->board, *admin->now_ms);
	(void)board_select(&admin->board, &query, rows, &count);
	for (uint32_t i = 0; i < count && rows[i]->waiting > 0; i++)
		add_queue(admin, rows[i]->id, queues);
}

/* Where it was handed back it is known which family it is of; else it is one of those of
 * its route, as far as the job names one. */
static void
add_queues(struct admin *admin, json_t *job)
{
	const char *route = json_string_value(
		json_object_get(json_object_get(job, "fields"), "route"));
	const char *family = json_string_value(
		json_object_get(json_object_get(job, "past"), "family"));
	const char *state = json_string_value(json_object_get(job, "state"));
	json_t *queues = json_array();
	struct id128 id;

	if (state && strcmp(state, "waiting") == 0) {
		if (family && id_decode(span_from(family), &id) == 0)
			add_queue(admin, id, queues);
		else if (route)
			add_queues_of(admin, route, queues);
	}
	if (json_array_size(queues) > 0)
		json_object_set(job, "queues", queues);
	json_decref(queues);
}

/* ask->scratch: the nonces, then the story so far as text. */
static void
put_story(struct admin_ask *ask)
{
	size_t nonces = (size_t)ask->replies_count * 16;
	json_t *job = json_loadb(ask->scratch.data + nonces, ask->scratch.len - nonces, 0,
	                         NULL);
	struct protocol_lease lease;
	char *text;

	for (uint32_t i = 0; i < ask->replies_count; i++) {
		const struct reply *table = ask->replies[i];

		for (size_t j = 0; table->kind == REPLY_ARRAY && j + 1 < table->count;
		     j += 2)
			if (protocol_record_parse_lease(reply_text(&table->items[j + 1]),
			                                &lease) == 0 &&
			    span_equals(cut_element(lease.element), span_from(ask->text)))
				add_lease(job, ask->scratch.data + (size_t)i * 16,
				          reply_text(&table->items[j]), &lease);
	}
	if (!json_object_get(job, "state")) {
		json_decref(job);
		admin_ask_fail(ask, 404,
		               "nothing is known of this job: it never was, or it ended "
		               "and its result was delivered or has expired");
		return;
	}
	add_queues(ask->admin, job);
	text = json_dumps(job, JSON_COMPACT);
	json_decref(job);
	(void)buffer_append_text(&ask->response.body, text ? text : "{}");
	free(text);
	admin_ask_finish(ask);
}

static void
on_places(struct admin_ask *ask)
{
	const struct reply *nonces = ask->replies[WORKERS];
	json_t *job = story_of(ask);
	char *text = json_dumps(job, JSON_COMPACT);

	for (size_t i = 0; i < nonces->count && i < ADMIN_ASK_MAX; i++) {
		struct span nonce = reply_text(&nonces->items[i]);

		if (nonce.len != 16)
			continue;
		(void)buffer_append(&ask->scratch, nonce);
		ADMIN_ASK(ask, SPAN("HGETALL"), admin_ask_key(ask, "lease:", nonce));
	}
	(void)buffer_append_text(&ask->scratch, text ? text : "{}");
	free(text);
	json_decref(job);
	admin_ask_round(ask, put_story);
}

void
admin_jobs_serve_one(struct admin *admin, const char *id,
                     const struct http_server_request *request,
                     struct http_server_response *response)
{
	struct admin_ask *ask;
	struct span name = span_from(id);

	if (!admin_jobs_is_id(id)) {
		admin_put_error(response, 400,
		                "the id of a job is <ms>-<number>, as XADD answered it");
		return;
	}
	ask = admin_ask_open(admin, request, response, on_places);
	if (!ask)
		return;
	memcpy(ask->text, id, name.len + 1); /* checked to be short */
	ask->key[0] = '\0';                  /* not for everybody */
	ask->number =
		admin->config->scheduler.reveal && admin_guard_has_token(admin, request);
	name = span_from(ask->text);
	ADMIN_ASK(ask, SPAN("GETRANGE"), admin_ask_key(ask, "slim:", name), SPAN("0"),
	          SLIM_MAX);
	ADMIN_ASK(ask, SPAN("HGETALL"), admin_ask_key(ask, "past:", name));
	ADMIN_ASK(ask, SPAN("ZSCORE"), admin_ask_key(ask, "later", SPAN("")), name);
	ADMIN_ASK(ask, SPAN("ZSCORE"), admin_ask_key(ask, "dead", SPAN("")), name);
	ADMIN_ASK(ask, SPAN("HGET"), admin_ask_key(ask, "ended", SPAN("")), name);
	ADMIN_ASK(ask, SPAN("ZSCORE"), admin_ask_key(ask, "deadline", SPAN("")), name);
	ADMIN_ASK(ask, SPAN("GETRANGE"), admin_ask_key(ask, "result:", name), SPAN("0"),
	          RESULT_MAX);
	if (strchr(id, '.')) /* of a pack: its entry is not it */
		ADMIN_ASK(ask, SPAN("LRANGE"), admin_ask_key(ask, "none", SPAN("")),
		          SPAN("0"), SPAN("0"));
	else
		ADMIN_ASK(ask, SPAN("XRANGE"), admin_ask_key(ask, "jobs", SPAN("")), name,
		          name);
	ADMIN_ASK(ask, SPAN("ZRANGE"), admin_ask_key(ask, "workers", SPAN("")), SPAN("0"),
	          SPAN("-1"));
	admin_ask_round(ask, on_places);
}
