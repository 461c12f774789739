/* ledger_view.h - the ledger for readers: pages, the API, metrics.
 *
 *   for (uint32_t i = 0; i < ledger_view_routes(ledger); i++) {
 *           struct ledger_view_route route;
 *
 *           ledger_view_route(ledger, i, now_ms, &route);
 *           ledger_view_hours(ledger, i, now_ms - HOUR_MS, now_ms, &sums);
 *   }
 *
 * Rows are named by number and stay where they are until the ledger is told something.
 * LEDGER_VIEW_ALL is all routes together.  The route "other" stands for all that are
 * above the limit.
 *
 * Hours are exact: a warm-up that nobody came to read moves from `first` to
 * `prewarm_wasted` when its time is over.  What is called `ever` only grows, as counters
 * of a monitoring system must, and stays at the cause of the first judgement.
 *
 * Times are milliseconds of the Redis clock, money is nanodollars.  Reading changes
 * nothing and allocates nothing; spans live until the ledger is told something.
 *
 * The ledger of a ruler: ruler_ledger(ruler), in scheduler/ruler_ledger.h. */
#ifndef SCHEDULER_LEDGER_LEDGER_VIEW_H
#define SCHEDULER_LEDGER_LEDGER_VIEW_H

#include "scheduler/ledger/ledger.h"

#define LEDGER_VIEW_ALL     UINT32_MAX
#define LEDGER_VIEW_HOUR_MS 3600000

struct ledger_view_route {
	struct span name;
	uint64_t first_ms, last_ms;   /* of its calls */
	uint32_t versions;            /* remembered */
	uint32_t versions_seen;       /* ever */
	uint32_t variants;            /* alive side by side for 10 minutes; 0: none */
	uint64_t split_cost;          /* nanodollars: what the variants write twice */
	struct ledger_sums week;      /* its hours summed up */
	struct ledger_sums this_hour; /* since the full hour */
	struct ledger_sums ever;      /* only grows, as counters must */
};

/* One prefix of a route: a family. */
struct ledger_view_version {
	struct id128 family;
	struct span place;                        /* of its last use */
	uint32_t number;                          /* 1 is the oldest that was ever seen */
	uint64_t first_ms, last_ms;               /* sent */
	uint32_t tokens;                          /* of its prefix; 0: not known */
	uint64_t answers, hits, prefixed, writes; /* calls */
	uint64_t read, written;                   /* tokens */
	uint32_t share_permille; /* of the answers of all versions alive now; else 0 */
	bool alive;              /* used in the last 10 minutes */
	bool variant;            /* beside another one for 10 minutes */
	bool twin;               /* the text of an older one, at another place */
	bool split;              /* reads what another version has written */
};

/* 10 starts of one node within 10 s, after a minute without one or in a new version.  Its
 * figures are those of the calls sent in its first minute. */
struct ledger_view_burst {
	struct span route;
	struct id128 family;
	uint64_t start_ms;
	uint64_t starts, hits;     /* calls, and those that read the prefix */
	uint64_t writes;           /* calls that wrote or paid for the prefix */
	uint64_t extra_writes;     /* of them, those that holding should have avoided */
	uint64_t readable_ms;      /* from the start; EVENT_UNKNOWN: not yet */
	uint64_t held_ms;          /* job by job, while the prefix was not readable */
	uint64_t refusals;         /* 429 and 529 of its place in that minute */
	uint64_t cost, naive_cost; /* of input; naive: had all started on arrival */
	bool open;                 /* its minute is not over, or calls still run */
	bool spike;                /* extra_writes > 0 */
};

/* What the book knows of a prefix at a place: since when it is there, and until when. */
struct ledger_view_entry {
	uint64_t written_ms; /* when its writer was sent; 0: it was there before */
	uint64_t used_ms;    /* the last start that read or wrote it */
	uint64_t life_ms;    /* from there on */
};

/* How long entries really live: after a rest of so long, how many were still there?  A
 * rest is the time between two starts that needed the entry. */
#define LEDGER_VIEW_RESTS 14

struct ledger_view_rest {
	uint64_t from_ms, to_ms; /* the last one has no end: 0 */
	uint64_t kept, gone;     /* starts that read it, and that did not find it */
};

/* What was sent ahead of jobs, since the ledger is in memory. */
struct ledger_view_ahead {
	uint64_t calls, cost; /* warm-ups, and what they cost */
	uint64_t used;        /* that a job has read */
	uint64_t wasted;      /* whose time was over before any had */
};

/* One upstream, or one replica or shard of it ("vllm/3"). */
struct ledger_view_place {
	struct span name;
	uint64_t last_ms;
	uint64_t ttl_ms; /* as was asked for last; 0: not known */
	struct ledger_view_rest rests[LEDGER_VIEW_RESTS];
	struct ledger_sums ever; /* only grows */
};

struct ledger_view_health {
	uint64_t since_ms; /* the first call it knows of; 0: none */
	bool sums_up;    /* nothing was lost, and all causes sum up to what was written */
	uint64_t gaps;   /* how often lines of the event stream were lost */
	uint64_t gap_ms; /* the last time; 0: never */
	uint64_t hidden; /* calls whose route found no row of its own */
	struct ledger_sums total; /* of all routes, ever */
};

/* What causes that a better set-up avoids have cost more than reading. */
uint64_t ledger_view_avoidable(const struct ledger_sums *sums);

/* How many routes there are. */
uint32_t ledger_view_routes(const struct ledger *ledger);

/* `route`: 0 to ledger_view_routes() - 1. */
void ledger_view_route(const struct ledger *ledger, uint32_t route, uint64_t now_ms,
                       struct ledger_view_route *ret_route);

/* The number of a route by its name; LEDGER_VIEW_ALL if there is none. */
uint32_t ledger_view_find(const struct ledger *ledger, struct span name);

/* All full and begun hours that touch [from_ms, until_ms). */
void ledger_view_hours(const struct ledger *ledger, uint32_t route, uint64_t from_ms,
                       uint64_t until_ms, struct ledger_sums *ret_sums);

/* The newest two prefixes of one job each that are nearly the same bytes, newer first:
 * what drifts.  False if there are none. */
bool ledger_view_lookalikes(const struct ledger *ledger, uint32_t route,
                            struct id128 ret_families[2]);

/* Newest first; false behind the last. */
bool ledger_view_version(const struct ledger *ledger, uint32_t route, uint32_t i,
                         uint64_t now_ms, struct ledger_view_version *ret_version);

/* Newest first; `route` LEDGER_VIEW_ALL: of all. */
bool ledger_view_burst(const struct ledger *ledger, uint32_t route, uint32_t i,
                       struct ledger_view_burst *ret_burst);

/* False: the book has nothing of it. */
bool ledger_view_entry(const struct ledger *ledger, struct id128 node, struct span place,
                       uint32_t domain, struct ledger_view_entry *ret_entry);

bool ledger_view_place(const struct ledger *ledger, uint32_t i,
                       struct ledger_view_place *ret_place);

struct ledger_view_ahead ledger_view_ahead(const struct ledger *ledger);

void ledger_view_health(const struct ledger *ledger,
                        struct ledger_view_health *ret_health);

#endif
