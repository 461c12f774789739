#include "cli/columns.h"
#include "cli/job_find.h"
#include "cli/verbs.h"

#include "common/codec/protocol_call.h"

#include <stdio.h>
#include <stdlib.h>

struct args {
	struct cli cli;
	uint64_t limit;
	const char *state;
};

static const struct option_spec ls_specs[] = {
	{ "state", OPTION_TEXT, offsetof(struct args, state), "running", "WORD",
	  "running, later or dead" },
	{ "limit", OPTION_UNSIGNED, offsetof(struct args, limit), "50", "N",
	  "show at most so many", .min = 1, .max = 1000000 },
	CLI_OPTIONS(struct args),
};
static const struct option_spec specs[] = { CLI_OPTIONS(struct args) };

/* ---- job ls ---------------------------------------------------------------------- */

#define ASK_BATCH 500

/* Why each of the rows died, from its history. */
static int
add_reasons(struct store *store, json_t *rows, size_t from, size_t to)
{
	int code = CLI_OK;

	for (size_t i = from; code == CLI_OK && i < to; i++) {
		const char *id =
			json_string_value(json_object_get(json_array_get(rows, i), "id"));

		code = store_append(
			store,
			(const struct span[]){ SPAN("HMGET"),
		                               store_key(store, "past:", span_from(id)),
		                               SPAN("reason"), SPAN("why") },
			4);
	}
	for (size_t i = from; code == CLI_OK && i < to; i++) {
		json_t *row = json_array_get(rows, i);
		const struct reply *reply;

		code = store_next(store, 0, "HMGET", "past:ID", &reply);
		if (code != CLI_OK)
			return code;
		json_object_set_new(row, "reason",
		                    cli_json_text(reply_text(reply_at(reply, 0))));
		json_object_set_new(row, "why",
		                    cli_json_text(reply_text(reply_at(reply, 1))));
	}
	return code;
}

static int
list_set(struct store *store, const char *state, uint64_t limit, json_t *rows)
{
	const struct reply *reply;
	char last[24];
	int code;

	snprintf(last, sizeof last, "%llu", (unsigned long long)limit - 1);
	code = STORE_COMMAND(store, &reply, SPAN("ZRANGE"),
	                     store_key(store, state, SPAN("")), SPAN("0"),
	                     span_from(last), SPAN("WITHSCORES"));
	for (size_t i = 0; code == CLI_OK && i + 1 < reply->count; i += 2)
		json_array_append_new(
			rows,
			json_pack("{s:o,s:s,s:I}", "id",
		                  cli_json_text(reply_text(&reply->items[i])), "state",
		                  state, "time_ms",
		                  (json_int_t)reply_integer(&reply->items[i + 1], 0)));
	for (size_t from = 0;
	     code == CLI_OK && strcmp(state, "dead") == 0 && from < json_array_size(rows);
	     from += ASK_BATCH)
		code = add_reasons(store, rows, from,
		                   MIN(from + ASK_BATCH, json_array_size(rows)));
	return code;
}

static const char *
text(const json_t *row, const char *member)
{
	const char *value = json_string_value(json_object_get(row, member));

	return value ? value : "";
}

static const struct column running_columns[] = {
	{ "JOB" },
	{ "ROUTE" },
	{ "FAMILY" },
	{ "ROLE" },
	{ "WORKER" },
	{ "SLOT", .is_number = true },
	{ "DELIVERY", .is_number = true },
};
static const struct column later_columns[] = { { "JOB" }, { "STARTS" }, { "IN" } };
static const struct column dead_columns[] = {
	{ "JOB" },
	{ "DIED" },
	{ "REASON" },
	{ "WHY" },
};

static void
add_running(struct columns *table, const json_t *row)
{
	char family[13], delivery[32];

	snprintf(family, sizeof family, "%s", text(row, "family"));
	columns_add(table,
	            (const char *const[]){
			    text(row, "id"), text(row, "route"), family,
			    text(row, "role"), text(row, "worker"), text(row, "slot"),
			    cli_grouped((uint64_t)json_integer_value(
						json_object_get(row, "delivery")),
	                                delivery) });
}

