/* shell.h - the worker around its agent: one loop, one thread.
 *
 *        Redis ◄──────── calls ────────┐            wake-ups ┐
 *          │                           │                     ▼
 *          └── answers ──────────────► agent ◄──── sent, began, ended ──── runs
 *                                      │ ▲                                 ▲
 *                     spool ◄──────────┘ └── time             starts, aborts ┘
 *
 * Callbacks only tell the agent what happened; once per turn of the loop it is stepped,
 * and what it says is done.  So everything that ended in one turn is settled by one call.
 */
#ifndef WORKER_SHELL_H
#define WORKER_SHELL_H

#include "common/base.h"
#include "common/io/config.h"
#include "common/io/redis_url.h"
#include "worker/run.h"

enum shell_exit {
	SHELL_EXIT_OK = 0,     /* stopped in order */
	SHELL_EXIT_FAILED = 1, /* cannot go on */
	SHELL_EXIT_USAGE = 2,  /* command line or configuration */
	SHELL_EXIT_KEYS = 3,   /* a key is missing */
};

struct shell_options {
	const struct config *config;
	struct redis_url url;
	const struct executor *executor;
	const struct upstream_list *upstreams;
	struct guard *guard;      /* of handlers */
	uint64_t files_inherited; /* the limit that handlers get */
	const char *version;      /* of the program */
	const char *pool;
	const char *label;
	uint32_t slots;
	uint64_t lease_ms, drain_ms;
	const char *state_dir;
};

/* Runs until it is stopped by a signal; answers the exit status of the process. */
enum shell_exit shell_run(const struct shell_options *options);

#endif
