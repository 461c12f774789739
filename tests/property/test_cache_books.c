/* Random requests against the cache model, with books of the test's own: whatever the
 * weather, the model must never give what nobody wrote, nor lose count of a token. */
#include "common/prng.h"
#include "provider/model/cache_model.h"
#include "tests/lib/suite.h"

#include <stdlib.h>

#define SECOND_US   1000000ull
#define FLIGHTS_MAX 40
#define BLOCKS_MAX  12
#define NODES       512
#define SEEDS       200
#define STEPS       400

struct trip {
	struct cache_ticket ticket;
	bool live;
	bool responded;
	uint32_t nodes[BLOCKS_MAX]; /* what it writes */
	uint32_t nodes_count;
};

struct world {
	struct prng prng;
	struct cache_model *model;
	uint64_t now_us;
	struct trip trips[FLIGHTS_MAX];
	uint64_t responded_us[NODES]; /* first response of a writer; UINT64_MAX: none */
	uint64_t used_us[NODES];      /* last start that wrote or could have read it */
	uint64_t written, read, uncached, total;
};

/* A random walk down a tree of prefixes, so that requests share them. */
static uint32_t
draw_blocks(struct world *world, struct cache_block *blocks, enum cache_mode mode)
{
	uint32_t count = (uint32_t)prng_between(&world->prng, 1, BLOCKS_MAX);
	uint32_t node = 0, markers = 0;

	for (uint32_t i = 0; i < count; i++) {
		bool marked = prng_chance(&world->prng, 300) &&
		              markers < CACHE_REQUEST_MARKERS_MAX &&
		              mode != CACHE_MODE_IMPLICIT;

		node = (node * 2 + 1 + (uint32_t)prng_below(&world->prng, 2)) % NODES;
		markers += marked;
		blocks[i] = (struct cache_block){
			.hash = { i + 1, node },
			/* The same prefix has the same tokens, whoever asks. */
			.tokens = node * 37 % 2000,
			.marker = marked ? CACHE_MARKER_5M : CACHE_MARKER_NONE,
			.look = mode == CACHE_MODE_BREAKPOINTS,
		};
	}
	return count;
}

static void
start_trip(struct world *world, struct trip *trip, enum cache_mode mode)
{
	struct cache_block blocks[BLOCKS_MAX];
	struct cache_request request = { .scope = 1,
		                         .mode = mode,
		                         .minimum_tokens = 1024,
		                         .step_tokens = 128,
		                         .blocks = blocks };
	struct cache_look look;
	struct cache_usage *usage = &look.usage;
	uint32_t tokens = 0;

	request.blocks_count = draw_blocks(world, blocks, mode);
	cache_model_look(world->model, world->now_us, &request, &look);
	ck_assert_int_eq(cache_model_start(world->model, world->now_us, &request, &look,
	                                   &trip->ticket),
	                 0);
	trip->live = true;
	trip->responded = false;
	trip->nodes_count = 0;
	for (uint32_t i = 0; i < request.blocks_count; i++) {
		tokens += blocks[i].tokens;
		if (i + 1 == look.read_end) {
			/* Nobody reads what no writer's response has begun to make. */
			ck_assert_uint_le(world->responded_us[blocks[i].hash.low],
			                  world->now_us);
			ck_assert_uint_lt(world->now_us -
			                          world->used_us[blocks[i].hash.low],
			                  300 * SECOND_US);
			ck_assert_uint_le(usage->read_tokens, tokens);
			ck_assert_uint_lt(tokens - usage->read_tokens,
			                  mode == CACHE_MODE_IMPLICIT ? 128 : 1);
		}
		if (blocks[i].marker != CACHE_MARKER_NONE ||
		    mode == CACHE_MODE_IMPLICIT || i < look.read_end)
			world->used_us[blocks[i].hash.low] = world->now_us;
		if (blocks[i].marker != CACHE_MARKER_NONE || mode == CACHE_MODE_IMPLICIT)
			trip->nodes[trip->nodes_count++] = (uint32_t)blocks[i].hash.low;
	}
	ck_assert_uint_eq(usage->total_tokens, tokens);
	ck_assert_uint_eq(usage->read_tokens + usage->written_tokens +
	                          usage->uncached_tokens,
	                  tokens);
	ck_assert_uint_eq(usage->written_5m_tokens + usage->written_1h_tokens,
	                  usage->written_tokens);
	world->total += tokens;
	world->read += usage->read_tokens;
	world->written += usage->written_tokens;
	world->uncached += usage->uncached_tokens;
}

static void
step_trip(struct world *world, struct trip *trip)
{
	if (!trip->responded && prng_chance(&world->prng, 850)) {
		cache_model_respond(world->model, world->now_us, trip->ticket);
		trip->responded = true;
		for (uint32_t i = 0; i < trip->nodes_count; i++)
			world->responded_us[trip->nodes[i]] =
				MIN(world->responded_us[trip->nodes[i]], world->now_us);
		return;
	}
	cache_model_finish(world->model, world->now_us, trip->ticket);
	trip->live = false;
}

static void
play(uint64_t seed)
{
	struct world world = { 0 };
	enum cache_mode mode = seed % CACHE_MODE_COUNT;
	uint32_t writes_max =
		FLIGHTS_MAX * (mode == CACHE_MODE_IMPLICIT ? BLOCKS_MAX : 4);
	struct cache_model_config config = {
		/* Little room: entries are forgotten while others are written. */
		.entries_max = writes_max + 20,
		.requests_max = FLIGHTS_MAX,
		.writes_max = writes_max,
		.seed = seed,
	};
	struct cache_stats stats;

	prng_init(&world.prng, seed);
	config.knobs = (struct cache_knobs){
		.lag = (enum cache_lag)prng_below(&world.prng, CACHE_LAG_COUNT),
		.lag_us = prng_below(&world.prng, 3 * SECOND_US),
		.miss_permille = (uint32_t)prng_below(&world.prng, 200),
		.evict_permille = (uint32_t)prng_below(&world.prng, 200),
		.shards = 1,
		.ttl_permille = 1000,
	};
	world.model = cache_model_init(malloc(cache_model_size(&config)),
	                               cache_model_size(&config), &config);
	for (int i = 0; i < NODES; i++)
		world.responded_us[i] = UINT64_MAX;
	for (int i = 0; i < STEPS; i++) {
		struct trip *trip = &world.trips[prng_below(&world.prng, FLIGHTS_MAX)];

		world.now_us += prng_below(&world.prng, 4 * SECOND_US);
		if (trip->live)
			step_trip(&world, trip);
		else
			start_trip(&world, trip, mode);
		if (i % 16 == 0)
			cache_model_audit(world.model);
	}
	for (int i = 0; i < FLIGHTS_MAX; i++)
		if (world.trips[i].live)
			cache_model_finish(world.model, world.now_us,
			                   world.trips[i].ticket);
	cache_model_audit(world.model);

	stats = cache_model_stats(world.model);
	ck_assert_uint_eq(stats.total_tokens, world.total);
	ck_assert_uint_eq(stats.read_tokens, world.read);
	ck_assert_uint_eq(stats.written_tokens, world.written);
	ck_assert_uint_eq(stats.uncached_tokens, world.uncached);
	ck_assert_uint_eq(stats.in_flight, 0);
	ck_assert_uint_gt(stats.reads, 0);
	free(world.model);
}

START_TEST(cache_books_sum_whatever_the_weather)
{
	for (uint64_t seed = 0; seed < SEEDS; seed++)
		play(seed);
}
END_TEST

SUITE_MAIN("cache_books", cache_books_sum_whatever_the_weather)
