#include "provider/anthropic_answer.h"

#include "provider/answer_text.h"
#include "provider/frames.h"

#define BLOCKS_MAX 4

/* --- content blocks ---------------------------------------------------------------- */

enum block_kind {
	BLOCK_THINKING,
	BLOCK_TEXT,
	BLOCK_CITED_TEXT,
	BLOCK_NOVEL_TEXT, /* its stream has a delta of a type nobody knows */
	BLOCK_TOOL_USE,
	BLOCK_SERVER_TOOL_USE,
	BLOCK_SEARCH_RESULT, /* comes whole, without deltas */
};

struct content {
	enum block_kind blocks[BLOCKS_MAX];
	uint32_t count;
	struct buffer text; /* of the text block */
};

static void
add(struct content *content, enum block_kind kind)
{
	VERIFY(content->count < BLOCKS_MAX);
	content->blocks[content->count++] = kind;
}

static void
compose(const struct answer *answer, struct content *content)
{
	uint64_t wish = settings_get(answer->settings, SETTINGS_ANSWER);

	*content = (struct content){ .text = BUFFER_INIT(BUFFER_SIZE_DEFAULT) };
	answer_text_append(answer->want->digest, answer->output_tokens, &content->text);
	if (wish == SETTINGS_ANSWER_AUTO && answer->want->answer == ASK_ANSWER_THINKING)
		wish = SETTINGS_ANSWER_THINKING;
	else if (wish == SETTINGS_ANSWER_AUTO && answer->want->answer == ASK_ANSWER_TOOL)
		wish = SETTINGS_ANSWER_TOOL_USE;
	switch (wish) {
	case SETTINGS_ANSWER_THINKING:
		add(content, BLOCK_THINKING);
		add(content, BLOCK_TEXT);
		break;
	case SETTINGS_ANSWER_TOOL_USE:
		add(content, BLOCK_TOOL_USE);
		break;
	case SETTINGS_ANSWER_CITATIONS:
		add(content, BLOCK_CITED_TEXT);
		break;
	case SETTINGS_ANSWER_SERVER_TOOL:
		add(content, BLOCK_SERVER_TOOL_USE);
		add(content, BLOCK_SEARCH_RESULT);
		add(content, BLOCK_TEXT);
		break;
	case SETTINGS_ANSWER_UNKNOWN_DELTA:
		add(content, BLOCK_NOVEL_TEXT);
		break;
	default:
		add(content, BLOCK_TEXT);
	}
}

static const char *
stop_reason(const struct answer *answer, const struct content *content)
{
	if (answer->want->warm_only)
		return "max_tokens";
	if (content->blocks[content->count - 1] == BLOCK_TOOL_USE)
		return "tool_use";
	return answer->output_tokens >= answer->want->output_max ? "max_tokens"
	                                                         : "end_turn";
}

#define THINKING_TEXT "The question has been read; it is answered by its digest."
#define SIGNATURE     "c2ltdWxhdGVkIHNpZ25hdHVyZQ=="
#define CITATION                                                                    \
	"{\"type\":\"char_location\",\"cited_text\":\"alfa\",\"document_index\":0," \
	"\"document_title\":\"simulated\",\"start_char_index\":0,\"end_char_index\":4}"
#define SEARCH_INPUT "{\"query\":\"alfa\"}"
#define SEARCH_RESULTS                                                         \
	"[{\"type\":\"web_search_result\",\"title\":\"Alfa\",\"url\":"         \
	"\"https://example.com/alfa\",\"encrypted_content\":\"c2ltdWxhdGVk\"," \
	"\"page_age\":null}]"

static void
append_tool_input(const struct answer *answer, struct buffer *out)
{
	(void)buffer_append_format(out, "{\"echo\":\"%016llx\"}",
	                           (unsigned long long)answer->want->digest);
}

