#include "common/codec/chain_write.h"

#include "common/codec/tape_text.h"

#include <stdlib.h>

#define KEYS_MAX CHAIN_SHAPE_KEYS_MAX

static void
put(struct chain_writer *writer, struct span bytes)
{
	(void)buffer_append(writer->out, bytes);
}

static void
put_text(struct chain_writer *writer, const char *text)
{
	(void)buffer_append_text(writer->out, text);
}

/* A comma, unless an object or an array has just been opened. */
static void
put_comma(struct chain_writer *writer)
{
	const struct buffer *out = writer->out;
	char last = out->len ? out->data[out->len - 1] : '{';

	if (last != '{' && last != '[')
		(void)buffer_append_byte(writer->out, ',');
}

static void
put_member(struct chain_writer *writer, uint32_t key)
{
	const struct tape *tape = writer->shape->tape;

	put_comma(writer);
	put(writer, (struct span){ tape->text.data + tape->tokens[key].start,
	                           tape->tokens[key + 1].end - tape->tokens[key].start });
}

static int
compare_keys(const void *a, const void *b, void *context)
{
	const struct tape *tape = context;
	struct span left = tape_inside(tape, *(const uint32_t *)a);
	struct span right = tape_inside(tape, *(const uint32_t *)b);
	int order = memcmp(left.data, right.data, MIN(left.len, right.len));

	return order ? order : (left.len > right.len) - (left.len < right.len);
}

/* Keys in the order of their bytes; members that are not sorted keep their order. */
struct keys {
	uint32_t key[KEYS_MAX];
	uint32_t count;
};

static void
collect(struct keys *keys, uint32_t key)
{
	VERIFY(keys->count < KEYS_MAX); /* chain_shape_read refuses larger objects */
	keys->key[keys->count++] = key;
}

static void
put_sorted(struct chain_writer *writer, struct keys *keys)
{
	const struct tape *tape = writer->shape->tape;

	qsort_r(keys->key, keys->count, sizeof *keys->key, compare_keys,
	        (void *)(uintptr_t)tape);
	for (uint32_t i = 0; i < keys->count; i++)
		put_member(writer, keys->key[i]);
}

static size_t
offset(const struct chain_writer *writer)
{
	return writer->out->len - writer->piece->from;
}

static void
piece_begin(struct chain_writer *writer, struct chain_piece *piece, enum tier tier)
{
	const struct chain_shape *shape = writer->shape;
	uint32_t boundary = chain_shape_markable(shape, tier, writer->cut);
	const struct chain_shape_marker *marker = chain_shape_marker_on(shape, boundary);

	*piece = (struct chain_piece){
		.from = writer->out->len,
		.wrap_at = PART_NOWHERE,
		.mark_at = PART_NOWHERE,
		.boundary = boundary,
	};
	writer->piece = piece;
	writer->strip = TAPE_NONE;
	if (marker && marker->form != PART_MARK_NONE) {
		piece->user = marker->form;
		writer->strip = marker->key;
	}
}

static void
piece_end(struct chain_writer *writer, enum part_end end)
{
	writer->piece->len = offset(writer);
	writer->piece->end = end;
	writer->end = end;
}

/* A marker that is left out of what is written: taken out, or null. */
static bool
is_left_out(const struct chain_writer *writer, uint32_t key)
{
	const struct tape *tape = writer->shape->tape;

	return key == writer->strip || (chain_shape_is_marker_key(tape, key) &&
	                                tape_type(tape, key + 1) == TAPE_NULL);
}

static bool
keeps_marker(const struct chain_writer *writer, uint32_t block)
{
	const struct tape *tape = writer->shape->tape;

	if (!tape_is(tape, block, TAPE_OBJECT))
		return false;
	for (uint32_t key = tape_first(tape, block); key < tape_end(tape, block);
	     key = tape_next(tape, key + 1))
		if (chain_shape_is_marker_key(tape, key) && !is_left_out(writer, key))
			return true;
	return false;
}

/* Where a marker can go is where the last markable block so far ends. */
static void
note_place(struct chain_writer *writer, uint32_t block, size_t wrap_at, size_t mark_at)
{
	if (keeps_marker(writer, block)) {
		writer->piece->fixed = true;
		if (writer->piece->user == PART_MARK_NONE) /* else it has to go back in */
			writer->piece->wrap_at = writer->piece->mark_at = PART_NOWHERE;
	} else if (block == writer->piece->boundary) {
		writer->piece->fixed = false;
		writer->piece->wrap_at = wrap_at;
		writer->piece->mark_at = mark_at;
	}
}

