/* scheduler_host.h - a scheduler process of the simulated world, around the real ruler.
 *
 * The host is what scheduler/shell is in production: a connection, a clock of Redis that
 * is measured from its answers and never goes back, and a step whenever something came
 * or is due.  When the clock of Redis has been set back, it tells the ruler that the
 * connection is lost, so that everything is read again. */
#ifndef TESTS_SIM_SCHEDULER_HOST_H
#define TESTS_SIM_SCHEDULER_HOST_H

#include "common/base.h"
#include "common/call.h"
#include "scheduler/ruler.h"
#include "tests/sim/weather.h"
#include "tests/sim/wire.h"

struct scheduler_host {
	struct agenda *agenda;
	struct trace *trace;
	const struct weather *weather;
	const struct ruler_config *config; /* shared; seed and say are set per life */
	struct wire wire;
	struct prng prng;
	char name[16];

	bool alive;
	uint64_t life;
	uint64_t frozen_until_us;
	int64_t offset_ms; /* Redis's clock less the world's */
	uint64_t last_ms;  /* the clock as the ruler saw it last */
	bool greeted;      /* the ruler was told of the connection */
	uint32_t unanswered;
	uint64_t oldest_us; /* since when the oldest call waits */
	uint64_t kinds[2];  /* of the tags of grants and looks; 0: none was sent yet */
	uint64_t wake_number;
	uint64_t wake_at_us;
	bool reconnecting, pumping;

	struct ruler_config own;
	struct ruler *ruler;
	struct call_list calls;
};

void scheduler_host_init(struct scheduler_host *scheduler, uint32_t index,
                         struct wire_hub *hub, const struct weather *weather,
                         const struct ruler_config *config, uint64_t seed);
void scheduler_host_fini(struct scheduler_host *scheduler);

void scheduler_host_start(struct scheduler_host *scheduler);
void scheduler_host_crash(struct scheduler_host *scheduler);
void scheduler_host_freeze(struct scheduler_host *scheduler, uint64_t until_us);

#endif
