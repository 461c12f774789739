#include "cli/snapshot.h"

#include "cli/store_walk.h"
#include "common/codec/protocol_answer.h"
#include "common/codec/protocol_call.h"
#include "common/codec/protocol_record.h"

#include <stdio.h>
#include <stdlib.h>

#define GLANCE_BATCH 32 /* families in one glance: within the call list's words */

struct span
snapshot_text(const json_t *object, const char *member)
{
	const json_t *value = json_object_get(object, member);

	if (!json_is_string(value))
		return (struct span){ "", 0 };
	return (struct span){ json_string_value(value), json_string_length(value) };
}

static void
set_text(json_t *object, struct span member, struct span value)
{
	char name[160];

	snprintf(name, sizeof name, "%.*s", (int)member.len, member.data);
	json_object_set_new(object, name, cli_json_text(value));
}

static void
keep_field(void *hash, struct span field, struct span value)
{
	set_text(hash, field, value);
}

int
snapshot_hash(struct store *store, struct span key, json_t **ret_hash)
{
	json_t *hash = json_object();
	int code = store_walk_hash(store, key, keep_field, hash);

	if (code == CLI_OK)
		*ret_hash = hash;
	else
		json_decref(hash);
	return code;
}

static int
load_clock(struct store *store, struct snapshot *snapshot)
{
	const struct reply *reply;
	int code = store_now(store, &snapshot->now_ms);

	if (code != CLI_OK)
		return code;
	code = STORE_COMMAND(store, &reply, SPAN("HGET"),
	                     store_key(store, "meta", SPAN("")), SPAN("hold"));
	if (code == CLI_OK)
		snapshot->is_held = !reply_is(reply, "off");
	return code;
}

/* One hash per distinct budget of the families. */
static int
load_budgets(struct store *store, struct snapshot *snapshot)
{
	const char *id;
	json_t *record;

	snapshot->budgets = json_object();
	json_object_foreach(snapshot->families, id, record)
	{
		struct protocol_family family;
		char name[512];
		json_t *hash;
		int code;

		if (protocol_record_parse_family(snapshot_text(snapshot->families, id),
		                                 &family) < 0)
			continue;
		snprintf(name, sizeof name, "%.*s", (int)family.budget.len,
		         family.budget.data);
		if (json_object_get(snapshot->budgets, name))
			continue;
		code = snapshot_hash(store, store_key(store, "budget:", family.budget),
		                     &hash);
		if (code != CLI_OK)
			return code;
		json_object_set_new(snapshot->budgets, name, hash);
	}
	return CLI_OK;
}

/* "budgets!a,b": the worker does not reach a and b. */
static json_t *
read_unreached(struct span budgets)
{
	json_t *names = json_array();
	struct span name;

	if (protocol_cut(&budgets, '!', &name))
		while (protocol_list_next(&budgets, &name))
			json_array_append_new(names, json_stringn(name.data, name.len));
	return names;
}

/* The lease hash has one field that is no slot: `s`, "c|pool|job_ms|budgets", and what
 * the worker was told (docs/PROTOCOL.md). */
static void
take_session_field(json_t *session, json_t *leases)
{
	struct span rest = snapshot_text(leases, "s"), words[4], manner = SPAN("running");
	size_t count = 0;

	while (count < ARRAY_SIZE(words) && rest.len > 0 &&
	       protocol_cut(&rest, '|', &words[count]))
		count++;
	if (count > 1)
		set_text(session, SPAN("pool"), words[1]);
	if (span_equals(rest, SPAN("stop")))
		manner = SPAN("stopping");
	else if (span_equals(rest, SPAN("quiet")))
		manner = rest;
	set_text(session, SPAN("state"), manner);
	json_object_set_new(session, "unreached",
	                    read_unreached(count > 3 ? words[3] : SPAN("")));
	json_object_del(leases, "s");
}

