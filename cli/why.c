#include "cli/page.h"
#include "cli/verbs.h"

#include <stdio.h>
#include <stdlib.h>

#define FAMILIES_SHOWN 5
#define CAUSES_SHOWN   4

struct args {
	struct cli cli;
	const char *url;
};

static const struct option_spec specs[] = {
	PAGE_OPTION(struct args),
	CLI_LOCAL_OPTIONS(struct args),
};

struct story {
	json_t *overview, *page, *ledger;
};

/* ---- families -------------------------------------------------------------------- */

static void
print_until(const json_t *family, uint64_t now_ms)
{
	uint64_t until_ms = page_number(family, "blocked_until_ms");
	char clock[CLI_CLOCK_SIZE], left[32];

	if (until_ms <= now_ms)
		return;
	printf(" Until %s (in %s).", cli_clock(until_ms, clock),
	       cli_duration(until_ms - now_ms, left));
}

static void
print_family(const json_t *family, uint64_t now_ms)
{
	char waiting[32];

	fputs("  ", stdout);
	cli_print_escaped(span_from(page_text(family, "route")));
	printf(" %.8s: %s wait, %s. ", page_text(family, "id"),
	       cli_grouped(page_number(family, "waiting"), waiting),
	       page_text(family, "blocked_on"));
	cli_print_escaped(span_from(page_text(family, "why")));
	print_until(family, now_ms);
	if (*page_text(family, "advice"))
		printf(" Advice: %s.", page_text(family, "advice"));
	putchar('\n');
}

static void
print_families(const struct story *story)
{
	const json_t *family;
	size_t i;

	json_array_foreach(json_object_get(story->page, "families"), i, family)
	{
		if (i == FAMILIES_SHOWN)
			break;
		if (page_number(family, "waiting") > 0 ||
		    json_is_true(json_object_get(family, "paused")))
			print_family(family, page_number(story->page, "now_ms"));
	}
}

/* ---- accounts -------------------------------------------------------------------- */

static void
print_accounts(const json_t *overview)
{
	uint64_t now_ms = page_number(overview, "now_ms");
	const json_t *budget;
	size_t i;

	json_array_foreach(json_object_get(overview, "budgets"), i, budget)
	{
		uint64_t parked_ms = page_number(budget, "parked_until_ms");
		char left[32], reads[16], most[CLI_COUNT_SIZE];

		printf("  account %s: at most %s at once%s", page_text(budget, "name"),
		       cli_count(page_number(budget, "pace"), "request", "requests",
		                 most),
		       json_is_true(json_object_get(budget, "rising")) ? " and rising"
		                                                       : "");
		if (json_is_number(json_object_get(budget, "token_read_ratio")))
			printf(", %s of its input tokens were read from the cache",
			       page_percent(budget, "token_read_ratio", reads));
		if (parked_ms > now_ms)
			printf(", PARKED for %s", cli_duration(parked_ms - now_ms, left));
		putchar('\n');
	}
}

/* ---- money ----------------------------------------------------------------------- */

static double
money_of(const json_t *ledger, const char *span, const char *member)
{
	return json_number_value(json_object_get(json_object_get(ledger, span), member));
}

static void
print_money(const json_t *ledger)
{
	char now[32], last[32], yesterday[32], avoidable[32];

	if (money_of(ledger, "week", "cost") <= 0)
		return;
	printf("Paid this hour %s, last hour %s, the same hour yesterday %s; avoidable "
	       "this "
	       "hour %s.\n",
	       page_money(money_of(ledger, "this_hour", "cost"), now),
	       page_money(money_of(ledger, "last_hour", "cost"), last),
	       page_money(money_of(ledger, "yesterday", "cost"), yesterday),
	       page_money(money_of(ledger, "this_hour", "avoidable"), avoidable));
}

static void
print_version(const json_t *version)
{
	const json_t *change = json_object_get(version, "change");
	char first[CLI_CLOCK_SIZE], byte[32];

	if (!version)
		return;
	printf(" Version v%llu came %s",
	       (unsigned long long)page_number(version, "number"),
	       cli_date(page_number(version, "first_ms"), first));
	if (change)
		printf(": %s in the %s part, from byte %s on. %s",
		       page_text(change, "kind"), page_text(change, "part"),
		       cli_grouped(page_number(change, "byte"), byte),
		       page_text(change, "fix"));
	else
		putchar('.');
}

static void
print_jump(const json_t *route, const json_t *jump)
{
	char since[CLI_CLOCK_SIZE], until[CLI_CLOCK_SIZE], from[32], to[32], extra[32];
	bool is_over = page_number(jump, "until_ms") > 0;

	fputs("  ", stdout);
	cli_print_escaped(span_from(page_text(route, "route")));
	printf(" is dearer since %s", cli_date(page_number(jump, "at_ms"), since));
	if (is_over)
		printf(", until %s", cli_date(page_number(jump, "until_ms"), until));
	printf(": from %s to %s an hour, %s more than before.",
	       page_money(json_number_value(json_object_get(jump, "from")), from),
	       page_money(json_number_value(json_object_get(jump, "to")), to),
	       page_money(json_number_value(json_object_get(jump, "extra")), extra));
	print_version(json_object_get(jump, "version"));
	putchar('\n');
}

