/* The asynchronous client against a real Redis and against peers that are dead, rude or
 * broken. */
#include "common/io/redis.h"
#include "tests/lib/fake_server.h"
#include "tests/lib/redis_server.h"
#include "tests/lib/suite.h"
#include "tests/lib/temp.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define DEADLINE_MS 120000

/* One connection under test and what it reported. */
struct probe {
	uv_loop_t loop;
	uv_timer_t deadline;
	struct redis *redis;
	unsigned ready, down, replies, lost;
	int last_error;
	char down_message[256];
	char last_text[256];
	int64_t last_integer;
	uint64_t wait_ms; /* what on_down answers */
	bool closed;
	void (*when_ready)(struct probe *probe);
};

static void
on_ready(struct redis *redis, void *data)
{
	struct probe *probe = data;

	ck_assert(redis_is_ready(redis));
	probe->ready++;
	if (probe->when_ready)
		probe->when_ready(probe);
}

static uint64_t
on_down(struct redis *redis, int error, const char *message, void *data)
{
	struct probe *probe = data;

	ck_assert(!redis_is_ready(redis));
	ck_assert_uint_eq(redis_pending(redis), 0);
	probe->down++;
	probe->last_error = error;
	(void)snprintf(probe->down_message, sizeof probe->down_message, "%s", message);
	return probe->wait_ms;
}

static void
on_reply(struct redis *redis, const struct reply *reply, int error, void *data)
{
	struct probe *probe = data;
	struct span text;

	(void)redis;
	ck_assert((reply == NULL) == (error < 0));
	if (error < 0) {
		probe->lost++;
		probe->last_error = error;
		return;
	}
	probe->replies++;
	probe->last_integer = reply->integer;
	text = reply->text;
	(void)snprintf(probe->last_text, sizeof probe->last_text, "%.*s", (int)text.len,
	               text.data ? text.data : "");
}

static void
on_deadline(uv_timer_t *timer)
{
	(void)timer;
	ck_abort_msg("nothing happened before the deadline");
}

static void
on_destroyed(void *data)
{
	((struct probe *)data)->closed = true;
}

static struct redis_options
options_for(struct probe *probe, const char *url)
{
	char message[REDIS_URL_ERROR_SIZE];
	struct redis_options options = {
		.handlers = { on_ready, on_down },
		.data = probe,
		.client_name = "test",
		.connect_timeout_ms = 60000,
		.command_timeout_ms = 60000,
	};

	ck_assert_int_eq(redis_url_parse(span_from(url), &options.url, message), 0);
	return options;
}

static void
probe_open(struct probe *probe, const struct redis_options *options)
{
	ck_assert_int_eq(redis_create(&probe->loop, options, &probe->redis), 0);
	redis_connect(probe->redis);
}

static void
probe_init(struct probe *probe)
{
	*probe = (struct probe){ .wait_ms = REDIS_STAY_DOWN };
	ck_assert_int_eq(uv_loop_init(&probe->loop), 0);
	ck_assert_int_eq(uv_timer_init(&probe->loop, &probe->deadline), 0);
	ck_assert_int_eq(uv_timer_start(&probe->deadline, on_deadline, DEADLINE_MS, 0),
	                 0);
}

static void
probe_fini(struct probe *probe)
{
	if (probe->redis && !probe->closed)
		redis_destroy(probe->redis, on_destroyed, probe);
	uv_close((uv_handle_t *)&probe->deadline, NULL);
	while (uv_run(&probe->loop, UV_RUN_ONCE) != 0)
		continue;
	ck_assert(!probe->redis || probe->closed);
	ck_assert_int_eq(uv_loop_close(&probe->loop), 0);
}

#define RUN_UNTIL(probe, condition) \
	while (!(condition))        \
	uv_run(&(probe)->loop, UV_RUN_ONCE)

/* A server of its own, and what a probe of it is opened with. */
static struct redis_options
begin(struct probe *probe, struct redis_server *server)
{
	redis_server_start(server, NULL);
	probe_init(probe);
	return options_for(probe, server->url);
}

