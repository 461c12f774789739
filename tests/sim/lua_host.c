#include "tests/sim/lua_host.h"

#include "tests/sim/redis_answer.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	FUNCTIONS_MAX = 64,
	NAME_MAX_LEN = 64,
	ARGS_MAX = 8000, /* what Lua's own unpack can push */
	DEPTH_MAX = 32,  /* of nested answers */
};

struct function {
	char name[NAME_MAX_LEN];
	int callback; /* registry reference */
	bool no_writes;
};

struct lua_host {
	lua_State *lua;
	struct redis_model *model;
	struct redis_arena answer; /* the last FCALL's */
	struct function functions[FUNCTIONS_MAX];
	size_t functions_count;
	bool loading;
	bool read_only; /* of the function that runs */
	char error[512];
};

static struct lua_host *
host_of(lua_State *lua)
{
	struct lua_host *host;

	lua_getfield(lua, LUA_REGISTRYINDEX, "warmq_host");
	host = lua_touserdata(lua, -1);
	lua_pop(lua, 1);
	VERIFY(host);
	return host;
}

/* Pushes the table that Redis raises and answers for an error. */
static void
push_error(lua_State *lua, struct span message)
{
	lua_newtable(lua);
	lua_pushlstring(lua, message.data, message.len);
	lua_setfield(lua, -2, "err");
}

static void
push_reply(lua_State *lua, const struct reply *reply)
{
	luaL_checkstack(lua, 4, "reply too deep");
	switch (reply->kind) {
	case REPLY_NIL:
		lua_pushboolean(lua, false);
		return;
	case REPLY_INTEGER:
		lua_pushnumber(lua, (lua_Number)reply->integer);
		return;
	case REPLY_ERROR:
		push_error(lua, reply->text);
		return;
	case REPLY_TEXT:
		if (redis_model_is_status(reply))
			lua_newtable(lua);
		lua_pushlstring(lua, reply->text.data, reply->text.len);
		if (redis_model_is_status(reply))
			lua_setfield(lua, -2, "ok");
		return;
	case REPLY_ARRAY:
		lua_createtable(lua, (int)reply->count, 0);
		for (size_t i = 0; i < reply->count; i++) {
			push_reply(lua, &reply->items[i]);
			lua_rawseti(lua, -2, (int)i + 1);
		}
		return;
	}
}

/* Throws what Redis throws when a call itself is wrong. */
static void throw(lua_State * lua, const char *message)
{
	push_error(lua, span_from(message));
	lua_error(lua);
}

/* Runs one command; leaves its answer on the stack, as a Lua value. */
static const struct reply *
run_command(lua_State *lua)
{
	struct lua_host *host = host_of(lua);
	static struct span argv[ARGS_MAX];
	static char digits[ARGS_MAX / 8][32]; /* of arguments that are numbers */
	int argc = lua_gettop(lua);
	size_t numbers = 0;

	if (host->loading)
		luaL_error(lua,
		           "redis.call can only be called inside a script invocation");
	if (argc == 0 || argc > ARGS_MAX)
		throw(lua, "ERR Please specify at least one argument for this call");
	for (int i = 0; i < argc; i++) {
		struct span *word = &argv[i];

		if (lua_type(lua, i + 1) == LUA_TNUMBER && numbers < ARGS_MAX / 8) {
			/* not lua_tolstring: %.14g would cut a time in microseconds */
			word->data = digits[numbers];
			word->len = (size_t)snprintf(digits[numbers++], sizeof digits[0],
			                             "%.17g", lua_tonumber(lua, i + 1));
		} else if (lua_type(lua, i + 1) == LUA_TSTRING) {
			word->data = lua_tolstring(lua, i + 1, &word->len);
		} else {
			throw(lua, "ERR Lua redis lib command arguments must be strings "
			           "or integers");
		}
	}
	return redis_model_call_inside(host->model, argv, (size_t)argc, host->read_only);
}

static int
do_call(lua_State *lua)
{
	const struct reply *reply = run_command(lua);

	push_reply(lua, reply);
	return reply->kind == REPLY_ERROR ? lua_error(lua) : 1;
}

static int
do_pcall(lua_State *lua)
{
	push_reply(lua, run_command(lua));
	return 1;
}

