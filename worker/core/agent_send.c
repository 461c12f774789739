#include "worker/core/agent_send.h"

#include "common/codec/protocol_call.h"
#include "worker/core/agent_call.h"
#include "worker/core/agent_claim.h"

#define LATE_MAX 40 /* results in one settle_late */

static uint64_t
draw_nonce(struct agent *agent)
{
	uint64_t nonce;

	do {
		nonce = prng_next(&agent->prng);
	} while (nonce == 0);
	return nonce;
}

static void
send_greeting(struct agent *agent, struct call_list *calls)
{
	const struct agent_config *config = &agent->config;
	enum flight_kind kind = agent->has_session ? FLIGHT_ATTACH : FLIGHT_HELLO;
	struct flight *flight = agent_call_open(agent, calls, kind, 0);
	struct protocol_hello hello;

	if (!flight)
		return;
	agent->phase = AGENT_GREETING;
	agent->attach_due = false;
	if (flight->kind == FLIGHT_ATTACH) {
		protocol_call_attach(calls, flight->tag, config->ns, agent->session.nonce,
		                     config->lease_ms);
		return;
	}
	agent->session = (struct protocol_session){ draw_nonce(agent), 0 };
	agent->has_session = true;
	agent->session_told = false;
	agent->renewed_ms = agent->now_ms;
	hello = (struct protocol_hello){
		.nonce = agent->session.nonce,
		.label = config->label,
		.pool = config->pool,
		.slots = config->slots,
		.budgets = config->budgets,
		.lease_ms = config->lease_ms,
		.replaces = agent->replaces,
		.job_ms = config->job_ms,
		.is_quiet = agent->is_quiet,
	};
	protocol_call_hello(calls, flight->tag, config->ns, &hello);
}

/* Every beat says it all, so that none that is lost has to be missed. */
static void
say_shuns(struct agent *agent, struct call_list *calls)
{
	char words[SHUN_WORDS_SIZE];
	size_t len = shun_print(&agent->shuns, words);

	if (len > 0 || !agent->shuns_told)
		call_word(calls, (struct span){ words, len });
	agent->shuns_told = true;
}

static bool
beat_is_due(const struct agent *agent)
{
	return agent->now_ms >= agent->beat_at_ms;
}

/* While a beat is due, calls that change the table are held back, so that the number of
 * busy slots is exact at the moment Redis runs it. */
static void
send_beat(struct agent *agent, struct call_list *calls)
{
	struct flight *flight;

	if (!beat_is_due(agent))
		return;
	if (flight_count(&agent->flights) > 0 &&
	    agent->now_ms < agent->beat_at_ms + AGENT_QUIET_MS)
		return;
	flight = agent_call_open(agent, calls, FLIGHT_BEAT, SHUN_WORDS_SIZE);
	if (!flight)
		return;
	protocol_call_beat(calls, flight->tag, agent->config.ns, agent->session,
	                   agent->slots.leased, agent->config.lease_ms);
	say_shuns(agent, calls);
	agent->beat_at_ms = agent->now_ms + agent->config.beat_ms;
}

static void
send_resent(struct agent *agent, struct call_list *calls)
{
	struct result_pool *pool = &agent->results;
	uint32_t index = result_first(pool, RESULT_RESENT);

	for (; index != RESULT_NONE; index = result_next(pool, index)) {
		struct result *result = &pool->results[index];
		struct protocol_settlement settlement;
		struct flight *flight;

		if (result->in_flight)
			continue;
		flight = agent_call_open(agent, calls, FLIGHT_RESEND,
		                         agent_call_bytes(&result->outcome));
		if (!flight)
			return;
		settlement = (struct protocol_settlement){
			.slot = result->slot,
			.q = result->q,
			.usage = agent_call_usage(agent, result->outcome.usage),
			.delivery = agent_call_delivery(&result->outcome),
		};
		protocol_call_settle(calls, flight->tag, agent->config.ns, agent->session,
		                     1, false);
		protocol_call_settle_job(calls, &settlement);
		protocol_call_claim_into(calls, agent->q_next, NULL, 0);
		flight->items[flight->items_count++] =
			(struct flight_item){ result->slot, index, result->q };
		result->in_flight = true;
	}
}

