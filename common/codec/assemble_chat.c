#include "common/codec/assemble_inside.h"

static bool
is_given(const struct tape *tape, uint32_t at)
{
	return at != TAPE_NONE && tape_type(tape, at) != TAPE_NULL;
}

/* Strings that arrive piece by piece; every other string comes whole. */
static bool
is_pieces(const struct tape *tape, uint32_t key)
{
	static const char *const names[] = { "content", "refusal", "reasoning_content",
		                             "reasoning", "arguments" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (tape_string_is(tape, key, names[i]))
			return true;
	return false;
}

/* Takes over one member of a delta whose name says how. */
static int
take_member(struct assemble_members *members, const struct tape *tape, uint32_t key)
{
	struct span name = tape_inside(tape, key);
	uint32_t value = key + 1;

	if (tape_type(tape, value) == TAPE_NULL) {
		struct span before = assemble_members_get(members, name);

		return before.len > 0 ? 0
		                      : assemble_members_set(members, name, SPAN("null"));
	}
	if (is_pieces(tape, key)) {
		if (!tape_is(tape, value, TAPE_STRING))
			return ERR_MALFORMED;
		return assemble_members_extend(members, name, tape_inside(tape, value));
	}
	/* Some servers fill the id and the name of later pieces with nothing. */
	if (tape_is(tape, value, TAPE_STRING) && tape_inside(tape, value).len == 0 &&
	    assemble_members_get(members, name).len > 0)
		return 0;
	return assemble_members_set(members, name, tape_raw(tape, value));
}

static int
take_function(struct assemble_members *members, const struct tape *tape,
              uint32_t function)
{
	if (!tape_is(tape, function, TAPE_OBJECT))
		return ERR_MALFORMED;
	for (uint32_t key = tape_first(tape, function); key < tape_end(tape, function);
	     key = tape_next(tape, key + 1)) {
		int err = take_member(members, tape, key);

		if (err < 0)
			return err;
	}
	return 0;
}

/* Text that has been given, and is not what the member already is. */
static bool
is_another(struct assemble_members *members, const char *name, const struct tape *tape,
           uint32_t at)
{
	struct span before = assemble_members_get(members, span_from(name));

	return before.len > 0 && tape_is(tape, at, TAPE_STRING) &&
	       tape_inside(tape, at).len > 0 && !span_equals(before, tape_raw(tape, at));
}

/* Some servers give all calls of an answer the same index, or none.  By their ids or
 * names they are told apart; without an id a name that comes again behind arguments
 * begins a call, too. */
static bool
is_next_call(struct assemble_block *block, const struct tape *tape, uint32_t call)
{
	uint32_t id = tape_find(tape, call, "id");
	uint32_t name = tape_path(tape, call, "function", "name", NULL);
	bool has_name =
		tape_is(tape, name, TAPE_STRING) && tape_inside(tape, name).len > 0;
	bool has_id = tape_is(tape, id, TAPE_STRING) && tape_inside(tape, id).len > 0;

	if (is_another(&block->members, "id", tape, id) ||
	    is_another(&block->inner, "name", tape, name))
		return true;
	return has_name && !has_id &&
	       assemble_members_get(&block->inner, SPAN("arguments")).len >
	               strlen("\"\"");
}

static int
take_call(struct assemble *assemble, struct assemble_block *choice, uint32_t call,
          int64_t position)
{
	const struct tape *tape = &assemble->tape;
	struct assemble_block *block;
	int64_t index;

	if (!tape_is(tape, call, TAPE_OBJECT))
		return ERR_MALFORMED;
	if (tape_integer(tape, tape_find(tape, call, "index"), &index) < 0)
		index = position; /* some servers leave it out */
	block = assemble_inside_block(&choice->calls, &choice->calls_count, index);
	if (!block)
		return ERR_MALFORMED;
	if (block->started && is_next_call(block, tape, call))
		return assemble_inside_give_up(assemble,
		                               "two tool calls with the same index");
	block->started = true;
	for (uint32_t key = tape_first(tape, call); key < tape_end(tape, call);
	     key = tape_next(tape, key + 1)) {
		int err = 0;

		if (tape_string_is(tape, key, "index") ||
		    tape_type(tape, key + 1) == TAPE_NULL)
			continue;
		if (tape_string_is(tape, key, "function"))
			err = take_function(&block->inner, tape, key + 1);
		else
			err = take_member(&block->members, tape, key);
		if (err < 0)
			return err;
	}
	return 0;
}

static int
take_calls(struct assemble *assemble, struct assemble_block *choice, uint32_t calls)
{
	const struct tape *tape = &assemble->tape;
	int64_t position = 0;

	if (!tape_is(tape, calls, TAPE_ARRAY))
		return ERR_MALFORMED;
	for (uint32_t call = tape_first(tape, calls); call < tape_end(tape, calls);
	     call = tape_next(tape, call)) {
		int err = take_call(assemble, choice, call, position++);

		if (err < 0)
			return err;
	}
	return 0;
}

/* Names a delta may have.  Others may be pieces of something nobody knows how to join. */
static bool
is_known(const struct tape *tape, uint32_t key)
{
	return is_pieces(tape, key) || tape_string_is(tape, key, "role") ||
	       tape_string_is(tape, key, "name");
}

static int
take_delta(struct assemble *assemble, struct assemble_block *choice, uint32_t delta)
{
	const struct tape *tape = &assemble->tape;

	for (uint32_t key = tape_first(tape, delta); key < tape_end(tape, delta);
	     key = tape_next(tape, key + 1)) {
		bool given = is_given(tape, key + 1);
		int err;

		if (tape_string_is(tape, key, "tool_calls") && given)
			err = take_calls(assemble, choice, key + 1);
		else if (!given || is_known(tape, key))
			err = take_member(&choice->inner, tape, key);
		else
			return assemble_inside_give_up(assemble,
			                               "an unknown kind of delta");
		if (err < 0)
			return err;
	}
	return 0;
}

/* {"content":[…],"refusal":[…]}: the lists grow. */
static int
take_logprobs(struct assemble_block *choice, const struct tape *tape, uint32_t logprobs)
{
	int err = assemble_members_set(&choice->members, SPAN("logprobs"), SPAN("null"));

	for (uint32_t key = tape_first(tape, logprobs);
	     err == 0 && key < tape_end(tape, logprobs); key = tape_next(tape, key + 1)) {
		struct span name = tape_inside(tape, key);

		if (tape_is(tape, key + 1, TAPE_ARRAY))
			err = assemble_members_add(&choice->lists, name,
			                           tape_inside(tape, key + 1));
		else
			err = take_member(&choice->lists, tape, key);
	}
	return err;
}

static int
take_choice(struct assemble *assemble, uint32_t at)
{
	const struct tape *tape = &assemble->tape;
	struct assemble_block *choice;
	int64_t index;

	if (!tape_is(tape, at, TAPE_OBJECT))
		return ERR_MALFORMED;
	if (tape_integer(tape, tape_find(tape, at, "index"), &index) < 0)
		index = 0;
	choice = assemble_inside_block(&assemble->blocks, &assemble->blocks_count, index);
	if (!choice)
		return ERR_MALFORMED;
	choice->started = true;
	for (uint32_t key = tape_first(tape, at); key < tape_end(tape, at);
	     key = tape_next(tape, key + 1)) {
		int err;

		if (tape_string_is(tape, key, "delta") &&
		    tape_is(tape, key + 1, TAPE_OBJECT))
			err = take_delta(assemble, choice, key + 1);
		else if (tape_string_is(tape, key, "logprobs") &&
		         tape_is(tape, key + 1, TAPE_OBJECT))
			err = take_logprobs(choice, tape, key + 1);
		else if (tape_is(tape, key + 1, TAPE_ARRAY))
			err = assemble_inside_give_up(assemble,
			                              "an unknown list in a choice");
		else if (tape_string_is(tape, key, "message") && is_given(tape, key + 1))
			err = assemble_inside_give_up(assemble,
			                              "a message in place of deltas");
		else if (tape_string_is(tape, key, "index"))
			err = assemble_members_set(&choice->members, SPAN("index"),
			                           tape_raw(tape, key + 1));
		else
			err = take_member(&choice->members, tape, key);
		if (err < 0)
			return err;
	}
	return 0;
}

/* Everything of a chunk but its choices: the last word that is not null counts. */
static int
take_chunk(struct assemble *assemble)
{
	const struct tape *tape = &assemble->tape;

	for (uint32_t key = tape_first(tape, 0); key < tape_end(tape, 0);
	     key = tape_next(tape, key + 1)) {
		struct span name = tape_inside(tape, key);
		int err = 0;

		if (tape_string_is(tape, key, "choices") ||
		    tape_string_is(tape, key,
		                   "obfuscation") || /* padding against eavesdroppers */
		    tape_string_is(tape, key, "error") ||
		    tape_type(tape, key + 1) == TAPE_NULL)
			continue;
		if (tape_string_is(tape, key, "object") &&
		    tape_string_is(tape, key + 1, "chat.completion.chunk"))
			err = assemble_members_set(&assemble->message, name,
			                           SPAN("\"chat.completion\""));
		else
			err = assemble_members_set(&assemble->message, name,
			                           tape_raw(tape, key + 1));
		if (err < 0)
			return err;
	}
	return 0;
}

static int
on_chunk(struct assemble *assemble)
{
	const struct tape *tape = &assemble->tape;
	uint32_t choices = tape_find(tape, 0, "choices");
	int err;

	assemble->began = true;
	err = take_chunk(assemble);
	if (err < 0 || !tape_is(tape, choices, TAPE_ARRAY))
		return err;
	for (uint32_t at = tape_first(tape, choices); at < tape_end(tape, choices);
	     at = tape_next(tape, at)) {
		err = take_choice(assemble, at);
		if (err < 0)
			return err;
	}
	return 0;
}

int
assemble_chat_event(struct assemble *assemble)
{
	if (assemble_inside_is_error(&assemble->tape))
		return assemble_inside_error(assemble, 0);
	return assemble_inside_settle(assemble, on_chunk(assemble),
	                              "a chunk could not be placed");
}

static int
write_calls(struct assemble_block *choice, struct buffer *out)
{
	struct buffer function = BUFFER_INIT(ASSEMBLE_SIZE_MAX);
	int err = 0;

	(void)buffer_append_byte(out, '[');
	for (unsigned i = 0; err == 0 && i < choice->calls_count; i++) {
		struct assemble_block *call = &choice->calls[i];

		if (call->inner.count > 0) {
			buffer_clear(&function);
			assemble_members_write(&call->inner, &function);
			err = assemble_members_set(&call->members, SPAN("function"),
			                           buffer_span(&function));
		}
		if (i > 0)
			(void)buffer_append_byte(out, ',');
		assemble_members_write(&call->members, out);
	}
	(void)buffer_append_byte(out, ']');
	buffer_fini(&function);
	return err < 0 ? err : buffer_error(out);
}

/* Sets a member to an object or list that has been put together in `part`. */
static int
set_part(struct assemble_members *members, const char *key, struct buffer *part)
{
	int err = buffer_error(part);

	if (err == 0)
		err = assemble_members_set(members, span_from(key), buffer_span(part));
	buffer_clear(part);
	return err;
}

/* {"index":…,"message":{…},"logprobs":…,"finish_reason":…} */
static int
write_choice(struct assemble *assemble, struct assemble_block *choice, struct buffer *out)
{
	struct buffer part = BUFFER_INIT(assemble->options.size_max);
	int err = 0;

	if (assemble_members_get(&choice->inner, SPAN("content")).len == 0)
		err = assemble_members_set(&choice->inner, SPAN("content"), SPAN("null"));
	if (err == 0 && choice->calls_count > 0) {
		err = write_calls(choice, &part);
		if (err == 0)
			err = set_part(&choice->inner, "tool_calls", &part);
	}
	if (err == 0 && choice->lists.count > 0) {
		assemble_members_write(&choice->lists, &part);
		err = set_part(&choice->members, "logprobs", &part);
	}
	if (err == 0) {
		assemble_members_write(&choice->inner, &part);
		err = set_part(&choice->members, "message", &part);
	}
	if (err == 0)
		assemble_members_write(&choice->members, out);
	buffer_fini(&part);
	return err;
}

static bool
has_finished(struct assemble_block *choice)
{
	struct span reason =
		assemble_members_get(&choice->members, SPAN("finish_reason"));

	return reason.len > 0 && !span_equals(reason, SPAN("null"));
}

bool
assemble_chat_has_finished(struct assemble *assemble)
{
	for (unsigned i = 0; i < assemble->blocks_count; i++) {
		if (!has_finished(&assemble->blocks[i]))
			return false;
	}
	return assemble->blocks_count > 0;
}

int
assemble_chat_build(struct assemble *assemble, struct buffer *out)
{
	struct buffer choices = BUFFER_INIT(assemble->options.size_max);
	int err = assemble->began ? 0 : ERR_MALFORMED;

	(void)buffer_append_byte(&choices, '[');
	for (unsigned i = 0; err == 0 && i < assemble->blocks_count; i++) {
		struct assemble_block *choice = &assemble->blocks[i];

		if (i > 0)
			(void)buffer_append_byte(&choices, ',');
		err = choice->started ? write_choice(assemble, choice, &choices)
		                      : ERR_MALFORMED;
	}
	(void)buffer_append_byte(&choices, ']');
	if (err == 0)
		err = buffer_error(&choices);
	if (err == 0)
		err = assemble_members_set(&assemble->message, SPAN("choices"),
		                           buffer_span(&choices));
	if (err == 0)
		assemble_members_write(&assemble->message, out);
	/* Some servers leave out [DONE]. */
	assemble->complete = assemble->complete || assemble_chat_has_finished(assemble);
	buffer_fini(&choices);
	return err < 0 ? err : buffer_error(out);
}
