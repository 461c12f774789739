/* Hearing a channel: messages arrive, a restart is survived, the end is clean. */
#include "common/io/redis_listen.h"
#include "common/io/redis_sync.h"
#include "tests/lib/redis_server.h"
#include "tests/lib/temp.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define DEADLINE_MS 120000

struct hearing {
	uv_loop_t loop;
	uv_timer_t pulse; /* publishes until somebody hears */
	struct redis_listen *listen;
	struct redis_sync *speaker;
	unsigned pulses, heard;
	char last[64];
};

static void
on_message(struct span message, void *data)
{
	struct hearing *hearing = data;

	hearing->heard++;
	(void)snprintf(hearing->last, sizeof hearing->last, "%.*s", (int)message.len,
	               message.data);
}

static void
on_pulse(uv_timer_t *timer)
{
	struct span words[] = { SPAN("PUBLISH"), SPAN("a channel"), SPAN("hello") };
	struct hearing *hearing = timer->data;
	const struct reply *reply;

	ck_assert_uint_lt(hearing->pulses++, DEADLINE_MS / 10);
	if (hearing->speaker)
		ck_assert_int_eq(
			redis_sync_command(hearing->speaker, words, 3, 0, &reply), 0);
}

static void
speak_to(struct hearing *hearing, const struct redis_url *url)
{
	char message[REDIS_SYNC_MESSAGE_SIZE] = "";

	ck_assert_msg(redis_sync_open(url, 60000, &hearing->speaker, message) == 0, "%s",
	              message);
}

static struct redis_url
url_of(const struct redis_server *server)
{
	char message[REDIS_URL_ERROR_SIZE];
	struct redis_url url;

	ck_assert_int_eq(redis_url_parse(span_from(server->url), &url, message), 0);
	return url;
}

static void
begin(struct hearing *hearing, const struct redis_url *url)
{
	*hearing = (struct hearing){ 0 };
	ck_assert_int_eq(uv_loop_init(&hearing->loop), 0);
	ck_assert_int_eq(uv_timer_init(&hearing->loop, &hearing->pulse), 0);
	hearing->pulse.data = hearing;
	ck_assert_int_eq(uv_timer_start(&hearing->pulse, on_pulse, 10, 10), 0);
	speak_to(hearing, url);
	ck_assert_int_eq(redis_listen_create(&hearing->loop, url, SPAN("a channel"),
	                                     on_message, hearing, &hearing->listen),
	                 0);
}

static void
end(struct hearing *hearing)
{
	redis_listen_destroy(hearing->listen);
	redis_sync_close(hearing->speaker);
	uv_close((uv_handle_t *)&hearing->pulse, NULL);
	while (uv_run(&hearing->loop, UV_RUN_ONCE) != 0)
		continue;
	ck_assert_int_eq(uv_loop_close(&hearing->loop), 0);
}

START_TEST(redis_listen_hears_with_a_password)
{
	const char *const with_password[] = { "--requirepass", "pw", NULL };
	struct redis_server server;
	struct hearing hearing;
	struct redis_url url;

	redis_server_start(&server, with_password);
	url = url_of(&server);
	(void)snprintf(url.password, sizeof url.password, "pw");
	begin(&hearing, &url);
	while (hearing.heard < 3)
		uv_run(&hearing.loop, UV_RUN_ONCE);
	ck_assert_str_eq(hearing.last, "hello");
	end(&hearing);
	redis_server_stop(&server, SIGTERM);
}
END_TEST

START_TEST(redis_listen_comes_back_after_a_restart)
{
	struct redis_server server, again;
	struct hearing hearing;
	struct redis_url url, url_again;
	unsigned heard;

	redis_server_start(&server, NULL);
	url = url_of(&server);
	begin(&hearing, &url);
	while (hearing.heard == 0)
		uv_run(&hearing.loop, UV_RUN_ONCE);
	hearing.speaker = redis_sync_close(hearing.speaker);
	redis_server_stop(&server, SIGKILL);

	redis_server_start(&again, NULL);
	(void)unlink(server.socket);
	ck_assert_int_eq(symlink(again.socket, server.socket), 0);
	url_again = url_of(&again);
	speak_to(&hearing, &url_again);
	heard = hearing.heard;
	while (hearing.heard == heard)
		uv_run(&hearing.loop, UV_RUN_ONCE);
	end(&hearing);
	redis_server_stop(&again, SIGTERM);
}
END_TEST

START_TEST(redis_listen_ends_cleanly_with_nobody_there)
{
	struct redis_url url = { .port = 1, .host = "127.0.0.1" };
	struct redis_listen *listen;
	uv_loop_t loop;

	ck_assert_int_eq(uv_loop_init(&loop), 0);
	ck_assert_int_eq(
		redis_listen_create(&loop, &url, SPAN("x"), on_message, NULL, &listen),
		0);
	for (int i = 0; i < 3; i++)
		uv_run(&loop, UV_RUN_NOWAIT);
	redis_listen_destroy(listen);
	redis_listen_destroy(NULL);
	while (uv_run(&loop, UV_RUN_ONCE) != 0)
		continue;
	ck_assert_int_eq(uv_loop_close(&loop), 0);
}
END_TEST

SUITE_MAIN_WITH_REDIS("redis_listen", redis_listen_hears_with_a_password,
                      redis_listen_comes_back_after_a_restart,
                      redis_listen_ends_cleanly_with_nobody_there)
