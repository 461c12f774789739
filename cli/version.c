#include "cli/verbs.h"

#include <stdio.h>

struct args {
	struct cli cli;
};

static const struct option_spec specs[] = { CLI_LOCAL_OPTIONS(struct args) };

static int
run(struct cli *cli)
{
	if (cli->json)
		cli_print_json(json_pack("{s:s}", "version", WARMQ_VERSION));
	else
		puts("warmq " WARMQ_VERSION);
	return CLI_OK;
}

const struct verb verb_version = {
	.name = "version",
	.usage = "version [--json]",
	.summary = "print the version",
	.options = { specs, ARRAY_SIZE(specs) },
	.args_size = sizeof(struct args),
	.run = run,
};
