#include "worker/core/agent_receive.h"

#include "common/codec/protocol_answer.h"
#include "common/mark.h"
#include "worker/core/agent_lease.h"

#define NAMES_MS 600000 /* until a refused settle is tried in its short form again */

/* The session is no more: nothing in Redis is ours, and nothing is asked of it again. */
static void
lose_session(struct agent *agent)
{
	MARK(agent_loses_its_session);
	agent_state_note(agent, AGENT_NOTE_GONE, 0, (struct span){ 0 });
	agent->has_session = false;
	agent->phase = AGENT_UP;
	agent->greet_at_ms = agent->now_ms;
	agent_lease_compare(agent, NULL);
}

static void
read_again(struct agent *agent)
{
	agent->attach_due = true;
	agent->is_dirty = true;
}

/* Nothing changed, but why is not known: pause, then trust the table. */
static void
pause_and_read(struct agent *agent)
{
	agent->greet_at_ms = agent->now_ms + agent->config.poll_ms;
	if (agent->phase == AGENT_LEAVING || agent->phase == AGENT_GREETING)
		agent->phase = AGENT_UP;
	read_again(agent);
}

/* It does not know `=N`, the short form of settle. */
static bool
is_of_older_library(struct span error)
{
	static const char words[] = "settle: count: ";

	return error.len > 0 && memmem(error.data, error.len, words, strlen(words));
}

/* Takes care of everything that is not an OK; answers whether it was one. */
static bool
is_ok(struct agent *agent, const struct flight *flight, const struct reply *reply)
{
	switch (protocol_answer_word(reply)) {
	case PROTOCOL_OK:
		agent->heard_ms = agent->now_ms;
		offset_sample(&agent->offset, flight->sent_ms, agent->now_ms,
		              protocol_answer_now_ms(reply));
		return true;
	case PROTOCOL_STALE:
		MARK(agent_speaks_on_an_old_connection);
		agent->close_due = true;
		agent->is_dirty = true;
		return false;
	case PROTOCOL_GONE:
		agent->heard_ms = agent->now_ms;
		lose_session(agent);
		return false;
	case PROTOCOL_REATTACH:
		read_again(agent);
		return false;
	case PROTOCOL_TOKEN: /* of a fail; its reader looks for it */
		return flight->kind == FLIGHT_FAIL;
	case PROTOCOL_MISSING:
	case PROTOCOL_LOADING:
		if (!agent->missing_told)
			agent_state_note(agent, AGENT_NOTE_MISSING, 0, reply_text(reply));
		agent->missing_told = true;
		if (flight->kind == FLIGHT_HELLO) /* so no session was made */
			agent->has_session = false;
		pause_and_read(agent);
		return false;
	case PROTOCOL_ERROR:
	case PROTOCOL_STRANGE:
	case PROTOCOL_EPOCH:
	case PROTOCOL_CURSOR:
	case PROTOCOL_NEED:
	case PROTOCOL_HELD:
		agent->late_is_refused |= flight->kind == FLIGHT_LATE;
		if (is_of_older_library(reply_text(reply)))
			agent->names_until_ms = agent->now_ms + NAMES_MS;
		agent_state_note(agent, AGENT_NOTE_ERROR, flight->kind,
		                 reply_text(reply));
		pause_and_read(agent);
		return false;
	}
	VERIFY(false);
}

static void
renew(struct agent *agent, const struct flight *flight)
{
	agent->renewed_ms = MAX(agent->renewed_ms, flight->sent_ms);
	agent->is_fenced = false;
	agent->is_dirty = true;
}

static void
greeted(struct agent *agent, const struct flight *flight, const struct reply *reply)
{
	uint64_t connection;

	if (protocol_answer_attach(reply, &connection) < 0) {
		agent_state_note(agent, AGENT_NOTE_ERROR, flight->kind,
		                 SPAN("a greeting that cannot be read"));
		pause_and_read(agent);
		return;
	}
	agent->session.connection = connection;
	agent->replaces = 0;
	agent->phase = AGENT_READY;
	agent->missing_told = false;
	renew(agent, flight);
	agent->beat_at_ms = agent->now_ms + agent->config.beat_ms;
	agent->poll_at_ms = agent->now_ms;
	agent->late_at_ms = agent->now_ms;
	if (flight->kind == FLIGHT_HELLO)
		agent->shuns_ever = shun_count(&agent->shuns) > 0;
	if (agent->shuns_ever)
		agent_state_tell_shuns(agent);
	if (flight->kind == FLIGHT_HELLO) {
		agent->stats.sessions++;
		agent_state_note(agent, AGENT_NOTE_SESSION, connection,
		                 (struct span){ 0 });
	} else {
		agent->stats.attaches++;
	}
	agent_lease_compare(agent, flight->kind == FLIGHT_ATTACH ? reply : NULL);
}

