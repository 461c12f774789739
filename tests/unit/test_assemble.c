#include "common/codec/assemble.h"
#include "tests/lib/suite.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

/* One run over a stream, cut into pieces of `step` bytes. */
struct run {
	struct assemble *assemble;
	struct assemble_result result;
	struct usage usage;
	bool began;
	bool has_content;
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
	run->has_content = assemble_has_content(run->assemble);
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

/* The assembled object equals `wanted`, however the bytes are cut. */
static void
assembles(enum dialect dialect, const char *stream, const char *wanted)
{
	json_error_t error;
	json_t *expected = json_loads(wanted, 0, &error);
	struct assemble_options options = { .dialect = dialect, .sse = true };
	static const size_t steps[] = { 1, 2, 3, 7, 64, 1 << 20 };

	ck_assert_msg(expected != NULL, "%s in %s", error.text, wanted);
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		struct run run;
		json_t *got;

		play_with(&run, &options, stream, steps[i]);
		ck_assert_msg(run.result.format == ASSEMBLE_JSON, "%s",
		              run.result.why_sse ? run.result.why_sse : "no object");
		got = json_loadb(run.result.body.data, run.result.body.len, 0, &error);
		if (!json_equal(got, expected))
			fprintf(stderr, "got: %.*s\n", (int)run.result.body.len,
			        run.result.body.data);
		ck_assert(json_equal(got, expected));
		ck_assert(run.result.complete);
		ck_assert(run.began);
		json_decref(got);
		close_run(&run);
	}
	json_decref(expected);
}

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
	"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
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

#define MESSAGE(content)                                                                 \
	"{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\"," \
	"\"content\":[" content "],\"stop_reason\":\"end_turn\",\"stop_sequence\":null," \
	"\"usage\":{\"input_tokens\":9,\"cache_creation_input_tokens\":600,"             \
	"\"cache_read_input_tokens\":0,\"output_tokens\":12}}"

START_TEST(assemble_text_arrives_piece_by_piece)
{
	assembles(DIALECT_ANTHROPIC,
	          START PING BEGIN("0", "{\"type\":\"text\",\"text\":\"\"}") DELTA(
			  "0", TEXT("Hel")) ": a comment\n\n" DELTA("0", TEXT("lo \\\""))
	                  PING DELTA("0", TEXT("\\n caf\\u00e9 \\ud83d"))
	                          DELTA("0", TEXT("\\ude00")) END("0") STOP,
	          MESSAGE("{\"type\":\"text\",\"text\":\"Hello \\\"\\n caf\\u00e9 "
	                  "\\ud83d\\ude00\"}"));
}
END_TEST

START_TEST(assemble_padding_inside_events_is_no_content)
{
	assembles(
		DIALECT_ANTHROPIC,
		START BEGIN(
			"0",
			"{\"type\":\"text\",\"text\":\"\"}") "event: "
	                                                     "content_block_"
	                                                     "delta\r\ndata: "
	                                                     "{\"type\":\"content_block_"
	                                                     "delta\",\"index\":0,"
							     "\"delta\":{\"type\":\"text_"
	                                                     "delta\",\"text\":\"a\"}    "
	                                                     "      }\r\n\r\n" END("0")
								     STOP,
		MESSAGE("{\"type\":\"text\",\"text\":\"a\"}"));
}
END_TEST

START_TEST(assemble_tool_input_comes_as_pieces_of_json)
{
	assembles(
		DIALECT_ANTHROPIC,
		START BEGIN("0", "{\"type\":\"text\",\"text\":\"\"}") DELTA(
			"0",
			TEXT("Looking.")) END("0") BEGIN("1",
	                                                 "{\"type\":\"tool_use\",\"id\":"
	                                                 "\"toolu_1\",\"name\":"
	                                                 "\"get\",\"input\":{}}")
			DELTA("1", "{\"type\":\"input_json_delta\",\"partial_json\":"
	                           "\"\"}") DELTA(
				"1", "{\"type\":\"input_json_delta\",\"partial_json\":"
				     "\"{\\\"city\\\": \\\"S\\u00e3o\"}")
				DELTA("1",
	                              "{\"type\":\"input_json_delta\","
	                              "\"partial_json\":\" Paulo\\\", \\\"n\\\":1.0}\"}")
					END("1") BEGIN(
						"2",
						"{\"type\":\"tool_use\",\"id\":\"toolu_"
	                                        "2\",\"name\":\"now\",\"input\":{}}")
						END("2") STOP,
		MESSAGE("{\"type\":\"text\",\"text\":\"Looking.\"},{\"type\":\"tool_"
	                "use\",\"id\":"
	                "\"toolu_1\",\"name\":\"get\",\"input\":{\"city\":\"S\\u00e3o "
	                "Paulo\",\"n\":"
	                "1.0}},{\"type\":\"tool_use\",\"id\":\"toolu_2\",\"name\":"
	                "\"now\",\"input\":{}}"));
}
END_TEST

