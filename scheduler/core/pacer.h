/* pacer.h - how many requests an account takes at once: one pacer for each budget.
 *
 *   starts    32 ──► 64 ──► 128 ──► ...     more work than pace, and a first byte from a
 *             │                             request sent since the last step, while half
 *             │                             of the pace was used
 *   pressure  └──► 16 ──► 8                 429 or 529, at most once per round trip
 *   away      └──► 1, and 2 s of rest       not reached by one, and nobody has heard of
 *                                           it for 10 s: one request at a time asks,
 *                                           and the slots are for other accounts
 *
 * The step is thus the provider's own round trip.  The byte may come before the work:
 * when all of the pace is taken by long jobs, nothing can start that would be asked.
 * Each BUDGET command asks one start to report its first byte (`begin` of the budget's
 * hash); it is asked again when nothing comes, and in the end, with work and without
 * pressure, the pace doubles by patience.  What was reached lately is remembered for ten
 * minutes, so a switch of family does not ramp again.
 *
 * Buckets of requests and tokens are kept in Redis and checked by `claim`; the pacer
 * only tells their limits: configured, or learned from answers.  A learned one that
 * PACER_SILENT_MAX answers in a row do not tell any more is forgotten. */
#ifndef SCHEDULER_CORE_PACER_H
#define SCHEDULER_CORE_PACER_H

#include "common/base.h"
#include "scheduler/core/event.h"

#define PACER_PACE_MAX   99999
#define PACER_SILENT_MAX 32 /* some answers of a gateway come without its headers */

struct core;

struct pacer {
	struct id128 id;
	uint64_t configured[EVENT_BUCKET_COUNT]; /* 0 = not */
	uint64_t learned[EVENT_BUCKET_COUNT];
	uint8_t silent[EVENT_BUCKET_COUNT]; /* answers in a row without what was learned
	                                     */
	uint32_t pace_max;

	uint32_t pace;
	uint32_t load;      /* weight of its families: jobs that could run */
	uint64_t step_ms;   /* last change of pace */
	uint64_t near_ms;   /* when there came to be work for half of it */
	uint64_t byte_ms;   /* latest send time of a request whose first byte came */
	uint64_t heard_ms;  /* when a first byte was last told of */
	uint64_t asked_ms;  /* when a start was last asked to report its first byte */
	uint64_t halved_ms; /* last halving; 0 = never */
	uint64_t trip_ms;   /* round trip to a first byte, mean */
	uint32_t peak, peak_before; /* in flight, this and the previous memory */
	uint64_t peak_ms;           /* since when `peak` */
	uint64_t parked_ms;         /* parked until */
	uint64_t bound_ms; /* when it last held back ready jobs beside free slots */
	bool bound_full;   /* then all that its pace allows was in flight */
	uint32_t spends;   /* spend caps in a row */
	uint64_t broke_ms; /* it rests for want of money until then */
	uint32_t warming;  /* the family asked to be warm last, LIST_NONE; see core_warm.c
	                    */

	bool is_away; /* since then nobody has heard of it */
	bool dirty, flight;
	bool park_dirty;  /* parked_ms is another than Redis knows */
	bool park_flight; /* the command under way says so */
};

uint32_t pacer_find(const struct core *core, struct id128 id);
void pacer_configure(struct core *core, const struct event_budget *budget);
void pacer_recover(struct core *core, const struct event_recovered_budget *budget);

/* The budget was granted: its next start reports its first byte. */
void pacer_take_asked(struct core *core, uint32_t index);

/* The first byte of a request sent at `sent_ms` came; limits of its headers. */
void pacer_take_byte(struct core *core, uint32_t index, uint64_t sent_ms,
                     uint64_t first_ms, const uint64_t limits[EVENT_BUCKET_COUNT]);
void pacer_take_pressure(struct core *core, const struct event_pressure *pressure);
void pacer_unpark(struct core *core, const struct event_unpark *unpark);
void pacer_take_status(struct core *core, const struct event_paced *paced);

/* Ready jobs wait although slots are free. */
void pacer_take_bound(struct core *core, uint32_t index);
bool pacer_is_bound(const struct core *core, const struct pacer *pacer);

/* More work than pace, and no room to rise: the most that is configured. */
bool pacer_is_full(const struct core *core, const struct pacer *pacer);

/* More work than pace, and room to rise. */
bool pacer_is_rising(const struct core *core, const struct pacer *pacer);
bool pacer_is_parked(const struct core *core, const struct pacer *pacer);

/* The limit in force; 0 = none. */
uint64_t pacer_limit(const struct pacer *pacer, enum event_bucket bucket);
/* Which of them answers have told: one bit each, the lowest for the first bucket. */
uint32_t pacer_learned(const struct pacer *pacer);

/* The work of its families changed by this much. */
void pacer_weigh(struct core *core, uint32_t index, uint32_t before, uint32_t after);

/* All pools together have so many slots now. */
void pacer_set_slots(struct core *core, uint32_t slots);

void pacer_arm(struct core *core, uint32_t index);
void pacer_expire(struct core *core, uint32_t index);

#endif
