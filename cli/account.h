/* account.h - the budget of one account and model class, as a snapshot has it: which
 * limit binds, with the number and what to do about it. */
#ifndef CLI_ACCOUNT_H
#define CLI_ACCOUNT_H

#include "cli/snapshot.h"

enum account_limit {
	ACCOUNT_REQUESTS,
	ACCOUNT_INPUT,
	ACCOUNT_OUTPUT,
	ACCOUNT_LIMIT_COUNT
};

struct account {
	uint64_t pace; /* concurrent requests allowed for now; 0 = no bound */
	uint64_t in_flight;
	uint64_t parked_until_ms;
	uint64_t limit[ACCOUNT_LIMIT_COUNT]; /* per minute; 0 = none */
	uint64_t level[ACCOUNT_LIMIT_COUNT]; /* left at the snapshot's moment */
};

/* Zeros where nothing is stored. */
void account_read(const struct snapshot *snapshot, struct span budget,
                  struct account *ret_account);

/* Writes which limit stops a job that takes `input` and `output` tokens, and answers
 * true; answers false if none does. */
bool account_print_limit(const struct account *account, uint64_t input, uint64_t output,
                         char *ret_text, size_t size);

/* A new object: pace, in_flight, parked_until_ms, limits by name (per_minute, left). */
json_t *account_json(const struct account *account);

#endif
