#include "common/codec/assemble.h"
#include "tests/lib/suite.h"

#include <stdio.h>
#include <stdlib.h>

/* One run over a stream, cut into pieces of `step` bytes. */
struct run {
	struct assemble *assemble;
	struct assemble_result result;
	struct usage usage;
	bool began, settled;
};

static void
play_with(struct run *run, const struct assemble_options *options, const char *stream,
          size_t step)
{
	size_t len = strlen(stream);

	*run = (struct run){ .assemble = assemble_create(options) };
	ck_assert_ptr_nonnull(run->assemble);
	for (size_t at = 0; at < len; at += step)
		ck_assert_int_eq(
			assemble_feed(run->assemble,
		                      (struct span){ stream + at, MIN(step, len - at) }),
			0);
	run->began = assemble_began(run->assemble);
	run->settled = assemble_is_settled(run->assemble);
	ck_assert_int_eq(assemble_finish(run->assemble, &run->result), 0);
	run->usage = *assemble_usage(run->assemble);
}

static void
play(struct run *run, enum dialect dialect, const char *stream)
{
	struct assemble_options options = { .dialect = dialect, .sse = true };

	play_with(run, &options, stream, strlen(stream) + 1);
}

static void
close_run(struct run *run)
{
	run->assemble = assemble_destroy(run->assemble);
	ck_assert_ptr_null(run->assemble);
}

/* clang-format off */
#define START                                                                          \
	"event: message_start\n"                                                       \
	"data: "                                                                       \
	"{\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":"          \
	"\"message\","                                                                 \
	"\"role\":\"assistant\",\"model\":\"m\",\"content\":[],\"stop_reason\":null,"  \
	"\"stop_sequence\":null,\"usage\":{\"input_tokens\":9,\"cache_creation_input_" \
	"tokens\":"                                                                    \
	"600,\"cache_read_input_tokens\":0,\"output_tokens\":1}}}\n\n"
#define STOP                                                                         \
	"event: message_delta\n"                                                     \
	"data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"," \
	"\"stop_sequence\":null},\"usage\":{\"output_tokens\":12}}\n\n"              \
	STOPPED
#define STOPPED "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
#define BEGIN(i, block)                                                              \
	"event: content_block_start\ndata: "                                         \
	"{\"type\":\"content_block_start\",\"index\":" i ",\"content_block\":" block \
	"}\n\n"
#define DELTA(i, delta)                      \
	"event: content_block_delta\ndata: " \
	"{\"type\":\"content_block_delta\",\"index\":" i ",\"delta\":" delta "}\n\n"
#define END(i)                                                                           \
	"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":" i \
	"}\n\n"
#define PING    "event: ping\ndata: {\"type\": \"ping\"}\n\n"
#define TEXT(t) "{\"type\":\"text_delta\",\"text\":\"" t "\"}"

/* clang-format on */

/* The result is the events, byte for byte where they came in the usual spelling. */
static void
keeps_events(enum dialect dialect, const char *stream, const char *why)
{
	struct run run;

	play(&run, dialect, stream);
	ck_assert_uint_eq(run.result.format, ASSEMBLE_SSE);
	ck_assert_str_eq(run.result.why_sse, why);
	ck_assert(span_equals(run.result.body, span_from(stream)));
	close_run(&run);
}

START_TEST(assemble_what_cannot_be_placed_keeps_the_events)
{
	keeps_events(DIALECT_ANTHROPIC,
	             START BEGIN("0", "{\"type\":\"text\",\"text\":\"\"}")
	                     DELTA("0", "{\"type\":\"colour_delta\",\"colour\":\"blue\"}")
	                             END("0") STOP,
	             "an unknown kind of delta");
	keeps_events(DIALECT_ANTHROPIC,
	             START BEGIN("0", "{\"type\":\"text\",\"text\":\"\"}") DELTA(
			     "0", "{\"type\":\"text_delta\",\"text\":\"a\",\"new\":1}")
	                     END("0") STOP,
	             "an unknown kind of delta");
	keeps_events(DIALECT_ANTHROPIC, START DELTA("0", TEXT("a")) STOP,
	             "a delta came without its content block");
	keeps_events(DIALECT_ANTHROPIC,
	             START BEGIN("0", "{\"type\":\"tool_use\",\"id\":\"t\",\"input\":{}}")
	                     DELTA("0", "{\"type\":\"input_json_delta\",\"partial_json\":"
	                                "\"{\\\"a\\\":\"}") END("0") STOP,
	             "the events do not add up to an answer");
	keeps_events(DIALECT_ANTHROPIC, START "data: {broken\n\n" STOP,
	             "an event is not JSON");
	keeps_events(DIALECT_ANTHROPIC,
	             START BEGIN("1", "{\"type\":\"text\",\"text\":\"\"}") STOP,
	             "the events do not add up to an answer");
	keeps_events(DIALECT_ANTHROPIC, START START STOP,
	             "a second message began in one answer");
	keeps_events(
		DIALECT_OPENAI_CHAT,
		"data: {\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,"
		"\"delta\":{\"audio\":{\"data\":\"x\"}}}]}\n\ndata: [DONE]\n\n",
		"an unknown kind of delta");
}
END_TEST

