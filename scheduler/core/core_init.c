/* One block of memory: the core, then its arrays. */
#include "scheduler/core/core.h"

#include "scheduler/core/state.h"

#define ALIGNMENT 16

/* The arrays, with how many elements of what size. */
enum part {
	PART_MODELS,
	PART_POOLS,
	PART_PACERS,
	PART_SHARES,
	PART_LANES,
	PART_FAMILIES,
	PART_LANE_HOME,
	PART_FAMILY_HOME,
	PART_FAMILY_GLANCE,
	PART_BELOW,
	PART_MODEL_TABLE,
	PART_POOL_TABLE,
	PART_PACER_TABLE,
	PART_LANE_TABLE,
	PART_FAMILY_TABLE,
	PART_TIMERS,
	PART_COUNT,
};

static uint32_t
timers_max(const struct core_config *config)
{
	return config->lanes_max + config->families_max + config->budgets_max;
}

static void
measure(const struct core_config *config, size_t ret_sizes[PART_COUNT])
{
	const struct core_config *c = config;

	VERIFY(config->lanes_max > 0);
	ret_sizes[PART_MODELS] = c->models_max * sizeof(struct model);
	ret_sizes[PART_POOLS] = c->pools_max * sizeof(struct pool);
	ret_sizes[PART_PACERS] = c->budgets_max * sizeof(struct pacer);
	ret_sizes[PART_SHARES] =
		(size_t)c->pools_max * c->budgets_max * sizeof(struct pool_share);
	ret_sizes[PART_LANES] = c->lanes_max * sizeof(struct lane);
	ret_sizes[PART_FAMILIES] = c->families_max * sizeof(struct family);
	ret_sizes[PART_LANE_HOME] = c->lanes_max * sizeof(struct link);
	ret_sizes[PART_FAMILY_HOME] = c->families_max * sizeof(struct link);
	ret_sizes[PART_FAMILY_GLANCE] = c->families_max * sizeof(struct link);
	ret_sizes[PART_BELOW] =
		(size_t)c->families_max * LINEAGE_MAX * sizeof(struct link);
	ret_sizes[PART_MODEL_TABLE] = table_size(c->models_max);
	ret_sizes[PART_POOL_TABLE] = table_size(c->pools_max);
	ret_sizes[PART_PACER_TABLE] = table_size(c->budgets_max);
	ret_sizes[PART_LANE_TABLE] = table_size(c->lanes_max);
	ret_sizes[PART_FAMILY_TABLE] = table_size(c->families_max);
	ret_sizes[PART_TIMERS] = heap_size(timers_max(c));
}

static size_t
aligned(size_t size)
{
	return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static void
check(const struct core_config *config)
{
	VERIFY(config->families_max > 0);
	VERIFY(config->families_max < UINT32_MAX / LINEAGE_MAX);
	VERIFY(config->lanes_max >= config->families_max);
	VERIFY(config->pools_max > 0);
	VERIFY(config->budgets_max > 0);
	VERIFY(config->models_max > 0);
	VERIFY(config->misses_max > 0);
	VERIFY(config->pace_start > 0);
	VERIFY(config->look_ms > 0);
	VERIFY(config->linger_ms > 0);
	VERIFY(config->pace_patience_ms > 0);
	VERIFY(config->pace_memory_ms > 0);
}

size_t
core_size(const struct core_config *config)
{
	size_t sizes[PART_COUNT], size = aligned(sizeof(struct core));

	VERIFY(config);
	check(config);
	measure(config, sizes);
	for (uint32_t i = 0; i < PART_COUNT; i++)
		size += aligned(sizes[i]);
	return size;
}

static void
place(struct core *core, char *memory)
{
	const struct core_config *config = &core->config;
	size_t sizes[PART_COUNT];
	void *parts[PART_COUNT];

	VERIFY(memory);
	measure(config, sizes);
	memory += aligned(sizeof *core);
	for (uint32_t i = 0; i < PART_COUNT; i++) {
		parts[i] = memory;
		memory += aligned(sizes[i]);
	}
	core->models = parts[PART_MODELS];
	core->pools = parts[PART_POOLS];
	core->pacers = parts[PART_PACERS];
	core->shares = parts[PART_SHARES];
	core->lanes = parts[PART_LANES];
	core->families = parts[PART_FAMILIES];
	core->lane_home = parts[PART_LANE_HOME];
	core->family_home = parts[PART_FAMILY_HOME];
	core->family_glance = parts[PART_FAMILY_GLANCE];
	core->below = parts[PART_BELOW];
	table_init(&core->models_by_id, parts[PART_MODEL_TABLE], config->models_max);
	table_init(&core->pools_by_id, parts[PART_POOL_TABLE], config->pools_max);
	table_init(&core->pacers_by_id, parts[PART_PACER_TABLE], config->budgets_max);
	table_init(&core->lanes_by_id, parts[PART_LANE_TABLE], config->lanes_max);
	table_init(&core->families_by_id, parts[PART_FAMILY_TABLE], config->families_max);
	heap_init(&core->timers, parts[PART_TIMERS], timers_max(config));
}

static void
clear(struct core *core)
{
	VERIFY(core->recovering);
	memset(core->shares, 0,
	       (size_t)core->config.pools_max * core->config.budgets_max *
	               sizeof(*core->shares));
	list_init(&core->lanes_free);
	list_init(&core->families_free);
	list_init(&core->idle);
	list_init(&core->paused);
	list_init(&core->dirty);
	list_init(&core->glance);
	list_init_links(core->lane_home, core->config.lanes_max);
	list_init_links(core->family_home, core->config.families_max);
	list_init_links(core->family_glance, core->config.families_max);
	list_init_links(core->below, core->config.families_max * LINEAGE_MAX);
	for (uint32_t i = 0; i < core->config.lanes_max; i++) {
		core->lanes[i] = (struct lane){ .family = FAMILY_NONE };
		list_init(&core->lanes[i].below);
		list_push(&core->lanes_free, core->lane_home, i);
	}
	for (uint32_t i = 0; i < core->config.families_max; i++) {
		core->families[i] = (struct family){ 0 };
		list_push(&core->families_free, core->family_home, i);
	}
}

struct core *
core_init(void *memory, size_t memory_size, const struct core_config *config)
{
	struct core *core = memory;

	VERIFY(memory);
	VERIFY((uintptr_t)memory % ALIGNMENT == 0);
	VERIFY(memory_size >= core_size(config));
	*core = (struct core){
		.config = *config,
		.recovering = true,
		.hold = true,
		.rank_next = POOL_RANK_FIRST,
		.rank_overdue_next = 1,
	};
	place(core, memory);
	clear(core);
	return core;
}
