#include "tests/lib/suite.h"
#include "tests/sim/lua_host.h"

static struct redis_model *model;
static struct lua_host *host;

static void
open(const char *library)
{
	const char *error;

	model = redis_model_create();
	host = lua_host_create();
	lua_host_attach(host, model);
	error = lua_host_load(host, span_from(library));
	ck_assert_msg(!error, "%s", error);
}

static void
close(void)
{
	lua_host_destroy(host);
	redis_model_destroy(model);
}

static const struct reply *
call(const char *name)
{
	return redis_model_text(model, "FCALL", name, "1", "k", "a", NULL);
}

START_TEST(lua_host_cuts_numbers_and_ends_arrays_at_nil)
{
	open("#!lua name=t\nredis.register_function('f', function(keys, args)\n"
	     "return {1.9, -1.9, true, keys[1], args[1], {ok='fine'}, false, nil, 7} "
	     "end)");
	const struct reply *reply = call("f");

	ck_assert_int_eq(reply->kind, REPLY_ARRAY);
	ck_assert_uint_eq(reply->count, 7);
	ck_assert_int_eq(reply->items[0].integer, 1);
	ck_assert_int_eq(reply->items[1].integer, -1);
	ck_assert_int_eq(reply->items[2].integer, 1);
	ck_assert(reply_is(&reply->items[3], "k"));
	ck_assert(reply_is(&reply->items[4], "a"));
	ck_assert(redis_model_is_status(&reply->items[5]));
	ck_assert_int_eq(reply->items[6].kind, REPLY_NIL);
	close();
}
END_TEST

START_TEST(lua_host_raises_errors_as_tables)
{
	open("#!lua name=t\nredis.register_function('f', function(keys)\n"
	     "redis.call('SET', keys[1], 5)\n"
	     "local e = redis.pcall('LPUSH', keys[1], 'x').err\n"
	     "local ok, thrown = pcall(redis.call, 'LPUSH', keys[1], 'x')\n"
	     "return {e, tostring(ok), thrown.err} end)\n"
	     "redis.register_function('g', function() return nil .. 'x' end)\n"
	     "redis.register_function('h', function() return redis.error_reply('NO way') "
	     "end)\n"
	     "redis.register_function('i', function() return redis.call('NONE') end)");
	const struct reply *reply = call("f");

	ck_assert_uint_eq(reply->count, 3);
	ck_assert_int_eq(memcmp(reply->items[0].text.data, "WRONGTYPE ", 10), 0);
	ck_assert(reply_is(&reply->items[1], "false"));
	ck_assert_int_eq(memcmp(reply->items[2].text.data, "WRONGTYPE ", 10), 0);
	ck_assert_int_eq(call("g")->kind, REPLY_ERROR);
	reply = call("h");
	ck_assert_int_eq(reply->kind, REPLY_ERROR);
	ck_assert(span_equals(reply->text, SPAN("NO way")));
	ck_assert_int_eq(call("i")->kind, REPLY_ERROR);
	ck_assert_int_eq(call("missing")->kind, REPLY_ERROR);
	close();
}
END_TEST

START_TEST(lua_host_guards_globals_and_read_only_functions)
{
	open("#!lua name=t\nredis.register_function('f', function() x = 1 end)\n"
	     "redis.register_function('g', function() return y end)\n"
	     "redis.register_function{function_name='r', flags={'no-writes'}, callback="
	     "function(keys) return redis.call('SET', keys[1], 'v') end}\n"
	     "redis.register_function('w', function(keys) return redis.call('GET', "
	     "keys[1]) "
	     "end)");
	ck_assert_int_eq(call("f")->kind, REPLY_ERROR);
	ck_assert_int_eq(call("g")->kind, REPLY_ERROR);
	ck_assert_int_eq(call("r")->kind, REPLY_ERROR);
	ck_assert_int_eq(call("w")->kind, REPLY_NIL);
	ck_assert_int_eq(redis_model_text(model, "FCALL_RO", "w", "1", "k", NULL)->kind,
	                 REPLY_ERROR);
	close();
}
END_TEST

START_TEST(lua_host_keeps_all_digits_of_a_number)
{
	open("#!lua name=t\nredis.register_function('f', function(keys)\n"
	     "redis.call('SET', keys[1], 1700000000123456)\n"
	     "return redis.call('GET', keys[1]) end)");
	ck_assert(reply_is(call("f"), "1700000000123456"));
	close();
}
END_TEST

START_TEST(lua_host_refuses_a_library_that_writes_globals)
{
	host = lua_host_create();
	model = redis_model_create();
	ck_assert_ptr_nonnull(lua_host_load(host, SPAN("#!lua name=t\nx = 1")));
	ck_assert_ptr_nonnull(lua_host_load(host, SPAN("return 1")));
	ck_assert_ptr_nonnull(
		lua_host_load(host, SPAN("#!lua name=t\nredis.call('PING')")));
	close();
}
END_TEST

SUITE_MAIN("lua_host", lua_host_cuts_numbers_and_ends_arrays_at_nil,
           lua_host_raises_errors_as_tables,
           lua_host_guards_globals_and_read_only_functions,
           lua_host_keeps_all_digits_of_a_number,
           lua_host_refuses_a_library_that_writes_globals)
