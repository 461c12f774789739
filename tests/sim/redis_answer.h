/* redis_answer.h - replies of the small Redis, made in an arena that a call empties.
 *
 * An array is made with its items in place: take it with redis_answer_array, fill the
 * items through redis_answer_item.  Texts are copied, so a reply outlives the value it
 * was read from.  A status line is a text whose `integer` is 1. */
#ifndef TESTS_SIM_REDIS_ANSWER_H
#define TESTS_SIM_REDIS_ANSWER_H

#include "common/base.h"
#include "common/reply.h"

struct redis_chunk;

struct redis_arena {
	struct redis_chunk *chunks; /* newest first */
};

void redis_arena_reset(struct redis_arena *arena);
void redis_arena_fini(struct redis_arena *arena);
void *redis_arena_take(struct redis_arena *arena, size_t size);

const struct reply *redis_answer_nil(struct redis_arena *arena);
const struct reply *redis_answer_integer(struct redis_arena *arena, int64_t value);
const struct reply *redis_answer_text(struct redis_arena *arena, struct span text);
const struct reply *redis_answer_status(struct redis_arena *arena, const char *text);
const struct reply *redis_answer_double(struct redis_arena *arena, double value);
const struct reply *redis_answer_error(struct redis_arena *arena, const char *format, ...)
	PRINTF(2, 3);

/* The errors that everybody needs. */
const struct reply *redis_answer_wrong_type(struct redis_arena *arena);
const struct reply *redis_answer_not_integer(struct redis_arena *arena);
const struct reply *redis_answer_not_float(struct redis_arena *arena);
const struct reply *redis_answer_syntax(struct redis_arena *arena);

/* An array of nils to be filled; `ret_items` is where. */
const struct reply *redis_answer_array(struct redis_arena *arena, size_t count,
                                       struct reply **ret_items);

/* As many digits as Redis prints for a score: the shortest that read back the same. */
size_t redis_answer_print_double(double value, char *ret_text, size_t size);

#endif
