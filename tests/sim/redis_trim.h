/* redis_trim.h - the words that stream commands share: ids, and how to trim.
 *
 * Ids are read as laxly as Redis reads them.  `~` is taken literally: an exact trim is
 * one of its outcomes. */
#ifndef TESTS_SIM_REDIS_TRIM_H
#define TESTS_SIM_REDIS_TRIM_H

#include "tests/sim/redis_command.h"

/* MAXLEN, MINID and LIMIT. */
struct redis_trim {
	bool by_length, by_id, approximate, limited;
	int64_t length;
	int64_t limit; /* read, and not obeyed */
	struct redis_stream_id id;
};

const struct reply *redis_trim_bad_id(struct redis_call *call);

bool redis_trim_number(struct span digits, uint64_t *ret_value);

/* "5-3"; "5" with the sequence given. */
bool redis_trim_id(struct span word, uint64_t seq_missing,
                   struct redis_stream_id *ret_id);

/* Each reads from word *i on, leaves *i at its last word, and answers NULL or the error.
 * The last one says why a combination is none. */
const struct reply *redis_trim_read(struct redis_call *call, size_t *i,
                                    struct redis_trim *trim);
const struct reply *redis_trim_limit(struct redis_call *call, size_t *i,
                                     struct redis_trim *trim);
const struct reply *redis_trim_judge(struct redis_call *call,
                                     const struct redis_trim *trim);

#endif
