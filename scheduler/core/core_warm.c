/* Writing a prefix ahead of its jobs, because somebody asks for it.
 *
 *   idle ── warm ──► a ticket ──► written ──► checking: the first job shows that it can
 *                        │                    be read, and the others follow
 *                        └ failed: cold, as before; nobody tries again
 *
 * One at a time for each account; whatever speaks against it is said, and nothing is
 * done.
 */
#include "scheduler/core/credit.h"
#include "scheduler/core/state.h"

/* What the family's own lane says. */
static enum core_warm
judge_lane(const struct family *family, const struct lane *lane)
{
	VERIFY(family->lanes_count > 0);
	VERIFY(lane->gate < LANE_GATE_COUNT);
	if (!(family->gates & 1u << (family->lanes_count - 1))) {
		if (lane->reason == LANE_REASON_BELOW_MINIMUM)
			return CORE_WARM_SMALL;
		return lane->reason == LANE_REASON_UNSHARED ? CORE_WARM_UNSHARED
		                                            : CORE_WARM_UNCACHEABLE;
	}
	switch (lane->gate) {
	case LANE_CLOSED:
		return CORE_WARM_YES;
	case LANE_WRITING:
		return CORE_WARM_WRITING;
	case LANE_CHECKING:
		return CORE_WARM_WRITTEN;
	case LANE_OPEN:
		return CORE_WARM_OPEN;
	case LANE_BYPASS:
	case LANE_LEAKY:
	case LANE_GATE_COUNT:
		break;
	}
	return CORE_WARM_UNCACHEABLE;
}

/* Another family of this account that somebody has asked for and that is not done. */
static bool
is_busy(const struct core *core, const struct family *family)
{
	uint32_t index = core->pacers[family->budget].warming;

	VERIFY(index == LIST_NONE || index < core->config.families_max);
	return index != LIST_NONE && core->families[index].lanes_count > 0 &&
	       core->families[index].credit.out > 0 && core->families[index].credit.asked;
}

/* What else stands in the way of a request now. */
static enum core_warm
judge_ways(const struct core *core, const struct family *family)
{
	const struct model *model = &core->models[family->model];
	uint32_t places = credit_shut_places(core, family);
	enum lane_role role;

	VERIFY(places != 0);
	if (family->flags & EVENT_FAMILY_PAUSED)
		return CORE_WARM_PAUSED;
	if (pacer_is_parked(core, &core->pacers[family->budget]))
		return CORE_WARM_PARKED;
	if (!model->traits.calls || model->call_refused)
		return CORE_WARM_NO_CALL;
	if (core->pools[family->pool].slots == 0)
		return CORE_WARM_NO_WORKER;
	if (family->waiting > 0)
		return CORE_WARM_WORK;
	if (is_busy(core, family))
		return CORE_WARM_BUSY;
	for (uint32_t i = 0; i < family->lanes_count; i++)
		if (places & 1u << i &&
		    core->lanes[family->lanes[i]].gate == LANE_WRITING)
			return CORE_WARM_WRITING;
	if (family->credit.out > 0 || core->lanes[family_leaf(family)].flight ||
	    credit_admitted(core, family, places, &role) == 0)
		return CORE_WARM_LATER;
	return CORE_WARM_YES;
}

static enum core_warm
judge(const struct core *core, uint32_t index)
{
	const struct family *family;
	enum core_warm verdict;

	if (index == FAMILY_NONE || core->recovering)
		return CORE_WARM_UNKNOWN;
	family = &core->families[index];
	if (!core->hold || family->unheld || !core->models[family->model].traits.hold)
		return CORE_WARM_OFF;
	verdict = judge_lane(family, &core->lanes[family_leaf(family)]);
	return verdict == CORE_WARM_YES ? judge_ways(core, family) : verdict;
}

enum core_warm
core_warm_verdict(const struct core *core, struct id128 family)
{
	return judge(core, family_find(core, family));
}

void
core_warm(struct core *core, struct id128 id)
{
	uint32_t index = family_find(core, id);
	enum core_warm verdict = judge(core, index);

	VERIFY(verdict < CORE_WARM_COUNT);
	note_id(core, COMMAND_NOTE_WARM, id, verdict, 0);
	if (verdict != CORE_WARM_YES)
		return;
	core->pacers[core->families[index].budget].warming = index;
	credit_warm(core, index);
	pool_plan_all(core);
}

const char *
core_warm_text(enum core_warm verdict)
{
	static const char *const texts[] = {
		[CORE_WARM_YES] = "asked",
		[CORE_WARM_UNKNOWN] = "gone",
		[CORE_WARM_OFF] = "off",
		[CORE_WARM_SMALL] = "small",
		[CORE_WARM_UNSHARED] = "unshared",
		[CORE_WARM_UNCACHEABLE] = "uncacheable",
		[CORE_WARM_OPEN] = "warm",
		[CORE_WARM_WRITTEN] = "written",
		[CORE_WARM_WRITING] = "writing",
		[CORE_WARM_PAUSED] = "paused",
		[CORE_WARM_PARKED] = "parked",
		[CORE_WARM_NO_CALL] = "no_call",
		[CORE_WARM_NO_WORKER] = "no_worker",
		[CORE_WARM_WORK] = "work",
		[CORE_WARM_BUSY] = "busy",
		[CORE_WARM_LATER] = "later",
	};

	VERIFY(verdict < CORE_WARM_COUNT);
	return texts[verdict];
}
