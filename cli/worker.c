#include "cli/act.h"
#include "cli/columns.h"
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
		cli_print_escaped(
			span_from(json_string_value(json_object_get(row, "label"))));
		fputs(" does not reach ", stdout);
		cli_print_escaped(span_from(json_string_value(name)));
		puts(": it leaves those jobs to others; its log says why");
	}
}

static const struct column columns[] = {
	{ "WORKER" },
	{ "SESSION" },
	{ "POOL" },
	{ "STATE" },
	{ "SLOTS", .is_number = true },
	{ "BUSY", .is_number = true },
	{ "LEASE ENDS IN" },
};

static const char *
count_of(const json_t *row, const char *member, char ret_text[32])
{
	return cli_grouped((uint64_t)json_integer_value(json_object_get(row, member)),
	                   ret_text);
}

static void
add_row(struct columns *table, const json_t *row)
{
	json_int_t lease_ms = json_integer_value(json_object_get(row, "lease_ms"));
	char slots[32], busy[32], lease[32];

	columns_add(table,
	            (const char *const[]){
			    json_string_value(json_object_get(row, "label")),
			    json_string_value(json_object_get(row, "session")),
			    json_string_value(json_object_get(row, "pool")),
			    json_string_value(json_object_get(row, "state")),
			    count_of(row, "slots", slots), count_of(row, "busy", busy),
			    lease_ms > 0 ? cli_duration((uint64_t)lease_ms, lease)
					 : "it is over: its jobs go to others" });
}

static void
print_rows(const json_t *rows)
{
	struct columns table;
	const json_t *row;
	size_t i;

	columns_begin(&table, columns, ARRAY_SIZE(columns));
	json_array_foreach(rows, i, row)
	{
		add_row(&table, row);
	}
	columns_print(&table, "");
	json_array_foreach(rows, i, row)
	{
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

/* What a name may be the name of; the first that is one counts. */
static bool
has_label(const json_t *row, const char *name)
{
	const char *label = json_string_value(json_object_get(row, "label"));

	return label && strcmp(label, name) == 0;
}

static bool
has_session(const json_t *row, const char *name)
{
	const char *session = json_string_value(json_object_get(row, "session"));

	return strlen(name) >= 4 && strncmp(session, name, strlen(name)) == 0;
}

static size_t
count_named(const json_t *rows, bool (*is_named)(const json_t *, const char *),
            const char *name)
{
	const json_t *row;
	size_t i, count = 0;

	json_array_foreach(rows, i, row) count += is_named(row, name);
	return count;
}

static int
steer_all(struct store *store, const json_t *rows, const char *name, const char *word,
          json_t *told)
{
	bool is_label = count_named(rows, has_label, name) > 0;
	const json_t *row;
	size_t i;

	if (!is_label && count_named(rows, has_session, name) > 1)
		return cli_fail(CLI_FAILED,
		                "Sessions of several workers begin with \"%.60s\": say "
		                "more of it.",
		                name);
	json_array_foreach(rows, i, row)
	{
		json_t *session = json_object_get(row, "session");
		const char *words[] = { json_string_value(session), word };
		char what[ACT_WORD_SIZE];
		int code;

		if (!(is_label ? has_label : has_session)(row, name))
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
	char count[CLI_COUNT_SIZE];
	struct store *store;
	int code = load(cli, &store, &rows);
	if (code == CLI_OK) {
		code = steer_all(store, rows, cli->argv[0], word, told);
		json_decref(rows);
		store_close(store);
	}
	if (code == CLI_OK && json_array_size(told) == 0)
		code = cli_fail(CLI_NOT_FOUND,
		                "There is no live worker \"%.60s\". `warmq worker ls` "
		                "lists them.",
		                cli->argv[0]);
	else if (code == CLI_OK && cli->json)
		cli_print_json(json_pack("{s:O}", "told", told));
	else if (code == CLI_OK)
		printf("%s told: %s\n",
		       cli_count(json_array_size(told), "worker", "workers", count),
		       sentence);
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
	return steer(cli, "run", "they claim jobs again within a second or two.");
}

static int
run_stop(struct cli *cli)
{
	return steer(cli, "stop",
	             "nothing starts there any more; with its next beat, within "
	             "10 s, each drains and ends.");
}

#define STEER_DETAILS                                                             \
	"NAME is a label (all workers that have it), else a session, or how one " \
	"begins. A\n"                                                             \
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
