/* world.h - one run: everything a seed stands for, from the first job to the last check.
 *
 *   safety     faults as the weather says; nothing false may happen
 *   liveness   the faults end, the dead come back; everything has to finish in time
 *   the end    processes rest a while; nothing may be left in any book
 *
 * A world is one block of memory with an alignment of its own (the trace hashes). */
#ifndef TESTS_SIM_WORLD_H
#define TESTS_SIM_WORLD_H

#include "common/base.h"
#include "scheduler/ruler.h"
#include "tests/sim/agenda.h"
#include "tests/sim/oracle.h"
#include "tests/sim/producer.h"
#include "tests/sim/scheduler_host.h"
#include "tests/sim/server.h"
#include "tests/sim/site.h"
#include "tests/sim/stranger.h"
#include "tests/sim/trace.h"
#include "tests/sim/weather.h"
#include "tests/sim/wire.h"
#include "tests/sim/worker_host.h"

enum {
	WORLD_WORKERS_MAX = 8,
	WORLD_SCHEDULERS_MAX = 2,
};

struct world {
	struct weather weather;
	struct agenda agenda;
	struct trace trace;
	struct server server;
	struct wire_hub hub;
	struct site site;
	struct oracle oracle;
	struct producer producer;
	struct worker_host workers[WORLD_WORKERS_MAX];
	struct scheduler_host schedulers[WORLD_SCHEDULERS_MAX];
	struct stranger stranger;
	struct prng prng; /* of accidents */
	bool calm;        /* the faults are over */

	struct ruler_config config;
	struct ruler_upstream upstreams[2];
	struct ruler_model models[8];
	struct ruler_pool pools[4];
	char names[16][32]; /* borrowed by the above */
	char match[16][32];
};

/* Builds it; `out` gets the trace if it is not NULL. */
struct world *world_create(const struct weather *weather, FILE *out);
void world_destroy(struct world *world);

/* Plays all of it; false if the oracle objects. */
bool world_run(struct world *world);

/* The same in pieces: everything starts; until a moment of world time, or until the
 * oracle objects; until everything has ended or the time is up. */
void world_start(struct world *world);
bool world_run_until(struct world *world, uint64_t until_us);
bool world_run_out(struct world *world);

#endif
