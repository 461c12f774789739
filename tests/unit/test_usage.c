#include "common/codec/usage.h"
#include "tests/lib/suite.h"

static void
put(struct buffer *out, int64_t tokens)
{
	if (tokens == USAGE_UNKNOWN)
		(void)buffer_append_text(out, "- ");
	else
		(void)buffer_append_format(out, "%lld ", (long long)tokens);
}

/* Merges answers in order, finishes, and writes "read written uncached output input". */
static const char *
usage_of(const char *const *answers, size_t count)
{
	static char text[128];
	struct buffer out = BUFFER_INIT(sizeof text - 1);
	struct usage usage;
	struct tape_error where;
	struct tape tape;

	usage_init(&usage);
	tape_init(&tape);
	for (size_t i = 0; i < count; i++) {
		ck_assert_int_eq(tape_parse(&tape, span_from(answers[i]), &where), 0);
		usage_merge_answer(&usage, &tape);
	}
	usage_finish(&usage);
	put(&out, usage.read);
	put(&out, usage.written);
	put(&out, usage.uncached);
	put(&out, usage.output);
	(void)buffer_append_format(&out, "%lld", (long long)usage.input);
	memcpy(text, buffer_text(&out), out.len + 1);
	buffer_fini(&out);
	tape_fini(&tape);
	return text;
}

#define USAGE_OF(...)                                  \
	usage_of((const char *const[]){ __VA_ARGS__ }, \
	         sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(const char *))

START_TEST(usage_anthropic_counts_input_without_what_was_cached)
{
	ck_assert_str_eq(USAGE_OF("{\"usage\":{\"input_tokens\":9,\"cache_creation_input_"
	                          "tokens\":6400,"
	                          "\"cache_read_input_tokens\":0,\"cache_creation\":"
	                          "{\"ephemeral_5m_input_tokens\":6400,\"ephemeral_1h_"
	                          "input_tokens\":0},"
	                          "\"output_tokens\":0,\"service_tier\":\"standard\"}}"),
	                 "0 6400 9 0 6409");
	ck_assert_str_eq(USAGE_OF("{\"usage\":{\"input_tokens\":9,\"output_tokens\":1,"
	                          "\"cache_read_input_tokens\":5,\"cache_creation\":"
	                          "{\"ephemeral_5m_input_tokens\":3,\"ephemeral_1h_input_"
	                          "tokens\":4}}}"),
	                 "5 7 9 1 21");
}
END_TEST

START_TEST(usage_unknown_is_not_zero)
{
	ck_assert_str_eq(USAGE_OF("{}"), "- - - - -1");
	ck_assert_str_eq(USAGE_OF("{\"usage\":null}"), "- - - - -1");
	ck_assert_str_eq(USAGE_OF("{\"usage\":{\"input_tokens\":9,\"output_tokens\":2,"
	                          "\"cache_creation_input_tokens\":null,"
	                          "\"cache_read_input_tokens\":null}}"),
	                 "- - 9 2 -1");
	ck_assert_str_eq(
		USAGE_OF("{\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":5,"
	                 "\"prompt_tokens_details\":null}}"),
		"- - - 5 100");
	ck_assert_str_eq(
		USAGE_OF("{\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":5,"
	                 "\"prompt_tokens_details\":{\"cached_tokens\":null}}}"),
		"- - - 5 100");
	ck_assert_str_eq(
		USAGE_OF("{\"usage\":{\"input_tokens\":-3,\"output_tokens\":1.5}}"),
		"- - - - -1");
}
END_TEST

