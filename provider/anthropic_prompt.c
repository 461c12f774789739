#include "provider/anthropic_prompt.h"

#include <stdio.h>

/* --- markers ----------------------------------------------------------------------- */

static int
read_marker(struct anthropic_reading *reading, const json_t *object, const char *where,
            uint8_t *ret_marker)
{
	const json_t *control = json_object_get(object, "cache_control");
	const json_t *ttl = json_object_get(control, "ttl");
	const char *type = json_string_value(json_object_get(control, "type"));

	*ret_marker = CACHE_MARKER_NONE;
	if (!control || json_is_null(control))
		return 0;
	if (!json_is_object(control) || !type || strcmp(type, "ephemeral") != 0)
		return ANTHROPIC_REFUSE(
			reading, "%s.cache_control.type: must be 'ephemeral'", where);
	*ret_marker = CACHE_MARKER_5M;
	if (!ttl)
		return 0;
	if (!json_is_string(ttl))
		return ANTHROPIC_REFUSE(
			reading, "%s.cache_control.ttl: must be '5m' or '1h'", where);
	if (strcmp(json_string_value(ttl), "1h") == 0)
		*ret_marker = CACHE_MARKER_1H;
	else if (strcmp(json_string_value(ttl), "5m") != 0)
		return ANTHROPIC_REFUSE(
			reading, "%s.cache_control.ttl: must be '5m' or '1h'", where);
	return 0;
}

/* Ends the open block and puts the marker on it. */
static void
close_block(struct anthropic_reading *reading, enum cache_block_kind kind,
            uint32_t tokens, uint8_t marker, bool markable)
{
	struct prompt *prompt = &reading->ask->prompt;
	uint32_t index = prompt_close(prompt, kind, tokens);

	if (prompt->error < 0)
		return;
	prompt->blocks[index].marker = marker;
	reading->markers += marker != CACHE_MARKER_NONE;
	if (markable) {
		reading->markable = index + 1;
		reading->markable_marker = marker;
	}
}

/* Top-level cache_control: the breakpoint goes on the last block that can carry one. */
static int
place_automatic(struct anthropic_reading *reading)
{
	uint8_t marker;
	int err = read_marker(reading, reading->root, "request", &marker);

	if (err < 0 || marker == CACHE_MARKER_NONE || reading->markable == 0)
		return err;
	if (reading->markable_marker == marker)
		return 0;
	if (reading->markable_marker != CACHE_MARKER_NONE)
		return ANTHROPIC_REFUSE(
			reading, "cache_control: the last block already has a marker "
				 "with a different ttl");
	if (reading->markers == CACHE_REQUEST_MARKERS_MAX)
		return ANTHROPIC_REFUSE(
			reading, "cache_control: 4 blocks have cache_control already; "
				 "automatic caching needs one of the 4");
	reading->ask->prompt.blocks[reading->markable - 1].marker = marker;
	return 0;
}

/* --- blocks ------------------------------------------------------------------------ */

static bool
is_blank(struct span text)
{
	for (size_t i = 0; i < text.len; i++)
		if (!strchr(" \t\r\n", text.data[i]) || text.data[i] == '\0')
			return false;
	return true;
}

static int
dump(struct anthropic_reading *reading, const json_t *value, const char *without,
     struct span *ret_text)
{
	return body_dump_into(reading->body, value, without, &reading->text, ret_text);
}

static int
read_text_block(struct anthropic_reading *reading, const json_t *block, const char *where,
                uint8_t marker)
{
	const json_t *value = json_object_get(block, "text");
	const json_t *citations = json_object_get(block, "citations");
	struct span text = body_text(reading->body, value), json;
	int err;

	if (!json_is_string(value))
		return ANTHROPIC_REFUSE(reading, "%s.text: Field required", where);
	if (text.len == 0 && marker != CACHE_MARKER_NONE)
		return ANTHROPIC_REFUSE(
			reading, "%s: cache_control cannot be set for empty text blocks",
			where);
	if (text.len == 0)
		return ANTHROPIC_REFUSE(
			reading, "%s: text content blocks must be non-empty", where);
	if (is_blank(text))
		return ANTHROPIC_REFUSE(
			reading,
			"%s: text content blocks must contain non-whitespace text",
			where);
	prompt_content(&reading->ask->prompt, 't', text);
	if (json_array_size(citations) > 0) {
		err = dump(reading, citations, NULL, &json);
		if (err < 0)
			return err;
		prompt_content(&reading->ask->prompt, 'c', json);
	}
	close_block(reading, CACHE_BLOCK_PLAIN, 0, marker, true);
	return 0;
}

