/* engine.h - one simulated provider: cache, limits, timing and faults in three calls.
 *
 *              ┌─ refused: 429, 4xx, 5xx, 529, hang: no ticket, nothing started
 *   start ─────┤
 *              └─ accepted ──► respond at first_byte_us ──► finish at done_us
 *                                       └── or finish earlier: the client has gone
 *
 * The server feeds it sockets and a monotonic clock; the simulator feeds it virtual
 * time.  The engine itself never waits: it says when things are due, and the caller
 * calls back then.  `now_us` never goes backwards.
 *
 * One block of memory, sized from the config.  Pure: no I/O, clock, malloc or floats. */
#ifndef PROVIDER_MODEL_ENGINE_H
#define PROVIDER_MODEL_ENGINE_H

#include "common/base.h"
#include "provider/model/cache_model.h"
#include "provider/model/fault_model.h"
#include "provider/model/limit_model.h"
#include "provider/model/timing_model.h"

enum {
	ENGINE_CLASSES_MAX = 16,  /* model classes with limits of their own */
	ENGINE_ACCOUNTS_MAX = 64, /* beyond it, accounts share the last one's buckets */
};

struct engine_config {
	uint64_t seed;
	struct cache_model_config cache; /* its seed is derived from the one above */
	struct timing_knobs timing;
	struct fault_knobs fault;
	struct limit_knobs limits[ENGINE_CLASSES_MAX]; /* by class */
	uint32_t retry_after_ms; /* with the faults rate_limit and overloaded; 0: none */
	int fault_status;        /* of FAULT_STATUS; 0 means 504 */
};

struct engine_request {
	struct cache_request cache;
	uint64_t account;           /* whose buckets: any number that names it */
	uint32_t class;             /* below ENGINE_CLASSES_MAX */
	uint32_t output_tokens_max; /* max_tokens: reserved in full */
	uint32_t output_tokens;     /* what the answer will have; <= max */
};

/* The books of a request in flight, needed again at respond and finish. */
struct engine_ticket {
	struct cache_ticket cache;
	struct limit_need need;
	uint64_t account;
	uint32_t class;
	bool responded;
};

struct engine_answer {
	int status;               /* 200, 400, 429, 500, 503, 529; 0: never an answer */
	enum limit_verdict limit; /* why 429; OK also when a fault said so */
	enum fault fault;
	uint64_t retry_after_us; /* 0: the header is left out */
	/* Only with an accepted request: */
	bool accepted;
	struct engine_ticket ticket;
	struct cache_usage usage;
	uint64_t first_byte_us; /* absolute */
	uint64_t done_us;       /* absolute */
};

/* Requests by what became of them. */
struct engine_stats {
	uint64_t accepted;
	uint64_t refused_limit[LIMIT_VERDICT_COUNT];
	uint64_t refused_full; /* more in flight than the engine has room for: 529 */
	uint64_t faults[FAULT_COUNT];
	uint64_t output_tokens;
};

struct engine;

size_t engine_size(const struct engine_config *config);

struct engine *engine_init(void *memory, size_t size, const struct engine_config *config);

/* Takes new knobs from a config whose sizes and seed are ignored. */
void engine_configure(struct engine *engine, uint64_t now_us,
                      const struct engine_config *config);

/* Forgets entries, counters, balances.  Requests in flight go on. */
void engine_reset(struct engine *engine, uint64_t now_us);

void engine_start(struct engine *engine, uint64_t now_us,
                  const struct engine_request *request, struct engine_answer *ret_answer);

void engine_respond(struct engine *engine, uint64_t now_us, struct engine_ticket *ticket);

void engine_finish(struct engine *engine, uint64_t now_us, struct engine_ticket *ticket,
                   uint32_t output_tokens_used);

/* For rate-limit headers. */
struct limit_level engine_level(struct engine *engine, uint64_t now_us, uint64_t account,
                                uint32_t class, enum limit_bucket bucket);

const struct engine_stats *engine_stats(const struct engine *engine);
struct cache_model *engine_cache(struct engine *engine);

/* As they are now: the script of faults counts down. */
const struct fault_knobs *engine_fault_knobs(const struct engine *engine);

void engine_audit(const struct engine *engine);

#endif
