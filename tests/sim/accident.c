#include "tests/sim/accident.h"

#include "tests/sim/deed.h"

#include <inttypes.h>

#define SECOND_US UINT64_C(1000000)

enum accident {
	WORKER_CRASH,
	WORKER_FREEZE,
	SCHEDULER_CRASH,
	SCHEDULER_FREEZE,
	REDIS_RESTART,
	CLOCK_STEP,
	CLOG,
	PARTITION,
	HOLD_FLIP,
	PROVIDER_HOUR,
	OUTAGE,
	WORKER_STOP,
	NO_MONEY,
};

static uint64_t
draw_us(struct world *world, uint64_t max_us)
{
	return prng_between(&world->prng, 1, MAX(max_us, 2));
}

/* ---- those who come back ---------------------------------------------------------- */

static void
on_worker_start(void *context, uint64_t index)
{
	struct world *world = context;

	if (!world->workers[index].alive)
		worker_host_start(&world->workers[index]);
}

static void
on_scheduler_start(void *context, uint64_t index)
{
	struct world *world = context;

	if (!world->schedulers[index].alive)
		scheduler_host_start(&world->schedulers[index]);
}

static void
on_redis_start(void *context, uint64_t kept_us)
{
	struct world *world = context;

	if (world->server.up)
		return;
	server_start(&world->server, kept_us);
	trace_line(&world->trace, "redis is back, as of %" PRIu64 ".%06" PRIu64,
	           kept_us / SECOND_US, kept_us % SECOND_US);
	oracle_roll_back(&world->oracle, kept_us);
}

/* ---- what happens ------------------------------------------------------------------ */

static void
crash_worker(struct world *world)
{
	uint32_t index = (uint32_t)prng_below(&world->prng, world->weather.workers_count);

	worker_host_crash(&world->workers[index]);
	agenda_in(&world->agenda, draw_us(world, 40 * SECOND_US), on_worker_start, world,
	          index);
}

static void
freeze_worker(struct world *world)
{
	uint32_t index = (uint32_t)prng_below(&world->prng, world->weather.workers_count);
	uint64_t long_us = draw_us(world, world->weather.freeze_us_max);

	worker_host_freeze(&world->workers[index], world->agenda.now_us + long_us);
}

static void
crash_scheduler(struct world *world)
{
	uint32_t index =
		(uint32_t)prng_below(&world->prng, world->weather.schedulers_count);

	scheduler_host_crash(&world->schedulers[index]);
	agenda_in(&world->agenda, draw_us(world, 40 * SECOND_US), on_scheduler_start,
	          world, index);
}

static void
freeze_scheduler(struct world *world)
{
	uint32_t index =
		(uint32_t)prng_below(&world->prng, world->weather.schedulers_count);
	uint64_t long_us = draw_us(world, world->weather.freeze_us_max);

	scheduler_host_freeze(&world->schedulers[index], world->agenda.now_us + long_us);
}

static void
restart_redis(struct world *world)
{
	uint64_t lost_us =
		prng_between(&world->prng, 0, world->weather.redis_lost_us_max);
	uint64_t now_us = world->agenda.now_us;
	bool is_long = prng_chance(&world->prng, 300);

	if (!world->server.up)
		return;
	trace_line(&world->trace, "redis dies");
	server_crash(&world->server);
	wire_reset_all(&world->hub);
	agenda_in(&world->agenda,
	          is_long ? draw_us(world, 70 * SECOND_US)
	                  : draw_us(world, 3 * SECOND_US),
	          on_redis_start, world, now_us - MIN(lost_us, now_us));
}

/* Nobody reaches Redis for a long time; it loses nothing.  Some workers come back later
 * than the others. */
static void
black_out(struct world *world)
{
	uint64_t now_us = world->agenda.now_us;
	uint64_t long_us = world->weather.outage_us;
	uint32_t late =
		(uint32_t)prng_below(&world->prng, world->weather.workers_count + 1);

	if (!world->server.up)
		return;
	trace_line(&world->trace, "redis is out of reach for %" PRIu64 " s",
	           long_us / SECOND_US);
	server_crash(&world->server);
	wire_reset_all(&world->hub);
	for (uint32_t i = 0; i < late; i++)
		worker_host_freeze(&world->workers[i],
		                   now_us + long_us + draw_us(world, 20 * SECOND_US));
	agenda_in(&world->agenda, long_us, on_redis_start, world, now_us);
}

