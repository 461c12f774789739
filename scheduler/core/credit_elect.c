/* Who may start before a lane is open: the conditions, and the election. */
#include "scheduler/core/credit.h"

#include "common/mark.h"
#include "scheduler/core/state.h"

uint64_t
credit_patience(const struct core *core, const struct family *family)
{
	VERIFY(family->model < core->models_count);
	return model_patience(core, &core->models[family->model], family->hold_max_ms);
}

/* Warm-ups that may fail in a row on a lane; after them a job leads.  A warm-up that is
 * always slower than its deadline is stopped and paid each time, for ever; a job has its
 * attempts, and its worker lets it run in the end (AGENT_SLOW_MAX). */
#define TICKETS_MAX 3

static bool
has_failed_often(const struct core *core, const struct family *family, uint32_t places)
{
	for (uint32_t i = 0; i < family->lanes_count; i++)
		if (places & 1u << i &&
		    core->lanes[family->lanes[i]].failures >= TICKETS_MAX)
			return true;
	return false;
}

/* A ticket instead of a job: to write ahead of its jobs' turn, or when a job's first
 * event is not visible. */
static bool
wants_ticket(const struct core *core, const struct family *family, uint32_t places,
             enum lane_role role)
{
	const struct model *model = &core->models[family->model];

	VERIFY(role == LANE_LEAD || role == LANE_CANARY);
	if (!model->traits.calls || model->call_refused)
		return false;
	if (has_failed_often(core, family, places)) {
		MARK(credit_leads_after_failed_warm_ups);
		return false;
	}
	return (family->ahead && role == LANE_LEAD) || !model->traits.streams ||
	       (family->flags & EVENT_FAMILY_NO_STREAM);
}

uint32_t
credit_shut_places(const struct core *core, const struct family *family)
{
	uint32_t places = 0, own = 1u << (family->lanes_count - 1);

	VERIFY(family->lanes_count > 0);
	VERIFY(family->lanes_count <= LINEAGE_MAX);
	for (uint32_t i = 0; i < family->lanes_count; i++)
		if ((family->gates | own) & 1u << i &&
		    !lane_gate_starts(core->lanes[family->lanes[i]].gate))
			places |= 1u << i;
	return places;
}

uint32_t
credit_admitted(const struct core *core, const struct family *family, uint32_t places,
                enum lane_role *ret_role)
{
	enum lane_role role = LANE_CANARY;
	uint32_t count = places ? CREDIT_MAX : 0;

	VERIFY(places >> family->lanes_count == 0);
	for (uint32_t i = 0; i < family->lanes_count; i++) {
		const struct lane *lane = &core->lanes[family->lanes[i]];

		if (!(places & 1u << i))
			continue;
		count = MIN(count, lane_admits(core, lane));
		if (lane->gate == LANE_CLOSED)
			role = LANE_LEAD;
	}
	*ret_role = role;
	return count;
}

void
credit_count_on(struct core *core, struct family *family, uint32_t count)
{
	VERIFY(count > 0);
	VERIFY(count <= CREDIT_MAX);
	VERIFY(family->credit.lanes != 0);
	for (uint32_t i = 0; i < family->lanes_count; i++) {
		struct lane *lane = &core->lanes[family->lanes[i]];

		if (!(family->credit.lanes & 1u << i))
			continue;
		lane->unproven += count;
		if (lane->gate == LANE_CLOSED)
			lane_move(core, family->lanes[i], LANE_WRITING, LANE_REASON_NONE);
	}
}

bool
credit_can_run(const struct core *core, const struct family *family)
{
	VERIFY(family->pool < core->pools_count);
	VERIFY(family->budget < core->pacers_count);
	return core->hold && core->pools[family->pool].slots > 0 &&
	       !pacer_is_parked(core, &core->pacers[family->budget]);
}

static void
give(struct core *core, uint32_t index, uint32_t places, enum lane_role role,
     uint32_t count)
{
	struct family *family = &core->families[index];
	struct lane *leaf = &core->lanes[family_leaf(family)];

	VERIFY(family->credit.out == 0);
	VERIFY(!leaf->flight);
	family->credit = (struct credit){
		.out = count,
		.lanes = places,
		.role = role,
		.g = leaf->g + 1,
		.pending = true,
		.elected_ms = core->now_ms,
		.look_ms = core->now_ms + core->config.look_ms,
		.ticket_deadline_ms = core->now_ms + credit_patience(core, family),
	};
	core->counts.elections++;
	credit_count_on(core, family, count);
	lane_touch(core, family_leaf(family));
	family_weigh(core, index);
	family_arm(core, index);
}

bool
credit_elect(struct core *core, uint32_t index)
{
	struct family *family = &core->families[index];
	uint32_t places = credit_shut_places(core, family), count;
	enum lane_role role;

	VERIFY(family->state == FAMILY_COLD);
	VERIFY(!core->recovering);
	if (family->credit.out > 0 || family->waiting == 0 ||
	    core->lanes[family_leaf(family)].flight || !credit_can_run(core, family))
		return false;
	count = credit_admitted(core, family, places, &role);
	if (count == 0)
		return false;

	count = MIN(count, family->waiting);
	if (wants_ticket(core, family, places, role)) {
		role = LANE_TICKET;
		count = 1;
	}
	give(core, index, places, role, count);
	return true;
}

void
credit_warm(struct core *core, uint32_t index)
{
	struct family *family = &core->families[index];

	VERIFY(!core->recovering);
	VERIFY(family->waiting == 0);
	give(core, index, credit_shut_places(core, family), LANE_TICKET, 1);
	family->credit.asked = true;
	family_settle(core, index);
}
