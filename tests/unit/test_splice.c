#include "common/codec/chain.h"
#include "common/codec/splice.h"
#include "tests/lib/suite.h"

#include <stdio.h>

#define P10  "policy text "
#define P100 P10 P10 P10 P10 P10 P10 P10 P10
#define PROSE                                                                           \
	P100 P100 P100 P100 P100 P100 P100 P100 P100 P100 P100 P100 P100 P100 P100 P100 \
		P100

/* A job on its way through the system: split, stored, read back, rendered. */
struct job {
	struct dialect_traits traits;
	struct chain chain;
	struct part_px px[PART_NODES_MAX];
	struct part_own own;
	struct buffer whole;
	struct splice_request request;
	struct buffer out;
	struct splice_report report;
	enum splice_refusal refusal;
};

static void
open_job(struct job *job, enum dialect dialect, const char *body)
{
	struct chain_input input = { .traits = &job->traits,
		                     .seed = 7,
		                     .upstream = SPAN("claude"),
		                     .body = span_from(body) };
	struct chain_error error;

	*job = (struct job){ .traits = *dialect_traits(dialect) };
	chain_init(&job->chain);
	buffer_init(&job->out, 1 << 20);
	buffer_init(&job->whole, 1 << 20);
	ck_assert_msg(chain_build(&job->chain, &input, &error) == 0, "%s", error.text);
	job->request = (struct splice_request){ .traits = &job->traits,
		                                .px = job->px,
		                                .own = &job->own };
	if (!job->chain.split) {
		struct chain again;

		chain_init(&again);
		ck_assert_int_eq(chain_whole(&again, dialect, input.body, &job->whole),
		                 0);
		ck_assert_int_eq(part_own_read(buffer_span(&job->whole), &job->own), 0);
		chain_fini(&again);
		return;
	}
	job->request.px_count = job->chain.count;
	for (unsigned i = 0; i < job->chain.count; i++)
		ck_assert_int_eq(part_px_read(job->chain.node[i].value, &job->px[i]), 0);
	ck_assert_int_eq(part_own_read(job->chain.own, &job->own), 0);
}

static void
close_job(struct job *job)
{
	chain_fini(&job->chain);
	buffer_fini(&job->out);
	buffer_fini(&job->whole);
}

static void
render_is(struct job *job, const char *text)
{
	buffer_clear(&job->out);
	ck_assert_int_eq(splice_render(&job->request, &job->out, &job->report), 0);
	if (!span_equals(buffer_span(&job->out), span_from(text)))
		fprintf(stderr, "rendered: %s\n", buffer_text(&job->out));
	ck_assert(span_equals(buffer_span(&job->out), span_from(text)));
}

static void
call_is(struct job *job, const char *text)
{
	buffer_clear(&job->out);
	ck_assert_int_eq(
		splice_call(&job->request, &job->out, &job->report, &job->refusal), 0);
	if (!span_equals(buffer_span(&job->out), span_from(text)))
		fprintf(stderr, "%s: %s\n", splice_refusal_text(job->refusal),
		        buffer_text(&job->out));
	ck_assert(span_equals(buffer_span(&job->out), span_from(text)));
	ck_assert_uint_eq(job->refusal, SPLICE_CALL_OK);
}

static void
call_refuses(const char *body, enum splice_refusal refusal)
{
	struct job job;

	open_job(&job, DIALECT_ANTHROPIC, body);
	ck_assert_int_eq(splice_call(&job.request, &job.out, &job.report, &job.refusal),
	                 0);
	ck_assert_msg(job.refusal == refusal, "%s: %s", body,
	              splice_refusal_text(job.refusal));
	ck_assert_uint_eq(job.out.len, 0);
	close_job(&job);
}

#define MARK        ",\"cache_control\":{\"type\":\"ephemeral\"}"
#define MARK1       ",\"cache_control\":{\"type\":\"ephemeral\",\"ttl\":\"1h\"}"
#define TOOLS(mark) "{\"model\":\"m\",\"tools\":[{\"name\":\"a\"" mark "}]"

START_TEST(splice_unmarked_it_is_what_was_sent_and_streams)
{
	struct job job;

	open_job(&job, DIALECT_ANTHROPIC,
	         "{\"model\":\"m\",\"system\":\"" PROSE
	         "\",\"messages\":[],\"max_tokens\":9}");
	render_is(&job, "{\"model\":\"m\",\"system\":\"" PROSE
	                "\",\"messages\":[],\"max_tokens\":9,\"stream\":true}");
	ck_assert(job.report.streams);
	ck_assert(!job.report.job_streams);
	ck_assert_uint_eq(job.report.stream, SPLICE_ABSENT);
	ck_assert_uint_eq(job.report.plan.wire, 0);
	ck_assert_uint_eq(job.report.plan.reason[1], MARKER_NOT_WANTED);
	job.request.stream_never = true;
	render_is(&job, "{\"model\":\"m\",\"system\":\"" PROSE
	                "\",\"messages\":[],\"max_tokens\":9}");
	ck_assert(!job.report.streams);
	close_job(&job);
}
END_TEST

