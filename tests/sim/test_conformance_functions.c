/* The function library answers the same and leaves the same on the small Redis and on a
 * real one.
 *
 *   conformance_functions [--sequences N] [--from S]
 *
 * Each sequence is a little life of a queue: rulers, families, grants, sessions, claims,
 * ends, drawn so that most calls mean something (what they name is looked up in the
 * small Redis) and some are spoilt.  The library's clock is taken from a list in both, so
 * that the same call sees the same time.  At the end the two keyspaces are compared, all
 * but the ids of events.  Without redis-server on the PATH it is skipped (77). */
#include "common/buffer.h"
#include "common/codec/protocol_record.h"
#include "common/prng.h"
#include "scheduler/functions/functions_library.h"
#include "tests/sim/lua_host.h"
#include "tests/sim/real_redis.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	STEPS = 120,
	WORDS_MAX = 250,
	WORD_SIZE = 160,
	FAMILIES = 3,
	SESSIONS = 3,
	SLOTS = 4,
};

struct run {
	struct real_redis *real;
	struct redis_model *model;
	struct lua_host *host;
	struct prng prng;
	struct buffer ours, theirs;
	struct span words[WORDS_MAX];
	char texts[WORDS_MAX][WORD_SIZE];
	size_t count;
	uint64_t now_ms, jobs, q;
	char owner[64];
	char cursor[64];
	bool show;
};

static const char *const FAMILY[FAMILIES] = {
	"0123456789abcdef0123456789abcdef",
	"1123456789abcdef0123456789abcdef",
	"2123456789abcdef0123456789abcdef",
};
static const char *const NONCE[SESSIONS] = {
	"00000000000000a1",
	"00000000000000b2",
	"00000000000000c3",
};
static const char *const LISTS[] = { "h", "n", "n", "n", "l", "now" };
static const char *const JUNK[] = { "",   "-1", "x",   "7000000", "99999999999999",
	                            "|",  "*",  "nan", "inf",     "1e99",
	                            "0x1" };

/* ---- building a call -------------------------------------------------------------- */

static void add(struct run *run, const char *format, ...) PRINTF(2, 3);

static void
add(struct run *run, const char *format, ...)
{
	va_list args;

	VERIFY(run->count < WORDS_MAX);
	va_start(args, format);
	(void)vsnprintf(run->texts[run->count], WORD_SIZE, format, args);
	va_end(args);
	run->count++;
}

static void
open_call(struct run *run, const char *function)
{
	run->count = 0;
	add(run, "FCALL");
	add(run, "warmq_%s", function);
	add(run, "1");
	add(run, "warmq:meta");
	add(run, "1");
}

static uint32_t
below(struct run *run, uint32_t bound)
{
	return (uint32_t)prng_below(&run->prng, bound);
}

/* Both get the call; false if they disagree. */
static bool
give(struct run *run, bool unordered)
{
	bool same;

	if (prng_chance(&run->prng, 60) && run->count > 5)
		(void)snprintf(run->texts[5 + below(run, (uint32_t)run->count - 5)],
		               WORD_SIZE, "%s", JUNK[below(run, ARRAY_SIZE(JUNK))]);
	if (prng_chance(&run->prng, 20))
		run->count--;
	for (size_t i = 0; i < run->count; i++)
		run->words[i] = span_from(run->texts[i]);
	same = real_redis_agrees(run->real, run->model, run->words, run->count,
	                         (struct real_redis_rules){ .unordered = unordered },
	                         &run->ours, &run->theirs);
	if (!same || run->show) {
		for (size_t i = 0; i < run->count; i++)
			fprintf(stderr, "%s'%s'", i ? " " : "", run->texts[i]);
		fprintf(stderr, "\n  model: %s\n  redis: %s\n", buffer_text(&run->ours),
		        buffer_text(&run->theirs));
	}
	return same;
}