static void
put_block(struct chain_writer *writer, uint32_t block)
{
	const struct tape *tape = writer->shape->tape;
	bool whole = true;

	put_comma(writer);
	if (!tape_is(tape, block, TAPE_OBJECT)) {
		put(writer, tape_raw(tape, block));
		return;
	}
	for (uint32_t key = tape_first(tape, block); key < tape_end(tape, block);
	     key = tape_next(tape, key + 1))
		whole = whole && !is_left_out(writer, key);
	if (whole) {
		put(writer, tape_raw(tape, block));
	} else {
		put_text(writer, "{");
		for (uint32_t key = tape_first(tape, block); key < tape_end(tape, block);
		     key = tape_next(tape, key + 1))
			if (!is_left_out(writer, key))
				put_member(writer, key);
		put_text(writer, "}");
	}
	note_place(writer, block, PART_NOWHERE, offset(writer) - 1);
}

/* The text of {"type":"text","text":"…"} and nothing else, or TAPE_NONE. */
static uint32_t
plain_text(const struct chain_writer *writer, uint32_t block)
{
	const struct tape *tape = writer->shape->tape;
	uint32_t text = TAPE_NONE, members = 0;

	if (!tape_is(tape, block, TAPE_OBJECT))
		return TAPE_NONE;
	for (uint32_t key = tape_first(tape, block); key < tape_end(tape, block);
	     key = tape_next(tape, key + 1)) {
		if (is_left_out(writer, key))
			continue;
		members++;
		if (tape_string_is(tape, key, "text") &&
		    tape_is(tape, key + 1, TAPE_STRING))
			text = key + 1;
		else if (!tape_string_is(tape, key, "type") ||
		         !tape_string_is(tape, key + 1, "text"))
			return TAPE_NONE;
	}
	return members == 2 ? text : TAPE_NONE;
}

static void
put_string(struct chain_writer *writer, uint32_t string, uint32_t block)
{
	size_t from = offset(writer);

	put(writer, tape_raw(writer->shape->tape, string));
	note_place(writer, block, from, offset(writer));
}

/* A string, or an array of blocks; one plain text block is written as a string. */
static void
put_content(struct chain_writer *writer, uint32_t value)
{
	const struct tape *tape = writer->shape->tape;
	uint32_t text;

	if (tape_is(tape, value, TAPE_STRING)) {
		put_string(writer, value, value);
		return;
	}
	if (!tape_is(tape, value, TAPE_ARRAY)) {
		put(writer, tape_raw(tape, value));
		return;
	}
	text = tape_count(tape, value) == 1 ? plain_text(writer, tape_first(tape, value))
	                                    : TAPE_NONE;
	if (text != TAPE_NONE) {
		put_string(writer, text, tape_first(tape, value));
		return;
	}
	put_text(writer, "[");
	for (uint32_t block = tape_first(tape, value); block < tape_end(tape, value);
	     block = tape_next(tape, block))
		put_block(writer, block);
	put_text(writer, "]");
}

/* ---- T ---- */

static bool
is_in_tools(const struct chain_shape *shape, uint32_t key)
{
	struct span name = tape_inside(shape->tape, key);

	if (dialect_key_tier(shape->dialect, name) != TIER_TOOLS)
		return false;
	if (span_equals(name, SPAN("tools")))
		return false; /* written last, or in the tail if empty */
	/* These may be added by WarmQ, so they stay where it looks for them. */
	return !span_equals(name, SPAN("prompt_cache_key")) &&
	       !span_equals(name, SPAN("prompt_cache_options"));
}

void
chain_write_tools(struct chain_writer *writer, struct chain_piece *ret_piece)
{
	const struct chain_shape *shape = writer->shape;
	const struct tape *tape = shape->tape;
	struct keys keys = { .count = 0 };

	piece_begin(writer, ret_piece, TIER_TOOLS);
	put_text(writer, "{");
	for (uint32_t key = tape_first(tape, 0); key < tape_end(tape, 0);
	     key = tape_next(tape, key + 1)) {
		if (is_in_tools(shape, key) && key + 1 != shape->model)
			collect(&keys, key);
	}
	if (shape->model != TAPE_NONE)
		put_member(writer, shape->model - 1);
	put_sorted(writer, &keys);
	if (shape->tools != TAPE_NONE) {
		put_comma(writer);
		put_text(writer, "\"tools\":[");
		for (uint32_t tool = tape_first(tape, shape->tools);
		     tool < tape_end(tape, shape->tools); tool = tape_next(tape, tool))
			put_block(writer, tool);
		put_text(writer, "]");
	}
	piece_end(writer, PART_CLOSED);
}

