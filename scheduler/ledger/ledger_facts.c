/* What a cause may depend on, besides the entry itself. */
#include "scheduler/ledger/ledger_state.h"

#define LOOKALIKES    2 /* others of one job and nearly the same bytes: drift */
#define LOOKALIKE_MS  3600000
#define SLACK_TOKENS  128
#define SLACK_PERCENT 2

uint64_t
ledger_facts_slack(uint64_t tokens)
{
	return MAX(SLACK_TOKENS, tokens * SLACK_PERCENT / 100);
}

static bool
is_lookalike(const struct ledger_version *other, const struct ledger_case *it,
             uint64_t tokens)
{
	uint64_t at_ms = it->call->at_ms, length = other->tokens;
	uint64_t apart = length > tokens ? length - tokens : tokens - length;

	return !other->shared && other->answers <= 1 &&
	       other->last_ms + LOOKALIKE_MS >= at_ms && length > 0 &&
	       apart <= ledger_facts_slack(tokens) && it->version &&
	       ledger_sketch_resembles(&other->sketch, &it->version->sketch);
}

/* The same prefix at another upstream: no other version. */
static bool
is_twin(const struct ledger_version *other, const struct ledger_version *version)
{
	return version && id_equals(other->twin, version->twin);
}

void
ledger_facts_look(const struct ledger_case *it, uint64_t tokens,
                  struct ledger_facts *facts)
{
	const struct ledger_route *route = &it->ledger->routes[it->row];
	uint32_t lookalikes = 0;

	for (uint32_t i = 0; i < LEDGER_VERSIONS; i++) {
		const struct ledger_version *other = &route->versions[i];

		if (id_is_none(other->family) || other == it->version)
			continue;
		if (other->shared && !is_twin(other, it->version) &&
		    other->last_ms + LEDGER_ALIVE_MS >= facts->sent_ms)
			facts->versions++;
		lookalikes += is_lookalike(other, it, tokens);
	}
	facts->lookalikes = lookalikes >= LOOKALIKES;
	facts->split = it->version && it->version->split;
}

/* After a restart the book has only what Redis keeps: the last versions of each route. */
bool
ledger_facts_are_blind(const struct ledger_case *it, bool leaf)
{
	const struct ledger *ledger = it->ledger;
	const struct ledger_route *route = &ledger->routes[it->row];

	if (ledger->first_ms >= ledger->since_ms ||
	    it->call->sent_ms >= ledger->since_ms + it->call->ttl_ms)
		return false;
	return !leaf || it->row == LEDGER_OTHER || route->versions_seen > LEDGER_VERSIONS;
}
