#include "cli/verbs.h"
#include "cli/view.h"

#include <stdio.h>

struct args {
	struct cli cli;
};

static const struct option_spec specs[] = { CLI_OPTIONS(struct args) };

static void
print_rows(const json_t *rows)
{
	const json_t *row;
	size_t i;

	printf("%-24s  %-16s  %-12s  %7s  %7s  %s\n", "WORKER", "SESSION", "POOL",
	       "SLOTS", "BUSY", "LEASE ENDS IN");
	json_array_foreach(rows, i, row)
	{
		json_int_t lease_ms =
			json_integer_value(json_object_get(row, "lease_ms"));
		char lease[32];

		cli_print_cell(json_string_value(json_object_get(row, "label")), 24);
		cli_print_cell(json_string_value(json_object_get(row, "session")), 16);
		cli_print_cell(json_string_value(json_object_get(row, "pool")), 12);
		printf("%7lld  %7lld  %s\n",
		       (long long)json_integer_value(json_object_get(row, "slots")),
		       (long long)json_integer_value(json_object_get(row, "busy")),
		       lease_ms > 0 ? cli_duration((uint64_t)lease_ms, lease)
		                    : "is over: it will be reaped");
	}
	if (json_array_size(rows) == 0)
		puts("No workers. Start one: warmq-worker --config warmq.yaml");
}

static int
run(struct cli *cli)
{
	struct snapshot snapshot;
	struct store *store;
	json_t *rows;
	int code = store_open(cli, &store);

	if (code != CLI_OK)
		return code;
	code = snapshot_load(store, &snapshot);
	if (code == CLI_OK) {
		rows = view_workers(&snapshot);
		if (cli->json) {
			cli_print_json(rows);
		} else {
			print_rows(rows);
			json_decref(rows);
		}
		snapshot_fini(&snapshot);
	}
	store_close(store);
	return code;
}

const struct verb verb_worker_ls = {
	.name = "worker ls",
	.usage = "worker ls",
	.summary = "list live workers and their slots",
	.options = { specs, ARRAY_SIZE(specs) },
	.args_size = sizeof(struct args),
	.run = run,
};
