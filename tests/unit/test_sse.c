#include "common/codec/sse.h"
#include "tests/lib/suite.h"

#include <stdlib.h>

/* Events as "name=data|name=data|". */
struct heard {
	struct buffer text;
	int answer;
};

static int
on_event(void *context, const struct sse_event *event)
{
	struct heard *heard = context;

	(void)buffer_append(&heard->text, event->name);
	(void)buffer_append_byte(&heard->text, '=');
	(void)buffer_append(&heard->text, event->data);
	(void)buffer_append_byte(&heard->text, '|');
	return heard->answer;
}

/* Feeds `stream` in pieces of `step` bytes. */
static void
hear(const char *stream, size_t step, bool flush, struct heard *heard)
{
	struct sse sse;
	size_t len = strlen(stream);

	buffer_init(&heard->text, 1 << 16);
	heard->answer = 0;
	sse_init(&sse, 1 << 16, on_event, heard);
	for (size_t at = 0; at < len; at += step)
		ck_assert_int_eq(
			sse_feed(&sse, (struct span){ stream + at, MIN(step, len - at) }),
			0);
	if (flush)
		ck_assert_int_eq(sse_flush(&sse), 0);
	sse_fini(&sse);
}

static void
hears(const char *stream, const char *events)
{
	for (size_t step = 1; step <= strlen(stream) + 1; step++) {
		struct heard heard;

		hear(stream, step, false, &heard);
		ck_assert_msg(strcmp(buffer_text(&heard.text), events) == 0,
		              "step %zu: %s instead of %s", step,
		              buffer_text(&heard.text), events);
		buffer_fini(&heard.text);
	}
}

START_TEST(sse_lines_end_in_any_of_three_ways)
{
	hears("event: a\ndata: 1\n\nevent: b\ndata: 2\n\n", "a=1|b=2|");
	hears("event: a\r\ndata: 1\r\n\r\nevent: b\r\ndata: 2\r\n\r\n", "a=1|b=2|");
	hears("data: 1\rdata: 2\n\n", "=1\n2|");
	hears("event: a\rdata: 1\r\revent: b\rdata: 2\r\r", "a=1|b=2|");
	hears("event: a\ndata: 1\r\n\revent: b\rdata: 2\n\r\n", "a=1|b=2|");
}
END_TEST

START_TEST(sse_data_may_have_many_lines_or_be_empty)
{
	hears("data: 1\ndata: 2\ndata\ndata:\n\n", "=1\n2\n\n|");
	hears("data\n\n", "=|");
	hears("event: a\n\ndata: 1\n\n", "=1|"); /* the name went with its empty event */
	hears("\n\n\n\ndata: 1\n\n", "=1|");
}
END_TEST

START_TEST(sse_comments_other_fields_and_a_mark_at_the_start_are_skipped)
{
	hears(": ping\n\ndata: 1\n:\nid: 7\nretry: 10\nnobody: knows\n\n", "=1|");
	hears("\xef\xbb\xbf"
	      "data: 1\n\n",
	      "=1|");
	hears("\xef\xbb"
	      "data: 1\n\ndata: 2\n\n",
	      "=2|"); /* half a mark is some other field */
	hears("data: \xef\xbb\xbf\n\n", "=\xef\xbb\xbf|");
}
END_TEST

START_TEST(sse_one_blank_behind_the_colon_is_dropped)
{
	hears("data:x\ndata: y\ndata:  z\nevent:n\n\n", "n=x\ny\n z|");
	hears("data: a: b\n\n", "=a: b|");
	hears("event: one\nevent: two\ndata: 1\n\n", "two=1|");
}
END_TEST

START_TEST(sse_an_unfinished_event_waits_until_the_end_is_said)
{
	struct heard heard;

	hears("data: 1\n", "");
	hears("data: 1", "");
	hear("data: 1\n\ndata: [DONE]", 3, true, &heard);
	ck_assert_str_eq(buffer_text(&heard.text), "=1|=[DONE]|");
	buffer_fini(&heard.text);
	hear("data: 1\n\ndata: [DONE]\n", 3, true, &heard);
	ck_assert_str_eq(buffer_text(&heard.text), "=1|=[DONE]|");
	buffer_fini(&heard.text);
}
END_TEST

START_TEST(sse_is_bounded_and_hands_errors_back)
{
	struct heard heard;
	struct sse sse;

	buffer_init(&heard.text, 1 << 16);
	heard.answer = 0;
	sse_init(&sse, 16, on_event, &heard);
	ck_assert_int_eq(sse_feed(&sse, SPAN("data: 0123456789abcdef0123456789")),
	                 ERR_LIMIT);
	sse_fini(&sse);

	sse_init(&sse, 16, on_event, &heard);
	ck_assert_int_eq(sse_feed(&sse, SPAN("data: 12345678\ndata: 12345678\n")),
	                 ERR_LIMIT);
	sse_fini(&sse);

	heard.answer = ERR_MEMORY;
	sse_init(&sse, 16, on_event, &heard);
	ck_assert_int_eq(sse_feed(&sse, SPAN("data: 1\n\ndata: 2\n\n")), ERR_MEMORY);
	ck_assert_str_eq(buffer_text(&heard.text), "=1|");
	sse_fini(&sse);
	buffer_fini(&heard.text);
}
END_TEST

SUITE_MAIN("sse", sse_lines_end_in_any_of_three_ways,
           sse_data_may_have_many_lines_or_be_empty,
           sse_comments_other_fields_and_a_mark_at_the_start_are_skipped,
           sse_one_blank_behind_the_colon_is_dropped,
           sse_an_unfinished_event_waits_until_the_end_is_said,
           sse_is_bounded_and_hands_errors_back)
