/* ruler_known.h - what a ruler remembers of families, nodes, pools, budgets and models.
 *
 *   node     is it shared?  is its segment stored in Redis?      grows with families,
 *   family   its lineage, estimates, what its record says        never with jobs
 *   names    ids of the core (hashes) back to the texts of Redis
 *
 * All of it can be lost: families and nodes are read again from Redis, names come from
 * records and configuration. */
#ifndef SCHEDULER_RULER_KNOWN_H
#define SCHEDULER_RULER_KNOWN_H

#include "common/codec/protocol.h"
#include "common/text.h"
#include "scheduler/ledger/ledger_sketch.h"
#include "scheduler/outside.h"
#include "scheduler/ruler.h"
#include "scheduler/ruler_job.h"
#include "scheduler/ruler_shelf.h"
#include "scheduler/tally.h"

#define RULER_ROUTE_SIZE 129
#define RULER_MODEL_SIZE 129 /* of a model's name; the rest of it is cut off */
#define RULER_PRESSURES  5

enum {
	RULER_NODE_SHARED = 1,
	RULER_NODE_STORED = 2, /* px:<id> exists, as far as we know */
	RULER_NODE_PENDING =
		4, /* it goes out with the admit that is being built or sent */
};

struct ruler_node {
	uint32_t flags;
	uint32_t first_family; /* place of the family that was seen first */
	uint64_t seen_ms;      /* last sighting, 0 none */
	struct id128 twin; /* the same prefix wherever it is sent; none: not seen yet */
	struct ledger_sketch sketch; /* of its segment; likewise */
	struct tally_hold hold;
};

struct ruler_usage_sum {
	uint64_t jobs, hits, known; /* done; that read; whose usage is known */
	uint64_t read, written, uncached, output;
};

struct ruler_family {
	struct id128 id;
	struct lineage lineage;       /* root first; flags as of the last admission */
	uint16_t pool, budget, model; /* places in the names */
	bool split, opaque, tail_marked, streams, paused;
	bool stored;            /* its record exists, as far as we know */
	bool names_model;       /* else its record is older than this field */
	uint32_t gates;         /* ancestors that the record lists, as bits */
	uint32_t input, output; /* estimates: means of the tails, of the answers */
	uint32_t ungated; /* and of the prefix, what each job pays: lineage_ungated() */
	uint32_t output_most; /* what no answer of a job without an own one exceeds */
	uint32_t own_most, own_in_a_row;      /* of the latest that have one */
	uint32_t stored_input, stored_output; /* ruler_family_input(), `output_most` */
	bool input_is_whole; /* read back: `input` has what was ungated then in it */
	uint32_t samples;
	uint64_t hold_max_ms, stored_hold_max_ms; /* 0: no held job yet */
	uint64_t ttl_ms;                          /* of its markers; 0: the model's */
	bool stored_shared;
	bool markable, stored_markable; /* its leaf may gate, once it is shared */
	bool marked, stored_marked;     /* jobs of it have marked its end themselves */
	uint32_t batch, batch_slot;     /* serial of the admit that names it, and where */
	uint64_t seen_ms;               /* last admission */
	uint64_t told; /* serial of the last batch of which the core was told */
	struct ruler_usage_sum sum;
	char route[RULER_ROUTE_SIZE];
	char model_name[RULER_MODEL_SIZE]; /* as its first job said it */
};

struct ruler_pool_name {
	struct id128 id;
	char name[TEXT_NAME_MAX + 1];
	uint64_t max_wait_ms;
	uint32_t slots, told; /* of live sessions; what the core was told */
};

struct ruler_budget_name {
	struct id128 id;
	char name[PROTOCOL_BUDGET_SIZE + 1];
	size_t upstream;
	char class_name[TEXT_NAME_MAX + 1];
	struct ruler_usage_sum sum;
	struct outside outside;
	uint64_t pressures[RULER_PRESSURES]; /* by event_pressure_kind */
	uint32_t parked_by; /* the kind, and 1, of when it was parked last; 0 not known */
};

struct ruler_model_name {
	struct id128 id;
	size_t upstream, model;
};

struct ruler_known {
	const struct ruler_config *config;
	struct ruler_shelf node_shelf, family_shelf;
	struct ruler_node *nodes;
	struct ruler_family *families;
	bool nodes_complete; /* a node that is not here is not in Redis either */
	struct ruler_pool_name *pools;
	struct ruler_budget_name *budgets;
	struct ruler_model_name *models;
	uint32_t pools_count, budgets_count, models_count;
};

MUST_USE int ruler_known_open(struct ruler_known *known,
                              const struct ruler_config *config);
void ruler_known_close(struct ruler_known *known);

/* Forgets families and nodes; names and their sums stay. */
void ruler_known_clear(struct ruler_known *known);

/* The place of a node or a family, made if need be (the oldest goes then). */
uint32_t ruler_known_node(struct ruler_known *known, struct id128 id);
uint32_t ruler_known_family(struct ruler_known *known, struct id128 id, bool *ret_fresh);

/* A job with this node was seen: true if the node became shared just now. */
bool ruler_known_sight(struct ruler_known *known, uint32_t node, uint32_t family,
                       uint64_t now_ms, uint64_t ttl_ms);

/* Equal for the same prefix at two upstreams; the node's own id while that is not known.
 */
struct id128 ruler_known_twin(const struct ruler_known *known, struct id128 node);

struct ledger_sketch ruler_known_sketch(const struct ruler_known *known,
                                        struct id128 node);

/* Places of names, made if need be.  *ret_fresh: the core does not know it yet. */
uint32_t ruler_known_pool(struct ruler_known *known, struct span name, bool *ret_fresh);
uint32_t ruler_known_budget(struct ruler_known *known, size_t upstream,
                            struct span class_name, bool *ret_fresh);
uint32_t ruler_known_budget_named(struct ruler_known *known, struct span name,
                                  bool *ret_fresh);

/* What a budget's name says: its upstream, SIZE_MAX if that has left the configuration,
 * and its class. */
size_t ruler_known_budget_parse(const struct ruler_known *known, struct span name,
                                struct span *ret_class);

uint32_t ruler_known_model(struct ruler_known *known, size_t upstream, size_t model,
                           bool *ret_fresh);

/* The place of a name by the core's id, or UINT32_MAX. */
uint32_t ruler_known_pool_find(const struct ruler_known *known, struct id128 id);
uint32_t ruler_known_budget_find(const struct ruler_known *known, struct id128 id);

/* The first model of a class, for families of which only the budget is known: SIZE_MAX if
 * the configuration has none. */
size_t ruler_known_model_of(const struct ruler_known *known, struct span class_name);

/* How long an entry lives: the sightings of a node count so long. */
uint64_t ruler_known_ttl_ms(const struct ruler_known *known, size_t upstream);

/* What the core is told of them. */
struct event ruler_known_pool_event(const struct ruler_known *known, uint32_t pool);
struct event ruler_known_budget_event(const struct ruler_known *known, uint32_t budget);
struct event ruler_known_model_event(const struct ruler_known *known, uint32_t model);

/* Adds the usage of one job that is done. */
void ruler_known_add(struct ruler_usage_sum *sum, const struct protocol_usage *usage);
void ruler_known_merge(struct ruler_usage_sum *to, const struct ruler_usage_sum *from);

#endif