static void
open_and_greet(struct probe *probe, const struct redis_options *options)
{
	probe_open(probe, options);
	RUN_UNTIL(probe, probe->ready == 1);
}

static void
end(struct probe *probe, struct redis_server *server)
{
	probe_fini(probe);
	redis_server_stop(server, SIGTERM);
}

static int
ask(struct probe *probe, const char *a, const char *b, const char *c)
{
	struct span words[3] = { span_from(a), span_from(b), span_from(c) };
	size_t count = c ? 3 : b ? 2 : 1;

	return redis_command(probe->redis, words, count, on_reply, probe);
}

START_TEST(redis_answers_commands_in_order)
{
	struct redis_server server;
	struct probe probe;
	struct redis_options options = begin(&probe, &server);

	probe_open(&probe, &options);
	ck_assert_int_eq(ask(&probe, "PING", NULL, NULL), ERR_CONNECTION); /* not yet */
	RUN_UNTIL(&probe, probe.ready == 1);

	for (int i = 0; i < 1000; i++)
		ck_assert_int_eq(ask(&probe, "INCR", "n", NULL), 0);
	ck_assert_uint_eq(redis_pending(probe.redis), 1000);
	RUN_UNTIL(&probe, probe.replies == 1000);
	ck_assert_int_eq(probe.last_integer, 1000);

	ck_assert_int_eq(ask(&probe, "GET", "n", NULL), 0);
	RUN_UNTIL(&probe, probe.replies == 1001);
	ck_assert_str_eq(probe.last_text, "1000");
	ck_assert_int_eq(ask(&probe, "NOSUCH", NULL, NULL), 0);
	RUN_UNTIL(&probe, probe.replies == 1002);
	ck_assert_ptr_nonnull(strstr(probe.last_text, "unknown command"));
	ck_assert_uint_eq(probe.down, 0);
	end(&probe, &server);
}
END_TEST

static void
on_tree(struct redis *redis, const struct reply *reply, int error, void *data)
{
	struct probe *probe = data;

	(void)redis;
	ck_assert_int_eq(error, 0);
	ck_assert_int_eq(reply->kind, REPLY_ARRAY);
	ck_assert_uint_eq(reply->count, 4);
	ck_assert_int_eq(reply_integer(reply_at(reply, 0), 0), 7);
	ck_assert_uint_eq(reply_at(reply, 1)->count, 2);
	ck_assert(reply_is(reply_at(reply_at(reply, 1), 0), "a"));
	ck_assert_uint_eq(reply_at(reply_at(reply, 1), 1)->count, 1);
	ck_assert_int_eq(reply_at(reply, 2)->kind, REPLY_NIL);
	ck_assert_uint_eq(reply_text(reply_at(reply, 3)).len, 3);
	ck_assert_mem_eq(reply_text(reply_at(reply, 3)).data, "x\0y", 3);
	probe->replies++;
}

START_TEST(redis_nested_replies_keep_their_shape_and_bytes)
{
	struct redis_server server;
	struct redis_options options;
	struct probe probe;
	struct span words[] = { SPAN("EVAL"),
		                SPAN("return {7, {'a', {1}}, false, ARGV[1]}"), SPAN("0"),
		                SPAN("x\0y") };

	options = begin(&probe, &server);
	open_and_greet(&probe, &options);
	ck_assert_int_eq(redis_command(probe.redis, words, 4, on_tree, &probe), 0);
	RUN_UNTIL(&probe, probe.replies == 1);
	end(&probe, &server);
}
END_TEST

