#include "tests/sim/small_call.h"

#include "common/buffer.h"
#include "scheduler/functions/functions_library.h"
#include "tests/sim/lua_host.h"
#include "tests/sim/redis_model.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define NOW_US   1800000000000000u
#define LATER_US 5000000u /* more than a job waits that was deferred four times */
#define FAMILY   "0123456789abcdef0123456789abcdef"
#define LANE     FAMILY ".0"

enum {
	WORDS = 64,
	WORD_SIZE = 96
};

struct small_scope {
	struct lua_host *host;
	struct buffer library;
	enum small_gate gate;
	const char *fault;
	char fault_text[256];
	char owner[40];
	struct span words[WORDS];
	char texts[WORDS][WORD_SIZE];
	size_t count;
};

const char *
small_scope_fault(const struct small_scope *scope)
{
	return scope->fault;
}

bool
small_scope_is_lead(const struct small_scope *scope)
{
	return scope->gate == SMALL_LEAD;
}

void
small_scope_blame(struct small_scope *scope, const char *fault)
{
	if (scope->fault)
		return;
	(void)snprintf(scope->fault_text, sizeof scope->fault_text, "%s", fault);
	scope->fault = scope->fault_text;
}

/* ---- calling --------------------------------------------------------------------- */

static void PRINTF(2, 3) say(struct small_scope *scope, const char *format, ...)
{
	va_list args;
	char *text = scope->texts[scope->count];

	VERIFY(scope->count < WORDS);
	va_start(args, format);
	(void)vsnprintf(text, WORD_SIZE, format, args);
	va_end(args);
	scope->words[scope->count++] = span_from(text);
}

/* Words that are separated by blanks; "_" stands for an empty one. */
static void
say_all(struct small_scope *scope, const char *words)
{
	while (*words) {
		size_t len = strcspn(words, " ");

		say(scope, "%.*s", len == 1 && *words == '_' ? 0 : (int)len, words);
		words += len + (words[len] == ' ');
	}
}

static void
open_call(struct small_scope *scope, const char *function)
{
	scope->count = 0;
	say(scope, "FCALL");
	say(scope, "warmq_%s", function);
	say_all(scope, "1 warmq:meta 1");
}

static const struct reply *
give(struct small_scope *scope, struct small_world *world)
{
	const struct reply *reply;

	lua_host_attach(scope->host, world->redis);
	reply = redis_model_call(world->redis, scope->words, scope->count);
	if (reply->kind == REPLY_ERROR) {
		char text[200];

		(void)snprintf(text, sizeof text, "%s: %.*s", scope->texts[1],
		               (int)MIN(reply->text.len, 150), reply->text.data);
		small_scope_blame(scope, text);
	}
	return reply;
}

static void
say_session(struct small_scope *scope, uint8_t who, uint8_t life)
{
	say(scope, "%014x%02x", who + 1, life);
}

const struct reply *
small_call_worker(struct small_scope *scope, struct small_world *world,
                  struct small_word word)
{
	static const char *const NAMES[SMALL_VERB_COUNT] = { "claim",  "settle", "settle",
		                                             "fail",   "fail",   "fail",
		                                             "release" };
	static const char *const KINDS[SMALL_VERB_COUNT] = {
		[SMALL_RETRY] = "retry", [SMALL_DEFER] = "defer", [SMALL_FATAL] = "fatal"
	};

	open_call(scope, NAMES[word.verb]);
	say_session(scope, word.worker, word.life);
	say(scope, "%u", word.c);
	if (word.verb == SMALL_CLAIM) {
		say(scope, "%u", word.q);
		say(scope, "0");
		return give(scope, world);
	}
	if (word.verb == SMALL_SETTLE || word.verb == SMALL_SETTLE_CLAIM)
		say(scope, word.verb == SMALL_SETTLE ? "1" : "=1");
	say(scope, "0");
	say(scope, "%u", word.slot_q);
	if (KINDS[word.verb]) {
		say(scope, "%s", KINDS[word.verb]);
		say_all(scope, "9 0 0 _ _ _ box 60000 _");
	} else if (word.verb == SMALL_RELEASE) {
		say(scope, "1");
	} else {
		say_all(scope, "_ box 60000");
		say(scope, "{\"id\":\"%u-1\"}", word.job);
	}
	if (word.verb == SMALL_SETTLE_CLAIM)
		say(scope, "%u", word.q);
	return give(scope, world);
}