/* ---- messages ---- */

static enum part_role
message_role(const struct tape *tape, uint32_t message)
{
	uint32_t role = tape_find(tape, message, "role");

	if (tape_string_is(tape, role, "assistant"))
		return PART_ROLE_ASSISTANT;
	if (tape_string_is(tape, role, "system") ||
	    tape_string_is(tape, role, "developer"))
		return PART_ROLE_SYSTEM;
	return PART_ROLE_USER;
}

/* All members but the content, `role` first, then the key of the content. */
static void
put_message_start(struct chain_writer *writer, uint32_t message)
{
	const struct tape *tape = writer->shape->tape;
	uint32_t role = tape_find(tape, message, "role");
	uint32_t content = tape_find(tape, message, "content");
	struct keys keys = { .count = 0 };

	put_comma(writer);
	put_text(writer, "{");
	if (role != TAPE_NONE)
		put_member(writer, role - 1);
	for (uint32_t key = tape_first(tape, message); key < tape_end(tape, message);
	     key = tape_next(tape, key + 1))
		if (key + 1 != role && key + 1 != content)
			collect(&keys, key);
	put_sorted(writer, &keys);
	if (content != TAPE_NONE) {
		put_comma(writer);
		put_text(writer, "\"content\":");
	}
}

/* Blocks up to `stop`, the array left open. */
static void
put_blocks_open(struct chain_writer *writer, uint32_t content, uint32_t stop)
{
	const struct tape *tape = writer->shape->tape;

	put_text(writer, "[");
	writer->next_block = writer->blocks_end = tape_end(tape, content);
	for (uint32_t block = tape_first(tape, content); block < tape_end(tape, content);
	     block = tape_next(tape, block)) {
		put_block(writer, block);
		if (block == stop) {
			writer->next_block = tape_next(tape, block);
			break;
		}
	}
}

/* The message at the cut: left open behind its last block or value. */
static enum part_end
put_message_open(struct chain_writer *writer, uint32_t message, uint32_t stop)
{
	const struct tape *tape = writer->shape->tape;
	uint32_t content = tape_find(tape, message, "content");
	bool blocks = tape_is(tape, content, TAPE_ARRAY) && tape_count(tape, content) > 0;
	bool single = blocks && stop == TAPE_NONE && tape_count(tape, content) == 1 &&
	              plain_text(writer, tape_first(tape, content)) != TAPE_NONE;

	put_message_start(writer, message);
	if (!blocks || single) {
		if (content != TAPE_NONE)
			put_content(writer, content);
		return PART_VALUE;
	}
	put_blocks_open(writer, content, stop);
	return PART_BLOCK;
}

static void
open_messages(struct chain_writer *writer)
{
	if (writer->messages_open) {
		put_text(writer, writer->end == PART_BLOCK ? "]}" : "}");
		return;
	}
	put_comma(writer);
	put_text(writer, "\"messages\":[");
	writer->messages_open = true;
	writer->next_message = tape_first(writer->shape->tape, writer->shape->messages);
}

/* Messages from where we are up to `last`, which is left open. */
static void
put_messages_open(struct chain_writer *writer, uint32_t last, uint32_t stop)
{
	const struct tape *tape = writer->shape->tape;

	open_messages(writer);
	while (writer->next_message < last) {
		uint32_t content = tape_find(tape, writer->next_message, "content");

		put_message_start(writer, writer->next_message);
		if (content != TAPE_NONE)
			put_content(writer, content);
		put_text(writer, "}");
		writer->next_message = tape_next(tape, writer->next_message);
	}
	piece_end(writer, put_message_open(writer, last, stop));
	writer->piece->role = message_role(tape, last);
	writer->next_message = tape_next(tape, last);
}

void
chain_write_system(struct chain_writer *writer, struct chain_piece *ret_piece)
{
	const struct chain_shape *shape = writer->shape;

	piece_begin(writer, ret_piece, TIER_SYSTEM);
	if (shape->dialect == DIALECT_OPENAI_CHAT) {
		put_messages_open(writer, shape->leading_last, TAPE_NONE);
		return;
	}
	put_comma(writer);
	put_text(writer, "\"system\":");
	put_content(writer, shape->system);
	piece_end(writer, PART_CLOSED);
}

