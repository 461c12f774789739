#include "cli/demo.h"

#include "cli/fleet.h"
#include "cli/progress.h"
#include "cli/verbs.h"
#include "common/codec/protocol_call.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define REPLY_LIST      "demo"
#define ARM_MS          900000 /* an arm that takes longer has failed */
#define POP_SECONDS     "1"
#define XADD_BATCH      16
#define WORKERS         2
#define LATENCY_US      100000
#define LATENCY_SPREAD  200 /* per mille, each way */
#define PREFILL_PER_SEC 10000

struct args {
	struct cli cli;
	uint64_t jobs, slots, prefix_tokens, families, max_tokens, otpm, seed;
	uint64_t lag_ms, job_ms, bursts;
	const char *dialect, *only;
	bool stream, keep;
};

static const struct option_spec specs[] = {
	{ "jobs", OPTION_UNSIGNED, offsetof(struct args, jobs), "200", "N",
	  "how many jobs arrive at once", .min = 1, .max = 100000 },
	{ "slots", OPTION_UNSIGNED, offsetof(struct args, slots), "200", "N",
	  "how many may run at once", .min = 1, .max = 4000 },
	{ "prefix-tokens", OPTION_UNSIGNED, offsetof(struct args, prefix_tokens), "30000",
	  "N", "length of the shared prefix", .min = 300, .max = 1000000 },
	{ "families", OPTION_UNSIGNED, offsetof(struct args, families), "1", "N",
	  "how many different prefixes", .min = 1, .max = 10000 },
	{ "dialect", OPTION_TEXT, offsetof(struct args, dialect), "anthropic", "NAME",
	  "anthropic or openai-chat" },
	{ "lag-ms", OPTION_UNSIGNED, offsetof(struct args, lag_ms), "0", "N",
	  "how long a written entry stays unreadable", .max = 60000 },
	{ "job-ms", OPTION_UNSIGNED, offsetof(struct args, job_ms), "2000", "N",
	  "how long a job generates", .max = 600000 },
	{ "stream", OPTION_FLAG, offsetof(struct args, stream), NULL, NULL,
	  "the jobs ask for a stream themselves" },
	{ "max-tokens", OPTION_UNSIGNED, offsetof(struct args, max_tokens), "1024", "N",
	  "output tokens each job reserves", .min = 1, .max = 1000000 },
	{ "otpm", OPTION_UNSIGNED, offsetof(struct args, otpm), "0", "N",
	  "the provider's limit of output tokens a minute; 0: none", .max = 1000000000 },
	{ "bursts", OPTION_UNSIGNED, offsetof(struct args, bursts), "1", "N",
	  "bursts in a row, each with new prefixes; what the first teach helps the last",
	  .min = 1, .max = DEMO_BURSTS_MAX },
	{ "only", OPTION_TEXT, offsetof(struct args, only), "", "ARM",
	  "run one arm only: naive or warmq" },
	{ "seed", OPTION_UNSIGNED, offsetof(struct args, seed), "1", "N",
	  "of texts and latencies" },
	{ "keep", OPTION_FLAG, offsetof(struct args, keep), NULL, NULL,
	  "keep the directory with logs and configuration" },
	CLI_LOCAL_OPTIONS(struct args),
};

struct arm_run {
	const struct args *args;
	const struct demo_options *options;
	struct fleet fleet;
	struct store *store;
	uint64_t burst; /* which of them; each has families of its own */
	uint64_t started_ms;
	uint64_t *held_ms; /* of each finished job */
	size_t held_count;
	struct demo_arm arm;
};

static json_t *
make_knobs(const struct demo_options *options)
{
	return json_pack("{s:I,s:I,s:I,s:I,s:I,s:I}", "visibility_lag_ms",
	                 (json_int_t)options->lag_ms, "job_ms",
	                 (json_int_t)options->job_ms, "otpm",
	                 (json_int_t)options->output_limit, "latency_ms",
	                 (json_int_t)LATENCY_US / 1000, "latency_spread_permille",
	                 (json_int_t)LATENCY_SPREAD, "prefill_tokens_per_second",
	                 (json_int_t)PREFILL_PER_SEC);
}

static int
switch_holding_off(struct store *store)
{
	struct call_list *calls = store_calls(store);
	const struct reply *reply;

	protocol_call_open(calls, 0, store_namespace(store), "hold");
	call_text(calls, "off");
	call_text(calls, "demo");
	return store_call(store, &reply);
}

static int
collect_ids(struct arm_run *run, size_t count)
{
	int code = CLI_OK;

	for (size_t i = 0; i < count && code == CLI_OK; i++) {
		const struct reply *reply;

		code = store_next(run->store, 0, "XADD", "jobs", &reply);
	}
	return code;
}

