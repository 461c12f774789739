#include "scheduler/ruler_core.h"

#include "scheduler/record.h"
#include "scheduler/ruler_events.h"
#include "scheduler/ruler_note.h"
#include "scheduler/ruler_rule.h"
#include "scheduler/ruler_tally.h"
#include "scheduler/ruler_warm.h"

void
ruler_core_begin(struct ruler *ruler)
{
	const struct ruler_config *config = ruler->config;

	ruler->core = core_init(ruler->core_memory, ruler->core_size, &config->core);
	if (config->record)
		record_restart(config->record, &config->core);
}

void
ruler_core_step(struct ruler *ruler, uint64_t now_ms, const struct event *event)
{
	struct record *record = ruler->config->record;

	if (record)
		record_event(record, now_ms, event);
	core_step(ruler->core, now_ms, event, &ruler->commands);
	if (record)
		record_decision(record, &ruler->commands);
}

void
ruler_core_restart(struct ruler *ruler)
{
	ruler_core_begin(ruler);
	ruler->queue_head = 0;
	ruler->queue_count = 0;
	ruler->queue_in = 0;
	ruler->queue_out = 0;
	ruler->pending_head = 0;
	ruler->pending_count = 0;
	ruler->glances_count = 0;
	ruler->glancing = false;
	for (size_t i = 0; i < RULER_GRANTS_MAX; i++)
		ruler->grants[i].busy = false;
	/* Names are told again: the core knows none. */
	for (uint32_t i = 0; i < ruler->known.models_count; i++) {
		struct event event = ruler_known_model_event(&ruler->known, i);

		ruler_core_step(ruler, 0, &event);
	}
	for (uint32_t i = 0; i < ruler->known.budgets_count; i++) {
		struct event event = ruler_known_budget_event(&ruler->known, i);

		ruler_core_step(ruler, 0, &event);
	}
	for (uint32_t i = 0; i < ruler->known.pools_count; i++) {
		struct event event = ruler_known_pool_event(&ruler->known, i);

		ruler->known.pools[i].told = ruler->known.pools[i].slots;
		ruler_core_step(ruler, 0, &event);
	}
}

/* ---- commands -------------------------------------------------------------------- */

static void
keep(struct ruler *ruler, const struct command *command)
{
	uint32_t at;

	VERIFY(ruler->pending_count < ruler->pending_max);
	at = (ruler->pending_head + ruler->pending_count++) % ruler->pending_max;
	ruler->pending[at] = *command;
}

/* For pages: why an account is parked. */
static void
remember_park(struct ruler *ruler, const struct command_note *note)
{
	uint32_t place = ruler_known_budget_find(&ruler->known, note->id);

	if (place == UINT32_MAX)
		return;
	if (note->kind == COMMAND_NOTE_PARKED)
		ruler->known.budgets[place].parked_by = (uint32_t)note->b + 1;
	else if (note->kind == COMMAND_NOTE_SPEND)
		ruler->known.budgets[place].parked_by = EVENT_PRESSURE_SPEND + 1;
}

void
ruler_core_take(struct ruler *ruler, uint64_t now_ms)
{
	bool rebuild = false;

	for (uint32_t i = 0; i < ruler->commands.count; i++) {
		const struct command *command = &ruler->commands.commands[i];

		switch (command->kind) {
		case COMMAND_GRANT:
		case COMMAND_BUDGET:
		case COMMAND_GLANCE:
			keep(ruler, command);
			break;
		case COMMAND_REBUILD:
			rebuild = true;
			break;
		case COMMAND_NOTE:
			ruler_tally_note(ruler, now_ms, &command->note);
			remember_park(ruler, &command->note);
			ruler_note_command(ruler, now_ms, &command->note);
			if (command->note.kind == COMMAND_NOTE_WARM)
				ruler_warm_take(ruler, command->note.id,
				                (enum core_warm)command->note.a);
			break;
		case COMMAND_KIND_COUNT:
			VERIFY(!"a kind of command");
		}
	}
	if (rebuild) {
		ruler_note(ruler, RULER_WARNING,
		           "memory and Redis differ too much: reading all of it again");
		ruler_rule_rebuild(ruler, now_ms);
	}
}

/* ---- events ---------------------------------------------------------------------- */

