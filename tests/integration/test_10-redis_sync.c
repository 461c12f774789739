/* The waiting client against a real Redis. */
#include "common/io/redis_sync.h"
#include "tests/lib/redis_server.h"
#include "tests/lib/suite.h"

#include <signal.h>
#include <stdio.h>

static struct redis_url
url_of(const char *text)
{
	char message[REDIS_URL_ERROR_SIZE];
	struct redis_url url;

	ck_assert_int_eq(redis_url_parse(span_from(text), &url, message), 0);
	return url;
}

START_TEST(redis_sync_answers_and_pipelines)
{
	struct span set[] = { SPAN("SET"), SPAN("k"), SPAN("a\0b") };
	struct span get[] = { SPAN("GET"), SPAN("k") };
	char message[REDIS_SYNC_MESSAGE_SIZE] = "";
	const struct reply *reply = NULL;
	struct redis_sync *sync;
	struct redis_server server;
	struct redis_url url;

	redis_server_start(&server, NULL);
	url = url_of(server.url);
	ck_assert_int_eq(redis_sync_open(&url, 60000, &sync, message), 0);
	ck_assert_int_eq(redis_sync_append(sync, set, 3), 0);
	ck_assert_int_eq(redis_sync_append(sync, get, 2), 0);
	ck_assert_int_eq(redis_sync_next(sync, 0, &reply), 0);
	ck_assert(reply_is(reply, "OK"));
	ck_assert_int_eq(redis_sync_next(sync, 0, &reply), 0);
	ck_assert_uint_eq(reply->text.len, 3);
	ck_assert_int_eq(redis_sync_command(sync, get, 1, 0, &reply), 0);
	ck_assert_int_eq(reply->kind, REPLY_ERROR);

	(void)kill(server.pid, SIGSTOP);
	ck_assert_int_eq(redis_sync_command(sync, get, 2, 50, &reply), ERR_TIMEOUT);
	ck_assert_ptr_nonnull(strstr(redis_sync_message(sync), "no answer in time"));
	ck_assert_int_eq(redis_sync_command(sync, get, 2, 50, &reply), ERR_CONNECTION);
	sync = redis_sync_close(sync);
	redis_server_stop(&server, SIGKILL);

	ck_assert_int_eq(redis_sync_open(&url, 60000, &sync, message), ERR_CONNECTION);
	ck_assert_ptr_nonnull(strstr(message, server.socket));
}
END_TEST

START_TEST(redis_sync_says_why_the_greeting_failed)
{
	const char *const with_password[] = { "--requirepass", "pw", NULL };
	char message[REDIS_SYNC_MESSAGE_SIZE] = "";
	struct redis_sync *sync;
	struct redis_server server;
	struct redis_url url;

	redis_server_start(&server, with_password);
	url = url_of(server.url);
	(void)snprintf(url.password, sizeof url.password, "wrong");
	ck_assert_int_eq(redis_sync_open(&url, 60000, &sync, message), ERR_UNSUPPORTED);
	ck_assert_ptr_nonnull(strstr(message, "refused AUTH: WRONGPASS"));
	(void)snprintf(url.password, sizeof url.password, "pw");
	url.database = 2;
	ck_assert_int_eq(redis_sync_open(&url, 60000, &sync, message), 0);
	sync = redis_sync_close(sync);
	ck_assert_ptr_null(redis_sync_close(sync));
	redis_server_stop(&server, SIGTERM);
}
END_TEST

SUITE_MAIN_WITH_REDIS("redis_sync", redis_sync_answers_and_pipelines,
                      redis_sync_says_why_the_greeting_failed)
