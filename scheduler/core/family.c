#include "scheduler/core/family.h"

#include "scheduler/core/grant.h"
#include "scheduler/core/state.h"

#define LOOK_GAP_MS     1000  /* between two looks at one family */
#define LINGER_MS_MAX   60000 /* between two looks at a drained family's tail */
#define OVERDUE_LOOK_MS 5000  /* between two looks at an overdue family's head */

uint32_t
family_find(const struct core *core, struct id128 id)
{
	return table_find(&core->families_by_id, id);
}

uint32_t
family_leaf(const struct family *family)
{
	VERIFY(family->lanes_count > 0);
	return family->lanes[family->lanes_count - 1];
}

static bool
is_active(const struct family *family)
{
	return family->state == FAMILY_COLD || family->state == FAMILY_READY;
}

bool
family_starts(const struct core *core, const struct family *family)
{
	VERIFY(family->lanes_count > 0);
	VERIFY(family->gates >> family->lanes_count == 0);
	if (family->unheld)
		return true;
	if (!lane_starts(core, &core->lanes[family_leaf(family)]))
		return false;
	for (uint32_t i = 0; i < family->lanes_count; i++)
		if ((family->gates & 1u << i) &&
		    !lane_starts(core, &core->lanes[family->lanes[i]]))
			return false;
	return true;
}

uint32_t
family_marks(const struct core *core, const struct family *family)
{
	uint32_t marks = family->gates;

	VERIFY(family->lanes_count > 0);
	VERIFY(family->users >> family->lanes_count == 0);
	if (!core->models[family->model].traits.needs_marker)
		return 0;
	for (uint32_t i = 0; i < family->lanes_count; i++)
		if (core->lanes[family->lanes[i]].gate == LANE_LEAKY)
			marks &= ~(1u << i);
	return marks | family->users;
}

/* Slots that it could use now. */
static uint32_t
weight_of(const struct family *family)
{
	uint32_t unclaimed;

	VERIFY(family->state < FAMILY_STATE_COUNT);
	VERIFY(family->credit.started <= family->credit.out);
	switch (family->state) {
	case FAMILY_READY:
		return family->waiting + family->running;
	case FAMILY_COLD:
		unclaimed = family->credit.out - family->credit.started;
		return MAX(family->waiting > 0, unclaimed + family->running);
	case FAMILY_IDLE:
	case FAMILY_WAITING:
	case FAMILY_PAUSED:
		return 0;
	case FAMILY_STATE_COUNT:
		break;
	}
	VERIFY(false);
	return 0;
}

void
family_weigh(struct core *core, uint32_t index)
{
	struct family *family = &core->families[index];
	struct pool *pool = &core->pools[family->pool];
	uint32_t weight = weight_of(family);
	uint32_t queued = is_active(family) ? family->waiting : 0;

	VERIFY(index < core->config.families_max);
	VERIFY(core->families[index].lanes_count > 0);
	VERIFY(pool->queued >= family->queued);
	pacer_weigh(core, family->budget, family->weight, weight);
	pool_weigh(core, index, weight, is_active(family) ? family->running : 0);
	pool->queued = pool->queued - family->queued + queued;
	family->queued = queued;
}

static struct list *
home_of(struct core *core, const struct family *family)
{
	struct pool *pool = &core->pools[family->pool];

	VERIFY(family->state < FAMILY_STATE_COUNT);
	VERIFY(family->pool < core->pools_count);
	switch (family->state) {
	case FAMILY_IDLE:
		return &core->idle;
	case FAMILY_PAUSED:
		return &core->paused;
	case FAMILY_WAITING:
		VERIFY(family->band < POOL_BANDS);
		return &pool->waiting[family->band];
	case FAMILY_COLD:
		return &pool->cold;
	case FAMILY_READY:
		return &pool->ready;
	case FAMILY_STATE_COUNT:
		break;
	}
	VERIFY(false);
	return NULL;
}

