#include "cli/wait.h"

#include "cli/process.h"
#include "cli/progress.h"
#include "cli/verbs.h"

#include <stdio.h>
#include <stdlib.h>

#define LOOK_MS_MIN 20 /* between two looks; grows while nothing happens */
#define LOOK_MS_MAX 250
#define LOOK_BATCH  500

struct args {
	struct cli cli;
	uint64_t timeout_ms;
};

static const struct option_spec specs[] = {
	{ "timeout", OPTION_DURATION, offsetof(struct args, timeout_ms), "15m", "TIME",
	  "how long to wait" },
	CLI_OPTIONS(struct args),
};

/* What is known of each id: NULL = no end yet, else its result, or JSON null for a job
 * that ended without leaving one. */
struct waiting {
	struct store *store;
	const json_t *ids;
	json_t **results;
	bool *is_missing; /* was not alive at the last look: gone if it still is */
	size_t count, ended, failed, gone; /* gone: of the failed ones */
};

static struct span
id_at(const struct waiting *waiting, size_t i)
{
	const json_t *id = json_array_get(waiting->ids, i);

	return (struct span){ json_string_value(id), json_string_length(id) };
}

static void
note_end(struct waiting *waiting, size_t i, json_t *result)
{
	const char *state = json_string_value(json_object_get(result, "state"));

	waiting->results[i] = result ? result : json_null();
	waiting->ended++;
	waiting->gone += result == NULL;
	if (!state || strcmp(state, "done") != 0)
		waiting->failed++;
}

/* An id of a packed entry is no stream id: Redis would refuse it. */
static bool
is_in_stream(struct span id)
{
	return memchr(id.data, '.', id.len) == NULL;
}

static int
ask(struct waiting *waiting, size_t i)
{
	struct store *store = waiting->store;
	struct span id = id_at(waiting, i);
	int code = store_append(
		store,
		(const struct span[]){ SPAN("GET"), store_key(store, "result:", id) }, 2);

	if (code == CLI_OK)
		code = store_append(
			store,
			(const struct span[]){ SPAN("EXISTS"),
		                               store_key(store, "slim:", id) },
			2);
	if (code == CLI_OK && is_in_stream(id))
		code = store_append(
			store,
			(const struct span[]){ SPAN("XRANGE"),
		                               store_key(store, "jobs", SPAN("")), id, id,
		                               SPAN("COUNT"), SPAN("1") },
			6);
	return code;
}

static int
look_at(struct waiting *waiting, size_t i)
{
	const struct reply *reply;
	json_t *result = NULL;
	bool is_alive;
	int code = store_next(waiting->store, 0, "GET", "result:ID", &reply);

	if (code != CLI_OK)
		return code;
	if (reply->kind == REPLY_TEXT)
		result = json_loadb(reply->text.data, reply->text.len, JSON_DECODE_ANY,
		                    NULL);
	code = store_next(waiting->store, 0, "EXISTS", "slim:ID", &reply);
	if (code != CLI_OK)
		return code;
	is_alive = reply_integer(reply, 0) > 0;
	if (is_in_stream(id_at(waiting, i))) {
		code = store_next(waiting->store, 0, "XRANGE", "jobs", &reply);
		if (code != CLI_OK)
			return code;
		is_alive = is_alive || reply->count > 0;
	}
	if (result)
		note_end(waiting, i, result);
	else if (!is_alive && waiting->is_missing[i])
		note_end(waiting, i, NULL);
	waiting->is_missing[i] = !is_alive;
	return CLI_OK;
}

static int
look(struct waiting *waiting)
{
	for (size_t from = 0; from < waiting->count; from += LOOK_BATCH) {
		size_t to = MIN(from + LOOK_BATCH, waiting->count);
		int code = CLI_OK;

		for (size_t i = from; i < to && code == CLI_OK; i++)
			if (!waiting->results[i])
				code = ask(waiting, i);
		for (size_t i = from; i < to && code == CLI_OK; i++)
			if (!waiting->results[i])
				code = look_at(waiting, i);
		if (code != CLI_OK)
			return code;
	}
	return CLI_OK;
}

