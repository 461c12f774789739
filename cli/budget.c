#include "cli/account.h"
#include "cli/act.h"
#include "cli/columns.h"
#include "cli/verbs.h"

#include <stdio.h>

struct args {
	struct cli cli;
};

static const struct option_spec specs[] = { CLI_OPTIONS(struct args) };

/* ---- budget ls ------------------------------------------------------------------- */

static json_t *
row_of(const struct snapshot *snapshot, const char *name)
{
	struct account account;
	json_t *row;

	account_read(snapshot, span_from(name), &account);
	row = account_json(&account);
	json_object_set_new(row, "budget", cli_json_text(span_from(name)));
	json_object_set_new(row, "parked_ms",
	                    json_integer(account.parked_until_ms > snapshot->now_ms
	                                         ? (json_int_t)(account.parked_until_ms -
	                                                        snapshot->now_ms)
	                                         : 0));
	return row;
}

static const struct column columns[] = {
	{ "ACCOUNT AND CLASS" },
	{ "RUNNING", .is_number = true },
	{ "AT MOST", .is_number = true },
	{ "PARKED FOR" },
};

static void
print_rows(const json_t *rows)
{
	struct columns table;
	const json_t *row;
	size_t i;

	columns_begin(&table, columns, ARRAY_SIZE(columns));
	json_array_foreach(rows, i, row)
	{
		json_int_t parked_ms =
			json_integer_value(json_object_get(row, "parked_ms"));
		json_int_t pace = json_integer_value(json_object_get(row, "pace"));
		char time[32], running[32], most[32];

		columns_add(
			&table,
			(const char *const[]){
				json_string_value(json_object_get(row, "budget")),
				cli_grouped((uint64_t)json_integer_value(
						    json_object_get(row, "in_flight")),
		                            running),
				pace > 0 ? cli_grouped((uint64_t)pace, most) : "no bound",
				parked_ms > 0 ? cli_duration((uint64_t)parked_ms, time)
					      : "-" });
	}
	columns_print(&table, "");
	if (json_array_size(rows) == 0)
		puts("No accounts: nothing has been admitted yet.");
}

static int
run_ls(struct cli *cli)
{
	json_t *rows = json_array(), *hash;
	struct snapshot snapshot;
	struct store *store;
	const char *name;
	int code = store_open(cli, &store);

	if (code == CLI_OK) {
		code = snapshot_load(store, &snapshot);
		if (code == CLI_OK) {
			json_object_foreach(snapshot.budgets, name, hash)
				json_array_append_new(rows, row_of(&snapshot, name));
			if (cli->json)
				cli_print_json(json_incref(rows));
			else
				print_rows(rows);
			snapshot_fini(&snapshot);
		}
		store_close(store);
	}
	json_decref(rows);
	return code;
}

/* ---- budget unpark --------------------------------------------------------------- */

static int
say_unparked(const struct cli *cli, const char *what)
{
	bool was_parked = strcmp(what, "done") == 0;

	if (strcmp(what, "gone") == 0)
		return cli_fail(CLI_NOT_FOUND,
		                "No jobs go to an account \"%.60s\". `warmq budget ls` "
		                "lists them.",
		                cli->argv[0]);
	if (cli->json)
		cli_print_json(json_pack("{s:s}", "what", what));
	else
		puts(was_parked
		             ? "Its jobs start again now. If the provider still refuses "
		               "them, it parks again."
		             : "It was not parked: nothing had to be done.");
	return CLI_OK;
}

static int
run_unpark(struct cli *cli)
{
	char what[ACT_WORD_SIZE];
	struct store *store;
	const char *name;
	int code;

	name = cli->argv[0];
	code = store_open(cli, &store);
	if (code != CLI_OK)
		return code;
	code = act_call(store, "unpark", &name, 1, what);
	store_close(store);
	return code == CLI_OK ? say_unparked(cli, what) : code;
}

const struct verb verb_budget_ls = {
	.name = "budget ls",
	.usage = "budget ls",
	.details = "AT MOST is how many requests may run at once for now: it doubles "
		   "while first\n"
		   "bytes come back, and is halved by a 429.",
	.summary = "list accounts by class of models: requests running, at most, parked "
		   "for how long",
	.options = { specs, ARRAY_SIZE(specs) },
	.args_size = sizeof(struct args),
	.run = run_ls,
};

const struct verb verb_budget_unpark = {
	.name = "budget unpark",
	.usage = "budget unpark NAME",
	.words_min = 1,
	.words_max = 1,
	.missing = "Say which: warmq budget unpark NAME. `warmq budget ls` lists them.",
	.summary = "start the jobs of an account that was parked, as after a spend cap",
	.details =
		"NAME is one budget, as anthropic:opus, or an account for all of its "
		"classes.\nDo it when the cause is gone: a spend cap that was raised is "
		"noticed by itself\nonly after up to half an hour.",
	.options = { specs, ARRAY_SIZE(specs) },
	.args_size = sizeof(struct args),
	.run = run_unpark,
};
