#include "worker/core/agent_command.h"

/* The next free command, or NULL with the rest left for another step. */
static struct agent_command *
add_command(struct agent *agent, struct agent_output *out, enum agent_command_kind kind)
{
	struct agent_command *command;

	if (out->commands_count == out->commands_max) {
		agent->is_dirty = true;
		return NULL;
	}
	command = &out->commands[out->commands_count++];
	*command = (struct agent_command){ .kind = kind };
	return command;
}

static void
say_notes(struct agent *agent, struct agent_output *out)
{
	while (agent->notes_count > 0) {
		const struct agent_note_entry *entry = &agent->notes[agent->notes_first];
		struct agent_command *command = add_command(agent, out, AGENT_NOTE);

		if (!command)
			return;
		command->note = entry->note;
		command->number = entry->number;
		command->text = (struct span){ entry->text, entry->text_len };
		agent->notes_first = (agent->notes_first + 1) % AGENT_NOTES_MAX;
		agent->notes_count--;
	}
}

static void
say_drops(struct agent *agent, struct agent_output *out)
{
	uint32_t index;

	while ((index = result_first(&agent->results, RESULT_DROPPING)) != RESULT_NONE) {
		uint64_t handle = agent->results.results[index].outcome.handle;
		struct agent_command *command = NULL;

		if (handle != 0) {
			command = add_command(agent, out, AGENT_DROP);
			if (!command)
				return;
			command->handle = handle;
		}
		result_move(&agent->results, index, RESULT_FREE);
	}
}

static bool
spool_list(struct agent *agent, struct agent_output *out, enum result_list list)
{
	uint32_t index = result_first(&agent->results, list);
	bool in_haste = agent->is_stopping && agent->phase != AGENT_READY;

	for (; index != RESULT_NONE; index = result_next(&agent->results, index)) {
		struct result *result = &agent->results.results[index];
		struct agent_command *command;

		if (!in_haste && agent->now_ms < result->since_ms + AGENT_SPOOL_MS)
			break; /* the others are younger */
		if (result->is_spooled || agent->now_ms < result->spool_at_ms ||
		    !result_is_paid(result))
			continue;
		command = add_command(agent, out, AGENT_SPOOL);
		if (!command)
			return false;
		command->handle = result->outcome.handle;
		command->text = (struct span){ result->id, result->id_len };
		result->is_spooled = true;
	}
	return true;
}

static bool
has_undelivered(const struct agent *agent)
{
	return result_first(&agent->results, RESULT_FRESH) != RESULT_NONE ||
	       result_first(&agent->results, RESULT_LATE) != RESULT_NONE;
}

/* Paid results must not die with the process while Redis does not take them. */
static void
say_spools(struct agent *agent, struct agent_output *out)
{
	bool in_haste = agent->is_stopping && agent->phase != AGENT_READY;

	if (!has_undelivered(agent) || (agent->now_ms < agent->spool_at_ms && !in_haste))
		return;
	if (spool_list(agent, out, RESULT_FRESH) && spool_list(agent, out, RESULT_LATE))
		agent->spool_at_ms = agent->now_ms + AGENT_SPOOL_MS / 4;
}

static void
fill_job(struct agent *agent, uint32_t index, struct agent_job *job)
{
	const struct slot *slot = &agent->slots.slots[index];

	*job = (struct agent_job){
		.slot = index,
		.q = slot->run_q,
		.id = { slot->id, slot->id_len },
		.px = { slot->px, slot->px_len },
		.lane = slot->lane,
		.family = slot->family,
		.role = slot->role,
		.marks = slot->marks,
		.tokens = slot->tokens,
		.slim = slot->slim,
		.begin = slot->begin,
	};
}

/* One start per step would do, but steps cost: as many as there is room for jobs. */
static void
say_starts(struct agent *agent, struct agent_output *out)
{
	uint32_t count = 0, index;

	if (agent->phase != AGENT_READY || agent->is_fenced || agent->attach_due)
		return;
	while ((index = slot_first(&agent->slots, SLOT_QUEUE_START)) != SLOT_NONE) {
		struct agent_command *command;

		if (count == ARRAY_SIZE(agent->jobs)) {
			agent->is_dirty = true;
			return;
		}
		command = add_command(agent, out, AGENT_START);
		if (!command)
			return;
		fill_job(agent, index, &agent->jobs[count]);
		command->slot = index;
		command->q = agent->slots.slots[index].run_q;
		command->job = &agent->jobs[count++];
		slot_set(&agent->slots, index, SLOT_LEASE_OURS, SLOT_RUN_LOADING);
	}
}

static void
say_aborts(struct agent *agent, struct agent_output *out)
{
	uint32_t index;

	while ((index = slot_first(&agent->slots, SLOT_QUEUE_ABORT)) != SLOT_NONE) {
		struct agent_command *command = add_command(agent, out, AGENT_ABORT);
		const struct slot *slot = &agent->slots.slots[index];

		if (!command)
			return;
		command->slot = index;
		command->q = slot->run_q;
		slot_set(&agent->slots, index, slot->lease, SLOT_RUN_STOPPED);
	}
}

static void
say_session(struct agent *agent, struct agent_output *out)
{
	struct agent_command *command;

	if (agent->session_told || !agent->has_session)
		return;
	command = add_command(agent, out, AGENT_SESSION);
	if (!command)
		return;
	command->number = agent->session.nonce;
	agent->session_told = true;
}

static void
say_dismissed(struct agent *agent, struct agent_output *out)
{
	if (agent->is_dismissed && !agent->dismissed_told &&
	    add_command(agent, out, AGENT_DISMISSED))
		agent->dismissed_told = true;
}

static void
say_finished(struct agent *agent, struct agent_output *out)
{
	if (agent->phase != AGENT_OVER || agent->is_finished || agent->is_dirty)
		return;
	if (add_command(agent, out, AGENT_FINISHED))
		agent->is_finished = true;
}

void
agent_command_close(struct agent *agent, struct agent_output *out)
{
	VERIFY(out->commands_count == 0);
	(void)add_command(agent, out, AGENT_CLOSE);
}

void
agent_command_due(struct agent *agent, struct agent_output *out)
{
	say_session(agent, out);
	say_aborts(agent, out);
	say_starts(agent, out);
	say_spools(agent, out);
	say_drops(agent, out);
	say_notes(agent, out);
	say_dismissed(agent, out);
	say_finished(agent, out);
}

uint64_t
agent_command_deadline(const struct agent *agent)
{
	return has_undelivered(agent) ? agent->spool_at_ms : AGENT_DEADLINE_NONE;
}
