/* tally.h - what has happened since this process began, in numbers for Prometheus.
 *
 *   lines of the event stream ──► tally_job, tally_count ──► metrics.c ──► /metrics
 *
 * Nothing is asked of Redis for it: workers say in the usage of each job how long it
 * waited and when it was sent; how long it was held follows from when its prefix was
 * being written (tally_hold).
 *
 * The number of series is bounded whatever the jobs say.  Histograms are kept by pool and
 * upstream.  Routes are users' text: TALLY_ROUTES of them have a name here, the others
 * are one, "other".  A route that is busier than the least busy one of those for long
 * enough takes its place and begins at 0; for Prometheus one series ends and another
 * begins, and no sum of rates is wrong.
 *
 * Pure: no clock, no I/O, one block of memory. */
#ifndef SCHEDULER_TALLY_H
#define SCHEDULER_TALLY_H

#include "common/base.h"
#include "common/codec/protocol.h"
#include "common/histogram.h"

#define TALLY_GROUPS     64 /* pairs of pool and upstream; further ones share the last */
#define TALLY_ROUTES     20
#define TALLY_OTHER      TALLY_ROUTES
#define TALLY_CANDIDATES 64
#define TALLY_ROWS       512 /* of tokens; further ones are not told apart by place */
#define TALLY_ROUTE_SIZE 129
#define TALLY_SWAP_MS    60000  /* at most one route changes in that time */
#define TALLY_FADE_MS    600000 /* half of what counts as busy is forgotten */
#define TALLY_NONE       UINT32_MAX

enum tally_time {
	TALLY_WAIT,  /* from when a job was due until its request left */
	TALLY_HELD,  /* of that, while its prefix was being written or proved */
	TALLY_FIRST, /* from there to the first event */
	TALLY_RUN,   /* from there to the end */
	TALLY_TIME_COUNT,
};

struct tally_group {
	uint32_t pool, upstream; /* places in the names; TALLY_NONE: unknown */
	struct histogram times[TALLY_TIME_COUNT];
};

struct tally_tokens { /* of one route at one place */
	uint32_t upstream, domain, route;
	uint64_t read, written, uncached, output;
};

struct tally_route {
	char name[TALLY_ROUTE_SIZE];
	uint64_t score;
	uint64_t done, hits, known; /* jobs; those that read; whose usage is known */
};

struct tally_candidate {
	uint64_t hash, score;
};

enum tally_event {     /* words of the event stream that are counted by kind */
	TALLY_STARTS,  /* by role */
	TALLY_DEAD,    /* by reason */
	TALLY_ENDED,   /* by reason */
	TALLY_WARMUPS, /* by outcome */
	TALLY_SPENT,   /* attempts without an answer, by why */
	TALLY_EVENT_COUNT,
};

#define TALLY_WORDS 20 /* of one event; the last one stands for all unknown ones */

struct tally {
	struct tally_group groups[TALLY_GROUPS];
	struct tally_tokens rows[TALLY_ROWS];
	struct tally_route routes[TALLY_ROUTES + 1];
	struct tally_candidate candidates[TALLY_CANDIDATES];
	uint32_t groups_count, rows_count, routes_count;
	uint64_t swapped_ms, faded_ms;
	uint64_t counts[TALLY_EVENT_COUNT][TALLY_WORDS];
};

/* The words of an event, in the order of its counts. */
uint32_t tally_words(enum tally_event event, const char *const **ret_words);
void tally_count(struct tally *tally, enum tally_event event, struct span word);

/* One call to a provider that has ended. */
struct tally_call {
	uint32_t pool, upstream, domain;
	struct span route;
	uint64_t at_ms;   /* when the scheduler was told */
	uint64_t held_ms; /* 0: it was not held */
	const struct protocol_usage *usage;
	bool job; /* it ended a job; else a warm-up */
};

void tally_call(struct tally *tally, uint64_t now_ms, const struct tally_call *call);

/* Where a route is counted; takes note that it is in use. */
uint32_t tally_route(struct tally *tally, uint64_t now_ms, struct span name);

/* While a prefix is being written or proved: since when, until when (0: still). */
struct tally_hold {
	uint64_t from_ms, to_ms;
};

void tally_hold_begin(struct tally_hold *hold, uint64_t now_ms);
void tally_hold_end(struct tally_hold *hold, uint64_t now_ms);

/* How much of the time between the two it was held. */
uint64_t tally_hold_within(const struct tally_hold *hold, uint64_t from_ms,
                           uint64_t to_ms);

#endif
