#include "scheduler/ruler_known.h"

#include "common/text.h"

#include <stdlib.h>

#define NAME_SEED      0x7761726d71ULL /* ids of names; the same in every process */
#define TTL_DEFAULT_MS 300000

int
ruler_known_open(struct ruler_known *known, const struct ruler_config *config)
{
	const struct core_config *core = &config->core;
	uint32_t nodes_max = config->families_max + config->families_max / 2;

	*known = (struct ruler_known){ .config = config };
	if (ruler_shelf_open(&known->family_shelf, config->families_max) < 0 ||
	    ruler_shelf_open(&known->node_shelf, nodes_max) < 0)
		return ERR_MEMORY;
	known->families = calloc(config->families_max, sizeof(*known->families));
	known->nodes = calloc(nodes_max, sizeof(*known->nodes));
	known->pools = calloc(core->pools_max, sizeof(*known->pools));
	known->budgets = calloc(core->budgets_max, sizeof(*known->budgets));
	known->models = calloc(core->models_max, sizeof(*known->models));
	if (!known->families || !known->nodes || !known->pools || !known->budgets ||
	    !known->models)
		return ERR_MEMORY;
	return 0;
}

void
ruler_known_close(struct ruler_known *known)
{
	ruler_shelf_close(&known->family_shelf);
	ruler_shelf_close(&known->node_shelf);
	free(known->families);
	free(known->nodes);
	free(known->pools);
	free(known->budgets);
	free(known->models);
	*known = (struct ruler_known){ 0 };
}

void
ruler_known_clear(struct ruler_known *known)
{
	ruler_shelf_clear(&known->family_shelf);
	ruler_shelf_clear(&known->node_shelf);
	known->nodes_complete = false;
	for (uint32_t i = 0; i < known->pools_count; i++)
		known->pools[i].slots = 0;
}

/* ---- nodes and families ---------------------------------------------------------- */

uint32_t
ruler_known_node(struct ruler_known *known, struct id128 id)
{
	uint32_t place = ruler_shelf_find(&known->node_shelf, id);

	if (place != RULER_SHELF_NONE) {
		ruler_shelf_touch(&known->node_shelf, place);
		return place;
	}
	if (ruler_shelf_is_full(&known->node_shelf)) {
		ruler_shelf_remove(&known->node_shelf, known->node_shelf.oldest);
		known->nodes_complete = false;
	}
	place = ruler_shelf_add(&known->node_shelf, id);
	known->nodes[place] = (struct ruler_node){ .first_family = RULER_SHELF_NONE };
	return place;
}

struct id128
ruler_known_twin(const struct ruler_known *known, struct id128 node)
{
	uint32_t place = ruler_shelf_find(&known->node_shelf, node);

	if (place == RULER_SHELF_NONE || id_is_none(known->nodes[place].twin))
		return node;
	return known->nodes[place].twin;
}

struct ledger_sketch
ruler_known_sketch(const struct ruler_known *known, struct id128 node)
{
	uint32_t place = ruler_shelf_find(&known->node_shelf, node);

	return place == RULER_SHELF_NONE ? (struct ledger_sketch){ 0 }
	                                 : known->nodes[place].sketch;
}

uint32_t
ruler_known_family(struct ruler_known *known, struct id128 id, bool *ret_fresh)
{
	uint32_t place = ruler_shelf_find(&known->family_shelf, id);

	*ret_fresh = place == RULER_SHELF_NONE;
	if (place != RULER_SHELF_NONE) {
		ruler_shelf_touch(&known->family_shelf, place);
		return place;
	}
	if (ruler_shelf_is_full(&known->family_shelf))
		ruler_shelf_remove(&known->family_shelf, known->family_shelf.oldest);
	place = ruler_shelf_add(&known->family_shelf, id);
	known->families[place] = (struct ruler_family){ .id = id };
	return place;
}

/* Two families under one node share it as well as two jobs of one family do. */
bool
ruler_known_sight(struct ruler_known *known, uint32_t node, uint32_t family,
                  uint64_t now_ms, uint64_t ttl_ms)
{
	struct ruler_node *it = &known->nodes[node];
	bool again = it->seen_ms > 0 && it->seen_ms + ttl_ms >= now_ms;
	bool fresh = again && !(it->flags & RULER_NODE_SHARED);

	it->seen_ms = now_ms;
	if (again)
		it->flags |= RULER_NODE_SHARED;
	else if (!(it->flags & RULER_NODE_SHARED))
		it->first_family = family;
	return fresh;
}

/* ---- names ----------------------------------------------------------------------- */

