/* redis_words.h - a command's words in the two arrays that hiredis wants.
 *
 * Short commands need no memory.  The words stay where they are: they and the arrays must
 * live until hiredis has taken them.
 *
 * Only redis_link.c and redis_sync.c use this file. */
#ifndef COMMON_IO_REDIS_WORDS_H
#define COMMON_IO_REDIS_WORDS_H

#include "common/base.h"
#include "common/error.h"

#define REDIS_WORDS_FEW 64

struct redis_words {
	const char **texts;
	size_t *lens;
	const char *few_texts[REDIS_WORDS_FEW];
	size_t few_lens[REDIS_WORDS_FEW];
};

/* Owes a redis_words_fini, also when it fails (ERR_MEMORY). */
MUST_USE int redis_words_init(struct redis_words *words, const struct span *spans,
                              size_t count);
void redis_words_fini(struct redis_words *words);

#endif
