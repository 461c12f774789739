#include "tests/sim/weather.h"

#define SECOND_US UINT64_C(1000000)
#define RARITIES  UINT64_C(1301) /* see draw_rarities() */
#define PACKS     UINT64_C(4328)
#define ODDITIES  UINT64_C(9911978)
#define ACTIONS   UINT64_C(1337080)
#define WIDE      UINT64_C(77107)
#define SPITE     UINT64_C(88240)
#define HEADERS   UINT64_C(55043)
#define FORGETFUL UINT64_C(61097)
#define PAUSES    UINT64_C(63053)
#define STOPS     UINT64_C(640044)
#define MONEY     UINT64_C(6500003)
#define CUT_OFF   UINT64_C(67002)
#define DEAF      UINT64_C(66104)
#define TOOLS     UINT64_C(620067)

static const struct wire_knobs CALM_WIRE = {
	.delay_us_min = 100,
	.delay_us_max = 400,
};

void
weather_init_calm(struct weather *weather, uint64_t seed)
{
	*weather = (struct weather){
		.seed = seed,
		.schedulers_count = 1,
		.workers_count = 1,
		.slots = 8,
		.jobs_count = 20,
		.upstreams_count = 1,
		.models_count = 1,
		.systems_count = 1,
		.pools_count = 1,
		.burst_permille = 1000,
		.timeout_ms = 120000,
		.tokens_per_kb = 20000,
		.output_tokens = 100,
		.wire = CALM_WIRE,
		.provider = {
			.cache = {
				.entries_max = 4096,
				.requests_max = 2048,
				.writes_max = 2048,
				.knobs = { .shards = 1 },
			},
			.timing = TIMING_KNOBS_DEFAULT,
		},
		.safety_us = 60 * SECOND_US,
		.rest_us = 75 * SECOND_US, /* one audit and all leases later */
	};
	weather->provider.timing.job_us = 2 * SECOND_US;
	weather->provider.timing.job_permille = 200;
}

/* Most seeds are small; some are a crowd. */
static void
draw_work(struct weather *weather, struct prng *prng)
{
	weather->jobs_count = (uint32_t)prng_between(prng, 8, 60);
	if (prng_chance(prng, 60))
		weather->jobs_count = (uint32_t)prng_between(prng, 150, 300);
	weather->upstreams_count = 1 + prng_chance(prng, 250);
	weather->models_count = 1 + prng_chance(prng, 250);
	weather->systems_count = (uint32_t)prng_between(prng, 1, 4);
	weather->documents_count =
		prng_chance(prng, 350) ? (uint32_t)prng_between(prng, 1, 4) : 0;

	weather->arrive_us = prng_between(prng, 0, 60) * SECOND_US;
	weather->burst_permille = (uint32_t)prng_between(prng, 0, 1000);
	weather->hold_max_ms =
		prng_chance(prng, 300) ? prng_between(prng, 3000, 20000) : 0;
	weather->timeout_ms = prng_between(prng, 20000, 90000);
	weather->tokens_per_kb = (uint32_t)prng_between(prng, 2000, 40000);
	weather->output_tokens = (uint32_t)prng_between(prng, 10, 2000);
	weather->provider.timing.job_us =
		(uint32_t)(prng_between(prng, 1, 80) * SECOND_US / 10);
	weather->provider.timing.job_permille = (uint32_t)prng_between(prng, 0, 900);
}

/* Kinds of jobs that are rare in life and present in some seeds. */
static void
draw_kinds(struct weather *weather, struct prng *prng)
{
	uint32_t *kinds[] = {
		&weather->single_permille, &weather->opaque_permille,
		&weather->inline_permille, &weather->named_permille,
		&weather->packed_permille, &weather->reply_permille,
		&weather->now_permille,    &weather->band_permille,
		&weather->later_permille,  &weather->deadline_permille,
		&weather->cancel_permille, &weather->bad_permille,
	};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		bool there = prng_chance(prng, 300);
		uint32_t share = (uint32_t)prng_between(prng, 20, 400);

		*kinds[i] = there ? share : 0;
	}
	weather->cancel_permille = MIN(weather->cancel_permille, 150);
	weather->bad_permille = MIN(weather->bad_permille, 100);
}

