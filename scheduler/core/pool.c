#include "scheduler/core/pool.h"

#include "common/mark.h"
#include "scheduler/core/credit.h"
#include "scheduler/core/family.h"
#include "scheduler/core/state.h"

#define NEXT_MAX  32   /* families compared for "most work" */
#define LOOKS_MAX 8    /* families looked at when a pool is short */
#define WAIT_MS   1000 /* beside free slots so long: something holds it */
#define COLD_MS   5000 /* how long a prefix takes to be warm, until one was timed */

uint32_t
pool_find(const struct core *core, struct id128 id)
{
	return table_find(&core->pools_by_id, id);
}

void
pool_configure(struct core *core, const struct event_pool *event)
{
	uint32_t index = pool_find(core, event->id);
	struct pool *pool;

	if (index == LIST_NONE) {
		index = core->pools_count;
		if (table_put(&core->pools_by_id, event->id, index) < 0)
			return; /* its families run unheld */
		core->pools_count++;
		pool = &core->pools[index];
		*pool = (struct pool){ .id = event->id, .job_ms = POOL_JOB_MS_FIRST };
		for (uint32_t i = 0; i < POOL_BANDS; i++)
			list_init(&pool->waiting[i]);
		list_init(&pool->cold);
		list_init(&pool->ready);
	}
	VERIFY(index < core->pools_count);
	pool = &core->pools[index];
	pacer_set_slots(core, core->slots - pool->slots + event->slots);
	pool->slots = event->slots;
	pool->max_wait_ms =
		event->max_wait_ms > 0 ? event->max_wait_ms : core->config.max_wait_ms;
	pool->plan = true;
}

void
pool_plan_all(struct core *core)
{
	VERIFY(core->pools_count <= core->config.pools_max);
	for (uint32_t i = 0; i < core->pools_count; i++) {
		struct pool *pool = &core->pools[i];

		if (pool->cold.count > 0)
			pool->plan = true;
		for (uint32_t band = 0; band < POOL_BANDS; band++)
			if (pool->waiting[band].count > 0)
				pool->plan = true;
	}
}

static bool
may_go(const struct core *core, const struct family *family)
{
	const struct pacer *pacer = &core->pacers[family->budget];

	VERIFY(family->state == FAMILY_WAITING);
	VERIFY(family->budget < core->pacers_count);
	return !pacer_is_parked(core, pacer) && !pacer_is_bound(core, pacer);
}

/* The best of the first waiting families of the best band that has one. */
static uint32_t
next_of(const struct core *core, const struct pool *pool)
{
	VERIFY(pool->load < UINT32_MAX);
	for (uint32_t band = 0; band < POOL_BANDS; band++) {
		uint32_t best = FAMILY_NONE, seen = 0;

		for (uint32_t i = pool->waiting[band].head;
		     i != LIST_NONE && seen < NEXT_MAX; i = core->family_home[i].next) {
			seen++;
			if (!may_go(core, &core->families[i]))
				continue;
			if (best == FAMILY_NONE ||
			    core->families[i].waiting > core->families[best].waiting)
				best = i;
		}
		if (best != FAMILY_NONE)
			return best;
	}
	return FAMILY_NONE;
}

static struct pool_share *
share_of(const struct core *core, uint32_t pool, uint32_t pacer)
{
	VERIFY(pool < core->pools_count);
	VERIFY(pacer < core->pacers_count);
	return &core->shares[(size_t)pool * core->config.budgets_max + pacer];
}

void
pool_weigh(struct core *core, uint32_t index, uint32_t weight, uint32_t busy)
{
	struct family *family = &core->families[index];
	struct pool *pool = &core->pools[family->pool];
	struct pool_share *share = share_of(core, family->pool, family->budget);

	VERIFY(pool->load >= family->weight);
	VERIFY(share->load >= family->weight);
	VERIFY(share->busy >= family->busy);
	pool->load = pool->load - family->weight + weight;
	share->load = share->load - family->weight + weight;
	share->busy = share->busy - family->busy + busy;
	if (weight < family->weight)
		pool->plan = true;
	family->weight = weight;
	family->busy = busy;
}

