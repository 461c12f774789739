#include "worker/core/agent_lease.h"

#include "common/mark.h"

static void
drop(struct agent *agent, uint32_t index)
{
	result_move(&agent->results, index, RESULT_DROPPING);
	agent->is_dirty = true;
}

/* Keeps an acknowledged result for as long as a rollback may bring its lease back. */
static void
keep(struct agent *agent, uint32_t index)
{
	struct result_pool *pool = &agent->results;

	if (pool->results[index].outcome.end != AGENT_DONE) {
		drop(agent, index);
		return;
	}
	pool->results[index].since_ms = agent->now_ms;
	result_move(pool, index, RESULT_KEPT);
	while (pool->lists[RESULT_KEPT].count > agent->config.kept_max ||
	       pool->kept_bytes > AGENT_KEPT_SIZE_MAX)
		drop(agent, result_first(pool, RESULT_KEPT));
}

/* Offers a paid result late, if there is anybody to want it. */
static void
offer_late(struct agent *agent, uint32_t index)
{
	struct result *result = &agent->results.results[index];

	if (result->outcome.end != AGENT_DONE || result->id_len == 0) {
		drop(agent, index);
		return;
	}
	result->in_flight = false;
	result_move(&agent->results, index, RESULT_LATE);
	agent->is_dirty = true;
}

static void
forget_run(struct agent *agent, uint32_t index, enum slot_lease lease)
{
	(void)heap_remove(&agent->leaders, index);
	slot_wipe(&agent->slots.slots[index]);
	slot_set(&agent->slots, index, lease, SLOT_RUN_IDLE);
	agent->is_dirty = true;
}

static void
copy_element(struct slot *slot, struct span element, bool *ret_is_sound)
{
	struct protocol_element parsed;
	struct protocol_lane_id lane;
	uint64_t generation;

	*ret_is_sound = true;
	slot->slim = false;
	if (protocol_parse_element(element, &parsed) == 0) {
		slot->slim = parsed.slim;
		slot->id_len = (uint32_t)protocol_print_job_id(parsed.id, slot->id);
		return;
	}
	if (protocol_parse_ticket(element, &lane, &generation) == 0) {
		slot->id_len =
			(uint32_t)protocol_print_ticket(lane, generation, slot->id);
		return;
	}
	*ret_is_sound = false;
	slot->id_len = 0;
}

void
agent_lease_begin(struct agent *agent, uint32_t index, uint64_t q,
                  const struct protocol_run *run, struct span element)
{
	struct slot *slot = &agent->slots.slots[index];
	bool is_sound;

	slot_wipe(slot);
	slot->lease_q = q;
	slot->run_q = q;
	slot->lane = run->lane;
	slot->family = run->family;
	slot->role = run->role;
	slot->marks = run->marks;
	slot->tokens = run->tokens;
	slot->begin = run->begin;
	copy_element(slot, element, &is_sound);
	if (!is_sound || run->px.len > sizeof slot->px) {
		agent_state_note(agent, AGENT_NOTE_ERROR, index,
		                 SPAN("a claim answered what cannot be run"));
		agent_lease_leave(agent, index, q, false);
		return;
	}
	memcpy(slot->px, run->px.data ? run->px.data : "", run->px.len);
	slot->px_len = (uint32_t)run->px.len;
	if (run->leader_ms > 0)
		heap_put(&agent->leaders, index, agent->now_ms + run->leader_ms);
	slot_set(&agent->slots, index, SLOT_LEASE_OURS, SLOT_RUN_WAITING);
	agent->stats.claimed++;
	agent->is_dirty = true;
}

void
agent_lease_leave(struct agent *agent, uint32_t index, uint64_t q, bool was_sent)
{
	struct slot *slot = &agent->slots.slots[index];

	slot->lease_q = q;
	slot->leave_sent = was_sent;
	slot->leave_usage = protocol_usage_none();
	if (slot->run == SLOT_RUN_WAITING) {
		(void)heap_remove(&agent->leaders, index);
		slot_wipe(slot);
		slot_set(&agent->slots, index, SLOT_LEASE_LEAVING, SLOT_RUN_IDLE);
	} else {
		slot_set(&agent->slots, index, SLOT_LEASE_LEAVING, slot->run);
	}
	agent->is_dirty = true;
}

void
agent_lease_lose(struct agent *agent, uint32_t index)
{
	struct slot *slot = &agent->slots.slots[index];

	switch (slot->run) {
	case SLOT_RUN_IDLE:
	case SLOT_RUN_WAITING:
		forget_run(agent, index, SLOT_LEASE_NONE);
		return;
	case SLOT_RUN_LOADING:
	case SLOT_RUN_RUNNING:
		slot_set(&agent->slots, index, SLOT_LEASE_NONE, slot->run);
		(void)heap_remove(&agent->leaders, index);
		if (!slot->was_sent || slot_is_ticket(slot)) {
			agent_lease_stop(agent, index, SLOT_WHY_LOST);
			return;
		}
		agent->stats.orphans++;
		agent_state_note(agent, AGENT_NOTE_ORPHAN, index, (struct span){ 0 });
		return;
	case SLOT_RUN_STOPPING:
	case SLOT_RUN_STOPPED:
		slot_set(&agent->slots, index, SLOT_LEASE_NONE, slot->run);
		return;
	case SLOT_RUN_OVER:
		offer_late(agent, slot->result);
		forget_run(agent, index, SLOT_LEASE_NONE);
		return;
	}
}

