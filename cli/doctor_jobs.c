/* What waits for people: workers, dead jobs, parked accounts, pauses, switches. */
#include "cli/doctor.h"

#include "cli/store_walk.h"
#include "common/codec/protocol.h"
#include "common/codec/protocol_record.h"
#include "common/text.h"

#include <stdio.h>

#define SHOWN_MAX 5 /* of findings of one kind */

/* ---- workers --------------------------------------------------------------------- */

static int
look_at_workers(struct doctor *doctor)
{
	static const char *const sets[] = { "workers", "dying" };
	const struct reply *reply;
	char now[24], count[CLI_COUNT_SIZE];
	int64_t alive = 0, late = 0;

	snprintf(now, sizeof now, "%llu", (unsigned long long)doctor->now_ms);
	for (size_t i = 0; i < ARRAY_SIZE(sets); i++) {
		struct span key = store_key(doctor->store, sets[i], SPAN(""));
		int code = STORE_COMMAND(doctor->store, &reply, SPAN("ZCOUNT"), key,
		                         SPAN("-inf"), span_from(now));

		if (code != CLI_OK)
			return code;
		late += reply_integer(reply, 0);
		code = STORE_COMMAND(doctor->store, &reply, SPAN("ZCARD"), key);
		if (code != CLI_OK)
			return code;
		alive += reply_integer(reply, 0);
	}
	alive -= late;
	if (late > 0)
		doctor_say(
			doctor, DOCTOR_WARNING, "workers",
			"nothing, if a scheduler rules: it gives their jobs to others "
			"(warmq worker ls)",
			"%s past the end of the lease: a worker died or hangs",
			cli_count((uint64_t)late, "session is", "sessions are", count));
	if (alive == 0)
		doctor_say(doctor, DOCTOR_WARNING, "workers",
		           "start one: warmq-worker --config /etc/warmq/warmq.yaml",
		           "no worker is alive: nothing runs");
	else
		doctor_say(doctor, DOCTOR_FINE, "workers", NULL, "%s alive",
		           cli_count((uint64_t)MAX(alive, 0), "worker is", "workers are",
		                     count));
	return CLI_OK;
}

struct orphans {
	struct doctor *doctor;
	uint32_t count;
};

/* Leases that belong to nobody: somebody deleted a session by hand. */
static int
see_orphan(void *data, const char *key)
{
	struct orphans *orphans = data;
	struct doctor *doctor = orphans->doctor;
	const char *nonce = strrchr(key, ':');
	static const char *const sets[] = { "workers", "dying" };
	const struct reply *reply;

	for (size_t i = 0; nonce && i < ARRAY_SIZE(sets); i++) {
		int code = STORE_COMMAND(doctor->store, &reply, SPAN("ZSCORE"),
		                         store_key(doctor->store, sets[i], SPAN("")),
		                         span_from(nonce + 1));

		if (code != CLI_OK)
			return code;
		if (reply->kind != REPLY_NIL)
			return CLI_OK;
	}
	if (nonce && ++orphans->count <= SHOWN_MAX)
		doctor_say(doctor, DOCTOR_BAD, "workers",
		           "warmq doctor --repair books (a scheduler then gives its jobs "
		           "back, if its worker is dead)",
		           "%s holds leases of a session that no list of sessions has: "
		           "unless its worker lives, and says so within 10 s, its jobs "
		           "run no more and wait for nobody",
		           key);
	return CLI_OK;
}

static int
look_at_orphans(struct doctor *doctor)
{
	struct orphans orphans = { .doctor = doctor };

	return store_walk_keys(doctor->store, "lease:", see_orphan, &orphans);
}

/* ---- dead jobs, switches --------------------------------------------------------- */

static int
look_at_dead(struct doctor *doctor)
{
	const struct reply *reply;
	char count[CLI_COUNT_SIZE];
	int code = STORE_COMMAND(doctor->store, &reply, SPAN("ZCARD"),
	                         store_key(doctor->store, "dead", SPAN("")));

	if (code == CLI_OK && reply_integer(reply, 0) > 0)
		doctor_say(doctor, DOCTOR_WARNING, "dead",
		           "warmq job ls --state dead says why; warmq job retry --all "
		           "queues them again, warmq job drop --all forgets them",
		           "%s dead, and kept with the body",
		           cli_count((uint64_t)reply_integer(reply, 0), "job is",
		                     "jobs are", count));
	return code;
}

