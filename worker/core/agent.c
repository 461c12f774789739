#include "worker/core/agent.h"

#include "common/mark.h"
#include "worker/core/agent_command.h"
#include "worker/core/agent_lease.h"
#include "worker/core/agent_receive.h"
#include "worker/core/agent_send.h"
#include "worker/core/agent_state.h"
#include "worker/core/agent_timer.h"

struct agent_config
agent_config_default(void)
{
	return (struct agent_config){
		.ns = SPAN("warmq"),
		.label = SPAN("worker"),
		.pool = SPAN("default"),
		.budgets = SPAN("*"),
		.slots = 1,
		.kept_max = 4096,
		.job_ms = 600000,
		.lease_ms = 30000,
		.beat_ms = 10000,
		.margin_ms = 5000,
		.poll_ms = 1000,
		.call_ms = 5000,
		.kept_ms = 10000,
		.late_ms = 1000,
		.retry_ms = 500,
		.retry_ms_max = 30000,
	};
}

/* A result or a run on the way to one in each slot, orphans of a session before that,
 * late ones up to their bound, and what waits for its drop until the next step. */
static uint32_t
results_max(const struct agent_config *config)
{
	return config->slots * 4 + config->kept_max + 3 * AGENT_BATCH;
}

static size_t
round_up(size_t size)
{
	return (size + 15) / 16 * 16;
}

size_t
agent_size(const struct agent_config *config)
{
	return round_up(sizeof(struct agent)) +
	       round_up(config->slots * sizeof(struct slot)) +
	       round_up(result_pool_size(results_max(config))) +
	       round_up(heap_size(config->slots));
}

struct agent *
agent_init(void *memory, size_t memory_size, uint64_t now_ms,
           const struct agent_config *config)
{
	struct agent *agent = memory;
	char *place = memory;

	VERIFY(config->slots > 0);
	VERIFY(config->slots <= AGENT_SLOTS_MAX);
	VERIFY(config->margin_ms < config->lease_ms);
	VERIFY(memory_size >= agent_size(config));

	*agent =
		(struct agent){ .config = *config, .now_ms = now_ms, .heard_ms = now_ms };
	place += round_up(sizeof *agent);
	slot_set_init(&agent->slots, (struct slot *)(void *)place, config->slots);
	place += round_up(config->slots * sizeof(struct slot));
	result_pool_init(&agent->results, place, results_max(config));
	place += round_up(result_pool_size(results_max(config)));
	heap_init(&agent->leaders, place, config->slots);
	flight_init(&agent->flights);
	prng_init(&agent->prng, config->seed);
	agent->replaces = config->replaces;
	agent->shuns_told = true;
	agent->q_next = 1;
	agent->drain_until_ms = AGENT_DEADLINE_NONE;
	return agent;
}

void
agent_state_note(struct agent *agent, enum agent_note note, uint64_t number,
                 struct span text)
{
	struct agent_note_entry *entry;
	uint32_t at = (agent->notes_first + agent->notes_count) % AGENT_NOTES_MAX;

	if (agent->notes_count == AGENT_NOTES_MAX)
		agent->notes_first = (agent->notes_first + 1) % AGENT_NOTES_MAX;
	else
		agent->notes_count++;
	entry = &agent->notes[at];
	entry->note = note;
	entry->number = number;
	entry->text_len = (uint32_t)MIN(text.len, sizeof entry->text);
	if (entry->text_len > 0)
		memcpy(entry->text, text.data, entry->text_len);
	agent->is_dirty = true;
}

void
agent_state_tell_shuns(struct agent *agent)
{
	agent->shuns_told = false;
	agent->shuns_ever = true;
	agent->beat_at_ms = MIN(agent->beat_at_ms, agent->now_ms);
	agent->is_dirty = true;
}

bool
agent_state_is_willing(const struct agent *agent)
{
	return !agent->is_fenced && !agent->is_quiet && !agent->is_stopping &&
	       !agent->attach_due && agent_late_room(agent) &&
	       agent->late_inherited == 0 && !agent->late_more;
}

static void
advance(struct agent *agent, uint64_t now_ms)
{
	VERIFY(now_ms >= agent->now_ms);
	agent->now_ms = now_ms;
	agent->is_dirty = true;
}

void
agent_connected(struct agent *agent, uint64_t now_ms)
{
	advance(agent, now_ms);
	if (agent->phase == AGENT_OVER)
		return;
	VERIFY(agent->phase == AGENT_DOWN);
	agent->phase = AGENT_UP;
	agent->heard_ms = now_ms;
	agent->greet_at_ms = now_ms;
}

/* What was in flight has an unknown effect; the table will tell. */
static void
hang_up(struct agent *agent)
{
	uint32_t index = result_first(&agent->results, RESULT_LATE);

	if (agent->phase != AGENT_OVER)
		agent->phase = AGENT_DOWN;
	agent->close_due = false;
	agent->attach_due = false;
	agent->is_dirty = true;
	flight_clear(&agent->flights);
	for (; index != RESULT_NONE; index = result_next(&agent->results, index))
		agent->results.results[index].in_flight = false;
}