const struct reply *
small_call_attach(struct small_scope *scope, struct small_world *world, uint8_t who)
{
	open_call(scope, "attach");
	say_session(scope, who, world->workers[who].life);
	say(scope, "30000");
	return give(scope, world);
}

void
small_call_hello(struct small_scope *scope, struct small_world *world, uint8_t who)
{
	open_call(scope, "hello");
	say_session(scope, who, world->workers[who].life);
	say_all(scope, "worker main 1 * 30000 _");
	if (!reply_is(reply_at(give(scope, world), 0), "OK"))
		small_scope_blame(scope, "a fresh nonce is refused");
}

/* The scheduler sends what it has read, also when it does not know whether it has. */
void
small_call_admit(struct small_scope *scope, struct small_world *world, uint8_t job)
{
	open_call(scope, "admit");
	say(scope, "%s", scope->owner);
	say(scope, job == 0 ? "0-0" : "%u-1", job);
	say(scope, "0");
	say(scope, "%u-1", job + 1);
	say_all(scope, "0 F 0 X 0 R 1 " FAMILY " n 1 E 1");
	say(scope, "%u-1", job + 1);
	say_all(scope, "S 0 L 0 D 0 T 0 G 0 P 0");
	(void)give(scope, world);
}

void
small_call_cancel(struct small_scope *scope, struct small_world *world, uint8_t job)
{
	open_call(scope, "cancel");
	say(scope, "%u-1", job + 1);
	(void)give(scope, world);
}

void
small_call_late(struct small_scope *scope, struct small_world *world, uint8_t held)
{
	open_call(scope, "settle_late");
	say(scope, "%u-1", held);
	say_all(scope, "box 60000");
	say(scope, "{\"id\":\"%u-1\"}", held);
	(void)give(scope, world);
}

void
small_call_reap(struct small_scope *scope, struct small_world *world, uint8_t who)
{
	scope->count = 0;
	say_all(scope, "ZADD warmq:workers");
	say(scope, "%llu", NOW_US / 1000ull - 1);
	say_session(scope, who, world->workers[who].life);
	(void)give(scope, world);
	open_call(scope, "reap");
	say(scope, "%s", scope->owner);
	say_all(scope, "30000 10000 9");
	(void)give(scope, world);
}

void
small_call_hold_off(struct small_scope *scope, struct small_world *world)
{
	open_call(scope, "hold");
	say(scope, "off");
	(void)give(scope, world);
}

void
small_call_promote(struct small_scope *scope, struct small_world *world)
{
	redis_model_set_time(world->redis, NOW_US + LATER_US);
	open_call(scope, "promote");
	say(scope, "%s", scope->owner);
	say(scope, "%d", SMALL_JOBS);
	(void)give(scope, world);
}

const struct reply *
small_call_audit(struct small_scope *scope, struct small_world *world)
{
	open_call(scope, "audit");
	say(scope, "%s", scope->owner);
	return give(scope, world);
}

/* ---- the beginning --------------------------------------------------------------- */

/* The library, with stamps that are drawn: two branches must not meet at one. */
static void
library_make(const char *library, struct buffer *out)
{
	static const char FIRST[] = "#!lua name=warmq\n";
	static const char STEP[] = "1 + now % 997"; /* of stamp_move */
	const char *at = strstr(library, STEP);

	VERIFY(at);
	VERIFY(strncmp(library, FIRST, strlen(FIRST)) == 0);
	(void)buffer_append_text(out, FIRST);
	(void)buffer_append_text(out,
	                         "local drawn = 1 local function draw() "
	                         "drawn = drawn * 16807 % 2147483647 return drawn end\n");
	(void)buffer_append(out, (struct span){ library + strlen(FIRST),
	                                        (size_t)(at - library) - strlen(FIRST) });
	(void)buffer_append_text(out, "draw()");
	(void)buffer_append_text(out, at + strlen(STEP));
	VERIFY(buffer_error(out) == 0);
}