static bool
tick(struct run *run)
{
	run->now_ms += prng_chance(&run->prng, 50) ? prng_below(&run->prng, 20000)
	                                           : prng_below(&run->prng, 300);
	redis_model_set_time(run->model, real_redis_time(run->real));
	run->count = 0;
	add(run, "DEL");
	add(run, "warmq_clock");
	run->words[0] = span_from(run->texts[0]);
	run->words[1] = span_from(run->texts[1]);
	(void)real_redis_agrees(run->real, run->model, run->words, 2,
	                        (struct real_redis_rules){ 0 }, &run->ours, &run->theirs);
	run->count = 0;
	add(run, "RPUSH");
	add(run, "warmq_clock");
	add(run, "%" PRIu64, run->now_ms / 1000);
	add(run, "%" PRIu64, run->now_ms % 1000 * 1000);
	for (size_t i = 0; i < run->count; i++)
		run->words[i] = span_from(run->texts[i]);
	return real_redis_agrees(run->real, run->model, run->words, run->count,
	                         (struct real_redis_rules){ 0 }, &run->ours,
	                         &run->theirs);
}

/* ---- what there is to name ----------------------------------------------------------
 */

static struct protocol_lane
lane_now(struct run *run, uint32_t family)
{
	const struct redis_value *lanes =
		redis_model_find(run->model, SPAN("warmq:lanes"));
	struct protocol_lane lane = { 0 };
	char id[48];
	bool found = false;
	size_t at;

	(void)snprintf(id, sizeof id, "%s.0", FAMILY[family]);
	if (!lanes || lanes->type != REDIS_HASH)
		return lane;
	at = redis_value_seek(lanes, span_from(id), &found);
	if (found &&
	    protocol_record_parse_lane(
		    redis_text_span(redis_value_field(lanes, at)->value), &lane) < 0)
		lane = (struct protocol_lane){ 0 };
	return lane;
}

/* The field of a session's table, or NULL. */
static const char *
table_field(struct run *run, uint32_t session, const char *name)
{
	char key[64];
	const struct redis_value *table;
	bool found = false;
	size_t at;

	(void)snprintf(key, sizeof key, "warmq:lease:%s", NONCE[session]);
	table = redis_model_find(run->model, span_from(key));
	if (!table || table->type != REDIS_HASH)
		return NULL;
	at = redis_value_seek(table, span_from(name), &found);
	return found ? redis_value_field(table, at)->value->data : NULL;
}

/* Mostly one that lives, if any does. */
static uint32_t
pick_session(struct run *run)
{
	uint32_t session = below(run, SESSIONS);

	for (uint32_t i = 0; i < SESSIONS && !table_field(run, session, "s") &&
	                     prng_chance(&run->prng, 950);
	     i++)
		session = (session + 1) % SESSIONS;
	return session;
}

static uint64_t
connection(struct run *run, uint32_t session)
{
	const char *text = table_field(run, session, "s");

	return text ? strtoull(text, NULL, 10) : 1;
}

static uint64_t
token(struct run *run, uint32_t session, uint32_t slot)
{
	char name[8];
	const char *text;

	(void)snprintf(name, sizeof name, "%u", slot);
	text = table_field(run, session, name);
	return text ? strtoull(text, NULL, 10) : 7;
}

/* ---- calls ---------------------------------------------------------------------------
 */

static bool
call_rule(struct run *run)
{
	open_call(run, "rule");
	add(run, "%s", prng_chance(&run->prng, 900) ? "00000000000000f1" : NONCE[0]);
	add(run, "6000");
	if (!give(run, false))
		return false;
	const char *quote = strstr(buffer_text(&run->ours), "0f1");

	(void)quote;
	return true;
}

static void
read_owner(struct run *run)
{
	const struct reply *reply = redis_model_text(run->model, "HMGET", "warmq:meta",
	                                             "owner", "cursor", NULL);

	(void)snprintf(run->owner, sizeof run->owner, "%.*s",
	               (int)reply_text(reply_at(reply, 0)).len,
	               reply_text(reply_at(reply, 0)).data);
	(void)snprintf(run->cursor, sizeof run->cursor, "%.*s",
	               (int)reply_text(reply_at(reply, 1)).len,
	               reply_text(reply_at(reply, 1)).data);
}

static void
add_family(struct run *run, uint32_t family)
{
	add(run, "%s", FAMILY[family]);
	add(run, "default");
	add(run, "claude:big");
	add(run, "2");
	add(run, "%u", 5000 * family);
	add(run, "100");
	add(run, "50");
	add(run, "%s.0", FAMILY[family]);
	add(run, "%s%s", family == 2 ? FAMILY[0] : "", family == 2 ? ".0" : "");
	add(run, "%s%s%s", family == 2 ? FAMILY[0] : "", family == 2 ? "," : "",
	    FAMILY[family]);
	add(run, "route");
}

