#include "common/codec/tape.h"
#include "common/codec/tape_text.h"
#include "tests/lib/suite.h"

#include <stdio.h>
#include <stdlib.h>

static int
parse(const char *text, struct tape_error *ret_error)
{
	struct tape tape;
	struct tape_error error = { 0 };
	int err;

	tape_init(&tape);
	err = tape_parse(&tape, span_from(text), &error);
	tape_fini(&tape);
	if (ret_error)
		*ret_error = error;
	return err;
}

static const char *
canonical(const char *text)
{
	static char copy[512];
	struct buffer out = BUFFER_INIT(sizeof copy - 1);

	ck_assert_int_eq(parse(text, NULL), 0);
	tape_canonical(span_from(text), &out);
	ck_assert_int_eq(buffer_error(&out), 0);
	memcpy(copy, buffer_text(&out), out.len + 1);
	buffer_fini(&out);
	return copy;
}

START_TEST(tape_accepts_what_rfc_8259_allows)
{
	static const char *const good[] = {
		"0",
		"-0",
		" 1.5e-3 ",
		"1E+2",
		"123456789012345678901234567890",
		"\"\"",
		"true",
		"false",
		"null",
		"[]",
		"{}",
		"[ ]",
		"{ }",
		"\t\r\n [1 , 2]\n",
		"{\"a\":{\"b\":[{}]},\"\":0}",
		"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\\uABcd\"",
		"\"\\ud83d\\ude00\"",
		"\"\\ud83d\"",
		"\"\xf0\x9f\x98\x80 \xc3\xa9 \xe2\x82\xac \x7f\"",
		"{\"a\":1,\"a\":2}",
	};

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		ck_assert_msg(parse(good[i], NULL) == 0, "refused: %s", good[i]);
}
END_TEST