/* The block as it is when it starts (`whole` false), or when it is complete. */
static void
append_block(const struct answer *answer, const struct content *content,
             enum block_kind kind, bool whole, struct buffer *out)
{
	switch (kind) {
	case BLOCK_THINKING:
		(void)buffer_append_format(out,
		                           "{\"type\":\"thinking\",\"thinking\":\"%s\","
		                           "\"signature\":\"%s\"}",
		                           whole ? THINKING_TEXT : "",
		                           whole ? SIGNATURE : "");
		break;
	case BLOCK_TEXT:
	case BLOCK_NOVEL_TEXT:
	case BLOCK_CITED_TEXT:
		(void)buffer_append_text(out, "{\"type\":\"text\",\"text\":");
		(void)buffer_append_json(out,
		                         whole ? buffer_span(&content->text) : SPAN(""));
		if (kind == BLOCK_CITED_TEXT)
			(void)buffer_append_format(out, ",\"citations\":[%s]",
			                           whole ? CITATION : "");
		(void)buffer_append_byte(out, '}');
		break;
	case BLOCK_TOOL_USE:
		(void)buffer_append_format(
			out,
			"{\"type\":\"tool_use\",\"id\":\"toolu_%016llx\","
			"\"name\":",
			(unsigned long long)answer->id);
		(void)buffer_append_json(
			out,
			span_from(answer->want->tool[0] ? answer->want->tool : "answer"));
		(void)buffer_append_text(out, ",\"input\":");
		if (whole)
			append_tool_input(answer, out);
		else
			(void)buffer_append_text(out, "{}");
		(void)buffer_append_byte(out, '}');
		break;
	case BLOCK_SERVER_TOOL_USE:
		(void)buffer_append_format(out,
		                           "{\"type\":\"server_tool_use\",\"id\":"
		                           "\"srvtoolu_%016llx\",\"name\":\"web_search\","
		                           "\"input\":%s}",
		                           (unsigned long long)answer->id,
		                           whole ? SEARCH_INPUT : "{}");
		break;
	case BLOCK_SEARCH_RESULT:
		(void)buffer_append_format(out,
		                           "{\"type\":\"web_search_tool_result\","
		                           "\"tool_use_id\":\"srvtoolu_%016llx\","
		                           "\"content\":" SEARCH_RESULTS "}",
		                           (unsigned long long)answer->id);
		break;
	}
}

/* --- usage ------------------------------------------------------------------------- */

static void
append_cache_figures(const struct answer *answer, struct buffer *out)
{
	const struct cache_usage *usage = &answer->usage;
	uint64_t as = settings_get(answer->settings, SETTINGS_UNKNOWN_AS);

	if (!usage->known && as == SETTINGS_UNKNOWN_ABSENT)
		return;
	if (!usage->known && as == SETTINGS_UNKNOWN_NULL) {
		(void)buffer_append_text(out, ",\"cache_creation_input_tokens\":null,"
		                              "\"cache_read_input_tokens\":null,"
		                              "\"cache_creation\":null");
		return;
	}
	(void)buffer_append_format(
		out,
		",\"cache_creation_input_tokens\":%u,\"cache_read_input_tokens\":%u,"
		"\"cache_creation\":{\"ephemeral_5m_input_tokens\":%u,"
		"\"ephemeral_1h_input_tokens\":%u}",
		usage->known ? usage->written_tokens : 0,
		usage->known ? usage->read_tokens : 0,
		usage->known ? usage->written_5m_tokens : 0,
		usage->known ? usage->written_1h_tokens : 0);
}

/* `true_split`: input without what was read and written; else the total. */
static void
append_counts(const struct answer *answer, bool true_split, uint32_t output_tokens,
              struct buffer *out)
{
	bool split = true_split && answer->usage.known;

	(void)buffer_append_format(out, "\"input_tokens\":%u",
	                           split ? answer->usage.uncached_tokens
	                                 : answer->usage.total_tokens);
	if (true_split)
		append_cache_figures(answer, out);
	(void)buffer_append_format(out, ",\"output_tokens\":%u", output_tokens);
}

/* Known once the answer has ended. */
static void
append_tools(const struct answer *answer, struct buffer *out)
{
	if (settings_get(answer->settings, SETTINGS_ANSWER) ==
	    SETTINGS_ANSWER_SERVER_TOOL)
		(void)buffer_append_text(out, ",\"server_tool_use\":"
		                              "{\"web_search_requests\":1}");
}

