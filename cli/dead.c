#include "cli/store.h"
#include "cli/verbs.h"

#include "common/codec/protocol_call.h"

#include <stdio.h>

#define CHUNK 250 /* jobs of one call */
_Static_assert(CHUNK + 8 <= STORE_CALL_WORDS, "a call has room for its jobs");

struct args {
	struct cli cli;
	bool all;
};

static const struct option_spec specs[] = {
	{ "all", OPTION_FLAG, offsetof(struct args, all), NULL, NULL,
	  "all dead jobs instead of those named" },
	CLI_OPTIONS(struct args),
};

struct sum {
	uint64_t done, left;
	uint64_t lost; /* of those left: they stay dead, and in the way of a page */
};

static bool
is_taken(const struct reply *word)
{
	return reply_is(word, "queued") || reply_is(word, "dropped");
}

/* One call about `count` jobs. */
static int
take(struct store *store, const char *function, const struct span *ids, size_t count,
     struct sum *sum)
{
	struct call_list *calls = store_calls(store);
	const struct reply *reply;
	int code;

	protocol_call_open(calls, 0, store_namespace(store), function);
	for (size_t i = 0; i < count; i++)
		call_word(calls, ids[i]);
	code = store_call(store, &reply);
	for (size_t i = 0; code == CLI_OK && i < count; i++) {
		if (is_taken(reply_at(reply, 2 + i)))
			sum->done++;
		else
			sum->left++;
		sum->lost += reply_is(reply_at(reply, 2 + i), "lost");
	}
	return code;
}

static int
take_named(struct store *store, const char *function, const struct cli *cli,
           struct sum *sum)
{
	struct span ids[CHUNK];
	int code = CLI_OK;

	for (int from = 0; code == CLI_OK && from < cli->argc; from += CHUNK) {
		size_t count = (size_t)MIN(cli->argc - from, CHUNK);

		for (size_t i = 0; i < count; i++)
			ids[i] = span_from(cli->argv[(size_t)from + i]);
		code = take(store, function, ids, count, sum);
	}
	return code;
}

/* A page of at most `most` dead ones; those that could not be taken stay before it. */
static int
read_page(struct store *store, uint64_t offset, uint64_t most, char ret_ids[CHUNK][64],
          size_t *ret_count)
{
	const struct reply *reply;
	char first[32], last[32];
	int code;

	snprintf(first, sizeof first, "%llu", (unsigned long long)offset);
	snprintf(last, sizeof last, "%llu", (unsigned long long)(offset + most - 1));
	code = STORE_COMMAND(store, &reply, SPAN("ZRANGE"),
	                     store_key(store, "dead", SPAN("")), span_from(first),
	                     span_from(last));
	*ret_count = 0;
	for (size_t i = 0; code == CLI_OK && i < reply->count && i < CHUNK; i++) {
		struct span id = reply_text(&reply->items[i]);

		snprintf(ret_ids[(*ret_count)++], 64, "%.*s", (int)MIN(id.len, 63),
		         id.data);
	}
	return code;
}

/* All that are dead now, but for those that somebody else takes at the same moment. Those
 * who die meanwhile stand behind them: perhaps the same ones again, which were paid for
 * once more. */
static int
take_all(struct store *store, const char *function, struct sum *sum)
{
	static char texts[CHUNK][64];
	const struct reply *reply;
	struct span ids[CHUNK];
	uint64_t left;
	size_t count = 1;
	int code = STORE_COMMAND(store, &reply, SPAN("ZCARD"),
	                         store_key(store, "dead", SPAN("")));

	left = code == CLI_OK ? (uint64_t)reply_integer(reply, 0) : 0;
	while (code == CLI_OK && count > 0 && left > 0 && !cli_is_interrupted()) {
		code = read_page(store, sum->lost, MIN(left, CHUNK), texts, &count);
		left -= count;
		for (size_t i = 0; i < count; i++)
			ids[i] = span_from(texts[i]);
		if (code == CLI_OK && count > 0)
			code = take(store, function, ids, count, sum);
	}
	return code;
}

static int
say_sum(const struct cli *cli, const struct sum *sum, bool all, const char *what)
{
	char done[CLI_COUNT_SIZE], left[32];

	if (cli->json)
		cli_print_json(json_pack("{s:I,s:I}", "done", (json_int_t)sum->done,
		                         "left", (json_int_t)sum->left));
	else if (sum->left > 0)
		printf("%s %s; %s could not be: not dead, or the payload is lost. `warmq "
		       "job show ID` says which.\n",
		       cli_count(sum->done, "job", "jobs", done), what,
		       cli_grouped(sum->left, left));
	else
		printf("%s %s.\n", cli_count(sum->done, "job", "jobs", done), what);
	return sum->left > 0 && !all ? CLI_NOT_FOUND : CLI_OK;
}

static int
run(struct cli *cli, const char *function, const char *verb, const char *what)
{
	const struct args *args = (const struct args *)cli;
	struct sum sum = { 0 };
	struct store *store;
	int code = CLI_OK;

	if (args->all == (cli->argc > 0))
		return cli_fail(CLI_USAGE,
		                "Say which: warmq job %s ID..., or --all. `warmq job ls "
		                "--state dead` lists them.",
		                verb);
	for (int i = 0; code == CLI_OK && i < cli->argc; i++)
		code = cli_check_job_id(cli->argv[i]);
	if (code == CLI_OK)
		code = store_open(cli, &store);
	if (code != CLI_OK)
		return code;
	code = args->all ? take_all(store, function, &sum)
	                 : take_named(store, function, cli, &sum);
	store_close(store);
	return code == CLI_OK ? say_sum(cli, &sum, args->all, what) : code;
}

static int
run_retry(struct cli *cli)
{
	return run(cli, "requeue", "retry", "queued again");
}

static int
run_drop(struct cli *cli)
{
	return run(cli, "drop", "drop", "forgotten");
}

const struct verb verb_job_retry = {
	.name = "job retry",
	.usage = "job retry ID... | --all",
	.words_max = INT_MAX,
	.summary = "queue dead jobs again, with their counters at 0",
	.options = { specs, ARRAY_SIZE(specs) },
	.args_size = sizeof(struct args),
	.run = run_retry,
};

const struct verb verb_job_drop = {
	.name = "job drop",
	.usage = "job drop ID... | --all",
	.words_max = INT_MAX,
	.summary = "forget dead jobs for good, with what they asked",
	.options = { specs, ARRAY_SIZE(specs) },
	.args_size = sizeof(struct args),
	.run = run_drop,
};