void
agent_lease_settled(struct agent *agent, uint32_t index)
{
	struct slot *slot = &agent->slots.slots[index];

	VERIFY(slot->run == SLOT_RUN_OVER);
	keep(agent, slot->result);
	forget_run(agent, index, SLOT_LEASE_NONE);
}

void
agent_lease_void(struct agent *agent, uint32_t index)
{
	struct slot *slot = &agent->slots.slots[index];

	VERIFY(slot->run == SLOT_RUN_OVER);
	drop(agent, slot->result);
	forget_run(agent, index, SLOT_LEASE_NONE);
}

void
agent_lease_stop(struct agent *agent, uint32_t index, enum slot_why why)
{
	struct slot *slot = &agent->slots.slots[index];

	if (slot->run != SLOT_RUN_LOADING && slot->run != SLOT_RUN_RUNNING)
		return;
	slot->why = why;
	(void)heap_remove(&agent->leaders, index);
	slot_set(&agent->slots, index, slot->lease, SLOT_RUN_STOPPING);
	agent->is_dirty = true;
}

/* A slow leader of a warm-up tells the scheduler; a job is only handed back: it has done
 * nothing wrong, and no attempt of it may be lost to caching. */
static void
end_stopped(struct agent *agent, uint32_t index, const struct agent_outcome *outcome)
{
	struct slot *slot = &agent->slots.slots[index];
	uint64_t q = slot->run_q;
	bool was_sent = slot->was_sent;
	bool is_slow_ticket = slot->why == SLOT_WHY_SLOW && slot_is_ticket(slot);
	uint32_t result;

	if (slot->lease != SLOT_LEASE_OURS) {
		forget_run(agent, index, slot->lease);
		return;
	}
	if (!is_slow_ticket) {
		forget_run(agent, index, SLOT_LEASE_NONE);
		agent_lease_leave(agent, index, q, was_sent);
		slot->leave_usage = outcome->usage;
		return;
	}
	MARK(agent_stops_a_slow_warm_up);
	result = result_take(&agent->results, RESULT_FRESH);
	agent->results.results[result].slot = index;
	agent->results.results[result].q = q;
	agent->results.results[result].since_ms = agent->now_ms;
	agent->results.results[result].outcome = (struct agent_outcome){
		.end = AGENT_RETRY,
		.attempts_max = 1,
		.reason = SPAN("leader_timeout"),
		.usage = outcome->usage,
	};
	slot->end = AGENT_RETRY;
	slot->result = result;
	slot_set(&agent->slots, index, SLOT_LEASE_OURS, SLOT_RUN_OVER);
}

static uint32_t
take_result(struct agent *agent, uint32_t index, const struct agent_outcome *outcome)
{
	const struct slot *slot = &agent->slots.slots[index];
	uint32_t taken = result_take(&agent->results, RESULT_FRESH);
	struct result *result = &agent->results.results[taken];

	result->slot = index;
	result->q = slot->run_q;
	result->since_ms = agent->now_ms;
	result->outcome = *outcome;
	result->attempt = (struct protocol_late){
		.known = true,
		.lane = slot->lane,
		.family = slot->family,
		.role = slot->role,
		.nonce = agent->session.nonce,
		.q = slot->run_q,
	};
	if (!slot_is_ticket(slot)) {
		VERIFY(slot->id_len <= sizeof result->id);
		memcpy(result->id, slot->id, slot->id_len);
		result->id_len = slot->id_len;
	}
	return taken;
}

void
agent_lease_ended(struct agent *agent, uint32_t index,
                  const struct agent_outcome *outcome)
{
	struct slot *slot = &agent->slots.slots[index];
	uint32_t result;

	(void)heap_remove(&agent->leaders, index);
	agent->is_dirty = true;
	if (outcome->end == AGENT_STOPPED) {
		VERIFY(outcome->handle == 0);
		end_stopped(agent, index, outcome);
		return;
	}
	if (outcome->end == AGENT_UNFETCHED) {
		VERIFY(outcome->handle == 0);
		if (slot->lease == SLOT_LEASE_OURS && !agent->is_stopping &&
		    slot->run == SLOT_RUN_LOADING)
			slot_set(&agent->slots, index, SLOT_LEASE_OURS, SLOT_RUN_WAITING);
		else
			end_stopped(agent, index, outcome);
		return;
	}

	result = take_result(agent, index, outcome);
	if (slot->lease != SLOT_LEASE_OURS) {
		offer_late(agent, result);
		forget_run(agent, index, slot->lease);
		return;
	}
	slot->result = result;
	slot->end = outcome->end;
	slot->begin_due = false;
	slot_set(&agent->slots, index, SLOT_LEASE_OURS, SLOT_RUN_OVER);
}

