#include "common/codec/chain_shape.h"

#include "common/codec/tape_text.h"

static bool
is_given(const struct tape *tape, uint32_t at)
{
	return at != TAPE_NONE && tape_type(tape, at) != TAPE_NULL;
}

static bool
is_true(const struct tape *tape, uint32_t object, const char *key)
{
	return tape_is(tape, tape_find(tape, object, key), TAPE_TRUE);
}

static void
give_up(struct chain_shape *shape, enum chain_opaque why, uint32_t at)
{
	if (shape->opaque != CHAIN_SPLITTABLE)
		return;
	shape->opaque = why;
	shape->opaque_at = at;
}

bool
chain_shape_is_marker_key(const struct tape *tape, uint32_t key)
{
	struct span text = tape_inside(tape, key);

	return span_equals(text, SPAN("cache_control")) ||
	       span_equals(text, SPAN("prompt_cache_breakpoint"));
}

/* The exact forms that can be taken out and put back; all others stay inside. */
static enum part_mark
marker_form(const struct tape *tape, uint32_t key)
{
	struct span member = { tape->text.data + tape->tokens[key].start,
		               tape->tokens[key + 1].end - tape->tokens[key].start };

	for (enum part_mark form = PART_MARK_PLAIN; form <= PART_MARK_BREAKPOINT; form++)
		if (span_equals(member, part_mark_text(form)))
			return form;
	if (span_equals(
		    member,
		    SPAN("\"cache_control\":{\"ttl\":\"5m\",\"type\":\"ephemeral\"}")))
		return PART_MARK_5M;
	if (span_equals(
		    member,
		    SPAN("\"cache_control\":{\"ttl\":\"1h\",\"type\":\"ephemeral\"}")))
		return PART_MARK_1H;
	return PART_MARK_NONE;
}

static enum ttl
marker_ttl(const struct tape *tape, uint32_t key, enum part_mark form)
{
	uint32_t at = tape_find(tape, key + 1, "ttl");
	enum ttl ttl;

	if (form != PART_MARK_NONE)
		return part_mark_ttl(form);
	if (!tape_is(tape, at, TAPE_STRING))
		return span_equals(tape_inside(tape, key), SPAN("cache_control"))
		               ? TTL_5M
		               : TTL_NONE;
	ttl = dialect_ttl_parse(tape_inside(tape, at));
	return ttl == TTL_NONE ? TTL_5M : ttl;
}

/* Notes the marker of a block, if it has one. */
static void
read_marker(struct chain_shape *shape, enum tier tier, uint32_t block, uint32_t message,
            bool nested)
{
	const struct tape *tape = shape->tape;

	for (uint32_t key = tape_first(tape, block); key < tape_end(tape, block);
	     key = tape_next(tape, key + 1)) {
		enum part_mark form;

		if (!chain_shape_is_marker_key(tape, key) || !is_given(tape, key + 1))
			continue;
		shape->explicit_count++;
		if (shape->marker_count == CHAIN_SHAPE_MARKERS_MAX)
			continue;
		form = marker_form(tape, key);
		shape->marker[shape->marker_count++] = (struct chain_shape_marker){
			.tier = tier,
			.block = block,
			.key = key,
			.message = message,
			.nested = nested,
			.form = form,
			.ttl = marker_ttl(tape, key, form),
		};
	}
}

/* An object whose members are written one by one must not repeat a key. */
static bool
check_object(struct chain_shape *shape, uint32_t at)
{
	uint32_t twice;

	if (!tape_is(shape->tape, at, TAPE_OBJECT)) {
		give_up(shape, CHAIN_SHAPE, at);
		return false;
	}
	if (tape_count(shape->tape, at) > CHAIN_SHAPE_KEYS_MAX) {
		give_up(shape, CHAIN_TOO_LARGE, at);
		return false;
	}
	twice = tape_duplicate(shape->tape, at);
	if (twice != TAPE_NONE)
		give_up(shape, CHAIN_DUPLICATE_KEY, twice);
	return twice == TAPE_NONE;
}

static bool
starts_with(const struct tape *tape, uint32_t at, struct span start)
{
	struct span text;

	if (!tape_is(tape, at, TAPE_STRING))
		return false;
	text = tape_inside(tape, at);
	return text.len >= start.len && memcmp(text.data, start.data, start.len) == 0;
}

/* Tools with a type of their own run at the provider, but for those the client runs. */
static bool
is_server_tool(const struct tape *tape, uint32_t tool)
{
	static const char *const client[] = { "custom",       "function",  "bash_",
		                              "text_editor_", "computer_", "memory_" };
	uint32_t type = tape_find(tape, tool, "type");

	if (!tape_is(tape, type, TAPE_STRING))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(client); i++)
		if (starts_with(tape, type, span_from(client[i])))
			return false;
	return true;
}

/* What may be left out or null, but must be a list else. */
static bool
is_list(struct chain_shape *shape, uint32_t at)
{
	if (!is_given(shape->tape, at))
		return false;
	if (tape_is(shape->tape, at, TAPE_ARRAY))
		return true;
	give_up(shape, CHAIN_SHAPE, at);
	return false;
}

