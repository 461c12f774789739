#include "cli/act.h"
#include "cli/columns.h"
#include "cli/process.h"
#include "cli/tail_writes.h"
#include "cli/verbs.h"
#include "cli/view.h"

#include "common/id.h"

#include <stdio.h>

struct args {
	struct cli cli;
	uint64_t limit;
};

static const struct option_spec specs[] = { CLI_OPTIONS(struct args) };
static const struct option_spec ls_specs[] = {
	{ "limit", OPTION_UNSIGNED, offsetof(struct args, limit), "50", "N",
	  "show at most so many", .min = 1, .max = 1000000 },
	CLI_OPTIONS(struct args),
};

static const char *
text(const json_t *row, const char *member)
{
	return json_string_value(json_object_get(row, member));
}

static json_int_t
number(const json_t *row, const char *member)
{
	return json_integer_value(json_object_get(row, member));
}

static const struct column columns[] = {
	{ "FAMILY" },
	{ "ROUTE" },
	{ "WAITING", .is_number = true },
	{ "RUNNING", .is_number = true },
	{ "PREFIX TOKENS", .is_number = true },
	{ "STATE" },
	{ "BLOCKED ON" },
};

/* "-" while nobody has measured it. */
static const char *
tokens_text(json_int_t tokens, char ret_text[32])
{
	return tokens > 0 ? cli_grouped((uint64_t)tokens, ret_text) : "-";
}

static void
add_row(struct columns *table, const json_t *row)
{
	char id[13], waiting[32], running[32], tokens[32];

	snprintf(id, sizeof id, "%s", text(row, "family"));
	columns_add(table,
	            (const char *const[]){
			    id, text(row, "route"),
			    cli_grouped((uint64_t)number(row, "backlog"), waiting),
			    cli_grouped((uint64_t)number(row, "in_flight"), running),
			    tokens_text(number(row, "prefix_tokens"), tokens),
			    text(row, "state"), text(row, "blocked_on") });
}

static void
print_rows(const json_t *rows, size_t limit)
{
	struct columns table;
	const json_t *row;
	size_t i;

	columns_begin(&table, columns, ARRAY_SIZE(columns));
	json_array_foreach(rows, i, row)
	{
		if (i == limit)
			break;
		add_row(&table, row);
	}
	columns_print(&table, "");
	if (json_array_size(rows) > limit)
		printf("… and %zu more; --limit shows them.\n",
		       json_array_size(rows) - limit);
	if (json_array_size(rows) == 0)
		puts("No families: nothing has been admitted yet.");
}

static int
refuse_name(const char *name)
{
	return cli_fail(CLI_NOT_FOUND,
	                "There is no family or route \"%.60s\". `warmq family ls` lists "
	                "them.",
	                name);
}

static int
load(struct cli *cli, struct store **ret_store, struct snapshot *ret_snapshot)
{
	int code = store_open(cli, ret_store);

	if (code != CLI_OK)
		return code;
	code = snapshot_load(*ret_store, ret_snapshot);
	if (code != CLI_OK)
		store_close(*ret_store);
	return code;
}

static int
run_ls(struct cli *cli)
{
	struct args *args = (struct args *)cli;
	struct snapshot snapshot;
	struct store *store;
	json_t *rows;
	int code = load(cli, &store, &snapshot);

	if (code != CLI_OK)
		return code;
	rows = view_families(&snapshot, cli->argc > 0 ? cli->argv[0] : NULL);
	if (cli->argc > 0 && json_array_size(rows) == 0)
		code = refuse_name(cli->argv[0]);
	if (code != CLI_OK) {
		json_decref(rows);
	} else if (cli->json) {
		while (json_array_size(rows) > args->limit)
			json_array_remove(rows, json_array_size(rows) - 1);
		cli_print_json(rows);
	} else {
		print_rows(rows, args->limit);
		json_decref(rows);
	}
	snapshot_fini(&snapshot);
	store_close(store);
	return code;
}

static const struct column place_columns[] = {
	{ "PLACE" },
	{ "STATE" },
	{ "TOKENS", .is_number = true },
	{ "RUNNING", .is_number = true },
	{ "CACHE MARKER" },
};