/* Rarely the entry behind the jobs waits for its time, or for a prefix, or is dead. */
static void
add_rare_groups(struct run *run, uint32_t family, uint64_t entry)
{
	uint32_t what = below(run, 8);

	add(run, "L");
	add(run, "%u", what < 2);
	if (what < 2) {
		add(run, "%" PRIu64 "-1", entry);
		add(run, "%" PRIu64, run->now_ms + prng_below(&run->prng, 9000));
		add(run, "%s", what == 0 ? FAMILY[family] : "");
		add(run, "%s", LISTS[below(run, ARRAY_SIZE(LISTS))]);
		add(run, "slim1 whole\nupstream claude\nprefix %s\nreply list\n\nbody",
		    prng_chance(&run->prng, 500) ? "known" : "unknown");
	}
	add(run, "D");
	add(run, "%u", what == 2);
	if (what == 2) {
		add(run, "%" PRIu64 "-1", entry);
		add(run, "malformed");
		add(run, "it is not JSON");
		add(run, "%s", prng_chance(&run->prng, 500) ? "its bytes" : "");
		add(run, "%s", prng_chance(&run->prng, 500) ? "list" : "");
		add(run, "60000");
		add(run, "%s", "");
	}
}

/* Entries to delete, prefixes, and undecided jobs that get their place now. */
static void
add_last_groups(struct run *run, uint64_t entry)
{
	bool gone = prng_chance(&run->prng, 300);
	bool prefix = prng_chance(&run->prng, 100);

	add(run, "G");
	add(run, "%u", gone);
	if (gone)
		add(run, "%" PRIu64 "-1", entry);
	add(run, "P");
	add(run, "%u", prefix);
	if (prefix) {
		add(run, "known");
		add(run, "{}");
	}
	if (prng_chance(&run->prng, 50)) {
		add(run, "U");
		add(run, "1");
		add(run, "%" PRIu64 "-1", 1 + prng_below(&run->prng, entry));
	}
}

/* A few jobs, as stream entries or slim, now or later. */
static bool
call_admit(struct run *run)
{
	uint32_t family = below(run, FAMILIES);
	uint32_t jobs = below(run, 4);
	uint64_t first = run->jobs + 1;
	char entry[40] = "0-0";
	bool slim = prng_chance(&run->prng, 300);

	read_owner(run);
	(void)sscanf(run->cursor, "%39s", entry);
	open_call(run, "admit");
	add(run, "%s", run->owner);
	add(run, "%s", entry);
	add(run, "0");
	add(run, "%" PRIu64 "-1", first + jobs);
	add(run, "0");
	run->jobs += jobs + 1;
	add(run, "F");
	add(run, "1");
	add_family(run, family);
	add(run, "X");
	add(run, "%u", family == 2 ? 2 : 1);
	if (family == 2) {
		add(run, "%s", FAMILY[0]);
		add(run, "px root");
	}
	add(run, "%s", FAMILY[family]);
	add(run, "px leaf");
	add(run, "R");
	add(run, "1");
	add(run, "%s", FAMILY[family]);
	add(run, "%s", LISTS[below(run, ARRAY_SIZE(LISTS))]);
	add(run, "%u", jobs);
	add(run, "E");
	add(run, "%u", jobs);
	for (uint32_t i = 0; i < jobs; i++)
		add(run, "%" PRIu64 "-1%s", first + i, slim ? "~" : "");
	add(run, "S");
	add(run, "%u", slim ? jobs : 0);
	for (uint32_t i = 0; slim && i < jobs; i++) {
		add(run, "%" PRIu64 "-1", first + i);
		add(run, "upstream claude\n\nbody");
	}
	add_rare_groups(run, family, first + jobs);
	add(run, "T");
	add(run, "%u", jobs > 0 && prng_chance(&run->prng, 200));
	if (run->texts[run->count - 1][0] == '1') {
		add(run, "%" PRIu64 "-1", first);
		add(run, "%" PRIu64, run->now_ms + 5000);
	}
	add_last_groups(run, first + jobs);
	return give(run, false);
}

