/* The books of the queue: whether its keys are what they should be and agree. */
#include "cli/doctor.h"

#include "cli/doctor_cursor.h"
#include "cli/doctor_records.h"
#include "common/codec/protocol.h"
#include "common/codec/protocol_call.h"
#include "common/text.h"

#include <stdio.h>

#define LAG_MS      30000 /* /readyz turns red at the same age */
#define RULE_MAX_MS 60000 /* nobody is given so much at a time */

/* ---- types ----------------------------------------------------------------------- */

static const struct {
	const char *key, *type;
} key_types[] = {
	{ "jobs", "stream" },     { "events", "stream" }, { "families", "hash" },
	{ "lanes", "hash" },      { "pools", "hash" },    { "meta", "hash" },
	{ "idle", "hash" },       { "look", "hash" },     { "ended", "hash" },
	{ "ledger", "hash" },     { "workers", "zset" },  { "dying", "zset" },
	{ "tickets", "zset" },    { "ends", "zset" },     { "unused", "zset" },
	{ "later", "zset" },      { "dead", "zset" },     { "deadline", "zset" },
	{ "early", "zset" },      { "stamp", "string" },  { "status", "string" },
	{ "pressure", "string" }, { "drift", "hash" },    { "recent", "hash" },
};

static int
look_at_types(struct doctor *doctor)
{
	char command[DOCTOR_COMMAND_SIZE];

	doctor->is_sound = true;
	for (size_t i = 0; i < ARRAY_SIZE(key_types); i++) {
		struct span key = store_key(doctor->store, key_types[i].key, SPAN(""));
		const struct reply *reply;
		int code = STORE_COMMAND(doctor->store, &reply, SPAN("TYPE"), key);

		if (code != CLI_OK)
			return code;
		if (reply_is(reply, "none") || reply_is(reply, key_types[i].type))
			continue;
		doctor->is_sound = false;
		doctor_say(doctor, DOCTOR_BAD, "keys",
		           doctor_command(doctor, command, "RENAME %.*s %.*s.wrong",
		                          (int)key.len, key.data, (int)key.len, key.data),
		           "%.*s is a %.*s and should be a %s: somebody wrote it by "
		           "hand, and "
		           "whatever needs it fails",
		           (int)key.len, key.data, (int)reply_text(reply).len,
		           reply_text(reply).data, key_types[i].type);
	}
	if (doctor->is_sound)
		doctor_say(doctor, DOCTOR_FINE, "keys", NULL, "all have their type");
	return CLI_OK;
}

/* ---- who rules ------------------------------------------------------------------- */

static int
look_at_rule(struct doctor *doctor)
{
	const struct reply *reply;
	uint64_t until_ms;
	char since[32];
	int code = STORE_COMMAND(doctor->store, &reply, SPAN("HMGET"),
	                         store_key(doctor->store, "meta", SPAN("")),
	                         SPAN("rule_until"), SPAN("owner"));

	if (code != CLI_OK)
		return code;
	until_ms = (uint64_t)MAX(reply_integer(reply_at(reply, 0), 0), 0);
	if (until_ms > doctor->now_ms + RULE_MAX_MS)
		doctor_say(
			doctor, DOCTOR_BAD, "rule",
			"start warmq-scheduler: it takes the rule over within 10 s",
			"no scheduler rules: the one before was to rule for %s more by "
			"a clock of Redis that has gone back since",
			cli_duration(until_ms - doctor->now_ms, since));
	else if (until_ms > doctor->now_ms)
		doctor_say(doctor, DOCTOR_FINE, "rule", NULL, "the scheduler %.*s rules",
		           (int)reply_text(reply_at(reply, 1)).len,
		           reply_text(reply_at(reply, 1)).data);
	else if (until_ms == 0)
		doctor_say(doctor, DOCTOR_BAD, "rule", "start warmq-scheduler",
		           "no scheduler rules: new jobs wait in the inbox");
	else
		doctor_say(doctor, DOCTOR_BAD, "rule",
		           "start warmq-scheduler, or look into its log why it does not "
		           "rule",
		           "no scheduler has ruled for %s: new jobs wait in the inbox",
		           cli_duration(doctor->now_ms - until_ms, since));
	return CLI_OK;
}

