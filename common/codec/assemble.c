#include "common/codec/assemble.h"

#include "common/codec/assemble_inside.h"

#include <stdlib.h>

int
assemble_inside_give_up(struct assemble *assemble, const char *why)
{
	if (!assemble->why_sse)
		assemble->why_sse = why;
	return 0;
}

int
assemble_inside_settle(struct assemble *assemble, int err, const char *why)
{
	if (err == ERR_MALFORMED || err == ERR_LIMIT)
		return assemble_inside_give_up(assemble, why);
	return err;
}

struct assemble_block *
assemble_inside_block(struct assemble_block **list, unsigned *count, int64_t index)
{
	struct assemble_block *grown;

	if (index < 0 || index >= ASSEMBLE_BLOCKS_MAX || index > (int64_t)*count + 64)
		return NULL;
	if (index < *count)
		return &(*list)[index];
	grown = realloc(*list, ((size_t)index + 1) * sizeof *grown);
	if (!grown)
		return NULL;
	*list = grown;
	for (; *count <= index; (*count)++) {
		grown[*count] = (struct assemble_block){ 0 };
		buffer_init(&grown[*count].json, ASSEMBLE_SIZE_MAX);
	}
	return &grown[index];
}

static void
free_blocks(struct assemble_block **list, unsigned *count)
{
	for (unsigned i = 0; i < *count; i++) {
		struct assemble_block *block = &(*list)[i];

		for (unsigned k = 0; k < block->calls_count; k++) {
			assemble_members_fini(&block->calls[k].members);
			assemble_members_fini(&block->calls[k].inner);
			buffer_fini(&block->calls[k].json);
		}
		free(block->calls);
		assemble_members_fini(&block->members);
		assemble_members_fini(&block->inner);
		assemble_members_fini(&block->lists);
		buffer_fini(&block->json);
	}
	free(*list);
	*list = NULL;
	*count = 0;
}

bool
assemble_inside_only(const struct tape *tape, uint32_t object, const char *const *names,
                     size_t count)
{
	if (!tape_is(tape, object, TAPE_OBJECT))
		return false;
	for (uint32_t key = tape_first(tape, object); key < tape_end(tape, object);
	     key = tape_next(tape, key + 1)) {
		bool known = tape_type(tape, key + 1) == TAPE_NULL;

		for (size_t i = 0; i < count && !known; i++)
			known = tape_string_is(tape, key, names[i]);
		if (!known)
			return false;
	}
	return true;
}

bool
assemble_inside_is_error(const struct tape *tape)
{
	uint32_t error = tape_find(tape, 0, "error");

	return (error != TAPE_NONE && tape_type(tape, error) != TAPE_NULL) ||
	       tape_string_is(tape, tape_find(tape, 0, "object"), "error");
}

int
assemble_inside_error(struct assemble *assemble, uint32_t error)
{
	buffer_clear(&assemble->error);
	return buffer_append(&assemble->error, tape_raw(&assemble->tape, error));
}

/* ---- events as they came ---- */

/* The extra chunk that only we asked for. */
static bool
is_usage_chunk(const struct tape *tape)
{
	uint32_t choices = tape_find(tape, 0, "choices");

	return tape_is(tape, choices, TAPE_ARRAY) && tape_count(tape, choices) == 0 &&
	       tape_is(tape, tape_find(tape, 0, "usage"), TAPE_OBJECT);
}

/* An event without the `usage: null` that comes with asking for usage. */
static void
put_without_usage(struct assemble *assemble)
{
	const struct tape *tape = &assemble->tape;
	bool first = true;

	(void)buffer_append_byte(&assemble->events, '{');
	for (uint32_t key = tape_first(tape, 0); key < tape_end(tape, 0);
	     key = tape_next(tape, key + 1)) {
		if (tape_string_is(tape, key, "usage"))
			continue;
		if (!first)
			(void)buffer_append_byte(&assemble->events, ',');
		first = false;
		(void)buffer_append(&assemble->events, tape_raw(tape, key));
		(void)buffer_append_byte(&assemble->events, ':');
		(void)buffer_append(&assemble->events, tape_raw(tape, key + 1));
	}
	(void)buffer_append_byte(&assemble->events, '}');
}

