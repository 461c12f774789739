/* shell_memory.h - what a worker takes at its start and gives back at its end; for
 * shell.c.
 *
 * Everything is sized by the number of slots and by the largest result; between start and
 * end the shell takes no memory of its own. */
#ifndef WORKER_SHELL_MEMORY_H
#define WORKER_SHELL_MEMORY_H

#include "common/io/redis.h"
#include "common/io/redis_listen.h"
#include "worker/core/agent.h"
#include "worker/health.h"
#include "worker/lag.h"
#include "worker/shell.h"
#include "worker/spool.h"

#define SHELL_COMMANDS_MAX 256
#define SHELL_ARGS_MAX     (AGENT_CALL_ARGS * 8)
#define SHELL_TAGS_MAX     256

struct shell {
	const struct shell_options *options;
	uv_loop_t loop;
	struct agent *agent;
	void *memory;
	struct call_list calls;
	struct span *words;
	struct agent_command commands[SHELL_COMMANDS_MAX];
	struct agent_output output;

	struct redis *redis;
	struct redis_listen *wake;
	char pool[CONFIG_NAME_SIZE];
	struct store *store;
	struct spool *spool;
	struct run_context context;
	struct run *runs; /* by slot */
	struct run *ended_first, *ended_last;

	uint64_t tags[SHELL_TAGS_MAX]; /* of calls sent and not answered, a ring */
	uint32_t tags_first, tags_count;
	uint32_t reconnects;
	bool is_down_told;

	uv_prepare_t prepare;
	uv_check_t check;
	uv_timer_t timer;
	uv_signal_t signals[3];
	struct lag lag;
	struct measure measure;
	struct health_sources sources;
	struct health *health;
	bool was_stopped; /* by a first signal */
	bool is_finished; /* the agent said so */
	bool is_closing;
};

/* Calls, words and runs, and the agent; `replaces`: nonce of the predecessor, 0 for none.
 * False: out of memory, or of random numbers; what was taken goes with the process. */
MUST_USE bool shell_memory_open(struct shell *shell, uint64_t now_ms, uint64_t replaces);

/* All of it, and the shell.  Its loop is closed. */
void shell_memory_free(struct shell *shell);

#endif
