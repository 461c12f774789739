#include "cli/snapshot.h"
#include "cli/verbs.h"

#include "common/codec/protocol_call.h"
#include "common/codec/protocol_record.h"

#include <stdio.h>
#include <stdlib.h>

struct args {
	struct cli cli;
	uint64_t limit;
	const char *state;
};

static const struct option_spec specs[] = {
	{ "state", OPTION_TEXT, offsetof(struct args, state), "running", "WORD",
	  "ls: running, later or dead" },
	{ "limit", OPTION_UNSIGNED, offsetof(struct args, limit), "50", "N",
	  "ls: show at most so many", .min = 1, .max = 1000000 },
	CLI_OPTIONS(struct args),
};

/* "1700-0~/40,900" -> "1700-0" */
static struct span
id_of_element(struct span element)
{
	for (size_t i = 0; i < element.len; i++)
		if (element.data[i] == '~' || element.data[i] == '/')
			return (struct span){ element.data, i };
	return element;
}

static json_t *
running_row(const char *nonce, const char *slot, const struct protocol_lease *lease)
{
	return json_pack("{s:o,s:s,s:o,s:s,s:s,s:s,s:I}", "id",
	                 cli_json_text(id_of_element(lease->element)), "state", "running",
	                 "family", cli_json_text(lease->family), "role",
	                 protocol_role_text(lease->role), "session", nonce, "slot", slot,
	                 "delivery", (json_int_t)lease->delivery);
}

/* All leases of live sessions; `id` keeps one job, NULL keeps all. */
static int
collect_running(struct store *store, const char *id, json_t *rows)
{
	struct snapshot snapshot;
	const char *nonce, *slot;
	json_t *table, *lease_text;
	int code = snapshot_load(store, &snapshot);

	if (code != CLI_OK)
		return code;
	json_object_foreach(snapshot.leases, nonce, table)
	{
		json_object_foreach(table, slot, lease_text)
		{
			struct protocol_lease lease;

			if (protocol_record_parse_lease(snapshot_text(table, slot),
			                                &lease) < 0)
				continue;
			if (id &&
			    !span_equals(id_of_element(lease.element), span_from(id)))
				continue;
			json_array_append_new(rows, running_row(nonce, slot, &lease));
		}
	}
	snapshot_fini(&snapshot);
	return CLI_OK;
}

static int
collect_zset(struct store *store, const char *state, uint64_t limit, json_t *rows)
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
	return code;
}

static void
print_job(const json_t *row)
{
	const char *member;
	json_t *value;

	printf("%s  %s", json_string_value(json_object_get(row, "id")),
	       json_string_value(json_object_get(row, "state")));
	json_object_foreach((json_t *)(uintptr_t)row, member, value)
	{
		if (strcmp(member, "id") == 0 || strcmp(member, "state") == 0)
			continue;
		if (json_is_string(value)) {
			printf("  %s=", member);
			cli_print_escaped(span_from(json_string_value(value)));
		} else if (json_is_integer(value)) {
			printf("  %s=%lld", member, (long long)json_integer_value(value));
		}
	}
	putchar('\n');
}

static int
run_ls(struct cli *cli)
{
	struct args *args = (struct args *)cli;
	json_t *rows = json_array();
	struct store *store;
	const json_t *row;
	size_t i;
	int code;

	if (strcmp(args->state, "running") != 0 && strcmp(args->state, "later") != 0 &&
	    strcmp(args->state, "dead") != 0)
		return cli_fail(CLI_USAGE,
		                "--state takes running, later or dead. Waiting "
		                "jobs are counted by `warmq family ls`.");
	code = store_open(cli, &store);
	if (code != CLI_OK)
		return code;
	if (strcmp(args->state, "running") == 0)
		code = collect_running(store, NULL, rows);
	else
		code = collect_zset(store, args->state, args->limit, rows);
	while (json_array_size(rows) > args->limit)
		json_array_remove(rows, json_array_size(rows) - 1);
	if (code == CLI_OK && cli->json) {
		cli_print_json(json_incref(rows));
	} else if (code == CLI_OK) {
		json_array_foreach(rows, i, row) print_job(row);
		if (json_array_size(rows) == 0)
			printf("No jobs are %s.\n", args->state);
	}
	json_decref(rows);
	store_close(store);
	return code;
}

static int
find_result(struct store *store, const char *id, json_t *job)
{
	const struct reply *reply;
	json_t *result;
	int code = STORE_COMMAND(store, &reply, SPAN("GET"),
	                         store_key(store, "result:", span_from(id)));

	if (code != CLI_OK || reply->kind != REPLY_TEXT)
		return code;
	result = json_loadb(reply->text.data, reply->text.len, JSON_DECODE_ANY, NULL);
	if (!result)
		result = cli_json_text(reply->text);
	json_object_set(job, "state", json_object_get(result, "state"));
	json_object_set_new(job, "result", result);
	return CLI_OK;
}