/* Data with newlines goes out on as many `data` lines as it came in on. */
static void
put_data(struct buffer *out, struct span data)
{
	while (data.len > 0) {
		const char *newline = memchr(data.data, '\n', data.len);
		size_t len = newline ? (size_t)(newline - data.data) : data.len;

		(void)buffer_append(out, (struct span){ data.data, len });
		if (newline)
			(void)buffer_append_text(out, "\ndata: ");
		len = MIN(len + 1, data.len);
		data.data += len;
		data.len -= len;
	}
}

static int
keep_event(struct assemble *assemble, const struct sse_event *event, bool is_json)
{
	struct buffer *out = &assemble->events;
	bool hide = assemble->options.hide_usage && is_json &&
	            tape_is(&assemble->tape, 0, TAPE_OBJECT);

	if (hide && is_usage_chunk(&assemble->tape))
		return 0;
	if (event->name.len > 0) {
		(void)buffer_append_text(out, "event: ");
		(void)buffer_append(out, event->name);
		(void)buffer_append_byte(out, '\n');
	}
	(void)buffer_append_text(out, "data: ");
	if (hide &&
	    tape_is(&assemble->tape, tape_find(&assemble->tape, 0, "usage"), TAPE_NULL))
		put_without_usage(assemble);
	else
		put_data(out, event->data);
	return buffer_append_text(out, "\n\n");
}

static void
merge_usage(struct assemble *assemble)
{
	if (assemble->options.usage_path.len > 0)
		usage_merge_path(&assemble->usage, &assemble->tape,
		                 assemble->options.usage_path);
	else if (assemble->options.dialect != DIALECT_RAW)
		usage_merge_answer(&assemble->usage, &assemble->tape);
}

/* A beat of the heart and the end are nothing of an answer. */
static bool
says_something(const struct assemble *assemble)
{
	uint32_t type = tape_find(&assemble->tape, 0, "type");

	return assemble->options.dialect != DIALECT_ANTHROPIC ||
	       (!tape_string_is(&assemble->tape, type, "ping") &&
	        !tape_string_is(&assemble->tape, type, "message_stop"));
}

static int
on_event(void *context, const struct sse_event *event)
{
	struct assemble *assemble = context;
	struct tape_error where;
	bool done = span_equals(event->data, SPAN("[DONE]"));
	int err = 0;

	if (assemble->ended)
		return 0;
	if (!done) {
		err = tape_parse(&assemble->tape, event->data, &where);
		if (err == ERR_MEMORY)
			return err;
	}
	if (keep_event(assemble, event, !done && err == 0) < 0)
		return buffer_error(&assemble->events);
	if (done) {
		assemble->complete = true;
		assemble->ended = assemble->options.dialect != DIALECT_RAW;
		return 0;
	}
	assemble->said = assemble->said || err < 0 || says_something(assemble);
	if (err < 0)
		return assemble_inside_give_up(assemble, "an event is not JSON");
	merge_usage(assemble);
	switch (assemble->options.dialect) {
	case DIALECT_ANTHROPIC:
		return assemble_anthropic_event(assemble);
	case DIALECT_OPENAI_CHAT:
		return assemble_chat_event(assemble);
	case DIALECT_RAW:
	case DIALECT_COUNT:
		break;
	}
	assemble->began = true;
	return assemble_inside_give_up(assemble,
	                               "this dialect has no object to assemble");
}

/* ---- life ---- */

struct assemble *
assemble_create(const struct assemble_options *options)
{
	struct assemble *assemble = calloc(1, sizeof *assemble);
	size_t size_max = options->size_max ? options->size_max : ASSEMBLE_SIZE_MAX;

	if (!assemble)
		return NULL;
	assemble->options = *options;
	assemble->options.size_max = size_max;
	sse_init(&assemble->sse, MIN(size_max, SSE_DATA_MAX), on_event, assemble);
	tape_init(&assemble->tape);
	buffer_init(&assemble->events, size_max);
	buffer_init(&assemble->plain, size_max);
	buffer_init(&assemble->body, size_max);
	buffer_init(&assemble->error, size_max);
	usage_init(&assemble->usage);
	return assemble;
}

struct assemble *
assemble_destroy(struct assemble *assemble)
{
	if (!assemble)
		return NULL;
	sse_fini(&assemble->sse);
	tape_fini(&assemble->tape);
	buffer_fini(&assemble->events);
	buffer_fini(&assemble->plain);
	buffer_fini(&assemble->body);
	buffer_fini(&assemble->error);
	assemble_members_fini(&assemble->message);
	assemble_members_fini(&assemble->cost);
	free_blocks(&assemble->blocks, &assemble->blocks_count);
	free(assemble);
	return NULL;
}

