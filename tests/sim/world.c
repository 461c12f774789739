#include "tests/sim/world.h"

#include "scheduler/functions/functions_library.h"
#include "tests/sim/accident.h"

#include <stdlib.h>

#define SECOND_US   1000000ull
#define LIVENESS_US (1800 * SECOND_US) /* for everything to finish, and … */
#define PER_JOB_US  (10 * SECOND_US)   /* … so much more for each job, at least */
#define CENSUS_US   (7 * SECOND_US)
#define LOOK_US     (1 * SECOND_US)
#define STEPS_MAX   20000000ull /* of the agenda: a loop without end */

static const char *
keep(struct world *world, const char *text, char (*place)[32], size_t *used)
{
	(void)world;
	(void)snprintf(place[*used], sizeof place[0], "%s", text);
	return place[(*used)++];
}

static void
configure_models(struct world *world)
{
	const struct weather *weather = &world->weather;
	size_t names = 0;
	size_t matches = 0;
	char text[32];

	for (uint32_t u = 0; u < weather->upstreams_count; u++) {
		for (uint32_t m = 0; m < weather->models_count; m++) {
			struct ruler_model *model =
				&world->models[world->config.models_count++];

			producer_model(u, m, text);
			model->match =
				span_from(keep(world, text, world->match, &matches));
			(void)snprintf(text, sizeof text, "class%u", m);
			model->class_name =
				span_from(keep(world, text, world->names, &names));
			model->tokens_min = 64; /* bytes stand for more tokens here */
		}
	}
	world->config.models = world->models;
}

static void
configure_upstreams(struct world *world)
{
	const struct weather *weather = &world->weather;

	for (uint32_t u = 0; u < weather->upstreams_count; u++) {
		struct ruler_upstream *upstream = &world->upstreams[u];

		*upstream = (struct ruler_upstream){
			.name = span_from(producer_upstream(u)),
			.account = span_from(producer_upstream(u)),
			.traits = *dialect_traits(u == 0 ? DIALECT_ANTHROPIC
			                                 : DIALECT_OPENAI_CHAT),
			.markers = u == 0,
			.exact = u == 0,
			.proves = u == 0,
			.hold_max_ms = weather->unheld ? 0 : 30000,
			.limits_count = weather->models_count,
		};
		upstream->traits.tokens_min = 64;
		for (uint32_t m = 0; m < weather->models_count; m++) {
			upstream->limits[m] = (struct ruler_limits){
				.class_name = world->models[m].class_name,
				.requests = weather->limits[0],
				.input = weather->limits[1],
				.output = weather->limits[2],
			};
		}
	}
	world->config.upstreams = world->upstreams;
	world->config.upstreams_count = weather->upstreams_count;
}

static void
configure_pools(struct world *world)
{
	static const char *const ROUTES[] = { "route-0*", "route-1*", "route-2*",
		                              "route-3*" };

	for (uint32_t i = 0; i < world->weather.pools_count; i++) {
		world->pools[i] = (struct ruler_pool){
			.name = span_from(weather_pool(i)),
			.match_route = span_from(ROUTES[i]),
			.match_upstream = SPAN("*"),
			.max_wait_ms = world->weather.max_wait_ms,
		};
	}
	world->config.pools = world->pools;
	world->config.pools_count = world->weather.pools_count;
}

static void
configure(struct world *world)
{
	struct ruler_config *config = &world->config;

	*config = ruler_config_default();
	config->ns = SPAN("warmq");
	config->core.families_max = world->weather.jobs_count + 100;
	config->core.lanes_max = 2 * config->core.families_max;
	config->families_max = MAX(2 * config->core.families_max, RULER_FAMILIES_LEAST);
	config->block_ms = 0; /* nothing here waits inside Redis */
	config->poll_ms = 50;
	config->status_ms = 0;
	configure_models(world);
	configure_upstreams(world);
	configure_pools(world);
}

static void
on_publish(void *context, struct span channel, struct span message)
{
	struct world *world = context;

	accident_wake(world, message);
}