static void
draw_fleet(struct weather *weather, struct prng *prng)
{
	weather->schedulers_count = 1 + prng_chance(prng, 400);
	weather->workers_count = (uint32_t)prng_between(prng, 1, 4);
	weather->slots = (uint32_t)prng_between(prng, 1, 16);
	if (prng_chance(prng, 100))
		weather->slots = 64;
	weather->pools_count =
		weather->workers_count > 1 && prng_chance(prng, 200) ? 2 : 1;
	weather->drift_ppm = prng_chance(prng, 300) ? 500 : 0;
}

static void
draw_links(struct weather *weather, struct prng *prng)
{
	weather->wire.delay_us_max = prng_chance(prng, 300) ? 60000 : 2000;
	if (prng_chance(prng, 500)) {
		weather->wire.cut_permille = (uint32_t)prng_between(prng, 1, 20);
		weather->wire.silent_permille = (uint32_t)prng_between(prng, 0, 500);
		weather->wire.late_permille = (uint32_t)prng_between(prng, 0, 500);
		weather->wire.lost_permille = (uint32_t)prng_between(prng, 0, 500);
		weather->wire.late_us_max = prng_between(prng, 1, 40) * SECOND_US;
	}
	weather->wake_lost_permille =
		prng_chance(prng, 400) ? (uint32_t)prng_between(prng, 0, 1000) : 0;
}

static uint32_t
draw_count(struct prng *prng, uint32_t permille, uint32_t max)
{
	bool there = prng_chance(prng, permille);
	uint32_t count = (uint32_t)prng_between(prng, 1, max);

	return there ? count : 0;
}

static void
draw_accidents(struct weather *weather, struct prng *prng)
{
	weather->worker_crashes = draw_count(prng, 350, 4);
	weather->worker_freezes = draw_count(prng, 250, 3);
	weather->scheduler_crashes = draw_count(prng, 300, 3);
	weather->scheduler_freezes = draw_count(prng, 200, 2);
	weather->redis_restarts = draw_count(prng, 200, 2);
	weather->clock_steps = draw_count(prng, 150, 2);
	weather->clogs = draw_count(prng, 250, 3);
	weather->partitions = draw_count(prng, 250, 3);
	weather->hold_flips = draw_count(prng, 80, 2);
	weather->redis_lost_us_max = prng_chance(prng, 500) ? SECOND_US : 0;
	weather->freeze_us_max = prng_between(prng, 1, 90) * SECOND_US;
	weather->clock_step_us_max = prng_between(prng, 1, 60) * SECOND_US;
}

void
weather_draw_provider(struct weather *weather, struct prng *prng)
{
	struct cache_knobs *cache = &weather->provider.cache.knobs;
	uint32_t *faults = weather->provider.fault.permille;

	*cache = (struct cache_knobs){ .shards = 1 };
	if (prng_chance(prng, 500)) {
		cache->lag = (enum cache_lag)prng_below(prng, CACHE_LAG_COUNT);
		cache->lag_us = prng_between(prng, 0, 2500) * 1000;
	}
	cache->off = prng_chance(prng, 80);
	cache->readable_at_end = prng_chance(prng, 80);
	cache->miss_permille =
		prng_chance(prng, 150) ? (uint32_t)prng_between(prng, 10, 300) : 0;
	cache->evict_permille =
		prng_chance(prng, 150) ? (uint32_t)prng_between(prng, 10, 200) : 0;
	cache->unknown_permille =
		prng_chance(prng, 150) ? (uint32_t)prng_between(prng, 100, 1000) : 0;
	memset(faults, 0, sizeof weather->provider.fault.permille);
	for (int fault = FAULT_NONE + 1; fault < FAULT_COUNT; fault++) {
		bool there = prng_chance(prng, 120);
		uint32_t rate = (uint32_t)prng_between(prng, 10, 70);

		faults[fault] = there ? rate : 0;
	}
	weather->provider.retry_after_ms =
		prng_chance(prng, 500) ? (uint32_t)prng_between(prng, 200, 5000) : 0;
}

static void
draw_limits(struct weather *weather, struct prng *prng)
{
	struct limit_knobs knobs = { 0 };

	if (!prng_chance(prng, 200))
		return;
	knobs.per_minute[LIMIT_BUCKET_REQUESTS] = (uint32_t)prng_between(prng, 60, 600);
	knobs.per_minute[LIMIT_BUCKET_INPUT] =
		(uint32_t)prng_between(prng, 100000, 2000000);
	knobs.per_minute[LIMIT_BUCKET_OUTPUT] =
		(uint32_t)prng_between(prng, 50000, 400000);
	for (int class = 0; class < ENGINE_CLASSES_MAX; class ++)
		weather->provider.limits[class] = knobs;
	if (prng_chance(prng, 500)) {
		for (int bucket = 0; bucket < LIMIT_BUCKET_COUNT; bucket++)
			weather->limits[bucket] = knobs.per_minute[bucket];
	}
}

