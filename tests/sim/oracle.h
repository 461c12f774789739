/* oracle.h - the judge: its own books, and what must never be found in them.
 *
 *   every command inside Redis ──► leases, lanes, budgets, jobs, results
 *   every call of a function   ──► sessions, connections, grants, what was asked
 *   every request at a provider ─► who writes, who reads, what is readable
 *                                          │
 *                                          ▼
 *                                   I1 to I8 I10 I12, and no job is lost
 *
 * It believes nobody's words: not the scheduler's idea of a lane, not the worker's idea
 * of its slots.  What it takes from Redis are the records that bind a claim (gate,
 * window, until), as they stood before that claim; whether a record is *right* is judged
 * by what happens at the provider.
 *
 * Excuses.  Providers may behave so that more than one request has to write: entries
 * that vanish, reads that miss, usage that is not told, refusals, a prefix that can be
 * read later than a longer one that was written with it.  And if the clock of Redis was
 * set, nobody knows when an entry ends.  The oracle sees them
 * happen in the provider's model, node by node, and from then on is silent about that
 * node's cache (I1, I2), never about anything else.
 *
 * At work (I4) is a family with a lease that its turn has given it: jobs of the now list
 * have no turn.
 *
 * After a lost tail of Redis the books are read again from what is left. */
#ifndef TESTS_SIM_ORACLE_H
#define TESTS_SIM_ORACLE_H

#include "common/base.h"
#include "common/codec/protocol_record.h"
#include "common/table.h"
#include "tests/sim/server.h"
#include "tests/sim/site.h"
#include "tests/sim/trace.h"
#include "tests/sim/weather.h"

#define ORACLE_NONE UINT32_MAX

enum {
	ORACLE_NAME_SIZE = 72,
	ORACLE_ANCESTORS_MAX = 4,
	ORACLE_BUCKETS = 3,
};

enum oracle_job_state {
	ORACLE_JOB_ALIVE,
	ORACLE_JOB_ENDED, /* its one result was handed over */
	ORACLE_JOB_LOST,  /* with Redis's tail */
};

struct oracle_job {
	char id[ORACLE_NAME_SIZE];
	enum oracle_job_state state;
	uint64_t added_us, ended_us; /* world time */
	uint32_t lease;              /* ORACLE_NONE: nobody has it */
	uint32_t results;
	bool dead;       /* in the dead letters: its payload stays */
	bool given_back; /* lost its lease in this call */
	uint32_t attempts;
};

struct oracle_lease {
	bool used;
	char nonce[17];
	uint32_t slot;
	uint64_t q;
	uint32_t job; /* ORACLE_NONE: a ticket */
	uint32_t lane, family, budget;
	enum protocol_role role;
	char band;
	uint64_t g;
	uint64_t input, output;
	uint64_t at_ms; /* Redis time of the start */
	uint64_t call;  /* number of the call that started it */
	bool unheld;    /* holding was off */
	bool begun;     /* its first event was told: it gives no credit back */
};

struct oracle_lane {
	char id[ORACLE_NAME_SIZE];
	struct protocol_lane before, now; /* numbers only: before this call, and now */
	bool exists;
	uint32_t pool, budget, family;
	uint32_t in_use; /* own count */
	uint64_t credits_g;
	int64_t credits;    /* own count of what may still be taken under that g */
	bool changed;       /* in this call */
	uint64_t ranked_us; /* when its rank changed last */
};

struct oracle_family {
	char id[ORACLE_NAME_SIZE];
	uint32_t pool, budget, lane;
	uint32_t ancestors[ORACLE_ANCESTORS_MAX];
	uint32_t ancestors_count;
	uint32_t flags;
	uint32_t leases;    /* own count */
	uint32_t turns;     /* of them, those that come in order: not of the now list */
	uint32_t turns_was; /* before this call */
	uint32_t bits;      /* of its lists that are not empty */
	bool touched;       /* in this call */
	bool is_new;        /* was drained, or never started, before its work came */
	uint64_t waits_since_ms; /* Redis time; 0: it does not wait for a start */
	uint64_t turn_until_ms;  /* it was overdue, and goes before all others */
	uint64_t drained_us;     /* when it had neither leases nor work; 0: it has some */
	uint64_t paused_us;      /* since when it is paused; 0: it is not */
};

struct oracle_bucket {
	uint64_t limit;
	int64_t level; /* tokens x 60,000, so that a ms refills exactly `limit` */
	uint64_t at_ms;
};

