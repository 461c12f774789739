#include "tests/sim/worker_host.h"

#include "tests/sim/worker_run.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
	CALLS_MAX = 64,
	ARGS_MAX = 8192,
	BYTES_MAX = 1 << 20,
	COMMANDS_MAX = 256,
	DRAIN_MS = 20000,
	STEPS_MAX = 10000, /* of one instant: more is a loop without end */
};

static void pump_later(struct worker_host *worker);

uint64_t
worker_host_now_ms(const struct worker_host *worker)
{
	int64_t us = (int64_t)(worker->agenda->now_us - worker->started_us);

	us += us / 1000 * worker->drift_ppm / 1000;
	return 1000000 + (uint64_t)us / 1000; /* some uptime of the machine */
}

/* World time at which the local clock has reached `local_ms`; a little late, never
 * early. */
static uint64_t
world_us(const struct worker_host *worker, uint64_t local_ms)
{
	uint64_t now_ms = worker_host_now_ms(worker);
	uint64_t rest_us;

	if (local_ms <= now_ms)
		return worker->agenda->now_us;
	rest_us = MIN(local_ms - now_ms, 3600000ull) * 1000;
	return worker->agenda->now_us + rest_us + rest_us / 1000 + 1;
}

struct worker_result *
worker_host_result(struct worker_host *worker, const char *id, const char *reply)
{
	struct worker_result *result = calloc(1, sizeof *result);

	VERIFY(result);
	result->next = worker->results;
	result->handle = ++worker->handles;
	result->life = worker->life;
	(void)snprintf(result->id, sizeof result->id, "%s", id);
	(void)snprintf(result->reply, sizeof result->reply, "%s", reply);
	(void)snprintf(result->text, sizeof result->text,
	               "{\"id\":\"%s\",\"by\":\"%s\",\"result\":%" PRIu64 "}", id,
	               worker->name, result->handle);
	worker->results = result;
	return result;
}

static void
drop_result(struct worker_host *worker, uint64_t handle)
{
	for (struct worker_result **at = &worker->results; *at; at = &(*at)->next) {
		struct worker_result *result = *at;

		if (result->handle != handle)
			continue;
		*at = result->next;
		free(result);
		return;
	}
	VERIFY(false); /* dropped twice */
}

static struct worker_result *
find_result(struct worker_host *worker, uint64_t handle)
{
	struct worker_result *result = worker->results;

	while (result && result->handle != handle)
		result = result->next;
	VERIFY(result);
	return result;
}

static void
on_reconnect(void *context, uint64_t life)
{
	struct worker_host *worker = context;

	if (!worker->alive || worker->life != life)
		return;
	worker->reconnecting = false;
	if (!worker->wire.connection)
		wire_open(&worker->wire);
}

static void
reconnect(struct worker_host *worker)
{
	if (worker->reconnecting)
		return;
	worker->reconnecting = true;
	agenda_in(worker->agenda, prng_between(&worker->prng, 50000, 500000),
	          on_reconnect, worker, worker->life);
}

static void
say_note(struct worker_host *worker, const struct agent_command *command)
{
	trace_line(worker->trace, "%s note %d %" PRIu64 " %.*s", worker->name,
	           (int)command->note, command->number, (int)command->text.len,
	           command->text.data);
}

static void
obey(struct worker_host *worker, const struct agent_command *command)
{
	switch (command->kind) {
	case AGENT_START:
		worker_run_start(worker, command->job);
		break;
	case AGENT_ABORT:
		worker_run_abort(worker, command->slot, command->q);
		break;
	case AGENT_SPOOL:
		find_result(worker, command->handle)->on_disk = true;
		agent_spooled(worker->agent, worker_host_now_ms(worker), command->text,
		              true);
		break;
	case AGENT_DROP:
		drop_result(worker, command->handle);
		break;
	case AGENT_SESSION:
		worker->disk_nonce = command->number;
		break;
	case AGENT_CLOSE:
		trace_line(worker->trace, "%s closes its connection", worker->name);
		wire_close(&worker->wire);
		worker_run_lose(worker);
		reconnect(worker);
		break;
	case AGENT_NOTE:
		say_note(worker, command);
		break;
	case AGENT_DISMISSED:
		trace_line(worker->trace, "%s hears that it is to stop", worker->name);
		agent_stop(worker->agent, worker_host_now_ms(worker), DRAIN_MS);
		break;
	case AGENT_FINISHED:
		worker->finished = true;
		break;
	}
}

