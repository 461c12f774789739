/* Lists. */
#include "tests/sim/redis_command.h"

#include <stdlib.h>

static void
put(struct redis_value *list, size_t at, struct span text)
{
	*(struct redis_text **)redis_vector_insert(&list->items, at) =
		redis_text_create(text);
}

static const struct reply *
take(struct redis_call *call, struct redis_value *list, size_t at)
{
	const struct reply *reply = redis_answer_text(
		call->arena, redis_text_span(*redis_value_text(list, at)));

	redis_value_cut(list, at, 1);
	return reply;
}

/* LPUSH, RPUSH, LPUSHX, RPUSHX. */
static const struct reply *
run_push(struct redis_call *call)
{
	bool left =
		redis_command_is(call, 0, "lpush") || redis_command_is(call, 0, "lpushx");
	bool only_if_there = redis_command_is(call, 0, "lpushx") ||
	                     redis_command_is(call, 0, "rpushx");
	struct redis_value *list;

	if (!redis_command_find(call, call->argv[1], REDIS_LIST, &list))
		return redis_answer_wrong_type(call->arena);
	if (!list && only_if_there)
		return redis_answer_integer(call->arena, 0);
	(void)redis_command_open(call, call->argv[1], REDIS_LIST, &list);
	for (size_t i = 2; i < call->argc; i++)
		put(list, left ? 0 : list->items.count, call->argv[i]);
	return redis_answer_integer(call->arena, (int64_t)list->items.count);
}

static const struct reply *
pop_many(struct redis_call *call, struct redis_value *list, bool left, size_t count)
{
	struct reply *items;
	const struct reply *reply;

	count = MIN(count, list->items.count);
	reply = redis_answer_array(call->arena, count, &items);
	for (size_t i = 0; i < count; i++)
		items[i] = *take(call, list, left ? 0 : list->items.count - 1);
	redis_command_tidy(call, list);
	return reply;
}

static const struct reply *
run_pop(struct redis_call *call)
{
	bool left = redis_command_is(call, 0, "lpop");
	const struct reply *reply;
	struct redis_value *list;
	int64_t count = 1;

	if (call->argc > 3)
		return redis_answer_error(
			call->arena, "ERR wrong number of arguments for '%s' command",
			left ? "lpop" : "rpop");
	if (call->argc == 3 &&
	    (!redis_command_integer(call->argv[2], &count) || count < 0))
		return redis_answer_error(call->arena,
		                          "ERR value is out of range, must be positive");
	if (!redis_command_find(call, call->argv[1], REDIS_LIST, &list))
		return redis_answer_wrong_type(call->arena);
	if (!list)
		return redis_answer_nil(call->arena);
	if (call->argc == 3)
		return pop_many(call, list, left, (size_t)count);
	reply = take(call, list, left ? 0 : list->items.count - 1);
	redis_command_tidy(call, list);
	return reply;
}

static const struct reply *
run_llen(struct redis_call *call)
{
	struct redis_value *list;

	if (!redis_command_find(call, call->argv[1], REDIS_LIST, &list))
		return redis_answer_wrong_type(call->arena);
	return redis_answer_integer(call->arena, list ? (int64_t)list->items.count : 0);
}

/* Finds the item at a Redis index. */
static bool
locate(const struct redis_value *list, int64_t index, size_t *ret_at)
{
	int64_t count = (int64_t)list->items.count;

	if (index < 0)
		index += count;
	if (index < 0 || index >= count)
		return false;
	*ret_at = (size_t)index;
	return true;
}

static const struct reply *
run_lindex(struct redis_call *call)
{
	struct redis_value *list;
	int64_t index;
	size_t at;

	if (!redis_command_find(call, call->argv[1], REDIS_LIST, &list))
		return redis_answer_wrong_type(call->arena);
	if (!list)
		return redis_answer_nil(call->arena);
	if (!redis_command_integer(call->argv[2], &index))
		return redis_answer_not_integer(call->arena);
	if (!locate(list, index, &at))
		return redis_answer_nil(call->arena);
	return redis_answer_text(call->arena,
	                         redis_text_span(*redis_value_text(list, at)));
}

static const struct reply *
run_lset(struct redis_call *call)
{
	struct redis_value *list;
	int64_t index;
	size_t at;

	if (!redis_command_find(call, call->argv[1], REDIS_LIST, &list))
		return redis_answer_wrong_type(call->arena);
	if (!list)
		return redis_answer_error(call->arena, "ERR no such key");
	if (!redis_command_integer(call->argv[2], &index))
		return redis_answer_not_integer(call->arena);
	if (!locate(list, index, &at))
		return redis_answer_error(call->arena, "ERR index out of range");
	free(*redis_value_text(list, at));
	*redis_value_text(list, at) = redis_text_create(call->argv[3]);
	return redis_answer_status(call->arena, "OK");
}

