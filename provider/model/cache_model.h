/* cache_model.h - how a provider's prompt cache behaves, as a book with a clock.
 *
 *   look ──► start ─────────────► respond ─────────────► finish      one request
 *   reads and writes are          its entries become     its ticket
 *   decided and booked here       readable, + lag        is void
 *
 * An entry is one prefix hash in one scope.  It is written by a request that starts
 * while it is not readable, becomes readable when that request's response begins plus
 * the visibility lag, and lives for its TTL counted from the *start* of the last
 * request that wrote or read it.  A request that finishes without having responded
 * leaves nothing behind.  What was decided at start is never revised: N cold requests
 * that start together all write.
 *
 *   markers      one entry per marked block and nowhere else; a lookup walks back from
 *                each marker over at most 20 positions, a run of tool_use or of
 *                tool_result blocks being one position.
 *   breakpoints  entries at marked blocks; a lookup visits those and the blocks
 *                flagged `look`.
 *   implicit     every block end is an entry; reads are rounded down to whole steps;
 *                nothing is charged as written.
 *
 * One block of memory; when it is full the least recently used entry is forgotten.
 * Time is microseconds, given, never backwards.  The figures come from the vendors'
 * documentation of autumn 2026 and are retold in docs/PROVIDER.md. */
#ifndef PROVIDER_MODEL_CACHE_MODEL_H
#define PROVIDER_MODEL_CACHE_MODEL_H

#include "common/base.h"
#include "common/error.h"
#include "provider/model/cache_request.h"

#define CACHE_MODEL_LOOKBACK 20 /* positions, the marker being the first */
#define CACHE_MODEL_NEVER_US UINT64_MAX

enum cache_lag {
	CACHE_LAG_FIXED,    /* always lag_us */
	CACHE_LAG_UNIFORM,  /* 0 to lag_us, drawn for each response */
	CACHE_LAG_PER_NODE, /* 0 to lag_us, the same for one prefix every time */
	CACHE_LAG_COUNT,
};

/* May change at any time; what was already decided stays. */
struct cache_knobs {
	bool off;             /* caching switched off: everything uncached */
	bool readable_at_end; /* entries appear at finish instead of at respond */
	enum cache_lag lag;
	uint64_t lag_us;
	uint32_t ttl_permille;     /* lifetimes in thousandths of the real; 0: real */
	uint64_t grace_us;         /* entries linger this long past their TTL */
	uint32_t miss_permille;    /* a request finds nothing although entries exist */
	uint32_t evict_permille;   /* the prefix a request would have read is gone */
	uint32_t unknown_permille; /* usage without cache figures */
	uint32_t shards;           /* machines with a store of their own, at least 1 */
	uint32_t shard_rpm;        /* above it a routing number overflows; 0: never */
};

struct cache_model_config {
	uint32_t entries_max;  /* prefixes remembered; more than writes_max */
	uint32_t requests_max; /* in flight at once */
	uint32_t writes_max;   /* entries being written at once, over all requests */
	uint64_t seed;
	struct cache_knobs knobs;
};

/* A decision, made by look and carried out by start.  Callers read `usage`. */
struct cache_look {
	struct cache_usage usage;
	uint32_t shard;
	uint32_t read_end;      /* blocks [0, read_end) are read */
	uint32_t prefix_tokens; /* their tokens, before rounding */
	uint32_t stored_end;    /* blocks [read_end, stored_end) are stored */
	bool missed;            /* the coin of miss_permille fell */
};

/* Names a request in flight.  A stale ticket is the caller's bug. */
struct cache_ticket {
	uint32_t index;
	uint32_t generation;
};

/* All from init or the last reset.  A request counts in `writes` if it is charged for
 * writing; in implicit mode, where nothing is charged, if it computes at least
 * minimum_tokens of cacheable prefix anew.  A write is a duplicate if the same entry
 * was already being written, or had been written and its TTL was not over. */
struct cache_stats {
	uint64_t requests;
	uint64_t writes;
	uint64_t duplicate_writes; /* of them, with at least one duplicate entry */
	uint64_t reads;            /* requests that read something */
	uint64_t node_writes;      /* the same as the first two, counted by entry */
	uint64_t node_duplicates;
	uint64_t total_tokens;
	uint64_t read_tokens;
	uint64_t written_tokens;
	uint64_t uncached_tokens;
	uint64_t aborted;   /* finished without having responded */
	uint64_t missed;    /* would-be reads lost to miss_permille */
	uint64_t evicted;   /* would-be reads lost to evict_permille */
	uint64_t forgotten; /* entries dropped for want of room */
	uint32_t in_flight;
	uint32_t in_flight_max;
	uint32_t writers_max; /* most requests at once writing one prefix unproven:
	                         started, and not yet responded */
};

/* One prefix, for tables and oracles. */
struct cache_node {
	struct id128 hash;
	uint64_t scope;
	uint32_t shard;
	uint32_t tokens;      /* of the whole prefix */
	uint32_t writers;     /* unproven now */
	uint32_t writers_max; /* unproven at once, ever */
	uint64_t writes;
	uint64_t duplicate_writes;
	uint64_t reads;
	uint64_t readable_us; /* CACHE_MODEL_NEVER_US: not readable */
	uint64_t expires_us;
};

struct cache_model;

size_t cache_model_size(const struct cache_model_config *config);

/* `memory` is aligned to 8 and as large as cache_model_size says. */
struct cache_model *cache_model_init(void *memory, size_t size,
                                     const struct cache_model_config *config);

void cache_model_set_knobs(struct cache_model *model, const struct cache_knobs *knobs);

/* Forgets all entries and counters, and begins the random numbers anew.  Tickets stay
 * valid; what they were writing is not written any more. */
void cache_model_reset(struct cache_model *model);

/* Decides what a request that starts now reads and writes; the request has passed
 * cache_request_judge.  Draws the coins of the knobs and evicts what evict_permille
 * says, but books nothing: a request refused for its rate is simply not started. */
void cache_model_look(struct cache_model *model, uint64_t now_us,
                      const struct cache_request *request, struct cache_look *ret_look);

/* Starts the request that was looked at just before, nothing in between.  ERR_FULL if
 * too much is in flight; the books are then unchanged. */
MUST_USE int cache_model_start(struct cache_model *model, uint64_t now_us,
                               const struct cache_request *request,
                               const struct cache_look *look,
                               struct cache_ticket *ret_ticket);

/* The response begins, once per ticket: what it wrote becomes readable. */
void cache_model_respond(struct cache_model *model, uint64_t now_us,
                         struct cache_ticket ticket);

/* The request is over and its ticket void. */
void cache_model_finish(struct cache_model *model, uint64_t now_us,
                        struct cache_ticket ticket);

struct cache_stats cache_model_stats(const struct cache_model *model);

/* Walks the remembered prefixes, most recently used first: start with *cursor = 0; false
 * at the end.  Between two calls the model must not change. */
bool cache_model_next(const struct cache_model *model, uint32_t *cursor,
                      struct cache_node *ret_node);

/* ERR_NOT_FOUND if this prefix was never written, or was forgotten. */
MUST_USE int cache_model_find(const struct cache_model *model, uint64_t scope,
                              uint32_t shard, struct id128 hash,
                              struct cache_node *ret_node);

/* VERIFYs the whole state; O(entries). */
void cache_model_audit(const struct cache_model *model);

#endif