static void
copy_text(char *to, size_t size, struct span text)
{
	size_t len = MIN(text.len, size - 1);

	if (len > 0)
		memcpy(to, text.data, len);
	to[len] = '\0';
}

uint32_t
ruler_known_pool_find(const struct ruler_known *known, struct id128 id)
{
	for (uint32_t i = 0; i < known->pools_count; i++)
		if (id_equals(known->pools[i].id, id))
			return i;
	return UINT32_MAX;
}

uint32_t
ruler_known_budget_find(const struct ruler_known *known, struct id128 id)
{
	for (uint32_t i = 0; i < known->budgets_count; i++)
		if (id_equals(known->budgets[i].id, id))
			return i;
	return UINT32_MAX;
}

uint32_t
ruler_known_pool(struct ruler_known *known, struct span name, bool *ret_fresh)
{
	struct id128 id = id_of(name, NAME_SEED);
	uint32_t place = ruler_known_pool_find(known, id);
	struct ruler_pool_name *pool;

	*ret_fresh = false;
	if (place != UINT32_MAX)
		return place;
	if (known->pools_count == known->config->core.pools_max)
		return known->pools_count - 1; /* the configuration allows fewer */
	*ret_fresh = true;
	pool = &known->pools[known->pools_count];
	*pool = (struct ruler_pool_name){ .id = id };
	copy_text(pool->name, sizeof(pool->name), name);
	for (size_t i = 0; i < known->config->pools_count; i++)
		if (span_equals(known->config->pools[i].name, name))
			pool->max_wait_ms = known->config->pools[i].max_wait_ms;
	return known->pools_count++;
}

static uint32_t
add_budget(struct ruler_known *known, struct span name, size_t upstream,
           struct span class_name, bool *ret_fresh)
{
	struct id128 id = id_of(name, NAME_SEED);
	uint32_t place = ruler_known_budget_find(known, id);
	struct ruler_budget_name *budget;

	*ret_fresh = false;
	if (place != UINT32_MAX)
		return place;
	if (known->budgets_count == known->config->core.budgets_max)
		return known->budgets_count - 1;
	*ret_fresh = true;
	budget = &known->budgets[known->budgets_count];
	*budget = (struct ruler_budget_name){ .id = id, .upstream = upstream };
	copy_text(budget->name, sizeof(budget->name), name);
	copy_text(budget->class_name, sizeof(budget->class_name), class_name);
	return known->budgets_count++;
}

uint32_t
ruler_known_budget(struct ruler_known *known, size_t upstream, struct span class_name,
                   bool *ret_fresh)
{
	const struct ruler_upstream *it = &known->config->upstreams[upstream];
	char text[PROTOCOL_BUDGET_SIZE];
	size_t len = protocol_print_budget(it->name, it->account, class_name, text);

	VERIFY(len > 0); /* the configuration was checked */
	return add_budget(known, (struct span){ text, len }, upstream, class_name,
	                  ret_fresh);
}

size_t
ruler_known_budget_parse(const struct ruler_known *known, struct span name,
                         struct span *ret_class)
{
	const struct ruler_config *config = known->config;
	struct span class_name = name, owner = { "", 0 }, upstream = { "", 0 };
	size_t found = SIZE_MAX;

	(void)protocol_cut(&class_name, ':', &owner);
	(void)protocol_cut(&owner, '@', &upstream);
	for (size_t i = 0; i < config->upstreams_count; i++)
		if (span_equals(config->upstreams[i].name, upstream))
			found = i;
	*ret_class = class_name.data ? class_name : SPAN("");
	return found;
}

/* From a record: the upstream may have left the configuration meanwhile. */
uint32_t
ruler_known_budget_named(struct ruler_known *known, struct span name, bool *ret_fresh)
{
	struct span class_name;
	size_t upstream = ruler_known_budget_parse(known, name, &class_name);

	return add_budget(known, name, upstream, class_name, ret_fresh);
}

uint32_t
ruler_known_model(struct ruler_known *known, size_t upstream, size_t model,
                  bool *ret_fresh)
{
	const struct ruler_config *config = known->config;
	struct id_hash hash;
	struct id128 id;

	id_hash_init(&hash, NAME_SEED);
	id_hash_field(&hash, upstream < config->upstreams_count
	                             ? config->upstreams[upstream].name
	                             : SPAN(""));
	id_hash_field(&hash, model < config->models_count ? config->models[model].match
	                                                  : SPAN("*"));
	id = id_hash_final(&hash);
	*ret_fresh = false;
	for (uint32_t i = 0; i < known->models_count; i++)
		if (id_equals(known->models[i].id, id))
			return i;
	if (known->models_count == config->core.models_max)
		return known->models_count - 1;
	*ret_fresh = true;
	known->models[known->models_count] =
		(struct ruler_model_name){ id, upstream, model };
	return known->models_count++;
}

