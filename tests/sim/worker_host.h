/* worker_host.h - a worker process of the simulated world, around the real agent.
 *
 *   alive ──crash──► dead ──start──► alive: a new session, the old one's disk
 *     │ freeze                        everything it should have heard comes when it thaws
 *
 * The host is what worker/shell is in production: it owns the connection, steps the
 * agent, obeys its commands.  worker_run.h is its executor.  The disk (the spool, the
 * nonce of the last session) survives a crash, the memory does not. */
#ifndef TESTS_SIM_WORKER_HOST_H
#define TESTS_SIM_WORKER_HOST_H

#include "common/base.h"
#include "common/call.h"
#include "tests/sim/site.h"
#include "tests/sim/weather.h"
#include "tests/sim/wire.h"
#include "worker/core/agent.h"

struct worker_run;

/* Bytes that the agent borrows until it drops the handle. */
struct worker_result {
	struct worker_result *next;
	uint64_t handle;
	uint64_t life; /* of the process that made or offered it */
	bool on_disk;
	bool offered; /* to the agent of this life */
	char id[SITE_ID_SIZE];
	char reply[SITE_ID_SIZE];
	char text[160];
};

struct worker_host {
	struct agenda *agenda;
	struct trace *trace;
	struct site *site;
	const struct weather *weather;
	struct wire wire;
	struct prng prng;
	uint32_t index;
	char name[16];
	char pool[16];

	bool alive;
	uint64_t life;
	uint64_t frozen_until_us;
	uint64_t started_us; /* this life's clock counts from here */
	int64_t drift_ppm;
	uint64_t wake_number; /* the agenda entry that counts */
	uint64_t wake_at_us;
	bool reconnecting, stopping, finished, pumping;

	void *memory;
	struct agent *agent;
	struct call_list calls;
	struct agent_output output;
	struct worker_run *runs; /* by slot */
	uint64_t runs_count;     /* ever, over all lives */

	struct worker_result *results;
	uint64_t handles;
	uint64_t disk_nonce;
};

void worker_host_init(struct worker_host *worker, uint32_t index, struct wire_hub *hub,
                      struct site *site, const struct weather *weather, uint64_t seed);
void worker_host_fini(struct worker_host *worker);

void worker_host_start(struct worker_host *worker);
void worker_host_crash(struct worker_host *worker);
void worker_host_freeze(struct worker_host *worker, uint64_t until_us);

/* SIGTERM. */
void worker_host_stop(struct worker_host *worker, uint64_t drain_ms);

/* A message of the wake channel. */
void worker_host_wake(struct worker_host *worker, struct span pool);

/* For the executor: the local clock, the agent's step after something was reported, and
 * a place for a result. */
uint64_t worker_host_now_ms(const struct worker_host *worker);
void worker_host_pump(struct worker_host *worker);
struct worker_result *worker_host_result(struct worker_host *worker, const char *id,
                                         const char *reply);

#endif
