#include "common/codec/chain_shape.h"

#include "common/codec/tape_text.h"

static uint32_t
last_block(const struct tape *tape, uint32_t message)
{
	uint32_t content = tape_find(tape, message, "content");
	uint32_t last = TAPE_NONE;

	if (!tape_is(tape, content, TAPE_ARRAY))
		return TAPE_NONE;
	for (uint32_t block = tape_first(tape, content); block < tape_end(tape, content);
	     block = tape_next(tape, block))
		last = block;
	return last;
}

/* The first token of what may be in M: all messages but the leading ones. */
static uint32_t
messages_from(const struct chain_shape *shape)
{
	return shape->leading ? shape->leading : tape_first(shape->tape, shape->messages);
}

static struct chain_cut
cut_behind(const struct chain_shape *shape, uint32_t message, uint32_t block)
{
	struct chain_cut cut = { .exists = true, .message = message, .block = block };

	if (block == last_block(shape->tape, message))
		cut.block = TAPE_NONE; /* the last block: all of the message */
	return cut;
}

/* A marker that can end M: on a block of a message, and not at the very end of what the
 * request asks. */
static bool
can_cut(const struct chain_shape *shape, const struct chain_shape_marker *marker)
{
	if (marker->tier != TIER_MESSAGES || marker->nested)
		return false;
	if (shape->final_user == TAPE_NONE)
		return true;
	if (marker->message > shape->final_user)
		return false;
	return marker->message != shape->final_user ||
	       marker->block != last_block(shape->tape, marker->message);
}

static struct chain_cut
cut_by_markers(const struct chain_shape *shape)
{
	const struct chain_shape_marker *opening = NULL, *deepest = NULL;

	for (uint32_t i = 0; i < shape->marker_count; i++) {
		const struct chain_shape_marker *marker = &shape->marker[i];

		if (!can_cut(shape, marker))
			continue;
		deepest = marker;
		if (shape->first_reply == TAPE_NONE ||
		    marker->message < shape->first_reply)
			opening = marker;
	}
	if (opening)
		deepest = opening; /* history behind it is most likely private */
	if (!deepest)
		return (struct chain_cut){ 0 };
	return cut_behind(shape, deepest->message, deepest->block);
}

static struct chain_cut
cut_by_count(const struct chain_shape *shape, uint32_t count)
{
	const struct tape *tape = shape->tape;
	uint32_t at = tape_first(tape, shape->messages);

	for (uint32_t i = 1; i < count; i++)
		at = tape_next(tape, at);
	if (at < messages_from(shape))
		return (struct chain_cut){ 0 }; /* all of it is system */
	return (struct chain_cut){ .exists = true, .message = at, .block = TAPE_NONE };
}

static struct chain_cut
cut_by_marker(const struct chain_shape *shape, uint32_t k)
{
	const struct chain_shape_marker *marker = &shape->marker[k - 1];

	if (marker->tier != TIER_MESSAGES)
		return (struct chain_cut){ 0 };
	return cut_behind(shape, marker->message, marker->block);
}

/* With every marker of the provider's used up, only a place that has one can be marked:
 * the deepest before the declared end. */
static struct chain_cut
cut_within_slots(const struct chain_shape *shape, const struct dialect_traits *traits,
                 struct chain_cut cut)
{
	uint32_t used = shape->explicit_count + (shape->automatic != TTL_NONE ? 1 : 0);
	uint32_t block = chain_shape_markable(shape, TIER_MESSAGES, &cut);
	struct chain_cut moved = { 0 };

	if (traits->markers == MARKER_NONE || used < traits->markers_max ||
	    chain_shape_marker_on(shape, block))
		return cut;
	for (uint32_t i = 0; i < shape->marker_count; i++) {
		const struct chain_shape_marker *marker = &shape->marker[i];

		if (marker->tier == TIER_MESSAGES && !marker->nested &&
		    marker->block < block)
			moved = cut_behind(shape, marker->message, marker->block);
	}
	return moved;
}

struct chain_shared
chain_shape_shared(const struct chain_shape *shape, struct chain_shared shared,
                   const char **ret_note)
{
	const char *note = NULL;

	switch (shared.kind) {
	case CHAIN_SHARED_AUTO:
		break;
	case CHAIN_SHARED_TOOLS:
		if (shape->tools == TAPE_NONE)
			note = "`shared=tools`, but the request has no tools; ignored";
		break;
	case CHAIN_SHARED_SYSTEM:
		if (!chain_shape_has_system(shape))
			note = "`shared=system`, but the request has no system part; "
			       "ignored";
		break;
	case CHAIN_SHARED_MESSAGES:
		if (shared.n < 1 || shared.n > shape->message_count)
			note = "`shared` names more messages than the request has; "
			       "ignored";
		break;
	case CHAIN_SHARED_MARKER:
		if (shared.n < 1 || shared.n > shape->marker_count)
			note = "`shared` names a marker that the request does not have; "
			       "ignored";
		else if (shape->marker[shared.n - 1].nested)
			note = "`shared` names a marker inside a tool result, where no "
			       "shared "
			       "part can end; ignored";
		break;
	case CHAIN_SHARED_BYTES:
		note = "`shared=bytes` is for the dialect raw; ignored";
		break;
	}
	if (!note)
		return shared;
	*ret_note = note;
	return (struct chain_shared){ CHAIN_SHARED_AUTO, 0 };
}