void
agent_lost(struct agent *agent, uint64_t now_ms)
{
	advance(agent, now_ms);
	if (agent->phase != AGENT_DOWN)
		agent->heard_ms = now_ms;
	hang_up(agent);
}

void
agent_answer(struct agent *agent, uint64_t now_ms, uint64_t tag,
             const struct reply *reply)
{
	struct flight flight;

	advance(agent, now_ms);
	if (agent->phase == AGENT_DOWN || !flight_land(&agent->flights, tag, &flight))
		return;
	agent_receive(agent, &flight, reply);
}

void
agent_wake(struct agent *agent, uint64_t now_ms)
{
	uint64_t last_ms =
		agent->beat_at_ms - MIN(agent->beat_at_ms, agent->config.beat_ms);

	advance(agent, now_ms);
	agent->wake_pending = true;
	/* It may be told to go on: who is, is woken.  Ask, but not at every wake-up. */
	if (agent->is_quiet)
		agent->beat_at_ms = MIN(agent->beat_at_ms,
		                        MAX(now_ms, last_ms + agent->config.poll_ms));
}

/* The slot in which this run goes on, or NULL if it ended long ago. */
static struct slot *
find_run(struct agent *agent, uint32_t slot, uint64_t q)
{
	VERIFY(slot < agent->slots.count);
	if (agent->slots.slots[slot].run_q != q ||
	    !slot_is_active(&agent->slots.slots[slot]))
		return NULL;
	return &agent->slots.slots[slot];
}

static void
note_reached(struct agent *agent, struct span upstream, bool is_answered)
{
	if (!shun_reach(&agent->shuns, upstream, is_answered))
		return;
	MARK(agent_reaches_an_upstream_again);
	agent_state_note(agent, AGENT_NOTE_REACHED, 0, upstream);
	agent_state_tell_shuns(agent);
	agent->poll_at_ms = agent->now_ms; /* its jobs have waited for this */
}

void
agent_answered(struct agent *agent, uint64_t now_ms, struct span upstream)
{
	advance(agent, now_ms);
	note_reached(agent, upstream, true);
}

void
agent_sent(struct agent *agent, uint64_t now_ms, uint32_t index, uint64_t q,
           struct span upstream, uint32_t deliveries)
{
	struct slot *slot;

	advance(agent, now_ms);
	note_reached(agent, upstream, false);
	slot = find_run(agent, index, q);
	if (!slot)
		return;
	slot->was_sent = true;
	slot->deliveries = deliveries;
	if (slot->run == SLOT_RUN_LOADING)
		slot_set(&agent->slots, index, slot->lease, SLOT_RUN_RUNNING);
}

void
agent_began(struct agent *agent, uint64_t now_ms, uint32_t index, uint64_t q,
            const struct protocol_usage *usage)
{
	struct slot *slot;

	advance(agent, now_ms);
	slot = find_run(agent, index, q);
	if (!slot || slot->has_begun)
		return;
	(void)heap_remove(&agent->leaders, index);
	slot->has_begun = true;
	slot->begin_due = slot->begin;
	slot->begin_usage = *usage;
	slot_file(&agent->slots, index);
}

static void
note_shunned(struct agent *agent, const struct agent_outcome *outcome)
{
	char text[AGENT_NOTE_TEXT];
	struct span cause = outcome->text;
	size_t len = outcome->missed.len;

	VERIFY(len < sizeof text);
	memcpy(text, outcome->missed.data, len);
	text[len++] = ' ';
	cause.len = MIN(cause.len, sizeof text - len);
	if (cause.len > 0)
		memcpy(text + len, cause.data, cause.len);
	agent_state_note(agent, AGENT_NOTE_SHUNNED, 0,
	                 (struct span){ text, len + cause.len });
}

void
agent_ended(struct agent *agent, uint64_t now_ms, uint32_t index, uint64_t q,
            const struct agent_outcome *outcome)
{
	advance(agent, now_ms);
	VERIFY(find_run(agent, index, q));
	if (outcome->missed.len > 0 &&
	    shun_miss(&agent->shuns, now_ms, outcome->missed, prng_next(&agent->prng),
	              agent->slots.slots[index].was_sent)) {
		note_shunned(agent, outcome);
		agent_state_tell_shuns(agent);
	}
	agent_lease_ended(agent, index, outcome);
}

bool
agent_late_room(const struct agent *agent)
{
	return agent->results.lists[RESULT_LATE].count <
	       agent->config.slots + AGENT_BATCH;
}

void
agent_late(struct agent *agent, uint64_t now_ms, const struct agent_late *late)
{
	struct result *result;

	advance(agent, now_ms);
	VERIFY(agent_late_room(agent));
	VERIFY(late->id.len <= sizeof result->id);
	result = &agent->results.results[result_take(&agent->results, RESULT_LATE)];
	result->since_ms = now_ms;
	result->is_spooled = true;
	result->is_on_disk = true;
	result->is_inherited = true;
	agent->late_inherited++;
	memcpy(result->id, late->id.data, late->id.len);
	result->id_len = (uint32_t)late->id.len;
	result->attempt = (struct protocol_late){ .known = false };
	result->outcome = (struct agent_outcome){
		.end = AGENT_DONE,
		.handle = late->handle,
		.usage = protocol_usage_none(),
		.reply = late->reply,
		.result_ttl_ms = late->result_ttl_ms,
		.result = late->result,
	};
}

