/* evidence.h - what the usage of one request says about each lane of its chain.
 *
 *   P(T) ──── P(S) ────────── P(M)          tokens up to the end of each node
 *   ├── read ──────┤                        S was hit, and all above it; M was missed
 *   hit  iff  read >= P - slack,  slack = max(128, 2 %)
 *
 * Written tokens never decide (tools and tails write, too); unknown is neither hit nor
 * miss; only nodes that carried a marker are judged.
 *
 * P is learned: of the deepest marked node as read + written of any request that marked
 * nothing past it; of the others as the first read that only they explain. */
#ifndef SCHEDULER_CORE_EVIDENCE_H
#define SCHEDULER_CORE_EVIDENCE_H

#include "common/base.h"
#include "scheduler/core/event.h"

struct core;
struct family;

enum evidence_verdict {
	EVIDENCE_SILENT, /* says nothing: no marker, or usage unknown */
	EVIDENCE_HIT,
	EVIDENCE_MISS, /* not read; it may have been written */
	EVIDENCE_ZERO, /* marked, and nothing read and nothing written */
};

struct evidence {
	uint64_t sent_ms;       /* 0 = unknown */
	uint64_t first_ms;      /* 0 = unknown */
	uint64_t read, written; /* or EVENT_UNKNOWN */
	enum evidence_verdict verdicts[LINEAGE_MAX];
};

/* Tokens that a read may fall short of P. */
uint32_t evidence_slack(uint32_t p);

/* True iff a read of `read` tokens covers a node of `p`. */
bool evidence_covers(uint64_t read, uint32_t p);

/* Judges one usage for one family, and learns P on the way. */
void evidence_judge(struct core *core, uint32_t family, const struct event_usage *usage,
                    struct evidence *ret_evidence);

#endif