START_TEST(assemble_an_error_in_the_stream_is_handed_out)
{
	struct run run;

	play(&run, DIALECT_ANTHROPIC,
	     START BEGIN("0", "{\"type\":\"text\",\"text\":\"\"}")
	             DELTA("0", TEXT("Hel")) "event: error\ndata: "
	                                     "{\"type\":\"error\",\"error\":{\"type\":"
	                                     "\"overloaded_error\",\"message\":"
	                                     "\"Overloaded\"}}\n\n");
	ck_assert(!run.result.complete);
	ck_assert(span_equals(
		run.result.error,
		SPAN("{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\","
	             "\"message\":\"Overloaded\"}}")));
	close_run(&run);

	play(&run, DIALECT_OPENAI_CHAT,
	     "data: {\"error\":{\"message\":\"engine "
	     "died\",\"type\":\"server_error\"}}\n\n");
	ck_assert(!run.result.complete);
	ck_assert(!run.began);
	ck_assert_uint_gt(run.result.error.len, 0);
	close_run(&run);
}
END_TEST

START_TEST(assemble_a_cut_stream_is_not_complete)
{
	struct run run;

	play(&run, DIALECT_ANTHROPIC,
	     START BEGIN("0", "{\"type\":\"text\",\"text\":\"\"}")
	             DELTA("0", TEXT("Hel")));
	ck_assert(!run.result.complete);
	ck_assert(run.began);
	ck_assert_int_eq(run.usage.written, 600);
	close_run(&run);
	play(&run, DIALECT_ANTHROPIC, START "data: {\"type\":\"message_de");
	ck_assert(!run.result.complete);
	close_run(&run);
	play(&run, DIALECT_ANTHROPIC, "");
	ck_assert(!run.result.complete);
	ck_assert(!run.began);
	ck_assert_uint_eq(run.result.format, ASSEMBLE_SSE);
	close_run(&run);
}
END_TEST

START_TEST(assemble_says_when_the_prefix_is_readable)
{
	struct assemble_options options = { .dialect = DIALECT_ANTHROPIC, .sse = true };
	struct assemble *assemble = assemble_create(&options);

	ck_assert_int_eq(assemble_feed(assemble, SPAN(": hello\n\n" PING)), 0);
	ck_assert(!assemble_began(assemble));
	ck_assert_int_eq(assemble_feed(assemble, SPAN(START)), 0);
	ck_assert(assemble_began(assemble));
	ck_assert_int_eq(assemble_usage(assemble)->written, 600);
	ck_assert_int_eq(assemble_usage(assemble)->read, 0);
	(void)assemble_destroy(assemble);
	ck_assert_ptr_null(assemble_destroy(NULL));
}
END_TEST

#define CHUNK(choices)                                                                 \
	"data: "                                                                       \
	"{\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":7,\"model\":" \
	"\"g\","                                                                       \
	"\"choices\":[" choices "],\"usage\":null}\n\n"
#define USAGE_CHUNK                                                                    \
	"data: "                                                                       \
	"{\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":7,\"model\":" \
	"\"g\","                                                                       \
	"\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":2,"      \
	"\"prompt_tokens_details\":{\"cached_tokens\":4}}}\n\n"
