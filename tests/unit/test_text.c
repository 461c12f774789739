#include "common/text.h"
#include "tests/lib/suite.h"

START_TEST(text_numbers_are_strict)
{
	uint64_t value = 99;

	ck_assert_int_eq(text_parse_unsigned(SPAN("0"), 10, &value), 0);
	ck_assert_uint_eq(value, 0);
	ck_assert_int_eq(
		text_parse_unsigned(SPAN("18446744073709551615"), UINT64_MAX, &value), 0);
	ck_assert_uint_eq(value, UINT64_MAX);
	ck_assert_int_eq(
		text_parse_unsigned(SPAN("18446744073709551616"), UINT64_MAX, &value),
		ERR_LIMIT);
	ck_assert_int_eq(text_parse_unsigned(SPAN("11"), 10, &value), ERR_LIMIT);
	ck_assert_int_eq(text_parse_unsigned(SPAN(""), 10, &value), ERR_MALFORMED);
	ck_assert_int_eq(text_parse_unsigned(SPAN("+1"), 10, &value), ERR_MALFORMED);
	ck_assert_int_eq(text_parse_unsigned(SPAN(" 1"), 10, &value), ERR_MALFORMED);
	ck_assert_int_eq(text_parse_unsigned(SPAN("0x1"), 10, &value), ERR_MALFORMED);
	ck_assert_uint_eq(value, UINT64_MAX);
}
END_TEST

START_TEST(text_trim_takes_white_space_off_both_ends_only)
{
	ck_assert(span_equals(text_trim(SPAN(" \t a b\r\n")), SPAN("a b")));
	ck_assert(span_equals(text_trim(SPAN("a")), SPAN("a")));
	ck_assert_uint_eq(text_trim(SPAN(" \r\n\t")).len, 0);
	ck_assert_uint_eq(text_trim((struct span){ NULL, 0 }).len, 0);
}
END_TEST

START_TEST(text_durations_need_a_unit)
{
	uint64_t ms = 0;

	ck_assert_int_eq(text_parse_duration(SPAN("250ms"), &ms), 0);
	ck_assert_uint_eq(ms, 250);
	ck_assert_int_eq(text_parse_duration(SPAN("30s"), &ms), 0);
	ck_assert_uint_eq(ms, 30000);
	ck_assert_int_eq(text_parse_duration(SPAN("5m"), &ms), 0);
	ck_assert_uint_eq(ms, 300000);
	ck_assert_int_eq(text_parse_duration(SPAN("24h"), &ms), 0);
	ck_assert_uint_eq(ms, 86400000);
	ck_assert_int_eq(text_parse_duration(SPAN("0s"), &ms), 0);
	ck_assert_uint_eq(ms, 0);
	ck_assert_int_eq(text_parse_duration(SPAN("30"), &ms), ERR_MALFORMED);
	ck_assert_int_eq(text_parse_duration(SPAN("s"), &ms), ERR_MALFORMED);
	ck_assert_int_eq(text_parse_duration(SPAN("30 s"), &ms), ERR_MALFORMED);
	ck_assert_int_eq(text_parse_duration(SPAN("1h30m"), &ms), ERR_MALFORMED);
	ck_assert_int_eq(text_parse_duration(SPAN("-1s"), &ms), ERR_MALFORMED);
	ck_assert_int_eq(text_parse_duration(SPAN("999999999999999999d"), &ms),
	                 ERR_LIMIT);
}
END_TEST

START_TEST(text_sizes_need_a_unit)
{
	uint64_t bytes = 0;

	ck_assert_int_eq(text_parse_size(SPAN("64k"), &bytes), 0);
	ck_assert_uint_eq(bytes, 65536);
	ck_assert_int_eq(text_parse_size(SPAN("200b"), &bytes), 0);
	ck_assert_uint_eq(bytes, 200);
	ck_assert_int_eq(text_parse_size(SPAN("2g"), &bytes), 0);
	ck_assert_uint_eq(bytes, (uint64_t)2 << 30);
	ck_assert_int_eq(text_parse_size(SPAN("64"), &bytes), ERR_MALFORMED);
	ck_assert_int_eq(text_parse_size(SPAN("64kb"), &bytes), ERR_MALFORMED);
	ck_assert_int_eq(text_parse_size(SPAN("18446744073709551615g"), &bytes),
	                 ERR_LIMIT);
}
END_TEST

