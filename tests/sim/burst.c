#include "tests/sim/burst.h"

#include "tests/sim/world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define SECOND_US  UINT64_C(1000000)
#define PREFIX     30000            /* tokens */
#define WAVE_US    (90 * SECOND_US) /* the wave before has ended by then */
#define TAIL_US    (10000)          /* prefill of what a job adds */
#define LATENCY_US (100000)

struct burst {
	uint32_t jobs, slots, waves, seeds;
	uint64_t job_ms;
	uint64_t lag_ms;
	bool uniform, naive, cache_off, usage_missing, limits, single, trace;
	enum producer_shape shape;
	uint64_t bound_lag_ms; /* in place of the true lag */
};

static const struct burst DEFAULTS = {
	.jobs = 200, .slots = 200, .waves = 1, .seeds = 20, .job_ms = 10000
};

struct figures {
	double writes_mean, price, makespan_ms, ratio, refused_permille;
	uint64_t writes_max, writers_max, ended, requests, makespan_ms_max;
};

static void
fill_weather(const struct burst *burst, uint64_t seed, struct weather *weather)
{
	struct limit_knobs limits = { .per_minute = { 0, 450000, 90000 } };

	weather_init_calm(weather, seed);
	weather->jobs_count = burst->jobs * burst->waves;
	weather->slots = burst->slots;
	weather->waves_count = burst->waves;
	weather->wave_us = WAVE_US;
	weather->shape = (int)burst->shape;
	weather->inline_permille = 1000;
	weather->single_permille = burst->single ? 1000 : 0;
	weather->tokens_per_kb = PREFIX * 1024 / 1345; /* of its first two segments */
	weather->output_tokens = burst->limits ? 1500 : 200; /* then 90k bind */
	weather->timeout_ms = 600000;
	weather->safety_us = SECOND_US;
	weather->rest_us = 2 * SECOND_US;
	weather->provider.timing.job_us = (uint32_t)(burst->job_ms * 1000);
	weather->provider.timing.job_permille = 0;
	weather->provider.cache.knobs.lag =
		burst->uniform ? CACHE_LAG_UNIFORM : CACHE_LAG_FIXED;
	weather->provider.cache.knobs.lag_us = burst->lag_ms * 1000;
	weather->provider.cache.knobs.off = burst->cache_off;
	weather->provider.cache.knobs.unknown_permille = burst->usage_missing ? 1000 : 0;
	weather->keeps_trouble = true; /* a lag is no fault that ends */
	if (!burst->limits)
		return;
	for (int class = 0; class < ENGINE_CLASSES_MAX; class ++)
		weather->provider.limits[class] = limits;
	weather->limits[1] = limits.per_minute[LIMIT_BUCKET_INPUT];
	weather->limits[2] = limits.per_minute[LIMIT_BUCKET_OUTPUT];
}

static void
hold_off(struct world *world)
{
	const struct span argv[] = {
		SPAN("FCALL"), SPAN("warmq_hold"), SPAN("1"),     SPAN("warmq:meta"),
		SPAN("1"),     SPAN("off"),        SPAN("burst"),
	};

	(void)server_call(&world->server, argv, ARRAY_SIZE(argv));
}

/* From the arrival of the last wave to its last result. */
static uint64_t
makespan_us(const struct world *world, uint64_t from_us)
{
	uint64_t last_us = from_us;

	for (uint32_t i = 0; i < world->oracle.jobs_count; i++)
		last_us = MAX(last_us, world->oracle.jobs[i].ended_us);
	return last_us - from_us;
}

