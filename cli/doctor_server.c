/* Redis itself: whether it keeps what it is given, and has what it needs. */
#include "cli/doctor.h"

#include "common/codec/protocol.h"
#include "common/codec/protocol_answer.h"
#include "common/codec/protocol_call.h"
#include "common/info.h"
#include "common/text.h"

#include <stdio.h>
#include <time.h>

#define VERSION_LEAST    7
#define PRESSURE_PERCENT 90
#define SKEW_MS          5000
#define VALUE_MIN        (16u << 20) /* above any result, and any job by default */
#define CLIENTS_MIN      (64u << 20) /* some such values at once, on all connections */

static bool
line_is(struct span info, const char *name, const char *value)
{
	return span_equals(info_find(info, name), span_from(value));
}

/* ---- parts of INFO --------------------------------------------------------------- */

static void
look_at_version(struct doctor *doctor, struct span info)
{
	struct span version = info_find(info, "redis_version");
	uint64_t major = info_number(info, "redis_version");

	if (version.len > 0 && major < VERSION_LEAST)
		doctor_say(doctor, DOCTOR_BAD, "version",
		           "install Redis 7.0 or Valkey 7.2, or later",
		           "this is Redis %.*s, which has no functions", (int)version.len,
		           version.data);
	else
		doctor_say(doctor, DOCTOR_FINE, "version", NULL, "Redis %.*s",
		           (int)version.len, version.len > 0 ? version.data : "");
	doctor->is_replica = line_is(info, "role", "slave");
	if (doctor->is_replica)
		doctor_say(doctor, DOCTOR_BAD, "role",
		           "name the master in --redis and in warmq.yaml",
		           "this is a replica: nothing can be written here");
}

static void
look_at_disk(struct doctor *doctor, struct span info)
{
	char command[DOCTOR_COMMAND_SIZE];

	if (line_is(info, "aof_last_write_status", "err") ||
	    line_is(info, "rdb_last_bgsave_status", "err"))
		doctor_say(
			doctor, DOCTOR_BAD, "disk",
			"make room on the disk of Redis, or give it a folder that it may "
			"write; its log says which",
			"Redis cannot write to its disk: it may refuse jobs, and would "
			"lose "
			"them");
	if (line_is(info, "aof_enabled", "0"))
		doctor_say(
			doctor, DOCTOR_WARNING, "disk",
			doctor_command(doctor, command,
		                       "CONFIG SET appendonly yes (and in redis.conf)"),
			"the append-only file is off: a restart of Redis loses jobs");
	else if (line_is(info, "aof_last_write_status", "ok"))
		doctor_say(doctor, DOCTOR_FINE, "disk", NULL,
		           "the append-only file is on");
}

static void
look_at_memory(struct doctor *doctor, struct span info)
{
	struct span policy = info_find(info, "maxmemory_policy");
	uint64_t used = info_number(info, "used_memory"),
		 limit = info_number(info, "maxmemory");
	uint64_t percent = limit > 0 ? used / MAX(limit / 100, 1) : 0;
	char command[DOCTOR_COMMAND_SIZE];

	if (policy.len > 0 && !span_equals(policy, SPAN("noeviction")))
		doctor_say(
			doctor, DOCTOR_BAD, "memory",
			doctor_command(doctor, command,
		                       "CONFIG SET maxmemory-policy noeviction"),
			"Redis throws jobs away when it is full (maxmemory-policy %.*s)",
			(int)policy.len, policy.data);
	if (percent >= PRESSURE_PERCENT)
		doctor_say(doctor, percent >= 100 ? DOCTOR_BAD : DOCTOR_WARNING, "memory",
		           "raise maxmemory, start more workers, or drop dead jobs: "
		           "warmq job ls --state dead",
		           "%llu %% of maxmemory is in use: producers %s",
		           (unsigned long long)percent,
		           percent >= 100 ? "are refused" : "are asked to wait");
	else
		doctor_say(doctor, DOCTOR_FINE, "memory", NULL, "%llu MiB in use%s",
		           (unsigned long long)(used >> 20),
		           limit > 0 ? "" : ", without a limit (maxmemory 0)");
}