struct oracle_budget {
	char name[ORACLE_NAME_SIZE];
	uint32_t in_flight; /* own count */
	uint64_t pace_before, pace_now;
	uint64_t parked_until_ms; /* own: by the deferrals that were accepted */
	uint64_t told_until_ms;   /* as Redis has it, by whomever it was told */
	uint64_t unparked_ms;     /* when somebody last ended that */
	uint64_t broke_ms;        /* when the provider last began to ask for money */
	uint32_t broke_rounds;    /* how often it has, in a row */
	struct oracle_bucket buckets[ORACLE_BUCKETS];
};

struct oracle_session {
	char nonce[17];
	uint64_t c;          /* of the last hello or attach that ran */
	uint64_t renewed_ms; /* Redis time */
	bool gone;           /* dying, or forgotten */
	bool quiet;          /* told to claim nothing */
	char shunned[64];    /* upstreams of which it gets nothing, with commas */
	uint64_t q_last;     /* of the starts of earlier calls */
	uint64_t q_most;
	uint64_t q_call; /* the call that q_most is of */
};

/* One prefix at one provider. */
struct oracle_node {
	uint64_t scope;
	struct id128 hash;
	uint64_t readable_since_us; /* 0: never seen readable */
	bool was_written;           /* somebody's answer to a write has begun */
	uint32_t misses;            /* readers that found nothing */
	uint32_t refusals;          /* writers refused by a 400 */
	const char *excuse;         /* why nothing is expected of it; NULL: no reason */
};

/* A request that was accepted and has not ended. */
struct oracle_request {
	struct site_call *call;
	uint32_t nodes[SITE_BLOCKS_MAX]; /* those it may write */
	uint32_t nodes_count;
	bool responded;
};

struct oracle {
	const struct agenda *agenda;
	struct trace *trace;
	struct server *server;
	struct site *site;
	const struct weather *weather;
	bool failed;
	char failure[512];

	struct table ids; /* of jobs, lanes, families: hash of kind and name -> index */
	void *ids_memory;
	struct oracle_job *jobs;
	uint32_t jobs_count, jobs_room;
	struct oracle_lease *leases;
	uint32_t leases_count, leases_room;
	struct oracle_lane *lanes;
	uint32_t lanes_count, lanes_room;
	struct oracle_family *families;
	uint32_t families_count, families_room;
	struct oracle_session *sessions;
	uint32_t sessions_count, sessions_room;
	struct oracle_node *nodes;
	uint32_t nodes_count, nodes_room;
	struct oracle_request *requests;
	uint32_t requests_count, requests_room;
	struct oracle_budget budgets[8];
	uint32_t budgets_count;
	char pools[4][ORACLE_NAME_SIZE];
	uint32_t pools_count;

	/* the call that runs */
	uint64_t calls;
	const struct span *argv;
	size_t argc;
	char function[32]; /* without "warmq_"; empty: a plain command */
	uint64_t writes;   /* commands of this call that may change something */
	uint32_t started[256];
	uint32_t started_count;
	uint32_t settled[64]; /* jobs whose lease this settle names rightly */
	uint32_t settled_count;
	uint32_t ended[256]; /* jobs that got their result */
	uint32_t ended_count;
	uint32_t freed_count;
	bool hold_off;
	bool provider_changed; /* other knobs than at the beginning */
	bool rules;            /* the scheduler that calls is the one that rules */

	/* Redis's own troubles */
	bool rolled_back, clock_stepped;
	uint64_t ticked_ms; /* last reap */
	uint64_t no_reap_until_ms;
	uint64_t lease_ms;

	/* for statistics */
	uint64_t starts, terminal, writers_max, corrections;
};

void oracle_init(struct oracle *oracle, const struct agenda *agenda, struct trace *trace,
                 struct server *server, struct site *site, const struct weather *weather);
void oracle_fini(struct oracle *oracle);

/* Notes the first broken rule; later ones are only traced. */
void oracle_fail(struct oracle *oracle, const char *rule, const char *format, ...)
	PRINTF(3, 4);

/* A worker has ended as it was told to: where nothing hinders it, its session is over,
 * and it has left no job behind. */
void oracle_session_ended(struct oracle *oracle, uint64_t nonce);

/* Redis lost what happened after `kept_us`; its clock was set. */
void oracle_roll_back(struct oracle *oracle, uint64_t kept_us);
void oracle_clock_stepped(struct oracle *oracle);

/* Every job is in exactly one place: now and then, and at the end. */
void oracle_census(struct oracle *oracle);

/* Everything has ended, and nothing was left behind. */
bool oracle_all_ended(const struct oracle *oracle);
void oracle_check_end(struct oracle *oracle);

#endif