#define DONE "data: [DONE]\n\n"
START_TEST(assemble_a_job_that_streams_gets_its_events_without_our_usage_chunk)
{
	struct assemble_options options = { .dialect = DIALECT_OPENAI_CHAT,
		                            .sse = true,
		                            .keep_sse = true,
		                            .hide_usage = true };
	static const char stream[] = CHUNK(
		"{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}")
		USAGE_CHUNK DONE;
	static const char shown[] = "data: "
				    "{\"id\":\"c1\",\"object\":\"chat.completion.chunk\","
				    "\"created\":7,\"model\":\"g\","
				    "\"choices\":[{\"index\":0,\"delta\":{\"content\":"
				    "\"a\"},\"finish_reason\":\"stop\"}]}\n\n" DONE;
	struct run run;

	play_with(&run, &options, stream, 5);
	ck_assert_uint_eq(run.result.format, ASSEMBLE_SSE);
	ck_assert_ptr_null(run.result.why_sse);
	ck_assert(span_equals(run.result.body, span_from(shown)));
	ck_assert(run.result.complete);
	ck_assert_int_eq(run.usage.read, 4);
	ck_assert_int_eq(run.usage.uncached, 6);
	close_run(&run);

	options.hide_usage = false;
	play_with(&run, &options, stream, 5);
	ck_assert(span_equals(run.result.body, span_from(stream)));
	close_run(&run);
}
END_TEST

START_TEST(assemble_an_answer_that_is_no_stream_is_left_as_it_is)
{
	struct assemble_options options = { .dialect = DIALECT_ANTHROPIC };
	static const char answer[] =
		"{ \"usage\": {\"input_tokens\":3,\"output_tokens\":4,"
		"\"cache_read_input_tokens\":5,"
		"\"cache_creation_input_tokens\":0} }";
	struct run run;

	play_with(&run, &options, answer, 7);
	ck_assert_uint_eq(run.result.format, ASSEMBLE_PLAIN);
	ck_assert(span_equals(run.result.body, span_from(answer)));
	ck_assert(run.result.complete);
	ck_assert_int_eq(run.usage.input, 8);
	close_run(&run);
	play_with(&run, &options, "{\"cut", 7);
	ck_assert(!run.result.complete);
	close_run(&run);
}
END_TEST

START_TEST(assemble_json_that_says_nothing_is_no_answer)
{
	static const char *const texts[] = { "{}", "null", "[{\"id\":1}]", "\"ok\"",
		                             "7" };

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		for (int raw = 0; raw < 2; raw++) {
			struct assemble_options options = {
				.dialect = raw ? DIALECT_RAW : DIALECT_OPENAI_CHAT,
			};
			struct run run;

			play_with(&run, &options, texts[i], 7);
			ck_assert_int_eq(run.result.complete, raw);
			ck_assert(span_equals(run.result.body, span_from(texts[i])));
			close_run(&run);
		}
}
END_TEST

