#include "scheduler/setup.h"

#include "common/id.h"
#include "common/io/config_models.h"

#include <stdlib.h>

#define PRICES (CONFIG_PRICES_MAX + 1) /* of a model */

static void
fill_limits(const struct config_upstream *from, struct ruler_upstream *to)
{
	to->limits_count = MIN(from->class_limits_count, RULER_CLASSES_MAX);
	for (size_t i = 0; i < to->limits_count; i++) {
		const struct config_class_limit *limit = &from->class_limits[i];

		to->limits[i] = (struct ruler_limits){
			.class_name = span_from(limit->class_name),
			.requests = limit->rpm,
			.input = limit->itpm,
			.output = limit->otpm,
			.concurrency = (uint32_t)MIN(limit->concurrency, UINT32_MAX),
		};
	}
}

/* What a change of means that nothing which was written before can be read. */
static uint64_t
place_of(const struct config_upstream *from)
{
	struct id_hash hash;

	id_hash_init(&hash, 0);
	id_hash_field(&hash, span_from(from->url));
	id_hash_field(&hash, span_from(from->path));
	id_hash_field(&hash, span_from(from->query));
	id_hash_field(&hash, span_from(from->account));
	id_hash_field(&hash, span_from(from->key_env));
	id_hash_field(&hash, span_from(from->key_file));
	for (size_t i = 0; i < from->headers_env_count; i++) {
		id_hash_field(&hash, span_from(from->headers_env[i].name));
		id_hash_field(&hash, span_from(from->headers_env[i].value));
	}
	return id_hash_final(&hash).low | 1;
}

static void
fill_upstreams(const struct config *config, struct setup *setup)
{
	for (size_t i = 0; i < config->upstreams_count; i++) {
		const struct config_upstream *from = &config->upstreams[i];

		setup->upstreams[i] = (struct ruler_upstream){
			.name = span_from(from->name),
			.account = span_from(from->account),
			.place = place_of(from),
			.traits = dialect_for_upstream((enum dialect)from->dialect,
			                               from->stream == CONFIG_SWITCH_AUTO,
			                               from->ttl_ms),
			.markers = from->markers == CONFIG_SWITCH_AUTO,
			.exact = from->evidence == CONFIG_EVIDENCE_EXACT,
			.proves = from->proof == CONFIG_PROOF_CANARY,
			.ttl_ms = from->ttl_ms,
			.hold_max_ms = from->hold_max_ms,
		};
		fill_limits(from, &setup->upstreams[i]);
	}
	setup->ruler.upstreams = setup->upstreams;
	setup->ruler.upstreams_count = config->upstreams_count;
}

/* Millionths of a dollar for a million tokens are 10^-12 dollars for one. */
static struct ledger_price
priced(const struct config_price *from)
{
	return (struct ledger_price){
		.input = from->input,
		.output = from->output,
		.write = from->input * from->write_multiplier / 1000,
		.write_1h = from->input * from->write_multiplier_1h / 1000,
		.read = from->input * from->read_multiplier / 1000,
	};
}

/* The model's own first: it counts before the first day. */
static void
fill_prices(const struct config_model *from, struct ruler_price *to,
            struct ruler_model *model)
{
	const struct config_price own = {
		.input = from->price_input,
		.output = from->price_output,
		.write_multiplier = from->write_multiplier,
		.write_multiplier_1h = from->write_multiplier_1h,
		.read_multiplier = from->read_multiplier,
	};

	to[0] = (struct ruler_price){ .from_ms = 0, .price = priced(&own) };
	for (size_t i = 0; i < from->prices_count; i++)
		to[i + 1] = (struct ruler_price){
			.from_ms = from->prices[i].from_ms,
			.price = priced(&from->prices[i]),
		};
	model->prices = to;
	model->prices_count = from->prices_count + 1;
}

/* Those of the file first, then what is built in; the last one matches everything. */
static int
fill_models(const struct config *config, struct setup *setup)
{
	size_t built_in = 0;

	while (config_models_at(built_in))
		built_in++;
	setup->ruler.models_count = config->models_count + built_in;
	setup->models = calloc(setup->ruler.models_count, sizeof(*setup->models));
	setup->prices =
		calloc(setup->ruler.models_count * PRICES, sizeof(*setup->prices));
	if (!setup->models || !setup->prices)
		return ERR_MEMORY;
	for (size_t i = 0; i < setup->ruler.models_count; i++) {
		const struct config_model *from =
			i < config->models_count
				? &config->models[i]
				: config_models_at(i - config->models_count);

		setup->models[i] = (struct ruler_model){
			.match = span_from(from->match),
			.class_name = span_from(from->class_name),
			.tokens_min = (uint32_t)MIN(from->minimum_tokens, UINT32_MAX),
			.cache_key = from->cache_key,
			.breakpoint = from->breakpoint,
		};
		fill_prices(from, &setup->prices[i * PRICES], &setup->models[i]);
	}
	setup->ruler.models = setup->models;
	return 0;
}

static void
fill_pools(const struct config *config, struct setup *setup)
{
	for (size_t i = 0; i < config->pools_count; i++)
		setup->pools[i] = (struct ruler_pool){
			.name = span_from(config->pools[i].name),
			.match_route = span_from(config->pools[i].match_route),
			.match_upstream = span_from(config->pools[i].match_upstream),
		};
	setup->ruler.pools = setup->pools;
	setup->ruler.pools_count = config->pools_count;
}

static void
fill_core(const struct config *config, struct ruler_config *ruler)
{
	struct core_config *core = &ruler->core;

	core->families_max = (uint32_t)MIN(config->scheduler.families_max, 1u << 24);
	core->lanes_max = core->families_max + core->families_max / 2;
	core->max_wait_ms = config->scheduler.max_wait_ms;
	for (size_t i = 0; i < config->upstreams_count; i++)
		core->pace_start = MAX(i == 0 ? 0 : core->pace_start,
		                       (uint32_t)config->upstreams[i].pace_start);
	ruler->families_max = MAX(2 * core->families_max, RULER_FAMILIES_LEAST);
}

int
setup_open(struct setup *setup, const struct config *config)
{
	*setup = (struct setup){ .ruler = ruler_config_default() };
	setup->ruler.ns = span_from(config->namespace);
	setup->ruler.job_size_max = config->scheduler.job_size_max;
	setup->ruler.segments_size_max =
		MAX(setup->ruler.segments_size_max, 4 * setup->ruler.job_size_max);
	setup->ruler.result_ttl_ms = config->scheduler.result_ttl_ms;
	fill_upstreams(config, setup);
	fill_pools(config, setup);
	fill_core(config, &setup->ruler);
	return fill_models(config, setup);
}

void
setup_close(struct setup *setup)
{
	free(setup->models);
	free(setup->prices);
	setup->models = NULL;
	setup->prices = NULL;
}