static int
enqueue(struct arm_run *run)
{
	const struct burst *burst = &run->options->burst;
	struct buffer prefix = BUFFER_INIT(BUFFER_SIZE_DEFAULT);
	struct buffer body = BUFFER_INIT(BUFFER_SIZE_DEFAULT);
	struct span key = store_key(run->store, "jobs", SPAN(""));
	size_t pending = 0;
	int code = CLI_OK;

	run->started_ms = cli_now_ms();
	for (uint64_t family = 0; family < burst->families; family++) {
		burst_prefix(burst, run->burst * burst->families + family, &prefix);
		for (uint64_t i = family; i < burst->jobs && code == CLI_OK;
		     i += burst->families) {
			burst_body(burst, i, buffer_span(&prefix), &body);
			code = store_append(
				run->store,
				(const struct span[]){ SPAN("XADD"), key, SPAN("*"),
			                               SPAN("upstream"), SPAN("main"),
			                               SPAN("route"), SPAN("demo"),
			                               SPAN("reply"), SPAN(REPLY_LIST),
			                               SPAN("body"), buffer_span(&body) },
				11);
			if (code == CLI_OK && ++pending == XADD_BATCH) {
				code = collect_ids(run, pending);
				pending = 0;
			}
		}
	}
	if (code == CLI_OK)
		code = collect_ids(run, pending);
	buffer_fini(&prefix);
	buffer_fini(&body);
	return code;
}

/* "1700000000000-5" began waiting at its first number, by the clock of Redis, which is
 * this machine's. */
static uint64_t
enqueued_ms(const json_t *result)
{
	const char *id = json_string_value(json_object_get(result, "id"));

	return id ? strtoull(id, NULL, 10) : 0;
}

static uint64_t
wall_clock_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void
note_result(struct arm_run *run, struct span text)
{
	json_t *result = json_loadb(text.data, text.len, 0, NULL);
	const char *state = json_string_value(json_object_get(result, "state"));
	uint64_t life_ms = wall_clock_ms() - enqueued_ms(result);
	uint64_t total_ms =
		(uint64_t)json_integer_value(json_object_get(result, "total_ms"));

	if (state && strcmp(state, "done") == 0)
		run->arm.done++;
	else
		run->arm.failed++;
	run->held_ms[run->held_count++] = life_ms > total_ms ? life_ms - total_ms : 0;
	json_decref(result);
}

static int
collect_results(struct arm_run *run, const char *label)
{
	struct span key = store_key(run->store, "reply:", SPAN(REPLY_LIST));
	uint64_t jobs = run->options->burst.jobs;
	struct progress progress;
	int code = CLI_OK;

	progress_begin(&progress, label, jobs, run->args->cli.json);
	while (code == CLI_OK && run->arm.done + run->arm.failed < jobs) {
		const struct reply *reply;

		code = STORE_COMMAND(run->store, &reply, SPAN("BLPOP"), key,
		                     SPAN(POP_SECONDS));
		if (code == CLI_OK && reply->kind == REPLY_ARRAY)
			note_result(run, reply_text(reply_at(reply, 1)));
		progress_draw(&progress, run->arm.done + run->arm.failed,
		              run->arm.failed);
		if (cli_is_interrupted())
			code = CLI_INTERRUPTED;
		else if (code == CLI_OK && !fleet_is_running(&run->fleet))
			code = CLI_FAILED;
		else if (code == CLI_OK && cli_now_ms() - run->started_ms > ARM_MS)
			code = cli_fail(
				CLI_TIMEOUT, "Only %llu of %llu jobs have ended.",
				(unsigned long long)(run->arm.done + run->arm.failed),
				(unsigned long long)jobs);
	}
	run->arm.makespan_ms = cli_now_ms() - run->started_ms;
	progress_end(&progress);
	return code;
}

static int
compare_ms(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return left < right ? -1 : left > right;
}

static uint64_t
stat_of(const json_t *stats, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(stats, name));
}

static int
close_books(struct arm_run *run)
{
	json_t *stats = fleet_provider_stats(&run->fleet);

	if (!stats)
		return CLI_UNREACHABLE;
	run->arm.writes = stat_of(stats, "writes");
	run->arm.duplicate_writes = stat_of(stats, "duplicate_writes");
	run->arm.written = stat_of(stats, "tokens_written");
	run->arm.read = stat_of(stats, "tokens_read");
	run->arm.uncached = stat_of(stats, "tokens_uncached");
	run->arm.peak_in_flight = stat_of(stats, "peak_concurrency");
	run->arm.peak_writers = stat_of(stats, "peak_writers");
	json_decref(stats);
	qsort(run->held_ms, run->held_count, sizeof *run->held_ms, compare_ms);
	if (run->held_count > 0) {
		run->arm.held_ms_p50 = run->held_ms[run->held_count / 2];
		run->arm.held_ms_max = run->held_ms[run->held_count - 1];
	}
	return CLI_OK;
}

