#include "tests/sim/redis_model.h"

#include "tests/sim/redis_command.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <strings.h>

#define WORDS_MAX 64 /* of redis_model_text */

struct redis_model {
	struct redis_vector keys; /* of struct redis_value *, by key */
	struct redis_arena arena;
	uint64_t now_us;
	redis_function_fn *run;
	redis_function_exists_fn *exists;
	void *run_context;
	redis_publish_fn *publish;
	void *publish_context;
	redis_watch_fn *watch;
	void *watch_context;
};

struct redis_model *
redis_model_create(void)
{
	struct redis_model *model = calloc(1, sizeof *model);

	VERIFY(model);
	model->keys.item_size = sizeof(struct redis_value *);
	return model;
}

static struct redis_value **
key_at(const struct redis_model *model, size_t i)
{
	return (struct redis_value **)(void *)model->keys.data + i;
}

static void
drop_all(struct redis_model *model)
{
	for (size_t i = 0; i < model->keys.count; i++)
		redis_value_destroy(*key_at(model, i));
	redis_vector_fini(&model->keys);
}

void
redis_model_destroy(struct redis_model *model)
{
	if (!model)
		return;
	drop_all(model);
	redis_arena_fini(&model->arena);
	free(model);
}

struct redis_model *
redis_model_copy(const struct redis_model *model)
{
	struct redis_model *copy = redis_model_create();

	copy->now_us = model->now_us;
	for (size_t i = 0; i < model->keys.count; i++) {
		struct redis_value **place = redis_vector_insert(&copy->keys, i);

		*place = redis_value_copy(*key_at(model, i));
	}
	return copy;
}

void
redis_model_set_time(struct redis_model *model, uint64_t now_us)
{
	model->now_us = now_us;
}

void
redis_model_set_functions(struct redis_model *model, redis_function_fn *run,
                          redis_function_exists_fn *exists, void *context)
{
	model->run = run;
	model->exists = exists;
	model->run_context = context;
}

void
redis_model_set_publish(struct redis_model *model, redis_publish_fn *publish,
                        void *context)
{
	model->publish = publish;
	model->publish_context = context;
}

void
redis_model_set_watch(struct redis_model *model, redis_watch_fn *watch, void *context)
{
	model->watch = watch;
	model->watch_context = context;
}

/* The place of `key`, or where it belongs. */
static size_t
seek(const struct redis_model *model, struct span key, bool *ret_found)
{
	size_t low = 0;
	size_t high = model->keys.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = redis_text_compare((*key_at(model, middle))->key, key);

		if (order == 0) {
			*ret_found = true;
			return middle;
		}
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*ret_found = false;
	return low;
}

static bool
is_expired(const struct redis_model *model, const struct redis_value *value)
{
	return value->expires_ms != 0 && value->expires_ms < model->now_us / 1000;
}

const struct redis_value *
redis_model_find(const struct redis_model *model, struct span key)
{
	bool found;
	size_t at = seek(model, key, &found);

	if (!found || is_expired(model, *key_at(model, at)))
		return NULL;
	return *key_at(model, at);
}

const struct redis_value *
redis_model_next(const struct redis_model *model, size_t *cursor)
{
	while (*cursor < model->keys.count) {
		const struct redis_value *value = *key_at(model, (*cursor)++);

		if (!is_expired(model, value))
			return value;
	}
	return NULL;
}

bool
redis_model_is_status(const struct reply *reply)
{
	return reply->kind == REPLY_TEXT && reply->integer == 1;
}

/* What the families share. */

bool
redis_command_is(const struct redis_call *call, size_t i, const char *name)
{
	return i < call->argc && call->argv[i].len == strlen(name) &&
	       strncasecmp(call->argv[i].data, name, call->argv[i].len) == 0;
}

/* Redis's string2ll: no blank, no plus, no leading zero, nothing behind. */
bool
redis_command_integer(struct span word, int64_t *ret_value)
{
	char text[24];
	char *end;
	long long value;

	if (word.len == 0 || word.len >= sizeof text)
		return false;
	memcpy(text, word.data, word.len);
	text[word.len] = '\0';
	if (strcmp(text, "0") != 0) {
		const char *digits = text[0] == '-' ? text + 1 : text;

		if (digits[0] < '1' || digits[0] > '9')
			return false;
	}
	errno = 0;
	value = strtoll(text, &end, 10);
	if (errno != 0 || *end != '\0')
		return false;
	*ret_value = value;
	return true;
}

bool
redis_command_double(struct span word, double *ret_value)
{
	char text[256];
	char *end;
	double value;

	if (word.len == 0 || word.len >= sizeof text ||
	    isspace((unsigned char)*word.data))
		return false;
	memcpy(text, word.data, word.len);
	text[word.len] = '\0';
	if (strlen(text) != word.len)
		return false;
	value = strtod(text, &end);
	if (*end != '\0' || isnan(value))
		return false;
	*ret_value = value;
	return true;
}

