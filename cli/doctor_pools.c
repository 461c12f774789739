/* Jobs that wait for somebody who does not exist: a worker of their pool, or an upstream.
 */
#include "cli/doctor.h"

#include "cli/store_walk.h"
#include "common/codec/protocol.h"
#include "common/codec/protocol_answer.h"
#include "common/codec/protocol_call.h"
#include "common/codec/protocol_record.h"

#include <stdio.h>
#include <string.h>

#define LOOKED_AT_MAX 32 /* families of one finding whose jobs are counted */

static void
add_one(json_t *counts, struct span name)
{
	json_int_t count =
		json_integer_value(json_object_getn(counts, name.data, name.len));

	json_object_setn_new(counts, name.data, name.len, json_integer(count + 1));
}

/* What could be done: pool -> { "workers": n, "away": { upstream: how many of them do not
 * reach it } }.  Of sessions that claim: "c|pool|job_ms|budgets!away", and what the
 * worker was told. */
static int
see_session(struct doctor *doctor, const char *nonce, json_t *served)
{
	const struct reply *reply;
	struct span rest, words[4] = { { 0 } }, budgets, name;
	json_t *pool, *away;
	int code = STORE_COMMAND(doctor->store, &reply, SPAN("HGET"),
	                         store_key(doctor->store, "lease:", span_from(nonce)),
	                         SPAN("s"));

	if (code != CLI_OK)
		return code;
	rest = reply_text(reply);
	for (size_t i = 0; i < ARRAY_SIZE(words) && rest.len > 0; i++)
		if (!protocol_cut(&rest, '|', &words[i]))
			break;
	if (words[1].len == 0 || rest.len > 0)
		return CLI_OK;
	pool = json_object_getn(served, words[1].data, words[1].len);
	if (!pool) {
		pool = json_pack("{s:i,s:{}}", "workers", 0, "away");
		json_object_setn_new(served, words[1].data, words[1].len, pool);
	}
	add_one(pool, SPAN("workers"));
	away = json_object_get(pool, "away");
	budgets = words[3];
	if (protocol_cut(&budgets, '!', &name))
		while (protocol_list_next(&budgets, &name))
			add_one(away, name);
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

/* What is wanted and not there. */
struct missing {
	const json_t *served;
	const json_t *upstreams; /* that the ruling scheduler knows; NULL: nobody says */
	json_t *pools, *gone, *away; /* name -> ids of families that may have work */
};

static void
add_family(json_t *of, struct span name, struct span id)
{
	json_t *families = json_object_getn(of, name.data, name.len);

	if (!families) {
		families = json_array();
		json_object_setn_new(of, name.data, name.len, families);
	}
	if (json_array_size(families) < LOOKED_AT_MAX)
		json_array_append_new(families, cli_json_text(id));
}

static bool
is_known(const json_t *names, struct span name)
{
	const json_t *it;
	size_t i;

	json_array_foreach(names, i, it)
	{
		if (span_equals(name, span_from(json_string_value(it))))
			return true;
	}
	return false;
}

static void
see_family(void *data, struct span id, struct span text)
{
	struct missing *missing = data;
	struct protocol_family record;
	struct span upstream, rest;
	const json_t *pool, *away;

	if (protocol_record_parse_family(text, &record) < 0 || record.bits == 0 ||
	    record.pool.len == 0)
		return;
	rest = record.budget; /* "upstream:class" or "upstream@account:class" */
	(void)protocol_cut(&rest, ':', &upstream);
	rest = upstream;
	(void)protocol_cut(&rest, '@', &upstream);
	pool = json_object_getn(missing->served, record.pool.data, record.pool.len);
	away = json_object_getn(json_object_get(pool, "away"), upstream.data,
	                        upstream.len);
	if (missing->upstreams && !is_known(missing->upstreams, upstream))
		add_family(missing->gone, upstream, id);
	else if (!pool)
		add_family(missing->pools, record.pool, id);
	else if (away && json_equal(away, json_object_get(pool, "workers")))
		add_family(missing->away, upstream, id);
}

/* "at least 7 jobs wait"; false if none does: a bit may be set for a list that is empty.
 */
static bool
count_jobs(struct doctor *doctor, const json_t *families,
           char ret_text[CLI_COUNT_SIZE + 16], int *code)
{
	struct call_list *calls = store_calls(doctor->store);
	struct protocol_glance glance;
	char count[CLI_COUNT_SIZE];
	const struct reply *reply;
	const json_t *id;
	uint64_t jobs = 0;
	size_t i;

	protocol_call_glance(calls, 0, store_namespace(doctor->store));
	json_array_foreach(families, i, id) call_text(calls, json_string_value(id));
	*code = store_call(doctor->store, &reply);
	for (i = 0; *code == CLI_OK && protocol_answer_glance(reply, i, &glance); i++)
		jobs += glance.backlog;
	snprintf(ret_text, CLI_COUNT_SIZE + 16, "%s%s",
	         json_array_size(families) == LOOKED_AT_MAX ? "at least " : "",
	         cli_count(jobs, "job waits", "jobs wait", count));
	return *code == CLI_OK && jobs > 0;
}

static int
say_pool(struct doctor *doctor, const char *pool, const json_t *families)
{
	char action[DOCTOR_COMMAND_SIZE], jobs[CLI_COUNT_SIZE + 16];
	int code;

	if (!count_jobs(doctor, families, jobs, &code))
		return code;
	snprintf(action, sizeof action,
	         "start one: warmq-worker --pool %s; a quiet one claims again with "
	         "warmq worker resume",
	         pool);
	doctor_say(doctor, DOCTOR_WARNING, "pools", action,
	           "%s in the pool %s, and no worker claims from it", jobs, pool);
	return CLI_OK;
}

/* What is said of jobs whose upstream is not there. */
struct fault {
	enum doctor_level level;
	const char *what;
	const char *action;
};

static const struct fault fault_gone = {
	.level = DOCTOR_BAD,
	.what = "which is not in the configuration of the scheduler that rules: nobody "
		"will ever send them",
	.action = "add it to the configuration of scheduler and workers again, and "
		  "restart these; or end the jobs: the scheduler's page cancels all that "
		  "wait in a family (warmq family ls)",
};

static const struct fault fault_away = {
	.level = DOCTOR_WARNING,
	.what = "which no worker of their pool reaches",
	.action = "the logs of the workers say why: another configuration, network, "
		  "name, certificate or proxy; they try again by themselves",
};

static int
say_fault(struct doctor *doctor, const struct fault *fault, const char *upstream,
          const json_t *families)
{
	char jobs[CLI_COUNT_SIZE + 16];
	int code;

	if (count_jobs(doctor, families, jobs, &code))
		doctor_say(doctor, fault->level, "upstreams", fault->action,
		           "%s for the upstream %s, %s", jobs, upstream, fault->what);
	return code;
}

/* NULL if nobody rules, or rules and does not say. */
static json_t *
load_upstreams(struct doctor *doctor, int *code)
{
	const struct reply *reply;
	json_t *status, *upstreams;

	*code = STORE_COMMAND(doctor->store, &reply, SPAN("GET"),
	                      store_key(doctor->store, "status", SPAN("")));
	if (*code != CLI_OK || reply->kind == REPLY_NIL)
		return NULL;
	status = json_loadb(reply_text(reply).data, reply_text(reply).len, 0, NULL);
	upstreams = json_incref(json_object_get(status, "upstreams"));
	json_decref(status);
	return upstreams;
}

static int
say_all(struct doctor *doctor, const struct missing *missing)
{
	int code = CLI_OK;
	const char *name;
	json_t *families;

	json_object_foreach(missing->pools, name, families)
	{
		if (code == CLI_OK)
			code = say_pool(doctor, name, families);
	}
	json_object_foreach(missing->gone, name, families)
	{
		if (code == CLI_OK)
			code = say_fault(doctor, &fault_gone, name, families);
	}
	json_object_foreach(missing->away, name, families)
	{
		if (code == CLI_OK)
			code = say_fault(doctor, &fault_away, name, families);
	}
	return code;
}

int
doctor_look_at_pools(struct doctor *doctor)
{
	json_t *served = json_object(), *upstreams = NULL;
	struct missing missing = { .served = served,
		                   .pools = json_object(),
		                   .gone = json_object(),
		                   .away = json_object() };
	int code = see_sessions(doctor, served);

	if (code == CLI_OK)
		upstreams = load_upstreams(doctor, &code);
	missing.upstreams = upstreams;
	if (code == CLI_OK && doctor->has_functions)
		code = store_walk_hash(doctor->store,
		                       store_key(doctor->store, "families", SPAN("")),
		                       see_family, &missing);
	if (code == CLI_OK)
		code = say_all(doctor, &missing);
	json_decref(served);
	json_decref(upstreams);
	json_decref(missing.pools);
	json_decref(missing.gone);
	json_decref(missing.away);
	return code;
}