static void
send_releases(struct agent *agent, struct call_list *calls)
{
	struct slot_set *slots = &agent->slots;
	struct flight *flight;
	uint32_t index;

	if (slot_first(slots, SLOT_QUEUE_RELEASE) == SLOT_NONE)
		return;
	flight = agent_call_open(agent, calls, FLIGHT_RELEASE, 0);
	if (!flight)
		return;
	protocol_call_release(calls, flight->tag, agent->config.ns, agent->session);
	while (flight->items_count < AGENT_BATCH &&
	       (index = slot_first(slots, SLOT_QUEUE_RELEASE)) != SLOT_NONE) {
		struct slot *slot = &slots->slots[index];
		struct protocol_usage usage = agent_call_usage(agent, slot->leave_usage);

		protocol_call_release_slot(calls, index, slot->lease_q, slot->leave_sent,
		                           &usage);
		flight->items[flight->items_count++] =
			(struct flight_item){ index, RESULT_NONE, slot->lease_q };
		slot_set(slots, index, SLOT_LEASE_RELEASING, slot->run);
	}
	if (slot_first(slots, SLOT_QUEUE_RELEASE) != SLOT_NONE)
		agent->is_dirty = true;
}

static const char *
failure_kind(enum agent_end end)
{
	switch (end) {
	case AGENT_RETRY:
		return "retry";
	case AGENT_DEFER:
		return "defer";
	case AGENT_FATAL:
		return "fatal";
	case AGENT_MISSING:
		return "missing";
	case AGENT_UNSENT:
		return "unsent";
	case AGENT_DONE:
	case AGENT_UNFETCHED:
	case AGENT_STOPPED:
	case AGENT_END_COUNT:
		break;
	}
	VERIFY(false);
}

/* Doubles with every real failure, between 3/4 and all of it. */
static uint64_t
back_off_ms(struct agent *agent, const struct agent_outcome *outcome)
{
	uint32_t doublings = MIN(outcome->attempts, 16);
	uint64_t delay_ms = agent->config.retry_ms << doublings;

	if (outcome->end != AGENT_RETRY)
		return outcome->delay_ms;
	delay_ms = MIN(delay_ms, agent->config.retry_ms_max);
	delay_ms = prng_between(&agent->prng, delay_ms - delay_ms / 4, delay_ms);
	return MAX(delay_ms, outcome->delay_ms);
}

static void
send_fails(struct agent *agent, struct call_list *calls)
{
	struct slot_set *slots = &agent->slots;
	uint32_t index;

	while ((index = slot_first(slots, SLOT_QUEUE_FAIL)) != SLOT_NONE) {
		const struct slot *slot = &slots->slots[index];
		const struct agent_outcome *outcome =
			&agent->results.results[slot->result].outcome;
		struct protocol_failure failure;
		struct flight *flight;

		flight = agent_call_open(agent, calls, FLIGHT_FAIL,
		                         agent_call_bytes(outcome));
		if (!flight)
			return;
		failure = (struct protocol_failure){
			.slot = index,
			.q = slot->lease_q,
			.kind = failure_kind(outcome->end),
			.attempts_max = outcome->attempts_max,
			.delay_ms = back_off_ms(agent, outcome),
			.park_ms = outcome->park_ms,
			.reason = outcome->reason,
			.text = outcome->text,
			.usage = agent_call_usage(agent, outcome->usage),
			.delivery = agent_call_delivery(outcome),
		};
		protocol_call_fail(calls, flight->tag, agent->config.ns, agent->session,
		                   &failure);
		flight->items[flight->items_count++] =
			(struct flight_item){ index, slot->result, slot->lease_q };
		slot_set(slots, index, SLOT_LEASE_SETTLING, SLOT_RUN_OVER);
	}
}

static void
send_begins(struct agent *agent, struct call_list *calls)
{
	struct slot_set *slots = &agent->slots;
	struct flight *flight;
	uint32_t index;

	if (slot_first(slots, SLOT_QUEUE_BEGIN) == SLOT_NONE)
		return;
	flight = agent_call_open(agent, calls, FLIGHT_BEGIN, 0);
	if (!flight)
		return;
	protocol_call_begin(calls, flight->tag, agent->config.ns, agent->session);
	while (flight->items_count < AGENT_BATCH &&
	       (index = slot_first(slots, SLOT_QUEUE_BEGIN)) != SLOT_NONE) {
		struct slot *slot = &slots->slots[index];
		struct protocol_usage usage = agent_call_usage(agent, slot->begin_usage);

		protocol_call_begin_slot(calls, index, slot->lease_q, &usage);
		flight->items[flight->items_count++] =
			(struct flight_item){ index, RESULT_NONE, slot->lease_q };
		slot->begin_due = false;
		slot_file(slots, index);
	}
	if (slot_first(slots, SLOT_QUEUE_BEGIN) != SLOT_NONE)
		agent->is_dirty = true;
}

static bool
late_is_waiting(const struct agent *agent)
{
	uint32_t first = result_first(&agent->results, RESULT_LATE);

	return first != RESULT_NONE && !agent->results.results[first].in_flight;
}

/* Those of an earlier process at once: other workers are given their jobs meanwhile. */
static uint64_t
late_due_ms(const struct agent *agent)
{
	return agent->late_inherited > 0 ? 0 : agent->late_at_ms;
}