START_TEST(tape_refuses_everything_else_and_says_where)
{
	static const struct {
		const char *text;
		size_t offset;
		const char *what;
	} bad[] = {
		{ "", 0, "expected a value" },
		{ "  ", 2, "expected a value" },
		{ "nul", 0, "expected a value" },
		{ "nan", 0, "expected a value" },
		{ "01", 1, "more bytes behind the value" },
		{ "1.", 0, "a fraction needs digits" },
		{ ".5", 0, "expected a value" },
		{ "+1", 0, "expected a value" },
		{ "-", 0, "expected a number" },
		{ "1e", 0, "an exponent needs digits" },
		{ "1e+", 0, "an exponent needs digits" },
		{ "[1,]", 3, "expected a value" },
		{ "[1 2]", 3, "expected ',' or ']'" },
		{ "[1", 2, "expected ',' or ']'" },
		{ "[", 1, "expected a value" },
		{ "{\"a\"}", 4, "expected ':' behind a key" },
		{ "{\"a\":1,}", 7, "expected a key in quotes" },
		{ "{a:1}", 1, "expected a key in quotes" },
		{ "{\"a\":1", 6, "expected ',' or '}'" },
		{ "{1:1}", 1, "expected a key in quotes" },
		{ "[1}", 2, "expected ',' or ']'" },
		{ "{\"a\":1]", 6, "expected ',' or '}'" },
		{ "[],", 2, "more bytes behind the value" },
		{ "\"abc", 0, "unfinished string" },
		{ "\"a\\", 2, "unfinished string" },
		{ "\"a\\x\"", 2, "unknown escape" },
		{ "\"\\u12g4\"", 1, "\\u needs four hex digits" },
		{ "\"\\u12\"", 1, "\\u needs four hex digits" },
		{ "\"a\nb\"", 2, "raw control character in a string" },
		{ "\"12345678\x01\"", 9, "raw control character in a string" },
		{ "\"\x1f\"", 1, "raw control character in a string" },
		{ "\"\xff\"", 1, "not UTF-8" },
		{ "\"\xc0\xaf\"", 1, "not UTF-8" },         /* overlong */
		{ "\"\xe0\x80\xaf\"", 1, "not UTF-8" },     /* overlong */
		{ "\"\xed\xa0\x80\"", 1, "not UTF-8" },     /* a surrogate */
		{ "\"\xf4\x90\x80\x80\"", 1, "not UTF-8" }, /* above U+10FFFF */
		{ "\"\xe2\x82\"", 1, "not UTF-8" },
		{ "\xef\xbb\xbf{}", 0, "expected a value" }, /* a byte order mark */
		{ "'a'", 0, "expected a value" },
		{ "[1]// x", 3, "more bytes behind the value" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct tape_error error;

		ck_assert_msg(parse(bad[i].text, &error) == ERR_MALFORMED, "accepted: %s",
		              bad[i].text);
		ck_assert_msg(error.offset == bad[i].offset, "%s: offset %zu, not %zu",
		              bad[i].text, error.offset, bad[i].offset);
		ck_assert_str_eq(error.what, bad[i].what);
	}
}
END_TEST

START_TEST(tape_a_zero_byte_ends_nothing)
{
	struct tape tape;
	struct tape_error error;

	tape_init(&tape);
	ck_assert_int_eq(tape_parse(&tape, (struct span){ "[1\0]", 4 }, &error),
	                 ERR_MALFORMED);
	ck_assert_int_eq(tape_parse(&tape, (struct span){ "\"a\0b\"", 5 }, &error),
	                 ERR_MALFORMED);
	ck_assert_int_eq(tape_parse(&tape, (struct span){ "[1]\0", 4 }, &error),
	                 ERR_MALFORMED);
	tape_fini(&tape);
}
END_TEST

START_TEST(tape_tokens_lie_where_the_header_draws_them)
{
	struct tape tape;
	struct tape_error error;
	static const uint32_t next[] = { 7, 2, 5, 4, 5, 6, 7 };
	static const enum tape_type type[] = { TAPE_OBJECT, TAPE_STRING, TAPE_ARRAY,
		                               TAPE_NUMBER, TAPE_STRING, TAPE_STRING,
		                               TAPE_OBJECT };

	tape_init(&tape);
	ck_assert_int_eq(tape_parse(&tape, SPAN(" {\"a\":[1,\"x\"],\"b\":{}} "), &error),
	                 0);
	ck_assert_uint_eq(tape.count, 7);
	for (uint32_t i = 0; i < 7; i++) {
		ck_assert_uint_eq(tape.tokens[i].next, next[i]);
		ck_assert_uint_eq(tape.tokens[i].type, type[i]);
	}
	ck_assert(span_equals(tape_raw(&tape, 2), SPAN("[1,\"x\"]")));
	ck_assert_uint_eq(tape_count(&tape, 0), 2);
	ck_assert_uint_eq(tape_count(&tape, 2), 2);
	ck_assert_uint_eq(tape_count(&tape, 3), 0);
	ck_assert_uint_eq(tape_find(&tape, 0, "b"), 6);
	ck_assert_uint_eq(tape_find(&tape, 0, "c"), TAPE_NONE);
	ck_assert_uint_eq(tape_find(&tape, 2, "x"), TAPE_NONE);
	ck_assert_uint_eq(tape.depth, 2);
	tape_fini(&tape);
}
END_TEST

START_TEST(tape_below_the_tape_values_are_checked_but_not_listed)
{
	struct tape tape;
	struct tape_error error;
	uint32_t at = 0;

	tape_init(&tape);
	ck_assert_int_eq(tape_parse(&tape, SPAN("[[[[[[[[[1,[2]],3]]]]]]],4]"), &error),
	                 0);
	for (int i = 0; i < TAPE_LISTED; i++)
		at = tape_first(&tape, at);
	ck_assert(span_equals(tape_raw(&tape, at), SPAN("[1,[2]]")));
	ck_assert(tape.tokens[at].flags & TAPE_SHALLOW);
	ck_assert_uint_eq(tape_end(&tape, at), at + 1);
	ck_assert(span_equals(tape_raw(&tape, tape_next(&tape, at)), SPAN("3")));
	ck_assert_uint_eq(tape.depth, 10);
	ck_assert_int_eq(tape_parse(&tape, SPAN("[[[[[[[[[[[[[1,}]]]]]]]]]]]]]"), &error),
	                 ERR_MALFORMED);
	tape_fini(&tape);
}
END_TEST

START_TEST(tape_depth_has_a_limit_that_is_no_syntax_error)
{
	static char deep[2 * TAPE_DEPTH_MAX + 3];
	struct tape_error error;

	memset(deep, '[', TAPE_DEPTH_MAX);
	memset(deep + TAPE_DEPTH_MAX, ']', TAPE_DEPTH_MAX);
	ck_assert_int_eq(parse(deep, NULL), 0);
	memset(deep, '[', TAPE_DEPTH_MAX + 1);
	memset(deep + TAPE_DEPTH_MAX + 1, ']', TAPE_DEPTH_MAX + 1);
	ck_assert_int_eq(parse(deep, &error), ERR_LIMIT);
	ck_assert_str_eq(error.what, "nested too deep");
	ck_assert_uint_eq(error.offset, TAPE_DEPTH_MAX);
}
END_TEST

START_TEST(tape_values_have_a_limit_that_is_no_syntax_error)
{
	size_t len = 2 * (size_t)TAPE_TOKENS_MAX + 1;
	char *text = malloc(len + 1);
	struct tape tape;
	struct tape_error error;

	tape_init(&tape);
	for (size_t i = 0; i < len; i++)
		text[i] = i % 2 ? '0' : ',';
	text[0] = '[';
	text[len - 1] = ']';
	ck_assert_int_eq(tape_parse(&tape, (struct span){ text, len }, &error),
	                 ERR_LIMIT);
	ck_assert_str_eq(error.what, "too many values");
	text[len - 3] = ']';
	ck_assert_int_eq(tape_parse(&tape, (struct span){ text, len - 2 }, &error), 0);
	tape_fini(&tape);
	free(text);
}
END_TEST

START_TEST(tape_lone_surrogates_are_reported)
{
	static const struct {
		const char *text;
		bool lone;
	} cases[] = {
		{ "\"\\ud83d\\ude00\"", false }, { "\"\\ud83d\"", true },
		{ "\"\\ude00\\ud83d\"", true },  { "\"\\ud83d\\ud83d\\ude00\"", true },
		{ "\"\\ud83dx\"", true },        { "\"\\ud83d\\u0041\"", true },
		{ "\"\\ud83d\\ue000\"", true },  { "\"\\ud83d\\udbff\"", true },
		{ "{\"\\udfff\":1}", true },     { "\"\\uD800\\uDC00\"", false },
		{ "\"\\\\ud83d\"", false },
	};
	struct tape tape;
	struct tape_error error;

	tape_init(&tape);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		ck_assert_int_eq(tape_parse(&tape, span_from(cases[i].text), &error), 0);
		ck_assert_msg(tape.lone_surrogate == cases[i].lone, "%s", cases[i].text);
	}
	tape_fini(&tape);
}
END_TEST