START_TEST(usage_of_a_stream_is_its_last_word_that_is_not_null)
{
	/* only output in the delta */
	ck_assert_str_eq(
		USAGE_OF("{\"type\":\"message_start\",\"message\":{\"usage\":"
	                 "{\"input_tokens\":9,\"cache_creation_input_tokens\":0,"
	                 "\"cache_read_input_tokens\":600,\"output_tokens\":1}}}",
	                 "{\"type\":\"message_delta\",\"usage\":{\"output_tokens\":40}}"),
		"600 0 9 40 609");
	/* the delta repeats all, with copies per iteration that must not be added */
	ck_assert_str_eq(
		USAGE_OF("{\"message\":{\"usage\":{\"input_tokens\":9,"
	                 "\"cache_creation_input_tokens\":600,\"cache_read_input_"
	                 "tokens\":0,"
	                 "\"output_tokens\":1}}}",
	                 "{\"usage\":{\"input_tokens\":9,\"cache_creation_input_tokens\":"
	                 "600,"
	                 "\"cache_read_input_tokens\":0,\"output_tokens\":40,"
	                 "\"iterations\":["
	                 "{\"type\":\"message\",\"input_tokens\":9,\"output_tokens\":40,"
	                 "\"cache_creation_input_tokens\":600}]}}"),
		"0 600 9 40 609");
	/* deviant: the total first, the true split last */
	ck_assert_str_eq(
		USAGE_OF("{\"message\":{\"usage\":{\"input_tokens\":609,"
	                 "\"output_tokens\":0}}}",
	                 "{\"usage\":{\"input_tokens\":9,\"cache_read_input_tokens\":600,"
	                 "\"cache_creation_input_tokens\":0,\"output_tokens\":40}}"),
		"600 0 9 40 609");
	/* null does not overwrite */
	ck_assert_str_eq(
		USAGE_OF("{\"message\":{\"usage\":{\"input_tokens\":9,"
	                 "\"cache_read_input_tokens\":600,"
	                 "\"cache_creation_input_tokens\":0,\"output_tokens\":1}}}",
	                 "{\"usage\":{\"cache_read_input_tokens\":null,"
	                 "\"output_tokens\":2}}"),
		"600 0 9 2 609");
}
END_TEST

START_TEST(usage_inclusive_providers_are_taken_apart)
{
	ck_assert_str_eq(
		USAGE_OF("{\"usage\":{\"prompt_tokens\":1000,\"completion_tokens\":7,"
	                 "\"total_tokens\":1007,\"prompt_tokens_details\":"
	                 "{\"cached_tokens\":600,\"cache_write_tokens\":300}}}"),
		"600 300 100 7 1000");
	ck_assert_str_eq(
		USAGE_OF("{\"usage\":{\"prompt_tokens\":1000,\"completion_tokens\":7,"
	                 "\"prompt_tokens_details\":{\"cached_tokens\":0}}}"),
		"0 - 1000 7 1000");
	ck_assert_str_eq(
		USAGE_OF("{\"type\":\"response.completed\",\"response\":{\"usage\":"
	                 "{\"input_tokens\":1000,\"input_tokens_details\":{\"cached_"
	                 "tokens\":600,"
	                 "\"cache_write_tokens\":0},\"output_tokens\":7,\"total_tokens\":"
	                 "1007}}}"),
		"600 0 400 7 1000");
	ck_assert_str_eq(
		USAGE_OF("{\"usage\":{\"prompt_tokens\":1000,\"completion_tokens\":7,"
	                 "\"prompt_cache_hit_tokens\":896,"
	                 "\"prompt_cache_miss_tokens\":104}}"),
		"896 - 104 7 1000");
	/* chunks of a chat stream */
	ck_assert_str_eq(USAGE_OF("{\"choices\":[{}],\"usage\":null}",
	                          "{\"choices\":[],\"usage\":{\"prompt_tokens\":10,"
	                          "\"completion_tokens\":2,\"prompt_tokens_details\":"
	                          "{\"cached_tokens\":4}}}"),
	                 "4 - 6 2 10");
	/* llama.cpp: its timings know */
	ck_assert_str_eq(
		USAGE_OF("{\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":2},"
	                 "\"timings\":{\"cache_n\":8,\"prompt_n\":2,\"predicted_n\":2}}"),
		"8 - 2 2 10");
}
END_TEST

SUITE_MAIN("usage", usage_anthropic_counts_input_without_what_was_cached,
           usage_unknown_is_not_zero, usage_of_a_stream_is_its_last_word_that_is_not_null,
           usage_inclusive_providers_are_taken_apart)