START_TEST(text_durations_and_sizes_print_in_the_largest_exact_unit)
{
	static const struct {
		uint64_t ms;
		const char *text;
	} durations[] = {
		{ 0, "0s" },
		{ 1, "1ms" },
		{ 1000, "1s" },
		{ 1500, "1500ms" },
		{ 90000, "90s" },
		{ 300000, "5m" },
		{ 86400000, "1d" },
		{ 3600000, "1h" },
		{ UINT64_MAX, "18446744073709551615ms" },
	};
	char text[TEXT_NUMBER_SIZE];

	for (size_t i = 0; i < ARRAY_SIZE(durations); i++) {
		uint64_t back;

		ck_assert_uint_eq(text_print_duration(durations[i].ms, text),
		                  strlen(text));
		ck_assert_str_eq(text, durations[i].text);
		ck_assert_int_eq(text_parse_duration(span_from(text), &back), 0);
		ck_assert_uint_eq(back, durations[i].ms);
	}
	(void)text_print_size(65536, text);
	ck_assert_str_eq(text, "64k");
	(void)text_print_size(1000, text);
	ck_assert_str_eq(text, "1000b");
	(void)text_print_size(0, text);
	ck_assert_str_eq(text, "0b");
}
END_TEST

START_TEST(text_decimals_are_exact)
{
	char text[TEXT_NUMBER_SIZE];
	uint64_t value = 0;

	ck_assert_int_eq(text_parse_decimal(SPAN("1.25"), 6, &value), 0);
	ck_assert_uint_eq(value, 1250000);
	(void)text_print_decimal(value, 6, text);
	ck_assert_str_eq(text, "1.25");
	ck_assert_int_eq(text_parse_decimal(SPAN("0.025"), 3, &value), 0);
	ck_assert_uint_eq(value, 25);
	(void)text_print_decimal(value, 3, text);
	ck_assert_str_eq(text, "0.025");
	ck_assert_int_eq(text_parse_decimal(SPAN("3"), 6, &value), 0);
	ck_assert_uint_eq(value, 3000000);
	(void)text_print_decimal(value, 6, text);
	ck_assert_str_eq(text, "3");
	ck_assert_int_eq(text_parse_decimal(SPAN("0.0001"), 3, &value), ERR_MALFORMED);
	ck_assert_int_eq(text_parse_decimal(SPAN("1."), 3, &value), ERR_MALFORMED);
	ck_assert_int_eq(text_parse_decimal(SPAN(".5"), 3, &value), ERR_MALFORMED);
	ck_assert_int_eq(text_parse_decimal(SPAN("1e3"), 3, &value), ERR_MALFORMED);
	ck_assert_int_eq(text_parse_decimal(SPAN("18446744073709551615"), 1, &value),
	                 ERR_LIMIT);
}
END_TEST

START_TEST(text_booleans_are_two_words)
{
	bool value = false;

	ck_assert_int_eq(text_parse_bool(SPAN("true"), &value), 0);
	ck_assert(value);
	ck_assert_int_eq(text_parse_bool(SPAN("false"), &value), 0);
	ck_assert(!value);
	ck_assert_int_eq(text_parse_bool(SPAN("yes"), &value), ERR_MALFORMED);
	ck_assert_int_eq(text_parse_bool(SPAN("True"), &value), ERR_MALFORMED);
}
END_TEST

START_TEST(text_names_are_safe_in_keys)
{
	char longest[TEXT_NAME_MAX + 1];

	memset(longest, 'a', sizeof longest);
	ck_assert(text_is_name(SPAN("triage_v2.Prod-eu")));
	ck_assert(text_is_name((struct span){ longest, TEXT_NAME_MAX }));
	ck_assert(!text_is_name((struct span){ longest, TEXT_NAME_MAX + 1 }));
	ck_assert(!text_is_name(SPAN("")));
	ck_assert(!text_is_name(SPAN("a b")));
	ck_assert(!text_is_name(SPAN("a:b")));
	ck_assert(!text_is_name(SPAN("{a}")));
	ck_assert(!text_is_name(SPAN("a\0")));
	ck_assert(!text_is_name(SPAN("\xc3\xa9")));
}
END_TEST