START_TEST(assemble_thinking_keeps_its_signature)
{
	assembles(
		DIALECT_ANTHROPIC,
		START BEGIN("0", "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":"
	                         "\"\"}") DELTA("0", "{\"type\":\"thinking_delta\","
	                                             "\"thinking\":\"Let me \"}") DELTA(
			"0", "{\"type\":\"thinking_delta\",\"thinking\":\"see.\"}")
			DELTA("0",
	                      "{\"type\":\"signature_delta\",\"signature\":\"c2ln\"}")
				END("0") BEGIN("1", "{\"type\":\"redacted_thinking\","
	                                            "\"data\":\"ZGF0YQ==\"}") END("1")
					BEGIN("2", "{\"type\":\"text\",\"text\":\"\"}")
						DELTA("2", TEXT("4")) END("2") STOP,
		MESSAGE("{\"type\":\"thinking\",\"thinking\":\"Let me "
	                "see.\",\"signature\":\"c2ln\"},"
	                "{\"type\":\"redacted_thinking\",\"data\":\"ZGF0YQ==\"},"
	                "{\"type\":\"text\",\"text\":\"4\"}"));
}
END_TEST

START_TEST(assemble_citations_and_server_tools_arrive_whole)
{
	assembles(DIALECT_ANTHROPIC,
	          START BEGIN(
			  "0",
			  "{\"type\":\"server_tool_use\",\"id\":\"srvtoolu_1\",\"name\":"
			  "\"web_search\",\"input\":{}}")
	                  DELTA("0", "{\"type\":\"input_json_delta\",\"partial_json\":\"{"
	                             "\\\"query\\\":"
	                             "\\\"x\\\"}\"}") END("0")
	                          BEGIN("1", "{\"type\":\"web_search_tool_result\","
	                                     "\"tool_use_id\":\"srvtoolu_1\","
	                                     "\"content\":[{\"type\":\"web_search_"
	                                     "result\",\"url\":\"http://x\","
	                                     "\"encrypted_content\":\"abc\"}]}") END("1")
	                                  BEGIN("2", "{\"type\":\"text\",\"text\":\"\","
	                                             "\"citations\":[]}") DELTA(
						  "2",
						  "{\"type\":\"citations_delta\","
	                                          "\"citation\":{\"type\":"
						  "\"web_search_result_location\","
	                                          "\"url\":\"http://x\",\"cited_text\":"
						  "\"one\"}}") DELTA("2", TEXT("One."))
	                                          DELTA("2",
	                                                "{\"type\":\"citations_delta\","
	                                                "\"citation\":{\"type\":"
	                                                "\"char_location\",\"start_char_"
	                                                "index\":0}}") END("2") STOP,
	          MESSAGE("{\"type\":\"server_tool_use\",\"id\":\"srvtoolu_1\",\"name\":"
	                  "\"web_search\","
	                  "\"input\":{\"query\":\"x\"}},{\"type\":\"web_search_tool_"
	                  "result\","
	                  "\"tool_use_id\":\"srvtoolu_1\",\"content\":[{\"type\":\"web_"
	                  "search_result\","
	                  "\"url\":\"http://"
	                  "x\",\"encrypted_content\":\"abc\"}]},{\"type\":\"text\","
	                  "\"text\":\"One.\",\"citations\":[{\"type\":\"web_search_"
	                  "result_location\","
	                  "\"url\":\"http://"
	                  "x\",\"cited_text\":\"one\"},{\"type\":\"char_location\","
	                  "\"start_char_index\":0}]}"));
}
END_TEST