/* What people told it. */
static void
obey(struct agent *agent, uint64_t bits)
{
	bool is_quiet = bits & PROTOCOL_BEAT_QUIET;

	agent->is_dismissed |= (bits & PROTOCOL_BEAT_STOP) != 0;
	if (agent->is_quiet == is_quiet)
		return;
	agent->is_quiet = is_quiet;
	agent->poll_at_ms = agent->now_ms;
	agent_state_note(agent, AGENT_NOTE_QUIET, is_quiet, (struct span){ 0 });
}

/* Slots whose job ended by a cancel or a deadline. */
static void
beaten(struct agent *agent, const struct flight *flight, const struct reply *reply)
{
	renew(agent, flight);
	obey(agent, (uint64_t)MAX(reply_integer(reply_at(reply, 2), 0), 0));
	for (size_t i = 3; i < reply->count; i++) {
		int64_t slot = reply_integer(reply_at(reply, i), -1);

		if (slot < 0 || slot >= (int64_t)agent->slots.count)
			continue;
		if (agent->slots.slots[slot].lease != SLOT_LEASE_OURS)
			continue;
		MARK(agent_is_told_of_a_cancel);
		agent_state_note(agent, AGENT_NOTE_ENDED, (uint64_t)slot,
		                 (struct span){ 0 });
		if (agent->slots.slots[slot].run == SLOT_RUN_WAITING)
			agent_lease_leave(agent, (uint32_t)slot,
			                  agent->slots.slots[slot].lease_q, false);
		else
			agent_lease_stop(agent, (uint32_t)slot, SLOT_WHY_CANCELLED);
	}
}

static bool
is_refused(const struct protocol_claim *claim, uint32_t slot)
{
	struct span refused = claim->refused;
	struct protocol_problem problem;

	while (protocol_answer_refusal(&refused, &problem))
		if (problem.slot == slot)
			return true;
	return false;
}

/* Hands the elements of all runs to the slots asked for, in order. */
static uint32_t
take_runs(struct agent *agent, const struct flight *flight,
          const struct protocol_claim *claim)
{
	struct span runs = claim->runs, element;
	uint32_t next = 0, taken = 0;
	struct protocol_run run;
	bool is_sound;

	while (protocol_answer_run(&runs, &run, &is_sound)) {
		if (!is_sound) {
			agent_state_note(agent, AGENT_NOTE_ERROR, flight->kind,
			                 SPAN("a run that cannot be read"));
			read_again(agent);
			break;
		}
		while (protocol_answer_element(&run.elements, &element)) {
			while (next < flight->claims_count &&
			       is_refused(claim, flight->claims[next]))
				next++;
			if (next == flight->claims_count) {
				read_again(agent); /* more than asked for */
				return taken;
			}
			agent_lease_begin(agent, flight->claims[next], flight->q + next,
			                  &run, element);
			next++;
			taken++;
		}
	}
	return taken;
}

/* When to ask again: at once if everything asked for was given, else as told. */
static void
plan_poll(struct agent *agent, const struct flight *flight,
          const struct protocol_claim *claim, uint32_t taken)
{
	uint64_t sleep_ms = MIN(claim->sleep_ms, AGENT_SLEEP_MS_MAX);
	uint64_t poll_ms = agent->config.poll_ms;

	if (flight->claims_count > 0)
		agent->stats.claim_answered_ms = agent->now_ms;
	/* A slot that was settled and filled again says nothing about the others. */
	if (flight->claims_count == 0 ||
	    (!flight->is_wake && taken == flight->claims_count))
		return;
	if (taken == flight->claims_count || claim->sleep_ms == 0) {
		agent->poll_at_ms = agent->now_ms;
		return;
	}
	if (taken == 0)
		agent->stats.claims_empty++;
	/* Never all workers at the same instant. */
	if (sleep_ms >= poll_ms)
		sleep_ms = prng_between(&agent->prng, sleep_ms - sleep_ms / 4,
		                        sleep_ms + sleep_ms / 4);
	agent->poll_at_ms = agent->now_ms + sleep_ms;
}

static void
free_unfilled(struct agent *agent, const struct flight *flight,
              const struct protocol_claim *claim)
{
	for (uint32_t i = 0; i < flight->claims_count; i++) {
		uint32_t index = flight->claims[i];

		if (agent->slots.slots[index].lease != SLOT_LEASE_ASKED)
			continue;
		slot_set(&agent->slots, index, SLOT_LEASE_NONE, SLOT_RUN_IDLE);
	}
	if (claim->refused.len > 0)
		read_again(agent);
}