void
agent_late_more(struct agent *agent, uint64_t now_ms, bool more)
{
	if (agent->late_more == more)
		return;
	advance(agent, now_ms);
	agent->late_more = more;
}

static void
note_disk(struct agent *agent, enum result_list list, struct span id, bool is_written)
{
	struct result_pool *pool = &agent->results;
	uint32_t index = result_first(pool, list);

	for (; index != RESULT_NONE; index = result_next(pool, index)) {
		struct result *result = &pool->results[index];
		struct span its = { result->id, result->id_len };

		if (!result->is_spooled || result->is_on_disk || !span_equals(its, id))
			continue;
		result->is_on_disk = is_written;
		result->is_spooled = is_written;
		result->spool_at_ms = agent->now_ms + AGENT_DISK_MS;
	}
}

void
agent_spooled(struct agent *agent, uint64_t now_ms, struct span id, bool is_written)
{
	advance(agent, now_ms);
	note_disk(agent, RESULT_FRESH, id, is_written);
	note_disk(agent, RESULT_LATE, id, is_written);
}

/* What has not begun need not begin; it is handed back at once. */
static void
give_back_waiting(struct agent *agent)
{
	uint32_t index;

	while ((index = slot_first(&agent->slots, SLOT_QUEUE_START)) != SLOT_NONE)
		agent_lease_leave(agent, index, agent->slots.slots[index].lease_q, false);
}

void
agent_stop(struct agent *agent, uint64_t now_ms, uint64_t drain_ms)
{
	advance(agent, now_ms);
	agent->is_stopping = true;
	agent->drain_until_ms = MIN(agent->drain_until_ms, now_ms + drain_ms);
	give_back_waiting(agent);
}

void
agent_step(struct agent *agent, uint64_t now_ms, struct agent_output *out)
{
	VERIFY(out->commands_max >= AGENT_COMMANDS_MIN);
	advance(agent, now_ms);
	call_reset(out->calls);
	out->commands_count = 0;

	agent_timer_run(agent);
	agent->is_dirty = false; /* what made it so is looked at below */
	if (agent->close_due) {
		agent_command_close(agent, out);
		hang_up(agent);
	} else {
		agent_send_due(agent, out->calls);
	}
	agent_command_due(agent, out);
}

uint64_t
agent_deadline(const struct agent *agent)
{
	uint64_t deadline;

	if (agent->is_dirty)
		return agent->now_ms;
	if (agent->phase == AGENT_OVER)
		return AGENT_DEADLINE_NONE;
	deadline = agent_timer_deadline(agent);
	deadline = MIN(deadline, agent_send_deadline(agent));
	return MIN(deadline, agent_command_deadline(agent));
}

uint64_t
agent_redis_ms(const struct agent *agent, uint64_t local_ms)
{
	return offset_redis_ms(&agent->offset, local_ms);
}

static uint32_t
count_on_disk(const struct agent *agent)
{
	static const enum result_list lists[] = { RESULT_FRESH, RESULT_LATE };
	uint32_t count = 0;

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		uint32_t index = result_first(&agent->results, lists[i]);

		for (; index != RESULT_NONE; index = result_next(&agent->results, index))
			count += agent->results.results[index].is_on_disk;
	}
	return count;
}

void
agent_stats(const struct agent *agent, struct agent_stats *ret_stats)
{
	*ret_stats = agent->stats;
	ret_stats->slots = agent->slots.count;
	ret_stats->busy = agent->slots.leased;
	ret_stats->running = agent->slots.running;
	ret_stats->attached = agent->phase == AGENT_READY;
	ret_stats->is_fenced = agent->is_fenced;
	ret_stats->is_quiet = agent->is_quiet;
	ret_stats->shunned = shun_count(&agent->shuns);
	ret_stats->on_disk = count_on_disk(agent);
	ret_stats->is_stopping = agent->is_stopping;
}

void
agent_audit(const struct agent *agent)
{
	uint32_t index = result_first(&agent->results, RESULT_LATE);
	uint32_t inherited = 0;

	slot_audit(&agent->slots);
	result_audit(&agent->results);
	for (; index != RESULT_NONE; index = result_next(&agent->results, index))
		inherited += agent->results.results[index].is_inherited;
	VERIFY(inherited == agent->late_inherited);
	heap_audit(&agent->leaders);
	for (uint32_t i = 0; i < agent->slots.count; i++) {
		const struct slot *slot = &agent->slots.slots[i];

		if (slot->run != SLOT_RUN_OVER)
			continue;
		VERIFY(agent->results.results[slot->result].list == RESULT_FRESH);
		VERIFY(agent->results.results[slot->result].slot == i);
	}
	VERIFY(flight_count(&agent->flights) == 0 || agent->phase != AGENT_DOWN);
}