static int
do_status_reply(lua_State *lua)
{
	luaL_checkstring(lua, 1);
	lua_newtable(lua);
	lua_pushvalue(lua, 1);
	lua_setfield(lua, -2, "ok");
	return 1;
}

/* "word" becomes "ERR word"; "CODE words" stays; a leading dash goes. */
static int
do_error_reply(lua_State *lua)
{
	const char *text = luaL_checkstring(lua, 1);

	if (text[0] == '-')
		text++;
	lua_newtable(lua);
	if (strchr(text, ' '))
		lua_pushstring(lua, text);
	else
		lua_pushfstring(lua, "ERR %s", text);
	lua_setfield(lua, -2, "err");
	return 1;
}

/* Nobody is forbidden anything here. */
static int
do_acl_check_cmd(lua_State *lua)
{
	luaL_checkstring(lua, 1);
	lua_pushboolean(lua, 1);
	return 1;
}

static int
do_log(lua_State *lua)
{
	return 0;
}

static void
read_flags(lua_State *lua, struct function *function)
{
	lua_getfield(lua, 1, "flags");
	if (!lua_istable(lua, -1))
		return;
	for (int i = 1;; i++) {
		const char *flag;

		lua_rawgeti(lua, -1, i);
		if (lua_isnil(lua, -1))
			break;
		flag = luaL_checkstring(lua, -1);
		if (strcmp(flag, "no-writes") == 0)
			function->no_writes = true;
		else if (strcmp(flag, "allow-oom") != 0 &&
		         strcmp(flag, "allow-stale") != 0 &&
		         strcmp(flag, "no-cluster") != 0 &&
		         strcmp(flag, "allow-cross-slot-keys") != 0)
			luaL_error(lua, "unknown flag given");
		lua_pop(lua, 1);
	}
}

/* register_function(name, callback), or one table with names and flags. */
static int
do_register_function(lua_State *lua)
{
	struct lua_host *host = host_of(lua);
	struct function function = { 0 };
	const char *name;

	if (!host->loading)
		return luaL_error(lua, "redis.register_function can only be called on "
		                       "FUNCTION LOAD command");
	if (lua_gettop(lua) == 2) {
		name = luaL_checkstring(lua, 1);
		luaL_checktype(lua, 2, LUA_TFUNCTION);
	} else {
		luaL_checktype(lua, 1, LUA_TTABLE);
		read_flags(lua, &function);
		lua_getfield(lua, 1, "function_name");
		name = luaL_checkstring(lua, -1);
		lua_getfield(lua, 1, "callback");
		luaL_checktype(lua, -1, LUA_TFUNCTION);
	}
	if (strlen(name) >= NAME_MAX_LEN || host->functions_count == FUNCTIONS_MAX)
		return luaL_error(lua, "too many or too long function names");
	for (size_t i = 0; i < host->functions_count; i++) {
		if (strcmp(host->functions[i].name, name) == 0)
			return luaL_error(lua, "Function already exists in the library");
	}
	memcpy(function.name, name, strlen(name) + 1);
	function.callback = luaL_ref(lua, LUA_REGISTRYINDEX);
	host->functions[host->functions_count++] = function;
	return 0;
}

static int
on_unknown_global(lua_State *lua)
{
	return luaL_error(lua,
	                  "Script attempted to access nonexistent global variable '%s'",
	                  lua_tostring(lua, 2));
}

static int
on_new_global(lua_State *lua)
{
	return luaL_error(lua, "Attempt to modify a readonly table");
}

/* Turns any thrown value into Redis's error table. */
static int
on_error(lua_State *lua)
{
	if (lua_istable(lua, 1)) {
		lua_getfield(lua, 1, "err");
		if (lua_isstring(lua, -1)) {
			lua_pop(lua, 1);
			return 1;
		}
		lua_pop(lua, 1);
	}
	lua_newtable(lua);
	lua_pushfstring(lua, "ERR %s",
	                lua_isstring(lua, 1) ? lua_tostring(lua, 1) : "unknown error");
	lua_setfield(lua, -2, "err");
	return 1;
}

