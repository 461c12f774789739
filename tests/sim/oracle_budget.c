#include "tests/sim/oracle_book.h"

#include <inttypes.h>

#define UNIT         60000 /* of a bucket's level: a ms refills `limit` units */
#define ROUND_MS     10000 /* what was in flight is refused together */
#define SPEND_MS     60000 /* the first rest of an account without money, then doubled … */
#define SPEND_MS_MAX 1800000
#define ECHO_MS      30000 /* from an unpark to the scheduler's word about it */

static void
refill(struct oracle *oracle, struct oracle_bucket *bucket)
{
	uint64_t now = oracle_book_now_ms(oracle);
	int64_t size = (int64_t)bucket->limit * UNIT;

	if (now > bucket->at_ms)
		bucket->level += (int64_t)((now - bucket->at_ms) * bucket->limit);
	bucket->level = MIN(bucket->level, size);
	bucket->at_ms = now;
}

void
oracle_budget_move(struct oracle *oracle, uint32_t budget, int64_t requests,
                   int64_t input, int64_t output)
{
	int64_t by[ORACLE_BUCKETS] = { requests, input, output };

	for (int i = 0; i < ORACLE_BUCKETS; i++) {
		struct oracle_bucket *bucket = &oracle->budgets[budget].buckets[i];

		if (bucket->limit == 0)
			continue;
		refill(oracle, bucket);
		bucket->level += by[i] * UNIT;
		bucket->level = MIN(bucket->level, (int64_t)bucket->limit * UNIT);
	}
}

/* What a job came to.  It takes a bucket below zero by no more than a minute's limit,
 * whatever a provider says. */
void
oracle_budget_correct(struct oracle *oracle, uint32_t budget, int64_t input,
                      int64_t output)
{
	int64_t floors[ORACLE_BUCKETS];

	oracle_budget_move(oracle, budget, 0, 0, 0);
	for (int i = 0; i < ORACLE_BUCKETS; i++) {
		const struct oracle_bucket *bucket = &oracle->budgets[budget].buckets[i];

		floors[i] = MIN(bucket->level, -(int64_t)bucket->limit * UNIT);
	}
	oracle_budget_move(oracle, budget, 0, input, output);
	for (int i = 0; i < ORACLE_BUCKETS; i++) {
		struct oracle_bucket *bucket = &oracle->budgets[budget].buckets[i];

		bucket->level = MAX(bucket->level, floors[i]);
	}
}

/* I10: a start needs its estimate, or a full bucket. */
static void
judge_buckets(struct oracle *oracle, const struct oracle_lease *lease)
{
	int64_t needs[ORACLE_BUCKETS] = { 1, (int64_t)lease->input,
		                          (int64_t)lease->output };
	struct oracle_budget *budget = &oracle->budgets[lease->budget];

	for (int i = 0; i < ORACLE_BUCKETS; i++) {
		struct oracle_bucket *bucket = &budget->buckets[i];
		int64_t need = MIN(needs[i], (int64_t)bucket->limit);

		if (bucket->limit == 0 || oracle->rolled_back || oracle->clock_stepped)
			continue;
		refill(oracle, bucket);
		if (bucket->level < (need - 1) * UNIT)
			oracle_fail(oracle, "I10",
			            "budget %s starts with %" PRId64 " of %" PRId64
			            " in bucket %d",
			            budget->name, bucket->level / UNIT, need, i);
	}
}

/* Somebody ends a park; the scheduler says it again if its own was under way then. */
static void
take_unpark(struct oracle *oracle, struct oracle_budget *budget)
{
	uint64_t now = oracle_book_now_ms(oracle);

	if (oracle_book_runs(oracle, "unpark"))
		budget->unparked_ms = now;
	if (budget->unparked_ms > 0 && now - budget->unparked_ms <= ECHO_MS)
		budget->parked_until_ms = 0;
}

void
oracle_budget_field(struct oracle *oracle, struct span name, struct span field,
                    struct span value)
{
	static const char *const LIMITS[] = { "r.limit", "i.limit", "o.limit" };
	uint32_t index = oracle_book_budget_make(oracle, name);
	struct oracle_budget *budget = &oracle->budgets[index];

