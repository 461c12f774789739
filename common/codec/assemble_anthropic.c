#include "common/codec/assemble_inside.h"

static bool
type_is(const struct tape *tape, uint32_t object, const char *type)
{
	return tape_string_is(tape, tape_find(tape, object, "type"), type);
}

/* The block that an event speaks of, or NULL. */
static struct assemble_block *
block_of(struct assemble *assemble)
{
	int64_t index;

	if (tape_integer(&assemble->tape, tape_find(&assemble->tape, 0, "index"),
	                 &index) < 0)
		return NULL;
	return assemble_inside_block(&assemble->blocks, &assemble->blocks_count, index);
}

static int
on_message_start(struct assemble *assemble)
{
	const struct tape *tape = &assemble->tape;
	uint32_t message = tape_find(tape, 0, "message");
	int err;

	if (assemble->began)
		return assemble_inside_give_up(assemble,
		                               "a second message began in one answer");
	assemble->began = true;
	err = assemble_members_take(&assemble->message, tape, message, true);
	if (err < 0)
		return err;
	return assemble_members_take(&assemble->cost, tape,
	                             tape_find(tape, message, "usage"), true);
}

static int
on_block_start(struct assemble *assemble)
{
	static const char *const known[] = { "type", "index", "content_block" };
	struct assemble_block *block = block_of(assemble);

	if (!block || block->started ||
	    !assemble_inside_only(&assemble->tape, 0, known, ARRAY_SIZE(known)))
		return assemble_inside_give_up(assemble,
		                               "a content block began in an unknown way");
	block->started = true;
	return assemble_members_take(&block->members, &assemble->tape,
	                             tape_find(&assemble->tape, 0, "content_block"),
	                             true);
}

/* Tool input arrives as pieces of JSON text inside JSON strings. */
static int
add_input(struct assemble *assemble, struct assemble_block *block, uint32_t piece)
{
	int err = tape_string(&assemble->tape, piece, &block->json);

	return err == ERR_MALFORMED
	               ? assemble_inside_give_up(assemble,
	                                         "tool input broke a character apart")
	               : err;
}

/* How the pieces of one member become the whole. */
enum join {
	JOIN_TEXT,  /* one behind the other, inside one string */
	JOIN_INPUT, /* pieces of JSON text, see add_input */
	JOIN_WHOLE, /* comes in one piece */
	JOIN_LIST,  /* each is an item of a list */
};

struct delta_kind {
	const char *type;
	const char *key;    /* the one member besides `type` */
	const char *member; /* of the block it goes to */
	enum join join;
};

static int
join_piece(struct assemble *assemble, struct assemble_block *block,
           const struct delta_kind *kind, uint32_t value)
{
	const struct tape *tape = &assemble->tape;
	struct span member = span_from(kind->member);

	if (kind->join != JOIN_LIST && !tape_is(tape, value, TAPE_STRING))
		return assemble_inside_give_up(assemble, "a delta that is no text");
	switch (kind->join) {
	case JOIN_TEXT:
		return assemble_members_extend(&block->members, member,
		                               tape_inside(tape, value));
	case JOIN_INPUT:
		return add_input(assemble, block, value);
	case JOIN_WHOLE:
		return assemble_members_set(&block->members, member,
		                            tape_raw(tape, value));
	case JOIN_LIST:
		break;
	}
	return assemble_members_add(&block->members, member, tape_raw(tape, value));
}

static int
add_delta(struct assemble *assemble, struct assemble_block *block, uint32_t delta)
{
	static const struct delta_kind kinds[] = {
		{ "text_delta", "text", "text", JOIN_TEXT },
		{ "thinking_delta", "thinking", "thinking", JOIN_TEXT },
		{ "signature_delta", "signature", "signature", JOIN_WHOLE },
		{ "input_json_delta", "partial_json", "input", JOIN_INPUT },
		{ "citations_delta", "citation", "citations", JOIN_LIST },
	};
	const struct tape *tape = &assemble->tape;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		const char *known[] = { "type", kinds[i].key };
		uint32_t value = tape_find(tape, delta, kinds[i].key);

		if (!type_is(tape, delta, kinds[i].type))
			continue;
		if (value == TAPE_NONE || !assemble_inside_only(tape, delta, known, 2))
			break;
		return join_piece(assemble, block, &kinds[i], value);
	}
	return assemble_inside_give_up(assemble, "an unknown kind of delta");
}

