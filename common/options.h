/* options.h - command lines read by one table, which also prints the help.
 *
 *   static const struct option_spec specs[] = {
 *           { "slots", OPTION_UNSIGNED, offsetof(struct args, slots), "200", "N",
 *             "how many jobs run at once", .min = 1, .max = 10000 },
 *           { "json", OPTION_FLAG, offsetof(struct args, json), NULL, NULL,
 *             "print JSON" },
 *   };
 *
 * Long options only, as `--name value` or `--name=value`, and -h for --help; `--` ends
 * them; everything else is positional, "-" too, but no word that begins with a dash.  The
 * target's fields have the type of their kind, below, and get the defaults first. Unknown
 * names are errors that name the nearest known one.
 *
 * Texts point into argv or into the table: both outlive the target.  Allocates only for
 * the help text. */
#ifndef COMMON_OPTIONS_H
#define COMMON_OPTIONS_H

#include "common/base.h"
#include "common/buffer.h"
#include "common/error.h"

enum option_kind {
	OPTION_FLAG,     /* bool; takes no value */
	OPTION_TEXT,     /* const char *; NULL without default */
	OPTION_UNSIGNED, /* uint64_t within min..max; max 0 = no bound */
	OPTION_DURATION, /* uint64_t, milliseconds; needs a unit */
	OPTION_SIZE,     /* uint64_t, bytes; needs a unit */
	OPTION_KIND_COUNT,
};

struct option_spec {
	const char *name;
	enum option_kind kind;
	size_t offset;           /* of the field in the target */
	const char *value;       /* the default, as text; NULL = false, NULL or 0 */
	const char *placeholder; /* what the help calls the value; NULL for flags */
	const char *help;        /* one sentence part in lower case, no full stop */
	uint64_t min;            /* OPTION_UNSIGNED only */
	uint64_t max;
	bool hidden; /* works, but is not in the help */
};

struct options_error {
	char text[256]; /* a sentence that says what is wrong and what to do */
};

struct options_table {
	const struct option_spec *specs;
	size_t count;
};

/* Fills `target` with defaults, then with what argv[1..] says.  Positional words are
 * moved to the front of argv[1..], in order; `ret_positional` is how many there are.
 * ERR_UNKNOWN_KEY for an unknown name, ERR_MALFORMED or ERR_LIMIT for a bad value;
 * `reterr` then holds the sentence. */
MUST_USE int options_parse(struct options_table table, int argc, char **argv,
                           void *target, int *ret_positional,
                           struct options_error *reterr);

/* Appends one aligned line per option, with defaults. */
void options_help(struct options_table table, struct buffer *out);

/* Answers the name in `names` that is nearest to `word` (edit distance at most 2 and less
 * than half of the word), or NULL. */
const char *options_nearest(const char *word, const char *const *names, size_t count);

#endif