/* Any other block: its JSON is its content.  Images cost a fixed number of tokens, since
 * the size of their base64 says nothing. */
static int
read_other_block(struct anthropic_reading *reading, const json_t *block, const char *type,
                 uint8_t marker)
{
	enum {
		IMAGE_TOKENS = 1600
	};
	enum cache_block_kind kind = CACHE_BLOCK_PLAIN;
	bool is_thinking = strstr(type, "thinking") != NULL;
	struct prompt *prompt = &reading->ask->prompt;
	struct span json;
	int err;

	err = dump(reading, block, "cache_control", &json);
	if (err < 0)
		return err;
	if (strcmp(type, "tool_use") == 0)
		kind = CACHE_BLOCK_TOOL_USE;
	else if (strcmp(type, "tool_result") == 0)
		kind = CACHE_BLOCK_TOOL_RESULT;
	if (strcmp(type, "image") == 0) {
		prompt_setting(prompt, "image", json);
		close_block(reading, kind, IMAGE_TOKENS, marker, true);
		return 0;
	}
	prompt_content(prompt, 'j', json);
	close_block(reading, kind, 0, marker, !is_thinking);
	return 0;
}

static int
read_block(struct anthropic_reading *reading, const json_t *block, const char *where,
           bool drop_thinking)
{
	const char *type = json_string_value(json_object_get(block, "type"));
	bool is_thinking;
	uint8_t marker;
	int err;

	if (!json_is_object(block) || !type)
		return ANTHROPIC_REFUSE(reading, "%s.type: Field required", where);
	err = read_marker(reading, block, where, &marker);
	if (err < 0)
		return err;
	is_thinking =
		strcmp(type, "thinking") == 0 || strcmp(type, "redacted_thinking") == 0;
	if (is_thinking && marker != CACHE_MARKER_NONE)
		return ANTHROPIC_REFUSE(
			reading, "%s.cache_control: Extra inputs are not permitted",
			where);
	if (is_thinking && drop_thinking)
		return 0;
	if (strcmp(type, "text") == 0)
		return read_text_block(reading, block, where, marker);
	return read_other_block(reading, block, type, marker);
}

/* A string, which is the same as one text block, or a list of blocks. */
static int
read_content(struct anthropic_reading *reading, const json_t *content, const char *where,
             bool drop_thinking)
{
	char place[64];

	if (json_is_string(content)) {
		struct span text = body_text(reading->body, content);

		if (is_blank(text))
			return ANTHROPIC_REFUSE(reading, "%s: content must be non-empty",
			                        where);
		prompt_content(&reading->ask->prompt, 't', text);
		close_block(reading, CACHE_BLOCK_PLAIN, 0, CACHE_MARKER_NONE, true);
		return 0;
	}
	if (!json_is_array(content))
		return ANTHROPIC_REFUSE(
			reading, "%s: Input should be a valid list or string", where);
	for (size_t i = 0; i < json_array_size(content); i++) {
		int err;

		snprintf(place, sizeof place, "%s.%zu", where, i);
		err = read_block(reading, json_array_get(content, i), place,
		                 drop_thinking);
		if (err < 0)
			return err;
	}
	return 0;
}

/* --- tiers ------------------------------------------------------------------------- */

static int
setting(struct anthropic_reading *reading, const char *name, const json_t *value)
{
	struct span text;
	int err;

	if (!value || json_is_null(value))
		return 0;
	err = dump(reading, value, NULL, &text);
	if (err == 0)
		prompt_setting(&reading->ask->prompt, name, text);
	return err;
}

/* Thinking and effort are rendered into the prompt, at a tier that depends on the model;
 * the budget belongs to the messages.  "high" is what models do without being told. */
