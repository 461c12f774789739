#include "tests/sim/oracle.h"

#include "common/buffer.h"
#include "tests/sim/oracle_book.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void
oracle_fail(struct oracle *oracle, const char *rule, const char *format, ...)
{
	char text[400];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof text, format, args);
	va_end(args);
	trace_line(oracle->trace, "BROKEN %s: %s", rule, text);
	if (oracle->failed)
		return;
	oracle->failed = true;
	(void)snprintf(oracle->failure, sizeof oracle->failure, "%s: %s", rule, text);
}

/* ---- what is heard from Redis ---------------------------------------------------- */

/* The rest of `key` behind "warmq:<prefix>". */
static bool
strip(struct span key, const char *prefix, struct span *ret_rest)
{
	size_t len = strlen(prefix);

	if (key.len < len || memcmp(key.data, prefix, len) != 0)
		return false;
	*ret_rest = (struct span){ key.data + len, key.len - len };
	return true;
}

static void
hear_hset(struct oracle *oracle, const struct span *argv, size_t argc)
{
	struct span name;

	for (size_t i = 2; i + 1 < argc; i += 2) {
		if (strip(argv[1], "warmq:lease:", &name))
			oracle_lease_set(oracle, name, argv[i], argv[i + 1]);
		else if (span_equals(argv[1], SPAN("warmq:lanes")))
			oracle_record_lane(oracle, argv[i], argv[i + 1]);
		else if (span_equals(argv[1], SPAN("warmq:families")))
			oracle_record_family(oracle, argv[i], argv[i + 1]);
		else if (strip(argv[1], "warmq:budget:", &name))
			oracle_budget_field(oracle, name, argv[i], argv[i + 1]);
	}
}

static void
hear_hdel(struct oracle *oracle, const struct span *argv, size_t argc)
{
	struct span name;

	for (size_t i = 2; i < argc; i++) {
		if (strip(argv[1], "warmq:lease:", &name))
			oracle_lease_gone(oracle, name, argv[i]);
		else if (span_equals(argv[1], SPAN("warmq:lanes")))
			oracle_record_lane(oracle, argv[i], (struct span){ 0 });
	}
}

static void
hear_del(struct oracle *oracle, const struct span *argv, size_t argc)
{
	struct span name;

	for (size_t i = 1; i < argc; i++) {
		if (strip(argv[i], "warmq:lease:", &name))
			oracle_lease_table_gone(oracle, name);
	}
}

/* A result pushed to a list says itself whose it is. */
static void
hear_pushed(struct oracle *oracle, struct span text)
{
	static const char KEY[] = "\"id\":\"";
	const char *at = memmem(text.data, text.len, KEY, sizeof KEY - 1);
	const char *close;

	if (!at)
		return;
	at += sizeof KEY - 1;
	close = memchr(at, '"', text.len - (size_t)(at - text.data));
	if (close)
		oracle_job_result(oracle, (struct span){ at, (size_t)(close - at) });
}

static void
hear_zadd(struct oracle *oracle, const struct span *argv, size_t argc)
{
	for (size_t i = 2; i + 1 < argc; i += 2) {
		if (span_equals(argv[1], SPAN("warmq:dead")))
			oracle_job_dead(oracle, argv[i + 1]);
		else if (span_equals(argv[1], SPAN("warmq:dying")))
			oracle_session_reaped(oracle, argv[i + 1]);
	}
}

static void
print_reply(const struct reply *reply, struct buffer *out)
{
	switch (reply->kind) {
	case REPLY_NIL:
		buffer_append_byte(out, '-');
		break;
	case REPLY_INTEGER:
		buffer_append_signed(out, reply->integer);
		break;
	case REPLY_TEXT:
	case REPLY_ERROR:
		buffer_append_escaped(out, reply->text);
		break;
	case REPLY_ARRAY:
		buffer_append_byte(out, '[');
		for (size_t i = 0; i < reply->count; i++) {
			buffer_append_text(out, i ? " " : "");
			print_reply(&reply->items[i], out);
		}
		buffer_append_byte(out, ']');
		break;
	}
}

/* For a reader of the trace: the whole call and its answer. */
static void
print_call(struct oracle *oracle, const struct span *argv, size_t argc,
           const struct reply *reply)
{
	struct buffer text = BUFFER_INIT(1 << 20);

	if (!oracle->trace->out || span_equals(argv[0], SPAN("XREAD")))
		return;
	buffer_append_text(&text, "redis:");
	for (size_t i = 0; i < argc; i++) {
		struct span word = { argv[i].data, MIN(argv[i].len, 200) };

		buffer_append_byte(&text, ' ');
		if (i != 2 && i != 3 && i != 4)
			buffer_append_escaped(&text, word);
		if (word.len == 0)
			buffer_append_text(&text, "''");
	}
	buffer_append_text(&text, " -> ");
	print_reply(reply, &text);
	trace_detail(oracle->trace, buffer_span(&text));
	buffer_fini(&text);
}