void
agent_lease_fence(struct agent *agent)
{
	for (uint32_t i = 0; i < agent->slots.count; i++) {
		if (slot_must_be_alone(&agent->slots.slots[i]))
			agent_lease_stop(agent, i, SLOT_WHY_FENCED);
	}
}

/* What the table holds and nobody here runs: a settled result that a rollback undid is
 * sent again, everything else is handed back. */
static void
take_foreign(struct agent *agent, uint32_t index, uint64_t q, bool was_sent)
{
	uint32_t kept = result_find_kept(&agent->results, index, q);

	if (kept != RESULT_NONE) {
		struct result *result = &agent->results.results[kept];

		result->in_flight = false;
		result_move(&agent->results, kept, RESULT_RESENT);
		agent->stats.resent++;
		agent_state_note(agent, AGENT_NOTE_RESENT, index,
		                 (struct span){ result->id, result->id_len });
		return;
	}
	MARK(agent_holds_what_it_does_not_know);
	agent->stats.unknown++;
	agent_state_note(agent, AGENT_NOTE_UNKNOWN, index, (struct span){ 0 });
	agent_lease_leave(agent, index, q, was_sent);
}

/* The reply of its settle was lost: the table says whether it was applied. */
static void
compare_settling(struct agent *agent, uint32_t index, uint64_t held_q)
{
	struct slot *slot = &agent->slots.slots[index];
	uint64_t next_q = slot->next_q;

	if (held_q == slot->lease_q) { /* not applied */
		MARK(agent_settle_was_not_applied);
		slot->next_q = 0;
		slot_set(&agent->slots, index, SLOT_LEASE_OURS, SLOT_RUN_OVER);
		return;
	}
	if (held_q != 0 && held_q == next_q) { /* applied, and the claim too */
		MARK(agent_settle_was_applied_with_its_claim);
		agent_lease_settled(agent, index);
		take_foreign(agent, index, held_q, false);
		return;
	}
	MARK(agent_settle_is_in_doubt);
	/* Applied, or undone together with its claim: settle_late knows. */
	agent_lease_lose(agent, index);
	if (held_q != 0)
		take_foreign(agent, index, held_q, true);
}

/* `held_q` 0: the table holds nothing in this slot. */
static void
compare_slot(struct agent *agent, uint32_t index, uint64_t held_q)
{
	struct slot *slot = &agent->slots.slots[index];
	uint64_t known_q = slot->lease_q;
	enum slot_lease lease = slot->lease;

	switch (lease) {
	case SLOT_LEASE_NONE:
		break;
	case SLOT_LEASE_ASKED:
		slot_set(&agent->slots, index, SLOT_LEASE_NONE, SLOT_RUN_IDLE);
		break;
	case SLOT_LEASE_SETTLING:
		compare_settling(agent, index, held_q);
		return;
	case SLOT_LEASE_OURS:
		if (held_q == known_q) {
			slot->begin_due =
				slot->begin && slot->has_begun && !slot->begin_acked;
			slot_file(&agent->slots, index);
			return;
		}
		agent_lease_lose(agent, index);
		break;
	case SLOT_LEASE_LEAVING:
	case SLOT_LEASE_RELEASING:
		if (held_q == known_q) {
			slot_set(&agent->slots, index, SLOT_LEASE_LEAVING, slot->run);
			return;
		}
		slot_set(&agent->slots, index, SLOT_LEASE_NONE, slot->run);
		break;
	}
	if (held_q != 0)
		take_foreign(agent, index, held_q,
		             lease != SLOT_LEASE_ASKED || held_q != known_q);
}

void
agent_lease_compare(struct agent *agent, const struct reply *attached)
{
	uint32_t result = result_first(&agent->results, RESULT_RESENT);

	/* Re-sent ones that were not acknowledged: the table decides anew. */
	while (result != RESULT_NONE) {
		uint32_t next = result_next(&agent->results, result);

		result_move(&agent->results, result, RESULT_KEPT);
		result = next;
	}
	for (uint32_t i = 0; i < agent->slots.count; i++)
		agent->slots.slots[i].table_q = 0;
	for (size_t i = 0; attached; i++) {
		struct protocol_lease lease;
		uint32_t slot;

		if (!protocol_answer_slot(attached, i, &slot, &lease))
			break;
		if (slot < agent->slots.count)
			agent->slots.slots[slot].table_q = lease.q;
	}
	for (uint32_t i = 0; i < agent->slots.count; i++)
		compare_slot(agent, i, agent->slots.slots[i].table_q);
	agent->is_dirty = true;
}