/* ---- the inbox ------------------------------------------------------------------- */

static int
look_at_lag(struct doctor *doctor, const struct doctor_cursor *cursor)
{
	char from[64], lag[32];
	const struct reply *reply;
	struct protocol_job_id id;
	int code;

	snprintf(from, sizeof from, "(%s", cursor->entry);
	code = STORE_COMMAND(doctor->store, &reply, SPAN("XRANGE"),
	                     store_key(doctor->store, "jobs", SPAN("")), span_from(from),
	                     SPAN("+"), SPAN("COUNT"), SPAN("1"));
	if (code != CLI_OK)
		return code;
	if (reply->count == 0 ||
	    protocol_parse_job_id(reply_text(reply_at(reply_at(reply, 0), 0)), &id) < 0)
		return CLI_OK;
	if (id.ms + LAG_MS < doctor->now_ms)
		doctor_say(doctor, DOCTOR_BAD, "inbox",
		           "look at \"rule\" above, and into the scheduler's log",
		           "a job has waited for admission for %s",
		           cli_duration(doctor->now_ms - id.ms, lag));
	return CLI_OK;
}

/* A producer wrote the last id that there is: XADD refuses whatever comes. */
static int
look_at_last_id(struct doctor *doctor, bool *ret_is_exhausted)
{
	struct protocol_job_id last;
	int code = store_last_id(doctor->store, &last);

	*ret_is_exhausted =
		code == CLI_OK && last.ms == UINT64_MAX && last.sequence == UINT64_MAX;
	if (*ret_is_exhausted)
		doctor_say(doctor, DOCTOR_BAD, "inbox",
		           "see \"An exhausted inbox\" in docs/OPERATIONS.md, and let no "
		           "producer name ids of his own",
		           "the inbox has given the last possible id: XADD refuses every "
		           "new job");
	return code;
}

static int
look_at_inbox(struct doctor *doctor)
{
	struct doctor_cursor cursor;
	bool is_exhausted;
	int code = look_at_last_id(doctor, &is_exhausted);

	if (code != CLI_OK || is_exhausted)
		return code;
	code = doctor_cursor_load(doctor->store, doctor->now_ms, &cursor);
	if (code != CLI_OK)
		return code;
	switch (cursor.state) {
	case CURSOR_GOOD:
		doctor_say(doctor, DOCTOR_FINE, "inbox", NULL, "all up to %s is admitted",
		           cursor.entry);
		return look_at_lag(doctor, &cursor);
	case CURSOR_NEW:
		doctor_say(doctor, DOCTOR_FINE, "inbox", NULL,
		           "nothing was ever admitted in this namespace");
		return CLI_OK;
	case CURSOR_MISSING:
	case CURSOR_BROKEN:
		doctor_say(doctor, DOCTOR_BAD, "inbox", "warmq doctor --repair cursor",
		           "the cursor of the inbox %s: new jobs wait in the inbox",
		           cursor.state == CURSOR_MISSING ? "is missing"
		                                          : "cannot be read");
		return CLI_OK;
	case CURSOR_AHEAD: /* the inbox was deleted since, and begins before it */
		doctor_say(
			doctor, DOCTOR_BAD, "inbox", "warmq doctor --repair cursor",
			"the cursor of the inbox stands in the future: new jobs wait in "
			"the inbox");
		return CLI_OK;
	case CURSOR_FUTURE: /* a job came with such an id, and all is well */
		doctor_say(doctor, DOCTOR_WARNING, "inbox",
		           "let no producer name ids of his own",
		           "the cursor of the inbox stands in the future: new jobs are "
		           "admitted, with ids of the future");
		return CLI_OK;
	}
	VERIFY(false);
	return CLI_FAILED;
}

/* ---- each job in one place ------------------------------------------------------- */

