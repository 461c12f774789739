/* Hashes; listings come sorted by field. */
#include "common/text.h"
#include "tests/sim/redis_command.h"

#include <stdio.h>
#include <stdlib.h>

/* Answers whether the field is new. */
static bool
store(struct redis_value *hash, struct span name, struct span text)
{
	bool found;
	size_t at = redis_value_seek(hash, name, &found);
	struct redis_field *field;

	if (found) {
		field = redis_value_field(hash, at);
		free(field->value);
	} else {
		field = redis_vector_insert(&hash->items, at);
		field->name = redis_text_create(name);
	}
	field->value = redis_text_create(text);
	return !found;
}

/* The field's value; NULL if hash or field are missing. */
static const struct redis_text *
fetch(const struct redis_value *hash, struct span name)
{
	bool found;
	size_t at;

	if (!hash)
		return NULL;
	at = redis_value_seek(hash, name, &found);
	return found ? redis_value_field(hash, at)->value : NULL;
}

static const struct reply *
run_hset(struct redis_call *call)
{
	bool old = redis_command_is(call, 0, "hmset");
	struct redis_value *hash;
	int64_t added = 0;

	if (call->argc % 2 != 0)
		return redis_answer_error(
			call->arena, "ERR wrong number of arguments for '%s' command",
			old ? "hmset" : "hset");
	if (!redis_command_open(call, call->argv[1], REDIS_HASH, &hash))
		return redis_answer_wrong_type(call->arena);
	for (size_t i = 2; i < call->argc; i += 2)
		added += store(hash, call->argv[i], call->argv[i + 1]);
	return old ? redis_answer_status(call->arena, "OK")
	           : redis_answer_integer(call->arena, added);
}

static const struct reply *
run_hsetnx(struct redis_call *call)
{
	struct redis_value *hash;

	if (!redis_command_open(call, call->argv[1], REDIS_HASH, &hash))
		return redis_answer_wrong_type(call->arena);
	if (fetch(hash, call->argv[2]))
		return redis_answer_integer(call->arena, 0);
	(void)store(hash, call->argv[2], call->argv[3]);
	return redis_answer_integer(call->arena, 1);
}

static const struct reply *
run_hget(struct redis_call *call)
{
	const struct redis_text *text;
	struct redis_value *hash;

	if (!redis_command_find(call, call->argv[1], REDIS_HASH, &hash))
		return redis_answer_wrong_type(call->arena);
	text = fetch(hash, call->argv[2]);
	return text ? redis_answer_text(call->arena, redis_text_span(text))
	            : redis_answer_nil(call->arena);
}

static const struct reply *
run_hmget(struct redis_call *call)
{
	struct redis_value *hash;
	struct reply *items;
	const struct reply *reply;

	if (!redis_command_find(call, call->argv[1], REDIS_HASH, &hash))
		return redis_answer_wrong_type(call->arena);
	reply = redis_answer_array(call->arena, call->argc - 2, &items);
	for (size_t i = 2; i < call->argc; i++) {
		const struct redis_text *text = fetch(hash, call->argv[i]);

		if (text)
			items[i - 2] =
				*redis_answer_text(call->arena, redis_text_span(text));
	}
	return reply;
}

/* HGETALL, HKEYS, HVALS. */
static const struct reply *
run_hgetall(struct redis_call *call)
{
	bool names = !redis_command_is(call, 0, "hvals");
	bool values = !redis_command_is(call, 0, "hkeys");
	struct redis_value *hash;
	struct reply *items;
	const struct reply *reply;
	size_t count;

	if (!redis_command_find(call, call->argv[1], REDIS_HASH, &hash))
		return redis_answer_wrong_type(call->arena);
	count = hash ? hash->items.count : 0;
	reply = redis_answer_array(call->arena, count * ((size_t)names + values), &items);
	for (size_t i = 0; i < count; i++) {
		const struct redis_field *field = redis_value_field(hash, i);

		if (names)
			*items++ = *redis_answer_text(call->arena,
			                              redis_text_span(field->name));
		if (values)
			*items++ = *redis_answer_text(call->arena,
			                              redis_text_span(field->value));
	}
	return reply;
}

static const struct reply *
run_hdel(struct redis_call *call)
{
	struct redis_value *hash;
	int64_t removed = 0;

	if (!redis_command_find(call, call->argv[1], REDIS_HASH, &hash))
		return redis_answer_wrong_type(call->arena);
	if (!hash)
		return redis_answer_integer(call->arena, 0);
	for (size_t i = 2; i < call->argc; i++) {
		bool found;
		size_t at = redis_value_seek(hash, call->argv[i], &found);

		if (!found)
			continue;
		redis_value_cut(hash, at, 1);
		removed++;
	}
	redis_command_tidy(call, hash);
	return redis_answer_integer(call->arena, removed);
}