static int
on_block_delta(struct assemble *assemble)
{
	static const char *const known[] = { "type", "index", "delta" };
	struct assemble_block *block = block_of(assemble);

	if (!block || !block->started ||
	    !assemble_inside_only(&assemble->tape, 0, known, ARRAY_SIZE(known)))
		return assemble_inside_give_up(assemble,
		                               "a delta came without its content block");
	return add_delta(assemble, block, tape_find(&assemble->tape, 0, "delta"));
}

static int
on_block_stop(struct assemble *assemble)
{
	static const char *const known[] = { "type", "index" };

	if (!assemble_inside_only(&assemble->tape, 0, known, ARRAY_SIZE(known)))
		return assemble_inside_give_up(assemble,
		                               "a content block ended in an unknown way");
	return 0;
}

/* Members of `delta`, and whatever else stands beside it, belong to the message; usage
 * is cumulative, and a later number replaces an earlier one. */
static int
on_message_delta(struct assemble *assemble)
{
	const struct tape *tape = &assemble->tape;
	int err = assemble_members_take(&assemble->message, tape,
	                                tape_find(tape, 0, "delta"), true);

	if (err == 0)
		err = assemble_members_take(&assemble->cost, tape,
		                            tape_find(tape, 0, "usage"), true);
	for (uint32_t key = tape_first(tape, 0); err == 0 && key < tape_end(tape, 0);
	     key = tape_next(tape, key + 1)) {
		if (tape_string_is(tape, key, "type") ||
		    tape_string_is(tape, key, "delta") ||
		    tape_string_is(tape, key, "usage") ||
		    tape_type(tape, key + 1) == TAPE_NULL)
			continue;
		err = assemble_members_set(&assemble->message, tape_inside(tape, key),
		                           tape_raw(tape, key + 1));
	}
	return err;
}

static int
on_message_stop(struct assemble *assemble)
{
	assemble->complete = true;
	assemble->ended = true;
	return 0;
}

static int
on_error(struct assemble *assemble)
{
	return assemble_inside_error(assemble, 0);
}

int
assemble_anthropic_event(struct assemble *assemble)
{
	static const struct {
		const char *type;
		int (*handle)(struct assemble *assemble);
	} handlers[] = {
		{ "content_block_delta", on_block_delta },
		{ "content_block_start", on_block_start },
		{ "content_block_stop", on_block_stop },
		{ "message_start", on_message_start },
		{ "message_delta", on_message_delta },
		{ "message_stop", on_message_stop },
		{ "error", on_error },
	};

	for (size_t i = 0; i < ARRAY_SIZE(handlers); i++)
		if (type_is(&assemble->tape, 0, handlers[i].type))
			return assemble_inside_settle(assemble,
			                              handlers[i].handle(assemble),
			                              "an event could not be placed");
	return 0; /* pings, and kinds that clients have to ignore */
}

/* The input of a tool, if any came in pieces. */
static int
settle_input(struct assemble_block *block)
{
	struct tape_error where;
	struct tape tape;
	int err;

	if (block->json.len == 0)
		return 0; /* it stays what it was when the block began: {} */
	tape_init(&tape);
	err = tape_parse(&tape, buffer_span(&block->json), &where);
	if (err == 0)
		err = assemble_members_set(&block->members, SPAN("input"),
		                           buffer_span(&block->json));
	tape_fini(&tape);
	return err;
}

int
assemble_anthropic_build(struct assemble *assemble, struct buffer *out)
{
	struct buffer content = BUFFER_INIT(assemble->options.size_max);
	struct buffer cost = BUFFER_INIT(assemble->options.size_max);
	int err = assemble->began ? 0 : ERR_MALFORMED;

	(void)buffer_append_byte(&content, '[');
	for (unsigned i = 0; err == 0 && i < assemble->blocks_count; i++) {
		struct assemble_block *block = &assemble->blocks[i];

		err = block->started ? settle_input(block) : ERR_MALFORMED;
		if (i > 0)
			(void)buffer_append_byte(&content, ',');
		assemble_members_write(&block->members, &content);
	}
	(void)buffer_append_byte(&content, ']');
	assemble_members_write(&assemble->cost, &cost);
	if (err == 0)
		err = buffer_error(&content);
	if (err == 0)
		err = assemble_members_set(&assemble->message, SPAN("content"),
		                           buffer_span(&content));
	if (err == 0 && assemble->cost.count > 0)
		err = assemble_members_set(&assemble->message, SPAN("usage"),
		                           buffer_span(&cost));
	if (err == 0)
		assemble_members_write(&assemble->message, out);
	buffer_fini(&content);
	buffer_fini(&cost);
	return err < 0 ? err : buffer_error(out);
}