static void
append_start_usage(const struct answer *answer, bool true_split, uint32_t output_tokens,
                   bool ended, struct buffer *out)
{
	(void)buffer_append_byte(out, '{');
	append_counts(answer, true_split, output_tokens, out);
	if (ended)
		append_tools(answer, out);
	(void)buffer_append_text(out, ",\"service_tier\":\"standard\","
	                              "\"inference_geo\":\"global\"}");
}

static void
append_late_usage(const struct answer *answer, uint64_t shape, struct buffer *out)
{
	if (shape == 1) {
		(void)buffer_append_format(out, "{\"output_tokens\":%u",
		                           answer->output_tokens);
		append_tools(answer, out);
		(void)buffer_append_byte(out, '}');
		return;
	}
	(void)buffer_append_byte(out, '{');
	append_counts(answer, true, answer->output_tokens, out);
	append_tools(answer, out);
	if (shape == 2) {
		(void)buffer_append_text(out, ",\"output_tokens_details\":"
		                              "{\"thinking_tokens\":0},\"iterations\":[{"
		                              "\"type\":\"message\",");
		append_counts(answer, true, answer->output_tokens, out);
		(void)buffer_append_text(out, "}]");
	}
	(void)buffer_append_byte(out, '}');
}

static void
append_message_head(const struct answer *answer, struct buffer *out)
{
	(void)buffer_append_format(
		out,
		"{\"id\":\"msg_%016llx\",\"type\":\"message\",\"role\":"
		"\"assistant\",\"model\":",
		(unsigned long long)answer->id);
	(void)buffer_append_json(out, span_from(answer->want->model));
	(void)buffer_append_text(out, ",\"content\":[");
}

/* --- events ------------------------------------------------------------------------ */

/* A stream being written. */
struct stream {
	const struct answer *answer;
	const struct content *content;
	struct frames frames;
	struct buffer json; /* scratch */
	uint32_t index;     /* of the block */
	uint64_t due_us;
};

static void
event(struct stream *stream, const char *name)
{
	frames_add(&stream->frames, name, buffer_span(&stream->json), stream->due_us);
	buffer_clear(&stream->json);
}

static void
delta_of(struct stream *stream, const char *type, const char *member, struct span text)
{
	(void)buffer_append_format(&stream->json,
	                           "{\"type\":\"content_block_delta\",\"index\":%u,"
	                           "\"delta\":{\"type\":\"%s\",\"%s\":",
	                           stream->index, type, member);
	(void)buffer_append_json(&stream->json, text);
	(void)buffer_append_text(&stream->json, "}}");
	event(stream, "content_block_delta");
}

static void
text_deltas(struct stream *stream)
{
	uint64_t count = settings_get(stream->answer->settings, SETTINGS_DELTAS);

	for (uint64_t i = 0; i < count; i++) {
		struct span part =
			answer_text_part(buffer_span(&stream->content->text), i, count);

		if (part.len == 0)
			continue;
		stream->due_us = stream->answer->decode_us * (i + 1) / count;
		delta_of(stream, "text_delta", "text", part);
	}
}

static void
input_deltas(struct stream *stream, struct span input)
{
	for (uint64_t i = 0; i < 3; i++)
		delta_of(stream, "input_json_delta", "partial_json",
		         answer_text_part(input, i, 3));
}

static void
tool_deltas(struct stream *stream)
{
	struct buffer input = BUFFER_INIT(1024);

	append_tool_input(stream->answer, &input);
	stream->due_us = stream->answer->decode_us;
	input_deltas(stream, buffer_span(&input));
	buffer_fini(&input);
}

