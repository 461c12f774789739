#include "common/buffer.h"
#include "tests/lib/suite.h"

#include <stdlib.h>

START_TEST(buffer_appends_text_numbers_and_ids)
{
	struct buffer buffer = BUFFER_INIT(1000);

	ck_assert_str_eq(buffer_text(&buffer), "");
	ck_assert_int_eq(buffer_append(&buffer, SPAN("a\0b")), 0);
	ck_assert_uint_eq(buffer.len, 3);
	buffer_clear(&buffer);

	(void)buffer_append_text(&buffer, "n=");
	(void)buffer_append_unsigned(&buffer, UINT64_MAX);
	(void)buffer_append_byte(&buffer, ' ');
	(void)buffer_append_signed(&buffer, INT64_MIN);
	(void)buffer_append_format(&buffer, " %s-%03d ", "x", 7);
	(void)buffer_append_id(&buffer, (struct id128){ 1, 2 });
	ck_assert_int_eq(buffer_error(&buffer), 0);
	ck_assert_str_eq(buffer_text(&buffer),
	                 "n=18446744073709551615 -9223372036854775808 x-007 "
	                 "00000000000000010000000000000002");
	buffer_fini(&buffer);
	ck_assert_ptr_null(buffer.data);
}
END_TEST

START_TEST(buffer_stops_at_its_limit_and_the_error_sticks)
{
	struct buffer buffer = BUFFER_INIT(4);

	ck_assert_int_eq(buffer_append(&buffer, SPAN("1234")), 0);
	ck_assert_int_eq(buffer_append_byte(&buffer, '5'), ERR_LIMIT);
	ck_assert_int_eq(buffer_append(&buffer, SPAN("")), ERR_LIMIT);
	ck_assert_int_eq(buffer_append_format(&buffer, "x"), ERR_LIMIT);
	ck_assert_int_eq(buffer_error(&buffer), ERR_LIMIT);
	ck_assert_str_eq(buffer_text(&buffer), "1234");
	buffer_clear(&buffer);
	ck_assert_int_eq(buffer_append(&buffer, SPAN("ok")), 0);
	buffer_fini(&buffer);
}
END_TEST

START_TEST(buffer_grows_by_many_small_appends)
{
	struct buffer buffer = BUFFER_INIT(1 << 20);

	for (int i = 0; i < 100000; i++)
		SUITE_HOLDS(buffer_append_byte(&buffer, (char)('a' + i % 26)) == 0);
	ck_assert_uint_eq(buffer.len, 100000);
	for (size_t i = 0; i < buffer.len; i++)
		SUITE_HOLDS(buffer.data[i] == 'a' + (int)(i % 26));
	ck_assert_int_eq(buffer.data[buffer.len], '\0');
	buffer_fini(&buffer);
}
END_TEST

START_TEST(buffer_reserve_and_commit_write_in_place)
{
	struct buffer buffer = BUFFER_INIT(100);
	char *to = buffer_reserve(&buffer, 10);

	ck_assert_ptr_nonnull(to);
	memcpy(to, "hello", 5);
	buffer_commit(&buffer, 5);
	ck_assert_str_eq(buffer_text(&buffer), "hello");
	buffer_truncate(&buffer, 2);
	ck_assert_str_eq(buffer_text(&buffer), "he");
	ck_assert_ptr_null(buffer_reserve(&buffer, 99));
	ck_assert_int_eq(buffer_error(&buffer), ERR_LIMIT);
	buffer_fini(&buffer);
}
END_TEST

START_TEST(buffer_json_strings_are_valid_whatever_the_bytes)
{
	struct buffer buffer = BUFFER_INIT(1000);

	(void)buffer_append_json(&buffer, SPAN("a\"\\\n\x01 \xc3\xa9\xff\xe2\x82"));
	ck_assert_int_eq(buffer_error(&buffer), 0);
	ck_assert_str_eq(buffer_text(&buffer), "\"a\\\"\\\\\\n\\u0001 \xc3\xa9"
	                                       "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
	buffer_fini(&buffer);
}
END_TEST

START_TEST(buffer_json_strings_hold_nothing_that_yaml_or_a_terminal_takes_amiss)
{
	struct buffer buffer = BUFFER_INIT(1000);

	(void)buffer_append_json(&buffer, SPAN("\x7f\xc2\x80\xc2\x9b[31m\xc2\xa0"
	                                       "\xe2\x80\xa8\xe2\x80\xa9\xef\xbb\xbf"
	                                       "\xef\xbf\xbe\xef\xbf\xbd"));
	ck_assert_str_eq(buffer_text(&buffer),
	                 "\"\\u007f\\u0080\\u009b[31m\xc2\xa0"
	                 "\\u2028\\u2029\\ufeff\\ufffe\xef\xbf\xbd\"");
	buffer_fini(&buffer);
}
END_TEST

START_TEST(buffer_escapes_untrusted_bytes)
{
	struct buffer buffer = BUFFER_INIT(1000);

	(void)buffer_append_text(&buffer, "name=");
	ck_assert_int_eq(buffer_append_escaped(&buffer, SPAN("a\x1b[31m")), 0);
	ck_assert_int_eq(buffer_append_escaped(&buffer, SPAN("")), 0);
	ck_assert_str_eq(buffer_text(&buffer), "name=a\\x1b[31m");
	buffer_fini(&buffer);
}
END_TEST

START_TEST(buffer_take_hands_the_bytes_over)
{
	struct buffer buffer = BUFFER_INIT(1000);
	size_t len = 77;
	char *data;

	data = buffer_take(&buffer, &len);
	ck_assert_str_eq(data, "");
	ck_assert_uint_eq(len, 0);
	free(data);

	(void)buffer_append_text(&buffer, "abc");
	data = buffer_take(&buffer, &len);
	ck_assert_str_eq(data, "abc");
	ck_assert_uint_eq(len, 3);
	ck_assert_uint_eq(buffer.len, 0);
	free(data);
	buffer_fini(&buffer);
	buffer_fini(NULL);
}
END_TEST

SUITE_MAIN("buffer", buffer_appends_text_numbers_and_ids,
           buffer_stops_at_its_limit_and_the_error_sticks,
           buffer_grows_by_many_small_appends, buffer_reserve_and_commit_write_in_place,
           buffer_json_strings_hold_nothing_that_yaml_or_a_terminal_takes_amiss,
           buffer_json_strings_are_valid_whatever_the_bytes,
           buffer_escapes_untrusted_bytes, buffer_take_hands_the_bytes_over)
