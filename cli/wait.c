#include "cli/wait.h"

#include "cli/pack.h"
#include "cli/process.h"
#include "cli/progress.h"
#include "cli/verbs.h"

#include "common/buffer.h"

#include <stdio.h>
#include <stdlib.h>

#define LOOK_MS_MIN  20 /* between two looks; grows while nothing happens */
#define LOOK_MS_MAX  250
#define LOOK_BATCH   500
#define IDS_SIZE_MAX ((size_t)64 << 20)

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
	json_t *ids;
	json_t **results;
	unsigned char *missing; /* looks in a row at which it was not alive: two, and it
	                           is gone */
	size_t count, ended, failed, gone; /* gone: of the failed ones */
	struct progress progress;
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
	else if (is_alive)
		waiting->missing[i] = 0;
	else
		waiting->missing[i]++;
	return CLI_OK;
}

/* Room for so many. */
static void
grow(struct waiting *waiting, size_t count)
{
	size_t before = waiting->count;

	waiting->results =
		realloc(waiting->results, (count + 1) * sizeof *waiting->results);
	waiting->missing =
		realloc(waiting->missing, (count + 1) * sizeof *waiting->missing);
	VERIFY(waiting->results && waiting->missing);
	for (size_t i = before; i < count; i++) {
		waiting->results[i] = NULL;
		waiting->missing[i] = 0;
	}
	waiting->count = count;
}

/* The jobs of an entry take its place, the first one literally. */
static void
unpack(struct waiting *waiting, size_t i, size_t jobs)
{
	struct span entry = id_at(waiting, i);
	json_t *held = json_incref(json_array_get(waiting->ids, i));

	progress_end(&waiting->progress);
	if (jobs == 1)
		(void)fprintf(stderr, "%s is an entry of one job: waiting for %s.1.\n",
		              entry.data, entry.data);
	else
		(void)fprintf(stderr,
		              "%s is an entry of %zu jobs: waiting for all of them, %s.1 "
		              "to %s.%zu.\n",
		              entry.data, jobs, entry.data, entry.data, jobs);
	for (size_t n = 1; n <= jobs; n++) {
		char id[PACK_ID_SIZE];

		pack_id(entry, n, id);
		if (n == 1)
			json_array_set_new(waiting->ids, i, json_string(id));
		else
			json_array_append_new(waiting->ids, json_string(id));
	}
	json_decref(held);
	waiting->missing[i] = 0;
	grow(waiting, json_array_size(waiting->ids));
	waiting->progress.total = waiting->count;
}

/* Nobody knows this one, unless it is an entry whose jobs go by names of their own, or a
 * job of one that has not been admitted. */
static int
give_up(struct waiting *waiting, size_t i)
{
	size_t jobs = 0;
	bool waits = false;
	int code;

	if (is_in_stream(id_at(waiting, i)))
		code = pack_last(waiting->store, id_at(waiting, i), &jobs);
	else
		code = pack_waits(waiting->store, id_at(waiting, i), &waits);
	if (code == CLI_OK && waits)
		waiting->missing[i] = 0;
	else if (code == CLI_OK && jobs > 0)
		unpack(waiting, i, jobs);
	else if (code == CLI_OK)
		note_end(waiting, i, NULL);
	return code;
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
		for (size_t i = from; i < to && code == CLI_OK; i++)
			if (!waiting->results[i] && waiting->missing[i] > 1)
				code = give_up(waiting, i);
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

/* With the ids: those of `enqueue --wait` are told nowhere else. */
static int
fail_unended(const struct waiting *waiting, enum cli_exit code)
{
	struct buffer ids = BUFFER_INIT(IDS_SIZE_MAX);
	int result;

	for (size_t i = 0; i < waiting->count; i++)
		if (!waiting->results[i]) {
			buffer_append(&ids, SPAN(" "));
			buffer_append(&ids, id_at(waiting, i));
		}
	result = cli_fail(code, "%zu of %zu jobs %s. Wait again with `warmq wait%.*s`.",
	                  waiting->count - waiting->ended, waiting->count,
	                  code == CLI_TIMEOUT || code == CLI_INTERRUPTED
	                          ? "have not ended yet; they go on"
	                          : "were not seen to end",
	                  (int)buffer_span(&ids).len, buffer_span(&ids).data);
	buffer_fini(&ids);
	return result;
}

/* What has ended is printed, also if Redis was lost meanwhile. */
static int
finish(const struct cli *cli, const struct waiting *waiting, int code)
{
	for (size_t i = 0; i < waiting->count; i++)
		if (waiting->results[i])
			print_result(cli, waiting, i);
	if (waiting->ended < waiting->count)
		return fail_unended(waiting, code != CLI_OK         ? (enum cli_exit)code
		                             : cli_is_interrupted() ? CLI_INTERRUPTED
		                                                    : CLI_TIMEOUT);
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
	struct waiting waiting = { .store = store, .ids = json_deep_copy(ids) };
	int code;

	grow(&waiting, json_array_size(ids));
	progress_begin(&waiting.progress, "waiting", waiting.count, cli->json);
	for (;;) {
		size_t before = waiting.ended;

		code = look(&waiting);
		progress_draw(&waiting.progress, waiting.ended, waiting.failed);
		if (code != CLI_OK || waiting.ended == waiting.count)
			break;
		if (cli_is_interrupted() || cli_now_ms() >= deadline_ms)
			break;
		pause_ms = waiting.ended > before ? LOOK_MS_MIN
		                                  : MIN(pause_ms * 2, LOOK_MS_MAX);
		process_pause(pause_ms);
	}
	progress_end(&waiting.progress);
	code = finish(cli, &waiting, code);
	for (size_t i = 0; i < waiting.count; i++)
		json_decref(waiting.results[i]);
	free(waiting.results);
	free(waiting.missing);
	json_decref(waiting.ids);
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
	"Prints each result as JSON; of an entry that held many jobs, those of all of\n"
	"them. Exit code 0: all done; 1: one ended badly or\n"
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
