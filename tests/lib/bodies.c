#include "tests/lib/bodies.h"

#include <stdlib.h>

#define TEXT_MAX 40

static bool
chance(struct prng *prng, uint32_t percent)
{
	return prng_chance(prng, percent * 10);
}

static json_t *
draw_text(struct prng *prng)
{
	static const char *const words[] = {
		"You ",        "are ",          "caf\xc3\xa9 ",
		"\n",          "\"quoted\" ",   "back\\slash ",
		"tab\t",       "\xe2\x82\xac ", "\xf0\x9f\x98\x80 ",
		"/slash/ ",    "\x01 ",         "policy ",
		"2026-11-04 ", "</system> ",    "\x7f",
		"a",
	};
	char text[TEXT_MAX * 16] = "";
	uint64_t count = prng_below(prng, TEXT_MAX);
	size_t len = 0;

	if (chance(prng, 4))
		return json_string(chance(prng, 50) ? "" : " \n");
	for (uint64_t i = 0; i <= count; i++) {
		const char *word = words[prng_below(prng, ARRAY_SIZE(words))];

		memcpy(text + len, word, strlen(word) + 1);
		len += strlen(word);
	}
	return json_string(text);
}

static json_t *
draw_number(struct prng *prng)
{
	return chance(prng, 50) ? json_integer((json_int_t)prng_below(prng, 100000))
	                        : json_real((double)prng_below(prng, 100) / 8);
}

static json_t *
draw_value(struct prng *prng, int depth)
{
	switch (prng_below(prng, depth > 0 ? 6 : 4)) {
	case 0:
		return draw_text(prng);
	case 1:
		return draw_number(prng);
	case 2:
		return json_boolean(chance(prng, 50));
	case 3:
		return json_null();
	case 4: {
		json_t *array = json_array();

		for (uint64_t i = prng_below(prng, 3); i > 0; i--)
			(void)json_array_append_new(array, draw_value(prng, depth - 1));
		return array;
	}
	default: {
		json_t *object = json_object();
		static const char *const keys[] = { "a", "b\"", "cache_control", "type",
			                            "\xc3\xa9" };

		for (uint64_t i = prng_below(prng, 3); i > 0; i--)
			(void)json_object_set_new(object, keys[prng_below(prng, 5)],
			                          draw_value(prng, depth - 1));
		return object;
	}
	}
}

/* Now and then a marker, in any of the forms people write. */
static void
maybe_mark(struct prng *prng, json_t *block, enum dialect dialect)
{
	json_t *marker;

	if (!chance(prng, 12))
		return;
	if (dialect == DIALECT_OPENAI_CHAT && chance(prng, 70)) {
		(void)json_object_set_new(block, "prompt_cache_breakpoint",
		                          json_pack("{s:s}", "mode", "explicit"));
		return;
	}
	if (chance(prng, 10)) {
		(void)json_object_set_new(block, "cache_control", json_null());
		return;
	}
	marker = json_pack("{s:s}", "type", "ephemeral");
	if (chance(prng, 40))
		(void)json_object_set_new(marker, "ttl",
		                          json_string(chance(prng, 50) ? "5m" : "1h"));
	if (chance(prng, 5))
		(void)json_object_set_new(marker, "scope", json_string("x"));
	(void)json_object_set_new(block, "cache_control", marker);
}

static json_t *
draw_block(struct prng *prng, enum dialect dialect, int depth)
{
	json_t *block = json_object();

	switch (prng_below(prng, 9)) {
	case 0:
		(void)json_object_set_new(block, "type", json_string("image"));
		(void)json_object_set_new(
			block, "source",
			json_pack("{s:s,s:s}", "type", "url", "url", "http://x"));
		break;
	case 1:
		(void)json_object_set_new(block, "type", json_string("tool_use"));
		(void)json_object_set_new(block, "id", json_string("toolu_1"));
		(void)json_object_set_new(block, "input", draw_value(prng, 2));
		break;
	case 2:
		(void)json_object_set_new(block, "type", json_string("tool_result"));
		if (depth > 0 && chance(prng, 60)) {
			json_t *content = json_array();

			(void)json_array_append_new(content,
			                            draw_block(prng, dialect, 0));
			(void)json_object_set_new(block, "content", content);
		}
		break;
	case 3:
		(void)json_object_set_new(block, "type", json_string("thinking"));
		(void)json_object_set_new(block, "thinking", draw_text(prng));
		(void)json_object_set_new(block, "signature", json_string("c2ln"));
		break;
	case 4:
		(void)json_object_set_new(block, "type", json_string("document"));
		(void)json_object_set_new(
			block, "source",
			json_pack("{s:s,s:s}", "type", "text", "data", "doc"));
		if (chance(prng, 30))
			(void)json_object_set_new(block, "citations",
			                          json_pack("{s:b}", "enabled", 1));
		break;
	default:
		(void)json_object_set_new(block, "type", json_string("text"));
		(void)json_object_set_new(block, "text", draw_text(prng));
		break;
	}
	maybe_mark(prng, block, dialect);
	return block;
}