static int
look_at_hold(struct doctor *doctor)
{
	const struct reply *reply;
	int code =
		STORE_COMMAND(doctor->store, &reply, SPAN("HGET"),
	                      store_key(doctor->store, "meta", SPAN("")), SPAN("hold"));

	if (code == CLI_OK && reply_is(reply, "off"))
		doctor_say(doctor, DOCTOR_WARNING, "hold", "warmq hold on",
		           "holding is off: prefixes may be written many times over");
	return code;
}

/* ---- accounts -------------------------------------------------------------------- */

static int
look_at_budget(struct doctor *doctor, const char *name)
{
	const struct reply *reply;
	char action[DOCTOR_COMMAND_SIZE], left[32];
	uint64_t until_ms;
	int code = STORE_COMMAND(doctor->store, &reply, SPAN("HGET"),
	                         store_key(doctor->store, "budget:", span_from(name)),
	                         SPAN("parked_until"));

	if (code != CLI_OK)
		return code;
	until_ms = (uint64_t)MAX(reply_integer(reply, 0), 0);
	if (until_ms <= doctor->now_ms)
		return CLI_OK;
	snprintf(action, sizeof action,
	         "wait; or, if the cause is gone: warmq budget unpark %s", name);
	doctor_say(doctor, DOCTOR_WARNING, "accounts", action,
	           "the account %s is parked for %s: the provider refused it (warmq why)",
	           name, cli_duration(until_ms - doctor->now_ms, left));
	return CLI_OK;
}

static int
look_at_accounts(struct doctor *doctor)
{
	json_t *names = json_object(), *seen; /* one may be in many pools */
	const struct reply *reply;
	const char *name;
	size_t i;
	int code = STORE_COMMAND(doctor->store, &reply, SPAN("HVALS"),
	                         store_key(doctor->store, "pools", SPAN("")));

	for (i = 0; code == CLI_OK && i < reply->count; i++) {
		struct span text = reply_text(reply_at(reply, i)), item;

		while (text.len > 0 && protocol_list_next(&text, &item))
			json_object_setn_new(names, item.data, item.len, json_true());
	}
	json_object_foreach(names, name, seen)
	{
		if (code == CLI_OK)
			code = look_at_budget(doctor, name);
	}
	json_decref(names);
	return code;
}

/* ---- families -------------------------------------------------------------------- */

struct pauses {
	struct doctor *doctor;
	uint32_t count;
};

static void
see_family(void *data, struct span id, struct span text)
{
	struct protocol_family record;
	struct pauses *pauses = data;
	char action[DOCTOR_COMMAND_SIZE];

	if (protocol_record_parse_family(text, &record) < 0 ||
	    !(record.flags & PROTOCOL_PAUSED) || ++pauses->count > SHOWN_MAX)
		return;
	snprintf(action, sizeof action, "warmq family resume %.*s", (int)MIN(id.len, 64),
	         id.data);
	doctor_say(pauses->doctor, DOCTOR_WARNING, "paused", action,
	           "the family %.*s (route %.*s) is paused: its jobs wait",
	           (int)MIN(id.len, 64), id.data, (int)MIN(record.route.len, 100),
	           record.route.len > 0 ? record.route.data : "");
}

static int
look_at_families(struct doctor *doctor)
{
	struct pauses pauses = { .doctor = doctor };
	int code = store_walk_hash(doctor->store,
	                           store_key(doctor->store, "families", SPAN("")),
	                           see_family, &pauses);

	if (pauses.count > SHOWN_MAX)
		doctor_say(doctor, DOCTOR_WARNING, "paused",
		           "the page lists them: families",
		           "%u families are paused in all", pauses.count);
	return code;
}

int
doctor_look_at_jobs(struct doctor *doctor)
{
	static int (*const looks[])(struct doctor *) = {
		look_at_workers,       look_at_orphans, doctor_look_at_pools,
		doctor_look_at_oldest, look_at_dead,    look_at_accounts,
		look_at_families,      look_at_hold,
	};
	int code = CLI_OK;

	for (size_t i = 0; code == CLI_OK && doctor->is_sound && i < ARRAY_SIZE(looks);
	     i++)
		code = looks[i](doctor);
	return code;
}
