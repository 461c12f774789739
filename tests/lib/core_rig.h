/* core_rig.h - a small world around the scheduler's core: Redis, workers, a provider.
 *
 *   script ──► rig ── events ──► core ── commands ──► rig (lanes, claims, cache) ──┐
 *               ▲                                                                  │
 *               └──────────── time: next deadline, first event, end ◄──────────────┘
 *
 * For tests of the core alone.  It keeps books of its own: how many requests wrote each
 * node, how many possibly wrote at once while the gate was shut, who started when.  The
 * rules of starting are those of docs/PROTOCOL.md, in short; the real functions and the
 * real provider model meet the core in tests/sim.
 *
 * One block per rig, from malloc; rig_free gives it back.  Times are milliseconds. */
#ifndef TESTS_LIB_CORE_RIG_H
#define TESTS_LIB_CORE_RIG_H

#include "scheduler/core/core.h"

#include <stdio.h>

enum {
	CORE_RIG_START_MS = 1000000, /* so that no time is near 0 */
	CORE_RIG_NODES = 32,
	CORE_RIG_FAMILIES = 24,
	CORE_RIG_STARTS = 1024,
	CORE_RIG_POOLS = 4,
	CORE_RIG_EVENTS = 1024,
	CORE_RIG_NAME = 16,
};

/* One node: the lane record, and the provider's entry for it. */
struct core_rig_node {
	char name[CORE_RIG_NAME];
	struct id128 id;
	uint32_t parent; /* index or UINT32_MAX */
	bool has_family;
	uint32_t tokens;

	enum lane_gate gate;
	enum lane_reason reason;
	uint64_t g, until_ms, life_ms;
	uint32_t credits, in_use, window, rank, p;
	enum lane_role role;
	enum lane_ticket ticket;
	uint64_t ticket_deadline_ms;

	uint64_t readable_ms; /* entry; UINT64_MAX = there is none */
	uint64_t expires_ms;
	uint32_t writes;   /* requests that wrote it */
	uint32_t unproven; /* credited or not, sent while the gate was shut, silent yet */
	uint32_t unproven_max;
};

struct core_rig_family {
	uint32_t chain[LINEAGE_MAX], chain_count; /* nodes, root first */
	uint32_t gates, marks, users, flags;
	uint32_t pool;
	uint32_t backlog, started, done, returned;
	uint64_t held_ms; /* since when only the gate stops it; 0 = not */
	uint64_t held_ms_max;
	uint64_t oldest_ms;
	bool elsewhere;     /* paid by another account, which binds nobody */
	bool unheld;        /* holding is off for its route, which is its own */
	uint32_t last_step; /* of the rig, at its last start: who was served when */
};

struct core_rig_start {
	bool used, begun, report;
	uint32_t family, pool;
	enum lane_role role;
	uint64_t g;
	uint32_t marks;
	uint32_t unproven; /* places of the chain on which it is counted */
	uint64_t sent_ms, first_ms, end_ms;
	uint64_t read, written;
};

struct core_rig_pool {
	char name[CORE_RIG_NAME];
	uint32_t slots, used;
};

/* Events on their way to the core, in order. */
struct core_rig_queue {
	struct event events[CORE_RIG_EVENTS];
	uint64_t due_ms[CORE_RIG_EVENTS];
	uint32_t first, count;
};

/* Everything a test may turn; change it at any time. */
struct core_rig_knobs {
	uint64_t cold_ms, warm_ms; /* to the first event */
	uint64_t job_ms;           /* from there to the end */
	uint64_t lag_ms;           /* first event to readable */
	uint64_t ttl_ms;
	uint64_t hold_max_ms;
	uint64_t behind_ms; /* the clock of all workers */
	uint64_t answer_ms; /* of Redis, to the core */
	uint64_t line_ms;   /* until the core hears of a line of the event stream */
	bool cache_off;     /* nothing is read or written */
	bool usage_unknown; /* nothing is reported */
	bool never_read;    /* everything is written, nothing is ever read */
	bool mute;          /* events are lost */
	bool stopped;       /* workers claim nothing */
	uint32_t deaf;      /* so many of the next answers are lost, after the effect */
	uint32_t pressure;  /* so many of the next starts are answered 429 */
	uint32_t broken;    /* so many of the next starts are answered 500 */
	uint32_t refused;   /* so many of the next starts are answered 400 */
	uint32_t exhausted; /* so many fail with 5xx, for the last time */
};

struct core_rig {
	struct core *core;
	uint64_t now_ms;
	uint32_t step;
	struct core_rig_knobs knobs;
	struct event_model model;

	struct core_rig_node nodes[CORE_RIG_NODES];
	struct core_rig_family families[CORE_RIG_FAMILIES];
	struct core_rig_start starts[CORE_RIG_STARTS];
	struct core_rig_pool pools[CORE_RIG_POOLS];
	uint32_t nodes_count, families_count, pools_count;
	uint32_t starts_count; /* in flight */
	uint32_t starts_max;   /* most in flight at once */
	uint32_t hold_limits;  /* starts past their hold_max */
	uint32_t grants;       /* commands of that kind */
	uint32_t too_many;     /* starts that broke I1 */

	uint32_t pace, in_flight;
	uint64_t parked_ms;
	bool begin;
	bool hold, was_off;
	bool elsewhere; /* families that are new are */

	struct core_rig_queue lines, answers;

	FILE *trace; /* NULL = quiet */
	void *memory;
};

/* A rig with one pool `p` of `slots`, one model like Anthropic's and one budget. */
struct core_rig *core_rig_create(const struct core_config *config, uint32_t slots);
/* The same with the small limits of core_rig_config. */
struct core_rig *core_rig_fresh(uint32_t slots);
struct core_rig *core_rig_free(struct core_rig *rig);

struct core_config core_rig_config(void); /* the defaults, with small limits */

uint32_t core_rig_pool(struct core_rig *rig, const char *name, uint32_t slots);

/* `chain` is "T/S/M": names, root first.  A name ending in `?` is not shared, in `!` is
 * marked by the user, in `-` may not be marked.  Each node adds 10,000 tokens.  Answers
 * the family. */
uint32_t core_rig_admit(struct core_rig *rig, const char *chain, uint32_t jobs);
uint32_t core_rig_admit_as(struct core_rig *rig, const char *chain, uint32_t pool,
                           enum event_list list, uint32_t jobs);

/* Whether families that come for the first time are paid by another account. */
void core_rig_elsewhere(struct core_rig *rig, bool on);

/* The node of that name, and what the core knows of its lane. */
struct core_rig_node *core_rig_node(struct core_rig *rig, const char *name);
struct lane *core_rig_lane_named(struct core_rig *rig, const char *name);

/* Lets `ms` pass: workers claim, requests begin and end, the core is stepped. */
void core_rig_run(struct core_rig *rig, uint64_t ms);

/* Until no job waits or runs; false after `ms`. */
bool core_rig_drain(struct core_rig *rig, uint64_t ms);

/* Feeds one event and executes what follows from it. */
void core_rig_feed(struct core_rig *rig, const struct event *event);

void core_rig_hold(struct core_rig *rig, bool on);

/* The same for one family: each has a route of its own. */
void core_rig_hold_route(struct core_rig *rig, const char *leaf, bool on);

/* The provider forgets all entries. */
void core_rig_evict(struct core_rig *rig);

/* The scheduler dies and a new one recovers from what Redis holds. */
void core_rig_restart(struct core_rig *rig);

/* All workers die; their leases come back. */
void core_rig_kill(struct core_rig *rig);

#endif