/* Only newer ones count it. */
static void
look_at_clients(struct doctor *doctor, struct span info)
{
	uint64_t count = info_number(info, "client_output_buffer_limit_disconnections");
	char command[DOCTOR_COMMAND_SIZE];

	if (count > 0)
		doctor_say(
			doctor, DOCTOR_WARNING, "clients",
			doctor_command(doctor, command,
		                       "CONFIG SET client-output-buffer-limit 'normal "
		                       "0 0 0'"),
			"since its start Redis has closed connections of clients whose "
			"answers outgrew client-output-buffer-limit, %llu times; if "
			"they were WarmQ's, its logs say that Redis hangs up again and "
			"again",
			(unsigned long long)count);
}

static int
look_at_info(struct doctor *doctor)
{
	static const struct {
		const char *section;
		void (*look)(struct doctor *doctor, struct span info);
	} parts[] = {
		{ "persistence", look_at_disk },
		{ "memory", look_at_memory },
		{ "stats", look_at_clients },
	};
	const struct reply *reply;
	int code = STORE_TRY(doctor->store, &reply, SPAN("INFO"), SPAN("server"),
	                     SPAN("replication"));

	/* Whoever may not ask is not told: managed servers hide INFO. */
	if (code == CLI_OK && reply->kind == REPLY_TEXT)
		look_at_version(doctor, reply_text(reply));
	for (size_t i = 0; code == CLI_OK && i < ARRAY_SIZE(parts); i++) {
		code = STORE_TRY(doctor->store, &reply, SPAN("INFO"),
		                 span_from(parts[i].section));
		if (code == CLI_OK && reply->kind == REPLY_TEXT)
			parts[i].look(doctor, reply_text(reply));
	}
	return code;
}

/* ---- clock and functions --------------------------------------------------------- */

static int
look_at_clock(struct doctor *doctor)
{
	int code = store_now(doctor->store, &doctor->now_ms);
	uint64_t here_ms, apart_ms;
	struct timespec now;
	char apart[32];

	if (code != CLI_OK)
		return code;
	clock_gettime(CLOCK_REALTIME, &now);
	here_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
	apart_ms = MAX(here_ms, doctor->now_ms) - MIN(here_ms, doctor->now_ms);
	if (apart_ms > SKEW_MS)
		doctor_say(doctor, DOCTOR_WARNING, "clock", "set both by NTP",
		           "the clock of Redis is %s %s of this machine's; times of jobs "
		           "(not_before, deadline) are those of Redis",
		           cli_duration(apart_ms, apart),
		           doctor->now_ms > here_ms ? "ahead" : "behind");
	else
		doctor_say(doctor, DOCTOR_FINE, "clock", NULL,
		           "Redis and this machine agree within %s",
		           cli_duration(apart_ms, apart));
	return CLI_OK;
}

/* "ERR warmq speaks protocol 2, not 1": 2, or 0 if it says something else. */
static uint64_t
spoken_protocol(struct span text)
{
	struct span start = SPAN("ERR warmq speaks protocol ");
	struct span number;
	uint64_t protocol;

	if (text.len < start.len || memcmp(text.data, start.data, start.len) != 0)
		return 0;
	text.data += start.len;
	text.len -= start.len;
	if (!protocol_cut(&text, ',', &number) ||
	    text_parse_unsigned(number, UINT32_MAX, &protocol) < 0)
		return 0;
	return protocol;
}

/* They were called, and Redis answered an error. */
static void
say_refusal(struct doctor *doctor, const struct reply *reply)
{
	struct span text = reply_text(reply);
	uint64_t protocol = spoken_protocol(text);

	if (protocol_answer_word(reply) == PROTOCOL_MISSING)
		doctor_say(doctor, DOCTOR_BAD, "functions",
		           "start warmq-scheduler: it loads them, if its user may "
		           "(OPERATIONS.md)",
		           "Redis does not have WarmQ's functions: nothing can start or "
		           "end");
	else if (protocol > 0)
		doctor_say(
			doctor, DOCTOR_BAD, "functions",
			protocol > PROTOCOL_VERSION
				? "upgrade this warmq, and every worker and scheduler "
				  "that says the same in its log"
				: "upgrade the schedulers, and restart them: they load "
				  "their own functions; then the workers",
			"the functions in Redis speak protocol %llu, this "
			"warmq " WARMQ_VERSION " speaks %d",
			(unsigned long long)protocol, PROTOCOL_VERSION);
	else
		doctor_say(doctor, DOCTOR_BAD, "functions",
		           "if this user of Redis may not call functions, name another "
		           "one; if they are at work, look again (docs/OPERATIONS.md)",
		           "Redis does not let WarmQ's functions be called: %.*s",
		           (int)MIN(text.len, 160), text.data);
}

