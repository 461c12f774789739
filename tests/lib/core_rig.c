#include "tests/lib/core_rig_inside.h"

#include "scheduler/core/lane.h"
#include "scheduler/core/state.h"

#include <stdlib.h>

#define STEPS 2000000 /* more of them in one run is a loop without progress */

struct core_config
core_rig_config(void)
{
	struct core_config config = CORE_CONFIG_DEFAULT;

	config.families_max = CORE_RIG_FAMILIES;
	config.lanes_max = CORE_RIG_NODES;
	config.pools_max = CORE_RIG_POOLS;
	config.budgets_max = 2;
	config.models_max = 2;
	return config;
}

static uint64_t
next_time(const struct core_rig *rig, uint64_t end_ms)
{
	uint64_t next_ms = MIN(end_ms, core_deadline(rig->core));

	for (uint32_t i = 0; i < CORE_RIG_STARTS; i++) {
		const struct core_rig_start *start = &rig->starts[i];

		if (start->used)
			next_ms = MIN(next_ms,
			              start->begun ? start->end_ms : start->first_ms);
	}
	for (uint32_t i = 0; i < rig->families_count; i++)
		if (rig->families[i].held_ms > 0)
			next_ms = MIN(next_ms, MAX(rig->now_ms + 1,
			                           rig->families[i].held_ms +
			                                   rig->knobs.hold_max_ms));
	if (rig->parked_ms > rig->now_ms)
		next_ms = MIN(next_ms, rig->parked_ms);
	if (rig->lines.count > 0)
		next_ms = MIN(next_ms, rig->lines.due_ms[rig->lines.first]);
	if (rig->answers.count > 0)
		next_ms = MIN(next_ms, rig->answers.due_ms[rig->answers.first]);
	/* Workers poll once a second. */
	next_ms = MIN(next_ms, (rig->now_ms / 1000 + 1) * 1000);
	return MAX(next_ms, rig->now_ms);
}

static void
turn(struct core_rig *rig)
{
	core_rig_expire_entries(rig);
	core_rig_serve(rig);
	core_rig_deliver(rig);
	core_rig_claim(rig);
	core_rig_hold_clocks(rig);
	if (rig->now_ms % 1000 == 0)
		core_rig_tell_short(rig);
	core_rig_deliver(rig);
	core_rig_claim(rig);
	core_rig_deliver(rig);
}

void
core_rig_run(struct core_rig *rig, uint64_t ms)
{
	uint64_t end_ms = rig->now_ms + ms;

	for (uint32_t i = 0; i < STEPS; i++) {
		turn(rig);
		if (rig->now_ms >= end_ms)
			return;
		rig->now_ms = next_time(rig, end_ms);
	}
	VERIFY(!"time goes on");
}

static bool
is_drained(const struct core_rig *rig)
{
	for (uint32_t i = 0; i < rig->families_count; i++)
		if (rig->families[i].backlog > 0)
			return false;
	return rig->starts_count == 0;
}

bool
core_rig_drain(struct core_rig *rig, uint64_t ms)
{
	uint64_t end_ms = rig->now_ms + ms;

	while (rig->now_ms < end_ms) {
		if (is_drained(rig))
			return true;
		turn(rig);
		rig->now_ms = next_time(rig, end_ms);
	}
	return is_drained(rig);
}

uint32_t
core_rig_pool(struct core_rig *rig, const char *name, uint32_t slots)
{
	uint32_t index = 0;

	while (index < rig->pools_count && strcmp(rig->pools[index].name, name) != 0)
		index++;
	if (index == rig->pools_count) {
		VERIFY(rig->pools_count < CORE_RIG_POOLS);
		rig->pools_count++;
	}
	snprintf(rig->pools[index].name, CORE_RIG_NAME, "%s", name);
	rig->pools[index].slots = slots;
	core_rig_tell_pool(rig, &rig->pools[index]);
	core_rig_deliver(rig);
	return index;
}

struct core_rig *
core_rig_create(const struct core_config *config, uint32_t slots)
{
	struct core_rig *rig = calloc(1, sizeof *rig);
	struct event end = { .kind = EVENT_RECOVERED_END };

	VERIFY(rig);
	rig->memory = aligned_alloc(16, core_size(config));
	VERIFY(rig->memory);
	memset(rig->memory, 0xa5, core_size(config)); /* init must not rely on zeros */
	rig->core = core_init(rig->memory, core_size(config), config);
	rig->now_ms = CORE_RIG_START_MS;
	rig->hold = true;
	rig->pace = config->pace_start;
	rig->knobs = (struct core_rig_knobs){
		.cold_ms = 3000,
		.warm_ms = 500,
		.job_ms = 2000,
		.ttl_ms = 300000,
		.hold_max_ms = 30000,
	};
	rig->model = (struct event_model){
		.id = core_rig_id("model"),
		.hold = true,
		.needs_marker = true,
		.exact = true,
		.proves = true,
		.streams = true,
		.calls = false,
		.minimum_tokens = 1024,
		.ttl_ms = rig->knobs.ttl_ms,
	};
	core_rig_tell_model(rig);
	core_rig_tell_budget(rig);
	(void)core_rig_pool(rig, "p", slots);
	core_rig_feed(rig, &end);
	return rig;
}

struct core_rig *
core_rig_fresh(uint32_t slots)
{
	struct core_config config = core_rig_config();

	return core_rig_create(&config, slots);
}

struct core_rig *
core_rig_free(struct core_rig *rig)
{
	if (rig)
		free(rig->memory);
	free(rig);
	return NULL;
}

struct core_rig_node *
core_rig_node(struct core_rig *rig, const char *name)
{
	return &rig->nodes[core_rig_node_by_id(rig, core_rig_id(name))];
}

struct lane *
core_rig_lane_named(struct core_rig *rig, const char *name)
{
	struct lane_id id = { core_rig_node(rig, name)->id, 0 };

	return &rig->core->lanes[lane_find(rig->core, id)];
}

void
core_rig_hold(struct core_rig *rig, bool on)
{
	struct event event = { .kind = EVENT_HOLD };

	rig->hold = on;
	rig->was_off |= !on;
	event.hold.on = on;
	core_rig_feed(rig, &event);
}

void
core_rig_hold_route(struct core_rig *rig, const char *leaf, bool on)
{
	for (uint32_t i = 0; i < rig->families_count; i++) {
		struct core_rig_family *family = &rig->families[i];
		struct event event;

		if (strcmp(rig->nodes[core_rig_leaf(family)].name, leaf) != 0)
			continue;
		family->unheld = !on;
		event = core_rig_hold_event(rig, family);
		core_rig_feed(rig, &event);
	}
}

void
core_rig_evict(struct core_rig *rig)
{
	for (uint32_t i = 0; i < rig->nodes_count; i++)
		rig->nodes[i].readable_ms = CORE_RIG_NEVER;
}

void
core_rig_kill(struct core_rig *rig)
{
	for (uint32_t i = 0; i < CORE_RIG_STARTS; i++)
		if (rig->starts[i].used)
			core_rig_come_back(rig, &rig->starts[i], LANE_BACK_WORKER_DIED);
	core_rig_deliver(rig);
}
