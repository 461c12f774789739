/* lineage.h - which nodes of a request carry a marker, and so which may hold it back.
 *
 *   T ──── S ──── M          root first; the last one is the family's own node
 *   ·      ▲      ▲          at most two markers of ours: at the end of the family's
 *          └──────┴─ marks   node, and at the deepest shared ancestor
 *
 * A provider that caches only what is marked writes nothing elsewhere, so only marked
 * nodes are evidence and only marked nodes gate.  Whoever fills in the family record
 * (`admit`) lists as gated ancestors exactly the nodes that lineage_gates() answers, less
 * the leaf: a node that a family does not mark must never hold it.
 *
 * Bits: 1 is the root, 2 the next, ...  Nothing here has state. */
#ifndef SCHEDULER_CORE_LINEAGE_H
#define SCHEDULER_CORE_LINEAGE_H

#include "common/base.h"
#include "common/id.h"

#define LINEAGE_MAX 4 /* T, S and up to two M */

enum {
	LINEAGE_SHARED = 1, /* declared, or seen in two jobs */
	LINEAGE_MARKED = 2, /* the user put a marker at its end */
	LINEAGE_MARKABLE =
		4, /* we may put one there (not `never`, a place, room, TTL order) */
};

struct lineage_node {
	struct id128 id;
	uint32_t tokens; /* estimate of the whole prefix up to its end; 0 = unknown */
	uint32_t flags;  /* LINEAGE_... */
};

struct lineage {
	struct lineage_node nodes[LINEAGE_MAX]; /* root first */
	uint32_t count;                         /* 1 to LINEAGE_MAX */
};

/* The nodes that gate: shared, not below `minimum_tokens`, and marked by the user or by
 * us.  Without markers on the dialect (`needs_marker` false) every shared one does. */
uint32_t lineage_gates(const struct lineage *chain, bool needs_marker,
                       uint32_t minimum_tokens);

/* Tokens of the prefix that stand behind the deepest of these gates: nobody keeps them
 * for the next job, so each one pays them in full.  0 where sizes are not known. */
uint32_t lineage_ungated(const struct lineage *chain, uint32_t gates);

#endif