static const struct reply *
run_hlen(struct redis_call *call)
{
	struct redis_value *hash;

	if (!redis_command_find(call, call->argv[1], REDIS_HASH, &hash))
		return redis_answer_wrong_type(call->arena);
	return redis_answer_integer(call->arena, hash ? (int64_t)hash->items.count : 0);
}

static const struct reply *
run_hexists(struct redis_call *call)
{
	bool is_length = redis_command_is(call, 0, "hstrlen");
	const struct redis_text *text;
	struct redis_value *hash;

	if (!redis_command_find(call, call->argv[1], REDIS_HASH, &hash))
		return redis_answer_wrong_type(call->arena);
	text = fetch(hash, call->argv[2]);
	if (is_length)
		return redis_answer_integer(call->arena, text ? (int64_t)text->len : 0);
	return redis_answer_integer(call->arena, text != NULL);
}

static const struct reply *
run_hincrby(struct redis_call *call)
{
	const struct redis_text *text;
	struct redis_value *hash;
	int64_t by;
	int64_t now = 0;
	char digits[24];
	int len;

	if (!redis_command_integer(call->argv[3], &by))
		return redis_answer_not_integer(call->arena);
	if (!redis_command_find(call, call->argv[1], REDIS_HASH, &hash))
		return redis_answer_wrong_type(call->arena);
	text = fetch(hash, call->argv[2]);
	if (text && !redis_command_integer(redis_text_span(text), &now))
		return redis_answer_error(call->arena,
		                          "ERR hash value is not an integer");
	if (__builtin_add_overflow(now, by, &now))
		return redis_answer_error(call->arena,
		                          "ERR increment or decrement would overflow");
	(void)redis_command_open(call, call->argv[1], REDIS_HASH, &hash);
	len = snprintf(digits, sizeof digits, "%lld", (long long)now);
	(void)store(hash, call->argv[2], (struct span){ digits, (size_t)len });
	return redis_answer_integer(call->arena, now);
}

/* One page with everything. */
static const struct reply *
run_hscan(struct redis_call *call)
{
	struct span pattern = SPAN("*");
	struct redis_value *hash;
	struct reply *items;
	struct reply *pairs;
	const struct reply *reply;
	size_t count = 0;

	for (size_t i = 3; i + 1 < call->argc; i += 2) {
		if (redis_command_is(call, i, "match"))
			pattern = call->argv[i + 1];
		else if (!redis_command_is(call, i, "count"))
			return redis_answer_syntax(call->arena);
	}
	if (!redis_command_find(call, call->argv[1], REDIS_HASH, &hash))
		return redis_answer_wrong_type(call->arena);
	reply = redis_answer_array(call->arena, 2, &items);
	items[0] = *redis_answer_text(call->arena, SPAN("0"));
	for (size_t i = 0; hash && i < hash->items.count; i++)
		count += text_matches(pattern,
		                      redis_text_span(redis_value_field(hash, i)->name));
	items[1] = *redis_answer_array(call->arena, count * 2, &pairs);
	for (size_t i = 0; hash && i < hash->items.count; i++) {
		const struct redis_field *field = redis_value_field(hash, i);

		if (!text_matches(pattern, redis_text_span(field->name)))
			continue;
		*pairs++ = *redis_answer_text(call->arena, redis_text_span(field->name));
		*pairs++ = *redis_answer_text(call->arena, redis_text_span(field->value));
	}
	return reply;
}

const struct redis_command redis_hashes_commands[] = {
	{ "hget", 3, false, run_hget },
	{ "hmget", -3, false, run_hmget },
	{ "hset", -4, true, run_hset },
	{ "hmset", -4, true, run_hset },
	{ "hsetnx", 4, true, run_hsetnx },
	{ "hdel", -3, true, run_hdel },
	{ "hgetall", 2, false, run_hgetall },
	{ "hkeys", 2, false, run_hgetall },
	{ "hvals", 2, false, run_hgetall },
	{ "hlen", 2, false, run_hlen },
	{ "hexists", 3, false, run_hexists },
	{ "hstrlen", 3, false, run_hexists },
	{ "hincrby", 4, true, run_hincrby },
	{ "hscan", -3, false, run_hscan },
	{ 0 },
};
