/* reply.h - what Redis said, as a tree of borrowed values.
 *
 * The deterministic parts of scheduler and worker read answers through this and
 * nothing else, so that the daemon feeds them hiredis and the simulator feeds them
 * its own store.  A reply and all it points to lives until the callback that
 * received it returns: decode into values before leaving. */
#ifndef COMMON_REPLY_H
#define COMMON_REPLY_H

#include "common/base.h"

enum reply_kind {
	REPLY_NIL,
	REPLY_INTEGER,
	REPLY_TEXT,  /* bulk or status string */
	REPLY_ERROR, /* `text` holds the message */
	REPLY_ARRAY,
};

struct reply {
	enum reply_kind kind;
	int64_t integer;
	struct span text;
	size_t count;
	const struct reply *items;
};

/* Answers the i-th item, or a shared nil if there is none or this is no array. */
const struct reply *reply_at(const struct reply *reply, size_t i);

/* True iff it is text equal to `word`. */
bool reply_is(const struct reply *reply, const char *word);

/* Answers an integer, also from decimal text; `fallback` if it is neither. */
int64_t reply_integer(const struct reply *reply, int64_t fallback);

/* Answers the text, or an empty span. */
struct span reply_text(const struct reply *reply);

#endif