/* Slots that the account lets its share of the pool use. */
static uint32_t
usable_of(const struct core *core, uint32_t pool, uint32_t index)
{
	const struct pool_share *share = share_of(core, pool, index);
	const struct pacer *pacer = &core->pacers[index];

	if (pacer_is_parked(core, pacer) || pacer_is_bound(core, pacer))
		return share->busy;
	return MIN(share->load, MAX(share->busy, pacer->pace));
}

bool
pool_leaves_slots(const struct core *core, uint32_t index)
{
	const struct pool *pool = &core->pools[index];
	uint32_t usable = 0;

	VERIFY(index < core->pools_count);
	if (pool->load < pool->slots)
		return true;
	for (uint32_t i = 0; i < core->pacers_count && usable < pool->slots; i++)
		usable += usable_of(core, index, i);
	return usable < pool->slots;
}

/* The slots are not for the work of the active families, though they have enough: their
 * accounts keep it, and this family's account has room. */
static bool
is_left_over(const struct core *core, const struct pool *pool,
             const struct family *family)
{
	const struct pacer *pacer = &core->pacers[family->budget];

	VERIFY(family->budget < core->pacers_count);
	return pool->load >= pool->slots && pacer->load < pacer->pace &&
	       pool_leaves_slots(core, family->pool);
}

/* How long the jobs that wait in active families keep the slots busy. */
static uint64_t
queue_ms(const struct pool *pool)
{
	VERIFY(pool->job_ms > 0);
	return pool->queued * pool->job_ms / MAX(pool->slots, 1);
}

static uint64_t
cold_ms(const struct core *core, const struct family *family)
{
	const struct model *model = &core->models[family->model];

	VERIFY(family->model < core->models_count);
	if (model->samples_count == 0)
		return COLD_MS;
	return model->samples_ms[(model->samples_count - 1) % MODEL_SAMPLES] +
	       model_check_after(model);
}

enum verdict {
	NOT_YET,
	FILLS_SLOTS, /* capacity would idle now */
	AHEAD,       /* capacity would idle before the prefix could be warm */
};

/* Whether activating one more cold family is drain before switch, or just switch. */
static enum verdict
judge(const struct core *core, const struct pool *pool, const struct family *family)
{
	uint64_t life_ms = lane_life(core, &core->lanes[family_leaf(family)]);
	uint64_t ahead_ms;

	VERIFY(family->state == FAMILY_WAITING);
	if (pool->slots == 0)
		return NOT_YET;
	if (is_left_over(core, pool, family)) {
		MARK(pool_fills_what_an_account_leaves);
		return FILLS_SLOTS;
	}
	/* What is warmed now must not expire before its turn. */
	if (queue_ms(pool) > life_ms / 2)
		return NOT_YET;
	if (pool->load < pool->slots)
		return FILLS_SLOTS;
	ahead_ms = (uint64_t)(pool->load - pool->slots) * pool->job_ms / pool->slots;
	if (pool->cold.count == 0 && ahead_ms < cold_ms(core, family)) {
		MARK(pool_activates_ahead);
		return AHEAD;
	}
	return NOT_YET;
}

static void
activate(struct core *core, uint32_t index)
{
	const struct pool *pool = &core->pools[index];

	VERIFY(index < core->pools_count);
	for (;;) {
		uint32_t next = next_of(core, pool);
		enum verdict verdict;

		if (next == FAMILY_NONE)
			return;
		verdict = judge(core, pool, &core->families[next]);
		if (verdict == NOT_YET)
			return;
		family_activate(core, next);
		core->families[next].ahead = verdict == AHEAD;
	}
}

static void
elect(struct core *core, uint32_t index)
{
	uint32_t next;

	VERIFY(index < core->pools_count);
	for (uint32_t i = core->pools[index].cold.head; i != LIST_NONE; i = next) {
		next = core->family_home[i].next;
		(void)credit_elect(core, i);
	}
}

void
pool_plan(struct core *core, uint32_t index)
{
	struct pool *pool = &core->pools[index];

	VERIFY(index < core->pools_count);
	VERIFY(!core->recovering);
	pool->plan = false;
	activate(core, index);
	elect(core, index);
}

/* Long enough for any free slot to have taken it. */
static bool
waits_long(const struct core *core, const struct family *family)
{
	return family->waiting > 0 && family->oldest_ms > 0 &&
	       core->now_ms - MIN(family->oldest_ms, core->now_ms) >= WAIT_MS;
}

