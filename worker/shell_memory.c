#include "worker/shell_memory.h"

#include <stdlib.h>
#include <sys/random.h>

#define CALLS_MAX 64
#define BYTES_MAX (REPORT_SIZE_MAX + 8 * AGENT_CALL_BYTES)

static bool
open_agent(struct shell *shell, uint64_t now_ms, uint64_t replaces)
{
	const struct shell_options *options = shell->options;
	struct agent_config config = agent_config_default();

	config.ns = span_from(options->config->namespace);
	config.label = span_from(options->label);
	config.pool = span_from(options->pool);
	config.slots = options->slots;
	config.replaces = replaces;
	config.lease_ms = options->lease_ms;
	config.beat_ms = options->lease_ms / 3;
	config.margin_ms = options->lease_ms / 6;
	config.job_ms = run_ms_max(options->config);
	if (getrandom(&config.seed, sizeof config.seed, 0) != sizeof config.seed)
		return false;
	shell->memory = malloc(agent_size(&config));
	if (!shell->memory)
		return false;
	shell->agent = agent_init(shell->memory, agent_size(&config), now_ms, &config);
	return true;
}

static bool
open_calls(struct shell *shell)
{
	shell->calls = (struct call_list){
		.calls = calloc(CALLS_MAX, sizeof *shell->calls.calls),
		.args = calloc(SHELL_ARGS_MAX, sizeof *shell->calls.args),
		.bytes = malloc(BYTES_MAX),
		.call_max = CALLS_MAX,
		.arg_max = SHELL_ARGS_MAX,
		.byte_max = BYTES_MAX,
	};
	shell->output = (struct agent_output){
		.calls = &shell->calls,
		.commands = shell->commands,
		.commands_max = SHELL_COMMANDS_MAX,
	};
	shell->words = calloc(SHELL_ARGS_MAX, sizeof *shell->words);
	shell->runs = calloc(shell->options->slots, sizeof *shell->runs);
	return shell->calls.calls && shell->calls.args && shell->calls.bytes &&
	       shell->words && shell->runs;
}

bool
shell_memory_open(struct shell *shell, uint64_t now_ms, uint64_t replaces)
{
	return open_calls(shell) && open_agent(shell, now_ms, replaces);
}

void
shell_memory_free(struct shell *shell)
{
	shell->store = store_destroy(shell->store);
	shell->spool = spool_destroy(shell->spool);
	chain_fini(&shell->context.chain);
	report_list_fini(&shell->context.reports);
	free(shell->memory);
	free(shell->calls.calls);
	free(shell->calls.args);
	free(shell->calls.bytes);
	free(shell->words);
	free(shell->runs);
	free(shell);
}
