#include "tests/lib/suite.h"
#include "worker/report.h"

static struct report_list reports;

static struct report_facts
facts(void)
{
	return (struct report_facts){
		.id = SPAN("7-1"),
		.ref = SPAN("a \"word\""),
		.upstream = SPAN("acme"),
		.state = "done",
		.http_status = 200,
		.usage = { .read = 5,
		           .written = 0,
		           .uncached = PROTOCOL_UNKNOWN,
		           .output = 2 },
		.attempts = 1,
		.delivery = 3,
		.sent_ms = 1764450000123,
		.total_ms = 40,
	};
}

static const char *
written(enum report_format format, struct span body)
{
	static char text[8192];
	struct report *report = report_create(&reports, SPAN("7-1"));
	struct report_facts known = facts();

	ck_assert_int_eq(report_write(report, &known, format, body), 0);
	ck_assert_uint_lt(report->result.len, sizeof text);
	memcpy(text, buffer_text(&report->result), report->result.len + 1);
	(void)report_destroy(report);
	return text;
}

START_TEST(report_says_what_is_known_and_null_where_tokens_are_not)
{
	ck_assert_str_eq(written(REPORT_JSON, SPAN("{\"x\":1}")),
	                 "{\"id\":\"7-1\",\"ref\":\"a \\\"word\\\"\",\"state\":\"done\","
	                 "\"upstream\":\"acme\",\"http_status\":200,\"format\":\"json\","
	                 "\"body\":{\"x\":1},\"usage\":{\"read\":5,\"written\":0,"
	                 "\"uncached\":null,\"output\":2},\"attempts\":1,\"delivery\":3,"
	                 "\"sent_ms\":1764450000123,\"total_ms\":40}");
}
END_TEST

START_TEST(report_carries_events_and_text_as_strings)
{
	ck_assert_ptr_nonnull(
		strstr(written(REPORT_SSE, SPAN("data: \"x\"\n\n")),
	               "\"format\":\"sse\",\"body\":\"data: \\\"x\\\"\\n\\n\""));
	ck_assert_ptr_nonnull(strstr(written(REPORT_TEXT, SPAN("hi\\")),
	                             "\"format\":\"text\",\"body\":\"hi\\\\\""));
}
END_TEST

START_TEST(report_carries_other_bytes_in_base64)
{
	static const struct {
		struct span bytes;
		const char *text;
	} rows[] = {
		{ SPAN("f"), "\"body\":\"Zg==\"" },
		{ SPAN("fo"), "\"body\":\"Zm8=\"" },
		{ SPAN("foo"), "\"body\":\"Zm9v\"" },
		{ SPAN("\xff\xfe\xfd\x00"), "\"body\":\"//79AA==\"" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		ck_assert_ptr_nonnull(
			strstr(written(REPORT_BASE64, rows[i].bytes), rows[i].text));
}
END_TEST

START_TEST(report_knows_the_format_of_bytes)
{
	ck_assert_int_eq(report_format_of(SPAN("")), REPORT_NONE);
	ck_assert_int_eq(report_format_of(SPAN(" [1] ")), REPORT_JSON);
	ck_assert_int_eq(report_format_of(SPAN("[1")), REPORT_TEXT);
	ck_assert_int_eq(report_format_of(SPAN("\xc3\xa4")), REPORT_TEXT);
	ck_assert_int_eq(report_format_of(SPAN("\xc3")), REPORT_BASE64);
}
END_TEST

START_TEST(report_replaces_a_body_that_is_too_large_by_its_size)
{
	struct span large = { "", REPORT_RESULT_MAX + 1 }; /* is not looked at */

	ck_assert_ptr_nonnull(strstr(written(REPORT_TEXT, large),
	                             "\"format\":\"result_too_large\","
	                             "\"size\":8388609,\"body\":null"));
}
END_TEST

START_TEST(report_makes_a_word_of_a_reason_and_cuts_a_text_at_a_character)
{
	struct report *report = report_create(&reports, SPAN("7-1"));
	char text[REPORT_TEXT_SIZE + 8];

	memset(text, 'x', sizeof text);
	memcpy(text + REPORT_TEXT_SIZE - 2, "\xc3\xa4", 2); /* would be halved */
	report_explain(report, "http 502", (struct span){ text, sizeof text });
	ck_assert_str_eq(report->reason, "http_502");
	ck_assert_uint_eq(strlen(report->text), REPORT_TEXT_SIZE - 2);
	(void)report_destroy(report);
}
END_TEST

START_TEST(report_list_destroys_what_is_left)
{
	struct report *first = report_create(&reports, SPAN("1-1"));
	struct report *second = report_create(&reports, SPAN("1-2"));

	ck_assert_ptr_eq(report_of(report_handle(first)), first);
	ck_assert_ptr_eq(report_of(report_handle(second)), second);
	report_list_fini(&reports);
	ck_assert_ptr_null(reports.first);
}
END_TEST

SUITE_MAIN("report", report_says_what_is_known_and_null_where_tokens_are_not,
           report_carries_events_and_text_as_strings,
           report_carries_other_bytes_in_base64, report_knows_the_format_of_bytes,
           report_replaces_a_body_that_is_too_large_by_its_size,
           report_makes_a_word_of_a_reason_and_cuts_a_text_at_a_character,
           report_list_destroys_what_is_left)
