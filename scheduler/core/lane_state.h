/* lane_state.h - what the core remembers of a lane, and the one door to change it.
 *
 *                  families under it ──┐
 *   lane ── gate (lane.h) ── evidence  │   the family whose leaf it is, and all families
 *        └─ record as granted          └── whose chain leads through it
 *
 * lane_move() is the only function that changes a gate: it leaves the old state, enters
 * the new one, settles the families below and asks for a grant.
 *
 * Lanes live in core->lanes and are named by index; they go when no family is left. */
#ifndef SCHEDULER_CORE_LANE_STATE_H
#define SCHEDULER_CORE_LANE_STATE_H

#include "common/base.h"
#include "scheduler/core/event.h"
#include "scheduler/core/lane.h"
#include "scheduler/core/list.h"

#define LANE_MISSES 3 /* since the last hit: they close a lane */
#define LANE_NONE   LIST_NONE

struct core;

/* The record as Redis should have it. */
struct lane_record {
	enum lane_gate gate; /* LANE_GATE_COUNT: nobody knows */
	enum lane_reason reason;
	uint32_t window, rank, p, marks;
	uint64_t until_ms, life_ms;
};

struct lane {
	struct lane_id id;
	uint32_t model;    /* index */
	uint32_t parent;   /* index of the lane above, or LANE_NONE */
	uint32_t family;   /* index of the family whose leaf it is, or LIST_NONE */
	struct list below; /* families whose chain leads through it, its own too; links
	                      are core->below, item = family * LINEAGE_MAX + place */
	uint32_t gating;   /* how many of them it gates; 0 = bypassed */

	enum lane_gate gate;
	enum lane_reason reason;
	uint64_t until_ms; /* open, checking: warm until; bypass, leaky: tried again */
	uint64_t ttl_ms;   /* of its entries; 0 = no end */
	uint32_t p;        /* tokens of the node; 0 = unknown */
	uint32_t tokens;   /* estimate */

	uint64_t company_ms; /* bypass: first granted then, since a second job may come
	                        and share the node; 0 = at once */

	uint32_t unproven;   /* starts credited to write or read it, not concluded */
	uint64_t first_ms;   /* checking: the writer's first event */
	uint64_t ready_ms;   /* closed: no election before; checking: no reader before */
	uint32_t misses;     /* checking: in a row */
	uint32_t reads[2];   /* what the first two of them read */
	uint32_t failures;   /* leaders that failed in a row */
	uint32_t refusals;   /* leaders that were refused in a row */
	bool retrying;       /* leaky before: one miss and it is leaky again */
	bool careful;        /* closed for misses: 1, 2, then 4 readers have to hit */
	bool trusting;       /* checking: opens at ready_ms, without a reader */
	uint32_t stage;      /* checking: readers allowed at once */
	uint32_t hits;       /* checking: of this stage */
	uint64_t closed_ms;  /* when it was last closed for misses; 0 = never */
	uint64_t suspect_ms; /* hits sent before are older than the misses that closed it
	                      */
	uint64_t hit_ms;     /* latest send time of a hit */
	uint64_t miss_ms[LANE_MISSES]; /* open: misses sent after that; 0 = none */

	uint64_t g; /* as Redis has it, as far as we know */
	struct lane_record granted;
	bool flight; /* a GRANT is under way, to flight_g */
	bool unsure; /* its outcome is unknown: say it again */
	bool bump;   /* the next GRANT takes all credits back */
	uint64_t flight_g;
};

/* Index of the lane, or LANE_NONE. */
uint32_t lane_find(const struct core *core, struct lane_id id);

/* Finds or adds.  LANE_NONE if there is no room. */
uint32_t lane_obtain(struct core *core, struct lane_id id, uint32_t model,
                     uint32_t parent);

/* Forgets the lane if no family is left below it. */
void lane_release(struct core *core, uint32_t index);

/* The one door.  `gate` differs from the present one and may follow it. */
void lane_move(struct core *core, uint32_t index, enum lane_gate gate,
               enum lane_reason reason);

/* True iff nothing of this lane stops a plain start. */
bool lane_starts(const struct core *core, const struct lane *lane);

/* True iff one more unproven start may be credited; how many at most. */
uint32_t lane_admits(const struct core *core, const struct lane *lane);

/* Raises `until` by a start at `sent_ms` that read or wrote the entry. */
void lane_refresh(struct core *core, uint32_t index, uint64_t sent_ms);

/* How long its entry may be used after such a start. */
uint64_t lane_life(const struct core *core, const struct lane *lane);

/* New, and nobody shares it yet: its first job waits a little for company.  `tokens` are
 * its own, without what an ancestor holds. */
void lane_await_company(struct core *core, uint32_t index, uint32_t tokens);

/* True iff its first grant has to wait for that. */
bool lane_awaits_company(const struct core *core, const struct lane *lane);

/* Something that its record shows has changed: compare and grant. */
void lane_touch(struct core *core, uint32_t index);

/* Sets the timer by the present state. */
void lane_arm(struct core *core, uint32_t index);

/* Its time has come. */
void lane_expire(struct core *core, uint32_t index);

/* When a start at `sent_ms` stops keeping its entry warm. */
uint64_t lane_warm_until(const struct core *core, const struct lane *lane,
                         uint64_t sent_ms);

/* The lane began or ceased to gate a family, or its reason not to has changed. */
void lane_regate(struct core *core, uint32_t index, enum lane_reason reason);

#endif
