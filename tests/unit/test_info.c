#include "common/info.h"
#include "tests/lib/suite.h"

static const char text[] = "# Server\r\nredis_version:7.2.4\r\nmaxmemory:0\r\n"
			   "maxmemory_policy:noeviction\r\nempty:\r\n"
			   "used:12345\nlast:x";
static const struct span info = { text, sizeof text - 1 };

START_TEST(info_finds_the_whole_name_only)
{
	ck_assert(span_equals(info_find(info, "redis_version"), SPAN("7.2.4")));
	ck_assert(span_equals(info_find(info, "maxmemory_policy"), SPAN("noeviction")));
	ck_assert(span_equals(info_find(info, "last"), SPAN("x")));
	ck_assert_uint_eq(info_find(info, "empty").len, 0);
	ck_assert_uint_eq(info_find(info, "memory").len, 0);
	ck_assert_uint_eq(info_find(info, "version").len, 0);
	ck_assert_uint_eq(info_find((struct span){ 0 }, "last").len, 0);
}
END_TEST

START_TEST(info_reads_the_number_in_front)
{
	ck_assert_uint_eq(info_number(info, "redis_version"), 7);
	ck_assert_uint_eq(info_number(info, "used"), 12345);
	ck_assert_uint_eq(info_number(info, "maxmemory_policy"), 0);
	ck_assert_uint_eq(info_number(info, "none"), 0);
}
END_TEST

SUITE_MAIN("info", info_finds_the_whole_name_only, info_reads_the_number_in_front)