static void
add_later(struct columns *table, const json_t *row, uint64_t now_ms)
{
	uint64_t at_ms = (uint64_t)json_integer_value(json_object_get(row, "time_ms"));
	char date[CLI_CLOCK_SIZE], left[32];

	columns_add(table, (const char *const[]){
				   text(row, "id"), cli_date(at_ms, date),
				   at_ms > now_ms ? cli_duration(at_ms - now_ms, left)
						  : "now" });
}

static void
add_dead(struct columns *table, const json_t *row)
{
	uint64_t at_ms = (uint64_t)json_integer_value(json_object_get(row, "time_ms"));
	char date[CLI_CLOCK_SIZE];

	columns_add(table,
	            (const char *const[]){ text(row, "id"), cli_date(at_ms, date),
	                                   text(row, "reason"), text(row, "why") });
}

static void
print_rows(const struct args *args, const json_t *rows, uint64_t now_ms, uint64_t total)
{
	bool is_dead = strcmp(args->state, "dead") == 0;
	bool is_later = strcmp(args->state, "later") == 0;
	struct columns table;
	const json_t *row;
	char more[32];
	size_t i;

	if (is_dead)
		columns_begin(&table, dead_columns, ARRAY_SIZE(dead_columns));
	else if (is_later)
		columns_begin(&table, later_columns, ARRAY_SIZE(later_columns));
	else
		columns_begin(&table, running_columns, ARRAY_SIZE(running_columns));
	json_array_foreach(rows, i, row)
	{
		if (is_dead)
			add_dead(&table, row);
		else if (is_later)
			add_later(&table, row, now_ms);
		else
			add_running(&table, row);
	}
	columns_print(&table, "");
	if (json_array_size(rows) == 0)
		printf("No jobs are %s.\n", is_later ? "delayed" : args->state);
	if (total > json_array_size(rows))
		printf("… and %s more; --limit shows them.\n",
		       cli_grouped(total - json_array_size(rows), more));
}

static int
list(struct store *store, const struct args *args, json_t *rows, uint64_t *ret_total)
{
	const struct reply *reply;
	int code;

	if (strcmp(args->state, "running") == 0) {
		code = job_find_running(store, NULL, rows);
		*ret_total = json_array_size(rows);
		while (json_array_size(rows) > args->limit)
			json_array_remove(rows, json_array_size(rows) - 1);
		return code;
	}
	code = STORE_COMMAND(store, &reply, SPAN("ZCARD"),
	                     store_key(store, args->state, SPAN("")));
	if (code != CLI_OK)
		return code;
	*ret_total = (uint64_t)reply_integer(reply, 0);
	return list_set(store, args->state, args->limit, rows);
}

static int
run_ls(struct cli *cli)
{
	struct args *args = (struct args *)cli;
	json_t *rows = json_array();
	uint64_t total = 0, now_ms = 0;
	struct store *store;
	int code;

	if (strcmp(args->state, "running") != 0 && strcmp(args->state, "later") != 0 &&
	    strcmp(args->state, "dead") != 0)
		return cli_fail(CLI_USAGE,
		                "--state takes running, later or dead. Waiting "
		                "jobs are counted by `warmq family ls`.");
	code = store_open(cli, &store);
	if (code != CLI_OK)
		return code;
	code = list(store, args, rows, &total);
	if (code == CLI_OK)
		code = store_now(store, &now_ms);
	if (code == CLI_OK && cli->json)
		cli_print_json(json_incref(rows));
	else if (code == CLI_OK)
		print_rows(args, rows, now_ms, total);
	json_decref(rows);
	store_close(store);
	return code;
}

/* ---- job show -------------------------------------------------------------------- */