START_TEST(redis_greets_with_password_and_database)
{
	const char *const with_password[] = { "--requirepass", "p:w", NULL };
	struct redis_server server;
	struct redis_options options;
	struct probe probe;

	redis_server_start(&server, with_password);
	probe_init(&probe);
	options = options_for(&probe, server.url);
	(void)snprintf(options.url.password, sizeof options.url.password, "p:w");
	options.url.database = 3;
	open_and_greet(&probe, &options);
	ck_assert_int_eq(ask(&probe, "CLIENT", "INFO", NULL), 0);
	RUN_UNTIL(&probe, probe.replies == 1);
	ck_assert_ptr_nonnull(strstr(probe.last_text, " name=test "));
	ck_assert_ptr_nonnull(strstr(probe.last_text, " db=3 "));
	probe_fini(&probe);

	probe_init(&probe);
	options = options_for(&probe, server.url);
	(void)snprintf(options.url.password, sizeof options.url.password, "wrong");
	probe_open(&probe, &options);
	RUN_UNTIL(&probe, probe.down == 1);
	ck_assert_uint_eq(probe.ready, 0);
	ck_assert_ptr_nonnull(strstr(probe.down_message, "AUTH was refused: WRONGPASS"));
	probe_fini(&probe);

	probe_init(&probe);
	options = options_for(&probe, server.url);
	probe_open(&probe, &options);
	RUN_UNTIL(&probe, probe.down == 1);
	ck_assert_ptr_nonnull(strstr(probe.down_message, "NOAUTH"));
	end(&probe, &server);
}
END_TEST

START_TEST(redis_a_missing_server_is_reported_once_per_try)
{
	char path[TEMP_PATH_SIZE], url[160];
	struct redis_options options;
	struct probe probe;

	temp_path("nobody.sock", path);
	(void)snprintf(url, sizeof url, "unix://%s", path);
	probe_init(&probe);
	probe.wait_ms = 1;
	options = options_for(&probe, url);
	probe_open(&probe, &options);
	ck_assert_uint_eq(probe.down, 0);   /* never from within the call */
	RUN_UNTIL(&probe, probe.down >= 5); /* one turn may hold two tries */
	ck_assert_int_eq(probe.last_error, ERR_CONNECTION);
	ck_assert_uint_eq(probe.ready, 0);
	probe_fini(&probe);
}
END_TEST

START_TEST(redis_a_refused_tcp_connection_is_reported)
{
	struct redis_options options;
	struct probe probe;

	probe_init(&probe);
	options = options_for(&probe, "redis://127.0.0.1:1"); /* nobody listens there */
	probe_open(&probe, &options);
	RUN_UNTIL(&probe, probe.down == 1);
	ck_assert_int_eq(probe.last_error, ERR_CONNECTION);
	ck_assert_ptr_nonnull(strstr(probe.down_message, "refused"));
	probe_fini(&probe);
}
END_TEST

START_TEST(redis_killed_server_loses_commands_and_the_next_one_is_found)
{
	struct redis_server server, again;
	struct redis_options options;
	struct probe probe;
	char first[108];

	options = begin(&probe, &server);
	probe.wait_ms = 5;
	open_and_greet(&probe, &options);
	(void)kill(server.pid, SIGSTOP);
	for (int i = 0; i < 10; i++)
		ck_assert_int_eq(ask(&probe, "PING", NULL, NULL), 0);
	(void)snprintf(first, sizeof first, "%s", server.socket);
	redis_server_stop(&server, SIGKILL);
	RUN_UNTIL(&probe, probe.lost == 10);
	ck_assert_int_eq(probe.last_error, ERR_CONNECTION);
	RUN_UNTIL(&probe, probe.down >= 2);

	redis_server_start(&again, NULL);
	(void)unlink(first);
	ck_assert_int_eq(symlink(again.socket, first), 0);
	RUN_UNTIL(&probe, probe.ready == 2);
	ck_assert_int_eq(ask(&probe, "PING", NULL, NULL), 0);
	RUN_UNTIL(&probe, probe.replies == 1);
	ck_assert_str_eq(probe.last_text, "PONG");
	probe_fini(&probe);
	redis_server_stop(&again, SIGTERM);
}
END_TEST

static void
ask_for_much(struct probe *probe)
{
	(void)ask(probe, "GET", "much", NULL);
}