static void
claimed(struct agent *agent, const struct flight *flight,
        const struct protocol_claim *claim)
{
	uint32_t taken = take_runs(agent, flight, claim);

	free_unfilled(agent, flight, claim);
	if (flight->is_try)
		shun_tried(&agent->shuns, agent->now_ms, flight->shun, taken > 0,
		           claim->sleep_ms);
	else
		plan_poll(agent, flight, claim, taken);
}

/* The problem of a slot, or NULL. */
static const struct protocol_problem *
problem_of(const struct protocol_claim *claim, uint32_t slot,
           struct protocol_problem *problem)
{
	struct span problems = claim->problems;

	while (protocol_answer_problem(&problems, problem))
		if (problem->slot == slot)
			return problem;
	return NULL;
}

/* Whether the slot still waits for this answer.  Only a Redis that contradicts itself
 * makes it otherwise. */
static bool
is_settling(const struct agent *agent, const struct flight_item *item)
{
	const struct slot *slot = &agent->slots.slots[item->slot];

	return slot->lease == SLOT_LEASE_SETTLING && slot->lease_q == item->q;
}

static void
settle_slot(struct agent *agent, const struct protocol_claim *claim,
            const struct flight_item *item)
{
	struct protocol_problem memory;
	const struct protocol_problem *problem = problem_of(claim, item->slot, &memory);

	if (!is_settling(agent, item))
		return;
	if (!problem) {
		agent_lease_settled(agent, item->slot);
		agent->stats.settled++;
		return;
	}
	if (span_equals(problem->word, SPAN("ENDED"))) {
		MARK(agent_settles_what_has_ended);
		agent_lease_void(agent, item->slot);
		return;
	}
	agent->results.results[item->result].attempt.doubtful = false;
	agent_lease_lose(agent, item->slot);
	if (problem->held.len > 0)
		read_again(agent);
}

static void
settled(struct agent *agent, const struct flight *flight, const struct reply *reply)
{
	struct protocol_claim claim;

	if (protocol_answer_claim(reply, &claim) < 0) {
		agent_state_note(agent, AGENT_NOTE_ERROR, flight->kind,
		                 SPAN("a settle answered what cannot be read"));
		read_again(agent);
		return;
	}
	for (uint32_t i = 0; i < flight->items_count; i++)
		settle_slot(agent, &claim, &flight->items[i]);
	/* The slots are free now; those of a fused claim may be filled at once. */
	claimed(agent, flight, &claim);
}

static void
resent(struct agent *agent, const struct flight *flight, const struct reply *reply)
{
	const struct flight_item *item = &flight->items[0];
	struct result *result = &agent->results.results[item->result];
	struct protocol_problem problem;
	struct protocol_claim claim;

	if (result->list != RESULT_RESENT)
		return;
	result->in_flight = false;
	if (protocol_answer_claim(reply, &claim) < 0) {
		read_again(agent);
		return;
	}
	MARK(agent_settles_again_after_a_rollback);
	result->since_ms = agent->now_ms;
	if (problem_of(&claim, item->slot, &problem) &&
	    !span_equals(problem.word, SPAN("ENDED")))
		read_again(agent);
	result_move(&agent->results, item->result, RESULT_KEPT);
}

/* The place of a failed job is free, and no claim went along as with a settle.  Who is
 * refused or reaches nobody has no reason to hurry. */
static bool
leaves_a_place(enum agent_end end)
{
	return end != AGENT_DEFER && end != AGENT_UNSENT;
}

static void
failed(struct agent *agent, const struct flight *flight, const struct reply *reply)
{
	uint32_t index = flight->items[0].slot;
	const struct agent_outcome *outcome =
		&agent->results.results[flight->items[0].result].outcome;

	if (!is_settling(agent, &flight->items[0]))
		return;
	if (protocol_answer_word(reply) == PROTOCOL_TOKEN) {
		agent_lease_lose(agent, index);
		if (reply_text(reply_at(reply, 1)).len > 0)
			read_again(agent);
		return;
	}
	shun_pace(&agent->shuns, agent->now_ms, outcome->missed,
	          (uint64_t)MAX(reply_integer(reply_at(reply, 3), 0), 0));
	if (leaves_a_place(outcome->end))
		agent->poll_at_ms = MIN(agent->poll_at_ms, agent->now_ms);
	agent_lease_void(agent, index);
	agent->stats.failed++;
}