int
assemble_feed(struct assemble *assemble, struct span bytes)
{
	if (assemble->options.sse)
		return sse_feed(&assemble->sse, bytes);
	return buffer_append(&assemble->plain, bytes);
}

bool
assemble_began(const struct assemble *assemble)
{
	return assemble->began;
}

bool
assemble_ended(const struct assemble *assemble)
{
	return assemble->ended;
}

bool
assemble_is_settled(struct assemble *assemble)
{
	return assemble->ended ||
	       (assemble->options.dialect == DIALECT_OPENAI_CHAT &&
	        assemble->usage.seen && assemble_chat_has_finished(assemble));
}

const struct usage *
assemble_usage(const struct assemble *assemble)
{
	return &assemble->usage;
}

static void
finish_usage(struct assemble *assemble)
{
	if (!assemble->usage_finished)
		usage_finish(&assemble->usage);
	assemble->usage_finished = true;
}

/* Some gateways answer 200 and say in the body that it is none. */
static bool
is_error(const struct assemble *assemble)
{
	const struct tape *tape = &assemble->tape;

	return assemble->options.dialect != DIALECT_RAW &&
	       assemble_inside_is_error(tape) &&
	       tape_find(tape, 0, "content") == TAPE_NONE &&
	       tape_find(tape, 0, "choices") == TAPE_NONE;
}

/* null, {}, a list or a word is no vendor's answer, whatever says it. */
static bool
has_members(const struct tape *tape)
{
	return tape_is(tape, 0, TAPE_OBJECT) && tape_first(tape, 0) < tape_end(tape, 0);
}

/* Some servers begin their JSON with a byte order mark; of raw bytes it is a part. */
static struct span
plain_body(const struct assemble *assemble)
{
	struct span body = buffer_span(&assemble->plain);
	struct span mark = SPAN("\xef\xbb\xbf");

	if (assemble->options.dialect == DIALECT_RAW || body.len < mark.len ||
	    memcmp(body.data, mark.data, mark.len) != 0)
		return body;
	return (struct span){ body.data + mark.len, body.len - mark.len };
}

static int
finish_plain(struct assemble *assemble, struct assemble_result *result)
{
	struct tape_error where;
	int err;

	result->format = ASSEMBLE_PLAIN;
	result->body = plain_body(assemble);
	err = tape_parse(&assemble->tape, result->body, &where);
	if (err == ERR_MEMORY)
		return err;
	result->complete = err == 0 && (assemble->options.dialect == DIALECT_RAW ||
	                                has_members(&assemble->tape));
	if (err == 0)
		merge_usage(assemble);
	finish_usage(assemble);
	if (err == 0 && is_error(assemble)) {
		result->complete = false;
		err = assemble_inside_error(assemble, 0);
		result->error = buffer_span(&assemble->error);
		return err;
	}
	return 0;
}

static int
build(struct assemble *assemble)
{
	buffer_clear(&assemble->body);
	return assemble->options.dialect == DIALECT_ANTHROPIC
	               ? assemble_anthropic_build(assemble, &assemble->body)
	               : assemble_chat_build(assemble, &assemble->body);
}

int
assemble_finish(struct assemble *assemble, struct assemble_result *ret)
{
	struct assemble_result result = { .format = ASSEMBLE_SSE };
	int err;

	if (!assemble->options.sse) {
		err = finish_plain(assemble, &result);
		if (err == 0)
			*ret = result;
		return err;
	}
	err = sse_flush(&assemble->sse);
	if (err < 0)
		return err;
	if (!assemble->why_sse || assemble->options.dialect == DIALECT_OPENAI_CHAT) {
		err = assemble_inside_settle(assemble, build(assemble),
		                             "the events do not add up to an answer");
		if (err < 0)
			return err;
	}
	finish_usage(assemble);
	result.why_sse = assemble->options.keep_sse ? NULL : assemble->why_sse;
	if (!assemble->options.keep_sse && !assemble->why_sse)
		result.format = ASSEMBLE_JSON;
	result.body = buffer_span(result.format == ASSEMBLE_JSON ? &assemble->body
	                                                         : &assemble->events);
	result.silent = !assemble->said && assemble->options.dialect != DIALECT_RAW;
	result.complete =
		assemble->complete && assemble->error.len == 0 && !result.silent;
	result.error = buffer_span(&assemble->error);
	*ret = result;
	return 0;
}
