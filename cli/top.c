#include "cli/columns.h"
#include "cli/page.h"
#include "cli/verbs.h"

#include <poll.h>
#include <stdio.h>

struct args {
	struct cli cli;
	const char *url;
	uint64_t limit, every;
	bool once;
};

static const struct option_spec specs[] = {
	PAGE_OPTION(struct args),
	{ "once", OPTION_FLAG, offsetof(struct args, once), NULL, NULL,
	  "print once and end; always so where the output is no terminal" },
	{ "every", OPTION_UNSIGNED, offsetof(struct args, every), "2", "SECONDS",
	  "how often to look", .min = 1, .max = 3600 },
	{ "limit", OPTION_UNSIGNED, offsetof(struct args, limit), "20", "N",
	  "show at most so many families", .min = 1, .max = 200 },
	CLI_LOCAL_OPTIONS(struct args),
};

static const struct column columns[] = {
	{ "ROUTE" },
	{ "FAMILY" },
	{ "WAITING", .is_number = true },
	{ "OLDEST", .is_number = true },
	{ "RUNNING", .is_number = true },
	{ "HITS", .is_number = true },
	{ "READ", .is_number = true },
	{ "STATE" },
	{ "BLOCKED ON" },
};

static void
add_family(struct columns *table, const json_t *family, uint64_t now_ms)
{
	char id[9], waiting[32], running[32], oldest[32] = "-", hits[16], reads[16];
	uint64_t since = page_number(family, "oldest_ms");

	snprintf(id, sizeof id, "%s", page_text(family, "id"));
	if (since > 0)
		(void)cli_duration(now_ms > since ? now_ms - since : 0, oldest);
	columns_add(table,
	            (const char *const[]){
			    page_text(family, "route"), id,
			    cli_grouped(page_number(family, "waiting"), waiting), oldest,
			    cli_grouped(page_number(family, "running"), running),
			    page_percent(family, "prefix_hit_ratio", hits),
			    page_percent(family, "token_read_ratio", reads),
			    page_text(family, "state"),
			    page_text(family, "blocked_on") });
}

static void
print_page(const json_t *overview, const json_t *page)
{
	struct columns table;
	const json_t *family;
	size_t i;

	if (!page_print_head(overview))
		return;
	page_print_reasons(overview);
	putchar('\n');
	columns_begin(&table, columns, ARRAY_SIZE(columns));
	json_array_foreach(json_object_get(page, "families"), i, family)
	{
		add_family(&table, family, page_number(page, "now_ms"));
	}
	columns_print(&table, "");
	if (json_array_size(json_object_get(page, "families")) == 0)
		puts("No family has work.");
}

static int
look(const struct args *args, bool clear)
{
	json_t *overview = NULL, *page = NULL;
	char path[128];
	int code;

	snprintf(path, sizeof path, "families?show=busy&sort=work&limit=%llu",
	         (unsigned long long)args->limit);
	code = page_get(args->url, "overview", &overview);
	if (code == CLI_OK)
		code = page_get(args->url, path, &page);
	if (code == CLI_OK && args->cli.json) {
		json_object_set(overview, "families", json_object_get(page, "families"));
		cli_print_json(json_incref(overview));
	} else if (code == CLI_OK) {
		if (clear)
			fputs("\033[H\033[2J", stdout);
		print_page(overview, page);
	}
	(void)fflush(stdout);
	json_decref(overview);
	json_decref(page);
	return code;
}

static int
run(struct cli *cli)
{
	struct args *args = (struct args *)cli;
	bool once = args->once || cli->json || !cli_is_terminal();
	int code = look(args, !once);

	while (code == CLI_OK && !once && !cli_is_interrupted()) {
		(void)poll(NULL, 0, (int)args->every * 1000);
		if (!cli_is_interrupted())
			code = look(args, true);
	}
	return code;
}

const struct verb verb_top = {
	.name = "top",
	.usage = "top [--once]",
	.summary = "watch the families that have work, as the page shows them",
	.details = "HITS is the share of jobs that read their prefix, READ that of input "
		   "tokens "
		   "that were\nread. Ctrl-C ends it. In a pipe, and with --json, it "
		   "prints once.",
	.options = { specs, ARRAY_SIZE(specs) },
	.args_size = sizeof(struct args),
	.run = run,
};