static void
step_clock(struct world *world)
{
	int64_t step_us = (int64_t)draw_us(world, world->weather.clock_step_us_max);

	if (prng_chance(&world->prng, 500))
		step_us = -step_us;
	world->server.offset_us += step_us;
	trace_line(&world->trace, "the clock of redis steps by %" PRId64 " ms",
	           step_us / 1000);
	oracle_clock_stepped(&world->oracle);
}

/* Nothing gets through for a while; then all of it does. */
static void
clog_network(struct world *world)
{
	world->hub.clogged_until_us =
		world->agenda.now_us + draw_us(world, 12 * SECOND_US);
	trace_line(&world->trace, "the network is clogged until %" PRIu64,
	           world->hub.clogged_until_us / SECOND_US);
}

/* One process is cut off, and its next connections too, for a while. */
static void
on_cut(void *context, uint64_t number)
{
	struct world *world = context;
	uint32_t index = (uint32_t)number % (WORLD_WORKERS_MAX + WORLD_SCHEDULERS_MAX);
	uint64_t rounds = number / (WORLD_WORKERS_MAX + WORLD_SCHEDULERS_MAX);
	struct wire *wire = index < WORLD_WORKERS_MAX
	                            ? &world->workers[index].wire
	                            : &world->schedulers[index - WORLD_WORKERS_MAX].wire;

	if (world->calm)
		return;
	wire_cut(wire);
	if (rounds > 0)
		agenda_in(&world->agenda, SECOND_US / 5, on_cut, world,
		          number - WORLD_WORKERS_MAX - WORLD_SCHEDULERS_MAX);
}

static void
partition(struct world *world)
{
	uint32_t processes =
		world->weather.workers_count + world->weather.schedulers_count;
	uint32_t index = (uint32_t)prng_below(&world->prng, processes);
	uint64_t rounds = prng_between(&world->prng, 1, 250);

	if (index >= world->weather.workers_count)
		index = index - world->weather.workers_count + WORLD_WORKERS_MAX;
	on_cut(world, index + rounds * (WORLD_WORKERS_MAX + WORLD_SCHEDULERS_MAX));
}

static void
on_hold(void *context, uint64_t on)
{
	struct world *world = context;
	const struct span argv[] = {
		SPAN("FCALL"),      SPAN("warmq_hold"), SPAN("1"),
		SPAN("warmq:meta"), SPAN("1"),          on ? SPAN("on") : SPAN("off"),
		SPAN("somebody"),
	};

	if (!world->server.up) {
		agenda_in(&world->agenda, SECOND_US, on_hold, world, on);
		return;
	}
	trace_line(&world->trace, "hold %s", on ? "on" : "off");
	(void)server_call(&world->server, argv, ARRAY_SIZE(argv));
}

static void
flip_hold(struct world *world)
{
	on_hold(world, 0);
	agenda_in(&world->agenda, draw_us(world, 30 * SECOND_US), on_hold, world, 1);
}

static void
change_provider(struct world *world)
{
	weather_draw_provider(&world->weather, &world->prng);
	trace_line(&world->trace, "the provider changes");
	world->oracle.provider_changed = true;
	site_configure(&world->site, &world->weather.provider);
}

/* SIGTERM, and sometimes a second one before the drain is over.  deed.c sees to it that
 * it is started again. */
static void
on_second_stop(void *context, uint64_t index)
{
	struct world *world = context;

	if (world->workers[index].stopping)
		worker_host_stop(&world->workers[index], 0);
}

static void
stop_worker(struct world *world)
{
	uint32_t index = (uint32_t)prng_below(&world->prng, world->weather.workers_count);
	uint64_t drain_us = draw_us(world, 40 * SECOND_US);

	worker_host_stop(&world->workers[index], drain_us / 1000);
	if (prng_chance(&world->prng, 300))
		agenda_in(&world->agenda, draw_us(world, drain_us), on_second_stop, world,
		          index);
}

static void
set_money(struct world *world, bool has_some)
{
	struct limit_knobs *limits = world->weather.provider.limits;

	for (int class = 0; class < ENGINE_CLASSES_MAX; class ++)
		limits[class].spend_cap = !has_some;
	trace_line(&world->trace, "the accounts %s", has_some ? "are paid" : "are empty");
	site_configure(&world->site, &world->weather.provider);
}