static void
send_late(struct agent *agent, struct call_list *calls)
{
	struct result_pool *pool = &agent->results;
	uint32_t index = result_first(pool, RESULT_LATE);
	struct flight *flight;

	if (!late_is_waiting(agent) || agent->now_ms < late_due_ms(agent))
		return;
	flight = agent_call_open(agent, calls, FLIGHT_LATE,
	                         agent_call_bytes(&pool->results[index].outcome));
	if (!flight)
		return;
	protocol_call_settle_late(calls, flight->tag, agent->config.ns,
	                          agent->phase == AGENT_UP ? agent->replaces : 0);
	for (; index != RESULT_NONE && flight->items_count < LATE_MAX;
	     index = result_next(pool, index)) {
		struct result *result = &pool->results[index];
		struct protocol_delivery delivery = agent_call_delivery(&result->outcome);
		size_t bytes = agent_call_bytes(&result->outcome);
		struct protocol_late late = result->attempt;

		if (!call_fits(calls, 8, (uint32_t)(bytes + AGENT_CALL_BYTES)))
			break;
		late.usage = agent_call_usage(agent, result->outcome.usage);
		protocol_call_settle_late_job(calls,
		                              (struct span){ result->id, result->id_len },
		                              &delivery, &late);
		flight->items[flight->items_count++] =
			(struct flight_item){ SLOT_NONE, index, 0 };
		result->in_flight = true;
	}
	agent->late_at_ms = agent->now_ms + agent->config.late_ms;
}

static bool
can_leave(const struct agent *agent)
{
	return agent->is_stopping && agent->slots.working == 0 &&
	       flight_count(&agent->flights) == 0 &&
	       result_first(&agent->results, RESULT_LATE) == RESULT_NONE &&
	       result_first(&agent->results, RESULT_RESENT) == RESULT_NONE;
}

static void
send_bye(struct agent *agent, struct call_list *calls)
{
	struct flight *flight;

	if (!can_leave(agent))
		return;
	flight = agent_call_open(agent, calls, FLIGHT_BYE, 0);
	if (!flight)
		return;
	protocol_call_bye(calls, flight->tag, agent->config.ns, agent->session);
	agent->phase = AGENT_LEAVING;
}

static bool
may_greet(const struct agent *agent)
{
	return agent->phase == AGENT_UP && flight_count(&agent->flights) == 0;
}

/* A greeting gives the predecessor's jobs away: what lies on disk is offered before. */
static bool
late_comes_first(const struct agent *agent)
{
	return agent->replaces != 0 && !agent->has_session && !agent->late_is_refused &&
	       (agent->late_inherited > 0 || agent->late_more);
}

void
agent_send_due(struct agent *agent, struct call_list *calls)
{
	if (agent->phase == AGENT_READY && agent->attach_due)
		agent->phase = AGENT_UP;
	if (may_greet(agent) && agent->now_ms >= agent->greet_at_ms) {
		if (late_comes_first(agent))
			send_late(agent, calls);
		else
			send_greeting(agent, calls);
	}
	if (agent->phase != AGENT_READY)
		return;

	send_beat(agent, calls);
	if (beat_is_due(agent))
		return;
	send_resent(agent, calls);
	send_releases(agent, calls);
	send_fails(agent, calls);
	send_begins(agent, calls);
	agent_claim_try(agent, calls);
	send_late(agent, calls); /* before a claim takes the very jobs they are of */
	while (agent_claim_settle(agent, calls))
		;
	agent_claim_ask(agent, calls);
	send_bye(agent, calls);
}

uint64_t
agent_send_deadline(const struct agent *agent)
{
	uint64_t deadline = AGENT_DEADLINE_NONE;

	if (may_greet(agent)) /* or the shell has to say what else there is */
		return late_comes_first(agent) && !late_is_waiting(agent)
		               ? deadline
		               : agent->greet_at_ms;
	if (agent->phase != AGENT_READY)
		return deadline;
	if (beat_is_due(agent))
		return flight_is_full(&agent->flights)
		               ? deadline
		               : agent->beat_at_ms + AGENT_QUIET_MS;
	deadline = agent->beat_at_ms;
	if (agent_state_is_willing(agent) && !agent->flights.has_wake &&
	    slot_first(&agent->slots, SLOT_QUEUE_FREE) != SLOT_NONE &&
	    !flight_is_full(&agent->flights))
		deadline = MIN(deadline, agent->wake_pending ? 0 : agent->poll_at_ms);
	if (agent_state_is_willing(agent) && !flight_is_full(&agent->flights) &&
	    slot_first(&agent->slots, SLOT_QUEUE_FREE) != SLOT_NONE)
		deadline = MIN(deadline, shun_due_ms(&agent->shuns));
	if (late_is_waiting(agent) && !flight_is_full(&agent->flights))
		deadline = MIN(deadline, late_due_ms(agent));
	return deadline;
}