static bool
play(const struct burst *burst, uint64_t seed, struct figures *figures)
{
	uint64_t from_us = SECOND_US + (burst->waves - 1) * WAVE_US;
	struct cache_stats before;
	struct cache_stats after;
	struct weather weather;
	struct world *world;
	uint64_t refused = 0;
	uint64_t writes;
	bool ok;

	fill_weather(burst, seed, &weather);
	world = world_create(&weather, burst->trace ? stdout : NULL);
	world_start(world);
	if (burst->naive)
		hold_off(world);
	ok = world_run_until(world, from_us - 1000);
	before = cache_model_stats(engine_cache(world->site.engine));
	ok = ok && world_run_out(world);
	after = cache_model_stats(engine_cache(world->site.engine));
	writes = after.writes - before.writes;
	for (int verdict = LIMIT_VERDICT_OK + 1; verdict < LIMIT_VERDICT_COUNT; verdict++)
		refused += engine_stats(world->site.engine)->refused_limit[verdict];
	figures->writes_mean += (double)writes / burst->seeds;
	figures->writes_max = MAX(figures->writes_max, writes);
	figures->writers_max = MAX(figures->writers_max, world->oracle.writers_max);
	figures->price += ((double)(after.written_tokens - before.written_tokens) * 1.25 +
	                   (double)(after.read_tokens - before.read_tokens) * 0.1) /
	                  PREFIX / burst->seeds;
	figures->makespan_ms += (double)makespan_us(world, from_us) / 1000 / burst->seeds;
	figures->makespan_ms_max =
		MAX(figures->makespan_ms_max, makespan_us(world, from_us) / 1000);
	figures->requests += world->site.calls_count;
	figures->refused_permille += (double)refused * 1000 /
	                             (double)MAX(world->site.calls_count, 1) /
	                             burst->seeds;
	figures->ended += world->oracle.terminal;
	if (!ok)
		fprintf(stderr, "seed %" PRIu64 " breaks %s\n", seed,
		        world->oracle.failure);
	world_destroy(world);
	return ok;
}

/* One cold prefill, the lag, and one warm wave of the jobs. */
static double
bound_ms(const struct burst *burst)
{
	uint64_t cold_us = LATENCY_US + PREFIX * SECOND_US / 10000 + TAIL_US;
	uint64_t warm_us = LATENCY_US + TAIL_US + burst->job_ms * 1000;

	return (double)(cold_us + burst->bound_lag_ms * 1000 + warm_us) / 1000;
}

static bool
measure(const struct burst *burst, struct figures *ret_figures)
{
	struct figures figures = { 0 };
	bool ok = true;

	for (uint64_t seed = 1; seed <= burst->seeds && ok; seed++)
		ok = play(burst, seed, &figures);
	figures.ratio = figures.makespan_ms / bound_ms(burst);
	*ret_figures = figures;
	return ok;
}

static void
print_row(const char *name, const struct burst *burst, const struct figures *figures)
{
	printf("%-34s %4" PRIu64 " s  writes %6.2f (max %3" PRIu64 "), at once %3" PRIu64
	       "  price %6.2f  makespan %7.2f s  x%.3f of %.2f s  429s %.1f%%\n",
	       name, burst->job_ms / 1000, figures->writes_mean, figures->writes_max,
	       figures->writers_max, figures->price, figures->makespan_ms / 1000,
	       figures->ratio, bound_ms(burst) / 1000, figures->refused_permille / 10);
}

/* ---- what is promised
 * ------------------------------------------------------------------ */

struct promise {
	const char *name;
	struct burst burst; /* jobs, slots and seeds are the defaults */
	uint64_t writes_max;
	double ratio_max;
	bool any_write; /* caching does not work: price and writes say nothing */
};

static uint32_t numbers_seeds;

static int
judge(const char *what, bool kept)
{
	if (kept)
		return 0;
	fflush(stdout);
	fprintf(stderr, "  not kept: %s\n", what);
	return 1;
}

static int
check_promise(const struct promise *promise)
{
	struct burst burst = promise->burst;
	struct figures figures;
	int broken = 0;

	burst.jobs = DEFAULTS.jobs;
	burst.slots = DEFAULTS.slots;
	burst.seeds = numbers_seeds;
	burst.waves = MAX(burst.waves, 1);
	broken += judge("an invariant", measure(&burst, &figures));
	print_row(promise->name, &burst, &figures);
	broken +=
		judge("every job ends",
	              figures.ended == (uint64_t)burst.jobs * burst.waves * burst.seeds);
	if (promise->ratio_max > 0)
		broken += judge("the makespan", figures.ratio <= promise->ratio_max);
	if (promise->any_write)
		return broken;
	broken +=
		judge("the number of writes", figures.writes_max <= promise->writes_max);
	broken += judge("never two writers at once", figures.writers_max <= 1);
	broken += judge("a tenth of the naive price",
	                figures.price <= 0.1 * 1.25 * burst.jobs);
	return broken;
}

