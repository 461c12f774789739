/* core.h - the scheduling decision, and nothing else.
 *
 * A core is a function with a memory: (state, now, event) -> (state, commands).  It
 * reads no clock, makes no system call, allocates nothing after core_init and never
 * calls back.  The daemon feeds it Redis and libuv; the simulator feeds it a seed.  Both
 * must get the same commands for the same events.
 *
 *   events ──► evidence ──► gate ──► election ──► grants ──► commands
 *                 │                    ▲  ▲
 *                 └──► pacer ──────────┘  └── pools: which family next
 *
 * Gate: what the cache says of a lane.  Pacer: what the provider allows.  Pools: who is
 * next.  docs/CORE.md explains them with pictures; the words are in lane.h, event.h and
 * command.h.
 *
 * Memory grows with families, never with jobs.  When a limit of the configuration is
 * reached, the oldest idle family is forgotten; if none is idle, new families run
 * unheld.  All time is milliseconds of the Redis clock. */
#ifndef SCHEDULER_CORE_CORE_H
#define SCHEDULER_CORE_CORE_H

#include "common/base.h"
#include "common/id.h"
#include "scheduler/core/command.h"
#include "scheduler/core/event.h"

#define CORE_DEADLINE_NONE UINT64_MAX

/* Limits, then policy.  CORE_CONFIG_DEFAULT has the recommended values; the tests change
 * one at a time. */
struct core_config {
	uint32_t families_max;
	uint32_t lanes_max; /* at least families_max */
	uint32_t pools_max, budgets_max, models_max;

	uint64_t hold_max_ms;      /* default of a job; DECISIONS: 30 s */
	uint64_t max_wait_ms;      /* default of a pool */
	uint64_t leader_ms_max;    /* longest patience with a leader, 60 s */
	uint64_t leader_ms_first;  /* while no leader's time is known, 30 s */
	uint64_t lag_ms_max;       /* longest lag believed, 2,050 ms */
	uint64_t recheck_ms;       /* shortest wait after a miss, 2 s */
	uint64_t margin_ms;        /* taken off an entry's life, 10 s */
	uint32_t misses_max;       /* misses until a lane is leaky, 3 */
	uint32_t trust_proofs;     /* proofs in a row until trust, 20 */
	uint32_t refusals_max;     /* leaders refused until bypass, 3 */
	uint32_t pace_start;       /* 32 */
	uint64_t pace_gap_ms;      /* shortest time between two doublings, 100 */
	uint64_t pace_patience_ms; /* a doubling without evidence or pressure, 10 s */
	uint64_t pace_memory_ms;   /* how long a peak counts, 10 min */
	uint64_t look_ms;          /* a credit that nobody took is looked after, 5 s */
	uint64_t linger_ms;        /* a drained family keeps its rank so long, 2 s */
	uint64_t company_ms_max;   /* longest wait of a first job for a second one, 20 */
};

#define CORE_CONFIG_DEFAULT                                                              \
	{                                                                                \
		.families_max = 100000, .lanes_max = 150000, .pools_max = 64,            \
		.budgets_max = 1280, .models_max = 256, .hold_max_ms = 30000,            \
		.max_wait_ms = 300000, .leader_ms_max = 60000, .leader_ms_first = 30000, \
		.lag_ms_max = 2050, .recheck_ms = 2000, .margin_ms = 10000,              \
		.misses_max = 3, .trust_proofs = 20, .refusals_max = 3,                  \
		.pace_start = 32, .pace_gap_ms = 100, .pace_patience_ms = 10000,         \
		.pace_memory_ms = 600000, .look_ms = 5000, .linger_ms = 2000,            \
		.company_ms_max = 20,                                                    \
	}

struct core;

size_t core_size(const struct core_config *config);

/* `memory` is aligned to 16 and core_size() large.  The core is recovering until it is
 * told EVENT_RECOVERED_END, also in an empty namespace. */
struct core *core_init(void *memory, size_t memory_size,
                       const struct core_config *config);

/* Advances to `now_ms` (never backwards) and consumes one event.  `out` is overwritten.
 * If work remains, core_deadline() answers `now_ms`: step again, with a TICK. */
void core_step(struct core *core, uint64_t now_ms, const struct event *event,
               struct command_list *out);

/* When to step again at the latest; absolute, CORE_DEADLINE_NONE to sleep. */
uint64_t core_deadline(const struct core *core);

/* True while a lane with work is not open yet or a pacer is rising: the event stream
 * should then be read every 10 to 20 ms, otherwise every 200 ms. */
bool core_busy(const struct core *core);

/* True while jobs wait their turn in a pool of which no worker is known.  One may have
 * come before them: then the events say so, and nothing else. */
bool core_lacks_workers(const struct core *core);

/* VERIFYs the whole state; O(n). */
void core_audit(const struct core *core);