size_t
ruler_known_model_of(const struct ruler_known *known, struct span class_name)
{
	const struct ruler_config *config = known->config;

	for (size_t i = 0; i < config->models_count; i++)
		if (span_equals(config->models[i].class_name, class_name))
			return i;
	return SIZE_MAX;
}

/* ---- what the core is told ------------------------------------------------------- */

uint64_t
ruler_known_ttl_ms(const struct ruler_known *known, size_t upstream)
{
	const struct ruler_upstream *it;
	uint64_t ttl_ms;

	if (upstream >= known->config->upstreams_count)
		return TTL_DEFAULT_MS;
	it = &known->config->upstreams[upstream];
	ttl_ms = it->ttl_ms > 0 ? it->ttl_ms : dialect_ttl_ms(it->traits.ttl);
	return ttl_ms > 0 ? ttl_ms : TTL_DEFAULT_MS;
}

struct event
ruler_known_pool_event(const struct ruler_known *known, uint32_t pool)
{
	const struct ruler_pool_name *it = &known->pools[pool];

	return (struct event){
		.kind = EVENT_POOL,
		.pool = { it->id, it->slots, it->max_wait_ms },
	};
}

struct event
ruler_known_budget_event(const struct ruler_known *known, uint32_t budget)
{
	const struct ruler_budget_name *it = &known->budgets[budget];
	struct event event = { .kind = EVENT_BUDGET, .budget = { .id = it->id } };
	const struct ruler_upstream *upstream;

	if (it->upstream >= known->config->upstreams_count)
		return event;
	upstream = &known->config->upstreams[it->upstream];
	for (size_t i = 0; i < upstream->limits_count; i++) {
		const struct ruler_limits *limits = &upstream->limits[i];

		if (!span_equals(limits->class_name, span_from(it->class_name)))
			continue;
		event.budget.limits[EVENT_BUCKET_REQUESTS] = limits->requests;
		event.budget.limits[EVENT_BUCKET_INPUT] = limits->input;
		event.budget.limits[EVENT_BUCKET_OUTPUT] = limits->output;
		event.budget.pace_max = limits->concurrency;
	}
	return event;
}

struct event
ruler_known_model_event(const struct ruler_known *known, uint32_t model)
{
	const struct ruler_config *config = known->config;
	const struct ruler_model_name *it = &known->models[model];
	const struct ruler_upstream *upstream;
	struct dialect_traits traits;

	/* Its upstream has left the configuration: what is left of its jobs runs unheld,
	 * if any worker still has the keys. */
	if (it->upstream >= config->upstreams_count)
		return (struct event){ .kind = EVENT_MODEL, .model.id = it->id };
	upstream = &config->upstreams[it->upstream];
	traits = ruler_job_traits(config, it->upstream, it->model);
	return (struct event){
		.kind = EVENT_MODEL,
		.model = {
			.id = it->id,
			.hold = traits.dialect != DIALECT_RAW,
			.needs_marker = traits.markers != MARKER_NONE,
			.exact = upstream->exact,
			.proves = upstream->proves,
			.streams = traits.stream,
			.calls = traits.call != CALL_NONE,
			.minimum_tokens = traits.tokens_min,
			.ttl_ms = ruler_known_ttl_ms(known, it->upstream),
		},
	};
}

/* ---- sums ------------------------------------------------------------------------ */

static uint64_t
known_or_zero(int64_t value)
{
	return value > 0 ? (uint64_t)value : 0;
}

void
ruler_known_add(struct ruler_usage_sum *sum, const struct protocol_usage *usage)
{
	sum->jobs++;
	if (usage->read != PROTOCOL_UNKNOWN)
		sum->known++;
	if (usage->read > 0)
		sum->hits++;
	sum->read += known_or_zero(usage->read);
	sum->written += known_or_zero(usage->written);
	sum->uncached += known_or_zero(usage->uncached);
	sum->output += known_or_zero(usage->output);
}

void
ruler_known_merge(struct ruler_usage_sum *to, const struct ruler_usage_sum *from)
{
	to->jobs += from->jobs;
	to->hits += from->hits;
	to->known += from->known;
	to->read += from->read;
	to->written += from->written;
	to->uncached += from->uncached;
	to->output += from->output;
}
