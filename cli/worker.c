#include "cli/act.h"
#include "cli/verbs.h"
#include "cli/view.h"

#include <stdio.h>

struct args {
	struct cli cli;
};

static const struct option_spec specs[] = { CLI_OPTIONS(struct args) };

static void
print_unreached(const json_t *row)
{
	const json_t *name;
	size_t i;

	json_array_foreach(json_object_get(row, "unreached"), i, name)
	{
		printf("  does not reach %s: it leaves those jobs to others; its log "
		       "says "
		       "why\n",
		       json_string_value(name));
	}
}

static void
print_rows(const json_t *rows)
{
	const json_t *row;
	size_t i;

	printf("%-24s  %-16s  %-12s  %-8s  %7s  %7s  %s\n", "WORKER", "SESSION", "POOL",
	       "STATE", "SLOTS", "BUSY", "LEASE ENDS IN");
	json_array_foreach(rows, i, row)
	{
		json_int_t lease_ms =
			json_integer_value(json_object_get(row, "lease_ms"));
		char lease[32];

		cli_print_cell(json_string_value(json_object_get(row, "label")), 24);
		cli_print_cell(json_string_value(json_object_get(row, "session")), 16);
		cli_print_cell(json_string_value(json_object_get(row, "pool")), 12);
		cli_print_cell(json_string_value(json_object_get(row, "state")), 8);
		printf("%7lld  %7lld  %s\n",
		       (long long)json_integer_value(json_object_get(row, "slots")),
		       (long long)json_integer_value(json_object_get(row, "busy")),
		       lease_ms > 0 ? cli_duration((uint64_t)lease_ms, lease)
		                    : "is over: it will be reaped");
		print_unreached(row);
	}
	if (json_array_size(rows) == 0)
		puts("No workers. Start one: warmq-worker --config warmq.yaml");
}

static int
load(struct cli *cli, struct store **ret_store, json_t **ret_rows)
{
	struct snapshot snapshot;
	int code = store_open(cli, ret_store);

	if (code != CLI_OK)
		return code;
	code = snapshot_load(*ret_store, &snapshot);
	if (code != CLI_OK) {
		store_close(*ret_store);
		return code;
	}
	*ret_rows = view_workers(&snapshot);
	snapshot_fini(&snapshot);
	return CLI_OK;
}

static int
run_ls(struct cli *cli)
{
	struct store *store;
	json_t *rows;
	int code = load(cli, &store, &rows);

	if (code != CLI_OK)
		return code;
	if (cli->json)
		cli_print_json(json_incref(rows));
	else
		print_rows(rows);
	json_decref(rows);
	store_close(store);
	return CLI_OK;
}

/* ---- quiet, resume, stop --------------------------------------------------------- */

/* A label, a session, or how a session begins. */
static bool
is_named(const json_t *row, const char *name)
{
	const char *session = json_string_value(json_object_get(row, "session"));
	const char *label = json_string_value(json_object_get(row, "label"));

	return (label && strcmp(label, name) == 0) ||
	       (strlen(name) >= 4 && strncmp(session, name, strlen(name)) == 0);
}

static int
steer_all(struct store *store, const json_t *rows, const char *name, const char *word,
          json_t *told)
{
	const json_t *row;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		json_t *session = json_object_get(row, "session");
		const char *words[] = { json_string_value(session), word };
		char what[ACT_WORD_SIZE];
		int code;

		if (!is_named(row, name))
			continue;
		code = act_call(store, "steer", words, ARRAY_SIZE(words), what);
		if (code != CLI_OK)
			return code;
		if (strcmp(what, "done") == 0)
			json_array_append(told, session);
	}
	return CLI_OK;
}

static int
steer(struct cli *cli, const char *word, const char *sentence)
{
	json_t *told = json_array(), *rows;
	struct store *store;
	int code = load(cli, &store, &rows);
	if (code == CLI_OK) {
		code = steer_all(store, rows, cli->argv[0], word, told);
		json_decref(rows);
		store_close(store);
	}
	if (code == CLI_OK && json_array_size(told) == 0)
		code = cli_fail(CLI_NOT_FOUND,
		                "There is no live worker like that. `warmq "
		                "worker ls` lists them.");
	else if (code == CLI_OK && cli->json)
		cli_print_json(json_pack("{s:O}", "told", told));
	else if (code == CLI_OK)
		printf("%zu workers told: %s\n", json_array_size(told), sentence);
	json_decref(told);
	return code;
}

static int
run_quiet(struct cli *cli)
{
	return steer(cli, "quiet", "nothing starts there any more; what runs goes on.");
}

static int
run_resume(struct cli *cli)
{
	return steer(cli, "run",
	             "they claim jobs again with their next beat, within 10 s.");
}

static int
run_stop(struct cli *cli)
{
	return steer(cli, "stop",
	             "nothing starts there any more; with its next beat, within "
	             "10 s, each drains and ends.");
}

#define STEER_DETAILS                                                                   \
	"NAME is a label (all workers that have it), a session, or how one begins. A\n" \
	"worker that is started anew is not quiet."

#define WHICH(verb)                                                                  \
	"Say which, by label or session: warmq worker " verb " NAME. `warmq worker " \
	"ls` lists them."

const struct verb verb_worker_ls = {
	.name = "worker ls",
	.usage = "worker ls",
	.summary = "list live workers, their slots, and who was told to be quiet",
	.options = { specs, ARRAY_SIZE(specs) },
	.args_size = sizeof(struct args),
	.run = run_ls,
};

const struct verb verb_worker_quiet = {
	.name = "worker quiet",
	.usage = "worker quiet NAME",
	.words_min = 1,
	.words_max = 1,
	.missing = WHICH("quiet"),
	.summary = "let a worker start nothing more; what it runs goes on",
	.details = STEER_DETAILS,
	.options = { specs, ARRAY_SIZE(specs) },
	.args_size = sizeof(struct args),
	.run = run_quiet,
};

const struct verb verb_worker_resume = {
	.name = "worker resume",
	.usage = "worker resume NAME",
	.words_min = 1,
	.words_max = 1,
	.missing = WHICH("resume"),
	.summary = "let a quiet worker claim jobs again",
	.details = STEER_DETAILS,
	.options = { specs, ARRAY_SIZE(specs) },
	.args_size = sizeof(struct args),
	.run = run_resume,
};

const struct verb verb_worker_stop = {
	.name = "worker stop",
	.usage = "worker stop NAME",
	.words_min = 1,
	.words_max = 1,
	.missing = WHICH("stop"),
	.summary = "let a worker drain and end, as SIGTERM does",
	.details = STEER_DETAILS,
	.options = { specs, ARRAY_SIZE(specs) },
	.args_size = sizeof(struct args),
	.run = run_stop,
};