static int
set_thinking(struct anthropic_reading *reading, enum catalog_tier tier)
{
	const json_t *thinking = json_object_get(reading->root, "thinking");
	const json_t *effort = json_object_get(
		json_object_get(reading->root, "output_config"), "effort");
	const char *word = json_string_value(effort);
	int err = 0;

	if (reading->ask->entry->thinking == tier) {
		err = setting(reading, "thinking", json_object_get(thinking, "type"));
		if (err == 0 && word && strcmp(word, "high") != 0)
			err = setting(reading, "effort", effort);
	}
	if (err == 0 && tier == CATALOG_TIER_MESSAGES)
		err = setting(reading, "budget",
		              json_object_get(thinking, "budget_tokens"));
	return err;
}

static int
read_tools(struct anthropic_reading *reading)
{
	const json_t *tools = json_object_get(reading->root, "tools");
	const json_t *config = json_object_get(reading->root, "output_config");
	int err;

	err = set_thinking(reading, CATALOG_TIER_TOOLS);
	if (err == 0)
		err = setting(reading, "format", json_object_get(config, "format"));
	if (err < 0)
		return err;
	if (tools && !json_is_array(tools))
		return ANTHROPIC_REFUSE(reading, "tools: Input should be a valid list");
	for (size_t i = 0; i < json_array_size(tools); i++) {
		const json_t *tool = json_array_get(tools, i);
		struct span json;
		uint8_t marker;
		char where[32];

		snprintf(where, sizeof where, "tools.%zu", i);
		if (!json_is_string(json_object_get(tool, "name")))
			return ANTHROPIC_REFUSE(reading, "%s.name: Field required",
			                        where);
		err = read_marker(reading, tool, where, &marker);
		if (err < 0)
			return err;
		if (marker && json_is_true(json_object_get(tool, "defer_loading")))
			return ANTHROPIC_REFUSE(
				reading,
				"%s: cannot have both defer_loading=true and "
				"cache_control set",
				where);
		err = dump(reading, tool, "cache_control", &json);
		if (err < 0)
			return err;
		prompt_content(&reading->ask->prompt, 'f', json);
		close_block(reading, CACHE_BLOCK_PLAIN, 0, marker, true);
	}
	return 0;
}

/* Whether some tool is a web search: the system tier shows it. */
static bool
has_web_search(const json_t *tools)
{
	for (size_t i = 0; i < json_array_size(tools); i++) {
		const char *type = json_string_value(
			json_object_get(json_array_get(tools, i), "type"));

		if (type && strncmp(type, "web_search", 10) == 0)
			return true;
	}
	return false;
}

/* Whether some document is to be cited from. */
static bool
has_citations(const json_t *messages)
{
	for (size_t i = 0; i < json_array_size(messages); i++) {
		const json_t *content =
			json_object_get(json_array_get(messages, i), "content");

		for (size_t k = 0; k < json_array_size(content); k++) {
			const json_t *citations =
				json_object_get(json_array_get(content, k), "citations");

			if (json_is_true(json_object_get(citations, "enabled")))
				return true;
		}
	}
	return false;
}

static int
read_system(struct anthropic_reading *reading)
{
	const json_t *system = json_object_get(reading->root, "system");
	struct prompt *prompt = &reading->ask->prompt;
	int err;

	err = set_thinking(reading, CATALOG_TIER_SYSTEM);
	if (err == 0)
		err = setting(reading, "speed", json_object_get(reading->root, "speed"));
	if (err < 0)
		return err;
	if (has_web_search(json_object_get(reading->root, "tools")))
		prompt_setting(prompt, "web_search", SPAN("on"));
	if (has_citations(json_object_get(reading->root, "messages")))
		prompt_setting(prompt, "citations", SPAN("on"));
	prompt_setting(prompt, "tier", SPAN("system"));
	if (!system || (json_is_string(system) && json_string_length(system) == 0))
		return 0;
	return read_content(reading, system, "system", false);
}

static bool
has_block_of(const json_t *messages, const char *wanted)
{
	for (size_t i = 0; i < json_array_size(messages); i++) {
		const json_t *content =
			json_object_get(json_array_get(messages, i), "content");

		for (size_t k = 0; k < json_array_size(content); k++) {
			const char *type = json_string_value(
				json_object_get(json_array_get(content, k), "type"));

			if (type && strcmp(type, wanted) == 0)
				return true;
		}
	}
	return false;
}