static void
on_paid(void *context, uint64_t number)
{
	set_money(context, true);
}

static void
spend_all(struct world *world)
{
	set_money(world, false);
	agenda_in(&world->agenda, world->weather.broke_us, on_paid, world, 0);
}

static void
on_accident(void *context, uint64_t accident)
{
	struct world *world = context;

	if (world->calm)
		return;
	switch ((enum accident)accident) {
	case WORKER_CRASH:
		crash_worker(world);
		break;
	case WORKER_FREEZE:
		freeze_worker(world);
		break;
	case SCHEDULER_CRASH:
		crash_scheduler(world);
		break;
	case SCHEDULER_FREEZE:
		freeze_scheduler(world);
		break;
	case REDIS_RESTART:
		restart_redis(world);
		break;
	case CLOCK_STEP:
		step_clock(world);
		break;
	case CLOG:
		clog_network(world);
		break;
	case PARTITION:
		partition(world);
		break;
	case HOLD_FLIP:
		flip_hold(world);
		break;
	case PROVIDER_HOUR:
		change_provider(world);
		break;
	case OUTAGE:
		black_out(world);
		break;
	case WORKER_STOP:
		stop_worker(world);
		break;
	case NO_MONEY:
		spend_all(world);
		break;
	}
}

void
accident_start(struct world *world)
{
	const struct weather *weather = &world->weather;
	const uint32_t counts[] = {
		[WORKER_CRASH] = weather->worker_crashes,
		[WORKER_FREEZE] = weather->worker_freezes,
		[SCHEDULER_CRASH] = weather->scheduler_crashes,
		[SCHEDULER_FREEZE] = weather->scheduler_freezes,
		[REDIS_RESTART] = weather->redis_restarts,
		[CLOCK_STEP] = weather->clock_steps,
		[CLOG] = weather->clogs,
		[PARTITION] = weather->partitions,
		[HOLD_FLIP] = weather->hold_flips,
		[PROVIDER_HOUR] = weather->provider_changes ? 4 : 0,
		[WORKER_STOP] = weather->worker_stops,
	};

	for (size_t kind = 0; kind < ARRAY_SIZE(counts); kind++) {
		for (uint32_t i = 0; i < counts[kind]; i++)
			agenda_at(&world->agenda, draw_us(world, weather->safety_us),
			          on_accident, world, kind);
	}
	if (weather->outage_us > 0)
		agenda_at(&world->agenda, weather->outage_at_us, on_accident, world,
		          OUTAGE);
	if (weather->broke_us > 0)
		agenda_at(&world->agenda, weather->broke_at_us, on_accident, world,
		          NO_MONEY);
	deed_start(world);
}

void
accident_stop(struct world *world)
{
	world->calm = true;
	trace_line(&world->trace, "the weather clears");
	weather_clear(&world->weather);
	world->hub.knobs = world->weather.wire;
	world->hub.clogged_until_us = 0;
	site_configure(&world->site, &world->weather.provider);
	stranger_leave(&world->stranger);
	on_redis_start(world, world->agenda.now_us);
	for (uint32_t i = 0; i < world->weather.workers_count; i++) {
		world->workers[i].frozen_until_us =
			MIN(world->workers[i].frozen_until_us, world->agenda.now_us);
		on_worker_start(world, i);
	}
	for (uint32_t i = 0; i < world->weather.schedulers_count; i++) {
		world->schedulers[i].frozen_until_us =
			MIN(world->schedulers[i].frozen_until_us, world->agenda.now_us);
		on_scheduler_start(world, i);
	}
	deed_stop(world);
}

static void
on_wake(void *context, uint64_t number)
{
	struct world *world = context;

	worker_host_wake(&world->workers[number / 10],
	                 span_from(weather_pool((uint32_t)(number % 10))));
}

void
accident_wake(struct world *world, struct span pool)
{
	uint64_t digit = pool.len == 5 ? (uint64_t)(pool.data[4] - '0') : 0;

	for (uint32_t i = 0; i < world->weather.workers_count; i++) {
		if (!prng_chance(&world->prng, world->weather.wake_lost_permille))
			agenda_in(&world->agenda, wire_delay_us(&world->hub), on_wake,
			          world, i * 10 + digit);
	}
}
