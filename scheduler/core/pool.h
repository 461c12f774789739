/* pool.h - which family next: drain before switch.
 *
 *   waiting (high, normal, low) ──► cold ──► ready          lists of families
 *       in order of arrival     activate  elect   started by rank, by `claim`
 *
 * Ranks are given in order of activation, so claim drains the first family before it
 * starts the next.  A cold family is activated only when capacity would otherwise idle:
 * the work of the active ones is less than the slots, or will be before a prefix could
 * be warm.  Families that nothing holds need no capacity: they are ready at once.
 * Work that its account does not let start (parked, a bucket, its pace) leaves the slots
 * to the families of other accounts.
 *
 * Next: band, then (in the band) most work among the first 32.  Whoever waits longer
 * than max_wait without one start is activated in any case and ranks before all others,
 * whose windows are cut to half the pool meanwhile, until its old jobs have started or
 * for as long as max_wait again. */
#ifndef SCHEDULER_CORE_POOL_H
#define SCHEDULER_CORE_POOL_H

#include "common/base.h"
#include "scheduler/core/event.h"
#include "scheduler/core/list.h"

#define POOL_BANDS        3
#define POOL_RANK_NEVER   0        /* of a lane that was made, and never granted */
#define POOL_RANK_FIRST   10000000 /* ranks before are for the overdue */
#define POOL_RANK_LAST    99999999 /* not active */
#define POOL_JOB_MS_FIRST 10000    /* length of a job until one is known */

struct core;

/* What the active families of one account could use of one pool. */
struct pool_share {
	uint32_t load; /* slots, of pool->load */
	uint32_t busy; /* of them, those in which a job runs */
};

struct pool {
	struct id128 id;
	uint32_t slots;
	uint64_t max_wait_ms;
	struct list waiting[POOL_BANDS];
	struct list cold, ready;
	uint32_t load;     /* slots that the active families could use */
	uint32_t queued;   /* jobs of active families that wait */
	uint32_t overdue;  /* families that go first */
	uint64_t job_ms;   /* length of a job, mean */
	uint64_t short_ms; /* when a claim last left slots free; 0 = never */
	bool plan;         /* something changed: plan at the end of the step */
};

uint32_t pool_find(const struct core *core, struct id128 id);
void pool_configure(struct core *core, const struct event_pool *pool);

/* A family's share in the load of its pool and its account changes. */
void pool_weigh(struct core *core, uint32_t family, uint32_t weight, uint32_t busy);

/* Whether slots are left by what the accounts let the active families start. */
bool pool_leaves_slots(const struct core *core, uint32_t index);

/* Activates and elects what its capacity allows. */
void pool_plan(struct core *core, uint32_t index);

/* Its families under budgets and lanes that changed: plan all pools with work. */
void pool_plan_all(struct core *core);

void pool_take_short(struct core *core, const struct event_short *short_pool);
void pool_take_done(struct core *core, uint32_t index, uint64_t job_ms);

/* Window of a family of this pool. */
uint32_t pool_window(const struct core *core, uint32_t family);

/* The next rank, in order. */
uint32_t pool_rank(struct core *core);

/* The family waits too long, or no longer does. */
void pool_set_overdue(struct core *core, uint32_t family, bool overdue);

#endif