static bool
call_grant(struct run *run)
{
	uint32_t family = below(run, FAMILIES);
	struct protocol_lane lane = lane_now(run, family);
	uint32_t gate = below(run, PROTOCOL_GATE_COUNT);
	bool is_new = prng_chance(&run->prng, 700);
	bool ticket = prng_chance(&run->prng, 100);

	read_owner(run);
	open_call(run, "grant");
	add(run, "%s", run->owner);
	add(run, "0-0");
	add(run, "1");
	add(run, "%s.0", FAMILY[family]);
	add(run, "%s", FAMILY[family]);
	add(run, "%s", FAMILY[family]);
	add(run, "default");
	add(run, "claude:big");
	add(run, "%" PRIu64, lane.generation);
	add(run, "%" PRIu64, lane.generation + is_new);
	add(run, "%u", gate);
	add(run, "%u", gate >= PROTOCOL_BYPASS ? 1 + below(run, 8) : 0);
	add(run, "%u", below(run, 3));
	add(run, "%u", 1 + below(run, 2));
	add(run, "%u", 1 + below(run, 6));
	add(run, "%u", below(run, 9));
	add(run, "%" PRIu64, run->now_ms + prng_below(&run->prng, 60000));
	add(run, "30000");
	add(run, "290000");
	add(run, "%u", ticket);
	add(run, "%" PRIu64, ticket ? run->now_ms + 9000 : 0);
	add(run, "%u", below(run, 4));
	add(run, "1");
	add(run, "claude:big");
	add(run, "%u", below(run, 9));
	add(run, "-");
	add(run, "%u", prng_chance(&run->prng, 300) ? 600 : 0);
	add(run, "%u", prng_chance(&run->prng, 300) ? 90000 : 0);
	add(run, "0");
	return give(run, false);
}

static bool
call_hello(struct run *run)
{
	uint32_t session = below(run, SESSIONS);

	open_call(run, "hello");
	add(run, "%s", NONCE[session]);
	add(run, "worker");
	add(run, "default");
	add(run, "%u", SLOTS);
	add(run, "*");
	add(run, "30000");
	add(run, "%s", prng_chance(&run->prng, 100) ? NONCE[below(run, SESSIONS)] : "");
	return give(run, false);
}

static bool
call_attach(struct run *run)
{
	open_call(run, prng_chance(&run->prng, 500) ? "attach" : "bye");
	add(run, "%s", NONCE[below(run, SESSIONS)]);
	add(run, strstr(run->texts[1], "bye") ? "1" : "30000");
	return give(run, false);
}

static void
add_session(struct run *run, uint32_t session)
{
	add(run, "%s", NONCE[session]);
	add(run, "%" PRIu64, connection(run, session));
}

static bool
call_beat(struct run *run)
{
	uint32_t session = pick_session(run);

	open_call(run, "beat");
	add_session(run, session);
	add(run, "%u", below(run, SLOTS + 1));
	add(run, "30000");
	return give(run, false);
}

static bool
call_claim(struct run *run)
{
	uint32_t session = pick_session(run);
	uint32_t slots = 1 + below(run, SLOTS);

	open_call(run, "claim");
	add_session(run, session);
	add(run, "%" PRIu64, run->q);
	run->q += slots;
	for (uint32_t i = 0; i < slots; i++)
		add(run, "%u", i);
	return give(run, false);
}

static void
add_usage(struct run *run)
{
	switch (below(run, 4)) {
	case 0:
		add(run, "%s", "");
		break;
	case 1:
		add(run, "%" PRIu64 " %" PRIu64 " 30000 0 50 20", run->now_ms - 900,
		    run->now_ms - 500);
		break;
	case 2:
		add(run, "%" PRIu64 " %" PRIu64 " 0 30000 50 20", run->now_ms - 900,
		    run->now_ms - 500);
		break;
	default:
		add(run, "%" PRIu64 " - - - - -", run->now_ms - 900);
		break;
	}
}

static bool
call_settle(struct run *run)
{
	uint32_t session = pick_session(run);
	uint32_t slot = below(run, SLOTS);
	bool goes_on = prng_chance(&run->prng, 400);

	open_call(run, "settle");
	add_session(run, session);
	add(run, goes_on ? "=1" : "1");
	add(run, "%u", slot);
	add(run, "%" PRIu64, token(run, session, slot));
	add_usage(run);
	add(run, "%s", prng_chance(&run->prng, 300) ? "list" : "");
	add(run, "3600000");
	add(run, "{\"answer\":%" PRIu64 "}", run->q);
	add(run, "%" PRIu64, run->q);
	run->q += 2;
	if (!goes_on && prng_chance(&run->prng, 500))
		add(run, "%u", slot);
	return give(run, false);
}

