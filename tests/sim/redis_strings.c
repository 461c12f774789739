/* Strings: whole values, counters, lifetimes given with SET. */
#include "tests/sim/redis_command.h"

#include <stdio.h>
#include <stdlib.h>

static const struct reply *
run_get(struct redis_call *call)
{
	struct redis_value *value;

	if (!redis_command_find(call, call->argv[1], REDIS_STRING, &value))
		return redis_answer_wrong_type(call->arena);
	if (!value)
		return redis_answer_nil(call->arena);
	return redis_answer_text(call->arena, redis_text_span(value->string));
}

static const struct reply *
run_getdel(struct redis_call *call)
{
	const struct reply *reply = run_get(call);
	struct redis_value *value;

	if (reply->kind == REPLY_TEXT) {
		(void)redis_command_find(call, call->argv[1], REDIS_STRING, &value);
		redis_command_delete(call, value);
	}
	return reply;
}

static void
store(struct redis_call *call, struct span key, struct span bytes, uint64_t expires_ms)
{
	struct redis_value *value;

	(void)redis_command_find(call, key, REDIS_TYPE_COUNT, &value);
	if (value && value->type != REDIS_STRING)
		redis_command_delete(call, value);
	(void)redis_command_open(call, key, REDIS_STRING, &value);
	free(value->string);
	value->string = redis_text_create(bytes);
	value->expires_ms = expires_ms;
}

struct set_options {
	bool if_missing;
	bool if_there;
	bool get;
	bool keep_ttl;
	uint64_t expires_ms;
};

/* EX, PX, EXAT, PXAT with their number; NULL, or the error. */
static const struct reply *
read_lifetime(struct redis_call *call, size_t i, struct set_options *options)
{
	bool in_ms = redis_command_is(call, i, "px") || redis_command_is(call, i, "pxat");
	bool absolute =
		redis_command_is(call, i, "exat") || redis_command_is(call, i, "pxat");
	int64_t when;

	if (!redis_command_integer(call->argv[i + 1], &when))
		return redis_answer_not_integer(call->arena);
	if (when <= 0 || when > INT64_MAX / 2000)
		return redis_answer_error(call->arena,
		                          "ERR invalid expire time in 'set' command");
	when = in_ms ? when : when * 1000;
	options->expires_ms =
		(uint64_t)when + (absolute ? 0 : redis_command_now_ms(call));
	return NULL;
}

static bool
is_lifetime(const struct redis_call *call, size_t i)
{
	return redis_command_is(call, i, "ex") || redis_command_is(call, i, "px") ||
	       redis_command_is(call, i, "exat") || redis_command_is(call, i, "pxat");
}

static const struct reply *
read_options(struct redis_call *call, struct set_options *options)
{
	for (size_t i = 3; i < call->argc; i++) {
		if (redis_command_is(call, i, "nx") && !options->if_there) {
			options->if_missing = true;
		} else if (redis_command_is(call, i, "xx") && !options->if_missing) {
			options->if_there = true;
		} else if (redis_command_is(call, i, "get")) {
			options->get = true;
		} else if (redis_command_is(call, i, "keepttl") && !options->expires_ms) {
			options->keep_ttl = true;
		} else if (is_lifetime(call, i) && i + 1 < call->argc &&
		           !options->expires_ms && !options->keep_ttl) {
			const struct reply *error = read_lifetime(call, i, options);

			if (error)
				return error;
			i++;
		} else {
			return redis_answer_syntax(call->arena);
		}
	}
	return NULL;
}

static const struct reply *
run_set(struct redis_call *call)
{
	struct set_options options = { 0 };
	const struct reply *reply = read_options(call, &options);
	struct redis_value *value;
	bool is_string;

	if (reply)
		return reply;
	is_string = redis_command_find(call, call->argv[1], REDIS_STRING, &value);
	if (options.get && !is_string)
		return redis_answer_wrong_type(call->arena);
	(void)redis_command_find(call, call->argv[1], REDIS_TYPE_COUNT, &value);
	if (options.get)
		reply = run_get(call);
	if (value ? options.if_missing : options.if_there)
		return reply ? reply : redis_answer_nil(call->arena);
	if (options.keep_ttl && value)
		options.expires_ms = value->expires_ms;
	store(call, call->argv[1], call->argv[2], options.expires_ms);
	return reply ? reply : redis_answer_status(call->arena, "OK");
}

static const struct reply *
run_setex(struct redis_call *call)
{
	bool in_ms = redis_command_is(call, 0, "psetex");
	int64_t lifetime;

	if (!redis_command_integer(call->argv[2], &lifetime))
		return redis_answer_not_integer(call->arena);
	if (lifetime <= 0 || lifetime > INT64_MAX / 2000)
		return redis_answer_error(call->arena,
		                          "ERR invalid expire time in '%s' command",
		                          in_ms ? "psetex" : "setex");
	store(call, call->argv[1], call->argv[3],
	      redis_command_now_ms(call) + (uint64_t)lifetime * (in_ms ? 1 : 1000));
	return redis_answer_status(call->arena, "OK");
}