static const struct reply *
run_lrange(struct redis_call *call)
{
	struct redis_value *list;
	struct reply *items;
	const struct reply *reply;
	int64_t start;
	int64_t stop;
	size_t from = 0;
	size_t count = 0;

	if (!redis_command_integer(call->argv[2], &start) ||
	    !redis_command_integer(call->argv[3], &stop))
		return redis_answer_not_integer(call->arena);
	if (!redis_command_find(call, call->argv[1], REDIS_LIST, &list))
		return redis_answer_wrong_type(call->arena);
	if (list)
		(void)redis_command_range(start, stop, list->items.count, &from, &count);
	reply = redis_answer_array(call->arena, count, &items);
	for (size_t i = 0; i < count; i++)
		items[i] = *redis_answer_text(
			call->arena, redis_text_span(*redis_value_text(list, from + i)));
	return reply;
}

static const struct reply *
run_ltrim(struct redis_call *call)
{
	struct redis_value *list;
	int64_t start;
	int64_t stop;
	size_t from = 0;
	size_t count = 0;

	if (!redis_command_integer(call->argv[2], &start) ||
	    !redis_command_integer(call->argv[3], &stop))
		return redis_answer_not_integer(call->arena);
	if (!redis_command_find(call, call->argv[1], REDIS_LIST, &list))
		return redis_answer_wrong_type(call->arena);
	if (!list)
		return redis_answer_status(call->arena, "OK");
	(void)redis_command_range(start, stop, list->items.count, &from, &count);
	redis_value_cut(list, from + count, list->items.count - from - count);
	redis_value_cut(list, 0, from);
	redis_command_tidy(call, list);
	return redis_answer_status(call->arena, "OK");
}

static const struct reply *
run_lrem(struct redis_call *call)
{
	struct redis_value *list;
	int64_t want;
	int64_t removed = 0;

	if (!redis_command_integer(call->argv[2], &want))
		return redis_answer_not_integer(call->arena);
	if (!redis_command_find(call, call->argv[1], REDIS_LIST, &list))
		return redis_answer_wrong_type(call->arena);
	if (!list)
		return redis_answer_integer(call->arena, 0);
	for (size_t step = list->items.count; step > 0; step--) {
		size_t i = want < 0 ? step - 1 : list->items.count - step;

		if (want != 0 && removed == (want < 0 ? -want : want))
			break;
		if (redis_text_compare(*redis_value_text(list, i), call->argv[3]) != 0)
			continue;
		redis_value_cut(list, i, 1);
		removed++;
	}
	redis_command_tidy(call, list);
	return redis_answer_integer(call->arena, removed);
}

static const struct reply *
move(struct redis_call *call, bool from_left, bool to_left)
{
	struct redis_value *from;
	struct redis_value *to;
	const struct reply *reply;

	if (!redis_command_find(call, call->argv[1], REDIS_LIST, &from))
		return redis_answer_wrong_type(call->arena);
	if (!from)
		return redis_answer_nil(call->arena);
	if (!redis_command_open(call, call->argv[2], REDIS_LIST, &to))
		return redis_answer_wrong_type(call->arena);
	reply = take(call, from, from_left ? 0 : from->items.count - 1);
	put(to, to_left ? 0 : to->items.count, reply->text);
	redis_command_tidy(call, from);
	return reply;
}

static const struct reply *
run_rpoplpush(struct redis_call *call)
{
	return move(call, false, true);
}

static const struct reply *
run_lmove(struct redis_call *call)
{
	for (size_t i = 3; i < 5; i++) {
		if (!redis_command_is(call, i, "left") &&
		    !redis_command_is(call, i, "right"))
			return redis_answer_syntax(call->arena);
	}
	return move(call, redis_command_is(call, 3, "left"),
	            redis_command_is(call, 4, "left"));
}

const struct redis_command redis_lists_commands[] = {
	{ "lpush", -3, true, run_push },
	{ "rpush", -3, true, run_push },
	{ "lpushx", -3, true, run_push },
	{ "rpushx", -3, true, run_push },
	{ "lpop", -2, true, run_pop },
	{ "rpop", -2, true, run_pop },
	{ "llen", 2, false, run_llen },
	{ "lindex", 3, false, run_lindex },
	{ "lset", 4, true, run_lset },
	{ "lrange", 4, false, run_lrange },
	{ "ltrim", 4, true, run_ltrim },
	{ "lrem", 4, true, run_lrem },
	{ "rpoplpush", 3, true, run_rpoplpush },
	{ "lmove", 5, true, run_lmove },
	{ 0 },
};
