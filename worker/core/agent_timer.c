#include "worker/core/agent_timer.h"

#include "common/mark.h"
#include "worker/core/agent_lease.h"

static void
check_calls(struct agent *agent)
{
	const struct flight *head = flight_head(&agent->flights);

	if (!head || agent->now_ms < head->sent_ms + agent->config.call_ms)
		return;
	agent->stats.timeouts++;
	agent_state_note(agent, AGENT_NOTE_TIMEOUT, agent->now_ms - head->sent_ms,
	                 (struct span){ 0 });
	agent->close_due = true;
}

static uint64_t
fence_at_ms(const struct agent *agent)
{
	if (agent->is_fenced || !agent->has_session)
		return AGENT_DEADLINE_NONE;
	return agent->renewed_ms + agent->config.lease_ms - agent->config.margin_ms;
}

static void
check_fence(struct agent *agent)
{
	if (agent->now_ms < fence_at_ms(agent))
		return;
	MARK(agent_is_fenced);
	agent->is_fenced = true;
	agent->stats.fenced++;
	agent_state_note(agent, AGENT_NOTE_FENCED, agent->now_ms - agent->renewed_ms,
	                 (struct span){ 0 });
	agent_lease_fence(agent);
}

static void
check_leaders(struct agent *agent)
{
	uint32_t index;

	while ((index = heap_peek(&agent->leaders)) != HEAP_NONE &&
	       heap_key(&agent->leaders, index) <= agent->now_ms) {
		const struct slot *slot = &agent->slots.slots[index];

		(void)heap_remove(&agent->leaders, index);
		if (slot->run == SLOT_RUN_WAITING) {
			agent_lease_leave(agent, index, slot->lease_q, false);
			continue;
		}
		/* Being slow again and again is how it is, not a fault to wait out. */
		if (!slot_is_ticket(slot) && slot->deliveries >= AGENT_SLOW_MAX) {
			MARK(agent_lets_a_slow_leader_run);
			continue;
		}
		agent_state_note(agent, AGENT_NOTE_SLOW, index, (struct span){ 0 });
		agent_lease_stop(agent, index, SLOT_WHY_SLOW);
	}
}

static void
check_drain(struct agent *agent)
{
	if (!agent->is_stopping || agent->is_drained ||
	    agent->now_ms < agent->drain_until_ms)
		return;
	agent->is_drained = true;
	for (uint32_t i = 0; i < agent->slots.count; i++)
		agent_lease_stop(agent, i, SLOT_WHY_DRAINED);
}

/* Two calls' time after the drain we go, whatever is left. */
static uint64_t
finish_at_ms(const struct agent *agent)
{
	if (!agent->is_stopping || agent->phase == AGENT_OVER)
		return AGENT_DEADLINE_NONE;
	return agent->drain_until_ms + 2 * agent->config.call_ms;
}

static bool
has_nothing(const struct agent *agent)
{
	return agent->slots.working == 0 &&
	       result_first(&agent->results, RESULT_LATE) == RESULT_NONE;
}

static bool
is_on_disk(const struct agent *agent, enum result_list list)
{
	uint32_t index = result_first(&agent->results, list);

	for (; index != RESULT_NONE; index = result_next(&agent->results, index)) {
		const struct result *result = &agent->results.results[index];

		if (result_is_paid(result) && !result->is_on_disk)
			return false;
	}
	return true;
}

/* When it may go without a word to Redis: nothing is lost by it.  The next process there
 * delivers what is on disk, and gives the leases back. */
static uint64_t
leave_at_ms(const struct agent *agent)
{
	if (!agent->is_stopping || agent->phase == AGENT_READY ||
	    agent->phase == AGENT_LEAVING || agent->phase == AGENT_OVER ||
	    agent->slots.running > 0 || !is_on_disk(agent, RESULT_FRESH) ||
	    !is_on_disk(agent, RESULT_LATE))
		return AGENT_DEADLINE_NONE;
	if (agent->is_drained && agent->phase == AGENT_DOWN)
		return agent->now_ms;
	return agent->heard_ms + agent->config.call_ms;
}

static void
check_finish(struct agent *agent)
{
	if (!agent->is_stopping || agent->phase == AGENT_OVER)
		return;
	if (agent->now_ms >= finish_at_ms(agent) || agent->now_ms >= leave_at_ms(agent) ||
	    (!agent->has_session && has_nothing(agent))) {
		agent->phase = AGENT_OVER;
		flight_clear(&agent->flights);
	}
}

static uint64_t
kept_ends_ms(const struct agent *agent)
{
	uint32_t first = result_first(&agent->results, RESULT_KEPT);

	if (first == RESULT_NONE)
		return AGENT_DEADLINE_NONE;
	return agent->results.results[first].since_ms + agent->config.kept_ms;
}

/* Nobody is left to send them again once the session is over. */
static void
check_kept(struct agent *agent)
{
	while (result_first(&agent->results, RESULT_KEPT) != RESULT_NONE &&
	       (agent->now_ms >= kept_ends_ms(agent) || agent->phase == AGENT_OVER))
		result_move(&agent->results, result_first(&agent->results, RESULT_KEPT),
		            RESULT_DROPPING);
}

void
agent_timer_run(struct agent *agent)
{
	check_calls(agent);
	check_fence(agent);
	check_leaders(agent);
	check_drain(agent);
	check_finish(agent);
	check_kept(agent);
}

uint64_t
agent_timer_deadline(const struct agent *agent)
{
	const struct flight *head = flight_head(&agent->flights);
	uint32_t leader = heap_peek(&agent->leaders);
	uint64_t deadline = AGENT_DEADLINE_NONE;

	if (head)
		deadline = head->sent_ms + agent->config.call_ms;
	if (leader != HEAP_NONE)
		deadline = MIN(deadline, heap_key(&agent->leaders, leader));
	if (agent->is_stopping && !agent->is_drained)
		deadline = MIN(deadline, agent->drain_until_ms);
	deadline = MIN(deadline, fence_at_ms(agent));
	deadline = MIN(deadline, finish_at_ms(agent));
	deadline = MIN(deadline, leave_at_ms(agent));
	return MIN(deadline, kept_ends_ms(agent));
}
