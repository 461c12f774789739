#include "worker/core/agent_claim.h"

#include "common/codec/protocol_call.h"
#include "common/mark.h"
#include "worker/core/agent_call.h"

static bool
wants_to_ask(const struct agent *agent)
{
	return agent_state_is_willing(agent) && !agent->flights.has_wake &&
	       slot_first(&agent->slots, SLOT_QUEUE_FREE) != SLOT_NONE &&
	       (agent->wake_pending || agent->now_ms >= agent->poll_at_ms);
}

/* Adds free slots to a claim, as the one that asks for more work. */
static void
ask_into(struct agent *agent, struct flight *flight)
{
	struct slot_set *slots = &agent->slots;
	uint32_t index;

	flight->is_wake = true;
	agent->flights.has_wake = true;
	agent->wake_pending = false;
	while (flight->claims_count < AGENT_BATCH &&
	       (index = slot_first(slots, SLOT_QUEUE_FREE)) != SLOT_NONE) {
		struct slot *slot = &slots->slots[index];

		slot->lease_q = flight->q + flight->claims_count;
		flight->claims[flight->claims_count++] = index;
		slot_set(slots, index, SLOT_LEASE_ASKED, SLOT_RUN_IDLE);
	}
}

/* The shunned upstream whose one job is to be claimed now, or SHUN_NONE. */
static uint32_t
try_due(const struct agent *agent)
{
	return agent_state_is_willing(agent) ? shun_due(&agent->shuns, agent->now_ms)
	                                     : SHUN_NONE;
}

void
agent_claim_try(struct agent *agent, struct call_list *calls)
{
	struct slot_set *slots = &agent->slots;
	uint32_t index = slot_first(slots, SLOT_QUEUE_FREE);
	uint32_t shun = try_due(agent);
	struct flight *flight;

	if (shun == SHUN_NONE || index == SLOT_NONE)
		return;
	flight = agent_call_open(agent, calls, FLIGHT_CLAIM, TEXT_NAME_MAX);
	if (!flight)
		return;
	MARK(agent_tries_what_it_shuns);
	flight->q = agent->q_next++;
	flight->is_try = true;
	flight->shun = shun;
	flight->claims[flight->claims_count++] = index;
	slots->slots[index].lease_q = flight->q;
	slot_set(slots, index, SLOT_LEASE_ASKED, SLOT_RUN_IDLE);
	protocol_call_claim_of(calls, flight->tag, agent->config.ns, agent->session,
	                       flight->q, shun_upstream(&agent->shuns, shun), index);
	shun_try(&agent->shuns, agent->now_ms, shun);
}

/* How many of the slots that are over go into one call: a batch, as far as their results
 * fit. */
static uint32_t
count_settled(const struct agent *agent, const struct call_list *calls)
{
	const struct slot_set *slots = &agent->slots;
	uint32_t index = slot_first(slots, SLOT_QUEUE_SETTLE);
	uint32_t count = 0;
	size_t bytes = 0;

	while (index != SLOT_NONE && count < AGENT_BATCH) {
		const struct slot *slot = &slots->slots[index];

		bytes += agent_call_bytes(&agent->results.results[slot->result].outcome);
		if (!call_fits(calls, AGENT_CALL_ARGS,
		               (uint32_t)(AGENT_CALL_BYTES + bytes)) &&
		    (count > 0 || calls->call_count > 0))
			break;
		count++;
		index = slot->links[SLOT_CHAIN_CALLS].next;
	}
	return count;
}

/* Adds the slot that was over first to the call, and claims into it again if `claims`. */
static void
settle_slot(struct agent *agent, struct call_list *calls, struct flight *flight,
            bool claims)
{
	uint32_t index = slot_first(&agent->slots, SLOT_QUEUE_SETTLE);
	struct slot *slot = &agent->slots.slots[index];
	struct result *result = &agent->results.results[slot->result];
	struct protocol_settlement settlement = {
		.slot = index,
		.q = slot->lease_q,
		.usage = agent_call_usage(agent, result->outcome.usage),
		.delivery = agent_call_delivery(&result->outcome),
	};

	protocol_call_settle_job(calls, &settlement);
	flight->items[flight->items_count++] =
		(struct flight_item){ index, slot->result, slot->lease_q };
	result->attempt.doubtful = true;
	slot->next_q = 0;
	if (claims) {
		slot->next_q = flight->q + flight->claims_count;
		flight->claims[flight->claims_count++] = index;
	}
	slot_set(&agent->slots, index, SLOT_LEASE_SETTLING, SLOT_RUN_OVER);
}

bool
agent_claim_settle(struct agent *agent, struct call_list *calls)
{
	uint32_t count = count_settled(agent, calls);
	bool claims = agent_state_is_willing(agent);
	bool keeps_one = try_due(agent) != SHUN_NONE; /* else none is free for it */
	bool asks = wants_to_ask(agent),
	     is_short = agent->now_ms >= agent->names_until_ms;
	bool goes_on = claims && !keeps_one && !asks && is_short;
	struct flight *flight;

	if (slot_first(&agent->slots, SLOT_QUEUE_SETTLE) == SLOT_NONE ||
	    flight_is_full(&agent->flights))
		return false;
	if (count == 0) {
		agent->is_dirty = true;
		return false;
	}
	flight = flight_add(&agent->flights, FLIGHT_SETTLE, agent->now_ms);
	flight->q = agent->q_next;
	protocol_call_settle(calls, flight->tag, agent->config.ns, agent->session, count,
	                     goes_on);
	for (uint32_t i = 0; i < count; i++)
		settle_slot(agent, calls, flight, claims && !(keeps_one && i == 0));
	if (asks)
		ask_into(agent, flight);
	agent->q_next += flight->claims_count;
	protocol_call_claim_into(calls, flight->q, flight->claims,
	                         goes_on ? 0 : flight->claims_count);
	return true;
}

void
agent_claim_ask(struct agent *agent, struct call_list *calls)
{
	struct flight *flight = NULL;

	if (wants_to_ask(agent))
		flight = agent_call_open(agent, calls, FLIGHT_CLAIM, 0);
	if (!flight)
		return;
	flight->q = agent->q_next;
	ask_into(agent, flight);
	agent->q_next += flight->claims_count;
	protocol_call_claim(calls, flight->tag, agent->config.ns, agent->session,
	                    flight->q, flight->claims, flight->claims_count);
}
