#include "tests/sim/queue_life.h"

#include "common/codec/protocol_record.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	FAMILIES = 3,
	SESSIONS = 3,
	SLOTS = 4,
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

static void add(struct queue_life *life, const char *format, ...) PRINTF(2, 3);

static void
add(struct queue_life *life, const char *format, ...)
{
	va_list args;

	VERIFY(life->count < QUEUE_LIFE_WORDS);
	va_start(args, format);
	(void)vsnprintf(life->texts[life->count], QUEUE_LIFE_WORD_SIZE, format, args);
	va_end(args);
	life->count++;
}

static void
open_call(struct queue_life *life, const char *function)
{
	life->count = 0;
	add(life, "FCALL");
	add(life, "warmq_%s", function);
	add(life, "1");
	add(life, "warmq:meta");
	add(life, "1");
}

static bool
agree(struct queue_life *life, bool unordered)
{
	for (size_t i = 0; i < life->count; i++)
		life->words[i] = span_from(life->texts[i]);
	return real_redis_agrees(life->real, life->model, life->words, life->count,
	                         (struct real_redis_rules){ .unordered = unordered },
	                         &life->ours, &life->theirs);
}

bool
queue_life_agrees(struct queue_life *life, bool unordered, const char *first, ...)
{
	va_list args;

	life->count = 0;
	va_start(args, first);
	for (const char *word = first; word; word = va_arg(args, const char *))
		add(life, "%s", word);
	va_end(args);
	return agree(life, unordered);
}

static uint32_t
below(struct queue_life *life, uint32_t bound)
{
	return (uint32_t)prng_below(&life->prng, bound);
}

/* Both get the call; false if they disagree. */
static bool
give(struct queue_life *life, bool unordered)
{
	bool same;

	if (prng_chance(&life->prng, 60) && life->count > 5)
		(void)snprintf(life->texts[5 + below(life, (uint32_t)life->count - 5)],
		               QUEUE_LIFE_WORD_SIZE, "%s",
		               JUNK[below(life, ARRAY_SIZE(JUNK))]);
	if (prng_chance(&life->prng, 20))
		life->count--;
	same = agree(life, unordered);
	if (!same || life->show) {
		for (size_t i = 0; i < life->count; i++)
			fprintf(stderr, "%s'%s'", i ? " " : "", life->texts[i]);
		fprintf(stderr, "\n  model: %s\n  redis: %s\n", buffer_text(&life->ours),
		        buffer_text(&life->theirs));
	}
	return same;
}

static bool
tick(struct queue_life *life)
{
	life->now_ms += prng_chance(&life->prng, 50) ? prng_below(&life->prng, 20000)
	                                             : prng_below(&life->prng, 300);
	redis_model_set_time(life->model, real_redis_time(life->real));
	(void)queue_life_agrees(life, false, "DEL", "warmq_clock", NULL);
	life->count = 0;
	add(life, "RPUSH");
	add(life, "warmq_clock");
	add(life, "%" PRIu64, life->now_ms / 1000);
	add(life, "%" PRIu64, life->now_ms % 1000 * 1000);
	return agree(life, false);
}

/* ---- what there is to name ----------------------------------------------------------
 */