START_TEST(splice_a_string_becomes_a_block_only_where_a_marker_needs_it)
{
	struct job job;

	open_job(&job, DIALECT_ANTHROPIC,
	         TOOLS("") ",\"system\":\"" PROSE "\",\"messages\":[],\"stream\":false}");
	job.request.want = 2;
	render_is(&job, TOOLS("") ",\"system\":[{\"type\":\"text\",\"text\":\"" PROSE
	                          "\"" MARK "}],\"messages\":[],\"stream\":true}");
	ck_assert_uint_eq(job.report.plan.insert, 2);
	ck_assert_uint_eq(job.report.plan.wire, 2);
	ck_assert_uint_eq(job.report.stream, SPLICE_FALSE);
	job.request.want = 3;
	render_is(&job, TOOLS(MARK) ",\"system\":[{\"type\":\"text\",\"text\":\"" PROSE
	                            "\"" MARK "}],\"messages\":[],\"stream\":true}");
	job.request.markers_never = true;
	render_is(&job,
	          TOOLS("") ",\"system\":\"" PROSE "\",\"messages\":[],\"stream\":true}");
	ck_assert_uint_eq(job.report.plan.reason[0], MARKER_FORBIDDEN);
	close_job(&job);
}
END_TEST

START_TEST(splice_the_users_marker_is_put_back_where_it_was)
{
	struct job job;

	open_job(&job, DIALECT_ANTHROPIC,
	         "{\"system\":[{\"type\":\"text\",\"text\":\"" PROSE "\"" MARK1
	         "}],\"messages\":[],\"stream\":true}");
	render_is(&job, "{\"system\":[{\"type\":\"text\",\"text\":\"" PROSE "\"" MARK1
	                "}],\"messages\":[],\"stream\":true}");
	ck_assert_uint_eq(job.report.plan.insert, 0);
	ck_assert_uint_eq(job.report.plan.wire, 2);
	ck_assert_uint_eq(job.report.plan.reason[1], MARKER_USERS);
	ck_assert_uint_eq(job.report.stream, SPLICE_KEPT);
	ck_assert(job.report.job_streams);
	ck_assert_uint_eq(job.report.edit_count, 0);
	close_job(&job);
}
END_TEST

START_TEST(splice_jobs_of_a_family_differ_only_behind_the_boundary)
{
	struct job a, b;
	size_t at = 0;

	open_job(&a, DIALECT_ANTHROPIC,
	         "{\"model\":\"m\",\"system\":\"" PROSE
	         "\",\"messages\":[{\"role\":\"user\","
	         "\"content\":\"one\"}],\"max_tokens\":9}");
	open_job(&b, DIALECT_ANTHROPIC,
	         " {\"max_tokens\":8,\"messages\":[{\"role\":\"user\",\"content\":"
	         "\"two\"}],"
	         "\"system\":[{\"type\":\"text\",\"text\":\"" PROSE "\"" MARK
	         "}],\"model\":\"m\"}");
	a.request.want = b.request.want = 2;
	ck_assert_int_eq(splice_render(&a.request, &a.out, &a.report), 0);
	ck_assert_int_eq(splice_render(&b.request, &b.out, &b.report), 0);
	while (a.out.data[at] == b.out.data[at])
		at++;
	ck_assert(memcmp(a.out.data + at, "one", 3) == 0);
	ck_assert(memcmp(b.out.data + at, "two", 3) == 0);
	close_job(&a);
	close_job(&b);
}
END_TEST

