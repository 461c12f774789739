/* model.h - what is known and what was learned of one model at one upstream.
 *
 *   leader's first event ──── lag ────► readable
 *            │                             ▲
 *            ├── a reader sent here misses │
 *            └─────────── a reader sent here hits: the lag is at most so long
 *
 * The learned lag is an upper bound: the shortest time after which a reader was seen to
 * hit, but never below one at which a reader missed.  So from the second burst on the
 * first reader waits exactly as long as is needed, and nothing is written twice.
 *
 * Trust: after `trust_proofs` lanes in a row whose first reader hit, nobody is asked to
 * prove any more (the lag is still waited for), until somebody misses. */
#ifndef SCHEDULER_CORE_MODEL_H
#define SCHEDULER_CORE_MODEL_H

#include "common/base.h"
#include "scheduler/core/event.h"

#define MODEL_SAMPLES 16

struct core;

struct model {
	struct event_model traits;
	uint64_t lag_ms;        /* EVENT_UNKNOWN until learned */
	uint64_t lag_missed_ms; /* the longest time after which a reader missed; 0 = none
	                         */
	uint32_t proofs;        /* in a row */
	bool call_refused;      /* the upstream answered 400 to our warm-up body */
	uint32_t samples_count; /* ever */
	uint64_t samples_ms[MODEL_SAMPLES]; /* first events of cold leaders */
	uint64_t send_delay_ms;             /* claim to send: the longest lately */
};

/* The index of a model, or LIST_NONE. */
uint32_t model_find(const struct core *core, struct id128 id);

/* Adds a model or changes its traits; what was learned stays. */
void model_configure(struct core *core, const struct event_model *traits);

/* How long after a leader's first event the first reader may be sent, and the next one
 * after a miss. */
uint64_t model_check_after(const struct model *model);
uint64_t model_recheck_after(const struct core *core, const struct model *model);

/* A reader that was sent `offset_ms` after the leader's first event has hit (after
 * `misses` others), or missed. */
void model_take_hit(struct core *core, struct model *model, uint64_t offset_ms,
                    uint32_t misses);
void model_take_miss(struct core *core, struct model *model, uint64_t offset_ms);

/* Somebody missed on a lane that was held to be warm. */
void model_distrust(struct core *core, struct model *model);

bool model_is_trusted(const struct core *core, const struct model *model);

/* A cold leader's first event came `first_ms` after it was sent. */
void model_take_leader(struct model *model, uint64_t first_ms);
void model_take_send_delay(struct model *model, uint64_t delay_ms);

/* How long to wait for a leader's first event. */
uint64_t model_patience(const struct core *core, const struct model *model,
                        uint64_t hold_max_ms);

/* How long an entry may be used after a start that read or wrote it. */
uint64_t model_life(const struct core *core, const struct model *model, uint64_t ttl_ms);

#endif
