/* Jobs that wait in a pool from which nobody claims. */
#include "cli/doctor.h"

#include "cli/store_walk.h"
#include "common/codec/protocol.h"
#include "common/codec/protocol_answer.h"
#include "common/codec/protocol_call.h"
#include "common/codec/protocol_record.h"

#include <stdio.h>
#include <string.h>

#define LOOKED_AT_MAX 32 /* families of a pool whose jobs are counted */

/* Pools of sessions that claim: "c|pool|job_ms|budgets", and what the worker was told. */
static int
see_session(struct doctor *doctor, const char *nonce, json_t *served)
{
	const struct reply *reply;
	struct span rest, word, pool = { 0 };
	int code = STORE_COMMAND(doctor->store, &reply, SPAN("HGET"),
	                         store_key(doctor->store, "lease:", span_from(nonce)),
	                         SPAN("s"));

	if (code != CLI_OK)
		return code;
	rest = reply_text(reply);
	for (int i = 0; i < 4 && rest.len > 0 && protocol_cut(&rest, '|', &word); i++)
		if (i == 1)
			pool = word;
	if (pool.len > 0 && rest.len == 0)
		json_object_setn_new(served, pool.data, pool.len, json_true());
	return CLI_OK;
}

static int
see_sessions(struct doctor *doctor, json_t *served)
{
	json_t *nonces = json_array(), *nonce;
	const struct reply *reply;
	char now[24];
	size_t i;
	int code;

	snprintf(now, sizeof now, "%llu", (unsigned long long)doctor->now_ms);
	code = STORE_COMMAND(doctor->store, &reply, SPAN("ZRANGEBYSCORE"),
	                     store_key(doctor->store, "workers", SPAN("")),
	                     span_from(now), SPAN("+inf"));
	for (i = 0; code == CLI_OK && i < reply->count; i++)
		json_array_append_new(nonces,
		                      cli_json_text(reply_text(&reply->items[i])));
	json_array_foreach(nonces, i, nonce)
	{
		if (code == CLI_OK)
			code = see_session(doctor, json_string_value(nonce), served);
	}
	json_decref(nonces);
	return code;
}

struct unserved {
	const json_t *served;
	json_t *pools; /* pool -> ids of families that may have work */
};

static void
see_family(void *data, struct span id, struct span text)
{
	struct unserved *unserved = data;
	struct protocol_family record;
	json_t *families;

	if (protocol_record_parse_family(text, &record) < 0 || record.bits == 0 ||
	    record.pool.len == 0 ||
	    json_object_getn(unserved->served, record.pool.data, record.pool.len))
		return;
	families = json_object_getn(unserved->pools, record.pool.data, record.pool.len);
	if (!families) {
		families = json_array();
		json_object_setn_new(unserved->pools, record.pool.data, record.pool.len,
		                     families);
	}
	if (json_array_size(families) < LOOKED_AT_MAX)
		json_array_append_new(families, cli_json_text(id));
}

static int
say_pool(struct doctor *doctor, const char *pool, const json_t *families)
{
	struct call_list *calls = store_calls(doctor->store);
	char action[DOCTOR_COMMAND_SIZE], count[CLI_COUNT_SIZE];
	struct protocol_glance glance;
	const struct reply *reply;
	const json_t *id;
	uint64_t jobs = 0;
	size_t i;
	int code;

	protocol_call_glance(calls, 0, store_namespace(doctor->store));
	json_array_foreach(families, i, id) call_text(calls, json_string_value(id));
	code = store_call(doctor->store, &reply);
	for (i = 0; code == CLI_OK && protocol_answer_glance(reply, i, &glance); i++)
		jobs += glance.backlog;
	if (code != CLI_OK || jobs == 0)
		return code; /* a bit may be set for a list that is empty */
	snprintf(action, sizeof action,
	         "start one: warmq-worker --pool %s; a quiet one claims again with "
	         "warmq worker resume",
	         pool);
	doctor_say(doctor, DOCTOR_WARNING, "pools", action,
	           "%s%s in the pool %s, and no worker claims from it",
	           json_array_size(families) == LOOKED_AT_MAX ? "at least " : "",
	           cli_count(jobs, "job waits", "jobs wait", count), pool);
	return CLI_OK;
}

int
doctor_look_at_pools(struct doctor *doctor)
{
	json_t *served = json_object();
	struct unserved unserved = { served, json_object() };
	const char *pool;
	json_t *families;
	int code = see_sessions(doctor, served);

	if (code == CLI_OK && doctor->has_functions)
		code = store_walk_hash(doctor->store,
		                       store_key(doctor->store, "families", SPAN("")),
		                       see_family, &unserved);
	json_object_foreach(unserved.pools, pool, families)
	{
		if (code == CLI_OK)
			code = say_pool(doctor, pool, families);
	}
	json_decref(served);
	json_decref(unserved.pools);
	return code;
}