void
chain_write_messages(struct chain_writer *writer, struct chain_piece *ret_piece)
{
	piece_begin(writer, ret_piece, TIER_MESSAGES);
	put_messages_open(writer, writer->cut->message, writer->cut->block);
}

/* ---- own and tail ---- */

static void
put_rest_of_messages(struct chain_writer *writer)
{
	const struct tape *tape = writer->shape->tape;
	uint32_t messages = writer->shape->messages;

	if (!writer->messages_open) {
		put_member(writer, messages - 1);
		return;
	}
	for (uint32_t block = writer->next_block; block < writer->blocks_end;
	     block = tape_next(tape, block)) {
		put_text(writer, ",");
		put(writer, tape_raw(tape, block));
	}
	put_text(writer, writer->end == PART_BLOCK ? "]}" : "}");
	for (uint32_t at = writer->next_message; at < tape_end(tape, messages);
	     at = tape_next(tape, at)) {
		put_text(writer, ",");
		put(writer, tape_raw(tape, at));
	}
	put_text(writer, "]");
}

size_t
chain_write_own(struct chain_writer *writer, bool has_system)
{
	const struct chain_shape *shape = writer->shape;
	size_t from = writer->out->len;

	if (shape->dialect == DIALECT_ANTHROPIC && shape->system != TAPE_NONE &&
	    !has_system)
		put_member(writer, shape->system - 1);
	if (shape->messages != TAPE_NONE)
		put_rest_of_messages(writer);
	return writer->out->len - from;
}

static bool
is_written(const struct chain_shape *shape, uint32_t key)
{
	return key + 1 == shape->tools || key + 1 == shape->system ||
	       key + 1 == shape->messages || is_in_tools(shape, key);
}

void
chain_write_tail(struct chain_writer *writer)
{
	const struct chain_shape *shape = writer->shape;
	const struct tape *tape = shape->tape;

	for (uint32_t key = tape_first(tape, 0); key < tape_end(tape, 0);
	     key = tape_next(tape, key + 1))
		if (!is_written(shape, key))
			put_member(writer, key);
	put_text(writer, "}");
}

/* thinking without its budget: what the tools and system tiers depend on. */
static void
put_thinking(struct chain_writer *writer, uint32_t thinking)
{
	const struct tape *tape = writer->shape->tape;

	put_comma(writer);
	put_text(writer, "\"thinking\":{");
	for (uint32_t key = tape_first(tape, thinking); key < tape_end(tape, thinking);
	     key = tape_next(tape, key + 1))
		if (!tape_string_is(tape, key, "budget_tokens"))
			put_member(writer, key);
	put_text(writer, "}");
}

/* True iff the member belongs to the settings of that tier. */
static bool
is_setting(const struct chain_shape *shape, enum tier tier, uint32_t key)
{
	struct span name = tape_inside(shape->tape, key);
	enum tier at = dialect_key_tier(shape->dialect, name);

	if (span_equals(name, SPAN("messages")) || span_equals(name, SPAN("tools")))
		return false;
	if (tier == TIER_TOOLS)
		return at == TIER_TOOLS && !is_in_tools(shape, key);
	return tier == TIER_MESSAGES && at == TIER_MESSAGES;
}

void
chain_write_settings(const struct chain_shape *shape, enum tier tier, struct buffer *out)
{
	struct chain_writer writer = { .shape = shape, .out = out };
	const struct tape *tape = shape->tape;
	struct keys keys = { .count = 0 };
	/* A dialect that does not know the key has it whole in the segment. */
	bool thinking = tier == TIER_TOOLS &&
	                tape_is(tape, shape->thinking, TAPE_OBJECT) &&
	                !is_in_tools(shape, shape->thinking - 1);

	for (uint32_t key = tape_first(tape, 0); key < tape_end(tape, 0);
	     key = tape_next(tape, key + 1))
		if (is_setting(shape, tier, key))
			collect(&keys, key);
	put_text(&writer, "{");
	put_sorted(&writer, &keys);
	if (thinking)
		put_thinking(&writer, shape->thinking);
	put_text(&writer, "}");
}

void
chain_write_init(struct chain_writer *writer, const struct chain_shape *shape,
                 const struct chain_cut *cut, struct buffer *out)
{
	*writer = (struct chain_writer){
		.shape = shape,
		.cut = cut,
		.out = out,
		.body_from = out->len,
		.strip = TAPE_NONE,
	};
}
