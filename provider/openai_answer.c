#include "provider/openai_answer.h"

#include "provider/answer_text.h"
#include "provider/frames.h"

static void
append_usage(const struct answer *answer, struct buffer *out)
{
	const struct cache_usage *usage = &answer->usage;
	uint64_t as = settings_get(answer->settings, SETTINGS_UNKNOWN_AS);
	bool is_null = settings_get(answer->settings, SETTINGS_NULL_ON_MISS) &&
	               usage->read_tokens == 0;

	(void)buffer_append_format(
		out, "{\"prompt_tokens\":%u,\"completion_tokens\":%u,\"total_tokens\":%u",
		usage->total_tokens, answer->output_tokens,
		usage->total_tokens + answer->output_tokens);
	if (!usage->known && as == SETTINGS_UNKNOWN_NULL)
		(void)buffer_append_text(out, ",\"prompt_tokens_details\":null");
	else if (!usage->known && as == SETTINGS_UNKNOWN_ZERO)
		(void)buffer_append_text(
			out, ",\"prompt_tokens_details\":{\"cached_tokens\":0}");
	else if (usage->known && is_null)
		(void)buffer_append_text(
			out, ",\"prompt_tokens_details\":{\"cached_tokens\":null}");
	else if (usage->known)
		(void)buffer_append_format(
			out,
			",\"prompt_tokens_details\":{\"cached_tokens\":%u,"
			"\"cache_write_tokens\":%u,\"audio_tokens\":0}",
			usage->read_tokens, usage->written_tokens);
	(void)buffer_append_text(
		out, ",\"completion_tokens_details\":{\"reasoning_tokens\":0}}");
}

static void
append_head(const struct answer *answer, const char *object, struct buffer *out)
{
	(void)buffer_append_format(out,
	                           "{\"id\":\"chatcmpl-%016llx\",\"object\":\"%s\","
	                           "\"created\":%llu,\"model\":",
	                           (unsigned long long)answer->id, object,
	                           (unsigned long long)answer->created_s);
	(void)buffer_append_json(out, span_from(answer->want->model));
	(void)buffer_append_text(out, ",\"system_fingerprint\":\"fp_simulated\","
	                              "\"choices\":[");
}

static bool
is_tool(const struct answer *answer)
{
	uint64_t wish = settings_get(answer->settings, SETTINGS_ANSWER);

	return wish == SETTINGS_ANSWER_TOOL_USE ||
	       (wish == SETTINGS_ANSWER_AUTO && answer->want->answer == ASK_ANSWER_TOOL);
}

static const char *
finish_reason(const struct answer *answer)
{
	if (is_tool(answer))
		return "tool_calls";
	return answer->output_tokens >= answer->want->output_max ? "length" : "stop";
}

static void
append_arguments(const struct answer *answer, struct buffer *out)
{
	(void)buffer_append_format(out, "\"{\\\"echo\\\":\\\"%016llx\\\"}\"",
	                           (unsigned long long)answer->want->digest);
}

static void
append_call(const struct answer *answer, uint32_t choice, struct buffer *out)
{
	const char *tool = answer->want->tool[0] ? answer->want->tool : "answer";

	(void)buffer_append_format(out,
	                           "\"id\":\"call_%016llx%u\",\"type\":\"function\","
	                           "\"function\":{\"name\":",
	                           (unsigned long long)answer->id, choice);
	(void)buffer_append_json(out, span_from(tool));
	(void)buffer_append_text(out, ",\"arguments\":");
}

/* --- chunks ------------------------------------------------------------------------ */

struct stream {
	const struct answer *answer;
	struct frames frames;
	struct buffer json; /* scratch */
	struct buffer text;
};

static void
begin(struct stream *stream, uint32_t choice)
{
	append_head(stream->answer, "chat.completion.chunk", &stream->json);
	(void)buffer_append_format(&stream->json, "{\"index\":%u,\"delta\":{", choice);
}

/* Ends the delta and its chunk. */
static void
end(struct stream *stream, const char *reason, uint64_t due_us)
{
	(void)buffer_append_text(&stream->json, "},\"logprobs\":null,\"finish_reason\":");
	if (reason)
		(void)buffer_append_json(&stream->json, span_from(reason));
	else
		(void)buffer_append_text(&stream->json, "null");
	(void)buffer_append_text(&stream->json, "}]");
	if (stream->answer->want->include_usage)
		(void)buffer_append_text(&stream->json, ",\"usage\":null");
	(void)buffer_append_byte(&stream->json, '}');
	frames_add(&stream->frames, NULL, buffer_span(&stream->json), due_us);
	buffer_clear(&stream->json);
}

