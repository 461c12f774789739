#include "scheduler/greet.h"

#include "common/codec/protocol.h"
#include "common/info.h"
#include "common/text.h"
#include "scheduler/functions/functions_library.h"

#include <stdio.h>

#define VERSION_MAJOR_MIN 7

/* A process that did not run when the answer came takes it for a slow one: so several are
 * asked for, until one was quick. */
#define SAMPLES  5
#define QUICK_MS 1

static void
finish(struct greet *greet, int error, const char *message)
{
	greet_done_fn *fn = greet->fn;

	greet->fn = NULL;
	if (fn)
		fn(error, message, greet->data);
}

static void
put(struct greet *greet, const struct span *words, size_t count, redis_reply_fn *fn)
{
	int err = redis_command(greet->redis, words, count, fn, greet);

	if (err < 0)
		finish(greet, err, error_text(err));
}

/* The answer of a command that must be answered, or NULL after finishing. */
static const struct reply *
check(struct greet *greet, const struct reply *reply, int error)
{
	if (!greet->fn)
		return NULL;
	if (!reply) {
		finish(greet, error, error_text(error));
		return NULL;
	}
	return reply;
}

/* ---- the clock ------------------------------------------------------------------- */

static uint64_t
monotonic_ms(void)
{
	return uv_hrtime() / 1000000;
}

static void ask_time(struct greet *greet);

static void
on_time(struct redis *redis, const struct reply *reply, int error, void *data)
{
	struct greet *greet = data;
	uint64_t now_ms = monotonic_ms();
	int64_t seconds, micros;

	(void)redis;
	reply = check(greet, reply, error);
	if (!reply)
		return;
	seconds = reply_integer(reply_at(reply, 0), -1);
	micros = reply_integer(reply_at(reply, 1), -1);
	if (seconds < 0 || micros < 0) {
		finish(greet, ERR_MALFORMED, "Redis did not tell the time.");
		return;
	}
	offset_sample(&greet->offset, greet->sent_ms, now_ms,
	              (uint64_t)(seconds * 1000 + micros / 1000));
	if (--greet->samples > 0 && now_ms - greet->sent_ms > QUICK_MS)
		ask_time(greet);
	else
		finish(greet, 0, "");
}

static void
ask_time(struct greet *greet)
{
	const struct span words[] = { SPAN("TIME") };

	greet->sent_ms = monotonic_ms();
	put(greet, words, ARRAY_SIZE(words), on_time);
}

void
greet_measure(struct greet *greet, greet_done_fn *fn, void *data)
{
	if (greet->fn)
		return; /* under way */
	greet->fn = fn;
	greet->data = data;
	greet->samples = SAMPLES;
	ask_time(greet);
}

/* ---- the library ----------------------------------------------------------------- */

/* Refusals that pass: Redis is full, its disk is, it is a replica just now, … */
static bool
is_passing(struct span refusal)
{
	static const char *const words[] = { "OOM",      "MISCONF",    "READONLY",
		                             "BUSY",     "NOREPLICAS", "LOADING",
		                             "TRYAGAIN", "MASTERDOWN", "CLUSTERDOWN" };
	struct span word;

	(void)protocol_cut(&refusal, ' ', &word);
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (span_equals(word, span_from(words[i])))
			return true;
	return false;
}

static const char *
refusal_advice(struct span refusal)
{
	if (is_passing(refusal))
		return "Say `warmq doctor`; it is tried again.";
	if (memmem(refusal.data, refusal.len, "already exists", 14))
		return "Another library of this Redis has a function of that name: "
		       "FUNCTION LIST says which, FUNCTION DELETE removes it.";
	return "The user needs the right to FUNCTION LOAD (see OPERATIONS.md).";
}

/* Whoever ended for a refusal that passes would be missed when it has passed. */
static void
refuse_library(struct greet *greet, struct span refusal)
{

	(void)snprintf(greet->message, sizeof(greet->message),
	               "Redis does not load the functions: %.*s %s",
	               (int)MIN(refusal.len, 160), refusal.data, refusal_advice(refusal));
	finish(greet, is_passing(refusal) ? ERR_AGAIN : ERR_UNSUPPORTED, greet->message);
}