static int
measure(struct arm_run *run, const char *label)
{
	int code = enqueue(run);

	if (code == CLI_OK)
		code = collect_results(run, label);
	if (code == CLI_OK)
		code = close_books(run);
	return code;
}

/* One burst after the other, each with books of its own; the fleet keeps what it has
 * learned.  Leaves the last arm in `run`. */
static int
measure_bursts(struct arm_run *run, bool hold, struct demo_bursts *ret_bursts)
{
	struct cli cli = { .redis = run->fleet.redis_url, .name_space = "warmq" };
	uint64_t count = hold ? run->args->bursts : 1; /* naive learns nothing */
	int code = store_open(&cli, &run->store);

	if (code != CLI_OK)
		return code;
	if (!hold)
		code = switch_holding_off(run->store);
	for (uint64_t i = 0; i < count && code == CLI_OK; i++) {
		run->burst = i;
		run->arm = (struct demo_arm){ 0 };
		run->held_count = 0;
		if (i > 0)
			code = fleet_provider_reset(&run->fleet);
		if (code == CLI_OK)
			code = measure(run, hold ? "with WarmQ " : "all at once");
		if (code == CLI_OK)
			ret_bursts->arms[ret_bursts->count++] = run->arm;
	}
	store_close(run->store);
	return code;
}

static int
run_arm(const struct args *args, const struct demo_options *options, bool hold,
        struct demo_bursts *ret_bursts)
{
	struct arm_run run = { .args = args, .options = options };
	json_t *knobs = make_knobs(options);
	struct fleet_config config = {
		.name = "warmq-demo",
		.dialect = args->dialect,
		.workers = MIN(WORKERS, args->slots),
		.slots = args->slots,
		.seed = args->seed,
		.pace_start = hold ? 0 : args->slots, /* all at once means all at once */
		.knobs = knobs,
		.keep = args->keep,
	};
	int code = fleet_start(&run.fleet, &config);

	if (code == CLI_OK) {
		run.held_ms = calloc(options->burst.jobs, sizeof *run.held_ms);
		VERIFY(run.held_ms);
		code = measure_bursts(&run, hold, ret_bursts);
		run.fleet.keep = run.fleet.keep || code == CLI_FAILED;
		fleet_stop(&run.fleet);
		free(run.held_ms);
	}
	json_decref(knobs);
	return code;
}

static int
run(struct cli *cli)
{
	const struct args *args = (const struct args *)cli;
	struct demo_options options = {
		.burst = { .dialect = args->dialect,
		           .model = "claude-sonnet-4-5",
		           .jobs = args->jobs,
		           .families = args->families,
		           .prefix_tokens = args->prefix_tokens,
		           .max_tokens = args->max_tokens,
		           .seed = args->seed,
		           .stream = args->stream },
		.slots = args->slots,
		.lag_ms = args->lag_ms,
		.job_ms = args->job_ms,
		.output_limit = args->otpm,
	};
	struct demo_bursts naive = { 0 }, held = { 0 };
	bool only_naive = strcmp(args->only, "naive") == 0;
	bool only_held = strcmp(args->only, "warmq") == 0;
	int code = CLI_OK;

	if (strcmp(args->dialect, "openai-chat") == 0)
		options.burst.model = "gpt-5.6";
	else if (strcmp(args->dialect, "anthropic") != 0)
		return cli_fail(CLI_USAGE, "--dialect takes anthropic or openai-chat.");
	if (args->only[0] && !only_naive && !only_held)
		return cli_fail(CLI_USAGE, "--only takes naive or warmq.");
	if (!only_held)
		code = run_arm(args, &options, false, &naive);
	if (code == CLI_OK && !only_naive)
		code = run_arm(args, &options, true, &held);
	if (code != CLI_OK)
		return code;
	if (cli->json)
		cli_print_json(demo_json(&options, &naive, &held));
	else
		demo_print(&options, &naive, &held);
	return demo_failed(&held) + demo_failed(&naive) == 0 ? CLI_OK : CLI_FAILED;
}

static const char details[] =
	"Starts a private Redis, a simulated provider, a scheduler and workers in a\n"
	"temporary directory, runs the same jobs without and with holding, prints\n"
	"both side by side, and leaves nothing behind. No account and no network are\n"
	"needed; nothing that you run already is touched.";

const struct verb verb_demo = {
	.name = "demo",
	.usage = "demo [--jobs N] [--prefix-tokens N] [--json] [options]",
	.summary = "run a burst twice, all at once and with one writer first",
	.details = details,
	.options = { specs, ARRAY_SIZE(specs) },
	.args_size = sizeof(struct args),
	.run = run,
	.common = true,
};