START_TEST(assemble_the_last_word_on_the_message_counts)
{
	assembles(DIALECT_ANTHROPIC,
	          START
	          "data: "
	          "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\","
	          "\"stop_sequence\":null,\"container\":{\"id\":\"c\"}},\"usage\":{"
	          "\"input_tokens\":10,\"cache_read_input_tokens\":null,\"output_"
	          "tokens\":5,"
	          "\"server_tool_use\":{\"web_search_requests\":1}},"
	          "\"context_management\":{\"applied_edits\":[]}}\n\n"
	          "data: "
	          "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},"
	          "\"usage\":{\"output_tokens\":12}}\n\n"
	          "data: {\"type\":\"message_stop\"}\n\n",
	          "{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\","
	          "\"model\":\"m\","
	          "\"content\":[],\"stop_reason\":\"end_turn\",\"stop_sequence\":null,"
	          "\"usage\":{"
	          "\"input_tokens\":10,\"cache_creation_input_tokens\":600,\"cache_read_"
	          "input_tokens\""
	          ":0,\"output_tokens\":12,\"server_tool_use\":{\"web_search_requests\":"
	          "1}},"
	          "\"container\":{\"id\":\"c\"},\"context_management\":{\"applied_"
	          "edits\":[]}}");
}
END_TEST

START_TEST(assemble_unknown_kinds_of_events_are_ignored_as_the_vendor_asks)
{
	assembles(
		DIALECT_ANTHROPIC,
		START
		"event: weather\ndata: {\"type\":\"weather\",\"sky\":\"blue\"}\n\n" STOP,
		MESSAGE(""));
}
END_TEST

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
	ck_assert(run.has_content);
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
	ck_assert(!assemble_has_content(assemble));
	ck_assert_int_eq(assemble_usage(assemble)->written, 600);
	ck_assert_int_eq(assemble_usage(assemble)->read, 0);
	ck_assert_int_eq(
		assemble_feed(assemble,
	                      SPAN(BEGIN("0", "{\"type\":\"text\",\"text\":\"\"}")
	                                   DELTA("0", TEXT("a")))),
		0);
	ck_assert(assemble_has_content(assemble));
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
#define COMPLETION(choices)                                                            \
	"{\"id\":\"c1\",\"object\":\"chat.completion\",\"created\":7,\"model\":\"g\"," \
	"\"choices\":[" choices                                                        \
	"],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":2,"                   \
	"\"prompt_tokens_details\":{\"cached_tokens\":4}}}"

START_TEST(assemble_chat_text_reasoning_and_log_probabilities)
{
	assembles(
		DIALECT_OPENAI_CHAT,
		CHUNK("{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\","
	              "\"refusal\":null},\"logprobs\":null,\"finish_reason\":null}")
			CHUNK("{\"index\":0,\"delta\":{\"reasoning_content\":\"hm \"},"
	                      "\"finish_reason\":null}") CHUNK("{\"index\":0,\"delta\":{"
	                                                       "\"reasoning_content\":"
	                                                       "\"ok\"},"
	                                                       "\"finish_reason\":null}")
				CHUNK("{\"index\":0,\"delta\":{\"content\":\"He\"},"
	                              "\"logprobs\":{\"content\":["
	                              "{\"token\":\"He\"}],\"refusal\":null},\"finish_"
	                              "reason\":null}")
					CHUNK("{\"index\":0,\"delta\":{\"content\":\"y\"}"
	                                      ",\"logprobs\":{\"content\":["
	                                      "{\"token\":\"y\"}],\"refusal\":null},"
	                                      "\"finish_reason\":null}")
						CHUNK("{\"index\":0,\"delta\":{},"
	                                              "\"finish_reason\":\"stop\"}")
							USAGE_CHUNK DONE,
		COMPLETION(
			"{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":"
	                "\"Hey\","
			"\"refusal\":null,\"reasoning_content\":\"hm ok\"},\"logprobs\":{"
			"\"content\":[{\"token\":\"He\"},{\"token\":\"y\"}],\"refusal\":"
	                "null},"
			"\"finish_reason\":\"stop\"}"));
}
END_TEST