static int
run_show(struct cli *cli)
{
	struct store *store;
	json_t *job;
	char *shown;
	int code;

	code = cli_check_job_id(cli->argv[0]);
	if (code == CLI_OK)
		code = store_open(cli, &store);
	if (code != CLI_OK)
		return code;
	job = json_pack("{s:s}", "id", cli->argv[0]);
	code = job_find(store, cli->argv[0], job);
	if (code == CLI_OK && !json_object_get(job, "state")) {
		code = job_find_refuse(store, cli->argv[0]);
	} else if (code == CLI_OK && cli->json) {
		cli_print_json(json_incref(job));
	} else if (code == CLI_OK) {
		shown = json_dumps(job, JSON_INDENT(2) | JSON_ENSURE_ASCII);
		puts(shown ? shown : "");
		free(shown);
	}
	json_decref(job);
	store_close(store);
	return code;
}

/* ---- job cancel ------------------------------------------------------------------ */

/* There was nothing to cancel: says what became of it. */
static int
say_not_cancelled(struct store *store, const struct cli *cli, json_t *job)
{
	const char *id = cli->argv[0], *state;
	int code = job_find(store, id, job);

	if (code != CLI_OK)
		return code;
	state = text(job, "state");
	if (!*state)
		return job_find_refuse(store, id);
	if (strcmp(state, "dead") == 0)
		return cli_fail(CLI_FAILED,
		                "It is dead already. `warmq job drop %s` forgets it, "
		                "`warmq job retry %s` queues it again.",
		                id, id);
	if (strcmp(state, "waiting") == 0)
		return cli_fail(CLI_FAILED,
		                "This entry holds several jobs, with ids of their own: "
		                "%s.1, %s.2 and so on. Cancel those.",
		                id, id);
	return cli_fail(CLI_FAILED, "It has ended already: %s.", state);
}

static int
run_cancel(struct cli *cli)
{
	struct call_list *calls;
	const struct reply *reply;
	struct store *store;
	json_t *job;
	bool is_cancelled;
	int code = cli_check_job_id(cli->argv[0]);

	if (code == CLI_OK)
		code = store_open(cli, &store);
	if (code != CLI_OK)
		return code;
	calls = store_calls(store);
	protocol_call_cancel(calls, 0, store_namespace(store), span_from(cli->argv[0]));
	code = store_call(store, &reply);
	if (code != CLI_OK) {
		store_close(store);
		return code;
	}
	is_cancelled = reply_is(reply_at(reply, 2), "ended");
	job = json_pack("{s:s}", "id", cli->argv[0]);
	if (!is_cancelled)
		code = say_not_cancelled(store, cli, job);
	else if (!cli->json)
		puts("Cancelled. A request already under way is aborted at its worker's "
		     "next beat.");
	if (cli->json)
		cli_print_json(json_pack(
			"{s:s,s:b,s:s}", "id", cli->argv[0], "cancelled", is_cancelled,
			"state", is_cancelled ? "cancelled" : text(job, "state")));
	json_decref(job);
	store_close(store);
	return code;
}

const struct verb verb_job_ls = {
	.name = "job ls",
	.usage = "job ls [--state running|later|dead]",
	.summary = "list jobs that run, are delayed, or are dead",
	.options = { ls_specs, ARRAY_SIZE(ls_specs) },
	.args_size = sizeof(struct args),
	.run = run_ls,
};

const struct verb verb_job_show = {
	.name = "job show",
	.usage = "job show ID",
	.words_min = 1,
	.words_max = 1,
	.missing =
		"Say which: warmq job show ID, as `warmq enqueue` or XADD answered it.",
	.summary = "tell where a job is, what happened to it, and its result",
	.options = { specs, ARRAY_SIZE(specs) },
	.args_size = sizeof(struct args),
	.run = run_show,
	.common = true,
};

const struct verb verb_job_cancel = {
	.name = "job cancel",
	.usage = "job cancel ID",
	.words_min = 1,
	.words_max = 1,
	.missing =
		"Say which: warmq job cancel ID, as `warmq enqueue` or XADD answered it.",
	.summary = "end a job now; its result says cancelled",
	.details = "Exit code 0: it was cancelled; 1: it had ended before, or is dead; "
		   "4: nothing\n"
		   "is known of it.",
	.options = { specs, ARRAY_SIZE(specs) },
	.args_size = sizeof(struct args),
	.run = run_cancel,
};
