#include "provider/model/cache_model.h"

#include "common/prng.h"
#include "provider/model/cache_lookup.h"
#include "provider/model/cache_route.h"
#include "provider/model/cache_store.h"

#define NONE UINT32_MAX

/* One entry that one request in flight is writing. */
struct record {
	uint32_t entry;
	uint32_t next; /* of the same flight, or of the free list */
	uint64_t ttl_us;
	bool counted; /* charged: it is among the entry's unproven writers */
};

enum flight_state {
	FLIGHT_FREE,
	FLIGHT_STARTED,
	FLIGHT_RESPONDED,
};

struct flight {
	uint64_t start_us;
	enum flight_state state;
	uint32_t generation;
	uint32_t records; /* list of what it writes */
	uint32_t next_free;
};

struct cache_model {
	struct cache_model_config config;
	struct cache_stats stats;
	struct cache_store store;
	struct cache_route route;
	struct prng prng;
	uint64_t now_us;
	struct flight *flights;
	struct record *records;
	uint32_t flights_free;
	uint32_t records_free;
	uint32_t records_free_count;
};

static size_t
round_up(size_t size)
{
	return (size + 15) & ~(size_t)15;
}

static void
advance(struct cache_model *model, uint64_t now_us)
{
	VERIFY(now_us >= model->now_us);
	model->now_us = now_us;
}

static uint64_t
draw_lag_us(struct cache_model *model)
{
	const struct cache_knobs *knobs = &model->config.knobs;

	if (knobs->lag == CACHE_LAG_UNIFORM)
		return prng_between(&model->prng, 0, knobs->lag_us);
	return knobs->lag_us;
}

static uint64_t
ttl_us(const struct cache_model *model, const struct cache_block *block)
{
	uint32_t permille = model->config.knobs.ttl_permille;
	uint64_t ttl = cache_request_ttl_us(block->marker);

	return permille > 0 ? ttl * permille / 1000 : ttl;
}

/* The lag drawn for the response, or the prefix's own. */
static uint64_t
lag_of(const struct cache_model *model, const struct cache_entry *entry, uint64_t lag_us)
{
	struct prng prng;

	if (model->config.knobs.lag != CACHE_LAG_PER_NODE)
		return lag_us;
	prng_init(&prng, model->config.seed ^ entry->key.high ^ entry->key.low);
	return prng_between(&prng, 0, lag_us);
}

static bool
is_gone(const struct cache_model *model, const struct cache_entry *entry)
{
	return cache_store_is_gone(entry, model->now_us, model->config.knobs.grace_us);
}

static bool
is_readable(const struct cache_model *model, const struct cache_entry *entry)
{
	return cache_store_is_readable(entry, model->now_us,
	                               model->config.knobs.grace_us);
}

static void
evict_prefix(struct cache_model *model, const struct cache_request *request,
             uint32_t shard, uint32_t end)
{
	for (uint32_t i = 0; i < end; i++) {
		uint32_t index = cache_store_find(&model->store, request->scope, shard,
		                                  request->blocks[i].hash);

		if (index == CACHE_STORE_NONE)
			continue;
		cache_store_evict(&model->store.entries[index]);
	}
	model->stats.evicted++;
}

void
cache_model_look(struct cache_model *model, uint64_t now_us,
                 const struct cache_request *request, struct cache_look *ret_look)
{
	const struct cache_knobs *knobs = &model->config.knobs;
	struct cache_look look = { 0 };

	advance(model, now_us);
	VERIFY(request->blocks_count <= CACHE_REQUEST_BLOCKS_MAX);
	look.usage.known = !prng_chance(&model->prng, knobs->unknown_permille);
	if (knobs->off) {
		for (uint32_t i = 0; i < request->blocks_count; i++)
			look.usage.total_tokens += request->blocks[i].tokens;
		look.usage.uncached_tokens = look.usage.total_tokens;
		*ret_look = look;
		return;
	}
	look.shard = cache_route_draw(&model->route, now_us, request->routing,
	                              knobs->shards, knobs->shard_rpm, &model->prng);
	look.read_end = cache_lookup_read_end(&(struct cache_lookup){
		.store = &model->store,
		.request = request,
		.shard = look.shard,
		.now_us = now_us,
		.grace_us = knobs->grace_us,
	});
	if (look.read_end > 0 && prng_chance(&model->prng, knobs->miss_permille)) {
		look.missed = true;
		look.read_end = 0;
	}
	if (look.read_end > 0 && prng_chance(&model->prng, knobs->evict_permille)) {
		evict_prefix(model, request, look.shard, look.read_end);
		look.read_end = 0;
	}
	cache_lookup_settle(request, &look);
	*ret_look = look;
}