/* In the midst of work: for so long that leases end, or even the entries of caches. */
static void
draw_outage(struct weather *weather, struct prng *prng)
{
	bool is_long = prng_chance(prng, 600);

	weather->outage_at_us = prng_between(prng, 2, 30) * SECOND_US;
	weather->outage_us = prng_between(prng, 12, 50) * SECOND_US;
	if (is_long)
		weather->outage_us = prng_between(prng, 280, 320) * SECOND_US;
	weather->slots = (uint32_t)prng_between(prng, 1, 3);
	weather->burst_permille = MAX(weather->burst_permille, 700);
	weather->safety_us =
		MAX(weather->safety_us,
	            weather->outage_at_us + weather->outage_us + 60 * SECOND_US);
}

/* So little is allowed that buckets run empty. */
static void
draw_tight_limits(struct weather *weather, struct prng *prng)
{
	uint32_t *limits = weather->provider.limits[0].per_minute;

	limits[LIMIT_BUCKET_REQUESTS] = (uint32_t)prng_between(prng, 12, 60);
	limits[LIMIT_BUCKET_INPUT] =
		(uint32_t)prng_between(prng, 8, 30) * weather->tokens_per_kb;
	limits[LIMIT_BUCKET_OUTPUT] =
		(uint32_t)prng_between(prng, 5, 30) * weather->output_tokens;
	for (int class = 1; class < ENGINE_CLASSES_MAX; class ++)
		weather->provider.limits[class] = weather->provider.limits[0];
	for (int bucket = 0; bucket < LIMIT_BUCKET_COUNT; bucket++)
		weather->limits[bucket] = limits[bucket];
}

/* Connections are cut while work comes in, and what was under way on them runs later. */
static void
draw_echoes(struct weather *weather, struct prng *prng)
{
	weather->wire.delay_us_max = 20000;
	weather->wire.cut_permille = (uint32_t)prng_between(prng, 20, 60);
	weather->wire.late_permille = 900;
	weather->wire.late_us_max = prng_between(prng, 1, 4) * SECOND_US;
	weather->arrive_us = MAX(weather->arrive_us, 30 * SECOND_US);
	weather->burst_permille = 0;
}

static void
draw_impatience(struct weather *weather, struct prng *prng)
{
	weather->max_wait_ms = prng_between(prng, 1000, 8000);
	weather->systems_count = MAX(weather->systems_count, 3);
	weather->workers_count = 1;
	weather->pools_count = 1;
	weather->slots = (uint32_t)prng_between(prng, 2, 8);
	weather->jobs_count = MAX(weather->jobs_count, 50);
	weather->burst_permille = 800;
}

static void
draw_haste(struct weather *weather)
{
	weather->hasty = true;
	weather->cancel_permille = 200;
}

/* Documents of one job only, under system prompts that many have. */
static void
draw_lonely(struct weather *weather)
{
	weather->lonely = true;
	weather->single_permille = 400;
	weather->documents_count = MAX(weather->documents_count, 2);
}

static struct prng
fork_apart(const struct weather *weather, uint64_t number)
{
	struct prng prng;

	prng_init(&prng, weather->seed + number * UINT64_C(0x9e3779b97f4a7c15));
	return prng;
}

/* What people do on the page. */
static void
draw_actions(struct weather *weather, struct prng *prng)
{
	bool there[4]; /* the numbers were chosen for so many */

	for (size_t i = 0; i < ARRAY_SIZE(there); i++)
		there[i] = prng_chance(prng, 80);
	if (there[0])
		weather->unparks = (uint32_t)prng_between(prng, 1, 6);
	if (there[1])
		weather->steers = (uint32_t)prng_between(prng, 1, 8);
	if (there[2])
		weather->route_flips = (uint32_t)prng_between(prng, 1, 4);
	if (!there[3])
		return;
	/* So few jobs, for so long, that entries die and families are idle. */
	weather->warms = (uint32_t)prng_between(prng, 5, 60);
	weather->arrive_us = prng_between(prng, 330, 500) * SECOND_US;
	weather->burst_permille = 0;
	weather->jobs_count = MIN(weather->jobs_count, 24);
	weather->safety_us = weather->arrive_us + 10 * SECOND_US;
}