static void
read_tools(struct chain_shape *shape, uint32_t at)
{
	const struct tape *tape = shape->tape;

	if (!is_list(shape, at))
		return;
	if (tape_count(tape, at) == 0)
		return;
	shape->tools = at;
	for (uint32_t tool = tape_first(tape, at); tool < tape_end(tape, at);
	     tool = tape_next(tape, tool)) {
		if (!check_object(shape, tool))
			return;
		read_marker(shape, TIER_TOOLS, tool, TAPE_NONE, false);
		if (is_server_tool(tape, tool))
			shape->flags |= PART_SERVER_TOOL;
	}
}

static void
read_system(struct chain_shape *shape, uint32_t at)
{
	const struct tape *tape = shape->tape;

	if (!is_given(tape, at))
		return;
	if (tape_is(tape, at, TAPE_STRING)) {
		if (tape_raw(tape, at).len > 2)
			shape->system = at;
		return;
	}
	if (!tape_is(tape, at, TAPE_ARRAY)) {
		give_up(shape, CHAIN_SHAPE, at);
		return;
	}
	if (tape_count(tape, at) > 0)
		shape->system = at;
	for (uint32_t block = tape_first(tape, at); block < tape_end(tape, at);
	     block = tape_next(tape, block)) {
		if (!check_object(shape, block))
			return;
		read_marker(shape, TIER_SYSTEM, block, TAPE_NONE, false);
	}
}

static bool
type_is(const struct tape *tape, uint32_t block, const char *type)
{
	return tape_string_is(tape, tape_find(tape, block, "type"), type);
}

/* Pictures and scanned pages change what is cached anywhere in the messages; a document
 * of plain text does not. */
static bool
is_image(const struct tape *tape, uint32_t block)
{
	uint32_t source;

	if (type_is(tape, block, "image") || type_is(tape, block, "image_url") ||
	    type_is(tape, block, "input_image") || type_is(tape, block, "input_audio") ||
	    type_is(tape, block, "file"))
		return true;
	if (!type_is(tape, block, "document"))
		return false;
	source = tape_find(tape, block, "source");
	return !type_is(tape, source, "text") && !type_is(tape, source, "content");
}

static void
read_block(struct chain_shape *shape, enum tier tier, uint32_t message, uint32_t block,
           bool nested)
{
	const struct tape *tape = shape->tape;
	uint32_t content;

	if (!check_object(shape, block))
		return;
	read_marker(shape, tier, block, message, nested);
	if (is_image(tape, block))
		shape->flags |= PART_IMAGE;
	if (is_true(tape, tape_find(tape, block, "citations"), "enabled"))
		shape->flags |= PART_CITATIONS;
	content = tape_find(tape, block, "content");
	if (nested || !type_is(tape, block, "tool_result") ||
	    !tape_is(tape, content, TAPE_ARRAY))
		return;
	for (uint32_t at = tape_first(tape, content); at < tape_end(tape, content);
	     at = tape_next(tape, at))
		if (tape_is(tape, at, TAPE_OBJECT))
			read_block(shape, tier, message, at, true);
}

static bool
role_is(const struct tape *tape, uint32_t message, const char *role)
{
	return tape_string_is(tape, tape_find(tape, message, "role"), role);
}

static void
read_message(struct chain_shape *shape, uint32_t message)
{
	const struct tape *tape = shape->tape;
	bool leads =
		role_is(tape, message, "system") || role_is(tape, message, "developer");
	bool assistant = role_is(tape, message, "assistant");
	uint32_t content = tape_find(tape, message, "content");
	enum tier tier = TIER_MESSAGES;

	/* `leading` follows as long as nothing else has come. */
	if (shape->dialect == DIALECT_OPENAI_CHAT && leads &&
	    shape->message_count < shape->leading_max &&
	    (shape->message_count == 0 || shape->leading == message)) {
		shape->leading = tape_next(tape, message);
		shape->leading_last = message;
		tier = TIER_SYSTEM;
	}
	shape->message_count++;
	if (assistant && shape->first_reply == TAPE_NONE)
		shape->first_reply = message;
	if (assistant || role_is(tape, message, "tool") ||
	    role_is(tape, message, "function"))
		shape->turns = true;
	if (!assistant && tier == TIER_MESSAGES)
		shape->final_user = message;
	if (!tape_is(tape, content, TAPE_ARRAY))
		return;
	for (uint32_t block = tape_first(tape, content); block < tape_end(tape, content);
	     block = tape_next(tape, block))
		read_block(shape, tier, message, block, false);
}

static void
read_messages(struct chain_shape *shape, uint32_t at)
{
	const struct tape *tape = shape->tape;

	if (!is_list(shape, at))
		return;
	shape->messages = at;
	for (uint32_t message = tape_first(tape, at); message < tape_end(tape, at);
	     message = tape_next(tape, message)) {
		if (!check_object(shape, message))
			return;
		read_message(shape, message);
	}
}