static json_t *
draw_content(struct prng *prng, enum dialect dialect)
{
	json_t *content;

	if (chance(prng, 40))
		return draw_text(prng);
	content = json_array();
	for (uint64_t i = prng_below(prng, 4); i > 0; i--)
		(void)json_array_append_new(content, draw_block(prng, dialect, 1));
	return content;
}

static json_t *
draw_message(struct prng *prng, const char *role, enum dialect dialect)
{
	json_t *message = json_object();

	(void)json_object_set_new(message, "role", json_string(role));
	if (chance(prng, 10))
		(void)json_object_set_new(message, "name", draw_text(prng));
	if (chance(prng, 96))
		(void)json_object_set_new(message, "content",
		                          chance(prng, 3) ? json_null()
		                                          : draw_content(prng, dialect));
	if (dialect == DIALECT_OPENAI_CHAT && strcmp(role, "assistant") == 0 &&
	    chance(prng, 30))
		(void)json_object_set_new(message, "tool_calls",
		                          json_pack("[{s:s}]", "id", "call_1"));
	return message;
}

static json_t *
draw_tools(struct prng *prng, enum dialect dialect)
{
	json_t *tools = json_array();

	for (uint64_t i = prng_below(prng, 4); i > 0; i--) {
		json_t *tool = json_object();

		(void)json_object_set_new(tool, "name", draw_text(prng));
		(void)json_object_set_new(tool, "input_schema", draw_value(prng, 3));
		if (chance(prng, 15))
			(void)json_object_set_new(tool, "defer_loading", json_true());
		if (chance(prng, 10))
			(void)json_object_set_new(tool, "type",
			                          json_string("web_search_20250305"));
		maybe_mark(prng, tool, dialect);
		(void)json_array_append_new(tools, tool);
	}
	return tools;
}

static void
draw_settings(struct prng *prng, json_t *body, enum dialect dialect)
{
	static const char *const chat[] = {
		"response_format",    "prompt_cache_key", "seed", "stream_options", "n",
		"parallel_tool_calls"
	};
	static const char *const anthropic[] = { "output_config", "service_tier",
		                                 "metadata",      "context_management",
		                                 "top_k",         "container" };

	if (chance(prng, 90))
		(void)json_object_set_new(body, "max_tokens", json_integer(64));
	if (chance(prng, 30))
		(void)json_object_set_new(
			body, "stream",
			chance(prng, 20) ? json_null() : json_boolean(chance(prng, 50)));
	if (chance(prng, 20))
		(void)json_object_set_new(
			body, "tool_choice",
			json_pack("{s:s}", "type", chance(prng, 50) ? "any" : "auto"));
	if (dialect == DIALECT_ANTHROPIC && chance(prng, 20))
		(void)json_object_set_new(body, "thinking",
		                          json_pack("{s:s,s:i}", "type", "enabled",
		                                    "budget_tokens",
		                                    (int)prng_below(prng, 9999)));
	if (dialect == DIALECT_ANTHROPIC && chance(prng, 8))
		(void)json_object_set_new(body, "cache_control",
		                          json_pack("{s:s}", "type", "ephemeral"));
	if (dialect == DIALECT_OPENAI_CHAT && chance(prng, 20))
		(void)json_object_set_new(body, "stream_options",
		                          chance(prng, 30)
		                                  ? json_null()
		                                  : json_pack("{s:b}", "include_usage",
		                                              (int)prng_below(prng, 2)));
	if (chance(prng, 30))
		(void)json_object_set_new(body,
		                          (dialect == DIALECT_ANTHROPIC
		                                   ? anthropic
		                                   : chat)[prng_below(prng, 6)],
		                          draw_value(prng, 2));
}