/* What stands between a family and its next start: the first that applies. */
enum core_blocked {
	CORE_BLOCKED_NOTHING,
	CORE_BLOCKED_NO_WORK,
	CORE_BLOCKED_PAUSED,
	CORE_BLOCKED_NO_WORKER, /* the pool has no slots */
	CORE_BLOCKED_PARKED,    /* the account, until blocked_until_ms; 0: not reached */
	CORE_BLOCKED_WRITING,   /* its prefix is being written by another request */
	CORE_BLOCKED_CHECKING,  /* a reader is being awaited, or the lag */
	CORE_BLOCKED_ELECTED,   /* it may write and waits for a slot */
	CORE_BLOCKED_ORDER,     /* families before it are drained first */
	CORE_BLOCKED_SLOTS,  /* it is being drained, and all slots of its pool are busy */
	CORE_BLOCKED_PACE,   /* the account's slow start: blocked_number in flight */
	CORE_BLOCKED_WINDOW, /* the account runs blocked_number at once, and never more */
	CORE_BLOCKED_BUDGET, /* bucket blocked_bucket, limit blocked_number a minute */
	CORE_BLOCKED_COUNT,
};

struct core_lane_view {
	struct lane_id lane;
	enum lane_gate gate;
	enum lane_reason reason;
	uint64_t until_ms;  /* open: warm until; bypass, leaky: tried again */
	uint64_t check_ms;  /* checking: not before */
	uint32_t p, tokens; /* proved and estimated size; 0 = unknown */
	uint32_t misses, unproven;
	uint32_t allowed; /* unproven starts at once: 1; 2, 4 after a close for misses */
	bool gates, marked; /* as this family sees it */
};

struct core_family_view {
	struct id128 id, pool, budget, model;
	uint32_t lanes_count; /* root first; the last is the family's own */
	struct core_lane_view lanes[LINEAGE_MAX];
	uint32_t waiting, running; /* estimates */
	uint64_t oldest_ms;        /* id time of its oldest waiting job; 0 = none */
	bool unheld;               /* holding is switched off for its route */
	bool elected;              /* it may write or prove, and has not started yet */
	bool active;
	uint32_t rank;
	enum core_blocked blocked_on;
	uint64_t blocked_until_ms;
	uint64_t blocked_number;
	enum event_bucket blocked_bucket;
};

/* ERR_NOT_FOUND if the core does not know the family. */
MUST_USE int core_family_view(const struct core *core, struct id128 family,
                              struct core_family_view *ret_view);

/* What waits and runs in one pool, and why the rest does not. */
struct core_pool_view {
	struct id128 id;
	uint32_t slots;
	uint64_t waiting, running; /* estimates */
	uint64_t runnable;  /* of those that wait: what would start if slots came now */
	uint64_t oldest_ms; /* of its oldest waiting job; 0 = none */
	uint32_t families[CORE_BLOCKED_COUNT]; /* with work, by what stands in the way */
	uint64_t jobs[CORE_BLOCKED_COUNT];     /* that wait in them */
};

/* All pools in one pass over the families; answers how many there are, room for
 * pools_max.  `scratch` has as many numbers as the second function says. */
uint32_t core_pools_view(const struct core *core, struct core_pool_view *ret_views,
                         uint64_t *scratch);
size_t core_pools_scratch(const struct core_config *config);

/* Whether a family's prefix can be written ahead of its jobs, by one request of ours;
 * else the first reason why not.  EVENT_WARM has it written iff it can be. */
enum core_warm {
	CORE_WARM_YES,
	CORE_WARM_UNKNOWN, /* nothing is known of its prefix */
	CORE_WARM_OFF, /* nobody waits for it: holding is off, or its upstream is not held
	                */
	CORE_WARM_SMALL,    /* shorter than what the model caches */
	CORE_WARM_UNSHARED, /* one job only has it so far */
	CORE_WARM_UNCACHEABLE,
	CORE_WARM_OPEN,    /* it is warm */
	CORE_WARM_WRITTEN, /* it was written; the next job shows that it can be read */
	CORE_WARM_WRITING, /* it, or a node above it, is being written */
	CORE_WARM_PAUSED,
	CORE_WARM_PARKED,
	CORE_WARM_NO_CALL,   /* its provider takes no request that only writes */
	CORE_WARM_NO_WORKER, /* its pool has no slots */
	CORE_WARM_WORK,      /* its jobs wait, and one of them writes it */
	CORE_WARM_BUSY,      /* another one of this account is being written so */
	CORE_WARM_LATER,     /* it has just failed, or is being granted */
	CORE_WARM_COUNT,
};

enum core_warm core_warm_verdict(const struct core *core, struct id128 family);
const char *core_warm_text(enum core_warm verdict); /* a word, as in docs/PROTOCOL.md */

struct core_budget_view {
	uint32_t pace;
	bool rising;
	uint64_t parked_until_ms;
	uint64_t limits[EVENT_BUCKET_COUNT];
	uint32_t pending; /* jobs that wait or run, estimate */
};

MUST_USE int core_budget_view(const struct core *core, struct id128 budget,
                              struct core_budget_view *ret_view);

struct core_model_view {
	uint64_t lag_ms; /* EVENT_UNKNOWN until learned */
	uint32_t proofs; /* in a row */
	bool trusted, call_refused;
	uint64_t leader_ms; /* patience with a leader now */
};

MUST_USE int core_model_view(const struct core *core, struct id128 model,
                             struct core_model_view *ret_view);

struct core_counts {
	uint32_t families, lanes;
	uint32_t lanes_by_gate[LANE_GATE_COUNT];
	uint64_t steps, elections, proofs, misses, opened, closed, revoked;
	uint64_t switches; /* times a pool turned to a further family */
};

struct core_counts core_counts(const struct core *core);

const char *core_blocked_text(enum core_blocked blocked);

#endif
