#include "cli/act.h"
#include "cli/verbs.h"

#include <stdio.h>

struct args {
	struct cli cli;
};

static const struct option_spec specs[] = { CLI_OPTIONS(struct args) };

static int
print_status(struct store *store, const struct cli *cli)
{
	const struct reply *reply;
	bool is_off;
	int code = STORE_COMMAND(store, &reply, SPAN("HGET"),
	                         store_key(store, "meta", SPAN("")), SPAN("hold"));

	if (code != CLI_OK)
		return code;
	is_off = reply_is(reply, "off");
	if (cli->json)
		cli_print_json(json_pack("{s:b}", "hold", !is_off));
	else
		puts(is_off ? "Holding is off: every job starts at once, paced. "
		              "`warmq hold on` ends this."
		            : "Holding is on: jobs of a cold prefix wait for its one "
		              "writer.");
	return CLI_OK;
}

static int
set(struct cli *cli, const char *word)
{
	char what[ACT_WORD_SIZE];
	struct store *store;
	int code = store_open(cli, &store);

	if (code != CLI_OK)
		return code;
	if (word)
		code = act_call(store, "hold", &word, 1, what);
	if (code == CLI_OK)
		code = print_status(store, cli);
	store_close(store);
	return code;
}

static int
run_on(struct cli *cli)
{
	return set(cli, "on");
}

static int
run_off(struct cli *cli)
{
	return set(cli, "off");
}

static int
run_status(struct cli *cli)
{
	return set(cli, NULL);
}

const struct verb verb_hold_on = {
	.name = "hold on",
	.usage = "hold on",
	.summary =
		"hold jobs of a cold prefix until its one writer is done (the default)",
	.options = { specs, ARRAY_SIZE(specs) },
	.args_size = sizeof(struct args),
	.run = run_on,
};

const struct verb verb_hold_off = {
	.name = "hold off",
	.usage = "hold off",
	.summary = "stop all holding at once; survives restarts",
	.options = { specs, ARRAY_SIZE(specs) },
	.args_size = sizeof(struct args),
	.run = run_off,
	.common = true,
};

const struct verb verb_hold_status = {
	.name = "hold status",
	.usage = "hold status",
	.summary = "say whether jobs are held",
	.options = { specs, ARRAY_SIZE(specs) },
	.args_size = sizeof(struct args),
	.run = run_status,
};