static void
print_result(const struct cli *cli, const struct waiting *waiting, size_t i)
{
	json_t *result = waiting->results[i];
	struct span id = id_at(waiting, i);
	char *text;

	if (json_is_null(result))
		result = json_pack("{s:s%,s:s}", "id", id.data, id.len, "state", "gone");
	else
		json_incref(result);
	if (cli->json) {
		cli_print_json(result);
		return;
	}
	text = json_dumps(result, JSON_INDENT(2) | JSON_ENSURE_ASCII);
	puts(text ? text : "");
	free(text);
	json_decref(result);
}

static int
finish(const struct cli *cli, const struct waiting *waiting)
{
	for (size_t i = 0; i < waiting->count; i++)
		if (waiting->results[i])
			print_result(cli, waiting, i);
	if (waiting->ended < waiting->count)
		return cli_fail(cli_is_interrupted() ? CLI_INTERRUPTED : CLI_TIMEOUT,
		                "%zu of %zu jobs have not ended yet; they go on. Wait "
		                "again with `warmq wait ID`.",
		                waiting->count - waiting->ended, waiting->count);
	if (waiting->gone > 0)
		return cli_fail(CLI_FAILED,
		                "%zu of %zu jobs did not end well; nothing is known of "
		                "%zu: never enqueued, or ended and the result was "
		                "delivered or has expired.",
		                waiting->failed, waiting->count, waiting->gone);
	if (waiting->failed > 0)
		return cli_fail(CLI_FAILED, "%zu of %zu jobs did not end well.",
		                waiting->failed, waiting->count);
	return CLI_OK;
}

int
wait_for(struct store *store, const struct cli *cli, const json_t *ids,
         uint64_t timeout_ms)
{
	uint64_t deadline_ms = cli_now_ms() + timeout_ms;
	uint64_t pause_ms = LOOK_MS_MIN;
	struct waiting waiting = { .store = store, .ids = ids };
	struct progress progress;
	int code;

	waiting.count = json_array_size(ids);
	waiting.results = calloc(waiting.count + 1, sizeof *waiting.results);
	waiting.is_missing = calloc(waiting.count + 1, sizeof *waiting.is_missing);
	VERIFY(waiting.results && waiting.is_missing);
	progress_begin(&progress, "waiting", waiting.count, cli->json);
	for (;;) {
		size_t before = waiting.ended;

		code = look(&waiting);
		progress_draw(&progress, waiting.ended, waiting.failed);
		if (code != CLI_OK || waiting.ended == waiting.count)
			break;
		if (cli_is_interrupted() || cli_now_ms() >= deadline_ms)
			break;
		pause_ms = waiting.ended > before ? LOOK_MS_MIN
		                                  : MIN(pause_ms * 2, LOOK_MS_MAX);
		process_pause(pause_ms);
	}
	progress_end(&progress);
	if (code == CLI_OK)
		code = finish(cli, &waiting);
	for (size_t i = 0; i < waiting.count; i++)
		json_decref(waiting.results[i]);
	free(waiting.results);
	free(waiting.is_missing);
	return code;
}

static int
run(struct cli *cli)
{
	struct args *args = (struct args *)cli;
	struct store *store;
	json_t *ids;
	int code = CLI_OK;

	for (int i = 0; code == CLI_OK && i < cli->argc; i++)
		code = cli_check_job_id(cli->argv[i]);
	if (code == CLI_OK)
		code = store_open(cli, &store);
	if (code != CLI_OK)
		return code;
	ids = json_array();
	for (int i = 0; i < cli->argc; i++)
		json_array_append_new(ids, json_string(cli->argv[i]));
	code = wait_for(store, cli, ids, args->timeout_ms);
	json_decref(ids);
	store_close(store);
	return code;
}

static const char details[] =
	"Prints each result as JSON. Exit code 0: all done; 1: one ended badly or\n"
	"its result is gone; 5: the time was up first.";

const struct verb verb_wait = {
	.name = "wait",
	.usage = "wait ID [ID...] [--timeout TIME]",
	.words_min = 1,
	.words_max = INT_MAX,
	.missing =
		"Say which: warmq wait ID [ID...], as `warmq enqueue` or XADD answered "
		"them.",
	.summary = "wait for jobs to end and print their results",
	.details = details,
	.options = { specs, ARRAY_SIZE(specs) },
	.args_size = sizeof(struct args),
	.run = run,
	.common = true,
};
