#include "common/io/log.h"
#include "tests/lib/suite.h"

#include <jansson.h>
#include <unistd.h>

static uint64_t clock_ms;
static int reader = -1;

static uint64_t
now(void)
{
	return clock_ms;
}

static void
start(bool json, enum log_level level)
{
	int pipes[2];

	ck_assert_int_eq(pipe(pipes), 0);
	reader = pipes[0];
	clock_ms = 1796000000123;
	log_init(&(struct log_options){ .program = "test",
	                                .level = level,
	                                .json = json,
	                                .fd = pipes[1],
	                                .now_ms = now });
}

START_TEST(log_a_line_is_keys_and_values)
{
	char text[512] = "";
	ssize_t len;

	start(false, LOG_LEVEL_INFO);
	log_warning("connection lost", LOG_TEXT("address", "unix:///r.sock"),
	            LOG_NUMBER("retry_ms", -5), LOG_BOOL("again", true),
	            LOG_TEXT("none", NULL), LOG_ERROR(ERR_TIMEOUT));
	len = read(reader, text, sizeof text - 1);
	ck_assert_int_gt(len, 0);
	ck_assert_str_eq(text, "time=2026-11-30T00:53:20.123Z level=warning program=test "
	                       "event=\"connection lost\" address=unix:///r.sock "
	                       "retry_ms=-5 again=true none=\"\" error=\"timed out\"\n");
}
END_TEST

START_TEST(log_untrusted_text_cannot_forge_a_line)
{
	char text[512] = "";

	start(false, LOG_LEVEL_INFO);
	log_info("job", LOG_TEXT("ref", "a\nlevel=error \x1b[2J\"x\""));
	ck_assert_int_gt(read(reader, text, sizeof text - 1), 0);
	ck_assert_ptr_nonnull(
		strstr(text, "ref=\"a\\nlevel=error \\x1b[2J\\\"x\\\"\"\n"));
	ck_assert_ptr_eq(strchr(text, '\n'), text + strlen(text) - 1);
}
END_TEST

START_TEST(log_json_lines_parse_whatever_the_values)
{
	char text[LOG_LINE_MAX + 1] = "";
	json_t *object;

	start(true, LOG_LEVEL_INFO);
	log_info("job done",
	         LOG_TEXT("ref", "\xff\x1b\n\"\\ caf\xc3\xa9 "
	                         "\xe2\x80\xae\xf3\xa0\x81\x81\xe2\x80"),
	         LOG_NUMBER("took_ms", 12), LOG_BOOL("late", false));
	ck_assert_int_gt(read(reader, text, sizeof text - 1), 0);
	object = json_loads(text, 0, NULL);
	ck_assert_ptr_nonnull(object);
	ck_assert_str_eq(json_string_value(json_object_get(object, "event")), "job done");
	ck_assert_str_eq(json_string_value(json_object_get(object, "level")), "info");
	ck_assert_str_eq(json_string_value(json_object_get(object, "ref")),
	                 "\xc3\xbf\x1b\n\"\\ caf\xc3\xa9 "
	                 "\xe2\x80\xae\xf3\xa0\x81\x81\xc3\xa2\xc2\x80");
	ck_assert_int_eq(json_integer_value(json_object_get(object, "took_ms")), 12);
	ck_assert(json_is_false(json_object_get(object, "late")));
	json_decref(object);
}
END_TEST

START_TEST(log_lines_below_the_level_are_not_written)
{
	char text[512] = "";

	start(false, LOG_LEVEL_WARNING);
	ck_assert(!log_wants(LOG_LEVEL_INFO));
	log_info("quiet");
	log_debug("quieter");
	log_error("loud");
	ck_assert_int_gt(read(reader, text, sizeof text - 1), 0);
	ck_assert_ptr_null(strstr(text, "quiet"));
	ck_assert_ptr_nonnull(strstr(text, "event=loud"));
}
END_TEST

static void
complain(void)
{
	log_warning("again");
}

