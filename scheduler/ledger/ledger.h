/* ledger.h - what was paid, and why: each written token has exactly one cause.
 *
 *   0          P of the node above       P of the family's node        end of the prompt
 *   ├───────────────────┼──────────────────────────┼─────────────────────────┤
 *   │  read ───────────►│ written ────────────────────────────►│ uncached    │
 *                       └─ cause of the node ──────┴─ tail ────┘
 *
 * A call says how many tokens it read, wrote and had in full.  What it wrote is cut at
 * the ends of the nodes of its prefix, and each piece gets the cause of that node: why
 * was it not read?  What it wrote behind the last node is `tail` or `server_tool`. Tokens
 * of the prefix that were neither read nor written have been paid in full and get the
 * cause of their node, too; the rest of what is uncached is the job's own and needs no
 * cause.
 *
 *   sum of causes[].written = written = what the provider has written for us
 *   sum of causes[].full   <= uncached
 *
 * The ledger knows of each node when it was last written and used, and from when on it
 * was readable: from that, and from when a call was sent, the cause follows (the table
 * stands in ledger_cause.c, its meaning for people in docs/LEDGER.md).  Calls arrive when
 * they end, in any order.
 *
 * Calls whose usage never came are counted and estimated apart; no estimate is ever mixed
 * into a sum.
 *
 * Bounded: LEDGER_ROUTES routes by hour for a week, the others under one name; the last
 * LEDGER_VERSIONS families of each; LEDGER_BURSTS bursts; a book of `nodes_max` nodes, of
 * which the one unused for longest goes.  Pure: no clock, no I/O, one block of memory.
 *
 * Times are milliseconds of the Redis clock.  Money is nanodollars (10^-9). */
#ifndef SCHEDULER_LEDGER_LEDGER_H
#define SCHEDULER_LEDGER_LEDGER_H

#include "common/base.h"
#include "common/id.h"
#include "scheduler/core/event.h"
#include "scheduler/ledger/ledger_sketch.h"

#define LEDGER_ROUTES    64 /* with rows of their own; the rest shares one */
#define LEDGER_HOURS     168
#define LEDGER_PLACES    32
#define LEDGER_VERSIONS  16 /* of a route; the one unused for longest goes */
#define LEDGER_BURSTS    128
#define LEDGER_NAME_SIZE 132 /* of a route or place, with its zero */

enum ledger_cause {
	LEDGER_FIRST,          /* nobody had written it yet */
	LEDGER_EXPIRED,        /* unused for longer than an entry lives */
	LEDGER_STAMPEDE,       /* started while another one was writing it */
	LEDGER_HOLD_LIMIT,     /* its `hold_max` was over before the entry was readable */
	LEDGER_PROOF_MISS,     /* the reader that was sent to prove it found nothing */
	LEDGER_NEW_VERSION,    /* the route had another prefix before: a deploy */
	LEDGER_DRIFT,          /* a prefix of one job only: something in it changes */
	LEDGER_TTL_MISMATCH,   /* it lived shorter than was asked for */
	LEDGER_EVICTED_EARLY,  /* it should have been there, and was not */
	LEDGER_OTHER_PLACE,    /* warm on another replica, shard or account */
	LEDGER_TAIL,           /* behind the prefix: a marker of the job's own */
	LEDGER_SERVER_TOOL,    /* likewise, where the provider's tools write */
	LEDGER_KEEPWARM,       /* a ping that found nothing and wrote */
	LEDGER_PREWARM_WASTED, /* written ahead, and nobody came to read it */
	LEDGER_FALSE_SPLIT,    /* the provider holds it together with another version */
	LEDGER_RETRY_WASTE,    /* by an attempt that gave no answer */
	LEDGER_UNKNOWN,        /* the ledger cannot tell */
	LEDGER_CAUSE_COUNT,
};

struct ledger_cause_sum {
	uint64_t calls;   /* that had tokens of this cause */
	uint64_t written; /* tokens */
	uint64_t full;    /* tokens of a prefix, neither read nor written */
	uint64_t cost;    /* nanodollars of both */
	uint64_t extra;   /* of that, more than reading them would have cost */
};