static void
deltas(struct stream *stream, enum block_kind kind)
{
	switch (kind) {
	case BLOCK_THINKING:
		delta_of(stream, "thinking_delta", "thinking", SPAN(THINKING_TEXT));
		delta_of(stream, "signature_delta", "signature", SPAN(SIGNATURE));
		break;
	case BLOCK_NOVEL_TEXT:
		delta_of(stream, "hologram_delta", "hologram", SPAN("alfa"));
		text_deltas(stream);
		break;
	case BLOCK_TEXT:
		text_deltas(stream);
		break;
	case BLOCK_CITED_TEXT:
		text_deltas(stream);
		(void)buffer_append_format(
			&stream->json,
			"{\"type\":\"content_block_delta\",\"index\":%u,"
			"\"delta\":{\"type\":\"citations_delta\","
			"\"citation\":" CITATION "}}",
			stream->index);
		event(stream, "content_block_delta");
		break;
	case BLOCK_TOOL_USE:
		tool_deltas(stream);
		break;
	case BLOCK_SERVER_TOOL_USE:
		input_deltas(stream, SPAN(SEARCH_INPUT));
		break;
	case BLOCK_SEARCH_RESULT:
		break;
	}
}

static void
stream_start(struct stream *stream, uint64_t shape)
{
	(void)buffer_append_text(&stream->json,
	                         "{\"type\":\"message_start\",\"message\":");
	append_message_head(stream->answer, &stream->json);
	(void)buffer_append_text(&stream->json,
	                         "],\"stop_reason\":null,\"stop_sequence\":null,"
	                         "\"usage\":");
	append_start_usage(stream->answer, shape != 3, 1, false, &stream->json);
	(void)buffer_append_text(&stream->json, "}}");
	if (shape != 3)
		script_mark_usage(stream->frames.script);
	event(stream, "message_start");
}

static void
stream_blocks(struct stream *stream)
{
	for (; stream->index < stream->content->count; stream->index++) {
		enum block_kind kind = stream->content->blocks[stream->index];

		(void)buffer_append_format(
			&stream->json,
			"{\"type\":\"content_block_start\",\"index\":%u,"
			"\"content_block\":",
			stream->index);
		append_block(stream->answer, stream->content, kind, false, &stream->json);
		(void)buffer_append_byte(&stream->json, '}');
		event(stream, "content_block_start");
		deltas(stream, kind);
		(void)buffer_append_format(
			&stream->json, "{\"type\":\"content_block_stop\",\"index\":%u}",
			stream->index);
		event(stream, "content_block_stop");
	}
}

void
anthropic_answer_stream(const struct answer *answer, struct script *script)
{
	uint64_t shape = settings_get(answer->settings, SETTINGS_USAGE_SHAPE);
	struct content content;
	struct stream stream = {
		.answer = answer,
		.content = &content,
		.frames = { .script = script,
		            .settings = answer->settings,
		            .pings = true },
		.json = BUFFER_INIT(BUFFER_SIZE_DEFAULT),
	};

	compose(answer, &content);
	stream_start(&stream, shape);
	stream_blocks(&stream);
	stream.due_us = answer->decode_us;
	(void)buffer_append_format(
		&stream.json,
		"{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":"
		"\"%s\",\"stop_sequence\":null},\"usage\":",
		stop_reason(answer, &content));
	append_late_usage(answer, shape, &stream.json);
	(void)buffer_append_byte(&stream.json, '}');
	script_mark_usage(script);
	event(&stream, "message_delta");
	(void)buffer_append_text(&stream.json, "{\"type\":\"message_stop\"}");
	event(&stream, "message_stop");
	buffer_fini(&stream.json);
	buffer_fini(&content.text);
}

void
anthropic_answer_whole(const struct answer *answer, struct script *script)
{
	struct buffer *out = &script->bytes;
	struct content content;

	compose(answer, &content);
	append_message_head(answer, out);
	for (uint32_t i = 0; i < content.count && !answer->want->warm_only; i++) {
		if (i > 0)
			(void)buffer_append_byte(out, ',');
		append_block(answer, &content, content.blocks[i], true, out);
	}
	(void)buffer_append_format(out,
	                           "],\"stop_reason\":\"%s\",\"stop_sequence\":null,"
	                           "\"usage\":",
	                           stop_reason(answer, &content));
	append_start_usage(answer, true, answer->output_tokens, true, out);
	(void)buffer_append_byte(out, '}');
	script_mark_usage(script);
	script_add(script, answer->want->warm_only ? 0 : answer->decode_us);
	buffer_fini(&content.text);
}
