/* drift.h - why two requests do not share a prefix: the first byte that differs.
 *
 *   …"system":"Today is 2026-11-│04. You are…     node S, byte 812, kind: a date
 *   …"system":"Today is 2026-11-│05. You are…     fix: move the date behind the prefix
 *
 * Compares two chains node by node in canonical form, so white space and escapes never
 * show.  The kind is a guess from both sides' surroundings; the fix is a sentence. */
#ifndef COMMON_CODEC_DRIFT_H
#define COMMON_CODEC_DRIFT_H

#include "common/base.h"
#include "common/codec/chain.h"

#define DRIFT_SIDE_SIZE 96

/* clang-format off */
#define DRIFT_KIND_LIST(X) \
	X(DRIFT_NONE,       "none",           "The shared parts are equal.") \
	X(DRIFT_CLOCK,      "clock",          "Move the time behind the shared part, or round it.") \
	X(DRIFT_DATE,       "date",           "Move the date behind the shared part; it starts a new version every day.") \
	X(DRIFT_ID,         "id",             "Move the identifier behind the shared part.") \
	X(DRIFT_COUNTER,    "number",         "Move the number behind the shared part.") \
	X(DRIFT_TOOL_ORDER, "tool order",     "The same tools come in another order: sort them before sending.") \
	X(DRIFT_TOOLS,      "tools",          "The tools differ: send the same set to all jobs of a route.") \
	X(DRIFT_KEY_ORDER,  "key order",      "The same keys come in another order inside an object: serialise with sorted keys.") \
	X(DRIFT_BILLING,    "billing header", "The client puts a billing header that changes with each request into the system part: leave that block out before sending.") \
	X(DRIFT_SETTING,    "setting",        "A setting that the cache depends on differs: send the same one, or accept two versions.") \
	X(DRIFT_MARKER,     "marker",         "A cache marker stands inside the shared part of one of them.") \
	X(DRIFT_LENGTH,     "length",         "One shared part goes on where the other ends.") \
	X(DRIFT_OTHER,      "text",           "The text differs from here on.")
/* clang-format on */

enum drift_kind {
#define X(name, word, fix) name,
	DRIFT_KIND_LIST(X)
#undef X
	DRIFT_KIND_COUNT,
};

struct drift {
	enum drift_kind kind;
	enum tier tier;     /* of the node that differs */
	size_t offset;      /* of the first differing byte in the node's segment */
	size_t body_offset; /* the same in the canonical body */
	bool setting;       /* the segments are equal, a setting of the tier is not */
	char a[DRIFT_SIDE_SIZE]; /* both sides around the difference, safe to print */
	char b[DRIFT_SIDE_SIZE];
	unsigned a_caret; /* offset in `a` and `b` of the first differing character */
	unsigned b_caret;
};

void drift_compare(const struct chain *a, const struct chain *b, struct drift *ret_drift);

const char *drift_kind_word(enum drift_kind kind);
const char *drift_kind_fix(enum drift_kind kind);

#endif