static bool
call_fail(struct run *run)
{
	static const char *const KINDS[] = { "retry", "defer", "fatal", "missing",
		                             "unsent" };
	uint32_t session = pick_session(run);
	uint32_t slot = below(run, SLOTS);

	open_call(run, "fail");
	add_session(run, session);
	add(run, "%u", slot);
	add(run, "%" PRIu64, token(run, session, slot));
	add(run, "%s", KINDS[below(run, ARRAY_SIZE(KINDS))]);
	add(run, "%u", 1 + below(run, 3));
	add(run, "%u", below(run, 3) * 700);
	add(run, "%u", below(run, 3) * 500);
	add(run, "%s", prng_chance(&run->prng, 500) ? "429" : "5xx");
	add(run, "it went wrong");
	add_usage(run);
	add(run, "%s", "");
	add(run, "60000");
	add(run, "%s", "");
	return give(run, false);
}

static bool
call_release(struct run *run)
{
	uint32_t session = pick_session(run);
	bool begin = prng_chance(&run->prng, 500);
	uint32_t slot = below(run, SLOTS);

	open_call(run, begin ? "begin" : "release");
	add_session(run, session);
	add(run, "%u", slot);
	add(run, "%" PRIu64, token(run, session, slot));
	if (begin)
		add_usage(run);
	else
		add(run, "%u", below(run, 2));
	return give(run, false);
}

static bool
call_late(struct run *run)
{
	bool paid = prng_chance(&run->prng, 500);

	open_call(run, "settle_late");
	if (paid)
		add(run, "usage");
	add(run, "%" PRIu64 "-1", prng_below(&run->prng, run->jobs + 1));
	add(run, "%s", "");
	add(run, "60000");
	add(run, "late");
	if (paid) {
		add(run, "%s.0 %s p %s77.%u", FAMILY[0], FAMILY[0],
		    below(run, 2) ? "?" : "", below(run, 3));
		add_usage(run);
	}
	return give(run, false);
}

static bool
call_ledger(struct run *run)
{
	read_owner(run);
	open_call(run, "ledger");
	add(run, "%s", run->owner);
	add(run, "%" PRIu64 "-0", run->now_ms - 500);
	add(run, "60000");
	add(run, "3");
	add(run, "%s", "");
	add(run, "total");
	add(run, "%u", below(run, 9));
	for (uint32_t i = 0; i < 2; i++) {
		add(run, "%u", 500000 + below(run, 2));
		add(run, "%s", i == 0 ? "triage" : "other");
		add(run, "%u", below(run, 9));
	}
	return give(run, false);
}

static bool
call_job(struct run *run)
{
	bool cancel = prng_chance(&run->prng, 500);

	open_call(run, cancel ? "cancel" : "requeue");
	add(run, "%" PRIu64 "-1", prng_below(&run->prng, run->jobs + 1));
	return give(run, false);
}

static bool
call_tick(struct run *run)
{
	uint32_t what = below(run, 4);

	read_owner(run);
	open_call(run, what == 0   ? "reap"
	               : what == 1 ? "promote"
	               : what == 2 ? "expire"
	                           : "audit");
	add(run, "%s", run->owner);
	if (what == 0) {
		add(run, "30000");
		add(run, "10000");
		add(run, "%u", 1 + below(run, 5));
	} else if (what < 3) {
		add(run, "%u", 1 + below(run, 5));
	}
	return give(run, what == 3);
}