static int
load_session(struct store *store, struct snapshot *snapshot, const char *nonce,
             int64_t deadline_ms)
{
	json_t *session, *leases;
	int code = snapshot_hash(store, store_key(store, "session:", span_from(nonce)),
	                         &session);

	if (code != CLI_OK)
		return code;
	code = snapshot_hash(store, store_key(store, "lease:", span_from(nonce)),
	                     &leases);
	if (code != CLI_OK) {
		json_decref(session);
		return code;
	}
	take_session_field(session, leases);
	json_object_set_new(session, "busy",
	                    json_integer((json_int_t)json_object_size(leases)));
	json_object_set_new(session, "deadline_ms", json_integer(deadline_ms));
	json_object_set_new(snapshot->sessions, nonce, session);
	json_object_set_new(snapshot->leases, nonce, leases);
	return CLI_OK;
}

static int
load_sessions(struct store *store, struct snapshot *snapshot)
{
	json_t *nonces = json_object();
	const struct reply *reply;
	const char *nonce;
	json_t *deadline;
	int code = STORE_COMMAND(store, &reply, SPAN("ZRANGE"),
	                         store_key(store, "workers", SPAN("")), SPAN("0"),
	                         SPAN("-1"), SPAN("WITHSCORES"));

	snapshot->sessions = json_object();
	snapshot->leases = json_object();
	for (size_t i = 0; code == CLI_OK && i + 1 < reply->count; i += 2)
		set_text(nonces, reply_text(&reply->items[i]),
		         reply_text(&reply->items[i + 1]));
	json_object_foreach(nonces, nonce, deadline)
	{
		if (code == CLI_OK)
			code = load_session(
				store, snapshot, nonce,
				strtoll(json_string_value(deadline), NULL, 10));
	}
	json_decref(nonces);
	return code;
}

/* Asks for the families from `iterator` on, at most a batch; answers the next one. */
static int
load_glance_batch(struct store *store, struct snapshot *snapshot, void **iterator)
{
	struct call_list *calls = store_calls(store);
	const struct reply *reply;
	struct protocol_glance glance;
	int code;

	protocol_call_glance(calls, 0, store_namespace(store));
	for (int i = 0; i < GLANCE_BATCH && *iterator; i++) {
		call_text(calls, json_object_iter_key(*iterator));
		*iterator = json_object_iter_next(snapshot->families, *iterator);
	}
	code = store_call(store, &reply);
	for (size_t i = 0; code == CLI_OK && protocol_answer_glance(reply, i, &glance);
	     i++) {
		char id[ID_HEX_LEN + 1] = { 0 };

		id_encode(glance.family, id);
		json_object_set_new(snapshot->glances, id,
		                    json_pack("{s:I,s:I,s:I}", "backlog",
		                              (json_int_t)glance.backlog, "in_use",
		                              (json_int_t)glance.in_use, "head_ms",
		                              (json_int_t)glance.head_ms));
	}
	return code;
}

static int
load_glances(struct store *store, struct snapshot *snapshot)
{
	void *iterator = json_object_iter(snapshot->families);
	int code = CLI_OK;

	snapshot->glances = json_object();
	while (iterator && code == CLI_OK)
		code = load_glance_batch(store, snapshot, &iterator);
	return code;
}

int
snapshot_load(struct store *store, struct snapshot *ret_snapshot)
{
	struct snapshot snapshot = { 0 };
	int code = load_clock(store, &snapshot);

	if (code == CLI_OK)
		code = snapshot_hash(store, store_key(store, "families", SPAN("")),
		                     &snapshot.families);
	if (code == CLI_OK)
		code = snapshot_hash(store, store_key(store, "lanes", SPAN("")),
		                     &snapshot.lanes);
	if (code == CLI_OK)
		code = load_budgets(store, &snapshot);
	if (code == CLI_OK)
		code = load_sessions(store, &snapshot);
	if (code == CLI_OK)
		code = load_glances(store, &snapshot);
	if (code == CLI_OK)
		*ret_snapshot = snapshot;
	else
		snapshot_fini(&snapshot);
	return code;
}

void
snapshot_fini(struct snapshot *snapshot)
{
	json_decref(snapshot->families);
	json_decref(snapshot->lanes);
	json_decref(snapshot->glances);
	json_decref(snapshot->budgets);
	json_decref(snapshot->sessions);
	json_decref(snapshot->leases);
	*snapshot = (struct snapshot){ 0 };
}