/* A result is one value of one command: a Redis that takes no value so large hangs up on
 * the worker that delivers it, again and again.  Managed servers hide CONFIG. */
static int
look_at_limit(struct doctor *doctor, const char *name, uint32_t least)
{
	char command[DOCTOR_COMMAND_SIZE];
	const struct reply *reply;
	uint64_t limit;
	int code = STORE_TRY(doctor->store, &reply, SPAN("CONFIG"), SPAN("GET"),
	                     span_from(name));

	if (code != CLI_OK)
		return code;
	if (text_parse_unsigned(reply_text(reply_at(reply, 1)), UINT64_MAX, &limit) ==
	            0 &&
	    limit > 0 && limit < least)
		doctor_say(doctor, DOCTOR_BAD, "limits",
		           doctor_command(doctor, command,
		                          "CONFIG SET %s %u (and in redis.conf)", name,
		                          least),
		           "Redis takes no value above %llu KiB (%s): a larger result "
		           "cannot be delivered, and its worker delivers nothing else",
		           (unsigned long long)limit >> 10, name);
	return CLI_OK;
}

/* With too few replicas Redis refuses all writes, those of functions as well.  INFO says
 * how many count only where some are asked for. */
static int
look_at_replicas(struct doctor *doctor)
{
	char command[DOCTOR_COMMAND_SIZE];
	const struct reply *reply;
	uint64_t least, good;
	int code = STORE_TRY(doctor->store, &reply, SPAN("CONFIG"), SPAN("GET"),
	                     SPAN("min-replicas-to-write"));

	if (code != CLI_OK ||
	    text_parse_unsigned(reply_text(reply_at(reply, 1)), UINT32_MAX, &least) < 0)
		return code;
	code = STORE_TRY(doctor->store, &reply, SPAN("INFO"), SPAN("replication"));
	if (code != CLI_OK || reply->kind != REPLY_TEXT ||
	    info_find(reply_text(reply), "min_slaves_good_slaves").len == 0)
		return code;
	good = info_number(reply_text(reply), "min_slaves_good_slaves");
	if (good < least)
		doctor_say(
			doctor, DOCTOR_BAD, "replicas",
			doctor_command(doctor, command,
		                       "CONFIG SET min-replicas-to-write %llu (if its "
		                       "replicas do not come back; jobs are then lost "
		                       "with this machine)",
		                       (unsigned long long)good),
			"Redis refuses all writes (NOREPLICAS): %llu replicas keep up, "
			"and min-replicas-to-write is %llu",
			(unsigned long long)good, (unsigned long long)least);
	return CLI_OK;
}

static int
look_at_functions(struct doctor *doctor)
{
	struct call_list *calls = store_calls(doctor->store);
	const struct reply *reply;
	struct span version;
	int code;

	protocol_call_version(calls, 0, store_namespace(doctor->store));
	code = store_call_try(doctor->store, &reply);
	if (code != CLI_OK)
		return code;
	version = reply_text(reply_at(reply, 2));
	doctor->has_functions = version.len > 0;
	if (!doctor->has_functions)
		say_refusal(doctor, reply);
	else if (version.len < strlen(WARMQ_VERSION) ||
	         memcmp(version.data, WARMQ_VERSION, strlen(WARMQ_VERSION)) != 0)
		doctor_say(
			doctor, DOCTOR_WARNING, "functions",
			"use the warmq of the release that the schedulers have, or "
			"restart the schedulers that are older",
			"Redis has the functions of %.*s, this is warmq " WARMQ_VERSION,
			(int)version.len, version.data);
	else
		doctor_say(doctor, DOCTOR_FINE, "functions", NULL, "%.*s",
		           (int)version.len, version.data);
	return CLI_OK;
}

int
doctor_look_at_server(struct doctor *doctor)
{
	static const struct {
		const char *name;
		uint32_t least;
	} limits[] = {
		{ "proto-max-bulk-len", VALUE_MIN },
		{ "client-query-buffer-limit", VALUE_MIN },
		{ "maxmemory-clients", CLIENTS_MIN },
	};
	int code = look_at_info(doctor);

	if (code == CLI_OK)
		code = look_at_replicas(doctor);
	if (code == CLI_OK)
		code = look_at_clock(doctor);
	for (size_t i = 0; code == CLI_OK && i < ARRAY_SIZE(limits); i++)
		code = look_at_limit(doctor, limits[i].name, limits[i].least);
	if (code == CLI_OK)
		code = look_at_functions(doctor);
	return code;
}