struct world *
world_create(const struct weather *weather, FILE *out)
{
	size_t size = (sizeof(struct world) + 63) & ~(size_t)63;
	struct world *world = aligned_alloc(64, size);
	struct prng seeds;

	VERIFY(world);
	memset(world, 0, size);
	world->weather = *weather;
	prng_init(&seeds, weather->seed ^ 0x77617267ull);
	trace_init(&world->trace, &world->agenda, out);
	server_init(&world->server, &world->agenda,
	            (struct span){ functions_library, functions_library_size });
	wire_hub_init(&world->hub, &world->agenda, &world->server, &world->trace,
	              prng_next(&seeds));
	world->hub.knobs = weather->wire;
	site_init(&world->site, &world->agenda, &world->trace, &weather->provider,
	          prng_next(&seeds));
	oracle_init(&world->oracle, &world->agenda, &world->trace, &world->server,
	            &world->site, &world->weather);
	world->server.watch.publish = on_publish;
	world->server.watch.publish_context = world;
	configure(world);
	producer_init(&world->producer, &world->hub, &world->weather, prng_next(&seeds));
	for (uint32_t i = 0; i < weather->workers_count; i++)
		worker_host_init(&world->workers[i], i, &world->hub, &world->site,
		                 &world->weather, prng_next(&seeds));
	for (uint32_t i = 0; i < weather->schedulers_count; i++)
		scheduler_host_init(&world->schedulers[i], i, &world->hub,
		                    &world->weather, &world->config, prng_next(&seeds));
	world->prng = prng_fork(&seeds);
	stranger_init(&world->stranger, &world->hub, prng_next(&seeds));
	return world;
}

void
world_destroy(struct world *world)
{
	if (!world)
		return;
	for (uint32_t i = 0; i < world->weather.workers_count; i++)
		worker_host_fini(&world->workers[i]);
	for (uint32_t i = 0; i < world->weather.schedulers_count; i++)
		scheduler_host_fini(&world->schedulers[i]);
	producer_fini(&world->producer);
	oracle_fini(&world->oracle);
	site_fini(&world->site);
	wire_hub_fini(&world->hub);
	server_fini(&world->server);
	agenda_fini(&world->agenda);
	free(world);
}

bool
world_run_until(struct world *world, uint64_t until_us)
{
	while (!world->oracle.failed && world->agenda.count > 0 &&
	       world->agenda.entries[0].at_us <= until_us) {
		VERIFY(world->agenda.steps < STEPS_MAX);
		(void)agenda_step(&world->agenda);
	}
	world->agenda.now_us = MAX(world->agenda.now_us, until_us);
	return !world->oracle.failed;
}

static void
on_census(void *context, uint64_t number)
{
	struct world *world = context;

	if (world->server.up)
		oracle_census(&world->oracle);
	agenda_in(&world->agenda, CENSUS_US, on_census, world, 0);
}

static bool
is_done(const struct world *world)
{
	return producer_is_done(&world->producer) && oracle_all_ended(&world->oracle);
}

/* How long one job may take a provider with limits, at full price. */
static uint64_t
job_us(const struct weather *weather)
{
	const uint32_t *limits = weather->provider.limits[0].per_minute;
	const uint64_t needs[LIMIT_BUCKET_COUNT] = {
		[LIMIT_BUCKET_REQUESTS] = 1,
		[LIMIT_BUCKET_INPUT] = 4 * weather->tokens_per_kb,
		[LIMIT_BUCKET_OUTPUT] = weather->output_tokens,
	};
	uint64_t longest_us = PER_JOB_US;

	for (int i = 0; i < LIMIT_BUCKET_COUNT; i++) {
		if (limits[i] > 0)
			longest_us =
				MAX(longest_us, needs[i] * 60 * SECOND_US / limits[i]);
	}
	return longest_us;
}

/* The latest moment at which everything has to have ended. */
static uint64_t
end_us(const struct world *world)
{
	return world->weather.safety_us + LIVENESS_US +
	       job_us(&world->weather) * world->oracle.jobs_count;
}

void
world_start(struct world *world)
{
	for (uint32_t i = 0; i < world->weather.schedulers_count; i++)
		scheduler_host_start(&world->schedulers[i]);
	for (uint32_t i = 0; i < world->weather.workers_count; i++)
		worker_host_start(&world->workers[i]);
	producer_start(&world->producer);
	if (world->weather.stranger)
		stranger_start(&world->stranger);
	accident_start(world);
	agenda_in(&world->agenda, CENSUS_US, on_census, world, 0);
}

bool
world_run_out(struct world *world)
{
	while (!is_done(world) && world->agenda.now_us < end_us(world)) {
		if (!world_run_until(world, world->agenda.now_us + LOOK_US))
			return false;
	}
	if (is_done(world) &&
	    !world_run_until(world, world->agenda.now_us + world->weather.rest_us))
		return false;
	oracle_check_end(&world->oracle);
	trace_line(&world->trace, "the end");
	return !world->oracle.failed;
}

bool
world_run(struct world *world)
{
	world_start(world);
	if (!world_run_until(world, world->weather.safety_us))
		return false;
	accident_stop(world);
	return world_run_out(world);
}
