#include "scheduler/ledger/ledger_state.h"

#define LAG_MS_MAX    2050   /* between a first event and an entry that can be read */
#define LIFE_MS_LEAST 300000 /* the shortest class a provider sells */
#define MANY_VERSIONS 3      /* alive at once: documents, not deploys */

static bool
is_known(const struct ledger_facts *it)
{
	return it->written_ms > 0 || it->used_ms > 0;
}

static bool
is_alive(const struct ledger_facts *it, uint64_t life_ms)
{
	return is_known(it) && it->sent_ms <= it->used_ms + life_ms;
}

/* True while the entry lives and cannot be read yet, as far as anybody has seen. */
static bool
is_unreadable(const struct ledger_facts *it)
{
	if (it->written_ms == 0 || !is_alive(it, it->life_ms))
		return false;
	if (it->hit_ms > 0 && it->hit_ms <= it->sent_ms)
		return false;
	return it->first_ms == 0 || it->sent_ms < it->first_ms + LAG_MS_MAX;
}

/* ---- the table ------------------------------------------------------------------- */

static bool
is_waste(const struct ledger_facts *it)
{
	return it->kind == LEDGER_SPENT;
}

static bool
is_ping(const struct ledger_facts *it)
{
	return it->purpose == LEDGER_FOR_KEEPING;
}

static bool
is_untimed(const struct ledger_facts *it)
{
	return it->sent_ms == EVENT_UNKNOWN;
}

static bool
is_drift(const struct ledger_facts *it)
{
	return it->leaf && !it->shared && it->lookalikes;
}

static bool
is_proof(const struct ledger_facts *it)
{
	return it->role == LANE_CANARY && is_unreadable(it);
}

static bool
is_past_its_hold(const struct ledger_facts *it)
{
	return (it->role == LANE_HOLD_LIMIT || it->role == LANE_NOW) && is_unreadable(it);
}

static bool
is_split(const struct ledger_facts *it)
{
	return it->split && !is_alive(it, it->life_ms);
}

static bool
is_split_at_once(const struct ledger_facts *it)
{
	return it->split && is_unreadable(it);
}

static bool
is_short_lived(const struct ledger_facts *it)
{
	if (!is_alive(it, it->ttl_ms))
		return false;
	if (!is_alive(it, it->life_ms))
		return true;
	return it->ttl_ms > LIFE_MS_LEAST && !is_alive(it, LIFE_MS_LEAST);
}

static bool
is_gone(const struct ledger_facts *it)
{
	return is_alive(it, it->life_ms);
}

static bool
is_elsewhere(const struct ledger_facts *it)
{
	return it->warm_elsewhere;
}

static bool
is_blind(const struct ledger_facts *it)
{
	return it->blind && !is_known(it);
}

static bool
is_deploy(const struct ledger_facts *it)
{
	return !is_known(it) && it->versions > 0 && it->versions < MANY_VERSIONS;
}

static bool
is_new(const struct ledger_facts *it)
{
	return !is_known(it);
}

/* In this order; what is left has expired. */
static const struct {
	enum ledger_cause cause;
	bool (*applies)(const struct ledger_facts *facts);
} table[] = {
	{ LEDGER_RETRY_WASTE, is_waste },
	{ LEDGER_KEEPWARM, is_ping },
	{ LEDGER_UNKNOWN, is_untimed },
	{ LEDGER_DRIFT, is_drift },
	{ LEDGER_PROOF_MISS, is_proof },
	{ LEDGER_HOLD_LIMIT, is_past_its_hold },
	{ LEDGER_FALSE_SPLIT, is_split_at_once },
	{ LEDGER_STAMPEDE, is_unreadable },
	{ LEDGER_TTL_MISMATCH, is_short_lived },
	{ LEDGER_EVICTED_EARLY, is_gone },
	{ LEDGER_OTHER_PLACE, is_elsewhere },
	{ LEDGER_FALSE_SPLIT, is_split },
	{ LEDGER_UNKNOWN, is_blind },
	{ LEDGER_NEW_VERSION, is_deploy },
	{ LEDGER_FIRST, is_new },
};

enum ledger_cause
ledger_judge(const struct ledger_facts *facts)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (table[i].applies(facts))
			return table[i].cause;
	return LEDGER_EXPIRED;
}