static bool
call_look(struct run *run)
{
	uint32_t what = below(run, 8);

	if (what == 0) {
		open_call(run, "glance");
		add(run, "%s", FAMILY[below(run, FAMILIES)]);
	} else if (what == 1) {
		open_call(run, "count");
	} else if (what == 2) {
		open_call(run, "version");
	} else if (what == 3) {
		open_call(run, "hold");
		add(run, prng_chance(&run->prng, 300) ? "off" : "on");
		if (prng_chance(&run->prng, 300)) {
			add(run, "somebody");
			add(run, prng_chance(&run->prng, 700) ? "route" : "another");
		}
	} else if (what == 4) {
		open_call(run, "unpark");
		add(run, prng_chance(&run->prng, 300) ? "nobody" : "acme");
	} else if (what == 6) {
		open_call(run, "warm");
		add(run, "%s", FAMILY[below(run, FAMILIES)]);
	} else if (what == 5) {
		open_call(run, "steer");
		add(run, "%s", NONCE[below(run, SESSIONS)]);
		add(run, prng_chance(&run->prng, 700) ? "run" : "quiet");
	} else {
		open_call(run, "pause");
		add(run, "%s", FAMILY[below(run, FAMILIES)]);
		add(run, prng_chance(&run->prng, 300) ? "on" : "off");
	}
	return give(run, false);
}

static bool
add_entry(struct run *run)
{
	char id[40];

	(void)snprintf(id, sizeof id, "%" PRIu64 "-1", run->jobs + 1 + below(run, 3));
	run->count = 0;
	add(run, "XADD");
	add(run, "warmq:jobs");
	add(run, "%s", id);
	add(run, "upstream");
	add(run, "claude");
	add(run, "body");
	add(run, "{}");
	for (size_t i = 0; i < run->count; i++)
		run->words[i] = span_from(run->texts[i]);
	return real_redis_agrees(run->real, run->model, run->words, run->count,
	                         (struct real_redis_rules){ 0 }, &run->ours,
	                         &run->theirs);
}

/* A key of a wrong type where a function does not expect it. */
static bool
spoil_key(struct run *run)
{
	static const char *const KEYS[] = { "warmq:reply:list", "warmq:events",
		                            "warmq:later", "warmq:result:5-1" };

	if (!prng_chance(&run->prng, 100))
		return true;
	run->count = 0;
	add(run, "SET");
	add(run, "%s", KEYS[below(run, ARRAY_SIZE(KEYS))]);
	add(run, "spoilt");
	for (size_t i = 0; i < run->count; i++)
		run->words[i] = span_from(run->texts[i]);
	return real_redis_agrees(run->real, run->model, run->words, run->count,
	                         (struct real_redis_rules){ 0 }, &run->ours,
	                         &run->theirs);
}

/* ---- one sequence
 * ---------------------------------------------------------------------- */

static bool
step(struct run *run)
{
	static bool (*const CALLS[])(struct run *) = {
		call_admit,  call_admit,  call_grant,  call_grant,   call_grant,
		call_hello,  call_claim,  call_claim,  call_claim,   call_claim,
		call_settle, call_settle, call_fail,   call_release, call_beat,
		call_attach, call_late,   call_job,    call_tick,    call_tick,
		call_look,   call_rule,   call_ledger, add_entry,    add_entry,
		spoil_key,
	};

	return tick(run) && CALLS[below(run, ARRAY_SIZE(CALLS))](run);
}

/* A key with a spoilt, tiny lifetime may end between two looks: then a third one. */
static bool
same_names(struct run *run)
{
	bool same = false;

	for (int i = 0; i < 3 && !same; i++) {
		redis_model_set_time(run->model, real_redis_time(run->real));
		run->count = 0;
		add(run, "KEYS");
		add(run, "*");
		run->words[0] = span_from(run->texts[0]);
		run->words[1] = span_from(run->texts[1]);
		same = real_redis_agrees(run->real, run->model, run->words, 2,
		                         (struct real_redis_rules){ .unordered = true },
		                         &run->ours, &run->theirs);
	}
	return same;
}

static bool
same_keys(struct run *run)
{
	const struct redis_value *value;
	size_t cursor = 0;

	if (!same_names(run)) {
		fprintf(stderr, "keys: %s\nand:  %s\n", buffer_text(&run->ours),
		        buffer_text(&run->theirs));
		return false;
	}
	while ((value = redis_model_next(run->model, &cursor)) != NULL) {
		static const char *const READS[REDIS_TYPE_COUNT][4] = {
			{ "GET", NULL, NULL, NULL },
			{ "LRANGE", "0", "-1", NULL },
			{ "HGETALL", NULL, NULL, NULL },
			{ "SMEMBERS", NULL, NULL, NULL },
			{ "ZRANGE", "0", "-1", "WITHSCORES" },
			{ "XLEN", NULL, NULL, NULL },
		};
		const char *const *read = READS[value->type];

		run->count = 0;
		add(run, "%s", read[0]);
		add(run, "%s", value->key->data);
		for (int i = 1; i < 4 && read[i]; i++)
			add(run, "%s", read[i]);
		for (size_t i = 0; i < run->count; i++)
			run->words[i] = span_from(run->texts[i]);
		if (!real_redis_agrees(run->real, run->model, run->words, run->count,
		                       (struct real_redis_rules){ .unordered = true },
		                       &run->ours, &run->theirs)) {
			fprintf(stderr, "%s\n  model: %s\n  redis: %s\n", run->texts[1],
			        buffer_text(&run->ours), buffer_text(&run->theirs));
			return false;
		}
	}
	return true;
}

