#include "cli/act.h"
#include "cli/snapshot.h"
#include "cli/verbs.h"

#include <stdio.h>

struct args {
	struct cli cli;
	const char *route;
};

static const struct option_spec specs[] = {
	{ "route", OPTION_TEXT, offsetof(struct args, route), NULL, "NAME",
	  "of this route only" },
	CLI_OPTIONS(struct args),
};
static const struct option_spec status_specs[] = { CLI_OPTIONS(struct args) };

/* ns:unheld: route -> when and by whom. */
static void
print_routes(const json_t *routes)
{
	const char *route;
	json_t *since;

	json_object_foreach((json_t *)(uintptr_t)routes, route, since)
	{
		fputs("Holding is off for the route ", stdout);
		cli_print_escaped(span_from(route));
		fputs(". `warmq hold on --route ", stdout);
		cli_print_escaped(span_from(route));
		puts("` ends this.");
	}
}

static json_t *
names_of(const json_t *routes)
{
	json_t *names = json_array(), *since;
	const char *route;

	json_object_foreach((json_t *)(uintptr_t)routes, route, since)
		json_array_append_new(names, cli_json_text(span_from(route)));
	return names;
}

static int
print_status(struct store *store, const struct cli *cli)
{
	const struct reply *reply;
	json_t *routes;
	bool is_off;
	int code = STORE_COMMAND(store, &reply, SPAN("HGET"),
	                         store_key(store, "meta", SPAN("")), SPAN("hold"));

	if (code != CLI_OK)
		return code;
	is_off = reply_is(reply, "off");
	code = snapshot_hash(store, store_key(store, "unheld", SPAN("")), &routes);
	if (code != CLI_OK)
		return code;
	if (cli->json) {
		cli_print_json(json_pack("{s:b,s:o}", "hold", !is_off, "unheld",
		                         names_of(routes)));
	} else {
		puts(is_off ? "Holding is off: every job starts at once, paced. "
		              "`warmq hold on` ends this."
		            : "Holding is on: jobs of a cold prefix wait for its one "
		              "writer.");
		print_routes(routes);
	}
	json_decref(routes);
	return CLI_OK;
}

static int
set(struct cli *cli, const char *word)
{
	const struct args *args = (const struct args *)cli;
	char what[ACT_WORD_SIZE];
	struct store *store;
	int code = store_open(cli, &store);

	if (code != CLI_OK)
		return code;
	if (word)
		code = act_call_behind(store, "hold", &word, 1, args->route, what);
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
	.usage = "hold on [--route NAME]",
	.summary =
		"hold jobs of a cold prefix until its one writer is done (the default)",
	.options = { specs, ARRAY_SIZE(specs) },
	.args_size = sizeof(struct args),
	.run = run_on,
};

const struct verb verb_hold_off = {
	.name = "hold off",
	.usage = "hold off [--route NAME]",
	.summary = "stop holding at once, for all or for one route; survives restarts",
	.details =
		"For all it works without a scheduler. For a route the scheduler sees to "
		"it,\nwithin a second or two, and to new versions of the route, too.",
	.options = { specs, ARRAY_SIZE(specs) },
	.args_size = sizeof(struct args),
	.run = run_off,
	.common = true,
};

const struct verb verb_hold_status = {
	.name = "hold status",
	.usage = "hold status",
	.summary = "say whether jobs are held",
	.options = { status_specs, ARRAY_SIZE(status_specs) },
	.args_size = sizeof(struct args),
	.run = run_status,
};
