/* redis_command.h - between the small Redis's dispatcher and its command families.
 *
 * A handler finds its words in `call`, checks all of them before it changes anything,
 * and answers a reply made by the redis_answer functions.  The dispatcher has checked
 * the number of words and, after a write, drops the key that became empty. */
#ifndef TESTS_SIM_REDIS_COMMAND_H
#define TESTS_SIM_REDIS_COMMAND_H

#include "tests/sim/redis_answer.h"
#include "tests/sim/redis_model.h"

struct redis_call {
	struct redis_model *model;
	struct redis_arena *arena;
	const struct span *argv;
	size_t argc;
	bool inside; /* of a function */
	bool read_only;
};

typedef const struct reply *redis_handler_fn(struct redis_call *call);

struct redis_command {
	const char *name; /* lower case */
	int arity;        /* words with the name; negative: at least so many */
	bool writes;
	redis_handler_fn *run;
};

/* Each ends with an entry without a name. */
extern const struct redis_command redis_keys_commands[];
extern const struct redis_command redis_strings_commands[];
extern const struct redis_command redis_lists_commands[];
extern const struct redis_command redis_hashes_commands[];
extern const struct redis_command redis_sets_commands[];
extern const struct redis_command redis_zsets_commands[];
extern const struct redis_command redis_streams_commands[];

/* The i-th word, 0 being the name. */
static inline struct span
redis_command_word(const struct redis_call *call, size_t i)
{
	VERIFY(i < call->argc);
	return call->argv[i];
}

/* True iff word i exists and says `name`, in any case. */
bool redis_command_is(const struct redis_call *call, size_t i, const char *name);

/* Each writes `ret_...` only on success; false means the word is not one. */
bool redis_command_integer(struct span word, int64_t *ret_value);
bool redis_command_double(struct span word, double *ret_value);

/* The value under a key.  `ret_value` is NULL if there is none.  False iff it has
 * another type: the caller answers redis_answer_wrong_type. */
bool redis_command_find(struct redis_call *call, struct span key, enum redis_type type,
                        struct redis_value **ret_value);

/* The same, and creates an empty one where there is none. */
bool redis_command_open(struct redis_call *call, struct span key, enum redis_type type,
                        struct redis_value **ret_value);

void redis_command_delete(struct redis_call *call, struct redis_value *value);

/* Deletes it iff it is empty. */
void redis_command_tidy(struct redis_call *call, struct redis_value *value);

/* Redis's clock in milliseconds. */
uint64_t redis_command_now_ms(const struct redis_call *call);

/* The shared end of LRANGE, ZRANGE, LTRIM: clamps [start, stop], negative from the end.
 * False iff nothing is left. */
bool redis_command_range(int64_t start, int64_t stop, size_t count, size_t *ret_from,
                         size_t *ret_count);

#endif