START_TEST(assemble_a_stream_that_says_nothing_is_no_answer)
{
	static const struct {
		enum dialect dialect;
		const char *stream;
		bool silent, complete;
	} cases[] = {
		{ DIALECT_OPENAI_CHAT, "data: [DONE]\n\n", true, false },
		{ DIALECT_OPENAI_CHAT, ": wait\n\n: wait\n\ndata: [DONE]\n\n", true,
		  false },
		{ DIALECT_OPENAI_CHAT, "", true, false },
		{ DIALECT_ANTHROPIC, PING PING STOPPED, true, false },
		{ DIALECT_ANTHROPIC, PING, true, false },
		{ DIALECT_ANTHROPIC, START PING STOP, false, true },
		{ DIALECT_ANTHROPIC, STOP, false, true },
		{ DIALECT_RAW, "data: [DONE]\n\n", false, true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct run run;

		play(&run, cases[i].dialect, cases[i].stream);
		ck_assert_int_eq(run.result.silent, cases[i].silent);
		ck_assert_int_eq(run.result.complete, cases[i].complete);
		close_run(&run);
	}
}
END_TEST

START_TEST(assemble_json_behind_a_byte_order_mark_is_json)
{
	for (int raw = 0; raw < 2; raw++) {
		struct assemble_options options = {
			.dialect = raw ? DIALECT_RAW : DIALECT_ANTHROPIC,
		};
		struct run run;

		play_with(&run, &options, "\xef\xbb\xbf{\"id\":1}", 2);
		ck_assert_int_eq(run.result.complete, !raw);
		ck_assert(
			span_equals(run.result.body, raw ? SPAN("\xef\xbb\xbf{\"id\":1}")
		                                         : SPAN("{\"id\":1}")));
		close_run(&run);
	}
}
END_TEST

START_TEST(assemble_an_answer_that_says_it_is_an_error_is_one)
{
	struct assemble_options options = { .dialect = DIALECT_OPENAI_CHAT };
	static const char fault[] = "{\"error\":{\"message\":\"busy\"}}";
	struct run run;

	play_with(&run, &options, fault, 7);
	ck_assert(!run.result.complete);
	ck_assert(span_equals(run.result.error, span_from(fault)));
	close_run(&run);
	play_with(&run, &options, "{\"error\":null,\"choices\":[]}", 7);
	ck_assert(run.result.complete);
	ck_assert_uint_eq(run.result.error.len, 0);
	close_run(&run);
	options.dialect = DIALECT_RAW; /* what its errors look like nobody knows */
	play_with(&run, &options, fault, 7);
	ck_assert(run.result.complete);
	close_run(&run);
}
END_TEST

/* The object that the stream comes to contains these bytes. */
static void
comes_to(enum dialect dialect, const char *stream, const char *bytes)
{
	struct run run;

	play(&run, dialect, stream);
	ck_assert_uint_eq(run.result.format, ASSEMBLE_JSON);
	ck_assert_msg(memmem(run.result.body.data, run.result.body.len, bytes,
	                     strlen(bytes)) != NULL,
	              "%.*s", (int)run.result.body.len, run.result.body.data);
	close_run(&run);
}

START_TEST(assemble_a_second_signature_replaces_the_first)
{
#define SIGNATURE(t) "{\"type\":\"signature_delta\",\"signature\":\"" t "\"}"
	comes_to(DIALECT_ANTHROPIC,
	         START BEGIN("0", "{\"type\":\"thinking\",\"thinking\":\"\","
	                          "\"signature\":\"\"}") DELTA("0", SIGNATURE("YWI="))
	                 DELTA("0", SIGNATURE("Y2Q=")) END("0") STOP,
	         "\"signature\":\"Y2Q=\"");
}
END_TEST

START_TEST(assemble_tool_calls_without_an_index_are_counted)
{
#define CALL_OF(id) \
	"\"id\":\"" id "\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}"
#define CALL(id) "{" CALL_OF(id)
	comes_to(DIALECT_OPENAI_CHAT,
	         CHUNK("{\"index\":0,\"delta\":{\"tool_calls\":[" CALL("a") "," CALL(
			 "b") "]},\"finish_reason\":\"tool_calls\"}"),
	         "\"tool_calls\":[" CALL("a") "," CALL("b") "]");
}
END_TEST

#define IN_CHUNK(call)           CHUNK("{\"index\":0,\"delta\":{\"tool_calls\":[" call "]}}")
#define OF_CALL(head, arguments) "{" head "\"arguments\":\"" arguments "\"}}"
#define FINISH                                                               \
	CHUNK("{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}") \
	"data: [DONE]\n\n"

/* Whole calls that come one by one and are all called the first: "{}{}" was the argument
 * of the last, and the others were gone. */
START_TEST(assemble_tool_calls_with_the_same_index_are_not_joined)
{
	static const char why[] = "two tool calls with the same index";

	keeps_events(DIALECT_OPENAI_CHAT,
	             IN_CHUNK("{\"index\":0," CALL_OF("a"))
	                     IN_CHUNK("{\"index\":0," CALL_OF("b")) FINISH,
	             why);
	keeps_events(DIALECT_OPENAI_CHAT, IN_CHUNK(CALL("a")) IN_CHUNK(CALL("b")) FINISH,
	             why);
	keeps_events(DIALECT_OPENAI_CHAT,
	             IN_CHUNK(OF_CALL("\"function\":{\"name\":\"f\",", "{}"))
	                     IN_CHUNK(OF_CALL("\"function\":{\"name\":\"g\",", "{}"))
	                             FINISH,
	             why);
	keeps_events(DIALECT_OPENAI_CHAT,
	             IN_CHUNK(OF_CALL("\"function\":{\"name\":\"f\",", "{}"))
	                     IN_CHUNK(OF_CALL("\"function\":{\"name\":\"f\",", "{}"))
	                             FINISH,
	             why);
	/* One call whose id and name are said with each piece, or with none but the
	 * first. */
	comes_to(DIALECT_OPENAI_CHAT,
	         IN_CHUNK(OF_CALL("\"id\":\"a\",\"function\":{\"name\":\"f\",", "{"))
	                 IN_CHUNK(OF_CALL("\"id\":\"a\",\"function\":{\"name\":\"f\",",
	                                  "}")) FINISH,
	         "\"tool_calls\":[" CALL("a") "]");
	comes_to(DIALECT_OPENAI_CHAT,
	         IN_CHUNK(OF_CALL("\"id\":\"a\",\"function\":{\"name\":\"f\",", ""))
	                 IN_CHUNK(OF_CALL("\"id\":\"\",\"function\":{\"name\":\"\",", ""))
	                         IN_CHUNK(OF_CALL("\"function\":{", "{}")) FINISH,
	         "\"tool_calls\":[" CALL("a") "]");
}
END_TEST

START_TEST(assemble_a_message_in_a_stream_is_not_thrown_away)
{
	keeps_events(
		DIALECT_OPENAI_CHAT,
		CHUNK("{\"index\":0,\"message\":{\"role\":\"assistant\","
	              "\"content\":\"whole\"},\"finish_reason\":\"stop\"}") "data: "
									    "[DONE]\n\n",
		"a message in place of deltas");
}
END_TEST

START_TEST(assemble_finds_usage_where_it_is_told)
{
	struct assemble_options options = { .dialect = DIALECT_RAW,
		                            .usage_path = SPAN("meta.cost") };
	struct run run;

	play_with(
		&run, &options,
		"{\"usage\":{\"input_tokens\":1},\"meta\":{\"cost\":{\"prompt_tokens\":9,"
		"\"prompt_tokens_details\":{\"cached_tokens\":4}}}}",
		7);
	ck_assert_int_eq(run.usage.read, 4);
	ck_assert_int_eq(run.usage.uncached, 5);
	close_run(&run);
	options.usage_path = SPAN("");
	play_with(&run, &options, "{\"usage\":{\"input_tokens\":1}}", 7);
	ck_assert(!run.usage.seen);
	close_run(&run);
	options.usage_path = SPAN("meta.nothing");
	play_with(&run, &options, "{\"usage\":{\"input_tokens\":1},\"meta\":{}}", 7);
	ck_assert(!run.usage.seen);
	close_run(&run);
}
END_TEST

START_TEST(assemble_is_bounded)
{
	struct assemble_options options = { .dialect = DIALECT_ANTHROPIC,
		                            .sse = true,
		                            .size_max = 600 };
	struct assemble *assemble = assemble_create(&options);
	int err = assemble_feed(assemble, SPAN(START));

	for (int i = 0; i < 20 && err == 0; i++)
		err = assemble_feed(assemble, SPAN(PING));
	ck_assert_int_eq(err, ERR_LIMIT);
	(void)assemble_destroy(assemble);
}
END_TEST

START_TEST(assemble_a_long_answer_takes_linear_time)
{
	struct assemble_options options = { .dialect = DIALECT_ANTHROPIC, .sse = true };
	struct assemble *assemble = assemble_create(&options);
	struct assemble_result result;

	ck_assert_int_eq(
		assemble_feed(
			assemble,
			SPAN(START BEGIN("0", "{\"type\":\"text\",\"text\":\"\"}"))),
		0);
	for (int i = 0; i < 50000; i++)
		ck_assert_int_eq(
			assemble_feed(assemble, SPAN(DELTA("0", TEXT("0123456789")))), 0);
	ck_assert_int_eq(assemble_feed(assemble, SPAN(END("0") STOP)), 0);
	ck_assert_int_eq(assemble_finish(assemble, &result), 0);
	ck_assert_uint_eq(result.format, ASSEMBLE_JSON);
	ck_assert_uint_gt(result.body.len, 500000);
	(void)assemble_destroy(assemble);
}
END_TEST

START_TEST(assemble_the_last_event_may_lack_its_empty_line)
{
	static const char *const ends[] = { "data: {\"type\":\"message_stop\"}\n",
		                            "data: {\"type\":\"message_stop\"}" };

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		char stream[2048];
		struct run run;

		(void)snprintf(stream, sizeof stream, "%s%s", START, ends[i]);
		play(&run, DIALECT_ANTHROPIC, stream);
		ck_assert(run.result.complete);
		ck_assert_uint_eq(run.result.format, ASSEMBLE_JSON);
		close_run(&run);
	}
}
END_TEST