static unsigned
lines_in(const char *text)
{
	unsigned lines = 0;

	for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
		lines++;
	return lines;
}

START_TEST(log_a_call_site_is_quiet_after_its_burst_and_says_so)
{
	static char text[64 * 1024];

	start(false, LOG_LEVEL_INFO);
	for (int i = 0; i < LOG_BURST + 7; i++)
		complain();
	log_info("another site speaks");
	ck_assert_int_gt(read(reader, text, sizeof text - 1), 0);
	ck_assert_uint_eq(lines_in(text), LOG_BURST + 1);
	ck_assert_ptr_nonnull(strstr(text, "another site"));

	memset(text, 0, sizeof text);
	clock_ms += LOG_WINDOW_MS;
	complain();
	ck_assert_int_gt(read(reader, text, sizeof text - 1), 0);
	ck_assert_ptr_nonnull(strstr(text, "event=again suppressed=7\n"));
}
END_TEST

START_TEST(log_that_nobody_reads_stops_nobody_and_says_what_it_left_out)
{
	static char text[64 * 1024 + 1];
	uint32_t lines = 0;

	start(false, LOG_LEVEL_INFO);
	for (int i = 0; i < 4000; i++) { /* more than the pipe holds */
		clock_ms += i % LOG_BURST == 0 ? LOG_WINDOW_MS : 0;
		complain();
	}
	while (lines_in(text) == 0 || !strstr(text, "suppressed=")) {
		memset(text, 0, sizeof text);
		clock_ms += LOG_WINDOW_MS;
		ck_assert_int_gt(read(reader, text, sizeof text - 1), 0);
		lines += lines_in(text);
		complain();
	}
	ck_assert_uint_lt(lines, 4000);
	ck_assert_int_eq(text[strlen(text) - 1], '\n'); /* all of them whole */
}
END_TEST

START_TEST(log_fields_that_do_not_fit_are_left_out_whole)
{
	static char long_text[2 * LOG_LINE_MAX], text[2 * LOG_LINE_MAX];
	json_t *object;

	memset(long_text, '"', sizeof long_text - 1);
	start(true, LOG_LEVEL_INFO);
	log_info("long", LOG_TEXT("a", long_text), LOG_TEXT("b", long_text),
	         LOG_TEXT("c", long_text), LOG_TEXT("d", long_text),
	         LOG_TEXT("e", long_text), LOG_NUMBER("last", 1));
	ck_assert_int_gt(read(reader, text, sizeof text - 1), 0);
	ck_assert_uint_le(strlen(text), LOG_LINE_MAX);
	object = json_loads(text, 0, NULL);
	ck_assert_ptr_nonnull(object);
	ck_assert_ptr_nonnull(json_object_get(object, "a"));
	ck_assert_ptr_null(json_object_get(object, "e"));
	ck_assert_int_eq(json_integer_value(json_object_get(object, "last")), 1);
	json_decref(object);
}
END_TEST

START_TEST(log_levels_are_four_words)
{
	enum log_level level = LOG_LEVEL_COUNT;

	ck_assert_int_eq(log_level_parse(SPAN("debug"), &level), 0);
	ck_assert_int_eq(level, LOG_LEVEL_DEBUG);
	ck_assert_int_eq(log_level_parse(SPAN("error"), &level), 0);
	ck_assert_int_eq(level, LOG_LEVEL_ERROR);
	ck_assert_int_eq(log_level_parse(SPAN("verbose"), &level), ERR_MALFORMED);
}
END_TEST

SUITE_MAIN("log", log_a_line_is_keys_and_values, log_untrusted_text_cannot_forge_a_line,
           log_json_lines_parse_whatever_the_values,
           log_lines_below_the_level_are_not_written,
           log_a_call_site_is_quiet_after_its_burst_and_says_so,
           log_that_nobody_reads_stops_nobody_and_says_what_it_left_out,
           log_fields_that_do_not_fit_are_left_out_whole, log_levels_are_four_words)