static int
find_score(struct store *store, const char *set, const char *id, json_t *job)
{
	const struct reply *reply;
	int code = STORE_COMMAND(store, &reply, SPAN("ZSCORE"),
	                         store_key(store, set, SPAN("")), span_from(id));

	if (code == CLI_OK && reply->kind != REPLY_NIL) {
		json_object_set_new(job, "state", json_string(set));
		json_object_set_new(job, "time_ms",
		                    json_integer(reply_integer(reply, 0)));
	}
	return code;
}

static int
find_payload(struct store *store, const char *id, json_t *job)
{
	const struct reply *reply;
	int code = STORE_COMMAND(store, &reply, SPAN("EXISTS"),
	                         store_key(store, "slim:", span_from(id)));
	bool is_alive = code == CLI_OK && reply_integer(reply, 0) > 0;

	if (code == CLI_OK && !is_alive && !strchr(id, '.')) {
		code = STORE_COMMAND(store, &reply, SPAN("XRANGE"),
		                     store_key(store, "jobs", SPAN("")), span_from(id),
		                     span_from(id));
		is_alive = code == CLI_OK && reply->count > 0;
	}
	if (is_alive && !json_object_get(job, "state"))
		json_object_set_new(job, "state", json_string("waiting"));
	return code;
}

static int
find_job(struct store *store, const char *id, json_t *job)
{
	json_t *rows = json_array(), *past;
	int code = find_result(store, id, job);

	if (code == CLI_OK && !json_object_get(job, "state"))
		code = collect_running(store, id, rows);
	if (json_array_size(rows) > 0)
		json_object_update(job, json_array_get(rows, 0));
	json_decref(rows);
	if (code == CLI_OK)
		code = find_score(store, "later", id, job);
	if (code == CLI_OK)
		code = find_score(store, "dead", id, job);
	if (code == CLI_OK)
		code = find_payload(store, id, job);
	if (code == CLI_OK)
		code = snapshot_hash(store, store_key(store, "past:", span_from(id)),
		                     &past);
	if (code == CLI_OK && json_object_size(past) > 0)
		json_object_set_new(job, "past", past);
	else if (code == CLI_OK)
		json_decref(past);
	return code;
}

static int
run_show(struct cli *cli)
{
	struct store *store;
	json_t *job;
	char *text;
	int code;

	if (cli->argc != 1 || !cli_is_job_id(cli->argv[0]))
		return cli_fail(CLI_USAGE, "Say which: warmq job show ID, as `warmq "
		                           "enqueue` or XADD answered it.");
	code = store_open(cli, &store);
	if (code != CLI_OK)
		return code;
	job = json_pack("{s:s}", "id", cli->argv[0]);
	code = find_job(store, cli->argv[0], job);
	store_close(store);
	if (code == CLI_OK && !json_object_get(job, "state")) {
		json_decref(job);
		return cli_fail(CLI_NOT_FOUND,
		                "Nothing is known of this job: it never was, or it ended "
		                "and its result was delivered or has expired.");
	}
	if (code == CLI_OK && cli->json) {
		cli_print_json(json_incref(job));
	} else if (code == CLI_OK) {
		text = json_dumps(job, JSON_INDENT(2) | JSON_ENSURE_ASCII);
		puts(text ? text : "");
		free(text);
	}
	json_decref(job);
	return code;
}

static int
run_cancel(struct cli *cli)
{
	struct call_list *calls;
	const struct reply *reply;
	struct store *store;
	struct span what;
	int code;

	if (cli->argc != 1 || !cli_is_job_id(cli->argv[0]))
		return cli_fail(CLI_USAGE, "Say which: warmq job cancel ID.");
	code = store_open(cli, &store);
	if (code != CLI_OK)
		return code;
	calls = store_calls(store);
	protocol_call_cancel(calls, 0, store_namespace(store), span_from(cli->argv[0]));
	code = store_call(store, &reply);
	if (code == CLI_OK) {
		what = reply_text(reply_at(reply, 2));
		if (cli->json)
			cli_print_json(json_pack("{s:s,s:o}", "id", cli->argv[0], "what",
			                         cli_json_text(what)));
		else
			puts(span_equals(what, SPAN("ended"))
			             ? "Cancelled. A request already under way is "
			               "aborted "
			               "at its worker's next beat."
			             : "It had already ended.");
		if (!span_equals(what, SPAN("ended")))
			code = CLI_NOT_FOUND;
	}
	store_close(store);
	return code;
}

const struct verb verb_job_ls = {
	.name = "job ls",
	.usage = "job ls [--state running|later|dead]",
	.summary = "list jobs that run, are delayed, or are dead",
	.options = { specs, ARRAY_SIZE(specs) },
	.args_size = sizeof(struct args),
	.run = run_ls,
};

const struct verb verb_job_show = {
	.name = "job show",
	.usage = "job show ID",
	.summary = "tell where a job is, what happened to it, and its result",
	.options = { specs, ARRAY_SIZE(specs) },
	.args_size = sizeof(struct args),
	.run = run_show,
	.common = true,
};

const struct verb verb_job_cancel = {
	.name = "job cancel",
	.usage = "job cancel ID",
	.summary = "end a job now; its result says cancelled",
	.options = { specs, ARRAY_SIZE(specs) },
	.args_size = sizeof(struct args),
	.run = run_cancel,
};