/* --- one request ------------------------------------------------------------------- */

/* Notes that the flight writes this block's entry.  A write past what was read is
 * counted, and answers whether it is a duplicate. */
static bool
record_write(struct cache_model *model, struct flight *flight, uint32_t entry_index,
             uint64_t ttl_us, uint32_t tokens, bool counted)
{
	struct cache_entry *entry = &model->store.entries[entry_index];
	uint32_t index = model->records_free;
	bool duplicate;

	VERIFY(index != NONE);
	model->records_free = model->records[index].next;
	model->records_free_count--;
	model->records[index] = (struct record){ .entry = entry_index,
		                                 .next = flight->records,
		                                 .ttl_us = ttl_us,
		                                 .counted = counted };
	flight->records = index;
	entry->pins++;
	entry->node.tokens = tokens;
	if (!counted)
		return false;

	duplicate = entry->node.writers > 0 || model->now_us < entry->node.expires_us;
	entry->node.writes++;
	entry->node.duplicate_writes += duplicate;
	entry->node.writers++;
	entry->node.writers_max = MAX(entry->node.writers_max, entry->node.writers);
	model->stats.node_writes++;
	model->stats.node_duplicates += duplicate;
	model->stats.writers_max = MAX(model->stats.writers_max, entry->node.writers);
	return duplicate;
}

/* The part of the request that is read: the entries it names live on.  One it marks
 * but that does not exist (its own read came through a deeper one) is written again,
 * free of charge. */
static void
book_read(struct cache_model *model, struct flight *flight,
          const struct cache_request *request, const struct cache_look *look)
{
	uint32_t before = 0, after = 0;

	for (uint32_t i = 0; i < look->read_end; i++) {
		bool stored;
		uint32_t index;

		before = after;
		after += request->blocks[i].tokens;
		stored = cache_lookup_is_stored(request, i, before, after);
		if (!stored && i + 1 < look->read_end)
			continue;
		index = cache_store_take(&model->store, request->scope, look->shard,
		                         request->blocks[i].hash);
		if (is_readable(model, &model->store.entries[index]))
			cache_store_refresh(&model->store.entries[index], model->now_us);
		else
			(void)record_write(model, flight, index,
			                   ttl_us(model, &request->blocks[i]), after,
			                   false);
		if (i + 1 == look->read_end)
			model->store.entries[index].node.reads++;
	}
}

/* The part that is written.  Answers how many entries, and of them duplicates. */
static uint32_t
book_writes(struct cache_model *model, struct flight *flight,
            const struct cache_request *request, const struct cache_look *look,
            uint32_t *ret_duplicates)
{
	uint32_t before = 0, after = look->prefix_tokens, writes = 0, duplicates = 0;

	for (uint32_t i = look->read_end; i < look->stored_end; i++) {
		uint32_t index;

		before = after;
		after += request->blocks[i].tokens;
		if (!cache_lookup_is_stored(request, i, before, after))
			continue;
		index = cache_store_take(&model->store, request->scope, look->shard,
		                         request->blocks[i].hash);
		duplicates +=
			record_write(model, flight, index,
		                     ttl_us(model, &request->blocks[i]), after, true);
		writes++;
	}
	*ret_duplicates = duplicates;
	return writes;
}

static void
book_stats(struct cache_model *model, const struct cache_request *request,
           const struct cache_look *look, uint32_t writes, uint32_t duplicates)
{
	struct cache_stats *stats = &model->stats;
	const struct cache_usage *usage = &look->usage;
	bool wrote = writes > 0;

	if (request->mode == CACHE_MODE_IMPLICIT)
		wrote = wrote && usage->stored_tokens >= request->minimum_tokens;
	stats->requests++;
	stats->writes += wrote;
	stats->duplicate_writes += wrote && duplicates > 0;
	stats->reads += usage->read_tokens > 0;
	stats->total_tokens += usage->total_tokens;
	stats->read_tokens += usage->read_tokens;
	stats->written_tokens += usage->written_tokens;
	stats->uncached_tokens += usage->uncached_tokens;
	stats->missed += look->missed;
	stats->in_flight++;
	stats->in_flight_max = MAX(stats->in_flight_max, stats->in_flight);
}