/* Leaves the old home, enters the new one. */
static void
move(struct core *core, uint32_t index, enum family_state state)
{
	struct family *family = &core->families[index];
	bool was_active = is_active(family);

	VERIFY(core->family_home[index].in);
	VERIFY(state != family->state);
	VERIFY(state < FAMILY_STATE_COUNT);
	VERIFY(!core->recovering || state == FAMILY_IDLE);
	list_remove(home_of(core, family), core->family_home, index);
	core->cold_count -= family->state == FAMILY_COLD;
	family->state = state;
	core->cold_count += family->state == FAMILY_COLD;
	list_push(home_of(core, family), core->family_home, index);

	if (was_active && !is_active(family)) {
		pool_set_overdue(core, index, false);
		family->rank = POOL_RANK_LAST;
		family->ahead = false;
		family->linger_ms = 0;
	}
	core->pools[family->pool].plan = true;
	family_weigh(core, index);
	lane_touch(core, family_leaf(family));
}

/* The state that fits what is known.  Who has a rank is active, or was so before a
 * restart. */
static enum family_state
fitting(const struct core *core, const struct family *family)
{
	bool starts = family_starts(core, family);
	bool has_turn = family->rank < POOL_RANK_LAST;

	VERIFY(!core->recovering);
	VERIFY(has_turn || !is_active(family));
	if (family->flags & EVENT_FAMILY_PAUSED)
		return FAMILY_PAUSED;
	has_turn |= family->credit.out > 0;
	if (starts)
		return family->waiting > 0 || has_turn ? FAMILY_READY : FAMILY_IDLE;
	if (has_turn)
		return FAMILY_COLD;
	return family->waiting > 0 ? FAMILY_WAITING : FAMILY_IDLE;
}

static void
set_linger(struct core *core, struct family *family)
{
	bool is_drained =
		is_active(family) && family->waiting == 0 && family->credit.out == 0;

	VERIFY(family->linger_for_ms > 0);
	if (!is_drained) {
		family->linger_ms = 0;
		family->linger_for_ms = core->config.linger_ms;
	} else if (family->linger_ms == 0) {
		family->linger_ms = core->now_ms + family->linger_for_ms;
	}
}

void
family_settle(struct core *core, uint32_t index)
{
	struct family *family = &core->families[index];
	bool was_active = is_active(family);
	enum family_state state;

	VERIFY(index < core->config.families_max);
	VERIFY(core->family_home[index].in);
	if (core->recovering)
		return;
	state = fitting(core, family);
	if (state == FAMILY_PAUSED)
		credit_recall(core, index);
	if (family->waiting == 0)
		pool_set_overdue(core, index, false);
	if (state != family->state) {
		move(core, index, state);
		if (!was_active && is_active(family) && family->rank == POOL_RANK_LAST) {
			family->rank = pool_rank(core);
			core->counts.switches++;
		}
	}
	set_linger(core, family);
	family_arm(core, index);
}

void
family_settle_all(struct core *core)
{
	for (uint32_t i = 0; i < core->config.families_max; i++)
		if (core->families[i].lanes_count > 0)
			family_settle(core, i);
}

void
family_rest(struct core *core, uint32_t index)
{
	VERIFY(index < core->config.families_max);
	VERIFY(core->families[index].lanes_count > 0);
	if (core->families[index].state != FAMILY_IDLE)
		move(core, index, FAMILY_IDLE);
}

void
family_activate(struct core *core, uint32_t index)
{
	struct family *family = &core->families[index];

	VERIFY(!core->recovering);
	VERIFY(family->state == FAMILY_WAITING);
	VERIFY(family->waiting > 0);
	family->rank = pool_rank(core);
	core->counts.switches++;
	move(core, index, FAMILY_COLD);
	set_linger(core, family);
	family_arm(core, index);
}