static int
look_at_books(struct doctor *doctor)
{
	struct call_list *calls = store_calls(doctor->store);
	const struct reply *reply;
	int64_t n[12], difference;
	int code;

	if (!doctor->has_functions)
		return CLI_OK;
	protocol_call_count(calls, 0, store_namespace(doctor->store));
	code = store_call_try(doctor->store, &reply);
	if (code != CLI_OK)
		return code;
	if (!reply_is(reply_at(reply, 0), "OK")) {
		doctor_say(doctor, DOCTOR_BAD, "books", "look at \"keys\" above",
		           "the jobs cannot be counted: %.*s",
		           (int)MIN(reply_text(reply).len, 200), reply_text(reply).data);
		return CLI_OK;
	}
	for (size_t i = 2; i < ARRAY_SIZE(n); i++)
		n[i] = reply_integer(reply_at(reply, i), 0);
	/* drained stream slims ready back now_list leases later dead ended */
	difference = n[3] + n[4] - (n[5] + n[6] + n[7] + n[8] + n[9] + n[10] - n[11]);
	if (n[2] == 1 && difference != 0)
		doctor_say(doctor, DOCTOR_BAD, "books",
		           difference > 0 ? "warmq doctor --repair jobs"
		                          : "warmq doctor --repair books",
		           "%lld jobs stand in %s", llabs((long long)difference),
		           difference > 0 ? "no list: nobody will run them"
		                          : "two lists, or have lost their payload");
	else
		doctor_say(doctor, DOCTOR_FINE, "books", NULL,
		           "%lld wait, %lld run, %lld are delayed, %lld are dead%s",
		           (long long)(n[5] + n[6] + n[7]), (long long)n[8],
		           (long long)n[9], (long long)n[10],
		           n[2] == 1 ? ""
		                     : " (not counted to the last: some are being "
		                       "admitted)");
	return CLI_OK;
}

/* ---- sessions -------------------------------------------------------------------- */

/* Asks for something behind MULTI.  Redis that is full queues nothing at all there, not
 * even what only reads. */
static int
queue(struct store *store, const struct span *words, size_t count, bool *is_full)
{
	const struct reply *reply;
	int code = store_try(store, words, count, &reply);

	if (code == CLI_OK && reply->kind == REPLY_ERROR)
		*is_full = true;
	return code;
}

/* Leases and what accounts count as in flight, of one moment; both -1 if Redis is full.
 */
static int
count_leases(struct doctor *doctor, const json_t *sessions, const json_t *budgets,
             int64_t *ret_leases, int64_t *ret_flight)
{
	struct store *store = doctor->store;
	const json_t *name;
	const struct reply *reply = NULL;
	bool is_full = false;
	size_t i;
	int code = STORE_COMMAND(store, &reply, SPAN("MULTI"));

	json_array_foreach(sessions, i, name)
	{
		struct span key =
			store_key(store, "lease:", span_from(json_string_value(name)));

		if (code == CLI_OK)
			code = queue(store, (struct span[]){ SPAN("HLEN"), key }, 2,
			             &is_full);
	}
	json_array_foreach(budgets, i, name)
	{
		struct span key =
			store_key(store, "budget:", span_from(json_string_value(name)));

		if (code == CLI_OK)
			code = queue(
				store,
				(struct span[]){ SPAN("HGET"), key, SPAN("in_flight") },
				3, &is_full);
	}
	*ret_leases = *ret_flight = -1;
	if (code == CLI_OK && is_full)
		return STORE_COMMAND(store, &reply, SPAN("DISCARD"));
	if (code == CLI_OK)
		code = STORE_COMMAND(store, &reply, SPAN("EXEC"));
	if (code != CLI_OK)
		return code;
	*ret_leases = *ret_flight = 0;
	for (i = 0; i < reply->count; i++) {
		int64_t value = reply_integer(reply_at(reply, i), 0);

		if (i < json_array_size(sessions))
			*ret_leases +=
				MAX(value - 1, 0); /* one field, `s`, is no lease */
		else
			*ret_flight += value;
	}
	return CLI_OK;
}

static void
append_list(json_t *list, struct span text)
{
	struct span item;

	while (text.len > 0 && protocol_list_next(&text, &item))
		json_array_append_new(list, cli_json_text(item));
}