static void
open_redis(lua_State *lua)
{
	static const luaL_Reg FUNCTIONS[] = {
		{ "call", do_call },
		{ "pcall", do_pcall },
		{ "status_reply", do_status_reply },
		{ "error_reply", do_error_reply },
		{ "acl_check_cmd", do_acl_check_cmd },
		{ "log", do_log },
		{ "register_function", do_register_function },
		{ 0 },
	};
	static const char *const LEVELS[] = { "LOG_DEBUG", "LOG_VERBOSE", "LOG_NOTICE",
		                              "LOG_WARNING" };

	luaL_register(lua, "redis", FUNCTIONS);
	for (size_t i = 0; i < ARRAY_SIZE(LEVELS); i++) {
		lua_pushinteger(lua, (lua_Integer)i);
		lua_setfield(lua, -2, LEVELS[i]);
	}
	lua_pop(lua, 1);
}

static void
close_globals(lua_State *lua)
{
	static const char *const HIDDEN[] = { "dofile",  "loadfile", "print",
		                              "require", "module",   "newproxy" };

	for (size_t i = 0; i < ARRAY_SIZE(HIDDEN); i++) {
		lua_pushnil(lua);
		lua_setglobal(lua, HIDDEN[i]);
	}
	lua_pushboolean(lua,
	                false); /* libraries that are not here: who asks, does without */
	lua_setglobal(lua, "cjson");
	lua_pushboolean(lua, false);
	lua_setglobal(lua, "cmsgpack");
	lua_getglobal(lua, "math");
	lua_pushnil(lua);
	lua_setfield(lua, -2, "random");
	lua_pushnil(lua);
	lua_setfield(lua, -2, "randomseed");
	lua_pop(lua, 1);
	lua_newtable(lua);
	lua_pushcfunction(lua, on_unknown_global);
	lua_setfield(lua, -2, "__index");
	lua_pushcfunction(lua, on_new_global);
	lua_setfield(lua, -2, "__newindex");
	lua_pushvalue(lua, LUA_GLOBALSINDEX);
	lua_insert(lua, -2);
	lua_setmetatable(lua, -2);
	lua_pop(lua, 1);
}

struct lua_host *
lua_host_create(void)
{
	static const luaL_Reg LIBRARIES[] = {
		{ "", luaopen_base },
		{ LUA_TABLIBNAME, luaopen_table },
		{ LUA_STRLIBNAME, luaopen_string },
		{ LUA_MATHLIBNAME, luaopen_math },
	};
	struct lua_host *host = calloc(1, sizeof *host);

	VERIFY(host);
	host->lua = luaL_newstate();
	VERIFY(host->lua);
	for (size_t i = 0; i < ARRAY_SIZE(LIBRARIES); i++) {
		lua_pushcfunction(host->lua, LIBRARIES[i].func);
		lua_pushstring(host->lua, LIBRARIES[i].name);
		lua_call(host->lua, 1, 0);
	}
	lua_pushlightuserdata(host->lua, host);
	lua_setfield(host->lua, LUA_REGISTRYINDEX, "warmq_host");
	open_redis(host->lua);
	close_globals(host->lua);
	return host;
}

void
lua_host_destroy(struct lua_host *host)
{
	if (!host)
		return;
	lua_close(host->lua);
	redis_arena_fini(&host->answer);
	free(host);
}

const char *
lua_host_load(struct lua_host *host, struct span library)
{
	const char *end = memchr(library.data, '\n', library.len);
	const char *message = NULL;
	int status;

	if (library.len < 11 || memcmp(library.data, "#!lua name=", 11) != 0 || !end)
		return "Missing library metadata";
	/* the line stays, empty, so that line numbers in errors are those of the file */
	status = luaL_loadbuffer(host->lua, end,
	                         library.len - (size_t)(end - library.data),
	                         "@user_function");
	host->loading = true;
	if (status == 0)
		status = lua_pcall(host->lua, 0, 0, 0);
	host->loading = false;
	if (status != 0) {
		if (lua_istable(host->lua, -1))
			lua_getfield(host->lua, -1, "err");
		message = lua_tostring(host->lua, -1);
		(void)snprintf(host->error, sizeof host->error, "%s",
		               message ? message : "unknown error");
		message = host->error;
	}
	lua_settop(host->lua, 0);
	return message;
}

static void read_answer(lua_State *lua, struct redis_arena *arena, int depth,
                        struct reply *ret_reply);

