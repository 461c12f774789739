#include "provider/answer.h"

#include "provider/anthropic_answer.h"
#include "provider/frames.h"
#include "provider/openai_answer.h"

uint32_t
answer_tokens(const struct ask_want *want, const struct settings *settings)
{
	uint64_t wish = settings_get(settings, SETTINGS_OUTPUT_TOKENS);

	return (uint32_t)MIN(wish, want->output_max);
}

void
answer_write(const struct answer *answer, struct script *script)
{
	bool stream = answer->want->stream;

	switch (answer->want->dialect) {
	case ASK_ANTHROPIC:
		if (stream)
			anthropic_answer_stream(answer, script);
		else
			anthropic_answer_whole(answer, script);
		break;
	case ASK_OPENAI:
		if (stream)
			openai_answer_stream(answer, script);
		else
			openai_answer_whole(answer, script);
		break;
	}
}

static void
append_quoted_or_null(const char *text, struct buffer *out)
{
	if (text && text[0] != '\0')
		(void)buffer_append_json(out, span_from(text));
	else
		(void)buffer_append_text(out, "null");
}

/* {"type":"error","error":{"type":T,"message":M},"request_id":R}, and the spend cap's
 * code in `details`; or {"error":{"message","type","param","code"}}. */
void
answer_error(enum ask_dialect dialect, const char *type, const char *code,
             struct span message, const char *request_id, struct buffer *out)
{
	if (dialect == ASK_OPENAI) {
		(void)buffer_append_text(out, "{\"error\":{\"message\":");
		(void)buffer_append_json(out, message);
		(void)buffer_append_format(
			out, ",\"type\":\"%s\",\"param\":null,\"code\":", type);
		append_quoted_or_null(code, out);
		(void)buffer_append_text(out, "}}");
		return;
	}
	(void)buffer_append_format(out,
	                           "{\"type\":\"error\",\"error\":{\"type\":\"%s\","
	                           "\"message\":",
	                           type);
	(void)buffer_append_json(out, message);
	if (code)
		(void)buffer_append_format(out, ",\"details\":{\"error_code\":\"%s\"}",
		                           code);
	(void)buffer_append_text(out, "},\"request_id\":");
	append_quoted_or_null(request_id, out);
	(void)buffer_append_byte(out, '}');
}

void
answer_stream_error(enum ask_dialect dialect, const struct settings *settings,
                    struct script *script, uint64_t due_us)
{
	struct frames frames = { .script = script, .settings = settings };
	struct buffer json = BUFFER_INIT(4096);

	if (dialect == ASK_OPENAI) {
		answer_error(
			dialect, "server_error", NULL,
			SPAN("The server had an error while processing your request."),
			"", &json);
		frames_add(&frames, NULL, buffer_span(&json), due_us);
	} else {
		answer_error(dialect, "overloaded_error", NULL, SPAN("Overloaded"), "",
		             &json);
		frames_add(&frames, "error", buffer_span(&json), due_us);
	}
	buffer_fini(&json);
}