START_TEST(splice_chat_asks_for_usage_and_keeps_what_else_was_asked)
{
	static const struct {
		const char *sent;
		const char *wanted;
		enum splice_was usage;
	} cases[] = {
		{ "\"n\":1}",
		  "\"n\":1,\"stream\":true,\"stream_options\":{\"include_usage\":true}}",
		  SPLICE_NO_PARENT },
		{ "\"stream\":true}",
		  "\"stream\":true,\"stream_options\":{\"include_usage\":true}}",
		  SPLICE_NO_PARENT },
		{ "\"stream\":true,\"stream_options\":{\"include_usage\":true}}",
		  "\"stream\":true,\"stream_options\":{\"include_usage\":true}}",
		  SPLICE_KEPT },
		{ "\"stream\":true,\"stream_options\":{\"a\":1,\"include_usage\":false}}",
		  "\"stream\":true,\"stream_options\":{\"a\":1,\"include_usage\":true}}",
		  SPLICE_FALSE },
		{ "\"stream\":true,\"stream_options\":{\"a\":1}}",
		  "\"stream\":true,\"stream_options\":{\"a\":1,\"include_usage\":true}}",
		  SPLICE_ABSENT },
		{ "\"stream\":true,\"stream_options\":{}}",
		  "\"stream\":true,\"stream_options\":{\"include_usage\":true}}",
		  SPLICE_ABSENT },
		{ "\"stream_options\":null}",
		  "\"stream_options\":{\"include_usage\":true},\"stream\":true}",
		  SPLICE_NULL_PARENT },
		{ "\"n\":2}", "\"n\":2}", SPLICE_KEPT },
		{ "\"n\":2,\"stream\":false}", "\"n\":2,\"stream\":false}", SPLICE_KEPT },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char sent[512], wanted[512];
		struct job job;

		(void)snprintf(sent, sizeof sent, "{\"messages\":[],%s", cases[i].sent);
		(void)snprintf(wanted, sizeof wanted, "{\"messages\":[],%s",
		               cases[i].wanted);
		open_job(&job, DIALECT_OPENAI_CHAT, sent);
		render_is(&job, wanted);
		ck_assert_uint_eq(job.report.usage, cases[i].usage);
		close_job(&job);
	}
}
END_TEST

START_TEST(splice_chat_adds_key_breakpoint_and_mode_by_the_models_flags)
{
#define CHAT(tail)                                                                 \
	"{\"model\":\"g\",\"messages\":[{\"role\":\"system\",\"content\":\"" PROSE \
	"\"},{\"role\":\"user\",\"content\":\"q\"}" tail
#define MARKED(tail)                                                                     \
	"{\"model\":\"g\",\"messages\":[{\"role\":\"system\",\"content\":[{\"type\":"    \
	"\"text\","                                                                      \
	"\"text\":\"" PROSE "\",\"prompt_cache_breakpoint\":{\"mode\":\"explicit\"}}]}," \
	"{\"role\":\"user\",\"content\":\"q\"}" tail
	struct job job;

	open_job(&job, DIALECT_OPENAI_CHAT, CHAT("],\"stream\":true}"));
	job.traits.markers = MARKER_BREAKPOINT;
	job.traits.include_usage = false;
	job.traits.cache_key = job.traits.cache_mode = true;
	job.request.cache_key = SPAN("wq-00-0");
	job.request.want = 2;
	render_is(&job, MARKED("],\"stream\":true,\"prompt_cache_key\":\"wq-00-0\","
	                       "\"prompt_cache_options\":{\"mode\":\"explicit\"}}"));
	close_job(&job);

	/* a conversation keeps the implicit mode, the user's own key stays */
	open_job(&job, DIALECT_OPENAI_CHAT,
	         CHAT(",{\"role\":\"assistant\",\"content\":\"a\"}],\"stream\":true,"
	              "\"prompt_cache_key\":\"mine\"}"));
	job.traits.markers = MARKER_BREAKPOINT;
	job.traits.include_usage = false;
	job.traits.cache_key = job.traits.cache_mode = true;
	job.request.cache_key = SPAN("wq-00-0");
	job.request.want = 2;
	render_is(&job,
	          MARKED(",{\"role\":\"assistant\",\"content\":\"a\"}],\"stream\":true,"
	                 "\"prompt_cache_key\":\"mine\"}"));
	close_job(&job);

	/* without a breakpoint the explicit mode would cache nothing at all */
	open_job(&job, DIALECT_OPENAI_CHAT, CHAT("],\"stream\":true}"));
	job.traits.markers = MARKER_BREAKPOINT;
	job.traits.include_usage = false;
	job.traits.cache_mode = true;
	render_is(&job, CHAT("],\"stream\":true}"));
	close_job(&job);
}
END_TEST

START_TEST(splice_an_opaque_job_goes_out_untouched)
{
	struct job job;

	open_job(&job, DIALECT_ANTHROPIC, " { \"a\" : 1 , \"a\" : 2 } ");
	job.request.want = 7;
	render_is(&job, " { \"a\" : 1 , \"a\" : 2 } ");
	ck_assert(!job.report.streams);
	ck_assert_uint_eq(job.report.edit_count, 0);
	close_job(&job);
}
END_TEST