START_TEST(assemble_chat_tool_calls_are_joined_by_index)
{
	assembles(
		DIALECT_OPENAI_CHAT,
		CHUNK("{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":null,"
	              "\"tool_calls\":"
	              "[{\"index\":0,\"id\":\"call_1\",\"type\":\"function\","
	              "\"function\":{\"name\":"
	              "\"get\",\"arguments\":\"\"}}]}}")
			CHUNK("{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,"
	                      "\"function\":"
	                      "{\"arguments\":\"{\\\"a\\\"\"}}]}}")
				CHUNK("{\"index\":0,\"delta\":{\"tool_calls\":[{"
	                              "\"index\":1,\"id\":"
	                              "\"call_2\",\"type\":\"function\",\"function\":{"
	                              "\"name\":\"put\","
	                              "\"arguments\":\"{}\"}},{\"index\":0,\"function\":{"
	                              "\"arguments\":\":1}\"}}]}}")
					CHUNK("{\"index\":0,\"delta\":{},\"finish_"
	                                      "reason\":\"tool_calls\"}")
						USAGE_CHUNK DONE,
		COMPLETION("{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":"
	                   "null,"
	                   "\"tool_calls\":[{\"id\":\"call_1\",\"type\":\"function\","
	                   "\"function\":{"
	                   "\"name\":\"get\",\"arguments\":\"{\\\"a\\\":1}\"}},{\"id\":"
	                   "\"call_2\","
	                   "\"type\":\"function\",\"function\":{\"name\":\"put\","
	                   "\"arguments\":\"{}\"}"
	                   "}]},\"finish_reason\":\"tool_calls\"}"));
}
END_TEST

START_TEST(assemble_chat_members_nobody_knows_are_kept)
{
	assembles(
		DIALECT_OPENAI_CHAT,
		"data: "
	        "{\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"system_"
	        "fingerprint\":"
		"null,\"obfuscation\":\"xyz\",\"choices\":[],\"prompt_filter_results\":["
	        "1]}\n\n"
		"data: "
	        "{\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"system_"
	        "fingerprint\":"
		"\"fp\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\","
	        "\"content\":"
		"\"a\"},\"content_filter_results\":{\"hate\":0}}]}\n\n"
		"data: "
	        "{\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"b\"},"
		"\"finish_reason\":\"stop\",\"stop_reason\":17}],\"timings\":{\"cache_"
	        "n\":3}}\n\n",
		"{\"id\":\"c1\",\"object\":\"chat.completion\",\"prompt_filter_results\":"
	        "[1],"
		"\"system_fingerprint\":\"fp\",\"timings\":{\"cache_n\":3},\"choices\":[{"
	        "\"index\":0,"
		"\"message\":{\"role\":\"assistant\",\"content\":\"ab\"},\"content_"
	        "filter_results\":"
		"{\"hate\":0},\"finish_reason\":\"stop\",\"stop_reason\":17}]}");
}
END_TEST

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

SUITE_MAIN("assemble", assemble_text_arrives_piece_by_piece,
           assemble_padding_inside_events_is_no_content,
           assemble_tool_input_comes_as_pieces_of_json,
           assemble_thinking_keeps_its_signature,
           assemble_citations_and_server_tools_arrive_whole,
           assemble_the_last_word_on_the_message_counts,
           assemble_unknown_kinds_of_events_are_ignored_as_the_vendor_asks,
           assemble_what_cannot_be_placed_keeps_the_events,
           assemble_an_error_in_the_stream_is_handed_out,
           assemble_a_cut_stream_is_not_complete,
           assemble_says_when_the_prefix_is_readable,
           assemble_chat_text_reasoning_and_log_probabilities,
           assemble_chat_tool_calls_are_joined_by_index,
           assemble_chat_members_nobody_knows_are_kept,
           assemble_a_job_that_streams_gets_its_events_without_our_usage_chunk,
           assemble_an_answer_that_is_no_stream_is_left_as_it_is, assemble_is_bounded,
           assemble_a_long_answer_takes_linear_time)
