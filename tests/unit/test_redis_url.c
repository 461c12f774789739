#include "common/io/redis_url.h"
#include "tests/lib/suite.h"

static char message[REDIS_URL_ERROR_SIZE];

static struct redis_url
parse(const char *text)
{
	struct redis_url url;

	ck_assert_msg(redis_url_parse(span_from(text), &url, message) == 0, "%s: %s",
	              text, message);
	return url;
}

static void
expect_refusal(const char *text, int error)
{
	struct redis_url url = { .port = 1 };

	message[0] = '\0';
	ck_assert_msg(redis_url_parse(span_from(text), &url, message) == error, "%s",
	              text);
	ck_assert_msg(message[0] != '\0', "%s", text);
	ck_assert_uint_eq(url.port, 1);
}

START_TEST(redis_url_defaults_are_port_6379_and_database_0)
{
	struct redis_url url = parse("redis://example.org");

	ck_assert_str_eq(url.host, "example.org");
	ck_assert_uint_eq(url.port, 6379);
	ck_assert_uint_eq(url.database, 0);
	ck_assert_str_eq(url.user, "");
	ck_assert_str_eq(url.password, "");
	(void)parse("redis://example.org/");
}
END_TEST

START_TEST(redis_url_takes_user_password_port_and_database)
{
	struct redis_url url = parse("redis://al%40ice:p%3Ass@10.0.0.1:7000/12");

	ck_assert_str_eq(url.user, "al@ice");
	ck_assert_str_eq(url.password, "p:ss");
	ck_assert_str_eq(url.host, "10.0.0.1");
	ck_assert_uint_eq(url.port, 7000);
	ck_assert_uint_eq(url.database, 12);
	url = parse("redis://:secret@h");
	ck_assert_str_eq(url.user, "");
	ck_assert_str_eq(url.password, "secret");
}
END_TEST

START_TEST(redis_url_takes_ipv6_in_brackets)
{
	struct redis_url url = parse("redis://[::1]:7000/1");
	char text[REDIS_URL_TEXT_SIZE];

	ck_assert_str_eq(url.host, "::1");
	ck_assert_uint_eq(url.port, 7000);
	redis_url_print(&url, text);
	ck_assert_str_eq(text, "redis://[::1]:7000/1");
}
END_TEST

START_TEST(redis_url_takes_user_and_password_of_a_unix_socket)
{
	static const char *const texts[] = {
		"unix://ann:p%40s%2Fs@/run/redis@1.sock?db=3",
		"unix:///run/redis@1.sock?db=3&username=ann&password=p%40s%2Fs",
		"unix://ann@/run/redis@1.sock?password=p@s/s&db=3",
	};
	char text[REDIS_URL_TEXT_SIZE];

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct redis_url url = parse(texts[i]);

		ck_assert_str_eq(url.path, "/run/redis@1.sock");
		ck_assert_str_eq(url.user, "ann");
		ck_assert_str_eq(url.password, "p@s/s");
		ck_assert_uint_eq(url.database, 3);
		redis_url_print(&url, text);
		ck_assert_str_eq(text, "unix:///run/redis@1.sock?db=3");
	}
	ck_assert_str_eq(parse("unix://:secret@/s").password, "secret");
}
END_TEST

START_TEST(redis_url_takes_unix_sockets)
{
	struct redis_url url = parse("unix:///run/redis.sock?db=3");
	char text[REDIS_URL_TEXT_SIZE];

	ck_assert_str_eq(url.path, "/run/redis.sock");
	ck_assert_uint_eq(url.database, 3);
	redis_url_print(&url, text);
	ck_assert_str_eq(text, "unix:///run/redis.sock?db=3");
}
END_TEST

START_TEST(redis_url_prints_no_secret)
{
	struct redis_url url = parse("redis://alice:secret@h:1/2");
	char text[REDIS_URL_TEXT_SIZE];

	redis_url_print(&url, text);
	ck_assert_str_eq(text, "redis://h:1/2");
}
END_TEST

START_TEST(redis_url_refuses_tls_with_a_way_out)
{
	expect_refusal("rediss://h", ERR_UNSUPPORTED);
	ck_assert_ptr_nonnull(strstr(message, "stunnel"));
}
END_TEST

START_TEST(redis_url_refuses_what_it_does_not_understand)
{
	expect_refusal("", ERR_MALFORMED);
	expect_refusal("localhost:6379", ERR_MALFORMED);
	expect_refusal("http://h", ERR_MALFORMED);
	expect_refusal("redis://", ERR_MALFORMED);
	expect_refusal("redis://:pw@", ERR_MALFORMED);
	expect_refusal("redis://h:0", ERR_MALFORMED);
	expect_refusal("redis://h:65536", ERR_MALFORMED);
	expect_refusal("redis://h:6x", ERR_MALFORMED);
	expect_refusal("redis://h/x", ERR_MALFORMED);
	expect_refusal("redis://h/70000", ERR_MALFORMED);
	expect_refusal("redis://[::1", ERR_MALFORMED);
	expect_refusal("redis://[[]:1", ERR_MALFORMED);
	expect_refusal("redis://a b", ERR_MALFORMED);
	expect_refusal("redis://[::1]x", ERR_MALFORMED);
	expect_refusal("redis://a:%4@h", ERR_MALFORMED);
	expect_refusal("redis://a:%00@h", ERR_MALFORMED);
	expect_refusal("unix://relative.sock", ERR_MALFORMED);
	expect_refusal("unix://user:secret/run/s", ERR_MALFORMED);
	ck_assert_ptr_null(strstr(message, "secret"));
	expect_refusal("unix://user:secret@", ERR_MALFORMED);
	expect_refusal("unix:///s?", ERR_MALFORMED);
	expect_refusal("unix:///s?password=%0", ERR_MALFORMED);
	expect_refusal("unix:///s?db=1&secret", ERR_MALFORMED);
	ck_assert_ptr_null(strstr(message, "secret"));
	expect_refusal("unix://", ERR_MALFORMED);
	expect_refusal("unix:///s?database=1", ERR_MALFORMED);
	expect_refusal("unix:///s?db=x", ERR_MALFORMED);
}
END_TEST

SUITE_MAIN("redis_url", redis_url_defaults_are_port_6379_and_database_0,
           redis_url_takes_user_password_port_and_database,
           redis_url_takes_ipv6_in_brackets, redis_url_takes_unix_sockets,
           redis_url_takes_user_and_password_of_a_unix_socket, redis_url_prints_no_secret,
           redis_url_refuses_tls_with_a_way_out,
           redis_url_refuses_what_it_does_not_understand)
