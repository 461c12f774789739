#include "scheduler/core/recover.h"

#include "common/mark.h"
#include "scheduler/core/credit.h"
#include "scheduler/core/family.h"
#include "scheduler/core/state.h"

/* What happened while Redis was read, table after table, is in the event stream: a leader
 * may have been given back and taken again, and be in none of the tables.  So long nobody
 * is elected in its place. */
#define HEAR_MS 1000

void
recover_family(struct core *core, const struct event_admitted *admitted)
{
	uint32_t last = admitted->chain.count - 1, index;

	VERIFY(core->recovering);
	VERIFY(admitted->chain.count > 0);
	family_admit(core, admitted);
	index = family_find(core, admitted->chain.nodes[last].id);
	if (index == FAMILY_NONE)
		return;
	core->families[index].marks = admitted->marks & ((2u << last) - 1);
	core->families[index].marks_before = core->families[index].marks;
}

static bool
is_learned(enum lane_reason reason)
{
	return reason == LANE_REASON_UNCACHEABLE || reason == LANE_REASON_REFUSED ||
	       reason == LANE_REASON_UNKNOWN_USAGE;
}

/* Whether its gate says what was seen at an address to which nothing goes any more. */
static bool
is_of_elsewhere(const struct event_lane *event)
{
	return event->moved && (event->gate == LANE_OPEN || event->gate == LANE_BYPASS ||
	                        event->gate == LANE_LEAKY);
}

/* Brings a lane that gates to the state in which Redis has it. */
static void
restore_gate(struct core *core, uint32_t index, const struct event_lane *event)
{
	struct lane *lane = &core->lanes[index];

	VERIFY(core->recovering);
	VERIFY(event->gate <= LANE_GATE_COUNT);
	VERIFY(lane->gate == LANE_CLOSED);
	if (is_of_elsewhere(event)) {
		lane->suspect_ms = core->now_ms;
		return;
	}
	switch (event->gate) {
	case LANE_WRITING:
		lane_move(core, index, LANE_WRITING, LANE_REASON_NONE);
		break;
	case LANE_CHECKING:
		lane->first_ms = lane->ready_ms = core->now_ms;
		lane->until_ms = lane_warm_until(core, lane, core->now_ms);
		lane_move(core, index, LANE_CHECKING, LANE_REASON_NONE);
		break;
	case LANE_OPEN:
		if (event->until_ms <= core->now_ms)
			break;
		lane->until_ms =
			MIN(event->until_ms, lane_warm_until(core, lane, core->now_ms));
		lane_move(core, index, LANE_OPEN, LANE_REASON_NONE);
		break;
	case LANE_BYPASS:
		if (is_learned(event->reason))
			lane_move(core, index, LANE_BYPASS, event->reason);
		break;
	case LANE_LEAKY:
		lane_move(core, index, LANE_OPEN, LANE_REASON_NONE);
		lane_move(core, index, LANE_LEAKY, LANE_REASON_NEVER_READ);
		break;
	case LANE_CLOSED:
	case LANE_GATE_COUNT:
		break;
	}
}

/* A lane that nobody has granted yet has had no turn, and so has none to go on with. */
static uint32_t
rank_found(const struct event_lane *event)
{
	VERIFY(event->gate < LANE_GATE_COUNT);
	if (event->rank != POOL_RANK_NEVER)
		return MIN(event->rank, POOL_RANK_LAST);
	MARK(recover_finds_a_lane_never_granted);
	return POOL_RANK_LAST;
}

/* Redis keeps ranks that are no longer of use; a new one comes behind all of them. */
static void
pass_rank(struct core *core, uint32_t rank)
{
	VERIFY(core->recovering);
	VERIFY(core->rank_next < POOL_RANK_LAST);
	if (rank < POOL_RANK_FIRST)
		core->rank_overdue_next = MAX(core->rank_overdue_next, rank + 1);
	else if (rank < POOL_RANK_LAST)
		core->rank_next = MAX(core->rank_next, MIN(rank + 1, POOL_RANK_LAST - 1));
}