START_TEST(assemble_without_done_all_choices_must_have_finished)
{
#define DELTA_OF(i, finish) \
	"{\"index\":" i ",\"delta\":{\"content\":\"a\"},\"finish_reason\":" finish "}"
	struct run run;

	play(&run, DIALECT_OPENAI_CHAT,
	     CHUNK(DELTA_OF("0", "\"stop\"") "," DELTA_OF("1", "null")));
	ck_assert(!run.result.complete);
	close_run(&run);
	play(&run, DIALECT_OPENAI_CHAT,
	     CHUNK(DELTA_OF("0", "null") "," DELTA_OF("1", "\"stop\"")));
	ck_assert(!run.result.complete);
	close_run(&run);
	play(&run, DIALECT_OPENAI_CHAT,
	     CHUNK(DELTA_OF("0", "\"stop\"") "," DELTA_OF("1", "\"length\"")));
	ck_assert(run.result.complete);
	ck_assert(!run.settled); /* usage may come yet, or another choice */
	close_run(&run);
}
END_TEST

START_TEST(assemble_is_settled_when_all_choices_have_finished_and_usage_came)
{
	struct run run;

	play(&run, DIALECT_OPENAI_CHAT,
	     CHUNK(DELTA_OF("0", "\"stop\"") "," DELTA_OF("1", "\"length\""))
	             USAGE_CHUNK);
	ck_assert(run.settled);
	close_run(&run);
	play(&run, DIALECT_OPENAI_CHAT,
	     CHUNK(DELTA_OF("0", "\"stop\"") "," DELTA_OF("1", "null")) USAGE_CHUNK);
	ck_assert(!run.settled);
	close_run(&run);
	play(&run, DIALECT_OPENAI_CHAT, USAGE_CHUNK);
	ck_assert(!run.settled);
	close_run(&run);
	play(&run, DIALECT_ANTHROPIC, START STOP);
	ck_assert(run.settled);
	close_run(&run);
	play(&run, DIALECT_ANTHROPIC, START);
	ck_assert(!run.settled);
	close_run(&run);
}
END_TEST

