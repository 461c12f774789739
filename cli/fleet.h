/* fleet.h - everything on one machine, private and for a while: Redis, a provider, the
 * scheduler, workers.
 *
 *   directory/   redis.sock  warmq.yaml  token  provider.port  *.log   removed at the end
 *
 * Redis listens on a Unix socket (and on a loopback port only if one is asked for),
 * stores nothing on disk and dies with us.  The same port rule holds for the page of the
 * scheduler; `token` is what actions on that page need.  Used by `warmq demo` and `warmq
 * dev`. */
#ifndef CLI_FLEET_H
#define CLI_FLEET_H

#include "cli/process.h"
#include "cli/store.h"

#define FLEET_WORKERS_MAX 8
#define FLEET_TOKEN_SIZE  33 /* 128 random bits in hex */

struct fleet_config {
	const char *name;         /* of the directory: "warmq-demo" */
	const char *dialect;      /* of the upstream */
	uint64_t workers;         /* processes */
	uint64_t slots;           /* of all of them together */
	uint16_t redis_port;      /* 0: Unix socket only */
	uint16_t page_port;       /* 0: no page */
	const char *upstream_url; /* NULL: the simulated provider */
	const char *key_env;      /* variable with the key for upstream_url, or NULL */
	uint64_t seed;
	uint64_t pace_start; /* 0: the default */
	json_t *knobs;       /* of the simulated provider; borrowed; NULL: its defaults */
	bool keep;           /* leave the directory for the curious */
};

struct fleet {
	char directory[128];
	char redis_url[192];    /* what --redis takes */
	char upstream_url[192]; /* where requests go */
	char page_url[64];      /* of the scheduler's page; "" if there is none */
	char page_token[FLEET_TOKEN_SIZE];
	bool keep;
	struct process redis, provider, scheduler;
	struct process workers[FLEET_WORKERS_MAX];
	size_t workers_count;
};

/* Starts all and waits until they are ready.  CLI_OK, or the code to leave with after
 * saying which program failed and showing the end of its log; nothing is left running
 * then. */
MUST_USE int fleet_start(struct fleet *fleet, const struct fleet_config *config);

/* Stops all in reverse order and removes the directory.  Harmless on a fleet that never
 * started. */
void fleet_stop(struct fleet *fleet);

/* Answers false, and says so, when one of the programs has ended. */
bool fleet_is_running(struct fleet *fleet);

/* The simulated provider's books: GET /stats.  NULL with a message if it is silent. */
json_t *fleet_provider_stats(const struct fleet *fleet);

/* Begins new books, with an empty cache: POST /reset. */
MUST_USE int fleet_provider_reset(const struct fleet *fleet);

#endif