static void
print_jumps(const json_t *ledger)
{
	const json_t *route, *jump;
	size_t i, j;

	json_array_foreach(json_object_get(ledger, "routes"), i, route)
	{
		json_array_foreach(json_object_get(route, "jumps"), j, jump)
			print_jump(route, jump);
	}
}

static void
print_saved(const json_t *ledger)
{
	char saved[32];

	if (money_of(ledger, "week", "saved") > 0)
		printf("Saved by holding this week: %s, against the same arrivals all "
		       "started at once (simulated).\n",
		       page_money(money_of(ledger, "week", "saved"), saved));
}

static int
by_written(const void *left, const void *right)
{
	uint64_t a = page_number(*(json_t *const *)left, "written");
	uint64_t b = page_number(*(json_t *const *)right, "written");

	return a > b ? -1 : a < b;
}

static void
print_causes(const json_t *ledger)
{
	const json_t *week = json_object_get(ledger, "week");
	const json_t *causes = json_object_get(week, "causes");
	size_t count = json_array_size(causes);
	json_t *sorted[32];

	if (count == 0)
		return;
	count = MIN(count, ARRAY_SIZE(sorted));
	for (size_t i = 0; i < count; i++)
		sorted[i] = json_array_get(causes, i);
	qsort(sorted, count, sizeof *sorted, by_written);
	puts("Written this week, what that cost on top, and why:");
	for (size_t i = 0; i < count && i < CAUSES_SHOWN; i++) {
		char written[32], extra[32];
		double dollars = json_number_value(json_object_get(sorted[i], "extra"));

		printf("  %-14s %15s tokens  %9s  %s\n", page_text(sorted[i], "cause"),
		       cli_grouped(page_number(sorted[i], "written"), written),
		       dollars > 0 ? page_money(dollars, extra) : "-",
		       page_text(sorted[i], "meaning"));
	}
}

/* ---- all of it ------------------------------------------------------------------- */

static void
print_story(const struct story *story)
{
	if (!page_print_head(story->overview))
		return;
	print_money(story->ledger);
	print_jumps(story->ledger);
	page_print_reasons(story->overview);
	print_families(story);
	print_accounts(story->overview);
	print_causes(story->ledger);
	print_saved(story->ledger);
}

static int
load(const struct args *args, struct story *ret_story)
{
	char route[512] = "", families[1024], ledger[1024];
	bool one = args->cli.argc > 0;
	int code;

	if (one)
		page_escape(span_from(args->cli.argv[0]), route, sizeof route);
	snprintf(families, sizeof families,
	         "families?show=%s&sort=waiting&limit=5&route=%s", one ? "all" : "held",
	         route);
	snprintf(ledger, sizeof ledger, "ledger%s%s", one ? "?route=" : "", route);
	code = page_get(args->url, "overview", &ret_story->overview);
	if (code == CLI_OK)
		code = page_get(args->url, families, &ret_story->page);
	if (code == CLI_OK && one &&
	    json_array_size(json_object_get(ret_story->page, "families")) == 0)
		return cli_fail(
			CLI_NOT_FOUND,
			"No job of this route is remembered. `warmq top` shows those "
			"that have work.");
	/* Of a route that has paid nothing yet there is no ledger. */
	if (code == CLI_OK &&
	    (!one ||
	     page_number(json_array_get(json_object_get(ret_story->page, "families"), 0),
	                 "jobs_done") > 0))
		code = page_get(args->url, ledger, &ret_story->ledger);
	return code;
}

static int
run(struct cli *cli)
{
	struct args *args = (struct args *)cli;
	struct story story = { 0 };
	int code;

	code = load(args, &story);
	if (code == CLI_OK && cli->json) {
		json_object_set(story.overview, "families",
		                json_object_get(story.page, "families"));
		if (story.ledger)
			json_object_set(story.overview, "ledger", story.ledger);
		cli_print_json(json_incref(story.overview));
	} else if (code == CLI_OK) {
		print_story(&story);
	}
	json_decref(story.overview);
	json_decref(story.page);
	json_decref(story.ledger);
	return code;
}

const struct verb verb_why = {
	.name = "why",
	.usage = "why [ROUTE]",
	.words_max = 1,
	.summary = "say what waits, why, until when, and what it costs, in a few lines",
	.details = "It says what the scheduler's page says, from the same API. With a "
		   "route,\n"
		   "of that route only.",
	.options = { specs, ARRAY_SIZE(specs) },
	.args_size = sizeof(struct args),
	.run = run,
	.common = true,
};