struct ledger_sums {
	uint64_t calls;    /* whose usage is known, with or without an answer */
	uint64_t answers;  /* of them, those that ended a job */
	uint64_t prefixed; /* answers with a shared prefix, whose reads are known */
	uint64_t hits;     /* of them, those that read all of it */
	uint64_t read, written, uncached, output; /* tokens */
	uint64_t cost;                            /* nanodollars of all of them */
	uint64_t saved;      /* by holding, in bursts: naive price less price */
	uint64_t unpriced;   /* calls of models without a price */
	uint64_t unreported; /* calls that may have been paid for and said nothing */
	uint64_t estimated;  /* input tokens they are guessed at; in no other sum */
	struct ledger_cause_sum causes[LEDGER_CAUSE_COUNT];
};

/* In thousandths of a nanodollar for one token; all 0: not known. */
struct ledger_price {
	uint64_t input, output, write, write_1h, read;
};

enum ledger_kind {
	LEDGER_BEGAN, /* its first event: teaches the book, costs nothing yet */
	LEDGER_DONE,  /* it ended a job, or was a warm-up that went well */
	LEDGER_SPENT, /* it ended otherwise; what it cost is waste */
};

enum ledger_purpose {
	LEDGER_FOR_JOB,
	LEDGER_FOR_WARMTH,  /* ahead of jobs */
	LEDGER_FOR_KEEPING, /* so that an entry does not expire */
};

struct ledger_node {
	struct id128 id;
	uint32_t tokens;   /* of the prefix up to its end; 0: not known */
	bool cacheable;    /* long enough, and marked where that is needed */
	bool shared;       /* several jobs have it */
	struct id128 twin; /* equal for the same prefix at any place; none: not known */
	struct ledger_sketch sketch; /* of its own segment */
};

/* One call to a provider, as its worker reported it.  Unknown times and counts are
 * EVENT_UNKNOWN. */
struct ledger_call {
	enum ledger_kind kind;
	enum ledger_purpose purpose;
	enum lane_role role;
	uint64_t at_ms; /* when it was reported */
	struct span route, place;
	uint64_t model; /* whose prices these are; a number of the caller's, 0 none */
	struct id128 family;
	uint32_t domain;
	struct ledger_node nodes[LINEAGE_MAX]; /* root first; the last is the family's */
	uint32_t nodes_count;
	uint64_t sent_ms, first_ms;
	uint64_t read, written, uncached, output;
	uint64_t written_1h; /* part of `written`, for an hour */
	uint64_t waited_ms;  /* from its job's arrival to `sent_ms` */
	uint64_t ttl_ms;     /* how long entries live, as asked for */
	uint64_t estimate;   /* input tokens, should it say nothing */
	bool server_tool;    /* the provider ran tools of its own */
	bool explicit;       /* nothing is written but what a marker asks for */
	bool tail_marked;    /* something behind the prefix asks for it, too */
	struct ledger_price price;
};

struct ledger_config {
	uint32_t nodes_max; /* of the book */
};

struct ledger;

size_t ledger_size(const struct ledger_config *config);

/* `memory` is aligned to 16 and ledger_size() large, and all zero: what is never touched
 * costs nothing.  `since_ms`: the book knows nothing older. */
struct ledger *ledger_init(void *memory, size_t memory_size,
                           const struct ledger_config *config, uint64_t since_ms);

void ledger_take(struct ledger *ledger, const struct ledger_call *call);

/* Whose prices a family had last: what its calls said as `model`; 0 if it is not known.
 */
uint64_t ledger_model(struct ledger *ledger, struct span route, struct id128 family);

/* The provider said 429 or 529 to somebody of this place. */
void ledger_take_pressure(struct ledger *ledger, struct span place, uint64_t at_ms);

/* Lines of the event stream are lost: from here on the sums are too small. */
void ledger_take_gap(struct ledger *ledger, uint64_t at_ms);

/* Closes bursts that are over and looks for warm-ups that nobody read; every second or
 * so. */
void ledger_tick(struct ledger *ledger, uint64_t now_ms);

/* "new_version"; what it means in one sentence; whether a better set-up avoids it. */
const char *ledger_cause_text(enum ledger_cause cause);
const char *ledger_cause_meaning(enum ledger_cause cause);
bool ledger_cause_is_avoidable(enum ledger_cause cause);

#endif