static struct protocol_lane
lane_now(struct queue_life *life, uint32_t family)
{
	const struct redis_value *lanes =
		redis_model_find(life->model, SPAN("warmq:lanes"));
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
table_field(struct queue_life *life, uint32_t session, const char *name)
{
	char key[64];
	const struct redis_value *table;
	bool found = false;
	size_t at;

	(void)snprintf(key, sizeof key, "warmq:lease:%s", NONCE[session]);
	table = redis_model_find(life->model, span_from(key));
	if (!table || table->type != REDIS_HASH)
		return NULL;
	at = redis_value_seek(table, span_from(name), &found);
	return found ? redis_value_field(table, at)->value->data : NULL;
}

/* Mostly one that lives, if any does. */
static uint32_t
pick_session(struct queue_life *life)
{
	uint32_t session = below(life, SESSIONS);

	for (uint32_t i = 0; i < SESSIONS && !table_field(life, session, "s") &&
	                     prng_chance(&life->prng, 950);
	     i++)
		session = (session + 1) % SESSIONS;
	return session;
}

static uint64_t
connection(struct queue_life *life, uint32_t session)
{
	const char *text = table_field(life, session, "s");

	return text ? strtoull(text, NULL, 10) : 1;
}

static uint64_t
token(struct queue_life *life, uint32_t session, uint32_t slot)
{
	char name[8];
	const char *text;

	(void)snprintf(name, sizeof name, "%u", slot);
	text = table_field(life, session, name);
	return text ? strtoull(text, NULL, 10) : 7;
}

/* ---- calls ---------------------------------------------------------------------------
 */

static bool
call_rule(struct queue_life *life)
{
	open_call(life, "rule");
	add(life, "%s", prng_chance(&life->prng, 900) ? "00000000000000f1" : NONCE[0]);
	add(life, "6000");
	return give(life, false);
}

static void
read_owner(struct queue_life *life)
{
	const struct reply *reply = redis_model_text(life->model, "HMGET", "warmq:meta",
	                                             "owner", "cursor", NULL);

	(void)snprintf(life->owner, sizeof life->owner, "%.*s",
	               (int)reply_text(reply_at(reply, 0)).len,
	               reply_text(reply_at(reply, 0)).data);
	(void)snprintf(life->cursor, sizeof life->cursor, "%.*s",
	               (int)reply_text(reply_at(reply, 1)).len,
	               reply_text(reply_at(reply, 1)).data);
}

static void
add_family(struct queue_life *life, uint32_t family)
{
	add(life, "%s", FAMILY[family]);
	add(life, "default");
	add(life, "claude:big");
	add(life, "2");
	add(life, "%u", 5000 * family);
	add(life, "100");
	add(life, "50");
	add(life, "%s.0", FAMILY[family]);
	add(life, "%s%s", family == 2 ? FAMILY[0] : "", family == 2 ? ".0" : "");
	add(life, "%s%s%s", family == 2 ? FAMILY[0] : "", family == 2 ? "," : "",
	    FAMILY[family]);
	add(life, "route");
}

/* Rarely the entry behind the jobs waits for its time, or for a prefix, or is dead. */
static void
add_rare_groups(struct queue_life *life, uint32_t family, uint64_t entry)
{
	uint32_t what = below(life, 8);

	add(life, "L");
	add(life, "%u", what < 2);
	if (what < 2) {
		add(life, "%" PRIu64 "-1", entry);
		add(life, "%" PRIu64, life->now_ms + prng_below(&life->prng, 9000));
		add(life, "%s", what == 0 ? FAMILY[family] : "");
		add(life, "%s", LISTS[below(life, ARRAY_SIZE(LISTS))]);
		add(life, "slim1 whole\nupstream claude\nprefix %s\nreply list\n\nbody",
		    prng_chance(&life->prng, 500) ? "known" : "unknown");
	}
	add(life, "D");
	add(life, "%u", what == 2);
	if (what == 2) {
		add(life, "%" PRIu64 "-1", entry);
		add(life, "malformed");
		add(life, "it is not JSON");
		add(life, "%s", prng_chance(&life->prng, 500) ? "its bytes" : "");
		add(life, "%s", prng_chance(&life->prng, 500) ? "list" : "");
		add(life, "60000");
		add(life, "%s", "");
	}
}

/* Entries to delete, prefixes, and undecided jobs that get their place now. */
static void
add_last_groups(struct queue_life *life, uint64_t entry)
{
	bool gone = prng_chance(&life->prng, 300);
	bool prefix = prng_chance(&life->prng, 100);

	add(life, "G");
	add(life, "%u", gone);
	if (gone)
		add(life, "%" PRIu64 "-1", entry);
	add(life, "P");
	add(life, "%u", prefix);
	if (prefix) {
		add(life, "known");
		add(life, "{}");
	}
	if (prng_chance(&life->prng, 50)) {
		add(life, "U");
		add(life, "1");
		add(life, "%" PRIu64 "-1", 1 + prng_below(&life->prng, entry));
	}
}

/* A few jobs, as stream entries or slim, now or later. */
static bool
call_admit(struct queue_life *life)
{
	uint32_t family = below(life, FAMILIES);
	uint32_t jobs = below(life, 4);
	uint64_t first = life->jobs + 1;
	char entry[40] = "0-0";
	bool slim = prng_chance(&life->prng, 300);

	read_owner(life);
	(void)sscanf(life->cursor, "%39s", entry);
	open_call(life, "admit");
	add(life, "%s", life->owner);
	add(life, "%s", entry);
	add(life, "0");
	add(life, "%" PRIu64 "-1", first + jobs);
	add(life, "0");
	life->jobs += jobs + 1;
	add(life, "F");
	add(life, "1");
	add_family(life, family);
	add(life, "X");
	add(life, "%u", family == 2 ? 2 : 1);
	if (family == 2) {
		add(life, "%s", FAMILY[0]);
		add(life, "px root");
	}
	add(life, "%s", FAMILY[family]);
	add(life, "px leaf");
	add(life, "R");
	add(life, "1");
	add(life, "%s", FAMILY[family]);
	add(life, "%s", LISTS[below(life, ARRAY_SIZE(LISTS))]);
	add(life, "%u", jobs);
	add(life, "E");
	add(life, "%u", jobs);
	for (uint32_t i = 0; i < jobs; i++)
		add(life, "%" PRIu64 "-1%s", first + i, slim ? "~" : "");
	add(life, "S");
	add(life, "%u", slim ? jobs : 0);
	for (uint32_t i = 0; slim && i < jobs; i++) {
		add(life, "%" PRIu64 "-1", first + i);
		add(life, "upstream claude\n\nbody");
	}
	add_rare_groups(life, family, first + jobs);
	add(life, "T");
	add(life, "%u", jobs > 0 && prng_chance(&life->prng, 200));
	if (life->texts[life->count - 1][0] == '1') {
		add(life, "%" PRIu64 "-1", first);
		add(life, "%" PRIu64, life->now_ms + 5000);
	}
	add_last_groups(life, first + jobs);
	return give(life, false);
}

static bool
call_grant(struct queue_life *life)
{
	uint32_t family = below(life, FAMILIES);
	struct protocol_lane lane = lane_now(life, family);
	uint32_t gate = below(life, PROTOCOL_GATE_COUNT);
	bool is_new = prng_chance(&life->prng, 700);
	bool ticket = prng_chance(&life->prng, 100);

	read_owner(life);
	open_call(life, "grant");
	add(life, "%s", life->owner);
	add(life, "0-0");
	add(life, "1");
	add(life, "%s.0", FAMILY[family]);
	add(life, "%s", FAMILY[family]);
	add(life, "%s", FAMILY[family]);
	add(life, "default");
	add(life, "claude:big");
	add(life, "%" PRIu64, lane.generation);
	add(life, "%" PRIu64, lane.generation + is_new);
	add(life, "%u", gate);
	add(life, "%u", gate >= PROTOCOL_BYPASS ? 1 + below(life, 8) : 0);
	add(life, "%u", below(life, 3));
	add(life, "%u", 1 + below(life, 2));
	add(life, "%u", 1 + below(life, 6));
	add(life, "%u", below(life, 9));
	add(life, "%" PRIu64, life->now_ms + prng_below(&life->prng, 60000));
	add(life, "30000");
	add(life, "290000");
	add(life, "%u", ticket);
	add(life, "%" PRIu64, ticket ? life->now_ms + 9000 : 0);
	add(life, "%u", below(life, 4));
	add(life, "1");
	add(life, "claude:big");
	add(life, "%u", below(life, 9));
	add(life, "-");
	add(life, "%u", prng_chance(&life->prng, 300) ? 600 : 0);
	add(life, "%u", prng_chance(&life->prng, 300) ? 90000 : 0);
	add(life, "0");
	add(life, "%u", below(life, 9));
	return give(life, false);
}

static bool
call_hello(struct queue_life *life)
{
	uint32_t session = below(life, SESSIONS);

	open_call(life, "hello");
	add(life, "%s", NONCE[session]);
	add(life, "worker");
	add(life, "default");
	add(life, "%u", SLOTS);
	add(life, "*");
	add(life, "30000");
	add(life, "%s",
	    prng_chance(&life->prng, 100) ? NONCE[below(life, SESSIONS)] : "");
	return give(life, false);
}

static bool
call_attach(struct queue_life *life)
{
	open_call(life, prng_chance(&life->prng, 500) ? "attach" : "bye");
	add(life, "%s", NONCE[below(life, SESSIONS)]);
	add(life, strstr(life->texts[1], "bye") ? "1" : "30000");
	return give(life, false);
}

static void
add_session(struct queue_life *life, uint32_t session)
{
	add(life, "%s", NONCE[session]);
	add(life, "%" PRIu64, connection(life, session));
}

static bool
call_beat(struct queue_life *life)
{
	uint32_t session = pick_session(life);

	open_call(life, "beat");
	add_session(life, session);
	add(life, "%u", below(life, SLOTS + 1));
	add(life, "30000");
	return give(life, false);
}

static bool
call_claim(struct queue_life *life)
{
	uint32_t session = pick_session(life);
	uint32_t slots = 1 + below(life, SLOTS);

	open_call(life, "claim");
	add_session(life, session);
	add(life, "%" PRIu64, life->q);
	life->q += slots;
	for (uint32_t i = 0; i < slots; i++)
		add(life, "%u", i);
	return give(life, false);
}

static void
add_usage(struct queue_life *life)
{
	switch (below(life, 4)) {
	case 0:
		add(life, "%s", "");
		break;
	case 1:
		add(life, "%" PRIu64 " %" PRIu64 " 30000 0 50 20", life->now_ms - 900,
		    life->now_ms - 500);
		break;
	case 2:
		add(life, "%" PRIu64 " %" PRIu64 " 0 30000 50 20", life->now_ms - 900,
		    life->now_ms - 500);
		break;
	default:
		add(life, "%" PRIu64 " - - - - -", life->now_ms - 900);
		break;
	}
}

static bool
call_settle(struct queue_life *life)
{
	uint32_t session = pick_session(life);
	uint32_t slot = below(life, SLOTS);
	bool goes_on = prng_chance(&life->prng, 400);

	open_call(life, "settle");
	add_session(life, session);
	add(life, goes_on ? "=1" : "1");
	add(life, "%u", slot);
	add(life, "%" PRIu64, token(life, session, slot));
	add_usage(life);
	add(life, "%s", prng_chance(&life->prng, 300) ? "list" : "");
	add(life, "3600000");
	add(life, "{\"answer\":%" PRIu64 "}", life->q);
	add(life, "%" PRIu64, life->q);
	life->q += 2;
	if (!goes_on && prng_chance(&life->prng, 500))
		add(life, "%u", slot);
	return give(life, false);
}

static bool
call_fail(struct queue_life *life)
{
	static const char *const KINDS[] = { "retry", "defer", "fatal", "missing",
		                             "unsent" };
	uint32_t session = pick_session(life);
	uint32_t slot = below(life, SLOTS);

	open_call(life, "fail");
	add_session(life, session);
	add(life, "%u", slot);
	add(life, "%" PRIu64, token(life, session, slot));
	add(life, "%s", KINDS[below(life, ARRAY_SIZE(KINDS))]);
	add(life, "%u", 1 + below(life, 3));
	add(life, "%u", below(life, 3) * 700);
	add(life, "%u", below(life, 3) * 500);
	add(life, "%s", prng_chance(&life->prng, 500) ? "429" : "5xx");
	add(life, "it went wrong");
	add_usage(life);
	add(life, "%s", "");
	add(life, "60000");
	add(life, "%s", "");
	return give(life, false);
}

static bool
call_release(struct queue_life *life)
{
	uint32_t session = pick_session(life);
	bool begin = prng_chance(&life->prng, 500);
	uint32_t slot = below(life, SLOTS);

	open_call(life, begin ? "begin" : "release");
	add_session(life, session);
	add(life, "%u", slot);
	add(life, "%" PRIu64, token(life, session, slot));
	if (begin)
		add_usage(life);
	else
		add(life, "%u", below(life, 2));
	return give(life, false);
}

static bool
call_late(struct queue_life *life)
{
	bool paid = prng_chance(&life->prng, 500);

	open_call(life, "settle_late");
	if (paid)
		add(life, "usage");
	add(life, "%" PRIu64 "-1", prng_below(&life->prng, life->jobs + 1));
	add(life, "%s", "");
	add(life, "60000");
	add(life, "late");
	if (paid) {
		add(life, "%s.0 %s p %s77.%u", FAMILY[0], FAMILY[0],
		    below(life, 2) ? "?" : "", below(life, 3));
		add_usage(life);
	}
	return give(life, false);
}

static bool
call_ledger(struct queue_life *life)
{
	read_owner(life);
	open_call(life, "ledger");
	add(life, "%s", life->owner);
	add(life, "%" PRIu64 "-0", life->now_ms - 500);
	add(life, "60000");
	add(life, "3");
	add(life, "%s", "");
	add(life, "total");
	add(life, "%u", below(life, 9));
	for (uint32_t i = 0; i < 2; i++) {
		add(life, "%u", 500000 + below(life, 2));
		add(life, "%s", i == 0 ? "triage" : "other");
		add(life, "%u", below(life, 9));
	}
	return give(life, false);
}

static bool
call_job(struct queue_life *life)
{
	static const char *const names[] = { "cancel", "cancel", "requeue", "restore" };

	open_call(life, names[below(life, 4)]);
	add(life, "%" PRIu64 "-1", prng_below(&life->prng, life->jobs + 1));
	return give(life, false);
}

static bool
call_tick(struct queue_life *life)
{
	uint32_t what = below(life, 4);

	read_owner(life);
	open_call(life, what == 0   ? "reap"
	                : what == 1 ? "promote"
	                : what == 2 ? "expire"
	                            : "audit");
	add(life, "%s", life->owner);
	if (what == 0) {
		add(life, "30000");
		add(life, "10000");
		add(life, "%u", 1 + below(life, 5));
	} else if (what < 3) {
		add(life, "%u", 1 + below(life, 5));
	}
	return give(life, what == 3);
}

static bool
call_look(struct queue_life *life)
{
	uint32_t what = below(life, 8);

	if (what == 0) {
		open_call(life, "glance");
		add(life, "%s", FAMILY[below(life, FAMILIES)]);
	} else if (what == 1) {
		open_call(life, "count");
	} else if (what == 2) {
		open_call(life, "version");
	} else if (what == 3) {
		open_call(life, "hold");
		add(life, prng_chance(&life->prng, 300) ? "off" : "on");
		if (prng_chance(&life->prng, 300)) {
			add(life, "somebody");
			add(life, prng_chance(&life->prng, 700) ? "route" : "another");
		}
	} else if (what == 4) {
		open_call(life, "unpark");
		add(life, prng_chance(&life->prng, 300) ? "nobody" : "acme");
	} else if (what == 6) {
		open_call(life, "warm");
		add(life, "%s", FAMILY[below(life, FAMILIES)]);
	} else if (what == 5) {
		open_call(life, "steer");
		add(life, "%s", NONCE[below(life, SESSIONS)]);
		add(life, prng_chance(&life->prng, 700) ? "run" : "quiet");
	} else {
		open_call(life, "pause");
		add(life, "%s", FAMILY[below(life, FAMILIES)]);
		add(life, prng_chance(&life->prng, 300) ? "on" : "off");
	}
	return give(life, false);
}

static bool
add_entry(struct queue_life *life)
{
	char id[40];

	(void)snprintf(id, sizeof id, "%" PRIu64 "-1", life->jobs + 1 + below(life, 3));
	return queue_life_agrees(life, false, "XADD", "warmq:jobs", id, "upstream",
	                         "claude", "body", "{}", NULL);
}

/* A key of a wrong type where a function does not expect it. */
static bool
spoil_key(struct queue_life *life)
{
	static const char *const KEYS[] = { "warmq:reply:list", "warmq:events",
		                            "warmq:later", "warmq:result:5-1" };

	if (!prng_chance(&life->prng, 100))
		return true;
	return queue_life_agrees(life, false, "SET", KEYS[below(life, ARRAY_SIZE(KEYS))],
	                         "spoilt", NULL);
}

/* ---- a life ----------------------------------------------------------------------
 */

bool
queue_life_begin(struct queue_life *life)
{
	return tick(life) && call_rule(life);
}

bool
queue_life_step(struct queue_life *life)
{
	static bool (*const CALLS[])(struct queue_life *) = {
		call_admit,  call_admit,  call_grant,  call_grant,   call_grant,
		call_hello,  call_claim,  call_claim,  call_claim,   call_claim,
		call_settle, call_settle, call_fail,   call_release, call_beat,
		call_attach, call_late,   call_job,    call_tick,    call_tick,
		call_look,   call_rule,   call_ledger, add_entry,    add_entry,
		spoil_key,
	};

	return tick(life) && CALLS[below(life, ARRAY_SIZE(CALLS))](life);
}