/* The library as it is, but for its clock: what Redis calls the time, and what it thinks
 * is left of the stamp. */
static struct span
library_text(void)
{
	static char text[1 << 19];
	static const char *const SWAPS[][2] = {
		{ "call('TIME')", "call('LRANGE', 'warmq_clock', 0, 1)" },
		{ "call('PTTL', key.stamp)",
		  "(function() local time, ends = call('LRANGE', 'warmq_clock', 0, 1), "
		  "call('PEXPIRETIME', key.stamp) return ends < 0 and ends or "
		  "ends - time[1] * 1000 - floor(time[2] / 1000) end)()" },
	};
	bool swapped[ARRAY_SIZE(SWAPS)] = { false };
	size_t len = 0;

	for (const char *at = functions_library; *at;) {
		size_t i = 0;

		while (i < ARRAY_SIZE(SWAPS) &&
		       strncmp(at, SWAPS[i][0], strlen(SWAPS[i][0])) != 0)
			i++;
		if (i < ARRAY_SIZE(SWAPS)) {
			memcpy(text + len, SWAPS[i][1], strlen(SWAPS[i][1]));
			len += strlen(SWAPS[i][1]);
			at += strlen(SWAPS[i][0]);
			swapped[i] = true;
		} else {
			text[len++] = *at++;
		}
		VERIFY(len < sizeof text - 256);
	}
	VERIFY(swapped[0]);
	VERIFY(swapped[1]);
	return (struct span){ text, len };
}

static bool
run_sequence(struct real_redis *real, uint64_t seed, bool show)
{
	struct run *run = calloc(1, sizeof *run);
	const char *error;
	bool same = true;

	VERIFY(run);
	run->real = real;
	run->model = redis_model_create();
	run->host = lua_host_create();
	error = lua_host_load(run->host, library_text());
	VERIFY(!error);
	lua_host_attach(run->host, run->model);
	prng_init(&run->prng, seed);
	buffer_init(&run->ours, 1 << 22);
	buffer_init(&run->theirs, 1 << 22);
	run->now_ms = 1800000000000;
	run->show = show;
	real_redis_text(real, "FLUSHALL");
	redis_model_set_time(run->model, real_redis_time(real));
	same = tick(run) && call_rule(run);
	for (int i = 0; i < STEPS && same; i++)
		same = step(run);
	same = same && same_keys(run);
	if (!same)
		fprintf(stderr, "seed %" PRIu64 " differs\n", seed);
	buffer_fini(&run->ours);
	buffer_fini(&run->theirs);
	redis_model_destroy(run->model);
	lua_host_destroy(run->host);
	free(run);
	return same;
}

int
main(int argc, char **argv)
{
	uint64_t count = 150;
	uint64_t from = 1;
	bool show = false;
	struct real_redis *real;
	uint64_t failed = 0;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--show") == 0)
			show = true;
		else if (strcmp(argv[i], "--sequences") == 0 && i + 1 < argc)
			count = strtoull(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--from") == 0 && i + 1 < argc)
			from = strtoull(argv[++i], NULL, 10);
	}
	real = real_redis_open();
	if (!real) {
		fprintf(stderr, "There is no redis-server to compare with; skipped.\n");
		return 77;
	}
	real_redis_load(real, library_text());
	for (uint64_t seed = from; seed < from + count && failed < 3; seed++)
		failed += !run_sequence(real, seed, show);
	real_redis_close(real);
	printf("%" PRIu64 " sequences of %d calls, %" PRIu64 " differ\n", count, STEPS,
	       failed);
	return failed > 0;
}