bool
redis_command_find(struct redis_call *call, struct span key, enum redis_type type,
                   struct redis_value **ret_value)
{
	struct redis_model *model = call->model;
	bool found;
	size_t at = seek(model, key, &found);

	if (found && is_expired(model, *key_at(model, at))) {
		redis_command_delete(call, *key_at(model, at));
		found = false;
	}
	if (!found) {
		*ret_value = NULL;
		return true;
	}
	if (type != REDIS_TYPE_COUNT && (*key_at(model, at))->type != type)
		return false;
	*ret_value = *key_at(model, at);
	return true;
}

bool
redis_command_open(struct redis_call *call, struct span key, enum redis_type type,
                   struct redis_value **ret_value)
{
	struct redis_value *value;
	bool found;
	size_t at;

	if (!redis_command_find(call, key, type, &value))
		return false;
	if (!value) {
		at = seek(call->model, key, &found);
		VERIFY(!found);
		value = redis_value_create(key, type);
		*(struct redis_value **)redis_vector_insert(&call->model->keys, at) =
			value;
	}
	*ret_value = value;
	return true;
}

void
redis_command_delete(struct redis_call *call, struct redis_value *value)
{
	bool found;
	size_t at = seek(call->model, redis_text_span(value->key), &found);

	VERIFY(found);
	redis_vector_remove(&call->model->keys, at, 1);
	redis_value_destroy(value);
}

void
redis_command_tidy(struct redis_call *call, struct redis_value *value)
{
	if (redis_value_is_empty(value))
		redis_command_delete(call, value);
}

uint64_t
redis_command_now_ms(const struct redis_call *call)
{
	return call->model->now_us / 1000;
}

bool
redis_command_range(int64_t start, int64_t stop, size_t count, size_t *ret_from,
                    size_t *ret_count)
{
	int64_t len = (int64_t)count;

	if (start < 0)
		start = MAX(start + len, 0);
	if (stop < 0)
		stop = MAX(stop + len, -1);
	stop = MIN(stop, len - 1);
	if (start > stop || start >= len)
		return false;
	*ret_from = (size_t)start;
	*ret_count = (size_t)(stop - start + 1);
	return true;
}

/* Commands about the server itself. */

static const struct reply *
run_time(struct redis_call *call)
{
	struct reply *items;
	const struct reply *reply = redis_answer_array(call->arena, 2, &items);
	char text[24];

	for (size_t i = 0; i < 2; i++) {
		uint64_t part = i == 0 ? call->model->now_us / 1000000
		                       : call->model->now_us % 1000000;
		size_t len = redis_answer_print_double((double)part, text, sizeof text);

		items[i] = *redis_answer_text(call->arena, (struct span){ text, len });
	}
	return reply;
}

static const struct reply *
run_ping(struct redis_call *call)
{
	if (call->argc > 2)
		return redis_answer_error(call->arena,
		                          "ERR wrong number of arguments for "
		                          "'ping' command");
	if (call->argc == 2)
		return redis_answer_text(call->arena, call->argv[1]);
	return redis_answer_status(call->arena, "PONG");
}

static const struct reply *
run_publish(struct redis_call *call)
{
	struct redis_model *model = call->model;

	if (model->publish)
		model->publish(model->publish_context, call->argv[1], call->argv[2]);
	return redis_answer_integer(call->arena, 0);
}

static const struct reply *
run_info(struct redis_call *call)
{
	return redis_answer_text(call->arena,
	                         SPAN("# Server\r\nredis_version:7.0.15\r\n"
	                              "# Memory\r\nused_memory:1000000\r\nmaxmemory:0\r\n"
	                              "maxmemory_policy:noeviction\r\n"));
}

static const struct reply *
run_config(struct redis_call *call)
{
	static const char *const SETTINGS[][2] = {
		{ "appendfsync", "everysec" },
		{ "appendonly", "no" },
		{ "maxmemory", "0" },
		{ "maxmemory-policy", "noeviction" },
	};
	struct reply *items;

	if (!redis_command_is(call, 1, "get") || call->argc != 3)
		return redis_answer_syntax(call->arena);
	for (size_t i = 0; i < ARRAY_SIZE(SETTINGS); i++) {
		if (!redis_command_is(call, 2, SETTINGS[i][0]))
			continue;
		const struct reply *reply = redis_answer_array(call->arena, 2, &items);

		items[0] = *redis_answer_text(call->arena, span_from(SETTINGS[i][0]));
		items[1] = *redis_answer_text(call->arena, span_from(SETTINGS[i][1]));
		return reply;
	}
	return redis_answer_array(call->arena, 0, &items);
}

static const struct reply *
run_flushall(struct redis_call *call)
{
	if (call->argc > 1 && !redis_command_is(call, 1, "async") &&
	    !redis_command_is(call, 1, "sync"))
		return redis_answer_syntax(call->arena);
	drop_all(call->model);
	return redis_answer_status(call->arena, "OK");
}

