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

static void
add_family(const struct core *core, const struct family *family,
           struct core_pool_view *view)
{
	enum core_blocked blocked = core_blocked_by(core, family);

	VERIFY(blocked < CORE_BLOCKED_COUNT);
	VERIFY(family->waiting > 0);
	view->waiting += family->waiting;
	view->families[blocked]++;
	view->jobs[blocked] += family->waiting;
	if (family->oldest_ms > 0 &&
	    (view->oldest_ms == 0 || family->oldest_ms < view->oldest_ms))
		view->oldest_ms = family->oldest_ms;
}

/* Starts that an account would take now.  One whose token budget binds takes none: more
 * slots would not help. */
static uint64_t
room_of(const struct core *core, uint32_t index, uint64_t running)
{
	const struct pacer *pacer = &core->pacers[index];

	VERIFY(pacer->pace > 0);
	if (pacer_is_parked(core, pacer) || pacer_is_bound(core, pacer))
		return 0;
	return pacer->pace - MIN(running, pacer->pace);
}

/* Rows of `sums`: what each budget has running, then for each pool what could start. */
static void
share_rooms(const struct core *core, struct core_pool_view *views, const uint64_t *sums)
{
	uint32_t width = core->config.budgets_max;

	for (uint32_t budget = 0; budget < core->pacers_count; budget++) {
		uint64_t room = room_of(core, budget, sums[budget]);

		for (uint32_t pool = 0; pool < core->pools_count; pool++) {
			uint64_t fits = MIN(sums[(pool + 1) * width + budget], room);

			views[pool].runnable += fits;
			room -= fits;
		}
	}
}

size_t
core_pools_scratch(const struct core_config *config)
{
	return ((size_t)config->pools_max + 1) * config->budgets_max;
}

uint32_t
core_pools_view(const struct core *core, struct core_pool_view *ret_views,
                uint64_t *scratch)
{
	uint32_t width = core->config.budgets_max;

	for (uint32_t i = 0; i < core->pools_count; i++)
		ret_views[i] = (struct core_pool_view){ .id = core->pools[i].id,
			                                .slots = core->pools[i].slots };
	memset(scratch, 0, core_pools_scratch(&core->config) * sizeof(*scratch));
	for (uint32_t i = 0; i < core->config.families_max; i++) {
		const struct family *family = &core->families[i];

		scratch[family->budget] += family->running;
		ret_views[family->pool].running += family->running;
		if (family->waiting == 0)
			continue;
		add_family(core, family, &ret_views[family->pool]);
		scratch[(family->pool + 1) * width + family->budget] +=
			startable(core, family);
	}
	share_rooms(core, ret_views, scratch);
	return core->pools_count;
}
