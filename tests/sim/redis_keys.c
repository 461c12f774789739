/* Keys of any type: existence, deletion, lifetimes, listings. */
#include "common/text.h"
#include "tests/sim/redis_command.h"

static const struct reply *
run_del(struct redis_call *call)
{
	struct redis_value *value;
	int64_t count = 0;

	for (size_t i = 1; i < call->argc; i++) {
		(void)redis_command_find(call, call->argv[i], REDIS_TYPE_COUNT, &value);
		if (!value)
			continue;
		redis_command_delete(call, value);
		count++;
	}
	return redis_answer_integer(call->arena, count);
}

static const struct reply *
run_exists(struct redis_call *call)
{
	struct redis_value *value;
	int64_t count = 0;

	for (size_t i = 1; i < call->argc; i++) {
		(void)redis_command_find(call, call->argv[i], REDIS_TYPE_COUNT, &value);
		count += value != NULL;
	}
	return redis_answer_integer(call->arena, count);
}

static const struct reply *
run_type(struct redis_call *call)
{
	static const char *const NAMES[REDIS_TYPE_COUNT] = {
		"string", "list", "hash", "set", "zset", "stream",
	};
	struct redis_value *value;

	(void)redis_command_find(call, call->argv[1], REDIS_TYPE_COUNT, &value);
	return redis_answer_status(call->arena, value ? NAMES[value->type] : "none");
}

struct expire_options {
	bool nx, xx, gt, lt;
};

/* NULL, or the error. */
static const struct reply *
read_options(struct redis_call *call, struct expire_options *options)
{
	for (size_t i = 3; i < call->argc; i++) {
		if (redis_command_is(call, i, "nx"))
			options->nx = true;
		else if (redis_command_is(call, i, "xx"))
			options->xx = true;
		else if (redis_command_is(call, i, "gt"))
			options->gt = true;
		else if (redis_command_is(call, i, "lt"))
			options->lt = true;
		else
			return redis_answer_error(
				call->arena, "ERR Unsupported option %.*s",
				(int)call->argv[i].len, call->argv[i].data);
	}
	if (options->nx && (options->xx || options->gt || options->lt))
		return redis_answer_error(call->arena,
		                          "ERR NX and XX, GT or LT options at "
		                          "the same time are not compatible");
	if (options->gt && options->lt)
		return redis_answer_error(call->arena,
		                          "ERR GT and LT options at the same "
		                          "time are not compatible");
	return NULL;
}

/* Whether the options let `when` replace the lifetime there is. */
static bool
may_expire(const struct redis_value *value, const struct expire_options *options,
           int64_t when)
{
	uint64_t now = value->expires_ms ? value->expires_ms : UINT64_MAX;

	if (options->nx && value->expires_ms != 0)
		return false;
	if (options->xx && value->expires_ms == 0)
		return false;
	if (options->gt && (when < 0 || (uint64_t)when <= now))
		return false;
	return !(options->lt && when >= 0 && (uint64_t)when >= now);
}

/* EXPIRE, PEXPIRE, EXPIREAT, PEXPIREAT. */
static const struct reply *
run_expire(struct redis_call *call)
{
	bool in_ms = redis_command_is(call, 0, "pexpire") ||
	             redis_command_is(call, 0, "pexpireat");
	bool absolute = redis_command_is(call, 0, "expireat") ||
	                redis_command_is(call, 0, "pexpireat");
	struct expire_options options = { 0 };
	struct redis_value *value;
	const struct reply *error = read_options(call, &options);
	int64_t when;

	if (error)
		return error;
	if (!redis_command_integer(call->argv[2], &when))
		return redis_answer_not_integer(call->arena);
	if (when > INT64_MAX / 2000 || when < INT64_MIN / 2000)
		return redis_answer_error(call->arena,
		                          "ERR invalid expire time in '%.*s' command",
		                          (int)call->argv[0].len, call->argv[0].data);
	when = in_ms ? when : when * 1000;
	when += absolute ? 0 : (int64_t)redis_command_now_ms(call);
	(void)redis_command_find(call, call->argv[1], REDIS_TYPE_COUNT, &value);
	if (!value || !may_expire(value, &options, when))
		return redis_answer_integer(call->arena, 0);
	if (when <= (int64_t)redis_command_now_ms(call))
		redis_command_delete(call, value);
	else
		value->expires_ms = (uint64_t)when;
	return redis_answer_integer(call->arena, 1);
}