static void
send_calls(struct worker_host *worker)
{
	struct span argv[ARGS_MAX];

	for (uint32_t i = 0; i < worker->calls.call_count; i++) {
		const struct call *call = &worker->calls.calls[i];

		for (uint32_t k = 0; k < call->arg_count; k++)
			argv[k] = call_arg(&worker->calls, call, k);
		trace_line(worker->trace, "%s > %.*s", worker->name, (int)argv[1].len,
		           argv[1].data);
		wire_send(&worker->wire, call->tag, argv, call->arg_count);
	}
}

/* Spooled results of former lives are offered one by one. */
static void
offer_spool(struct worker_host *worker)
{
	struct worker_result *result = worker->results;
	bool more = false;

	for (; result; result = result->next) {
		struct agent_late late = {
			.handle = result->handle,
			.id = span_from(result->id),
			.reply = span_from(result->reply),
			.result_ttl_ms = 3600000,
			.result = span_from(result->text),
		};

		if (result->life == worker->life || result->offered)
			continue;
		more = !agent_late_room(worker->agent);
		if (more)
			break;
		result->offered = true;
		agent_late(worker->agent, worker_host_now_ms(worker), &late);
	}
	agent_late_more(worker->agent, worker_host_now_ms(worker), more);
}

void
worker_host_pump(struct worker_host *worker)
{
	uint64_t deadline;
	int steps = 0;

	if (!worker->alive || worker->pumping)
		return; /* within a pump: its loop goes on */
	if (worker->agenda->now_us < worker->frozen_until_us) {
		pump_later(worker);
		return;
	}
	worker->pumping = true;
	do {
		VERIFY(steps++ < STEPS_MAX);
		offer_spool(worker);
		agent_step(worker->agent, worker_host_now_ms(worker), &worker->output);
		send_calls(worker);
		for (uint32_t i = 0; i < worker->output.commands_count; i++)
			obey(worker, &worker->output.commands[i]);
		deadline = agent_deadline(worker->agent);
	} while (deadline <= worker_host_now_ms(worker) && !worker->finished);
	worker->pumping = false;
	pump_later(worker);
}

static void
on_wake(void *context, uint64_t number)
{
	struct worker_host *worker = context;

	if (worker->alive && number == worker->wake_number) {
		worker->wake_at_us = UINT64_MAX;
		worker_host_pump(worker);
	}
}

/* Puts the next step on the agenda, unless an earlier one is there. */
static void
pump_later(struct worker_host *worker)
{
	uint64_t deadline = agent_deadline(worker->agent);
	uint64_t at_us;

	if (deadline == AGENT_DEADLINE_NONE || worker->finished)
		return;
	at_us = MAX(world_us(worker, deadline), worker->frozen_until_us);
	if (at_us >= worker->wake_at_us)
		return;
	worker->wake_at_us = at_us;
	agenda_at(worker->agenda, at_us, on_wake, worker, ++worker->wake_number);
}

static void
on_up(void *context)
{
	struct worker_host *worker = context;

	agent_connected(worker->agent, worker_host_now_ms(worker));
	worker_host_pump(worker);
}

static void
on_down(void *context)
{
	struct worker_host *worker = context;

	agent_lost(worker->agent, worker_host_now_ms(worker));
	worker_run_lose(worker);
	reconnect(worker);
	worker_host_pump(worker);
}

static void
on_answer(void *context, uint64_t tag, const struct reply *reply)
{
	struct worker_host *worker = context;

	if (worker_run_owns_tag(tag))
		worker_run_answer(worker, tag, reply);
	else
		agent_answer(worker->agent, worker_host_now_ms(worker), tag, reply);
	worker_host_pump(worker);
}