static void
print_places(const json_t *row)
{
	struct columns table;
	const json_t *place;
	size_t i;

	puts("  places, from the shared root to this prefix:");
	columns_begin(&table, place_columns, ARRAY_SIZE(place_columns));
	json_array_foreach(json_object_get(row, "places"), i, place)
	{
		char id[13], tokens[32], running[32];

		snprintf(id, sizeof id, "%s", text(place, "place"));
		columns_add(&table,
		            (const char *const[]){
				    id, text(place, "state"),
				    tokens_text(number(place, "prefix_tokens"), tokens),
				    cli_grouped((uint64_t)number(place, "in_flight"),
		                                running),
				    text(place, "marker") });
	}
	columns_print(&table, "    ");
}

static void
print_account(const json_t *row)
{
	const json_t *account = json_object_get(row, "account");
	json_int_t pace = number(account, "pace");
	const json_t *limit;
	const char *name;
	char count[CLI_COUNT_SIZE], most[32];

	fputs("  account ", stdout);
	cli_print_escaped(span_from(text(row, "budget")));
	printf(": %s running, %s%s at once\n",
	       cli_count((uint64_t)number(account, "in_flight"), "request", "requests",
	                 count),
	       pace > 0 ? "at most " : "any number",
	       pace > 0 ? cli_grouped((uint64_t)pace, most) : "");
	json_object_foreach((json_t *)(uintptr_t)json_object_get(account, "limits"), name,
	                    limit)
	{
		char left[32], all[32];

		if (number(limit, "per_minute") == 0)
			continue;
		printf("    %s limit: %s left of %s %s a minute\n", name,
		       cli_grouped((uint64_t)number(limit, "left"), left),
		       cli_grouped((uint64_t)number(limit, "per_minute"), all),
		       strcmp(name, "request") == 0 ? "requests" : "tokens");
	}
}

static void
print_page(const json_t *row)
{
	char tokens[CLI_COUNT_SIZE], oldest[32], waiting[32], running[32];
	json_int_t size = number(row, "prefix_tokens");

	printf("family %s\n", text(row, "family"));
	fputs("  route ", stdout);
	cli_print_escaped(span_from(text(row, "route")));
	printf(", pool %s\n", text(row, "pool"));
	printf("  %s; the prefix has %s\n", text(row, "state"),
	       size > 0 ? cli_count((uint64_t)size, "token", "tokens", tokens)
	                : "not been measured yet");
	printf("  %s waiting", cli_grouped((uint64_t)number(row, "backlog"), waiting));
	if (number(row, "backlog") > 0)
		printf(", the oldest for %s",
		       cli_duration((uint64_t)number(row, "oldest_ms"), oldest));
	printf("; %s running\n",
	       cli_grouped((uint64_t)number(row, "in_flight"), running));
	if (*text(row, "blocked_on")) {
		fputs("  blocked: ", stdout);
		cli_print_escaped(span_from(text(row, "blocked_on")));
		putchar('\n');
	}
	print_places(row);
	print_account(row);
	if (number(row, "tail_writes_permille") > TAIL_WRITES_MUCH)
		printf("  tail-writes: %lld %% of this route's input is written behind "
		       "the "
		       "shared part, by markers of\n  its jobs. Where no next turn of a "
		       "conversation reads that, take those markers out.\n",
		       (long long)number(row, "tail_writes_permille") / 10);
}

static int
add_tail_writes(struct store *store, const struct snapshot *snapshot, json_t *row)
{
	uint64_t permille = 0;
	int code = tail_writes_share(store, snapshot->now_ms,
	                             span_from(text(row, "route")), &permille);

	json_object_set_new(row, "tail_writes_permille",
	                    json_integer((json_int_t)permille));
	return code;
}

static int
run_show(struct cli *cli)
{
	struct snapshot snapshot;
	struct store *store;
	json_t *rows, *row;
	size_t i;
	int code;

	code = load(cli, &store, &snapshot);
	if (code != CLI_OK)
		return code;
	rows = view_families(&snapshot, cli->argv[0]);
	json_array_foreach(rows, i, row)
	{
		view_add_details(&snapshot, row);
		if (code == CLI_OK)
			code = add_tail_writes(store, &snapshot, row);
		if (code == CLI_OK && !cli->json)
			print_page(row);
	}
	if (json_array_size(rows) == 0)
		code = refuse_name(cli->argv[0]);
	else if (code == CLI_OK && cli->json)
		cli_print_json(json_incref(rows));
	json_decref(rows);
	snapshot_fini(&snapshot);
	store_close(store);
	return code;
}