static int
check_bursts(void)
{
	static const uint64_t JOBS_MS[] = { 2000, 10000, 30000 };
	static const struct promise PROMISES[] = {
		{ "no lag", { .lag_ms = 0 }, 1, 1.15, false },
		{ "1 s, learned",
		  { .lag_ms = 1000, .waves = 2, .bound_lag_ms = 2000 },
		  1,
		  1.15,
		  false },
		{ "2 s, learned",
		  { .lag_ms = 2000, .waves = 2, .bound_lag_ms = 2000 },
		  1,
		  1.15,
		  false },
		{ "1 s, unknown",
		  { .lag_ms = 1000, .bound_lag_ms = 2000 },
		  2,
		  1.30,
		  false },
		{ "2 s, unknown",
		  { .lag_ms = 2000, .bound_lag_ms = 2000 },
		  2,
		  1.30,
		  false },
		{ "0 to 2 s, unknown",
		  { .lag_ms = 2000, .uniform = true, .bound_lag_ms = 2000 },
		  2,
		  1.30,
		  false },
	};
	int broken = 0;

	for (size_t i = 0; i < ARRAY_SIZE(PROMISES); i++) {
		for (size_t k = 0; k < ARRAY_SIZE(JOBS_MS); k++) {
			struct promise promise = PROMISES[i];

			promise.burst.job_ms = JOBS_MS[k];
			broken += check_promise(&promise);
		}
	}
	return broken;
}

static int
check_shapes(void)
{
	static const struct promise PROMISES[] = {
		{ "spelled differently", { .shape = PRODUCER_SPELLED }, 1, 1.15, false },
		{ "document and question",
		  { .shape = PRODUCER_DOCUMENT },
		  1,
		  1.15,
		  false },
		{ "50 values of tool_choice",
		  { .shape = PRODUCER_CHOICE },
		  1,
		  1.15,
		  false },
	};
	int broken = 0;

	for (size_t i = 0; i < ARRAY_SIZE(PROMISES); i++) {
		struct promise promise = PROMISES[i];

		promise.burst.job_ms = 10000;
		broken += check_promise(&promise);
	}
	return broken;
}

/* Caching that does not work costs at most one hold limit. */
static int
check_useless(void)
{
	static const uint64_t HOLD_MS = 30000;
	struct burst unheld = DEFAULTS;
	struct burst held = DEFAULTS;
	struct figures without;
	struct figures with;
	int broken = 0;

	for (int round = 0; round < 2; round++) {
		unheld.naive = true;
		unheld.seeds = held.seeds = MIN(numbers_seeds, 5);
		unheld.cache_off = held.cache_off = round == 0;
		unheld.usage_missing = held.usage_missing = round == 1;
		broken += judge("an invariant", measure(&unheld, &without));
		broken += judge("an invariant", measure(&held, &with));
		print_row(round == 0 ? "caching off, unheld" : "usage missing, unheld",
		          &unheld, &without);
		print_row(round == 0 ? "caching off" : "usage missing", &held, &with);
		broken += judge("every job ends", with.ended == without.ended);
		broken += judge("one hold limit",
		                with.makespan_ms <=
		                        1.05 * without.makespan_ms + (double)HOLD_MS);
	}
	return broken;
}

/* I11: where nobody shares anything, it is a plain queue: all slots busy all the time,
 * and within 2 % of the time without any holding. */
static int
check_no_sharing(void)
{
	struct burst unheld = DEFAULTS;
	struct burst held = DEFAULTS;
	struct figures without;
	struct figures with;
	int broken = 0;

	unheld.slots = held.slots = 50;
	unheld.single = held.single = true;
	unheld.seeds = held.seeds = MIN(numbers_seeds, 5);
	unheld.naive = true;
	broken += judge("an invariant", measure(&unheld, &without));
	broken += judge("an invariant", measure(&held, &with));
	print_row("nothing is shared, unheld", &unheld, &without);
	print_row("nothing is shared", &held, &with);
	broken += judge("every job ends", with.ended == without.ended);
	broken += judge("2 % of a plain queue (I11)",
	                with.makespan_ms <= 1.02 * without.makespan_ms);
	broken += judge("no write that a plain queue does not pay (I11)",
	                with.price <= 1.02 * without.price);
	return broken;
}