/* An array: its items up to the first nil. */
static void
read_items(lua_State *lua, struct redis_arena *arena, int depth, struct reply *ret_reply)
{
	struct reply *items;
	int count = 0;

	for (;; count++) {
		bool is_end;

		lua_rawgeti(lua, -1, count + 1);
		is_end = lua_isnil(lua, -1);
		lua_pop(lua, 1);
		if (is_end)
			break;
	}
	*ret_reply = *redis_answer_array(arena, (size_t)count, &items);
	for (int i = 0; i < count; i++) {
		lua_rawgeti(lua, -1, i + 1);
		read_answer(lua, arena, depth + 1, &items[i]);
		lua_pop(lua, 1);
	}
}

/* A table with `err` or `ok`; false: it is an array. */
static bool
read_special(lua_State *lua, struct redis_arena *arena, struct reply *ret_reply)
{
	bool found = true;

	lua_getfield(lua, -1, "err");
	if (lua_type(lua, -1) == LUA_TSTRING) {
		*ret_reply = *redis_answer_error(arena, "%s", lua_tostring(lua, -1));
		lua_pop(lua, 1);
		return true;
	}
	lua_pop(lua, 1);
	lua_getfield(lua, -1, "ok");
	if (lua_type(lua, -1) == LUA_TSTRING)
		*ret_reply = *redis_answer_status(arena, lua_tostring(lua, -1));
	else
		found = false;
	lua_pop(lua, 1);
	return found;
}

/* Converts the value on top of the stack. */
static void
read_answer(lua_State *lua, struct redis_arena *arena, int depth, struct reply *ret_reply)
{
	struct span text;

	if (depth > DEPTH_MAX || !lua_checkstack(lua, 4)) {
		*ret_reply = *redis_answer_error(arena, "ERR reached lua stack limit");
		return;
	}
	switch (lua_type(lua, -1)) {
	case LUA_TSTRING:
		text.data = lua_tolstring(lua, -1, &text.len);
		*ret_reply = *redis_answer_text(arena, text);
		break;
	case LUA_TNUMBER:
		*ret_reply = *redis_answer_integer(arena, (int64_t)lua_tonumber(lua, -1));
		break;
	case LUA_TBOOLEAN:
		*ret_reply = lua_toboolean(lua, -1) ? *redis_answer_integer(arena, 1)
		                                    : *redis_answer_nil(arena);
		break;
	case LUA_TTABLE:
		if (!read_special(lua, arena, ret_reply))
			read_items(lua, arena, depth, ret_reply);
		break;
	default:
		*ret_reply = *redis_answer_nil(arena);
		break;
	}
}

static void
push_words(lua_State *lua, const struct span *words, size_t count)
{
	lua_createtable(lua, (int)count, 0);
	for (size_t i = 0; i < count; i++) {
		lua_pushlstring(lua, words[i].data, words[i].len);
		lua_rawseti(lua, -2, (int)i + 1);
	}
}

static struct function *
find_function(struct lua_host *host, struct span name)
{
	for (size_t i = 0; i < host->functions_count; i++) {
		if (span_equals(span_from(host->functions[i].name), name))
			return &host->functions[i];
	}
	return NULL;
}

static bool
function_exists(void *context, struct span name)
{
	return find_function(context, name) != NULL;
}

static const struct reply *
run_function(void *context, struct redis_model *model, struct span name,
             const struct span *keys, size_t keys_count, const struct span *args,
             size_t args_count, bool read_only)
{
	struct lua_host *host = context;
	struct redis_arena *arena = &host->answer;
	struct function *function = find_function(host, name);
	struct reply *reply;

	redis_arena_reset(arena);
	VERIFY(function); /* the model has asked */
	if (read_only && !function->no_writes)
		return redis_answer_error(arena,
		                          "ERR Can not execute a script with write "
		                          "flag using *_ro command.");
	host->model = model;
	host->read_only = function->no_writes;
	lua_pushcfunction(host->lua, on_error);
	lua_rawgeti(host->lua, LUA_REGISTRYINDEX, function->callback);
	push_words(host->lua, keys, keys_count);
	push_words(host->lua, args, args_count);
	(void)lua_pcall(host->lua, 2, 1, 1); /* an error is a table with `err` */
	reply = redis_arena_take(arena, sizeof *reply);
	read_answer(host->lua, arena, 0, reply);
	lua_settop(host->lua, 0);
	return reply;
}

void
lua_host_attach(struct lua_host *host, struct redis_model *model)
{
	host->model = model;
	redis_model_set_functions(model, run_function, function_exists, host);
}
