#include "cli/page.h"
#include "cli/verbs.h"

#include <stdio.h>
#include <stdlib.h>

#define FAMILIES_SHOWN 5
#define CAUSES_SHOWN   4
#define HOUR_MS        UINT64_C(3600000)

struct args {
	struct cli cli;
	const char *url;
};

static const struct option_spec specs[] = {
	PAGE_OPTION(struct args),
	CLI_LOCAL_OPTIONS(struct args),
};

struct story {
	const char *route; /* of one only, or NULL */
	json_t *overview, *page, *ledger, *sums;
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

static bool
pays(const json_t *budget, const json_t *families)
{
	const json_t *family;
	size_t i;

	json_array_foreach(families, i, family)
	{
		if (strcmp(page_text(family, "budget"), page_text(budget, "name")) == 0)
			return true;
	}
	return false;
}

static void
print_accounts(const struct story *story)
{
	uint64_t now_ms = page_number(story->overview, "now_ms");
	const json_t *budget;
	size_t i;

	json_array_foreach(json_object_get(story->overview, "budgets"), i, budget)
	{
		uint64_t parked_ms = page_number(budget, "parked_until_ms");
		char left[32], reads[16], most[CLI_COUNT_SIZE];

		if (story->route &&
		    !pays(budget, json_object_get(story->page, "families")))
			continue;
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

/* Of an hour that was over before the first call, nothing is known: "-", as on the page.
 * `back` is 1 for the hour before this one. */
static const char *
money_of_hour(const json_t *ledger, const char *span, uint64_t back, char ret_text[32])
{
	const json_t *route = json_array_get(json_object_get(ledger, "routes"), 0);
	bool one = json_array_size(json_object_get(ledger, "routes")) == 1;
	uint64_t now_ms = page_number(ledger, "now_ms");
	uint64_t first_ms =
		one ? page_number(route, "first_ms") : page_number(ledger, "since_ms");

	if (first_ms == 0 || first_ms >= now_ms - now_ms % HOUR_MS - (back - 1) * HOUR_MS)
		return "-";
	return page_money(money_of(ledger, span, "cost"), ret_text);
}

static void
print_money(const json_t *ledger)
{
	char now[32], last[32], yesterday[32], week[32], avoidable[32];

	if (money_of(ledger, "week", "cost") <= 0)
		return;
	printf("Paid this hour %s, last hour %s, the same hour yesterday %s, this week "
	       "%s; avoidable this week %s.\n",
	       page_money(money_of(ledger, "this_hour", "cost"), now),
	       money_of_hour(ledger, "last_hour", 1, last),
	       money_of_hour(ledger, "yesterday", 24, yesterday),
	       page_money(money_of(ledger, "week", "cost"), week),
	       page_money(money_of(ledger, "week", "avoidable"), avoidable));
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

static double
weight_of(const json_t *cause)
{
	return json_number_value(json_object_get(cause, "cost"));
}

/* The dearest first, as on the page; by tokens where nothing is priced. */
static int
by_cost(const void *left, const void *right)
{
	const json_t *a = *(json_t *const *)left, *b = *(json_t *const *)right;
	uint64_t a_tokens = page_number(a, "written") + page_number(a, "full");
	uint64_t b_tokens = page_number(b, "written") + page_number(b, "full");

	if (weight_of(a) > weight_of(b) || weight_of(a) < weight_of(b))
		return weight_of(a) > weight_of(b) ? -1 : 1;
	return a_tokens > b_tokens ? -1 : a_tokens < b_tokens;
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
	qsort(sorted, count, sizeof *sorted, by_cost);
	puts("Written or paid in full this week, what that cost on top, and why:");
	for (size_t i = 0; i < count && i < CAUSES_SHOWN; i++) {
		char written[32], extra[32];
		double dollars = json_number_value(json_object_get(sorted[i], "extra"));

		printf("  %-14s %15s tokens  %9s  %s\n", page_text(sorted[i], "cause"),
		       cli_grouped(page_number(sorted[i], "written") +
		                           page_number(sorted[i], "full"),
		                   written),
		       dollars > 0 ? page_money(dollars, extra) : "-",
		       page_text(sorted[i], "meaning"));
	}
}

/* ---- all of it ------------------------------------------------------------------- */

/* What the route does now, and what its last version changed. */
static void
print_route(const struct story *story)
{
	const json_t *sums = story->sums, *version;
	const json_t *row = json_array_get(json_object_get(story->ledger, "routes"), 0);
	char waiting[CLI_COUNT_SIZE], running[CLI_COUNT_SIZE], done[CLI_COUNT_SIZE];
	char hits[16], split[32];
	size_t i;

	cli_print_escaped(span_from(story->route));
	printf(": %s, %s, %s",
	       cli_count(page_number(sums, "waiting"), "job waits", "jobs wait", waiting),
	       cli_count(page_number(sums, "running"), "runs", "run", running),
	       cli_count(page_number(sums, "jobs_done"), "is done", "are done", done));
	if (json_is_number(json_object_get(sums, "prefix_hit_ratio")))
		printf("; %s of them read their prefix",
		       page_percent(sums, "prefix_hit_ratio", hits));
	puts(".");
	if (page_number(row, "variants") > 1)
		printf("%llu variants are used side by side: that has cost %s more than "
		       "one version would have.\n",
		       (unsigned long long)page_number(row, "variants"),
		       page_money(json_number_value(json_object_get(row, "split_cost")),
		                  split));
	json_array_foreach(json_object_get(story->ledger, "versions"), i, version)
	{
		if (!json_object_get(version, "change"))
			continue;
		fputs("Its last change:", stdout);
		print_version(version);
		putchar('\n');
		return;
	}
}

static void
print_story(const struct story *story)
{
	if (!(story->route ? page_print_state(story->overview, story->route)
	                   : page_print_head(story->overview)))
		return;
	if (story->route)
		print_route(story);
	print_money(story->ledger);
	print_jumps(story->ledger);
	if (!story->route)
		page_print_reasons(story->overview);
	print_families(story);
	print_accounts(story);
	print_causes(story->ledger);
	print_saved(story->ledger);
}

static int
load(const struct args *args, struct story *ret_story)
{
	char route[512] = "", families[1024], ledger[1024], sums[1024];
	json_t *routes = NULL;
	bool one = args->cli.argc > 0 && *args->cli.argv[0]; /* "" is no route */
	int code;

	if (one) {
		ret_story->route = args->cli.argv[0];
		page_escape(span_from(args->cli.argv[0]), route, sizeof route);
	}
	snprintf(sums, sizeof sums, "routes?route=%s", route);
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
	if (code == CLI_OK && one)
		code = page_get(args->url, sums, &routes);
	ret_story->sums =
		json_incref(json_array_get(json_object_get(routes, "routes"), 0));
	json_decref(routes);
	/* Of a route that has paid nothing yet there is no ledger. */
	if (code == CLI_OK && (!one || page_number(ret_story->sums, "jobs_done") > 0))
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
	json_decref(story.sums);
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