void
family_count(struct core *core, uint32_t index, uint32_t waiting, uint32_t running)
{
	struct family *family = &core->families[index];

	VERIFY(index < core->config.families_max);
	VERIFY(core->families[index].lanes_count > 0);
	if (family->waiting == 0 && waiting > 0)
		core->pools[family->pool].plan = true; /* a cold one may be elected */
	family->waiting = waiting;
	family->running = running;
	if (waiting == 0)
		family->oldest_ms = 0;
	else if (family->oldest_ms == 0)
		family->oldest_ms = core->now_ms; /* at the latest */
	family_weigh(core, index);
	family_settle(core, index);
}

void
family_started(struct core *core, uint32_t index)
{
	const struct family *family = &core->families[index];

	VERIFY(index < core->config.families_max);
	VERIFY(core->families[index].lanes_count > 0);
	family_count(core, index, family->waiting - MIN(family->waiting, 1),
	             family->running + 1);
}

void
family_ended(struct core *core, uint32_t index)
{
	const struct family *family = &core->families[index];

	VERIFY(index < core->config.families_max);
	VERIFY(core->families[index].lanes_count > 0);
	if (family->running > 0)
		family_count(core, index, family->waiting, family->running - 1);
	else /* its start made no event */
		family_count(core, index, family->waiting - MIN(family->waiting, 1), 0);
}

void
family_returned(struct core *core, uint32_t index)
{
	const struct family *family = &core->families[index];

	VERIFY(index < core->config.families_max);
	VERIFY(core->families[index].lanes_count > 0);
	family_count(core, index, family->waiting + 1,
	             family->running - MIN(family->running, 1));
}

void
family_look(struct core *core, uint32_t index)
{
	struct family *family = &core->families[index];

	VERIFY(index < core->config.families_max);
	VERIFY(core->families[index].lanes_count > 0);
	if (family->glance_flight || core->family_glance[index].in)
		return;
	if (family->glanced_ms > 0 && core->now_ms - family->glanced_ms < LOOK_GAP_MS)
		return;
	family->glanced_ms = core->now_ms;
	list_push(&core->glance, core->family_glance, index);
}

/* When the oldest job will have waited too long; none while it may not run anyway, or
 * while an answer about it is under way. */
static uint64_t
overdue_at(const struct core *core, uint32_t index)
{
	const struct family *family = &core->families[index];
	const struct pool *pool = &core->pools[family->pool];

	VERIFY(family->pool < core->pools_count);
	if (family->glance_flight || core->family_glance[index].in)
		return CORE_DEADLINE_NONE;
	if (family->waiting == 0 || family->oldest_ms == 0 ||
	    family->state == FAMILY_PAUSED || pool->slots == 0)
		return CORE_DEADLINE_NONE;
	return MAX(family->oldest_ms + pool->max_wait_ms,
	           family->glanced_ms + OVERDUE_LOOK_MS);
}

void
family_arm(struct core *core, uint32_t index)
{
	const struct family *family = &core->families[index];
	uint64_t due_ms = overdue_at(core, index);

	VERIFY(index < core->config.families_max);
	VERIFY(family->linger_ms == 0 || family->waiting == 0);
	if (core->recovering)
		return;
	if (family->credit.out > 0)
		due_ms = MIN(due_ms, family->credit.look_ms);
	if (family->linger_ms > 0)
		due_ms = MIN(due_ms, family->linger_ms);
	state_arm(core, state_family_timer(core, index), due_ms);
}

/* Drained and lingered: idle, once its tail has ended.  Nobody waits for the tail of a
 * family that nothing holds. */
static void
end_linger(struct core *core, uint32_t index)
{
	struct family *family = &core->families[index];

	VERIFY(family->credit.out == 0);
	VERIFY(family->linger_ms <= core->now_ms);
	VERIFY(family->waiting == 0);
	if (family->running > 0 && family->gates != 0 &&
	    family->linger_for_ms < LINGER_MS_MAX) {
		family->linger_for_ms *= 2;
		family->linger_ms = core->now_ms + family->linger_for_ms;
		family_look(core, index);
		family_arm(core, index);
		return;
	}
	family->linger_for_ms = core->config.linger_ms;
	move(core, index, FAMILY_IDLE);
	family_arm(core, index);
}

