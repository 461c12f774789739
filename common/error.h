/* error.h - what can go wrong with the world, as negative ints.
 *
 * A function that can fail answers 0 (or a count) or one of these, and is marked
 * MUST_USE.  Library code returns them and stays silent; whoever handles an error
 * logs it, once, with the job, family or address it concerns. */
#ifndef COMMON_ERROR_H
#define COMMON_ERROR_H

/* clang-format off */
#define ERROR_LIST(X) \
	X(ERR_MALFORMED,   "malformed input")            /* bytes from outside do not parse */ \
	X(ERR_LIMIT,       "limit exceeded")             /* well-formed, but over a stated bound */ \
	X(ERR_UNSUPPORTED, "not supported")              /* understood, and refused on purpose */ \
	X(ERR_UNKNOWN_KEY, "unknown key")                /* a name that no table lists */ \
	X(ERR_NOT_FOUND,   "not found")                  \
	X(ERR_FULL,        "full")                       /* a bounded container has no room */ \
	X(ERR_STALE,       "stale")                      /* an older epoch, generation or token */ \
	X(ERR_AGAIN,       "try again")                  /* more bytes or another turn needed */ \
	X(ERR_CONNECTION,  "connection lost")            \
	X(ERR_TIMEOUT,     "timed out")                  \
	X(ERR_IO,          "input/output error")         /* errno has the cause */ \
	X(ERR_MEMORY,      "out of memory")
/* clang-format on */

enum error {
	ERR_NONE = 0,
	ERR_FIRST = -1000,
#define X(name, text) name,
	ERROR_LIST(X)
#undef X
	ERR_END,
};

/* Answers a short phrase in lower case, never NULL. */
const char *error_text(int error);

#endif