static void
on_loaded(struct redis *redis, const struct reply *reply, int error, void *data)
{
	struct greet *greet = data;

	(void)redis;
	reply = check(greet, reply, error);
	if (!reply)
		return;
	if (reply->kind == REPLY_ERROR)
		refuse_library(greet, reply->text);
	else
		ask_time(greet);
}

static void
load_library(struct greet *greet)
{
	const struct span words[] = {
		SPAN("FUNCTION"),
		SPAN("LOAD"),
		SPAN("REPLACE"),
		{ functions_library, functions_library_size },
	};

	put(greet, words, ARRAY_SIZE(words), on_loaded);
}

/* "0.1.0-1f2e3d4c" as 0*10^6 + 1*10^3 + 0; the digest is not ordered. */
static uint64_t
version_number(struct span text)
{
	struct span digits, part;
	uint64_t number = 0, value;

	if (!protocol_cut(&text, '-', &digits))
		return 0;
	for (int i = 0; i < 3; i++) {
		if (!protocol_cut(&digits, '.', &part) ||
		    text_parse_unsigned(part, 999, &value) < 0)
			return 0;
		number = number * 1000 + value;
	}
	return number;
}

static void
on_version(struct redis *redis, const struct reply *reply, int error, void *data)
{
	struct span ours = span_from(functions_library_version), loaded;
	struct greet *greet = data;

	(void)redis;
	reply = check(greet, reply, error);
	if (!reply)
		return;
	loaded = reply_text(reply_at(reply, 2));
	if (span_equals(loaded, ours) ||
	    (loaded.len > 0 && version_number(loaded) > version_number(ours)))
		ask_time(greet);
	else
		load_library(greet);
}

static void
ask_version(struct greet *greet)
{
	char key[PROTOCOL_NAMESPACE_MAX + 8];
	const struct span words[] = {
		SPAN("FCALL"), SPAN("warmq_version"),
		SPAN("1"),     { key, greet->ns.len + 5 },
		SPAN("1"),
	};

	memcpy(key, greet->ns.data, greet->ns.len);
	memcpy(key + greet->ns.len, ":meta", 5);
	put(greet, words, ARRAY_SIZE(words), on_version);
}

/* ---- the server ------------------------------------------------------------------ */

static void
on_policy(struct redis *redis, const struct reply *reply, int error, void *data)
{
	struct greet *greet = data;
	struct span policy;

	(void)redis;
	reply = check(greet, reply, error);
	if (!reply)
		return;
	policy = reply_text(reply_at(reply, 1));
	/* Whoever may not ask is taken at his word: managed servers hide CONFIG. */
	if (policy.len > 0 && !span_equals(policy, SPAN("noeviction"))) {
		(void)snprintf(
			greet->message, sizeof(greet->message),
			"Redis evicts keys when it is full (maxmemory-policy %.*s): "
			"it would throw jobs away. Set it with: redis-cli CONFIG SET "
			"maxmemory-policy noeviction",
			(int)MIN(policy.len, 40), policy.data);
		finish(greet, ERR_UNSUPPORTED, greet->message);
		return;
	}
	ask_version(greet);
}

static void
on_info(struct redis *redis, const struct reply *reply, int error, void *data)
{
	const struct span words[] = { SPAN("CONFIG"), SPAN("GET"),
		                      SPAN("maxmemory-policy") };
	struct greet *greet = data;
	struct span version;

	(void)redis;
	reply = check(greet, reply, error);
	if (!reply)
		return;
	version = info_find(reply_text(reply), "redis_version");
	if (version.len > 0 &&
	    info_number(reply_text(reply), "redis_version") < VERSION_MAJOR_MIN) {
		(void)snprintf(
			greet->message, sizeof(greet->message),
			"This is Redis %.*s. WarmQ needs Redis 7.0 or Valkey 7.2 or "
			"later, for its functions.",
			(int)MIN(version.len, 40), version.data);
		finish(greet, ERR_UNSUPPORTED, greet->message);
		return;
	}
	put(greet, words, ARRAY_SIZE(words), on_policy);
}

void
greet_start(struct greet *greet, struct redis *redis, struct span ns, greet_done_fn *fn,
            void *data)
{
	const struct span words[] = { SPAN("INFO"), SPAN("server") };

	*greet = (struct greet){ .redis = redis, .ns = ns, .fn = fn, .data = data };
	greet->samples = SAMPLES;
	put(greet, words, ARRAY_SIZE(words), on_info);
}
