/* All pools at once: what waits, what runs, and what could run if there were more slots.
 */
#include "scheduler/core/core.h"

#include "scheduler/core/family.h"
#include "scheduler/core/state.h"

/* Jobs of the family that only lack slots: all that wait if nothing holds them, else the
 * one that may write or prove its prefix. */
static uint64_t
startable(const struct core *core, const struct family *family)
{
	const struct credit *credit = &family->credit;

	VERIFY(family->state < FAMILY_STATE_COUNT);
	if (family->state == FAMILY_PAUSED)
		return 0;
	if (family_starts(core, family))
		return family->waiting;
	if (credit->out > credit->started)
		return MIN(family->waiting, credit->out - credit->started);
	return family->state == FAMILY_WAITING ? MIN(family->waiting, 1) : 0;
}

/* Starts that each account would take now.  One whose token budget binds takes none: more
 * slots would not help. */
static void
fill_rooms(const struct core *core, uint64_t *rooms)
{
	for (uint32_t i = 0; i < core->pacers_count; i++) {
		const struct pacer *pacer = &core->pacers[i];
		bool shut = pacer_is_parked(core, pacer) || pacer_is_bound(core, pacer);

		rooms[i] = shut ? 0 : pacer->pace;
	}
	for (uint32_t i = 0; i < core->config.families_max; i++) {
		const struct family *family = &core->families[i];

		if (family->running > 0)
			rooms[family->budget] -=
				MIN(rooms[family->budget], family->running);
	}
}

static void
add_family(const struct core *core, const struct family *family,
           struct core_pool_view *view, uint64_t *room)
{
	enum core_blocked blocked = core_blocked_by(core, family);
	uint64_t fits = MIN(startable(core, family), *room);

	VERIFY(blocked < CORE_BLOCKED_COUNT);
	view->running += family->running;
	if (family->waiting == 0)
		return;
	view->waiting += family->waiting;
	view->families[blocked]++;
	view->jobs[blocked] += family->waiting;
	view->runnable += fits;
	*room -= fits;
	if (family->oldest_ms > 0 &&
	    (view->oldest_ms == 0 || family->oldest_ms < view->oldest_ms))
		view->oldest_ms = family->oldest_ms;
}

uint32_t
core_pools_view(const struct core *core, struct core_pool_view *ret_views,
                uint64_t *rooms)
{
	for (uint32_t i = 0; i < core->pools_count; i++)
		ret_views[i] = (struct core_pool_view){ .id = core->pools[i].id,
			                                .slots = core->pools[i].slots };
	fill_rooms(core, rooms);
	for (uint32_t i = 0; i < core->config.families_max; i++) {
		const struct family *family = &core->families[i];

		if (family->waiting > 0 || family->running > 0)
			add_family(core, family, &ret_views[family->pool],
			           &rooms[family->budget]);
	}
	return core->pools_count;
}