START_TEST(splice_parts_of_another_dialect_or_order_are_refused)
{
	struct job job;
	struct part_px swap;

	open_job(&job, DIALECT_ANTHROPIC,
	         "{\"model\":\"m\",\"system\":\"" PROSE "\",\"messages\":[]}");
	job.traits.dialect = DIALECT_OPENAI_CHAT;
	ck_assert_int_eq(splice_render(&job.request, &job.out, &job.report),
	                 ERR_MALFORMED);
	job.traits.dialect = DIALECT_ANTHROPIC;
	job.px[1].dialect = DIALECT_OPENAI_CHAT; /* one segment alone */
	ck_assert_int_eq(splice_render(&job.request, &job.out, &job.report),
	                 ERR_MALFORMED);
	job.px[1].dialect = DIALECT_ANTHROPIC;
	swap = job.px[0];
	job.px[0] = job.px[1];
	job.px[1] = swap;
	ck_assert_int_eq(splice_render(&job.request, &job.out, &job.report),
	                 ERR_MALFORMED);
	job.request.px_count = 0;
	ck_assert_int_eq(splice_call(&job.request, &job.out, &job.report, &job.refusal),
	                 ERR_MALFORMED);
	close_job(&job);
}
END_TEST

START_TEST(splice_call_of_a_system_part_is_one_character_long)
{
	struct job job;

	open_job(&job, DIALECT_ANTHROPIC,
	         "{\"model\":\"m\",\"system\":\"" PROSE
	         "\",\"messages\":[{\"role\":\"user\","
	         "\"content\":[{\"type\":\"text\",\"text\":\"q\"" MARK
	         "}]}],\"max_tokens\":99,"
	         "\"stream\":true,\"metadata\":{\"user_id\":\"u\"},\"temperature\":1,"
	         "\"tool_choice\":{\"type\":\"any\"},\"cache_control\":{\"type\":"
	         "\"ephemeral\"},"
	         "\"thinking\":{\"type\":\"adaptive\"}}");
	call_is(&job, "{\"model\":\"m\",\"system\":[{\"type\":\"text\",\"text\":\"" PROSE
	              "\"" MARK "}],\"messages\":[{\"role\":\"user\",\"content\":\".\"}],"
	              "\"thinking\":{\"type\":\"adaptive\"},\"max_tokens\":0}");
	ck_assert_uint_eq(job.report.plan.insert, 2);
	close_job(&job);
}
END_TEST

START_TEST(splice_call_of_tools_alone_has_nothing_but_them)
{
	struct job job;

	open_job(&job, DIALECT_ANTHROPIC,
	         "{\"model\":\"m\",\"tools\":[{\"name\":\"" PROSE
	         "\"}],\"messages\":[]}");
	call_is(&job, "{\"model\":\"m\",\"tools\":[{\"name\":\"" PROSE "\"" MARK
	              "}],\"messages\":[{\"role\":\"user\",\"content\":\".\"}],\"max_"
	              "tokens\":0}");
	close_job(&job);
}
END_TEST

START_TEST(splice_call_of_messages_follows_how_they_end)
{
#define DOC   "{\"type\":\"text\",\"text\":\"" PROSE "\"" MARK "}"
#define PLAIN "{\"type\":\"text\",\"text\":\"" PROSE "\"}"
	struct job job;

	/* inside a user turn */
	open_job(&job, DIALECT_ANTHROPIC,
	         "{\"messages\":[{\"role\":\"user\",\"content\":[" DOC
	         ",{\"type\":\"text\",\"text\":\"q\"}]}],\"tool_choice\":{\"type\":"
	         "\"none\"}}");
	call_is(&job, "{\"messages\":[{\"role\":\"user\",\"content\":[" DOC
	              ",{\"type\":\"text\",\"text\":\".\"}]}],"
	              "\"tool_choice\":{\"type\":\"none\"},\"max_tokens\":0}");
	close_job(&job);

	/* at the end of a user turn that is one string */
	open_job(&job, DIALECT_ANTHROPIC,
	         "{\"messages\":[{\"role\":\"user\",\"content\":[" DOC "]},"
	         "{\"role\":\"assistant\",\"content\":\"a\"},{\"role\":\"user\","
	         "\"content\":\"q\"}]}");
	call_is(&job, "{\"messages\":[{\"role\":\"user\",\"content\":[" DOC
	              "]}],\"max_tokens\":0}");
	close_job(&job);

	/* behind an assistant turn */
	open_job(&job, DIALECT_ANTHROPIC,
	         "{\"messages\":[{\"role\":\"user\",\"content\":\"u\"},{\"role\":"
	         "\"assistant\","
	         "\"content\":[" PLAIN "," DOC
	         "]},{\"role\":\"user\",\"content\":\"q\"}]}");
	call_is(&job,
	        "{\"messages\":[{\"role\":\"user\",\"content\":\"u\"},{\"role\":"
	        "\"assistant\","
	        "\"content\":[" PLAIN "," DOC "]},{\"role\":\"user\",\"content\":\".\"}],"
	        "\"max_tokens\":0}");
	close_job(&job);
}
END_TEST