/* So many prompts, on a provider that keeps them, that a model is trusted in the end. */
static void
draw_wide(struct weather *weather, struct prng *prng)
{
	struct cache_knobs *cache = &weather->provider.cache.knobs;

	weather->models_count = 1;
	weather->systems_count = (uint32_t)prng_between(prng, 20, 40);
	weather->jobs_count = (uint32_t)prng_between(prng, 100, 250);
	weather->pools_count = 1;
	weather->slots = MAX(weather->slots, 4);
	cache->off = false;
	cache->miss_permille = cache->evict_permille = cache->unknown_permille = 0;
	if (prng_chance(prng, 500))
		weather->provider_changes = true; /* and is not to be, later */
}

/* One thing goes wrong most of the time. */
static void
draw_spite(struct weather *weather, struct prng *prng)
{
	static const enum fault FAULTS[] = {
		FAULT_BAD_REQUEST, FAULT_RATE_LIMIT, FAULT_SERVER_ERROR,
		FAULT_CUT_USAGE,   FAULT_STALL,
	};
	uint32_t *faults = weather->provider.fault.permille;

	memset(faults, 0, sizeof weather->provider.fault.permille);
	faults[FAULTS[prng_below(prng, ARRAY_SIZE(FAULTS))]] =
		(uint32_t)prng_between(prng, 300, 800);
}

/* One prompt that is written and then often missed, and so few slots that the readers of
 * a stage start one by one. */
static void
draw_forgetful(struct weather *weather, struct prng *prng)
{
	struct cache_knobs *cache = &weather->provider.cache.knobs;

	weather->upstreams_count = weather->models_count = weather->pools_count = 1;
	weather->systems_count = 1;
	weather->workers_count = 1;
	weather->slots = 1 + prng_chance(prng, 300);
	weather->jobs_count = (uint32_t)prng_between(prng, 80, 200);
	weather->burst_permille = 900;
	weather->single_permille = weather->opaque_permille = weather->now_permille = 0;
	weather->arrive_us = 10 * SECOND_US;
	weather->provider.timing.job_us = SECOND_US / 4;
	weather->safety_us = MAX(weather->safety_us, 90 * SECOND_US);
	weather->provider_changes = false;
	*cache = (struct cache_knobs){ .shards = 1 };
	cache->miss_permille = (uint32_t)prng_between(prng, 350, 700);
	memset(weather->provider.fault.permille, 0,
	       sizeof weather->provider.fault.permille);
}

/* Tools of the provider's own write what they have found behind the prefix: usage tells
 * of more than the prefix has. */
static void
draw_tools(struct weather *weather, struct prng *prng)
{
	weather->tools_permille = (uint32_t)prng_between(prng, 100, 1000);
}

/* While jobs come in, the provider's accounts have reached their spend cap. */
static void
draw_no_money(struct weather *weather, struct prng *prng)
{
	weather->broke_at_us = prng_between(prng, 1, 30) * SECOND_US;
	weather->broke_us = prng_between(prng, 10, 400) * SECOND_US;
	weather->safety_us =
		MAX(weather->safety_us,
	            weather->broke_at_us + weather->broke_us + 20 * SECOND_US);
}

/* Some workers, or all, reach no provider for a while. */
static void
draw_cut_off(struct weather *weather, struct prng *prng)
{
	weather->cut_off_at_us = prng_between(prng, 1, 20) * SECOND_US;
	weather->cut_off_us = prng_between(prng, 5, 90) * SECOND_US;
	weather->cut_off_workers =
		(uint32_t)prng_between(prng, 1, weather->workers_count);
	weather->safety_us =
		MAX(weather->safety_us,
	            weather->cut_off_at_us + weather->cut_off_us + 20 * SECOND_US);
}

enum oddity {
	ODDITY_IMPATIENT,
	ODDITY_TIGHT,
	ODDITY_ECHOES,
	ODDITY_HASTY,
	ODDITY_LONELY,
	ODDITY_COUNT,
};

/* Rare ways of the world, each in a share of the seeds.  They are drawn apart, and the
 * numbers are such that the seeds that failed before (seeds.txt) draw none that they did
 * not draw then: so those keep their weather. */