static void
draw_messages(struct prng *prng, json_t *messages, enum dialect dialect, bool big)
{
	bool user = true;

	if (dialect == DIALECT_OPENAI_CHAT && (big || chance(prng, 70)))
		for (uint64_t i = 1 + prng_below(prng, 2); i > 0; i--)
			(void)json_array_append_new(
				messages,
				draw_message(prng,
			                     chance(prng, 70) ? "system" : "developer",
			                     dialect));
	for (uint64_t i = 1 + prng_below(prng, 5); i > 0; i--) {
		(void)json_array_append_new(
			messages,
			draw_message(prng, user ? "user" : "assistant", dialect));
		user = !user;
	}
}

json_t *
bodies_draw(struct prng *prng, enum dialect dialect, bool big)
{
	json_t *body = json_object();
	json_t *messages = json_array();

	if (chance(prng, 95))
		(void)json_object_set_new(body, "model", json_string("claude-fake-1"));
	if (chance(prng, 50))
		(void)json_object_set_new(body, "tools", draw_tools(prng, dialect));
	if (dialect == DIALECT_ANTHROPIC && chance(prng, 70)) {
		json_t *system = draw_content(prng, dialect);

		(void)json_object_set_new(body, "system", system);
	}
	if (big) {
		char *text = malloc(3001);

		memset(text, 'p', 3000);
		text[3000] = '\0';
		(void)json_object_set_new(body, "user_prompt_id", json_string(text));
		free(text);
	}
	draw_messages(prng, messages, dialect, big);
	(void)json_object_set_new(body, "messages", messages);
	draw_settings(prng, body, dialect);
	return body;
}

/* ---- spelling ---- */

static void
blanks(struct prng *prng, struct buffer *out)
{
	while (chance(prng, 15))
		(void)buffer_append_byte(out, " \n\t\r"[prng_below(prng, 4)]);
}

/* The character at `text`, escaped by its code. */
static size_t
spell_escape(const char *text, struct buffer *out)
{
	const unsigned char *byte = (const unsigned char *)text;
	size_t len = byte[0] < 0x80 ? 1 : byte[0] < 0xe0 ? 2 : byte[0] < 0xf0 ? 3 : 4;
	uint32_t code = len == 1 ? byte[0] : byte[0] & (0x7fu >> len);

	for (size_t i = 1; i < len; i++)
		code = code << 6 | (byte[i] & 0x3f);
	if (code >= 0x10000) {
		(void)buffer_append_format(out, "\\u%04X\\u%04x",
		                           0xd800 + ((code - 0x10000) >> 10),
		                           0xdc00 + ((code - 0x10000) & 0x3ff));
	} else {
		(void)buffer_append_format(out, "\\u%04x", code);
	}
	return len;
}

static void
spell_string(struct prng *prng, const char *text, struct buffer *out)
{
	bool ascii = chance(prng, 40);

	(void)buffer_append_byte(out, '"');
	while (*text) {
		unsigned char byte = (unsigned char)*text;

		if (byte < 0x20 || (byte >= 0x80 && ascii) ||
		    ((byte & 0xc0) != 0x80 && chance(prng, 2))) {
			if (byte == '\n' && chance(prng, 50)) {
				(void)buffer_append_text(out, "\\n");
				text++;
				continue;
			}
			text += spell_escape(text, out);
			continue;
		}
		if (byte == '"' || byte == '\\' || (byte == '/' && chance(prng, 50)))
			(void)buffer_append_byte(out, '\\');
		(void)buffer_append_byte(out, *text++);
	}
	(void)buffer_append_byte(out, '"');
}

static void
spell_scalar(struct prng *prng, const json_t *value, struct buffer *out)
{
	char *text;

	if (json_is_string(value)) {
		spell_string(prng, json_string_value(value), out);
		return;
	}
	text = json_dumps(value, JSON_ENCODE_ANY);
	(void)buffer_append_text(out, text);
	free(text);
}