void
family_expire(struct core *core, uint32_t index)
{
	struct family *family = &core->families[index];

	VERIFY(index < core->config.families_max);
	VERIFY(family->lanes_count > 0);
	VERIFY(!core->recovering);
	state_arm(core, state_family_timer(core, index), CORE_DEADLINE_NONE);
	if (family->credit.out > 0 && family->credit.look_ms <= core->now_ms)
		credit_expire(core, index);
	if (family->linger_ms > 0 && family->linger_ms <= core->now_ms)
		end_linger(core, index);
	if (overdue_at(core, index) <= core->now_ms)
		family_look(core, index);
	family_arm(core, index);
}

/* Whether it goes before all others, now that its oldest job and what runs are known for
 * certain.  Old jobs alone are no reason: a family that is being served only has many.
 * Who has been first for as long as max_wait lets the next one, or nobody would ever be.
 */
static bool
is_overdue(const struct core *core, const struct family *family)
{
	const struct pool *pool = &core->pools[family->pool];
	bool waits_long = family->waiting > 0 && family->oldest_ms > 0 &&
	                  core->now_ms >= family->oldest_ms + pool->max_wait_ms;

	VERIFY(family->pool < core->pools_count);
	VERIFY(family->budget < core->pacers_count);
	if (!waits_long || family->state == FAMILY_PAUSED ||
	    pacer_is_parked(core, &core->pacers[family->budget]))
		return false;
	if (family->overdue)
		return core->now_ms < family->overdue_ms + pool->max_wait_ms;
	return family->running == 0;
}

static void
judge_wait(struct core *core, uint32_t index)
{
	struct family *family = &core->families[index];
	bool overdue = is_overdue(core, family);

	VERIFY(!core->recovering);
	if (overdue && family->state == FAMILY_WAITING)
		family_activate(core, index);
	if (is_active(family))
		pool_set_overdue(core, index, overdue);
	family_arm(core, index);
}

void
family_take_head(struct core *core, uint32_t index, uint64_t head_ms)
{
	struct family *family = &core->families[index];

	VERIFY(index < core->config.families_max);
	if (family->waiting > 0 && head_ms > 0)
		family->oldest_ms = MIN(head_ms, core->now_ms);
	judge_wait(core, index);
}

void
family_take_glance(struct core *core, const struct event_glanced *glanced)
{
	uint32_t index = family_find(core, glanced->family);
	struct family *family;

	VERIFY(glanced->status <= EVENT_STATUS_UNKNOWN);
	if (index == FAMILY_NONE)
		return;
	family = &core->families[index];
	if (!family->glance_flight)
		return;
	family->glance_flight = false;
	if (glanced->status != EVENT_STATUS_DONE) {
		family_arm(core, index);
		return;
	}
	family_count(core, index, glanced->backlog, glanced->in_use);
	family_take_head(core, index, glanced->head_ms);
	credit_take_look(core, index, glanced->in_use, glanced->backlog);
	/* Who came after slots were left free says nothing: they are filled now. */
	if (family->state == FAMILY_READY && glanced->backlog > 0 &&
	    glanced->head_ms < core->pools[family->pool].short_ms &&
	    core->pools[family->pool].short_ms + LOOK_GAP_MS > core->now_ms)
		pacer_take_bound(core, family->budget);
}

void
family_pause(struct core *core, uint32_t index, bool on)
{
	struct family *family = &core->families[index];

	VERIFY(index < core->config.families_max);
	VERIFY(core->families[index].lanes_count > 0);
	if (on)
		family->flags |= EVENT_FAMILY_PAUSED;
	else
		family->flags &= ~(uint32_t)EVENT_FAMILY_PAUSED;
	family_settle(core, index);
}
