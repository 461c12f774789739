#include "cli/page.h"

#include "cli/http_json.h"

#include <stdio.h>
#include <stdlib.h>

#define URL_DEFAULT "http://127.0.0.1:9310"
#define URL_SIZE    1024

int
page_get(const char *url, const char *path, json_t **ret_answer)
{
	const char *base = url ? url : getenv("WARMQ_URL");
	const char *cause;
	char full[URL_SIZE];
	size_t len;
	int err;

	if (!base || !*base)
		base = URL_DEFAULT;
	len = strlen(base);
	while (len > 0 && base[len - 1] == '/')
		len--;
	snprintf(full, sizeof full, "%.*s/api/v1/%s", (int)len, base, path);
	err = http_json(full, NULL, ret_answer, &cause);
	if (err == 0)
		return CLI_OK;
	if (err == ERR_IO)
		return cli_fail(CLI_NOT_FOUND,
		                "The scheduler has no such page, or knows no "
		                "such route: %s",
		                full);
	return cli_fail(CLI_UNREACHABLE,
	                "The scheduler's pages do not answer at %.*s (%s). Start "
	                "warmq-scheduler, or say where it is with --url or WARMQ_URL.",
	                (int)len, base, cause);
}

void
page_escape(struct span text, char *ret_text, size_t size)
{
	static const char digits[] = "0123456789ABCDEF";
	size_t at = 0;

	for (size_t i = 0; i < text.len && at + 4 < size; i++) {
		unsigned char byte = (unsigned char)text.data[i];
		bool plain = (byte >= '0' && byte <= '9') ||
		             (byte >= 'a' && byte <= 'z') ||
		             (byte >= 'A' && byte <= 'Z') || byte == '-' || byte == '.' ||
		             byte == '_';

		if (plain) {
			ret_text[at++] = (char)byte;
			continue;
		}
		ret_text[at++] = '%';
		ret_text[at++] = digits[byte >> 4];
		ret_text[at++] = digits[byte & 15];
	}
	ret_text[at] = '\0';
}

const char *
page_text(const json_t *object, const char *member)
{
	const char *text = json_string_value(json_object_get(object, member));

	return text ? text : "";
}

uint64_t
page_number(const json_t *object, const char *member)
{
	json_int_t value = json_integer_value(json_object_get(object, member));

	return value > 0 ? (uint64_t)value : 0;
}

const char *
page_percent(const json_t *object, const char *member, char ret_text[16])
{
	const json_t *value = json_object_get(object, member);

	if (json_is_number(value))
		snprintf(ret_text, 16, "%.1f %%", json_number_value(value) * 100);
	else
		snprintf(ret_text, 16, "-");
	return ret_text;
}

const char *
page_money(double dollars, char ret_text[32])
{
	if (dollars > 0 && dollars < 0.01)
		snprintf(ret_text, 32, "$%.2g", dollars);
	else
		snprintf(ret_text, 32, "$%.2f", dollars);
	return ret_text;
}

/* What holds for all; false as below. */
static bool
print_phase(const json_t *overview)
{
	if (strcmp(page_text(overview, "phase"), "standing by") == 0) {
		puts("This scheduler stands by: another one rules, and only that one "
		     "knows "
		     "what waits, what is warm\nand what is paid. Ask that one: --url.");
		return false;
	}
	printf("The scheduler is %s, holding is %s.", page_text(overview, "phase"),
	       json_is_true(json_object_get(overview, "hold")) ? "on" : "OFF");
	return true;
}

/* `only` NULL: of all routes. */
static void
print_switches(const json_t *overview, const char *only)
{
	const json_t *route;
	size_t i;

	json_array_foreach(json_object_get(overview, "unheld"), i, route)
	{
		if (only && strcmp(only, json_string_value(route)) != 0)
			continue;
		fputs("Holding is off for the route ", stdout);
		cli_print_escaped(span_from(json_string_value(route)));
		puts(".");
	}
	if (!json_is_true(json_object_get(overview, "admits")))
		puts("Nothing is admitted: the cursor of the inbox is missing.");
}

bool
page_print_head(const json_t *overview)
{
	const json_t *all = json_object_get(overview, "all"), *pool;
	char waiting[CLI_COUNT_SIZE], running[CLI_COUNT_SIZE], room[CLI_COUNT_SIZE];
	uint64_t slots = 0;
	size_t i;

	if (!print_phase(overview))
		return false;
	json_array_foreach(json_object_get(overview, "pools"), i, pool) slots +=
		page_number(pool, "slots");
	printf(" %s, %s in %s.\n",
	       cli_count(page_number(all, "waiting"), "job waits", "jobs wait", waiting),
	       cli_count(page_number(all, "running"), "runs", "run", running),
	       cli_count(slots, "slot", "slots", room));
	print_switches(overview, NULL);
	return true;
}

bool
page_print_state(const json_t *overview, const char *route)
{
	if (!print_phase(overview))
		return false;
	putchar('\n');
	print_switches(overview, route);
	return true;
}

void
page_print_reasons(const json_t *overview)
{
	json_t *kinds = json_object_get(overview, "blocked"), *sum;
	uint64_t now_ms = page_number(overview, "now_ms");
	const char *kind;

	json_object_foreach(kinds, kind, sum)
	{
		char waiting[CLI_COUNT_SIZE], families[CLI_COUNT_SIZE], oldest[32];
		uint64_t since = page_number(sum, "oldest_ms");

		if (page_number(sum, "waiting") == 0)
			continue;
		printf("  %-15s %14s in %s, the oldest for %s\n", kind,
		       cli_count(page_number(sum, "waiting"), "job", "jobs", waiting),
		       cli_count(page_number(sum, "families"), "family", "families",
		                 families),
		       cli_duration(now_ms > since ? now_ms - since : 0, oldest));
	}
}