void
worker_host_init(struct worker_host *worker, uint32_t index, struct wire_hub *hub,
                 struct site *site, const struct weather *weather, uint64_t seed)
{
	*worker = (struct worker_host){
		.agenda = hub->agenda,
		.trace = hub->trace,
		.site = site,
		.weather = weather,
		.index = index,
		.wire = {
			.hub = hub,
			.name = worker->name,
			.on_up = on_up,
			.on_down = on_down,
			.on_answer = on_answer,
			.context = worker,
			.frozen_until_us = &worker->frozen_until_us,
		},
	};
	prng_init(&worker->prng, seed);
	(void)snprintf(worker->name, sizeof worker->name, "worker%u", index);
	(void)snprintf(worker->pool, sizeof worker->pool, "%s",
	               weather_pool(index % weather->pools_count));
	if (weather->drift_ppm > 0)
		worker->drift_ppm =
			(int64_t)prng_between(&worker->prng, 0, 2 * weather->drift_ppm) -
			weather->drift_ppm;
	worker->calls = (struct call_list){
		.calls = calloc(CALLS_MAX, sizeof *worker->calls.calls),
		.args = calloc(ARGS_MAX, sizeof *worker->calls.args),
		.bytes = malloc(BYTES_MAX),
		.call_max = CALLS_MAX,
		.arg_max = ARGS_MAX,
		.byte_max = BYTES_MAX,
	};
	worker->output = (struct agent_output){
		.calls = &worker->calls,
		.commands = calloc(COMMANDS_MAX, sizeof *worker->output.commands),
		.commands_max = COMMANDS_MAX,
	};
	worker->runs = calloc(weather->slots, sizeof *worker->runs);
	VERIFY(worker->calls.calls && worker->calls.args && worker->calls.bytes);
	VERIFY(worker->output.commands && worker->runs);
}

static void
drop_memory(struct worker_host *worker)
{
	struct worker_result **at = &worker->results;

	for (uint32_t i = 0; i < worker->weather->slots; i++)
		worker_run_drop(&worker->runs[i]);
	while (*at) {
		struct worker_result *result = *at;

		if (result->on_disk) {
			result->offered = false;
			at = &result->next;
			continue;
		}
		*at = result->next;
		free(result);
	}
	free(worker->memory);
	worker->memory = NULL;
	worker->agent = NULL;
}

void
worker_host_fini(struct worker_host *worker)
{
	drop_memory(worker);
	while (worker->results)
		drop_result(worker, worker->results->handle);
	free(worker->calls.calls);
	free(worker->calls.args);
	free(worker->calls.bytes);
	free(worker->output.commands);
	free(worker->runs);
}

void
worker_host_start(struct worker_host *worker)
{
	struct agent_config config = agent_config_default();

	VERIFY(!worker->alive);
	config.ns = SPAN("warmq");
	config.label = span_from(worker->name);
	config.pool = span_from(worker->pool);
	config.budgets = SPAN("*");
	config.slots = worker->weather->slots;
	config.kept_max = 2 * worker->weather->slots;
	config.replaces = worker->disk_nonce;
	config.seed = prng_next(&worker->prng);
	worker->alive = true;
	worker->life++;
	worker->started_us = worker->agenda->now_us;
	worker->frozen_until_us = 0;
	worker->wake_at_us = UINT64_MAX;
	worker->reconnecting = false;
	worker->stopping = false;
	worker->finished = false;
	worker->memory = malloc(agent_size(&config));
	VERIFY(worker->memory);
	worker->agent = agent_init(worker->memory, agent_size(&config),
	                           worker_host_now_ms(worker), &config);
	trace_line(worker->trace, "%s starts", worker->name);
	wire_open(&worker->wire);
	pump_later(worker);
}

void
worker_host_crash(struct worker_host *worker)
{
	if (!worker->alive)
		return;
	trace_line(worker->trace, "%s dies", worker->name);
	worker->alive = false;
	worker->life++;
	wire_close(&worker->wire);
	drop_memory(worker);
}

void
worker_host_freeze(struct worker_host *worker, uint64_t until_us)
{
	if (!worker->alive)
		return;
	trace_line(worker->trace, "%s freezes until %" PRIu64, worker->name,
	           until_us / 1000000);
	worker->frozen_until_us = MAX(worker->frozen_until_us, until_us);
}

void
worker_host_stop(struct worker_host *worker, uint64_t drain_ms)
{
	if (!worker->alive)
		return;
	trace_line(worker->trace, "%s is told to stop", worker->name);
	worker->stopping = true;
	agent_stop(worker->agent, worker_host_now_ms(worker), drain_ms);
	worker_host_pump(worker);
}

void
worker_host_wake(struct worker_host *worker, struct span pool)
{
	if (!worker->alive || worker->agenda->now_us < worker->frozen_until_us ||
	    !wire_is_up(&worker->wire) || !span_equals(pool, span_from(worker->pool)))
		return;
	agent_wake(worker->agent, worker_host_now_ms(worker));
	worker_host_pump(worker);
}