static const struct reply *
run_ttl(struct redis_call *call)
{
	struct redis_value *value;
	uint64_t left;

	(void)redis_command_find(call, call->argv[1], REDIS_TYPE_COUNT, &value);
	if (!value)
		return redis_answer_integer(call->arena, -2);
	if (value->expires_ms == 0)
		return redis_answer_integer(call->arena, -1);
	if (redis_command_is(call, 0, "pexpiretime"))
		return redis_answer_integer(call->arena, (int64_t)value->expires_ms);
	left = value->expires_ms - redis_command_now_ms(call);
	if (redis_command_is(call, 0, "ttl"))
		left = (left + 500) / 1000;
	return redis_answer_integer(call->arena, (int64_t)left);
}

static const struct reply *
run_persist(struct redis_call *call)
{
	struct redis_value *value;
	bool had;

	(void)redis_command_find(call, call->argv[1], REDIS_TYPE_COUNT, &value);
	had = value && value->expires_ms != 0;
	if (had)
		value->expires_ms = 0;
	return redis_answer_integer(call->arena, had);
}

/* All keys that match, as one flat array. */
static const struct reply *
list_keys(struct redis_call *call, struct span pattern)
{
	const struct redis_value *value;
	struct reply *items;
	const struct reply *reply;
	size_t count = 0;
	size_t cursor = 0;

	while ((value = redis_model_next(call->model, &cursor)) != NULL)
		count += text_matches(pattern, redis_text_span(value->key));
	reply = redis_answer_array(call->arena, count, &items);
	cursor = 0;
	count = 0;
	while ((value = redis_model_next(call->model, &cursor)) != NULL) {
		struct span key = redis_text_span(value->key);

		if (text_matches(pattern, key))
			items[count++] = *redis_answer_text(call->arena, key);
	}
	return reply;
}

static const struct reply *
run_keys(struct redis_call *call)
{
	return list_keys(call, call->argv[1]);
}

/* One page with everything: legal, since COUNT is only a hint. */
static const struct reply *
run_scan(struct redis_call *call)
{
	struct span pattern = SPAN("*");
	struct reply *items;
	const struct reply *reply;

	for (size_t i = 2; i + 1 < call->argc; i += 2) {
		if (redis_command_is(call, i, "match"))
			pattern = call->argv[i + 1];
		else if (!redis_command_is(call, i, "count"))
			return redis_answer_syntax(call->arena);
	}
	reply = redis_answer_array(call->arena, 2, &items);
	items[0] = *redis_answer_text(call->arena, SPAN("0"));
	items[1] = *list_keys(call, pattern);
	return reply;
}

static const struct reply *
run_dbsize(struct redis_call *call)
{
	size_t cursor = 0;
	int64_t count = 0;

	while (redis_model_next(call->model, &cursor) != NULL)
		count++;
	return redis_answer_integer(call->arena, count);
}

const struct redis_command redis_keys_commands[] = {
	{ "del", -2, true, run_del },         { "unlink", -2, true, run_del },
	{ "exists", -2, false, run_exists },  { "type", 2, false, run_type },
	{ "expire", -3, true, run_expire },   { "pexpire", -3, true, run_expire },
	{ "expireat", -3, true, run_expire }, { "pexpireat", -3, true, run_expire },
	{ "ttl", 2, false, run_ttl },         { "pttl", 2, false, run_ttl },
	{ "pexpiretime", 2, false, run_ttl }, { "persist", 2, true, run_persist },
	{ "keys", 2, false, run_keys },       { "scan", -2, false, run_scan },
	{ "dbsize", 1, false, run_dbsize },   { 0 },
};