/* ---- warm ------------------------------------------------------------------------ */

#define WARM_MS 10000 /* the scheduler answers within a second, if there is one */
#define LOOK_MS 50

/* Why not; the words are those of the function and of the scheduler.  Where what was
 * asked for is so, or comes without it, nothing has failed: a crontab asks every hour. */
static const struct {
	const char *word, *reason;
	bool is_fine;
} refusals[] = {
	{ "gone",
	  "nothing is known of its prefix any more: it comes back with its next job" },
	{ "off", "its jobs are not held: holding is off for it, or its upstream is not "
	         "held, or the scheduler remembers no more families (see its log)" },
	{ "small", "it is too short: its model caches nothing so short" },
	{ "unshared", "one job only has had this prefix so far" },
	{ "uncacheable", "its provider does not cache it, or it was never read back" },
	{ "warm", "it is warm already", true },
	{ "written", "it is written already; the next job shows that it can be read",
	  true },
	{ "writing", "it, or a part it stands on, is being written already", true },
	{ "paused", "it is paused: resume it first" },
	{ "parked", "its account is parked: see `warmq budget ls`" },
	{ "no_call", "its provider takes no request that only writes: a job has to" },
	{ "no_worker", "no live worker serves its pool" },
	{ "work", "its jobs wait already: one of them writes it", true },
	{ "busy",
	  "another prefix of this account is being written ahead: one at a time" },
	{ "later", "it has just failed or changed: ask again in some seconds" },
};

/* What the scheduler says to it: "asked", or why not; empty if it says nothing. */
static int
await_verdict(struct store *store, const char *family, char ret_what[ACT_WORD_SIZE])
{
	uint64_t end_ms = cli_now_ms() + WARM_MS;
	const struct reply *reply;
	int code = CLI_OK;

	ret_what[0] = '\0';
	while (code == CLI_OK && !ret_what[0] && cli_now_ms() < end_ms &&
	       !cli_is_interrupted()) {
		struct span word;

		process_pause(LOOK_MS);
		code = STORE_COMMAND(store, &reply, SPAN("GET"),
		                     store_key(store, "warm:", span_from(family)));
		word = code == CLI_OK ? reply_text(reply) : SPAN("");
		snprintf(ret_what, ACT_WORD_SIZE, "%.*s", (int)word.len,
		         word.data ? word.data : "");
	}
	return code;
}

static int
say_verdict(const struct cli *cli, const char *family, const char *what)
{
	if (!*what)
		return cli_fail(CLI_TIMEOUT,
		                "No scheduler has answered: is one running?");
	if (cli->json)
		cli_print_json(json_pack("{s:s,s:s}", "family", family, "what", what));
	if (strcmp(what, "asked") == 0) {
		if (!cli->json)
			puts("One request writes its prefix now; the next job shows that "
			     "it can be read.");
		return CLI_OK;
	}
	for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
		if (strcmp(refusals[i].word, what) != 0)
			continue;
		if (refusals[i].is_fine && !cli->json)
			printf("Nothing need be written: %s.\n", refusals[i].reason);
		else if (!cli->json)
			cli_fail(CLI_FAILED, "Nothing is written: %s.",
			         refusals[i].reason);
		return refusals[i].is_fine ? CLI_OK : CLI_FAILED;
	}
	return CLI_FAILED;
}

static bool
is_id(const char *word)
{
	return strlen(word) == ID_HEX_LEN &&
	       strspn(word, "0123456789abcdef") == ID_HEX_LEN;
}

/* The one family that is meant.  Redis knows it by its id, also when no scheduler has
 * told of it yet. */
static int
name_one(struct cli *cli, struct snapshot *snapshot, char ret_family[ID_HEX_LEN + 1])
{
	json_t *rows = view_families(snapshot, cli->argv[0]);
	size_t count = json_array_size(rows);
	int code = CLI_OK;

	if (is_id(cli->argv[0]))
		memcpy(ret_family, cli->argv[0], ID_HEX_LEN + 1);
	else if (count == 1)
		snprintf(ret_family, ID_HEX_LEN + 1, "%s",
		         text(json_array_get(rows, 0), "family"));
	else if (count == 0)
		code = refuse_name(cli->argv[0]);
	else
		code = cli_fail(CLI_USAGE,
		                "%zu families are called so: name one by its "
		                "id. `warmq family ls` lists them.",
		                count);
	json_decref(rows);
	return code;
}