enum level {
	TOP,
	MESSAGE,
	DEEP,
};

static void spell(struct prng *prng, const json_t *value, enum level level,
                  struct buffer *out);

/* {"type":"text","text":T} for the string T, whole array. */
static void
spell_as_block(struct prng *prng, const json_t *text, struct buffer *out)
{
	(void)buffer_append_text(out, chance(prng, 50)
	                                      ? "[{\"type\":\"text\", \"text\":"
	                                      : "[ {\"type\":\"text\",\"text\":");
	spell_scalar(prng, text, out);
	(void)buffer_append_text(out, "}]");
}

static void
spell_member(struct prng *prng, const char *key, const json_t *value, enum level level,
             struct buffer *out)
{
	bool content = (level == TOP && strcmp(key, "system") == 0) ||
	               (level == MESSAGE && strcmp(key, "content") == 0);

	blanks(prng, out);
	spell_string(prng, key, out);
	blanks(prng, out);
	(void)buffer_append_byte(out, ':');
	blanks(prng, out);
	if (content && json_is_string(value) && json_string_length(value) > 0 &&
	    chance(prng, 50))
		spell_as_block(prng, value, out);
	else
		spell(prng, value,
		      level == TOP && strcmp(key, "messages") == 0 ? MESSAGE : DEEP, out);
	blanks(prng, out);
}

static void
spell_object(struct prng *prng, const json_t *object, enum level level,
             struct buffer *out)
{
	const char *keys[64];
	size_t count = 0;
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)object, key, value) keys[count++] = key;
	for (size_t i = count; level != DEEP && i > 1; i--) {
		size_t other = (size_t)prng_below(prng, i);
		const char *swap = keys[i - 1];

		keys[i - 1] = keys[other];
		keys[other] = swap;
	}
	(void)buffer_append_byte(out, '{');
	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			(void)buffer_append_byte(out, ',');
		spell_member(prng, keys[i], json_object_get(object, keys[i]), level, out);
	}
	(void)buffer_append_byte(out, '}');
}

static void
spell(struct prng *prng, const json_t *value, enum level level, struct buffer *out)
{
	if (json_is_object(value)) {
		spell_object(prng, value, level, out);
		return;
	}
	if (!json_is_array(value)) {
		spell_scalar(prng, value, out);
		return;
	}
	(void)buffer_append_byte(out, '[');
	for (size_t i = 0; i < json_array_size(value); i++) {
		if (i > 0)
			(void)buffer_append_byte(out, ',');
		blanks(prng, out);
		spell(prng, json_array_get(value, i), level, out);
		blanks(prng, out);
	}
	(void)buffer_append_byte(out, ']');
}

void
bodies_spell(struct prng *prng, const json_t *body, struct buffer *out)
{
	blanks(prng, out);
	spell(prng, body, TOP, out);
	blanks(prng, out);
}

/* ---- normal form ---- */

static void
drop_null_marker(json_t *block)
{
	static const char *const names[] = { "cache_control", "prompt_cache_breakpoint" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (json_is_null(json_object_get(block, names[i])))
			(void)json_object_del(block, names[i]);
}

static void
normalise_content(json_t *parent, const char *key)
{
	json_t *content = json_object_get(parent, key);
	json_t *block, *text;
	size_t i;

	if (!json_is_array(content))
		return;
	json_array_foreach(content, i, block) drop_null_marker(block);
	block = json_array_get(content, 0);
	text = json_object_get(block, "text");
	if (json_array_size(content) == 1 && json_object_size(block) == 2 &&
	    json_is_string(text) &&
	    strcmp(json_string_value(json_object_get(block, "type")) ?: "", "text") == 0)
		(void)json_object_set(parent, key, text);
}

json_t *
bodies_normal(const json_t *body)
{
	json_t *copy = json_deep_copy(body);
	json_t *item;
	size_t i;

	json_array_foreach(json_object_get(copy, "tools"), i, item)
		drop_null_marker(item);
	normalise_content(copy, "system");
	json_array_foreach(json_object_get(copy, "messages"), i, item)
		normalise_content(item, "content");
	return copy;
}