static void
released(struct agent *agent, const struct flight *flight, const struct reply *reply)
{
	struct protocol_problem problem;

	for (uint32_t i = 0; i < flight->items_count; i++) {
		uint32_t index = flight->items[i].slot;
		const struct slot *slot = &agent->slots.slots[index];

		if (slot->lease != SLOT_LEASE_RELEASING)
			continue;
		slot_set(&agent->slots, index, SLOT_LEASE_NONE, slot->run);
		agent->stats.released++;
	}
	for (size_t i = 0; protocol_answer_problem_next(reply, i, &problem); i++) {
		if (problem.held.len > 0)
			read_again(agent);
	}
}

static void
began(struct agent *agent, const struct flight *flight, const struct reply *reply)
{
	struct protocol_problem problem;

	for (uint32_t i = 0; i < flight->items_count; i++) {
		const struct flight_item *item = &flight->items[i];
		struct slot *slot = &agent->slots.slots[item->slot];

		if (slot->run_q == item->q)
			slot->begin_acked = true;
	}
	for (size_t i = 0; protocol_answer_problem_next(reply, i, &problem); i++) {
		if (problem.slot >= agent->slots.count)
			continue;
		if (span_equals(problem.word, SPAN("ENDED")))
			agent_lease_stop(agent, problem.slot, SLOT_WHY_CANCELLED);
		else
			read_again(agent);
	}
}

static void
settled_late(struct agent *agent, const struct flight *flight, const struct reply *reply)
{
	for (uint32_t i = 0; i < flight->items_count; i++) {
		uint32_t index = flight->items[i].result;
		struct result *result = &agent->results.results[index];
		bool is_accepted = reply_is(reply_at(reply, 2 + i), "OK");
		bool is_doubtful = result->attempt.doubtful;

		VERIFY(result->list == RESULT_LATE);
		agent_state_note(agent,
		                 is_accepted   ? AGENT_NOTE_ACCEPTED
		                 : is_doubtful ? AGENT_NOTE_REPEATED
		                               : AGENT_NOTE_REFUSED,
		                 result->outcome.handle,
		                 (struct span){ result->id, result->id_len });
		if (is_accepted) {
			MARK(agent_result_is_late_and_welcome);
			agent->stats.late_accepted++;
		} else if (!is_doubtful) {
			MARK(agent_result_is_late_and_refused);
			agent->stats.late_refused++;
		}
		agent->late_inherited -= result->is_inherited;
		result_move(&agent->results, index, RESULT_DROPPING);
	}
}

/* What was to be settled by a call that was refused as a whole is not, whatever has
 * become of its slot since: a beat before it may have said that the session is gone. */
static void
clear_doubt(struct agent *agent, const struct flight *flight)
{
	for (uint32_t i = 0; flight->kind == FLIGHT_SETTLE && i < flight->items_count;
	     i++) {
		const struct flight_item *item = &flight->items[i];
		struct result *result = &agent->results.results[item->result];

		if (result->slot == item->slot && result->q == item->q)
			result->attempt.doubtful = false;
	}
}

/* Only late results know nothing of the table. */
static void
refused(struct agent *agent, const struct flight *flight)
{
	if (flight->kind != FLIGHT_LATE)
		return;
	for (uint32_t i = 0; i < flight->items_count; i++)
		agent->results.results[flight->items[i].result].in_flight = false;
}

void
agent_receive(struct agent *agent, const struct flight *flight, const struct reply *reply)
{
	struct protocol_claim claim;

	agent->is_dirty = true;
	if (!is_ok(agent, flight, reply)) {
		clear_doubt(agent, flight);
		refused(agent, flight);
		return;
	}
	switch (flight->kind) {
	case FLIGHT_HELLO:
	case FLIGHT_ATTACH:
		greeted(agent, flight, reply);
		return;
	case FLIGHT_BEAT:
		beaten(agent, flight, reply);
		return;
	case FLIGHT_CLAIM:
		if (protocol_answer_claim(reply, &claim) < 0)
			read_again(agent);
		else
			claimed(agent, flight, &claim);
		return;
	case FLIGHT_SETTLE:
		settled(agent, flight, reply);
		return;
	case FLIGHT_RESEND:
		resent(agent, flight, reply);
		return;
	case FLIGHT_FAIL:
		failed(agent, flight, reply);
		return;
	case FLIGHT_RELEASE:
		released(agent, flight, reply);
		return;
	case FLIGHT_BEGIN:
		began(agent, flight, reply);
		return;
	case FLIGHT_LATE:
		settled_late(agent, flight, reply);
		return;
	case FLIGHT_BYE:
		agent->phase = AGENT_OVER;
		agent->has_session = false;
		return;
	case FLIGHT_KIND_COUNT:
		break;
	}
	VERIFY(false);
}