START_TEST(tape_canonical_form_has_no_choice_left)
{
	ck_assert_str_eq(canonical(" { \"b\" : [ 1 , 2.0 ] ,\n\"a\":null } "),
	                 "{\"b\":[1,2.0],\"a\":null}");
	ck_assert_str_eq(canonical("\"a b\\u0020c \\/ \\u00e9 \\u20ac \\ud83d\\ude00\""),
	                 "\"a b c / \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\"");
	ck_assert_str_eq(
		canonical("\"\\u0022\\u005C\\u000a\\u0008\\u000C\\u000d\\u0009\""),
		"\"\\\"\\\\\\n\\b\\f\\r\\t\"");
	ck_assert_str_eq(canonical("\"\\u0000\\u001F\\u007f\""),
	                 "\"\\u0000\\u001f\x7f\"");
	ck_assert_str_eq(canonical("\"\\uD83D \\uDE00\""), "\"\\ud83d \\ude00\"");
	ck_assert_str_eq(canonical("\"\\\\\\\\\""), "\"\\\\\\\\\"");
	ck_assert_str_eq(canonical("[\"\\\\\" , \"\\\"\"  ]"), "[\"\\\\\",\"\\\"\"]");
	ck_assert_str_eq(canonical(" 1.50E+1 "), "1.50E+1");
	ck_assert_str_eq(canonical("\"\""), "\"\"");
}
END_TEST

START_TEST(tape_keys_are_found_through_their_escapes)
{
	struct tape tape;
	struct tape_error error;
	struct buffer text = BUFFER_INIT(64);
	uint32_t at;

	tape_init(&tape);
	ck_assert_int_eq(tape_parse(&tape,
	                            SPAN("{\"\\u0073ystem\":\"a\\nb\",\"x\":{\"y\":[]}}"),
	                            &error),
	                 0);
	at = tape_find(&tape, 0, "system");
	ck_assert_uint_eq(at, 2);
	ck_assert(tape_string_is(&tape, at, "a\nb"));
	ck_assert_int_eq(tape_string(&tape, at, &text), 0);
	ck_assert_str_eq(buffer_text(&text), "a\nb");
	ck_assert(tape_is(&tape, tape_path(&tape, 0, "x", "y", NULL), TAPE_ARRAY));
	ck_assert_uint_eq(tape_path(&tape, 0, "x", "z", "y", NULL), TAPE_NONE);
	ck_assert_int_eq(tape_string(&tape, 0, &text), ERR_MALFORMED);
	buffer_fini(&text);
	tape_fini(&tape);
}
END_TEST