static const struct reply *
run_fcall(struct redis_call *call)
{
	struct redis_model *model = call->model;
	bool read_only = redis_command_is(call, 0, "fcall_ro");
	int64_t keys;

	if (call->inside)
		return redis_answer_error(call->arena, "ERR This Redis command is not "
		                                       "allowed from script");
	if (!model->run || !model->exists(model->run_context, call->argv[1]))
		return redis_answer_error(call->arena, "ERR Function not found");
	if (!redis_command_integer(call->argv[2], &keys))
		return redis_answer_error(call->arena, "ERR Bad number of keys provided");
	if (keys > (int64_t)call->argc - 3)
		return redis_answer_error(call->arena,
		                          "ERR Number of keys can't be greater "
		                          "than number of args");
	if (keys < 0)
		return redis_answer_error(call->arena, "ERR Number of keys can't be "
		                                       "negative");
	return model->run(model->run_context, model, call->argv[1], call->argv + 3,
	                  (size_t)keys, call->argv + 3 + keys,
	                  call->argc - 3 - (size_t)keys, read_only);
}

static const struct redis_command SERVER_COMMANDS[] = {
	{ "time", 1, false, run_time },
	{ "ping", -1, false, run_ping },
	{ "publish", 3, false, run_publish },
	{ "info", -1, false, run_info },
	{ "config", -2, false, run_config },
	{ "flushall", -1, true, run_flushall },
	{ "fcall", -3, true, run_fcall },
	{ "fcall_ro", -3, false, run_fcall },
	{ 0 },
};

static const struct redis_command *const FAMILIES[] = {
	redis_hashes_commands,  redis_lists_commands, redis_zsets_commands,
	redis_strings_commands, redis_keys_commands,  redis_streams_commands,
	redis_sets_commands,    SERVER_COMMANDS,
};

/* Names are mostly given as a literal or by Lua, which keeps one copy of each: the last
 * answer for a few lengths and first letters saves most walks. */
static const struct redis_command *
find_command(struct span name)
{
	static const struct redis_command *recent[64];
	const struct redis_command **memo =
		&recent[(name.len * 7 +
	                 (name.len ? (size_t)name.data[name.len / 2] : 0)) %
	                64];

	if (*memo && strlen((*memo)->name) == name.len &&
	    strncasecmp((*memo)->name, name.data, name.len) == 0)
		return *memo;
	for (size_t f = 0; f < ARRAY_SIZE(FAMILIES); f++) {
		for (const struct redis_command *c = FAMILIES[f]; c->name; c++) {
			if (strlen(c->name) == name.len &&
			    strncasecmp(c->name, name.data, name.len) == 0)
				return *memo = c;
		}
	}
	return NULL;
}

bool
redis_model_writes(struct span name)
{
	const struct redis_command *command = find_command(name);

	return command && command->writes;
}

static const struct reply *
refuse_unknown(struct redis_call *call)
{
	struct span name = call->argv[0];

	if (call->inside)
		return redis_answer_error(call->arena,
		                          "ERR Unknown Redis command called from script");
	return redis_answer_error(call->arena, "ERR unknown command '%.*s'",
	                          (int)name.len, name.data);
}

static const struct reply *
judge_and_run(struct redis_call *call)
{
	const struct redis_command *command = find_command(call->argv[0]);
	int words = (int)call->argc;

	if (!command)
		return refuse_unknown(call);
	if (command->arity > 0 ? words != command->arity : words < -command->arity) {
		if (call->inside)
			return redis_answer_error(
				call->arena, "ERR Wrong number of args calling Redis "
					     "command from script");
		return redis_answer_error(
			call->arena, "ERR wrong number of arguments for '%s' command",
			command->name);
	}
	if (call->inside && call->read_only && command->writes)
		return redis_answer_error(call->arena,
		                          "ERR Write commands are not allowed "
		                          "from read-only scripts.");
	return command->run(call);
}

static const struct reply *
run_command(struct redis_call *call)
{
	struct redis_model *model = call->model;
	const struct reply *reply = judge_and_run(call);

	if (model->watch)
		model->watch(model->watch_context, call->argv, call->argc, reply,
		             call->inside);
	return reply;
}

const struct reply *
redis_model_call(struct redis_model *model, const struct span *argv, size_t argc)
{
	struct redis_call call = {
		.model = model, .arena = &model->arena, .argv = argv, .argc = argc
	};

	VERIFY(argc > 0);
	redis_arena_reset(&model->arena);
	return run_command(&call);
}

const struct reply *
redis_model_call_inside(struct redis_model *model, const struct span *argv, size_t argc,
                        bool read_only)
{
	struct redis_call call = {
		.model = model,
		.arena = &model->arena,
		.argv = argv,
		.argc = argc,
		.inside = true,
		.read_only = read_only,
	};

	return run_command(&call);
}

const struct reply *
redis_model_text(struct redis_model *model, const char *word, ...)
{
	struct span argv[WORDS_MAX];
	size_t argc = 0;
	va_list args;

	va_start(args, word);
	for (const char *w = word; w; w = va_arg(args, const char *)) {
		VERIFY(argc < WORDS_MAX);
		argv[argc++] = span_from(w);
	}
	va_end(args);
	return redis_model_call(model, argv, argc);
}