START_TEST(splice_call_with_one_token_for_engines_that_refuse_none)
{
	struct job job;

	open_job(
		&job, DIALECT_OPENAI_CHAT,
		"{\"model\":\"g\",\"messages\":[{\"role\":\"system\",\"content\":\"" PROSE
		"\"},{\"role\":\"user\",\"content\":\"q\"}],\"prompt_cache_key\":\"k\"}");
	job.traits.call = CALL_ONE;
	call_is(&job,
	        "{\"model\":\"g\",\"messages\":[{\"role\":\"system\",\"content\":\"" PROSE
	        "\"},{\"role\":\"user\",\"content\":\".\"}],\"prompt_cache_key\":\"k\","
	        "\"max_tokens\":1}");
	job.traits.call = CALL_NONE;
	ck_assert_int_eq(splice_call(&job.request, &job.out, &job.report, &job.refusal),
	                 0);
	ck_assert_uint_eq(job.refusal, SPLICE_CALL_NONE);
	close_job(&job);
}
END_TEST

START_TEST(splice_call_says_why_a_job_has_to_lead)
{
#define SYSTEM(setting) "{\"system\":\"" PROSE "\",\"messages\":[]," setting "}"
#define SHARED(tail, setting) \
	"{\"messages\":[{\"role\":\"user\",\"content\":[" DOC "," tail "]}]," setting "}"
#define Q "{\"type\":\"text\",\"text\":\"q\"}"
	call_refuses(SYSTEM("\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":1024}"),
	             SPLICE_CALL_THINKING);
	call_refuses(SYSTEM("\"output_config\":{\"format\":{\"type\":\"json_schema\"}}"),
	             SPLICE_CALL_FORMAT);
	call_refuses(SYSTEM("\"context_management\":{\"edits\":[]}"),
	             SPLICE_CALL_CONTEXT);
	call_refuses(SYSTEM("\"mcp_servers\":[{\"url\":\"x\"}]"), SPLICE_CALL_HELD);
	call_refuses(SHARED(Q, "\"tool_choice\":{\"type\":\"any\"}"), SPLICE_CALL_TOOL);
	call_refuses(SHARED(Q, "\"tool_choice\":{\"type\":\"tool\",\"name\":\"a\"}"),
	             SPLICE_CALL_TOOL);
	call_refuses(SHARED("{\"type\":\"image\",\"source\":{}}", "\"top_k\":1"),
	             SPLICE_CALL_IMAGE);
	call_refuses(
		SHARED(Q,
	               "\"tools\":[{\"type\":\"web_search_20250305\",\"name\":\"w\"}]"),
		SPLICE_CALL_SERVER);
	call_refuses("{\"system\":\"" PROSE
	             "\",\"messages\":[{\"role\":\"user\",\"content\":[{"
	             "\"type\":\"document\",\"citations\":{\"enabled\":true}}]}]}",
	             SPLICE_CALL_CITATIONS);
	call_refuses("{\"messages\":[{\"role\":\"user\",\"content\":\"" PROSE
	             "\"},{\"role\":"
	             "\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"t\"" MARK
	             "}]},{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\"}]}]}",
	             SPLICE_CALL_TOOL_USE);
	call_refuses("{\"tools\":[{\"name\":\"" PROSE "\",\"defer_loading\":true}]}",
	             SPLICE_CALL_UNMARKED);
}
END_TEST

SUITE_MAIN("splice", splice_unmarked_it_is_what_was_sent_and_streams,
           splice_a_string_becomes_a_block_only_where_a_marker_needs_it,
           splice_the_users_marker_is_put_back_where_it_was,
           splice_jobs_of_a_family_differ_only_behind_the_boundary,
           splice_chat_asks_for_usage_and_keeps_what_else_was_asked,
           splice_chat_adds_key_breakpoint_and_mode_by_the_models_flags,
           splice_an_opaque_job_goes_out_untouched,
           splice_parts_of_another_dialect_or_order_are_refused,
           splice_call_of_a_system_part_is_one_character_long,
           splice_call_of_tools_alone_has_nothing_but_them,
           splice_call_of_messages_follows_how_they_end,
           splice_call_with_one_token_for_engines_that_refuse_none,
           splice_call_says_why_a_job_has_to_lead)
