/* Sets: hashes without values; listings come sorted. */
#include "tests/sim/redis_command.h"

static const struct reply *
run_sadd(struct redis_call *call)
{
	struct redis_value *set;
	int64_t added = 0;

	if (!redis_command_open(call, call->argv[1], REDIS_SET, &set))
		return redis_answer_wrong_type(call->arena);
	for (size_t i = 2; i < call->argc; i++) {
		bool found;
		size_t at = redis_value_seek(set, call->argv[i], &found);

		if (found)
			continue;
		((struct redis_field *)redis_vector_insert(&set->items, at))->name =
			redis_text_create(call->argv[i]);
		added++;
	}
	return redis_answer_integer(call->arena, added);
}

static const struct reply *
run_srem(struct redis_call *call)
{
	struct redis_value *set;
	int64_t removed = 0;

	if (!redis_command_find(call, call->argv[1], REDIS_SET, &set))
		return redis_answer_wrong_type(call->arena);
	if (!set)
		return redis_answer_integer(call->arena, 0);
	for (size_t i = 2; i < call->argc; i++) {
		bool found;
		size_t at = redis_value_seek(set, call->argv[i], &found);

		if (!found)
			continue;
		redis_value_cut(set, at, 1);
		removed++;
	}
	redis_command_tidy(call, set);
	return redis_answer_integer(call->arena, removed);
}

static const struct reply *
run_scard(struct redis_call *call)
{
	struct redis_value *set;

	if (!redis_command_find(call, call->argv[1], REDIS_SET, &set))
		return redis_answer_wrong_type(call->arena);
	return redis_answer_integer(call->arena, set ? (int64_t)set->items.count : 0);
}

static const struct reply *
run_sismember(struct redis_call *call)
{
	struct redis_value *set;
	bool found = false;

	if (!redis_command_find(call, call->argv[1], REDIS_SET, &set))
		return redis_answer_wrong_type(call->arena);
	if (set)
		(void)redis_value_seek(set, call->argv[2], &found);
	return redis_answer_integer(call->arena, found);
}

static const struct reply *
run_smembers(struct redis_call *call)
{
	struct redis_value *set;
	struct reply *items;
	const struct reply *reply;
	size_t count;

	if (!redis_command_find(call, call->argv[1], REDIS_SET, &set))
		return redis_answer_wrong_type(call->arena);
	count = set ? set->items.count : 0;
	reply = redis_answer_array(call->arena, count, &items);
	for (size_t i = 0; i < count; i++)
		items[i] = *redis_answer_text(
			call->arena, redis_text_span(redis_value_field(set, i)->name));
	return reply;
}

const struct redis_command redis_sets_commands[] = {
	{ "sadd", -3, true, run_sadd },         { "srem", -3, true, run_srem },
	{ "scard", 2, false, run_scard },       { "sismember", 3, false, run_sismember },
	{ "smembers", 2, false, run_smembers }, { 0 },
};