static const struct reply *
run_setnx(struct redis_call *call)
{
	struct redis_value *value;

	(void)redis_command_find(call, call->argv[1], REDIS_TYPE_COUNT, &value);
	if (value)
		return redis_answer_integer(call->arena, 0);
	store(call, call->argv[1], call->argv[2], 0);
	return redis_answer_integer(call->arena, 1);
}

static const struct reply *
run_mget(struct redis_call *call)
{
	struct reply *items;
	const struct reply *reply =
		redis_answer_array(call->arena, call->argc - 1, &items);
	struct redis_value *value;

	for (size_t i = 1; i < call->argc; i++) {
		if (!redis_command_find(call, call->argv[i], REDIS_STRING, &value) ||
		    !value)
			continue;
		items[i - 1] =
			*redis_answer_text(call->arena, redis_text_span(value->string));
	}
	return reply;
}

static const struct reply *
run_strlen(struct redis_call *call)
{
	struct redis_value *value;

	if (!redis_command_find(call, call->argv[1], REDIS_STRING, &value))
		return redis_answer_wrong_type(call->arena);
	return redis_answer_integer(call->arena, value ? (int64_t)value->string->len : 0);
}

static const struct reply *
run_append(struct redis_call *call)
{
	struct span more = call->argv[2];
	struct redis_value *value;
	struct redis_text *text;
	size_t len;

	if (!redis_command_open(call, call->argv[1], REDIS_STRING, &value))
		return redis_answer_wrong_type(call->arena);
	len = value->string ? value->string->len : 0;
	text = realloc(value->string, sizeof *text + len + more.len + 1);
	VERIFY(text);
	if (more.len > 0)
		memcpy(text->data + len, more.data, more.len);
	text->len = len + more.len;
	text->data[text->len] = '\0';
	value->string = text;
	return redis_answer_integer(call->arena, (int64_t)text->len);
}

static const struct reply *
run_getrange(struct redis_call *call)
{
	struct redis_value *value;
	int64_t start;
	int64_t stop;
	size_t from;
	size_t count;

	if (!redis_command_integer(call->argv[2], &start) ||
	    !redis_command_integer(call->argv[3], &stop))
		return redis_answer_not_integer(call->arena);
	if (!redis_command_find(call, call->argv[1], REDIS_STRING, &value))
		return redis_answer_wrong_type(call->arena);
	if (!value || (start < 0 && stop < 0 && start > stop))
		return redis_answer_text(call->arena, SPAN(""));
	if (stop < 0 && stop + (int64_t)value->string->len < 0)
		stop = 0; /* Redis's own clamp: the end never comes before the first byte
		           */
	if (!redis_command_range(start, stop, value->string->len, &from, &count))
		return redis_answer_text(call->arena, SPAN(""));
	return redis_answer_text(call->arena,
	                         (struct span){ value->string->data + from, count });
}

/* INCR, DECR, INCRBY, DECRBY. */
static const struct reply *
run_incr(struct redis_call *call)
{
	bool down =
		redis_command_is(call, 0, "decr") || redis_command_is(call, 0, "decrby");
	struct redis_value *value;
	int64_t by = 1;
	int64_t now = 0;
	char text[40];
	size_t len;

	if (call->argc > 2 && !redis_command_integer(call->argv[2], &by))
		return redis_answer_not_integer(call->arena);
	if (!redis_command_find(call, call->argv[1], REDIS_STRING, &value))
		return redis_answer_wrong_type(call->arena);
	if (value && !redis_command_integer(redis_text_span(value->string), &now))
		return redis_answer_not_integer(call->arena);
	if (__builtin_add_overflow(now, down ? -by : by, &now))
		return redis_answer_error(call->arena,
		                          "ERR increment or decrement would overflow");
	len = (size_t)snprintf(text, sizeof text, "%lld", (long long)now);
	store(call, call->argv[1], (struct span){ text, len },
	      value ? value->expires_ms : 0);
	return redis_answer_integer(call->arena, now);
}

const struct redis_command redis_strings_commands[] = {
	{ "get", 2, false, run_get },
	{ "getdel", 2, true, run_getdel },
	{ "set", -3, true, run_set },
	{ "setex", 4, true, run_setex },
	{ "psetex", 4, true, run_setex },
	{ "setnx", 3, true, run_setnx },
	{ "mget", -2, false, run_mget },
	{ "strlen", 2, false, run_strlen },
	{ "append", 3, true, run_append },
	{ "getrange", 4, false, run_getrange },
	{ "incr", 2, true, run_incr },
	{ "decr", 2, true, run_incr },
	{ "incrby", 3, true, run_incr },
	{ "decrby", 3, true, run_incr },
	{ 0 },
};