/* An upper bound of the entries a request may write. */
static uint32_t
writes_bound(const struct cache_request *request)
{
	return request->mode == CACHE_MODE_IMPLICIT ? request->blocks_count
	                                            : CACHE_REQUEST_MARKERS_MAX;
}

int
cache_model_start(struct cache_model *model, uint64_t now_us,
                  const struct cache_request *request, const struct cache_look *look,
                  struct cache_ticket *ret_ticket)
{
	uint32_t index = model->flights_free;
	struct flight *flight;
	uint32_t writes = 0, duplicates = 0;

	advance(model, now_us);
	if (index == NONE || model->records_free_count < writes_bound(request))
		return ERR_FULL;

	flight = &model->flights[index];
	VERIFY(flight->state == FLIGHT_FREE);
	model->flights_free = flight->next_free;
	flight->state = FLIGHT_STARTED;
	flight->start_us = now_us;
	flight->generation++;
	flight->records = NONE;
	if (!model->config.knobs.off) {
		cache_route_count(&model->route, now_us, request->routing);
		book_read(model, flight, request, look);
		writes = book_writes(model, flight, request, look, &duplicates);
	}
	book_stats(model, request, look, writes, duplicates);
	*ret_ticket = (struct cache_ticket){ index, flight->generation };
	return 0;
}

static struct flight *
flight_of(struct cache_model *model, struct cache_ticket ticket)
{
	struct flight *flight;

	VERIFY(ticket.index < model->config.requests_max);
	flight = &model->flights[ticket.index];
	VERIFY(flight->generation == ticket.generation);
	VERIFY(flight->state != FLIGHT_FREE);
	return flight;
}

/* Ends the flight's writing: its entries appear, or are as if never begun. */
static void
release_records(struct cache_model *model, struct flight *flight, bool written)
{
	uint64_t lag_us = 0;

	if (written && flight->records != NONE)
		lag_us = draw_lag_us(model);
	while (flight->records != NONE) {
		struct record *record = &model->records[flight->records];
		struct cache_entry *entry = &model->store.entries[record->entry];
		uint32_t next = record->next;

		if (written)
			cache_store_appear(entry, is_gone(model, entry), flight->start_us,
			                   record->ttl_us,
			                   model->now_us + lag_of(model, entry, lag_us));
		VERIFY(entry->pins > 0);
		entry->pins--;
		if (record->counted) {
			VERIFY(entry->node.writers > 0);
			entry->node.writers--;
		}
		record->next = model->records_free;
		model->records_free = flight->records;
		model->records_free_count++;
		flight->records = next;
	}
}

void
cache_model_respond(struct cache_model *model, uint64_t now_us,
                    struct cache_ticket ticket)
{
	struct flight *flight = flight_of(model, ticket);

	advance(model, now_us);
	VERIFY(flight->state == FLIGHT_STARTED);
	flight->state = FLIGHT_RESPONDED;
	if (!model->config.knobs.readable_at_end)
		release_records(model, flight, true);
}

void
cache_model_finish(struct cache_model *model, uint64_t now_us, struct cache_ticket ticket)
{
	struct flight *flight = flight_of(model, ticket);
	bool responded = flight->state == FLIGHT_RESPONDED;

	advance(model, now_us);
	release_records(model, flight, responded);
	model->stats.aborted += !responded;
	model->stats.in_flight--;
	flight->state = FLIGHT_FREE;
	flight->next_free = model->flights_free;
	model->flights_free = ticket.index;
}

/* --- life -------------------------------------------------------------------------- */

size_t
cache_model_size(const struct cache_model_config *config)
{
	return round_up(sizeof(struct cache_model)) +
	       round_up(cache_store_size(config->entries_max)) +
	       round_up(config->requests_max * sizeof(struct flight)) +
	       round_up(config->writes_max * sizeof(struct record));
}