static void
tool_chunks(struct stream *stream, uint32_t choice)
{
	const struct answer *answer = stream->answer;

	begin(stream, choice);
	(void)buffer_append_text(&stream->json, "\"role\":\"assistant\",\"content\":null,"
	                                        "\"tool_calls\":[{\"index\":0,");
	append_call(answer, choice, &stream->json);
	(void)buffer_append_text(&stream->json, "\"\"}}],\"refusal\":null");
	end(stream, NULL, 0);
	begin(stream, choice);
	(void)buffer_append_text(
		&stream->json,
		"\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":");
	append_arguments(answer, &stream->json);
	(void)buffer_append_text(&stream->json, "}}]");
	end(stream, NULL, answer->decode_us);
}

/* All choices advance together, as they do in life. */
static void
text_chunks(struct stream *stream)
{
	const struct answer *answer = stream->answer;
	uint64_t count = settings_get(answer->settings, SETTINGS_DELTAS);

	for (uint32_t choice = 0; choice < answer->want->choices; choice++) {
		begin(stream, choice);
		(void)buffer_append_text(&stream->json,
		                         "\"role\":\"assistant\",\"content\":\"\","
		                         "\"refusal\":null");
		end(stream, NULL, 0);
	}
	for (uint64_t i = 0; i < count; i++) {
		struct span part = answer_text_part(buffer_span(&stream->text), i, count);

		for (uint32_t choice = 0; choice < answer->want->choices && part.len > 0;
		     choice++) {
			begin(stream, choice);
			(void)buffer_append_text(&stream->json, "\"content\":");
			(void)buffer_append_json(&stream->json, part);
			end(stream, NULL, answer->decode_us * (i + 1) / count);
		}
	}
}

void
openai_answer_stream(const struct answer *answer, struct script *script)
{
	struct stream stream = {
		.answer = answer,
		.frames = { .script = script, .settings = answer->settings },
		.json = BUFFER_INIT(BUFFER_SIZE_DEFAULT),
		.text = BUFFER_INIT(BUFFER_SIZE_DEFAULT),
	};

	answer_text_append(answer->want->digest, answer->output_tokens, &stream.text);
	if (is_tool(answer))
		for (uint32_t i = 0; i < answer->want->choices; i++)
			tool_chunks(&stream, i);
	else
		text_chunks(&stream);
	for (uint32_t i = 0; i < answer->want->choices; i++) {
		begin(&stream, i);
		end(&stream, finish_reason(answer), answer->decode_us);
	}
	if (answer->want->include_usage) {
		append_head(answer, "chat.completion.chunk", &stream.json);
		(void)buffer_append_text(&stream.json, "],\"usage\":");
		append_usage(answer, &stream.json);
		(void)buffer_append_byte(&stream.json, '}');
		script_mark_usage(script);
		frames_add(&stream.frames, NULL, buffer_span(&stream.json),
		           answer->decode_us);
	}
	frames_add(&stream.frames, NULL, SPAN("[DONE]"), answer->decode_us);
	buffer_fini(&stream.json);
	buffer_fini(&stream.text);
}

void
openai_answer_whole(const struct answer *answer, struct script *script)
{
	struct buffer *out = &script->bytes;
	struct buffer text = BUFFER_INIT(BUFFER_SIZE_DEFAULT);

	answer_text_append(answer->want->digest, answer->output_tokens, &text);
	append_head(answer, "chat.completion", out);
	for (uint32_t i = 0; i < answer->want->choices; i++) {
		(void)buffer_append_format(out,
		                           "%s{\"index\":%u,\"message\":{\"role\":"
		                           "\"assistant\",\"content\":",
		                           i > 0 ? "," : "", i);
		if (is_tool(answer)) {
			(void)buffer_append_text(out, "null,\"tool_calls\":[{");
			append_call(answer, i, out);
			append_arguments(answer, out);
			(void)buffer_append_text(out, "}}]");
		} else {
			(void)buffer_append_json(out, buffer_span(&text));
		}
		(void)buffer_append_format(out,
		                           ",\"refusal\":null},\"logprobs\":null,"
		                           "\"finish_reason\":\"%s\"}",
		                           finish_reason(answer));
	}
	(void)buffer_append_text(out, "],\"usage\":");
	append_usage(answer, out);
	(void)buffer_append_byte(out, '}');
	script_mark_usage(script);
	script_add(script, answer->decode_us);
	buffer_fini(&text);
}