	if (span_equals(field, SPAN("pace")))
		budget->pace_now = oracle_book_number(value);
	if (span_equals(field, SPAN("parked_until")))
		budget->told_until_ms = oracle_book_number(value);
	if (span_equals(field, SPAN("parked_until")) && oracle_book_number(value) == 0)
		take_unpark(oracle, budget);
	for (int i = 0; i < ORACLE_BUCKETS; i++) {
		struct oracle_bucket *bucket = &budget->buckets[i];

		if (!span_equals(field, span_from(LIMITS[i])))
			continue;
		if (bucket->limit == 0) {
			bucket->level = (int64_t)oracle_book_number(value) * UNIT;
			bucket->at_ms = oracle_book_now_ms(oracle);
		} else if (bucket->limit != oracle_book_number(value)) {
			refill(oracle, bucket);
		}
		bucket->limit = oracle_book_number(value);
		bucket->level = MIN(bucket->level, (int64_t)bucket->limit * UNIT);
	}
}

void
oracle_budget_judge(struct oracle *oracle, const struct oracle_lease *lease)
{
	const struct oracle_budget *budget = &oracle->budgets[lease->budget];

	if (budget->pace_before > 0 && budget->in_flight > budget->pace_before)
		oracle_fail(oracle, "pace",
		            "budget %s starts: %u in flight, pace %" PRIu64, budget->name,
		            budget->in_flight, budget->pace_before);
	if (lease->at_ms < budget->parked_until_ms && !oracle->rolled_back &&
	    !oracle->clock_stepped)
		oracle_fail(oracle, "I10",
		            "budget %s starts %" PRIu64 " ms before its time",
		            budget->name, budget->parked_until_ms - lease->at_ms);
	if (lease->at_ms < budget->told_until_ms && !oracle->rolled_back &&
	    !oracle->clock_stepped)
		oracle_fail(oracle, "I10",
		            "budget %s starts %" PRIu64 " ms before the time it was told",
		            budget->name, budget->told_until_ms - lease->at_ms);
	judge_buckets(oracle, lease);
	oracle_budget_move(oracle, lease->budget, -1, -(int64_t)lease->input,
	                   -(int64_t)lease->output);
}

/* A deferral that parks: the account rests at least so long. */
void
oracle_budget_park(struct oracle *oracle, const struct reply *reply)
{
	uint64_t park_ms =
		oracle_book_number(oracle_book_word(oracle, ORACLE_WORD_NONCE + 7));
	struct oracle_budget *budget;
	uint32_t lane = ORACLE_NONE;

	if (park_ms == 0 || !reply_is(reply_at(reply, 0), "OK") ||
	    !span_equals(oracle_book_word(oracle, ORACLE_WORD_NONCE + 4), SPAN("defer")))
		return;
	for (uint32_t i = 0; i < oracle->leases_count; i++) {
		const struct oracle_lease *lease = &oracle->leases[i];

		if (!lease->used &&
		    lease->slot == oracle_book_number(oracle_book_word(
					   oracle, ORACLE_WORD_NONCE + 2)) &&
		    lease->q == oracle_book_number(oracle_book_word(
					oracle, ORACLE_WORD_NONCE + 3)) &&
		    span_equals(span_from(lease->nonce),
		                oracle_book_word(oracle, ORACLE_WORD_NONCE)))
			lane = lease->lane;
	}
	if (lane == ORACLE_NONE)
		return;
	budget = &oracle->budgets[oracle->lanes[lane].budget];
	budget->parked_until_ms =
		MAX(budget->parked_until_ms, oracle_book_now_ms(oracle) + park_ms);
}

void
oracle_budget_served(struct oracle *oracle, uint32_t index)
{
	oracle->budgets[index].broke_rounds = 0;
}

/* Whoever is asked for money asks less and less often. */
void
oracle_budget_broke(struct oracle *oracle, uint32_t index)
{
	struct oracle_budget *budget = &oracle->budgets[index];
	uint64_t now_ms = oracle_book_now_ms(oracle);
	uint64_t gap_ms = now_ms - budget->broke_ms;
	uint32_t rounds = budget->broke_rounds;

	if (rounds > 0 && gap_ms <= ROUND_MS)
		return;
	budget->broke_ms = now_ms;
	budget->broke_rounds++;
	if (rounds == 0 || !oracle_start_is_ruled(oracle) || oracle->weather->unparks > 0)
		return;
	if (gap_ms < MIN((uint64_t)SPEND_MS << MIN(rounds - 1, 10), SPEND_MS_MAX))
		oracle_fail(oracle, "money",
		            "budget %s asks again after %" PRIu64 " ms, in round %u",
		            budget->name, gap_ms, rounds + 1);
}
