#include "tests/sim/redis_answer.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define CHUNK_SIZE ((size_t)64 << 10)

struct redis_chunk {
	struct redis_chunk *next;
	size_t used;
	size_t size;
	_Alignas(16) char data[];
};

/* Keeps the oldest chunk, so that a usual call never reaches malloc. */
void
redis_arena_reset(struct redis_arena *arena)
{
	while (arena->chunks && arena->chunks->next) {
		struct redis_chunk *next = arena->chunks->next;

		free(arena->chunks);
		arena->chunks = next;
	}
	if (arena->chunks)
		arena->chunks->used = 0;
}

void
redis_arena_fini(struct redis_arena *arena)
{
	redis_arena_reset(arena);
	free(arena->chunks);
	arena->chunks = NULL;
}

void *
redis_arena_take(struct redis_arena *arena, size_t size)
{
	struct redis_chunk *chunk = arena->chunks;
	void *place;

	size = (size + 15) & ~(size_t)15;
	if (!chunk || chunk->size - chunk->used < size) {
		size_t room = MAX(size, CHUNK_SIZE);

		chunk = malloc(sizeof *chunk + room);
		VERIFY(chunk);
		*chunk = (struct redis_chunk){ .next = arena->chunks, .size = room };
		arena->chunks = chunk;
	}
	place = chunk->data + chunk->used;
	chunk->used += size;
	return place;
}

static struct reply *
make(struct redis_arena *arena, enum reply_kind kind)
{
	struct reply *reply = redis_arena_take(arena, sizeof *reply);

	*reply = (struct reply){ .kind = kind };
	return reply;
}

static struct span
copy(struct redis_arena *arena, struct span text)
{
	char *data = redis_arena_take(arena, text.len + 1);

	if (text.len > 0)
		memcpy(data, text.data, text.len);
	data[text.len] = '\0';
	return (struct span){ data, text.len };
}

const struct reply *
redis_answer_nil(struct redis_arena *arena)
{
	return make(arena, REPLY_NIL);
}

const struct reply *
redis_answer_integer(struct redis_arena *arena, int64_t value)
{
	struct reply *reply = make(arena, REPLY_INTEGER);

	reply->integer = value;
	return reply;
}

const struct reply *
redis_answer_text(struct redis_arena *arena, struct span text)
{
	struct reply *reply = make(arena, REPLY_TEXT);

	reply->text = copy(arena, text);
	return reply;
}

const struct reply *
redis_answer_status(struct redis_arena *arena, const char *text)
{
	struct reply *reply = make(arena, REPLY_TEXT);

	reply->text = copy(arena, span_from(text));
	reply->integer = 1;
	return reply;
}

size_t
redis_answer_print_double(double value, char *ret_text, size_t size)
{
	int len;

	if (isinf(value))
		len = snprintf(ret_text, size, value > 0 ? "inf" : "-inf");
	else if (value == floor(value) && fabs(value) < 1e17)
		len = snprintf(ret_text, size, "%.0f", value);
	else
		len = snprintf(ret_text, size, "%.17g", value);
	VERIFY(len > 0 && (size_t)len < size);
	return (size_t)len;
}

const struct reply *
redis_answer_double(struct redis_arena *arena, double value)
{
	char text[40];
	size_t len = redis_answer_print_double(value, text, sizeof text);

	return redis_answer_text(arena, (struct span){ text, len });
}

const struct reply *
redis_answer_error(struct redis_arena *arena, const char *format, ...)
{
	char text[1024];
	struct reply *reply = make(arena, REPLY_ERROR);
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof text, format, args);
	va_end(args);
	reply->text = copy(arena, span_from(text));
	return reply;
}

const struct reply *
redis_answer_wrong_type(struct redis_arena *arena)
{
	return redis_answer_error(arena, "WRONGTYPE Operation against a key holding the "
	                                 "wrong kind of value");
}

const struct reply *
redis_answer_not_integer(struct redis_arena *arena)
{
	return redis_answer_error(arena, "ERR value is not an integer or out of range");
}

const struct reply *
redis_answer_not_float(struct redis_arena *arena)
{
	return redis_answer_error(arena, "ERR value is not a valid float");
}

const struct reply *
redis_answer_syntax(struct redis_arena *arena)
{
	return redis_answer_error(arena, "ERR syntax error");
}

const struct reply *
redis_answer_array(struct redis_arena *arena, size_t count, struct reply **ret_items)
{
	struct reply *reply = make(arena, REPLY_ARRAY);
	struct reply *items = redis_arena_take(arena, (count + 1) * sizeof *items);

	memset(items, 0, (count + 1) * sizeof *items);
	reply->count = count;
	reply->items = items;
	*ret_items = items;
	return reply;
}