void
recover_lane(struct core *core, const struct event_lane *event)
{
	uint32_t index = lane_find(core, event->lane);
	struct family *family = NULL;
	struct lane *lane;

	VERIFY(core->recovering);
	if (index == LANE_NONE)
		return;
	lane = &core->lanes[index];
	if (lane->family != FAMILY_NONE)
		family = &core->families[lane->family];
	lane->g = event->g;
	lane->p = event->p;
	lane->granted = (struct lane_record){
		.gate = event->gate,
		.reason = event->reason,
		.window = event->window,
		.rank = event->rank,
		.p = event->p,
		.marks = family ? family->marks : 0,
		.until_ms = event->until_ms,
		.life_ms = event->life_ms,
	};
	pass_rank(core, event->rank);
	if (lane->gate == LANE_CLOSED)
		restore_gate(core, index, event);
	if (!family)
		return;
	family->running = event->in_use;
	family->rank = rank_found(event);
	family->marks_g = family->marks_before_g = event->g;
	if (event->credits > 0)
		credit_find(core, lane->family, event->role, event->g, event->credits, 0);
	if (event->ticket == LANE_TICKET_WANTED)
		credit_find(core, lane->family, LANE_TICKET, event->g, 1, 0);
}

void
recover_lease(struct core *core, const struct event_start *lease)
{
	uint32_t index = lane_find(core, lease->lane);

	VERIFY(core->recovering);
	VERIFY(lease->role < LANE_ROLE_COUNT);
	if (index == LANE_NONE || core->lanes[index].family == FAMILY_NONE)
		return;
	/* An older generation: its credit had been taken back while it ran.  Whether its
	 * first event was heard before the restart, nobody knows: it counts. */
	if (lease->g > core->lanes[index].g)
		return;
	if (lease->role == LANE_LEAD || lease->role == LANE_CANARY ||
	    lease->role == LANE_TICKET)
		credit_find(core, core->lanes[index].family, lease->role, lease->g, 0, 1);
}

/* Writings whose writer is gone begin anew, and so do checks without a reader. */
static void
end_orphan(struct core *core, uint32_t index)
{
	struct lane *lane = &core->lanes[index];

	VERIFY(core->recovering);
	if ((lane->gate != LANE_WRITING && lane->gate != LANE_CHECKING) ||
	    lane->unproven > 0)
		return;
	MARK(recover_finds_an_orphan);
	lane->ready_ms = MAX(lane->ready_ms, core->now_ms + HEAR_MS);
	if (lane->gate == LANE_WRITING)
		lane_move(core, index, LANE_CLOSED, LANE_REASON_NONE);
	lane_arm(core, index);
}

/* It is active still, or was drained and its tail runs: it goes on where it was. */
static bool
keeps_turn(const struct family *family)
{
	VERIFY(family->lanes_count > 0);
	if (family->flags & EVENT_FAMILY_PAUSED)
		return false;
	return family->waiting > 0 || family->credit.out > 0 ||
	       (family->running > 0 && family->gates != 0);
}

static void
settle(struct core *core, uint32_t index)
{
	struct family *family = &core->families[index];

	VERIFY(!core->recovering);
	if (!keeps_turn(family))
		family->rank = POOL_RANK_LAST;
	family_settle(core, index);
	if (family->waiting > 0)
		family_look(core, index);
}

static void
recover_credits(struct core *core, bool started_only)
{
	for (uint32_t i = 0; i < core->config.families_max; i++)
		if (core->families[i].lanes_count > 0)
			credit_recover(core, i, started_only);
}

void
recover_end(struct core *core)
{
	VERIFY(core->recovering);
	recover_credits(core, true);
	recover_credits(core, false);
	for (uint32_t i = 0; i < core->config.lanes_max; i++)
		if (core->lanes[i].below.count > 0)
			end_orphan(core, i);
	core->recovering = false;
	for (uint32_t i = 0; i < core->config.families_max; i++)
		if (core->families[i].lanes_count > 0)
			settle(core, i);
	for (uint32_t i = 0; i < core->config.lanes_max; i++)
		if (core->lanes[i].below.count > 0)
			lane_touch(core, i);
	for (uint32_t i = 0; i < core->pacers_count; i++) {
		core->pacers[i].dirty = true;
		pacer_arm(core, i);
	}
	pool_plan_all(core);
}
