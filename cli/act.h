/* act.h - verbs that ask Redis for one thing: a function's call and the word it answers.
 *
 * Who asked goes into the event stream, and so onto the page and into the log. */
#ifndef CLI_ACT_H
#define CLI_ACT_H

#include "cli/store.h"

#define ACT_WORD_SIZE 64

/* Calls `function` with these words, then the name of who asks.  CLI_OK, and the word
 * that Redis answered (empty if it has none), or the code to leave with. */
MUST_USE int act_call(struct store *store, const char *function, const char *const *words,
                      size_t count, char ret_what[ACT_WORD_SIZE]);

/* The same with one more word behind the name, unless it is NULL. */
MUST_USE int act_call_behind(struct store *store, const char *function,
                             const char *const *words, size_t count, const char *behind,
                             char ret_what[ACT_WORD_SIZE]);

#endif