/* Free slots although we believe them to be needed, or beside jobs that might start: our
 * estimates are old, or a limit of the account binds.  The ranks say who was active
 * longest and is drained most likely. */
void
pool_take_short(struct core *core, const struct event_short *event)
{
	uint32_t index = pool_find(core, event->pool), looks = 0;
	struct pool *pool;

	if (index == LIST_NONE || event->free == 0)
		return;
	pool = &core->pools[index];
	pool->short_ms = core->now_ms;
	for (uint32_t i = pool->ready.head; i != LIST_NONE && looks < LOOKS_MAX;
	     i = core->family_home[i].next, looks++) {
		if (pool->load < pool->slots && !waits_long(core, &core->families[i]))
			continue;
		MARK(pool_looks_where_work_should_be);
		family_look(core, i);
	}
}

void
pool_take_done(struct core *core, uint32_t index, uint64_t job_ms)
{
	struct pool *pool = &core->pools[index];

	VERIFY(index < core->pools_count);
	/* Jobs may take less than a ms, and a mean of integers falls to nothing. */
	pool->job_ms = MAX((pool->job_ms * 7 + MIN(job_ms, 3600000)) / 8, 1);
}

uint32_t
pool_window(const struct core *core, uint32_t index)
{
	const struct family *family = &core->families[index];
	const struct pool *pool = &core->pools[family->pool];

	VERIFY(index < core->config.families_max);
	VERIFY(family->pool < core->pools_count);
	if (pool->overdue == 0 || family->overdue || pool->slots == 0)
		return LANE_WINDOW;
	return MAX(1, pool->slots / 2);
}

/* Ranks are used up after 90 million activations: all move down by half of the range.
 * Whoever has been active since before that is first in any case. */
static void
renumber(struct core *core)
{
	uint32_t half = (POOL_RANK_LAST - POOL_RANK_FIRST) / 2;

	VERIFY(core->rank_next > POOL_RANK_FIRST + half);
	for (uint32_t i = 0; i < core->config.families_max; i++) {
		struct family *family = &core->families[i];

		if (family->lanes_count == 0 || family->rank < POOL_RANK_FIRST ||
		    family->rank == POOL_RANK_LAST)
			continue;
		family->rank -= MIN(half, family->rank - POOL_RANK_FIRST);
		lane_touch(core, family_leaf(family));
	}
	core->rank_next -= half;
}

uint32_t
pool_rank(struct core *core)
{
	VERIFY(core->rank_next >= POOL_RANK_FIRST);
	if (core->rank_next == POOL_RANK_LAST - 1)
		renumber(core);
	VERIFY(core->rank_next < POOL_RANK_LAST);
	return core->rank_next++;
}

/* Before all that are in order. */
static uint32_t
rank_overdue(struct core *core)
{
	VERIFY(core->rank_overdue_next >= 1);
	if (core->rank_overdue_next == POOL_RANK_FIRST)
		core->rank_overdue_next = 1;
	return core->rank_overdue_next++;
}

/* Windows of all others change with the first and the last overdue family. */
static void
touch_ready(struct core *core, const struct pool *pool)
{
	for (uint32_t i = pool->ready.head; i != LIST_NONE; i = core->family_home[i].next)
		lane_touch(core, family_leaf(&core->families[i]));
}

void
pool_set_overdue(struct core *core, uint32_t index, bool overdue)
{
	struct family *family = &core->families[index];
	struct pool *pool = &core->pools[family->pool];

	VERIFY(index < core->config.families_max);
	VERIFY(family->lanes_count > 0);
	if (family->overdue == overdue)
		return;
	family->overdue = overdue;
	if (overdue) {
		MARK(pool_lets_one_go_first);
		pool->overdue++;
		family->overdue_ms = core->now_ms;
		family->rank = rank_overdue(core);
		core->counts.switches++;
		note_id(core, COMMAND_NOTE_OVERDUE, family->id,
		        core->now_ms - family->oldest_ms, pool->max_wait_ms);
	} else {
		VERIFY(pool->overdue > 0);
		pool->overdue--;
		family->rank = pool_rank(core);
	}
	if (pool->overdue == (overdue ? 1 : 0))
		touch_ready(core, pool);
	lane_touch(core, family_leaf(family));
}