static void
draw_rarities(struct weather *weather)
{
	struct prng packs = fork_apart(weather, PACKS);
	struct prng rarities = fork_apart(weather, RARITIES);
	struct prng prng = fork_apart(weather, ODDITIES);
	struct prng actions = fork_apart(weather, ACTIONS);
	struct prng wide = fork_apart(weather, WIDE);
	struct prng spite = fork_apart(weather, SPITE);
	struct prng headers = fork_apart(weather, HEADERS);
	bool there[ODDITY_COUNT];

	for (size_t i = 0; i < ARRAY_SIZE(there); i++)
		there[i] = prng_chance(&prng, 120);
	if (there[ODDITY_IMPATIENT])
		draw_impatience(weather, &prng);
	if (there[ODDITY_TIGHT])
		draw_tight_limits(weather, &prng);
	if (there[ODDITY_ECHOES])
		draw_echoes(weather, &prng);
	if (there[ODDITY_HASTY])
		draw_haste(weather);
	if (there[ODDITY_LONELY])
		draw_lonely(weather);
	weather->packed_permille =
		prng_chance(&packs, 150) ? (uint32_t)prng_between(&packs, 100, 900) : 0;
	weather->stranger = prng_chance(&rarities, 120);
	if (prng_chance(&rarities, 120))
		draw_outage(weather, &rarities);
	draw_actions(weather, &actions);
	if (prng_chance(&wide, 60))
		draw_wide(weather, &wide);
	if (prng_chance(&spite, 60))
		draw_spite(weather, &spite);
	weather->tells_limits = prng_chance(&headers, 100);
	if (weather->tells_limits && prng_chance(&headers, 500))
		draw_limits(weather, &headers);
}

/* As above: each drawn apart, and none in a seed that failed before. */
static void
draw_oddities(struct weather *weather)
{
	struct prng forgetful = fork_apart(weather, FORGETFUL);
	struct prng tools = fork_apart(weather, TOOLS);
	struct prng pauses = fork_apart(weather, PAUSES);
	struct prng stops = fork_apart(weather, STOPS);
	struct prng money = fork_apart(weather, MONEY);
	struct prng deaf = fork_apart(weather, DEAF);
	struct prng cut_off = fork_apart(weather, CUT_OFF);

	if (prng_chance(&forgetful, 40))
		draw_forgetful(weather, &forgetful);
	if (prng_chance(&tools, 40))
		draw_tools(weather, &tools);
	if (prng_chance(&pauses, 60))
		weather->pauses = (uint32_t)prng_between(&pauses, 1, 8);
	if (prng_chance(&stops, 60))
		weather->worker_stops = (uint32_t)prng_between(&stops, 1, 6);
	if (prng_chance(&money, 50))
		draw_no_money(weather, &money);
	if (prng_chance(&cut_off, 50))
		draw_cut_off(weather, &cut_off);
	if (prng_chance(&deaf, 60))
		weather->deaf_permille = (uint32_t)prng_between(&deaf, 20, 500);
}

void
weather_init(struct weather *weather, uint64_t seed)
{
	struct prng root;
	struct prng parts[7];

	weather_init_calm(weather, seed);
	prng_init(&root, seed);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		parts[i] = prng_fork(&root);
	draw_fleet(weather, &parts[0]);
	draw_work(weather, &parts[1]);
	draw_kinds(weather, &parts[2]);
	draw_limits(weather, &parts[3]);
	weather->safety_us = prng_between(&parts[4], 30, 120) * SECOND_US;
	if (!prng_chance(&parts[4], 900))
		return; /* a quiet day: then nothing excuses anything */
	if (prng_chance(&parts[4], 700))
		draw_links(weather, &parts[5]);
	if (prng_chance(&parts[4], 700))
		draw_accidents(weather, &parts[5]);
	if (prng_chance(&parts[4], 600))
		weather_draw_provider(weather, &parts[6]);
	weather->provider_changes = prng_chance(&parts[4], 200);
	draw_rarities(weather);
	draw_oddities(weather);
}

const char *
weather_pool(uint32_t index)
{
	static const char *const NAMES[] = { "default", "pool1", "pool2", "pool3" };

	VERIFY(index < ARRAY_SIZE(NAMES));
	return NAMES[index];
}

void
weather_clear(struct weather *weather)
{
	weather->wire = CALM_WIRE;
	weather->wake_lost_permille = 0;
	weather->deaf_permille = 0;
	weather->cut_off_us = 0;
	weather->provider_changes = false;
	if (weather->keeps_trouble)
		return;
	weather->provider.cache.knobs = (struct cache_knobs){ .shards = 1 };
	memset(&weather->provider.fault, 0, sizeof weather->provider.fault);
}