/* A user turn that is more than tool results. */
static bool
is_plain_turn(const json_t *message)
{
	const char *role = json_string_value(json_object_get(message, "role"));
	const json_t *content = json_object_get(message, "content");

	if (!role || strcmp(role, "user") != 0)
		return false;
	if (json_is_string(content))
		return true;
	for (size_t i = 0; i < json_array_size(content); i++) {
		const char *type = json_string_value(
			json_object_get(json_array_get(content, i), "type"));

		if (type && strcmp(type, "tool_result") != 0)
			return true;
	}
	return false;
}

static int
read_message(struct anthropic_reading *reading, const json_t *message, size_t index)
{
	const char *role = json_string_value(json_object_get(message, "role"));
	const json_t *content = json_object_get(message, "content");
	char where[48];

	if (!role || (strcmp(role, "user") != 0 && strcmp(role, "assistant") != 0))
		return ANTHROPIC_REFUSE(
			reading,
			"messages.%zu.role: Input should be 'user' or 'assistant'",
			index);
	if (index == 0 && strcmp(role, "user") != 0)
		return ANTHROPIC_REFUSE(
			reading, "messages: first message must use the \"user\" role");
	if (json_is_array(content) && json_array_size(content) == 0)
		return ANTHROPIC_REFUSE(reading,
		                        "messages.%zu: content must be non-empty", index);
	if (strcmp(role, "user") == 0 && body_last_text(reading->body, content).len > 0)
		reading->question = body_last_text(reading->body, content);
	prompt_setting(&reading->ask->prompt, "role", span_from(role));
	snprintf(where, sizeof where, "messages.%zu.content", index);
	return read_content(reading, content, where, index < reading->strip_before);
}

static int
read_messages(struct anthropic_reading *reading)
{
	const json_t *messages = json_object_get(reading->root, "messages");
	struct prompt *prompt = &reading->ask->prompt;
	int err;

	err = setting(reading, "tool_choice",
	              json_object_get(reading->root, "tool_choice"));
	if (err == 0)
		err = set_thinking(reading, CATALOG_TIER_MESSAGES);
	if (err < 0)
		return err;
	if (has_block_of(messages, "image"))
		prompt_setting(prompt, "images", SPAN("some"));
	if (!json_is_array(messages) || json_array_size(messages) == 0)
		return ANTHROPIC_REFUSE(reading,
		                        "messages: at least one message is required");
	for (size_t i = 0; i < json_array_size(messages); i++)
		if (reading->ask->entry->strips_thinking &&
		    is_plain_turn(json_array_get(messages, i)))
			reading->strip_before = i;
	for (size_t i = 0; i < json_array_size(messages); i++) {
		err = read_message(reading, json_array_get(messages, i), i);
		if (err < 0)
			return err;
	}
	reading->ask->want.digest = ask_digest(reading->question);
	return 0;
}

int
anthropic_prompt_read(struct anthropic_reading *reading)
{
	struct cache_request request = { .mode = CACHE_MODE_MARKERS };
	int err;

	err = read_tools(reading);
	if (err == 0)
		err = read_system(reading);
	if (err == 0)
		err = read_messages(reading);
	if (err == 0)
		err = prompt_finish(&reading->ask->prompt);
	if (err == ERR_LIMIT)
		return ANTHROPIC_REFUSE(reading, "messages: too many blocks");
	if (err == 0)
		err = place_automatic(reading);
	if (err < 0)
		return err;
	request.blocks = reading->ask->prompt.blocks;
	request.blocks_count = reading->ask->prompt.count;
	switch (cache_request_judge(&request)) {
	case CACHE_VERDICT_TOO_MANY_MARKERS:
		return ANTHROPIC_REFUSE(
			reading,
			"A maximum of 4 blocks with cache_control may be provided. "
			"Found %u.",
			reading->markers);
	case CACHE_VERDICT_TTL_ORDER:
		return ANTHROPIC_REFUSE(
			reading, "a ttl='1h' cache_control block must not come after a "
				 "ttl='5m' cache_control block");
	case CACHE_VERDICT_OK:
	case CACHE_VERDICT_COUNT:
		break;
	}
	return 0;
}