START_TEST(redis_hints_at_its_buffer_limit_when_it_hangs_up_again_and_again)
{
	static char much[1 << 20];
	struct redis_server server;
	struct probe probe;
	struct redis_options options = begin(&probe, &server);

	open_and_greet(&probe, &options);
	memset(much, 'x', sizeof much - 1);
	ck_assert_int_eq(ask(&probe, "SET", "much", much), 0);
	{
		const struct span words[] = { SPAN("CONFIG"), SPAN("SET"),
			                      SPAN("client-output-buffer-limit"),
			                      SPAN("normal 100000 0 0") };

		ck_assert_int_eq(redis_command(probe.redis, words, ARRAY_SIZE(words),
		                               on_reply, &probe),
		                 0);
	}
	RUN_UNTIL(&probe, probe.replies == 2);
	probe.when_ready = ask_for_much;
	probe.wait_ms = 1;
	ask_for_much(&probe);
	RUN_UNTIL(&probe, probe.down == 2);
	ck_assert_ptr_null(strstr(probe.down_message, "limit"));
	RUN_UNTIL(&probe, probe.down == 3);
	ck_assert_ptr_nonnull(strstr(probe.down_message, "client-output-buffer-limit"));
	end(&probe, &server);
}
END_TEST

START_TEST(redis_a_stopped_server_times_out)
{
	struct redis_server server;
	struct probe probe;
	struct redis_options options = begin(&probe, &server);

	options.command_timeout_ms = 100;
	open_and_greet(&probe, &options);
	(void)kill(server.pid,
	           SIGSTOP); /* the socket stays alive: nothing but time tells */
	ck_assert_int_eq(ask(&probe, "PING", NULL, NULL), 0);
	ck_assert_int_eq(ask(&probe, "PING", NULL, NULL), 0);
	RUN_UNTIL(&probe, probe.down == 1);
	ck_assert_uint_eq(probe.lost, 2);
	ck_assert_int_eq(probe.last_error, ERR_TIMEOUT);
	ck_assert_ptr_nonnull(strstr(probe.down_message, "no answer for 100 ms"));
	probe_fini(&probe);
	redis_server_stop(&server, SIGKILL);
}
END_TEST

START_TEST(redis_a_blocking_command_may_have_its_own_time)
{
	struct redis_server server;
	struct redis_options options;
	struct probe probe;
	struct span words[] = { SPAN("BLPOP"), SPAN("nothing"), SPAN("1") };

	options = begin(&probe, &server);
	options.command_timeout_ms = 500;
	open_and_greet(&probe, &options);
	ck_assert_int_eq(
		redis_command_within(probe.redis, 60000, words, 3, on_reply, &probe), 0);
	ck_assert_int_eq(ask(&probe, "PING", NULL, NULL),
	                 0); /* waits behind it, rightly */
	RUN_UNTIL(&probe, probe.replies == 2);
	ck_assert_uint_eq(probe.down, 0);
	end(&probe, &server);
}
END_TEST

START_TEST(redis_a_full_pipeline_refuses_and_recovers)
{
	struct redis_server server;
	struct probe probe;
	struct redis_options options = begin(&probe, &server);

	options.pipeline_max = 4; /* also the greeting's size */
	open_and_greet(&probe, &options);
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(ask(&probe, "PING", NULL, NULL), 0);
	ck_assert_int_eq(ask(&probe, "PING", NULL, NULL), ERR_FULL);
	RUN_UNTIL(&probe, probe.replies == 4);
	ck_assert_int_eq(ask(&probe, "PING", NULL, NULL), 0);
	RUN_UNTIL(&probe, probe.replies == 5);
	end(&probe, &server);
}
END_TEST

static void
destroy_now(struct probe *probe)
{
	ck_assert_int_eq(ask(probe, "PING", NULL, NULL), 0);
	redis_destroy(probe->redis, on_destroyed, probe);
}

START_TEST(redis_may_be_destroyed_from_its_own_callback)
{
	struct redis_server server;
	struct probe probe;
	struct redis_options options = begin(&probe, &server);

	probe.when_ready = destroy_now;
	probe_open(&probe, &options);
	RUN_UNTIL(&probe, probe.closed);
	ck_assert_uint_eq(probe.lost, 1); /* one answer for each command, always */
	ck_assert_uint_eq(probe.down, 0);
	end(&probe, &server);
}
END_TEST