uint32_t
ruler_core_room(const struct ruler *ruler)
{
	return RULER_QUEUE_MAX - ruler->queue_count;
}

void
ruler_core_tell(struct ruler *ruler, uint64_t now_ms, const struct event *event)
{
	uint32_t at;

	if (ruler->phase != RULER_RULING) {
		ruler_core_step(ruler, now_ms, event);
		VERIFY(ruler->commands.count == 0 || ruler->phase != RULER_REBUILDING);
		return;
	}
	VERIFY(ruler->queue_count < RULER_QUEUE_MAX);
	at = (ruler->queue_head + ruler->queue_count++) % RULER_QUEUE_MAX;
	ruler->queue[at] = *event;
	ruler->queue_in++;
}

static void
mark_told(struct ruler *ruler)
{
	if (ruler->queue_out >= ruler->events_told_at && ruler_events_are_ahead(ruler))
		memcpy(ruler->events_told, ruler->events_read, RULER_CURSOR_SIZE);
}

void
ruler_core_run(struct ruler *ruler, uint64_t now_ms, uint32_t max)
{
	const struct event tick = { .kind = EVENT_TICK };
	uint32_t told = 0;

	while (ruler->phase == RULER_RULING && ruler->queue_count > 0 && told < max &&
	       ruler->pending_count + COMMAND_MAX <= ruler->pending_max) {
		const struct event *event = &ruler->queue[ruler->queue_head];

		ruler->queue_head = (ruler->queue_head + 1) % RULER_QUEUE_MAX;
		ruler->queue_count--;
		ruler->queue_out++;
		ruler_core_step(ruler, now_ms, event);
		ruler_core_take(ruler, now_ms);
		told++;
	}
	while (ruler->phase == RULER_RULING && core_deadline(ruler->core) <= now_ms &&
	       told < max && ruler->pending_count + COMMAND_MAX <= ruler->pending_max) {
		ruler_core_step(ruler, now_ms, &tick);
		ruler_core_take(ruler, now_ms);
		told++;
	}
	if (ruler->phase == RULER_RULING)
		mark_told(ruler);
}

uint64_t
ruler_core_deadline(const struct ruler *ruler, uint64_t now_ms)
{
	/* Without room there is nothing to do before an answer comes. */
	if (ruler->pending_count + COMMAND_MAX > ruler->pending_max)
		return RULER_DEADLINE_NONE;
	if (ruler->queue_count > 0)
		return now_ms;
	return core_deadline(ruler->core);
}

/* ---- names ----------------------------------------------------------------------- */

uint32_t
ruler_core_pool(struct ruler *ruler, uint64_t now_ms, struct span name)
{
	bool fresh;
	uint32_t place = ruler_known_pool(&ruler->known, name, &fresh);

	if (fresh) {
		struct event event = ruler_known_pool_event(&ruler->known, place);

		ruler_core_tell(ruler, now_ms, &event);
	}
	return place;
}

static void
tell_budget(struct ruler *ruler, uint64_t now_ms, uint32_t place)
{
	struct event event = ruler_known_budget_event(&ruler->known, place);

	ruler_core_tell(ruler, now_ms, &event);
}

uint32_t
ruler_core_budget(struct ruler *ruler, uint64_t now_ms, size_t upstream,
                  struct span class_name)
{
	bool fresh;
	uint32_t place = ruler_known_budget(&ruler->known, upstream, class_name, &fresh);

	if (fresh)
		tell_budget(ruler, now_ms, place);
	return place;
}

uint32_t
ruler_core_budget_named(struct ruler *ruler, uint64_t now_ms, struct span name)
{
	bool fresh;
	uint32_t place = ruler_known_budget_named(&ruler->known, name, &fresh);

	if (fresh)
		tell_budget(ruler, now_ms, place);
	return place;
}

uint32_t
ruler_core_model(struct ruler *ruler, uint64_t now_ms, size_t upstream, size_t model)
{
	bool fresh;
	uint32_t place = ruler_known_model(&ruler->known, upstream, model, &fresh);

	if (fresh) {
		struct event event = ruler_known_model_event(&ruler->known, place);

		ruler_core_tell(ruler, now_ms, &event);
	}
	return place;
}