/* ---- pause ----------------------------------------------------------------------- */

static int
pause(struct cli *cli, const char *word)
{
	char family[ID_HEX_LEN + 1], what[ACT_WORD_SIZE];
	const char *words[] = { family, word };
	struct snapshot snapshot;
	struct store *store;
	int code;

	code = load(cli, &store, &snapshot);
	if (code != CLI_OK)
		return code;
	code = name_one(cli, &snapshot, family);
	if (code == CLI_OK)
		code = act_call(store, "pause", words, ARRAY_SIZE(words), what);
	if (code == CLI_OK && strcmp(what, "gone") == 0)
		code = refuse_name(cli->argv[0]);
	else if (code == CLI_OK && cli->json)
		cli_print_json(json_pack("{s:s,s:b}", "family", family, "paused",
		                         strcmp(word, "on") == 0));
	else if (code == CLI_OK)
		puts(strcmp(word, "on") == 0
		             ? "Nothing of it starts any more; what runs goes on."
		             : "Its jobs start again.");
	snapshot_fini(&snapshot);
	store_close(store);
	return code;
}

static int
run_pause(struct cli *cli)
{
	return pause(cli, "on");
}

static int
run_resume(struct cli *cli)
{
	return pause(cli, "off");
}

/* ---- asking for it to be warm ---------------------------------------------------- */

static int
run_warm(struct cli *cli)
{
	char family[ID_HEX_LEN + 1], what[ACT_WORD_SIZE];
	const char *words[] = { family };
	struct snapshot snapshot;
	struct store *store;
	int code;

	code = load(cli, &store, &snapshot);
	if (code != CLI_OK)
		return code;
	code = name_one(cli, &snapshot, family);
	if (code == CLI_OK)
		code = act_call(store, "warm", words, 1, what);
	if (code == CLI_OK && strcmp(what, "asked") == 0)
		code = await_verdict(store, family, what);
	if (code == CLI_OK)
		code = say_verdict(cli, family, what);
	snapshot_fini(&snapshot);
	store_close(store);
	return code;
}

#define WHICH(verb) \
	"Say which: warmq family " verb " ID|ROUTE. `warmq family ls` lists them."

const struct verb verb_family_ls = {
	.name = "family ls",
	.usage = "family ls [ID|ROUTE]",
	.words_max = 1,
	.summary = "list families: backlog, state, and what each waits for",
	.options = { ls_specs, ARRAY_SIZE(ls_specs) },
	.args_size = sizeof(struct args),
	.run = run_ls,
	.common = true,
};

const struct verb verb_family_show = {
	.name = "family show",
	.usage = "family show ID|ROUTE",
	.words_min = 1,
	.words_max = 1,
	.missing = WHICH("show"),
	.summary = "show a family: its places, its account, the limit that binds",
	.options = { specs, ARRAY_SIZE(specs) },
	.args_size = sizeof(struct args),
	.run = run_show,
};

const struct verb verb_family_warm = {
	.name = "family warm",
	.usage = "family warm ID|ROUTE",
	.words_min = 1,
	.words_max = 1,
	.missing = WHICH("warm"),
	.summary = "write a family's prefix ahead of its jobs, by one request",
	.details =
		"It costs one write. If no job comes within the life of the entry, the "
		"ledger\nbooks it as prewarm_wasted. What speaks against it is said, and "
		"nothing is done.",
	.options = { specs, ARRAY_SIZE(specs) },
	.args_size = sizeof(struct args),
	.run = run_warm,
};

const struct verb verb_family_pause = {
	.name = "family pause",
	.usage = "family pause ID|ROUTE",
	.words_min = 1,
	.words_max = 1,
	.missing = WHICH("pause"),
	.summary = "let nothing of a family start; its jobs keep waiting",
	.options = { specs, ARRAY_SIZE(specs) },
	.args_size = sizeof(struct args),
	.run = run_pause,
};

const struct verb verb_family_resume = {
	.name = "family resume",
	.usage = "family resume ID|ROUTE",
	.words_min = 1,
	.words_max = 1,
	.missing = WHICH("resume"),
	.summary = "let a paused family's jobs start again",
	.options = { specs, ARRAY_SIZE(specs) },
	.args_size = sizeof(struct args),
	.run = run_resume,
};