START_TEST(redis_dropping_the_connection_is_like_losing_it)
{
	struct redis_server server;
	struct probe probe;
	struct redis_options options = begin(&probe, &server);

	probe.wait_ms = 0;
	open_and_greet(&probe, &options);
	ck_assert_int_eq(ask(&probe, "PING", NULL, NULL), 0);
	redis_drop(probe.redis, "told to");
	ck_assert_uint_eq(probe.lost, 1);
	ck_assert_int_eq(ask(&probe, "PING", NULL, NULL), ERR_CONNECTION);
	RUN_UNTIL(&probe, probe.ready == 2);
	ck_assert_uint_eq(probe.down, 1);
	ck_assert_str_eq(probe.down_message, "told to");
	end(&probe, &server);
}
END_TEST

static void
meet(enum fake_manner manner, uint32_t answers, int error, const char *message)
{
	char path[TEMP_PATH_SIZE], url[160];
	struct redis_options options;
	struct fake_server fake;
	struct probe probe;

	probe_init(&probe);
	temp_path("fake.sock", path);
	(void)snprintf(url, sizeof url, "unix://%s", path);
	fake_server_start(&fake, &probe.loop, path, manner, answers);
	options = options_for(&probe, url);
	if (manner == FAKE_SILENT && answers < 2)
		options.connect_timeout_ms = 150;
	if (manner == FAKE_SILENT)
		options.command_timeout_ms = 150;
	probe_open(&probe, &options);
	if (answers >= 2) { /* CLIENT SETNAME and PING */
		RUN_UNTIL(&probe, probe.ready == 1);
		ck_assert_int_eq(ask(&probe, "GET", "x", NULL), 0);
	}
	RUN_UNTIL(&probe, probe.down == 1);
	ck_assert_int_eq(probe.last_error, error);
	ck_assert_uint_eq(probe.lost, answers >= 2 ? 1 : 0);
	ck_assert_msg(strstr(probe.down_message, message) != NULL, "%s",
	              probe.down_message);
	fake_server_stop(&fake);
	probe_fini(&probe);
}

START_TEST(redis_survives_rude_and_dead_peers)
{
	meet(FAKE_SILENT, 0, ERR_TIMEOUT, "no connection within 150 ms");
	meet(FAKE_SILENT, 1, ERR_TIMEOUT, "no connection within 150 ms");
	meet(FAKE_SILENT, 2, ERR_TIMEOUT, "no answer for 150 ms");
	meet(FAKE_CLOSES, 0, ERR_CONNECTION, "");
	meet(FAKE_CLOSES, 2, ERR_CONNECTION, "");
	meet(FAKE_HALVES, 0, ERR_CONNECTION, "");
	meet(FAKE_HALVES, 2, ERR_CONNECTION, "");
	meet(FAKE_GARBAGE, 0, ERR_CONNECTION, "Protocol error");
	meet(FAKE_GARBAGE, 2, ERR_CONNECTION, "Protocol error");
}
END_TEST

SUITE_MAIN_WITH_REDIS("redis", redis_answers_commands_in_order,
                      redis_nested_replies_keep_their_shape_and_bytes,
                      redis_greets_with_password_and_database,
                      redis_a_missing_server_is_reported_once_per_try,
                      redis_a_refused_tcp_connection_is_reported,
                      redis_killed_server_loses_commands_and_the_next_one_is_found,
                      redis_hints_at_its_buffer_limit_when_it_hangs_up_again_and_again,
                      redis_a_stopped_server_times_out,
                      redis_a_blocking_command_may_have_its_own_time,
                      redis_a_full_pipeline_refuses_and_recovers,
                      redis_may_be_destroyed_from_its_own_callback,
                      redis_dropping_the_connection_is_like_losing_it,
                      redis_survives_rude_and_dead_peers)