START_TEST(tape_duplicate_keys_are_found_however_spelt)
{
	struct tape tape;
	struct tape_error error;
	struct buffer wide = BUFFER_INIT(1 << 20);
	uint32_t at;

	tape_init(&tape);
	ck_assert_int_eq(
		tape_parse(&tape, SPAN("{\"a\":1,\"b\":2,\"\\u0061\":3}"), &error), 0);
	ck_assert_uint_eq(tape_duplicate(&tape, 0), 5);
	ck_assert_int_eq(tape_parse(&tape, SPAN("{\"a\":{\"a\":1},\"aa\":2}"), &error),
	                 0);
	ck_assert_uint_eq(tape_duplicate(&tape, 0), TAPE_NONE);
	ck_assert_int_eq(tape_parse(&tape,
	                            SPAN("{\"\\ud800\":1,\"\\ud801\":2,\"\\ufffd\":3}"),
	                            &error),
	                 0);
	ck_assert_uint_eq(tape_duplicate(&tape, 0), TAPE_NONE);

	(void)buffer_append_text(&wide, "{\"first\":0");
	for (int i = 0; i < 1000; i++)
		(void)buffer_append_format(&wide, ",\"k%d\":%d", i, i);
	(void)buffer_append_text(&wide, "}");
	ck_assert_int_eq(tape_parse(&tape, buffer_span(&wide), &error), 0);
	ck_assert_uint_eq(tape_duplicate(&tape, 0), TAPE_NONE);
	buffer_truncate(&wide, wide.len - 1);
	(void)buffer_append_text(&wide, ",\"\\u006b500\":1}");
	ck_assert_int_eq(tape_parse(&tape, buffer_span(&wide), &error), 0);
	at = tape_duplicate(&tape, 0);
	ck_assert_uint_ne(at, TAPE_NONE);
	ck_assert(tape_string_is(&tape, at, "k500"));
	ck_assert_uint_eq(tape_next(&tape, at + 1), tape_end(&tape, 0));
	buffer_fini(&wide);
	tape_fini(&tape);
}
END_TEST

START_TEST(tape_integers_are_exact_or_refused)
{
	static const struct {
		const char *text;
		int err;
		int64_t value;
	} cases[] = {
		{ "0", 0, 0 },
		{ "-0", 0, 0 },
		{ "9223372036854775807", 0, INT64_MAX },
		{ "-9223372036854775808", 0, INT64_MIN },
		{ "9223372036854775808", ERR_MALFORMED, 0 },
		{ "-9223372036854775809", ERR_MALFORMED, 0 },
		{ "99999999999999999999", ERR_MALFORMED, 0 },
		{ "1.0", ERR_MALFORMED, 0 },
		{ "1e3", ERR_MALFORMED, 0 },
		{ "\"1\"", ERR_MALFORMED, 0 },
		{ "null", ERR_MALFORMED, 0 },
	};
	struct tape tape;
	struct tape_error error;

	tape_init(&tape);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int64_t value = 0;

		ck_assert_int_eq(tape_parse(&tape, span_from(cases[i].text), &error), 0);
		ck_assert_int_eq(tape_integer(&tape, 0, &value), cases[i].err);
		ck_assert_int_eq(value, cases[i].value);
	}
	ck_assert_int_eq(tape_integer(&tape, TAPE_NONE, &(int64_t){ 0 }), ERR_MALFORMED);
	tape_fini(&tape);
}
END_TEST

START_TEST(tape_text_blank_means_no_ink)
{
	ck_assert(tape_text_is_blank(SPAN("")));
	ck_assert(tape_text_is_blank(SPAN(" \\n\\t\\u0020\\r")));
	ck_assert(!tape_text_is_blank(SPAN(" \\n.")));
	ck_assert(!tape_text_is_blank(SPAN("\\u00a0")));
}
END_TEST

SUITE_MAIN("tape", tape_accepts_what_rfc_8259_allows,
           tape_refuses_everything_else_and_says_where, tape_a_zero_byte_ends_nothing,
           tape_tokens_lie_where_the_header_draws_them,
           tape_below_the_tape_values_are_checked_but_not_listed,
           tape_depth_has_a_limit_that_is_no_syntax_error,
           tape_values_have_a_limit_that_is_no_syntax_error,
           tape_lone_surrogates_are_reported, tape_canonical_form_has_no_choice_left,
           tape_keys_are_found_through_their_escapes,
           tape_duplicate_keys_are_found_however_spelt,
           tape_integers_are_exact_or_refused, tape_text_blank_means_no_ink)