struct chain_cut
chain_shape_cut(const struct chain_shape *shape, const struct dialect_traits *traits,
                struct chain_shared shared, uint32_t prefix_messages)
{
	struct chain_cut cut = { 0 };

	if (shape->messages == TAPE_NONE || (shape->flags & PART_HELD))
		return cut;
	switch (shared.kind) {
	case CHAIN_SHARED_TOOLS:
	case CHAIN_SHARED_SYSTEM:
	case CHAIN_SHARED_BYTES:
		break;
	case CHAIN_SHARED_MESSAGES:
		cut = cut_by_count(shape, shared.n);
		break;
	case CHAIN_SHARED_MARKER:
		cut = cut_by_marker(shape, shared.n);
		break;
	case CHAIN_SHARED_AUTO:
		cut = prefix_messages > 0 ? cut_by_count(shape, prefix_messages)
		                          : cut_by_markers(shape);
		break;
	}
	return cut.exists ? cut_within_slots(shape, traits, cut) : cut;
}

static bool
type_may_mark(const struct tape *tape, uint32_t block)
{
	static const char *const types[] = { "text",      "image",       "document",
		                             "tool_use",  "tool_result", "search_result",
		                             "image_url", "input_audio", "file" };
	uint32_t type = tape_find(tape, block, "type");

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (tape_string_is(tape, type, types[i]))
			return true;
	return false;
}

/* True iff `block` may carry a marker of ours. */
static bool
may_mark(const struct chain_shape *shape, enum tier tier, uint32_t block)
{
	const struct tape *tape = shape->tape;
	uint32_t text;

	if (tape_is(tape, block, TAPE_STRING))
		return !tape_text_is_blank(tape_inside(tape, block));
	if (!tape_is(tape, block, TAPE_OBJECT))
		return false;
	if (tier == TIER_TOOLS)
		return shape->dialect == DIALECT_ANTHROPIC &&
		       tape_count(tape, block) > 0 &&
		       !tape_is(tape, tape_find(tape, block, "defer_loading"), TAPE_TRUE);
	if (!type_may_mark(tape, block))
		return false;
	if (!tape_string_is(tape, tape_find(tape, block, "type"), "text"))
		return true;
	text = tape_find(tape, block, "text");
	return tape_is(tape, text, TAPE_STRING) &&
	       !tape_text_is_blank(tape_inside(tape, text));
}

/* The last markable child of an array up to `stop`, or a string itself. */
static uint32_t
last_markable(const struct chain_shape *shape, enum tier tier, uint32_t value,
              uint32_t stop)
{
	const struct tape *tape = shape->tape;
	uint32_t last = TAPE_NONE;

	if (tape_is(tape, value, TAPE_STRING))
		return may_mark(shape, tier, value) ? value : TAPE_NONE;
	if (!tape_is(tape, value, TAPE_ARRAY))
		return TAPE_NONE;
	for (uint32_t block = tape_first(tape, value); block < tape_end(tape, value);
	     block = tape_next(tape, block)) {
		if (may_mark(shape, tier, block))
			last = block;
		if (block == stop)
			break;
	}
	return last;
}

uint32_t
chain_shape_markable(const struct chain_shape *shape, enum tier tier,
                     const struct chain_cut *cut)
{
	const struct tape *tape = shape->tape;
	uint32_t from, to, last = TAPE_NONE;

	if (tier == TIER_TOOLS)
		return last_markable(shape, tier, shape->tools, TAPE_NONE);
	if (tier == TIER_SYSTEM && shape->dialect == DIALECT_ANTHROPIC)
		return last_markable(shape, tier, shape->system, TAPE_NONE);
	if (shape->messages == TAPE_NONE)
		return TAPE_NONE;
	from = tier == TIER_SYSTEM ? tape_first(tape, shape->messages)
	                           : messages_from(shape);
	to = tier == TIER_SYSTEM ? shape->leading_last : cut->message;
	for (uint32_t at = from; at <= to && at < tape_end(tape, shape->messages);
	     at = tape_next(tape, at)) {
		uint32_t stop =
			at == to && tier == TIER_MESSAGES ? cut->block : TAPE_NONE;
		uint32_t found =
			last_markable(shape, tier, tape_find(tape, at, "content"), stop);

		if (found != TAPE_NONE)
			last = found;
	}
	return last;
}
