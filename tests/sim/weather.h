/* weather.h - what a seed stands for: how many, how much, and what goes wrong.
 *
 * Swarm testing: each class of trouble is switched off altogether in many seeds, so that
 * combinations of few faults are seen as often as all of them at once, and a fault
 * cannot hide behind another.  `calm` weather has no trouble at all; the scenarios start
 * from it. */
#ifndef TESTS_SIM_WEATHER_H
#define TESTS_SIM_WEATHER_H

#include "common/base.h"
#include "common/prng.h"
#include "provider/model/engine.h"
#include "tests/sim/wire.h"

struct weather {
	uint64_t seed;

	/* the fleet */
	uint32_t schedulers_count;
	uint32_t workers_count;
	uint32_t slots;     /* of each worker */
	uint32_t drift_ppm; /* how fast or slow a worker's clock may run */

	/* the work */
	uint32_t jobs_count;
	uint32_t upstreams_count; /* 1: anthropic; 2: and openai-chat */
	uint32_t models_count;    /* per upstream: 1 or 2, classes of their own */
	uint32_t systems_count;   /* system prompts per upstream and model */
	uint32_t documents_count; /* under each system; 0: no second level */
	uint32_t pools_count;
	uint32_t waves_count; /* 0, or: jobs come in waves, each with its own prefix … */
	uint64_t wave_us;     /* … so far apart */
	int shape;            /* enum producer_shape */
	uint64_t arrive_us;   /* jobs come within so long */
	uint32_t burst_permille;  /* jobs that come at one instant, at the beginning */
	uint32_t single_permille; /* jobs whose prefix nobody shares */
	uint32_t opaque_permille; /* bodies that cannot be split */
	uint32_t inline_permille; /* prefix not declared: found by its second sighting */
	uint32_t named_permille;  /* prefix by name, put through the inbox */
	uint32_t packed_permille; /* jobs that come in packs */
	uint32_t reply_permille;
	uint32_t now_permille;   /* hold_max below 2 s */
	uint32_t band_permille;  /* high or low priority */
	uint32_t later_permille; /* not_before */
	uint32_t deadline_permille;
	uint32_t cancel_permille;
	bool hasty;  /* cancels come at once */
	bool lonely; /* single jobs have a document of their own under a system of all */
	uint32_t bad_permille; /* malformed or unsupported envelopes */
	uint64_t hold_max_ms;  /* of the jobs; 0: the default */
	bool unheld;           /* the upstreams hold nobody */
	uint64_t timeout_ms;   /* of a request */
	uint64_t max_wait_ms;
	uint32_t tokens_per_kb; /* bytes of a prefix stand for so many tokens */
	uint32_t output_tokens;
	uint64_t limits[3]; /* per minute, configured for the scheduler too; 0: none */
	bool tells_limits;  /* the provider, in the headers of its answers */

	/* links */
	struct wire_knobs wire;
	uint32_t wake_lost_permille;

	/* accidents in the safety phase */
	uint32_t worker_crashes, worker_freezes, scheduler_crashes, scheduler_freezes;
	uint32_t redis_restarts, clock_steps, clogs, partitions, hold_flips;
	uint32_t worker_stops; /* in order; started again as by systemd */
	uint32_t unparks, steers, route_flips, warms, pauses; /* deeds of people */
	uint64_t redis_lost_us_max;                           /* of its tail */
	uint64_t freeze_us_max;
	uint64_t clock_step_us_max;
	uint64_t outage_at_us, outage_us; /* Redis is away and loses nothing; 0: never */
	uint64_t broke_at_us, broke_us;   /* the accounts have no money; 0: never */
	uint64_t cut_off_at_us, cut_off_us; /* some workers reach no provider; 0: never */
	uint32_t cut_off_workers;           /* so many of them */
	uint32_t
		deaf_permille; /* answers to grants and looks that tell a ruler nothing */
	bool stranger;         /* a worker that somebody else wrote */

	/* providers */
	struct engine_config provider; /* memory sizes, knobs; seed filled in */
	bool provider_changes;         /* its knobs are drawn again now and then */
	bool keeps_trouble;            /* weather_clear leaves the provider as it is */
	uint32_t tools_permille; /* requests whose tools write tokens of their own */

	uint64_t safety_us; /* faults until then */
	uint64_t rest_us; /* after everything has ended: time to leave something behind */
};

void weather_init_calm(struct weather *weather, uint64_t seed);
void weather_init(struct weather *weather, uint64_t seed);

/* The name of a pool; the first one is what a fleet without pools has. */
const char *weather_pool(uint32_t index);

/* The faults end; what the world is made of stays. */
void weather_clear(struct weather *weather);

/* Draws new cache and fault knobs, as a provider's bad hour. */
void weather_draw_provider(struct weather *weather, struct prng *prng);

#endif