static void
read_settings(struct chain_shape *shape)
{
	const struct tape *tape = shape->tape;
	uint32_t format = tape_find(tape, 0, "response_format");
	uint32_t choice = shape->tool_choice;

	if (is_given(tape, tape_path(tape, 0, "output_config", "format", NULL)) ||
	    is_given(tape, tape_find(tape, 0, "output_format")) ||
	    (is_given(tape, format) && !type_is(tape, format, "text")))
		shape->flags |= PART_FORMAT;
	if (is_given(tape, tape_find(tape, 0, "context_management")))
		shape->flags |= PART_CONTEXT;
	if (type_is(tape, shape->thinking, "enabled"))
		shape->flags |= PART_THINKING;
	if (shape->dialect == DIALECT_ANTHROPIC
	            ? type_is(tape, choice, "any") || type_is(tape, choice, "tool")
	            : tape_string_is(tape, choice, "required") ||
	                      tape_is(tape, choice, TAPE_OBJECT))
		shape->flags |= PART_FORCED;
}

static void
read_automatic(struct chain_shape *shape)
{
	const struct tape *tape = shape->tape;

	for (uint32_t key = tape_first(tape, 0); key < tape_end(tape, 0);
	     key = tape_next(tape, key + 1))
		if (span_equals(tape_inside(tape, key), SPAN("cache_control")) &&
		    is_given(tape, key + 1))
			shape->automatic = marker_ttl(tape, key, PART_MARK_NONE);
}

static void
read_bounds(struct chain_shape *shape)
{
	static const char *const names[] = { "max_completion_tokens", "max_tokens" };
	const struct tape *tape = shape->tape;

	for (size_t i = 0; i < ARRAY_SIZE(names) && shape->max_tokens < 0; i++)
		if (tape_integer(tape, tape_find(tape, 0, names[i]), &shape->max_tokens) <
		            0 ||
		    shape->max_tokens < 0)
			shape->max_tokens = -1;
	shape->model = tape_find(tape, 0, "model");
	shape->wants_stream = is_true(tape, 0, "stream");
}

/* Keys that say the prompt is elsewhere, or that the cache is bypassed. */
static void
read_held(struct chain_shape *shape)
{
	const struct tape *tape = shape->tape;

	for (uint32_t key = tape_first(tape, 0); key < tape_end(tape, 0);
	     key = tape_next(tape, key + 1)) {
		struct span name = tape_inside(tape, key);

		if (!is_given(tape, key + 1))
			continue;
		switch (dialect_key_held(shape->dialect, name)) {
		case DIALECT_HELD_NO:
			break;
		case DIALECT_HELD_TOOLS:
			shape->flags |= PART_HELD;
			break;
		case DIALECT_HELD_ALL:
			give_up(shape, CHAIN_SERVER_HELD, key);
			break;
		}
		if (span_equals(name, SPAN("id_slot")) ||
		    span_equals(name, SPAN("prompt_logprobs")))
			give_up(shape, CHAIN_SKIPS_CACHE, key);
	}
}

void
chain_shape_read(struct chain_shape *shape, enum dialect dialect, const struct tape *tape,
                 uint32_t leading_max)
{
	*shape = (struct chain_shape){
		.tape = tape,
		.dialect = dialect,
		.opaque_at = TAPE_NONE,
		.tools = TAPE_NONE,
		.system = TAPE_NONE,
		.messages = TAPE_NONE,
		.first_reply = TAPE_NONE,
		.final_user = TAPE_NONE,
		.leading_last = TAPE_NONE,
		.leading_max = leading_max,
		.model = TAPE_NONE,
		.tool_choice = TAPE_NONE,
		.thinking = TAPE_NONE,
		.max_tokens = -1,
	};
	if (!tape_is(tape, 0, TAPE_OBJECT)) {
		give_up(shape, CHAIN_NOT_OBJECT, 0);
		return;
	}
	read_bounds(shape);
	if (!check_object(shape, 0))
		return;
	if (tape->lone_surrogate)
		give_up(shape, CHAIN_LONE_SURROGATE, TAPE_NONE);
	read_held(shape);
	shape->tool_choice = tape_find(tape, 0, "tool_choice");
	shape->thinking = tape_find(tape, 0, "thinking");
	read_tools(shape, tape_find(tape, 0, "tools"));
	if (dialect == DIALECT_ANTHROPIC)
		read_system(shape, tape_find(tape, 0, "system"));
	read_messages(shape, tape_find(tape, 0, "messages"));
	read_settings(shape);
	read_automatic(shape);
}

bool
chain_shape_before(const struct chain_shape_marker *m, enum tier tier, uint32_t block)
{
	return m->tier != tier ? m->tier < tier : m->block < block;
}

const struct chain_shape_marker *
chain_shape_marker_on(const struct chain_shape *shape, uint32_t block)
{
	for (uint32_t i = 0; i < shape->marker_count; i++)
		if (shape->marker[i].block == block)
			return &shape->marker[i];
	return NULL;
}
