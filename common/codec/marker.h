/* marker.h - whether WarmQ puts a cache marker at a node, and why not, in words.
 *
 *      wanted by the scheduler           constraints of this request
 *      (shared, and reuse pays)          (slots, TTL order, minimum, a place to put it)
 *                  └──────────► marker_plan ◄──────────┘
 *                                    │
 *                    insert: nodes to mark   wire: nodes that carry a marker, whoever's
 *
 * At most two are inserted: at the boundary (the deepest node) and at the deepest
 * ancestor wanted that carries none.  The user's markers are never moved, removed or
 * re-timed.  Usage is evidence for a node only if its `wire` bit is set.
 *
 * Pure arithmetic; bit i is px i, root first. */
#ifndef COMMON_CODEC_MARKER_H
#define COMMON_CODEC_MARKER_H

#include "common/base.h"
#include "common/codec/dialect.h"
#include "common/codec/part.h"

/* clang-format off */
#define MARKER_REASON_LIST(X) \
	X(MARKER_INSERTED,   "marked by WarmQ") \
	X(MARKER_USERS,      "marked by the job itself") \
	X(MARKER_NOT_WANTED, "not marked: no reuse is expected yet") \
	X(MARKER_NOT_NEEDED, "not marked: this provider finds prefixes by itself") \
	X(MARKER_COVERED,    "not marked: the boundary and one ancestor are enough") \
	X(MARKER_FORBIDDEN,  "not marked: markers are switched off") \
	X(MARKER_NO_SLOT,    "not marked: the request already has as many markers as the provider allows") \
	X(MARKER_TTL_ORDER,  "not marked: a longer-lived marker would have to follow a shorter-lived one") \
	X(MARKER_SMALL,      "not marked: the prefix is below the provider's minimum") \
	X(MARKER_NO_PLACE,   "not marked: no block in this part may carry a marker")
/* clang-format on */

enum marker_reason {
#define X(name, text) name,
	MARKER_REASON_LIST(X)
#undef X
	MARKER_REASON_COUNT,
};

struct marker_request {
	const struct dialect_traits *traits;
	const struct part_px *px;
	unsigned px_count;
	const struct part_own *own;
	unsigned want; /* the lane's bits, read at claim */
	bool never; /* `markers: never` of upstream, family or job; or refused before */
};

struct marker_plan {
	unsigned insert; /* a marker of ours goes here */
	unsigned wire;   /* carries a marker when sent, ours or the user's */
	enum marker_reason reason[PART_NODES_MAX];
};

void marker_plan(const struct marker_request *request, struct marker_plan *ret_plan);

/* "marked by WarmQ", "not marked: …" */
const char *marker_reason_text(enum marker_reason reason);

#endif