/* The same for one write inside of it. */
static void
print_write(struct oracle *oracle, const struct span *argv, size_t argc)
{
	struct buffer text = BUFFER_INIT(1 << 20);

	if (!oracle->trace->out)
		return;
	buffer_append_text(&text, "   ");
	for (size_t i = 0; i < argc; i++) {
		buffer_append_byte(&text, ' ');
		buffer_append_escaped(
			&text, (struct span){ argv[i].data, MIN(argv[i].len, 200) });
	}
	trace_detail(oracle->trace, buffer_span(&text));
	buffer_fini(&text);
}

static void
on_inside(void *context, const struct span *argv, size_t argc, const struct reply *reply,
          bool inside)
{
	struct oracle *oracle = context;
	struct span rest;

	if (!inside || reply->kind == REPLY_ERROR)
		return;
	if (redis_model_writes(argv[0])) {
		oracle->writes++;
		print_write(oracle, argv, argc);
	}
	if (span_equals(argv[0], SPAN("HSET")))
		hear_hset(oracle, argv, argc);
	else if (span_equals(argv[0], SPAN("HDEL")))
		hear_hdel(oracle, argv, argc);
	else if (span_equals(argv[0], SPAN("DEL")) ||
	         span_equals(argv[0], SPAN("UNLINK")))
		hear_del(oracle, argv, argc);
	else if (span_equals(argv[0], SPAN("ZADD")))
		hear_zadd(oracle, argv, argc);
	else if (span_equals(argv[0], SPAN("SET")) &&
	         strip(argv[1], "warmq:result:", &rest))
		oracle_job_result(oracle, rest);
	else if (span_equals(argv[0], SPAN("RPUSH")) &&
	         strip(argv[1], "warmq:reply:", &rest)) {
		for (size_t i = 2; i < argc; i++)
			hear_pushed(oracle, argv[i]);
	}
}

static void
on_before(void *context, const struct span *argv, size_t argc)
{
	struct oracle *oracle = context;
	struct span name;

	oracle->calls++;
	oracle->argv = argv;
	oracle->argc = argc;
	oracle->function[0] = '\0';
	oracle->writes = 0;
	oracle->started_count = 0;
	oracle->settled_count = 0;
	oracle->ended_count = 0;
	oracle->freed_count = 0;
	if (!span_equals(argv[0], SPAN("FCALL")) || argc < 5 ||
	    !strip(argv[1], "warmq_", &name))
		return;
	(void)snprintf(oracle->function, sizeof oracle->function, "%.*s", (int)name.len,
	               name.data);
	oracle_session_before(oracle);
}

static void
on_after(void *context, const struct span *argv, size_t argc, const struct reply *reply)
{
	struct oracle *oracle = context;

	print_call(oracle, argv, argc, reply);
	if (span_equals(argv[0], SPAN("XADD")) && argc > 3 &&
	    span_equals(argv[1], SPAN("warmq:jobs")) && reply->kind == REPLY_TEXT &&
	    !span_equals(argv[3], SPAN("put_prefix")))
		oracle_job_enqueued(oracle, reply->text);
	if (oracle->function[0] == '\0')
		return;
	if (reply->kind == REPLY_ERROR)
		oracle_fail(oracle, "function", "warmq_%s answers %.*s", oracle->function,
		            (int)reply->text.len, reply->text.data);
	oracle_session_after(oracle, reply);
	oracle_job_after(oracle);
}

void
oracle_init(struct oracle *oracle, const struct agenda *agenda, struct trace *trace,
            struct server *server, struct site *site, const struct weather *weather)
{
	*oracle = (struct oracle){
		.agenda = agenda,
		.trace = trace,
		.server = server,
		.site = site,
		.weather = weather,
		.lease_ms = 30000,
	};
	oracle_book_init(oracle);
	server->watch.before = on_before;
	server->watch.inside = on_inside;
	server->watch.after = on_after;
	server->watch.context = oracle;
	oracle_cache_attach(oracle);
}

void
oracle_fini(struct oracle *oracle)
{
	oracle_book_fini(oracle);
}

void
oracle_clock_stepped(struct oracle *oracle)
{
	oracle->clock_stepped = true;
}

void
oracle_roll_back(struct oracle *oracle, uint64_t kept_us)
{
	bool lost_something = kept_us < oracle->server->died_us;

	oracle->rolled_back = oracle->rolled_back || lost_something;
	for (uint32_t i = 0; i < oracle->jobs_count; i++) {
		struct oracle_job *job = &oracle->jobs[i];

		job->lease = ORACLE_NONE;
		if (job->added_us > kept_us) {
			job->state = ORACLE_JOB_LOST;
			continue;
		}
		if (job->state == ORACLE_JOB_ENDED && job->ended_us > kept_us) {
			job->state = ORACLE_JOB_ALIVE;
			job->results = 0;
			job->dead = false;
		}
	}
	oracle_restore_all(oracle);
}