static void
file_read(const char *path, struct buffer *out)
{
	FILE *file = fopen(path, "rb");
	char part[4096];
	size_t len;

	VERIFY(file);
	while ((len = fread(part, 1, sizeof part, file)) > 0)
		(void)buffer_append(out, (struct span){ part, len });
	(void)fclose(file);
	(void)buffer_append_byte(out, '\0');
	VERIFY(buffer_error(out) == 0);
}

struct small_scope *
small_scope_create(enum small_gate gate, const char *library)
{
	struct buffer given;
	struct small_scope *scope = calloc(1, sizeof *scope);
	const char *error;

	VERIFY(scope);
	scope->gate = gate;
	buffer_init(&scope->library, 1 << 20);
	buffer_init(&given, 1 << 20);
	if (library)
		file_read(library, &given);
	library_make(library ? buffer_span(&given).data : functions_library,
	             &scope->library);
	buffer_fini(&given);
	scope->host = lua_host_create();
	error = lua_host_load(scope->host, buffer_span(&scope->library));
	VERIFY(!error);
	return scope;
}

void
small_scope_destroy(struct small_scope *scope)
{
	lua_host_destroy(scope->host);
	buffer_fini(&scope->library);
	free(scope);
}

static void
rule(struct small_scope *scope, struct small_world *world)
{
	const struct reply *reply;

	open_call(scope, "rule");
	say_all(scope, "00000000000000f1 60000");
	reply = give(scope, world);
	(void)snprintf(scope->owner, sizeof scope->owner, "%.*s",
	               (int)reply_text(reply_at(reply, 2)).len,
	               reply_text(reply_at(reply, 2)).data);
}

static void
make_family(struct small_scope *scope, struct small_world *world)
{
	open_call(scope, "admit");
	say(scope, "%s", scope->owner);
	say_all(scope, "0-0 0 0-0 0 F 1 " FAMILY " main a:b 2 30000 10 10 " LANE
	               " _ " FAMILY " route X 1 " FAMILY " bytes");
	say_all(scope, "R 0 E 0 S 0 L 0 D 0 T 0 G 0 P 0");
	VERIFY(reply_is(reply_at(give(scope, world), 0), "OK"));
	open_call(scope, "grant");
	say(scope, "%s", scope->owner);
	say_all(scope, "- 1 " LANE " " FAMILY " " FAMILY " main a:b 0 1");
	say_all(scope, scope->gate == SMALL_OPEN ? "3 0 0 1 9 1 99999999999999"
	                                         : "1 0 1 1 9 1 0");
	say_all(scope, "0 0 0 0 0 0");
	VERIFY(reply_is(reply_at(give(scope, world), 0), "OK"));
}

void
small_world_init(struct small_scope *scope, struct small_world *ret_world)
{
	*ret_world = (struct small_world){ .redis = redis_model_create() };
	redis_model_set_time(ret_world->redis, NOW_US);
	rule(scope, ret_world);
	make_family(scope, ret_world);
	for (uint8_t job = 0; job < SMALL_JOBS; job++) {
		scope->count = 0;
		say_all(scope, "XADD warmq:jobs");
		say(scope, "%u-1", job + 1);
		say_all(scope, "upstream a body {} reply box");
		(void)give(scope, ret_world);
	}
	for (uint8_t who = 0; who < SMALL_WORKERS; who++) {
		ret_world->workers[who] = (struct small_worker){ .c = 1, .q = 1 };
		small_call_hello(scope, ret_world, who);
	}
	open_call(scope, "reap");
	say(scope, "%s", scope->owner);
	say_all(scope, "30000 10000 9");
	(void)give(scope, ret_world); /* it notes the time */
	scope->count = 0;
	say_all(scope, "HDEL warmq:meta reap_hold");
	(void)give(scope, ret_world);
}