static int
load_names(struct doctor *doctor, json_t *sessions, json_t *budgets)
{
	static const char *const sets[] = { "workers", "dying" };
	const struct reply *reply;
	int code = CLI_OK;

	for (size_t i = 0; code == CLI_OK && i < ARRAY_SIZE(sets); i++) {
		code = STORE_COMMAND(doctor->store, &reply, SPAN("ZRANGE"),
		                     store_key(doctor->store, sets[i], SPAN("")),
		                     SPAN("0"), SPAN("-1"));
		for (size_t j = 0; code == CLI_OK && j < reply->count; j++)
			json_array_append_new(
				sessions, cli_json_text(reply_text(reply_at(reply, j))));
	}
	if (code == CLI_OK)
		code = STORE_COMMAND(doctor->store, &reply, SPAN("HVALS"),
		                     store_key(doctor->store, "pools", SPAN("")));
	for (size_t j = 0; code == CLI_OK && j < reply->count; j++)
		append_list(budgets, reply_text(reply_at(reply, j)));
	return code;
}

static int
look_at_leases(struct doctor *doctor)
{
	json_t *sessions = json_array(), *budgets = json_array();
	char running[CLI_COUNT_SIZE];
	int64_t leases = 0, flight = 0;
	int code = load_names(doctor, sessions, budgets);

	if (code == CLI_OK)
		code = count_leases(doctor, sessions, budgets, &leases, &flight);
	if (code == CLI_OK && leases < 0)
		doctor_say(doctor, DOCTOR_WARNING, "leases",
		           "look at \"memory\" above first",
		           "requests that run cannot be counted while Redis is full");
	else if (code == CLI_OK && leases != flight)
		doctor_say(doctor, DOCTOR_BAD, "leases", "warmq doctor --repair books",
		           "%lld requests run by the leases of the workers, %lld by the "
		           "accounts' count: pace and limits are off by the difference",
		           (long long)leases, (long long)flight);
	else if (code == CLI_OK)
		doctor_say(doctor, DOCTOR_FINE, "leases", NULL,
		           "%s, by leases and by accounts",
		           cli_count((uint64_t)MAX(leases, 0), "request runs",
		                     "requests run", running));
	json_decref(sessions);
	json_decref(budgets);
	return code;
}

static int
look_at_errors(struct doctor *doctor)
{
	static const struct {
		const char *field, *text, *action;
	} counters[] = {
		{ "function_errors", "errors inside WarmQ's functions",
		  "please report it, with the log of Redis" },
		{ "lane_drift", "numbers that were wrong and were clamped",
		  "please report it with the scheduler's log, unless somebody wrote keys "
		  "by "
		  "hand" },
		{ "delivery_errors", "results that could not be delivered",
		  "look for reply lists of a wrong type; the results are kept by id: "
		  "warmq wait "
		  "ID" },
		{ "replies_trimmed", "results that were cut off full reply lists",
		  "let somebody read them, or enqueue without `reply`" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(counters); i++) {
		const struct reply *reply;
		int code = STORE_COMMAND(doctor->store, &reply, SPAN("HGET"),
		                         store_key(doctor->store, "meta", SPAN("")),
		                         span_from(counters[i].field));

		if (code != CLI_OK)
			return code;
		if (reply_integer(reply, 0) > 0)
			doctor_say(doctor, DOCTOR_WARNING, "errors", counters[i].action,
			           "%lld %s so far", (long long)reply_integer(reply, 0),
			           counters[i].text);
	}
	return CLI_OK;
}

int
doctor_look_at_queue(struct doctor *doctor)
{
	static int (*const looks[])(struct doctor *) = {
		look_at_rule,  doctor_records_look, look_at_inbox,
		look_at_books, look_at_leases,      look_at_errors,
	};
	int code = look_at_types(doctor);

	for (size_t i = 0; code == CLI_OK && doctor->is_sound && i < ARRAY_SIZE(looks);
	     i++)
		code = looks[i](doctor);
	return code;
}