START_TEST(text_utf8_follows_the_standard)
{
	ck_assert(text_is_utf8(SPAN("")));
	ck_assert(text_is_utf8(SPAN("a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80")));
	ck_assert(text_is_utf8(SPAN("\xf4\x8f\xbf\xbf")));
	ck_assert(!text_is_utf8(SPAN("\xf4\x90\x80\x80"))); /* above U+10FFFF */
	ck_assert(!text_is_utf8(SPAN("\xc0\x80")));         /* overlong */
	ck_assert(!text_is_utf8(SPAN("\xe0\x80\x80")));
	ck_assert(!text_is_utf8(SPAN("\xf0\x80\x80\x80")));
	ck_assert(!text_is_utf8(SPAN("\xed\xa0\x80"))); /* surrogate */
	ck_assert(!text_is_utf8(SPAN("\x80")));
	ck_assert(!text_is_utf8(SPAN("\xe2\x82")));
	ck_assert(!text_is_utf8(SPAN("\xff")));
}
END_TEST

START_TEST(text_escape_disarms_what_a_terminal_would_obey)
{
	char out[256];

	ck_assert_uint_eq(text_escape(SPAN("plain caf\xc3\xa9"), out, sizeof out), 11);
	ck_assert_str_eq(out, "plain caf\xc3\xa9");
	(void)text_escape(SPAN("\x1b]0;x\x07\r\n\t\"\\\0"), out, sizeof out);
	ck_assert_str_eq(out, "\\x1b]0;x\\x07\\r\\n\\t\\\"\\\\\\x00");
	(void)text_escape(SPAN("\xc2\x9b"), out, sizeof out); /* C1 CSI */
	ck_assert_str_eq(out, "\\xc2\\x9b");
	(void)text_escape(SPAN("a\xe2\x80\xae"
	                       "b"),
	                  out, sizeof out); /* right-to-left */
	ck_assert_str_eq(out, "a\\xe2\\x80\\xaeb");
	(void)text_escape(SPAN("\xff\xe2\x82"), out, sizeof out);
	ck_assert_str_eq(out, "\\xff\\xe2\\x82");
}
END_TEST

START_TEST(text_escape_cuts_at_a_whole_character)
{
	char out[8];

	ck_assert_uint_eq(text_escape(SPAN("1234567"), out, sizeof out), 7);
	ck_assert_str_eq(out, "1234567");
	ck_assert_uint_eq(text_escape(SPAN("12345678"), out, sizeof out), 7);
	ck_assert_str_eq(out, "1234...");
	ck_assert_uint_eq(text_escape(SPAN("123\xc3\xa9xyz"), out, sizeof out), 6);
	ck_assert_str_eq(out, "123...");
	(void)text_escape(SPAN("\xff\xff\xff"), out, sizeof out);
	ck_assert_str_eq(out, "\\xff...");
}
END_TEST

START_TEST(text_patterns_match_like_a_shell)
{
	ck_assert(text_matches(SPAN("*"), SPAN("")));
	ck_assert(text_matches(SPAN("claude-*"), SPAN("claude-sonnet-4-5")));
	ck_assert(text_matches(SPAN("*sonnet*5"), SPAN("claude-sonnet-4-5")));
	ck_assert(text_matches(SPAN("a?c"), SPAN("abc")));
	ck_assert(text_matches(SPAN("a**c"), SPAN("ac")));
	ck_assert(!text_matches(SPAN("a?c"), SPAN("ac")));
	ck_assert(!text_matches(SPAN("claude"), SPAN("claude-2")));
	ck_assert(!text_matches(SPAN("*x"), SPAN("xa")));
	ck_assert(!text_matches(SPAN(""), SPAN("a")));
	ck_assert(text_matches(SPAN(""), SPAN("")));
}
END_TEST

SUITE_MAIN("text", text_numbers_are_strict,
           text_trim_takes_white_space_off_both_ends_only, text_durations_need_a_unit,
           text_sizes_need_a_unit,
           text_durations_and_sizes_print_in_the_largest_exact_unit,
           text_decimals_are_exact, text_booleans_are_two_words,
           text_names_are_safe_in_keys, text_utf8_follows_the_standard,
           text_escape_disarms_what_a_terminal_would_obey,
           text_escape_cuts_at_a_whole_character, text_patterns_match_like_a_shell)