START_TEST(assemble_events_of_several_lines_are_kept_line_by_line)
{
	struct assemble_options options = { .dialect = DIALECT_ANTHROPIC,
		                            .sse = true,
		                            .keep_sse = true };
	static const char stream[] =
		"event: a\ndata: {\ndata: \"type\":\ndata: \"ping\"}\n\n";
	struct run run;

	play_with(&run, &options, stream, 3);
	ck_assert(span_equals(run.result.body, span_from(stream)));
	close_run(&run);
}
END_TEST

START_TEST(assemble_a_raw_stream_is_its_events)
{
	struct run run;

	play(&run, DIALECT_RAW, "data: {\"token\":1}\n\n");
	ck_assert(run.began);
	ck_assert_uint_eq(run.result.format, ASSEMBLE_SSE);
	ck_assert(span_equals(run.result.body, SPAN("data: {\"token\":1}\n\n")));
	close_run(&run);
}
END_TEST

SUITE_MAIN("assemble", assemble_finds_usage_where_it_is_told,
           assemble_an_answer_that_says_it_is_an_error_is_one,
           assemble_a_second_signature_replaces_the_first,
           assemble_tool_calls_without_an_index_are_counted,
           assemble_tool_calls_with_the_same_index_are_not_joined,
           assemble_a_message_in_a_stream_is_not_thrown_away,
           assemble_a_raw_stream_is_its_events,
           assemble_the_last_event_may_lack_its_empty_line,
           assemble_without_done_all_choices_must_have_finished,
           assemble_is_settled_when_all_choices_have_finished_and_usage_came,
           assemble_events_of_several_lines_are_kept_line_by_line,
           assemble_what_cannot_be_placed_keeps_the_events,
           assemble_an_error_in_the_stream_is_handed_out,
           assemble_a_cut_stream_is_not_complete,
           assemble_says_when_the_prefix_is_readable,
           assemble_a_job_that_streams_gets_its_events_without_our_usage_chunk,
           assemble_an_answer_that_is_no_stream_is_left_as_it_is,
           assemble_json_that_says_nothing_is_no_answer,
           assemble_a_stream_that_says_nothing_is_no_answer,
           assemble_json_behind_a_byte_order_mark_is_json, assemble_is_bounded,
           assemble_a_long_answer_takes_linear_time)
