#include "cli/account.h"

#include <stdio.h>
#include <stdlib.h>

#define MINUTE_MS 60000

static const char *const letters[ACCOUNT_LIMIT_COUNT] = { "r", "i", "o" };
static const char *const names[ACCOUNT_LIMIT_COUNT] = { "request", "input", "output" };

static uint64_t
number(const json_t *hash, const char *field)
{
	struct span text = snapshot_text(hash, field);
	double value = text.len ? strtod(text.data, NULL) : 0;

	return value > 0 ? (uint64_t)value : 0;
}

static uint64_t
level_now(const json_t *hash, const char *letter, uint64_t limit, uint64_t now_ms)
{
	char field[16];
	uint64_t level, at, passed_ms;

	snprintf(field, sizeof field, "%s.level", letter);
	level = number(hash, field);
	snprintf(field, sizeof field, "%s.at", letter);
	at = number(hash, field);
	passed_ms = now_ms > at ? MIN(now_ms - at, MINUTE_MS) : 0;
	return MIN(limit, level + limit * passed_ms / MINUTE_MS);
}

void
account_read(const struct snapshot *snapshot, struct span budget,
             struct account *ret_account)
{
	char name[512], field[16];
	const json_t *hash;

	snprintf(name, sizeof name, "%.*s", (int)budget.len, budget.data);
	hash = json_object_get(snapshot->budgets, name);
	*ret_account = (struct account){
		.pace = number(hash, "pace"),
		.in_flight = number(hash, "in_flight"),
		.parked_until_ms = number(hash, "parked_until"),
	};
	for (size_t i = 0; i < ACCOUNT_LIMIT_COUNT; i++) {
		snprintf(field, sizeof field, "%s.limit", letters[i]);
		ret_account->limit[i] = number(hash, field);
		ret_account->level[i] = level_now(hash, letters[i], ret_account->limit[i],
		                                  snapshot->now_ms);
	}
}

static void
print_output_limit(const struct account *account, uint64_t output, char *ret_text,
                   size_t size)
{
	char limit[32], part[32];

	snprintf(ret_text, size,
	         "output limit: %s tokens a minute, a job reserves %s, so about %llu "
	         "start "
	         "a minute; a smaller max_tokens lets more run",
	         cli_grouped(account->limit[ACCOUNT_OUTPUT], limit),
	         cli_grouped(output, part),
	         (unsigned long long)(account->limit[ACCOUNT_OUTPUT] / MAX(output, 1)));
}

bool
account_print_limit(const struct account *account, uint64_t input, uint64_t output,
                    char *ret_text, size_t size)
{
	const uint64_t need[ACCOUNT_LIMIT_COUNT] = { 1, input, output };
	char limit[32], part[32];

	if (account->pace > 0 && account->in_flight >= account->pace) {
		snprintf(ret_text, size,
		         "pace: %s requests at once on this account for now",
		         cli_grouped(account->pace, limit));
		return true;
	}
	for (size_t i = 0; i < ACCOUNT_LIMIT_COUNT; i++) {
		if (account->limit[i] == 0 ||
		    account->level[i] >= MIN(need[i], account->limit[i]))
			continue;
		if (i == ACCOUNT_OUTPUT)
			print_output_limit(account, output, ret_text, size);
		else
			snprintf(ret_text, size, "%s limit: %s a minute, a job takes %s",
			         names[i], cli_grouped(account->limit[i], limit),
			         cli_grouped(need[i], part));
		return true;
	}
	return false;
}

json_t *
account_json(const struct account *account)
{
	json_t *limits = json_object();

	for (size_t i = 0; i < ACCOUNT_LIMIT_COUNT; i++)
		json_object_set_new(limits, names[i],
		                    json_pack("{s:I,s:I}", "per_minute",
		                              (json_int_t)account->limit[i], "left",
		                              (json_int_t)account->level[i]));
	return json_pack("{s:I,s:I,s:I,s:o}", "pace", (json_int_t)account->pace,
	                 "in_flight", (json_int_t)account->in_flight, "parked_until_ms",
	                 (json_int_t)account->parked_until_ms, "limits", limits);
}