static void
verify_knobs(const struct cache_knobs *knobs)
{
	VERIFY(knobs->lag < CACHE_LAG_COUNT);
	VERIFY(knobs->shards >= 1);
	VERIFY(knobs->ttl_permille <= 1000);
	VERIFY(knobs->miss_permille <= 1000);
	VERIFY(knobs->evict_permille <= 1000);
	VERIFY(knobs->unknown_permille <= 1000);
}

struct cache_model *
cache_model_init(void *memory, size_t size, const struct cache_model_config *config)
{
	struct cache_model *model = memory;
	char *next = (char *)memory + round_up(sizeof *model);

	VERIFY(size >= cache_model_size(config));
	VERIFY(config->requests_max > 0);
	VERIFY(config->writes_max >= CACHE_REQUEST_MARKERS_MAX);
	VERIFY(config->entries_max > config->writes_max);
	verify_knobs(&config->knobs);
	*model = (struct cache_model){ .config = *config };
	prng_init(&model->prng, config->seed);
	cache_route_init(&model->route);
	cache_store_init(&model->store, next, config->entries_max);
	next += round_up(cache_store_size(config->entries_max));
	model->flights = (void *)next;
	next += round_up(config->requests_max * sizeof(struct flight));
	model->records = (void *)next;

	for (uint32_t i = 0; i < config->requests_max; i++)
		model->flights[i] = (struct flight){
			.records = NONE,
			.next_free = i + 1 < config->requests_max ? i + 1 : NONE,
		};
	for (uint32_t i = 0; i < config->writes_max; i++)
		model->records[i].next = i + 1 < config->writes_max ? i + 1 : NONE;
	model->records_free_count = config->writes_max;
	return model;
}

void
cache_model_set_knobs(struct cache_model *model, const struct cache_knobs *knobs)
{
	verify_knobs(knobs);
	model->config.knobs = *knobs;
}

void
cache_model_reset(struct cache_model *model)
{
	uint32_t in_flight = model->stats.in_flight;

	for (uint32_t i = 0; i < model->config.requests_max; i++)
		release_records(model, &model->flights[i], false);
	cache_store_clear(&model->store);
	cache_route_init(&model->route);
	prng_init(&model->prng, model->config.seed);
	model->stats = (struct cache_stats){ .in_flight = in_flight,
		                             .in_flight_max = in_flight };
}

/* --- questions --------------------------------------------------------------------- */

struct cache_stats
cache_model_stats(const struct cache_model *model)
{
	struct cache_stats stats = model->stats;

	stats.forgotten = model->store.forgotten;
	return stats;
}

bool
cache_model_next(const struct cache_model *model, uint32_t *cursor,
                 struct cache_node *ret_node)
{
	uint32_t index = *cursor == 0 ? model->store.newest
	                              : model->store.entries[*cursor - 1].older;

	if (index == CACHE_STORE_NONE)
		return false;
	*ret_node = model->store.entries[index].node;
	*cursor = index + 1;
	return true;
}

int
cache_model_find(const struct cache_model *model, uint64_t scope, uint32_t shard,
                 struct id128 hash, struct cache_node *ret_node)
{
	uint32_t index = cache_store_find(&model->store, scope, shard, hash);

	if (index == CACHE_STORE_NONE)
		return ERR_NOT_FOUND;
	*ret_node = model->store.entries[index].node;
	return 0;
}

void
cache_model_audit(const struct cache_model *model)
{
	uint32_t in_flight = 0, records = model->records_free_count;
	uint64_t pins = 0, counted = 0;

	cache_store_audit(&model->store);
	for (uint32_t i = 0; i < model->config.requests_max; i++) {
		const struct flight *flight = &model->flights[i];

		in_flight += flight->state != FLIGHT_FREE;
		VERIFY(flight->state != FLIGHT_FREE || flight->records == NONE);
		for (uint32_t r = flight->records; r != NONE;
		     r = model->records[r].next) {
			records++;
			pins++;
			counted += model->records[r].counted;
		}
	}
	for (uint32_t i = 0; i < model->store.count; i++) {
		pins -= model->store.entries[i].pins;
		counted -= model->store.entries[i].node.writers;
	}
	VERIFY(pins == 0);
	VERIFY(counted == 0);
	VERIFY(records == model->config.writes_max);
	VERIFY(in_flight == model->stats.in_flight);
	VERIFY(model->stats.total_tokens == model->stats.read_tokens +
	                                            model->stats.written_tokens +
	                                            model->stats.uncached_tokens);
}