static int
check_limits(void)
{
	struct burst burst = DEFAULTS;
	struct figures figures;
	int broken = 0;

	burst.limits = true;
	burst.seeds = MIN(numbers_seeds, 5);
	broken += judge("an invariant", measure(&burst, &figures));
	print_row("450k input, 90k output a minute", &burst, &figures);
	broken += judge("every job ends",
	                figures.ended == (uint64_t)burst.jobs * burst.seeds);
	broken +=
		judge("429s on at most 1 % of requests", figures.refused_permille <= 10);
	return broken;
}

int
burst_numbers(int argc, char **argv)
{
	int broken;

	numbers_seeds = DEFAULTS.seeds;
	if (argc == 2 && strcmp(argv[0], "--seeds") == 0)
		numbers_seeds = (uint32_t)MAX(strtoul(argv[1], NULL, 10), 1);
	broken = check_bursts() + check_shapes() + check_useless() + check_no_sharing() +
	         check_limits();

	printf("%s\n",
	       broken == 0 ? "all numbers are kept" : "some numbers are not kept");
	return broken > 0;
}

/* ---- one row
 * ----------------------------------------------------------------------------- */

static bool
read_shape(const char *name, enum producer_shape *ret_shape)
{
	static const char *const NAMES[] = { "plain", "spelled", "document", "choice" };

	for (size_t i = 0; i < ARRAY_SIZE(NAMES); i++) {
		if (strcmp(NAMES[i], name) == 0) {
			*ret_shape = (enum producer_shape)i;
			return true;
		}
	}
	return false;
}

static bool
read_flag(const char *word, struct burst *burst)
{
	if (strcmp(word, "--naive") == 0)
		burst->naive = true;
	else if (strcmp(word, "--cache-off") == 0)
		burst->cache_off = true;
	else if (strcmp(word, "--usage-missing") == 0)
		burst->usage_missing = true;
	else if (strcmp(word, "--trace") == 0)
		burst->trace = true;
	else if (strcmp(word, "--limits") == 0)
		burst->limits = true;
	else if (strcmp(word, "--single") == 0)
		burst->single = true;
	else
		return false;
	return true;
}

static bool
read_value(const char *word, const char *value, struct burst *burst)
{
	uint64_t number = strtoull(value, NULL, 10);

	if (strcmp(word, "--jobs") == 0)
		burst->jobs = (uint32_t)MAX(number, 1);
	else if (strcmp(word, "--slots") == 0)
		burst->slots = (uint32_t)MAX(number, 1);
	else if (strcmp(word, "--seeds") == 0)
		burst->seeds = (uint32_t)MAX(number, 1);
	else if (strcmp(word, "--waves") == 0)
		burst->waves = (uint32_t)MAX(number, 1);
	else if (strcmp(word, "--job-ms") == 0)
		burst->job_ms = number;
	else if (strcmp(word, "--lag") == 0)
		burst->lag_ms = burst->bound_lag_ms = number;
	else if (strcmp(word, "--lag-uniform") == 0) {
		burst->lag_ms = burst->bound_lag_ms = number;
		burst->uniform = true;
	} else if (strcmp(word, "--shape") == 0)
		return read_shape(value, &burst->shape);
	else
		return false;
	return true;
}

int
burst_main(int argc, char **argv)
{
	struct burst burst = DEFAULTS;
	struct figures figures;
	bool ok;

	for (int i = 0; i < argc; i++) {
		if (read_flag(argv[i], &burst))
			continue;
		if (i + 1 >= argc || !read_value(argv[i], argv[i + 1], &burst)) {
			fprintf(stderr, "warmq-sim burst: what is %s?\n", argv[i]);
			return 2;
		}
		i++;
	}
	ok = measure(&burst, &figures);
	print_row(burst.naive ? "naive" : "held", &burst, &figures);
	return ok ? 0 : 1;
}
