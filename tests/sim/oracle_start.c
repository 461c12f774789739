#include "tests/sim/oracle_book.h"

#include <inttypes.h>
#include <stdio.h>

#define RANK_LAST   99999999 /* no turn */
#define RANK_CLASS  10000000 /* ranks of one priority */
#define ONE_PLAN_US 1000000  /* grants of one plan come within */
#define MAX_WAIT_MS 300000   /* of a pool that says nothing */
#define SERVICE_MS  10000    /* until the scheduler has looked, and a job has ended */
#define LINGER_US   6000000  /* a drained family keeps its place for a while */
#define HEARD_US    2000000  /* until a scheduler that nothing hinders has heard */

static bool
gate_lets_pass(const struct oracle_lane *lane)
{
	enum protocol_gate gate = lane->before.gate;

	return gate == PROTOCOL_OPEN || gate == PROTOCOL_BYPASS || gate == PROTOCOL_LEAKY;
}

/* I7: `until` may have been raised by this very call, never the gate opened. */
static bool
is_past_until(const struct oracle *oracle, const struct oracle_lane *lane)
{
	return oracle_book_now_ms(oracle) >=
	       MAX(lane->before.until_ms, lane->now.until_ms);
}

static void
judge_gate(struct oracle *oracle, const struct oracle_lease *lease, uint32_t index)
{
	const struct oracle_lane *lane = &oracle->lanes[index];

	if (!lane->exists)
		return;
	if (!gate_lets_pass(lane))
		oracle_fail(oracle, "I2", "a plain start on %s, whose gate %s is %s",
		            oracle->lanes[lease->lane].id, lane->id,
		            protocol_gate_text(lane->before.gate));
	else if (is_past_until(oracle, lane))
		oracle_fail(oracle, "I7",
		            "a start on %s, %" PRIu64 " ms past the until of %s",
		            oracle->lanes[lease->lane].id,
		            oracle_book_now_ms(oracle) - lane->before.until_ms, lane->id);
}

static void
judge_plain(struct oracle *oracle, const struct oracle_lease *lease)
{
	const struct oracle_family *family;

	judge_gate(oracle, lease, lease->lane);
	if (lease->family == ORACLE_NONE)
		return;
	family = &oracle->families[lease->family];
	for (uint32_t i = 0; i < family->ancestors_count; i++)
		judge_gate(oracle, lease, family->ancestors[i]);
}

static void
take_credit(struct oracle *oracle, const struct oracle_lease *lease)
{
	struct oracle_lane *lane = &oracle->lanes[lease->lane];

	if (lane->credits_g != lease->g)
		oracle_fail(oracle, "credit",
		            "lane %s starts under generation %" PRIu64
		            ", it is at %" PRIu64,
		            lane->id, lease->g, lane->credits_g);
	else if (--lane->credits < 0)
		oracle_fail(oracle, "credit", "lane %s starts without a credit",
		            lane->id);
}

/* ---- I4: drain before switch
 * ------------------------------------------------------------ */

static bool
list_exists(const struct oracle *oracle, const char *kind, char band, const char *family)
{
	char key[ORACLE_NAME_SIZE + 32];

	(void)snprintf(key, sizeof key, "warmq:%s:%c:%s", kind, band, family);
	return redis_model_find(oracle->server->model, span_from(key)) != NULL;
}

/* 1 high, 2 normal, 3 low; 9: nothing is ready. */
static int
best_ready(const struct oracle *oracle, const struct oracle_family *family)
{
	static const char BANDS[] = "hnl";

	for (int i = 0; i < 3; i++) {
		if (list_exists(oracle, "ready", BANDS[i], family->id))
			return i + 1;
	}
	return 9;
}

static bool
has_limits(const struct oracle_budget *budget)
{
	return budget->buckets[0].limit > 0 || budget->buckets[1].limit > 0 ||
	       budget->buckets[2].limit > 0;
}

/* Whether this family could have started one more job at the end of this call. */
static bool
has_room(const struct oracle *oracle, const struct oracle_family *family)
{
	const struct oracle_lane *lane = &oracle->lanes[family->lane];
	const struct oracle_budget *budget = &oracle->budgets[family->budget];

	if ((family->flags & PROTOCOL_PAUSED) != 0 || !gate_lets_pass(lane) ||
	    lane->now.gate != lane->before.gate || is_past_until(oracle, lane) ||
	    lane->in_use >= lane->now.window)
		return false;
	for (uint32_t i = 0; i < family->ancestors_count; i++) {
		const struct oracle_lane *above = &oracle->lanes[family->ancestors[i]];

		if (!gate_lets_pass(above) || is_past_until(oracle, above))
			return false;
	}
	return !has_limits(budget) &&
	       oracle_book_now_ms(oracle) >=
	               MAX(budget->parked_until_ms, budget->told_until_ms) &&
	       (budget->pace_before == 0 || budget->in_flight < budget->pace_before);
}

static int
band_of(const struct oracle_lease *lease)
{
	return lease->band == 'h' ? 1 : lease->band == 'n' ? 2 : 3;
}

/* Both may have been activated, one of them not started yet: ranks tell in which order.
 * They are the scheduler's, and judged when they are given.  Who has none had no turn. */
static bool
comes_before(const struct oracle *oracle, const struct oracle_family *a,
             const struct oracle_family *b)
{
	uint64_t rank = oracle->lanes[b->lane].before.rank;

	return rank >= RANK_LAST || oracle->lanes[a->lane].before.rank < rank;
}

static void
judge_switch(struct oracle *oracle, const struct oracle_lease *lease)
{
	const struct oracle_family *family = &oracle->families[lease->family];

	if (!family->is_new)
		return;
	for (uint32_t i = 0; i < oracle->families_count; i++) {
		const struct oracle_family *other = &oracle->families[i];

		if (other == family || other->turns_was == 0 ||
		    other->pool != family->pool)
			continue;
		if (best_ready(oracle, other) > band_of(lease) ||
		    !has_room(oracle, other) || comes_before(oracle, family, other) ||
		    oracle_shun_leaves_out(oracle, lease, other->budget))
			continue;
		oracle_fail(oracle, "I4", "family %s begins while %s has work and room",
		            family->id, other->id);
	}
}

/* I3: by the window as it stood before this call.  Within it, what is settled makes
 * room before anything starts, in whatever order it is written. */
static void
judge_window(struct oracle *oracle, const struct oracle_lease *lease)
{
	const struct oracle_lane *lane = &oracle->lanes[lease->lane];

	if (lane->in_use > lane->before.window)
		oracle_fail(oracle, "I3", "lane %s starts: %u in use, window %u",
		            lane->id, lane->in_use, lane->before.window);
}

/* I4: who is activated while another has work in hand comes behind it.  Ranks that are
 * given anew together, by a scheduler that has just begun to rule, are no order; nor are
 * those of one plan, of which one had to wait for an earlier grant of its lane. */
static void
judge_rank(struct oracle *oracle, struct oracle_lane *lane)
{
	uint64_t rank = lane->now.rank;
	const struct oracle_family *family;

	if (lane->family == ORACLE_NONE || rank == lane->before.rank)
		return;
	lane->ranked_us = oracle->agenda->now_us;
	if (rank >= RANK_LAST)
		return;
	family = &oracle->families[lane->family];
	for (uint32_t i = 0; i < oracle->families_count; i++) {
		const struct oracle_family *other = &oracle->families[i];
		const struct oracle_lane *ahead = &oracle->lanes[other->lane];

		if (!family->is_new || other == family || other->pool != family->pool ||
		    other->turns == 0 || other->bits == 0 || !gate_lets_pass(ahead) ||
		    ahead->now.rank != ahead->before.rank ||
		    lane->ranked_us - ahead->ranked_us < ONE_PLAN_US ||
		    ahead->now.rank >= RANK_LAST ||
		    ahead->now.rank / RANK_CLASS != rank / RANK_CLASS)
			continue;
		if (rank < ahead->now.rank)
			oracle_fail(oracle, "I4",
			            "family %s is activated before %s, which is at work",
			            family->id, other->id);
	}
}

/* ---- I5: nobody waits too long ----------------------------------------------------- */

static uint64_t
max_wait_ms(const struct oracle *oracle)
{
	uint64_t ms = oracle->weather->max_wait_ms;

	return ms > 0 ? ms : MAX_WAIT_MS;
}

/* It is the scheduler who sees to it: where it is hindered, nothing is promised. */
bool
oracle_start_is_ruled(const struct oracle *oracle)
{
	const struct weather *weather = oracle->weather;

	return weather->scheduler_crashes == 0 && weather->scheduler_freezes == 0 &&
	       weather->redis_restarts == 0 && weather->clock_steps == 0 &&
	       weather->clogs == 0 && weather->partitions == 0 &&
	       weather->hold_flips == 0 && weather->outage_us == 0 &&
	       weather->wire.cut_permille == 0 && weather->deaf_permille == 0 &&
	       weather->cut_off_us == 0;
}

/* Since when a family could have started a job and has started none. */
static void
follow_waits(struct oracle *oracle)
{
	uint64_t now_ms = oracle_book_now_ms(oracle);

	for (uint32_t i = 0; i < oracle->families_count; i++) {
		struct oracle_family *family = &oracle->families[i];

		if (family->leases > 0 || best_ready(oracle, family) == 9 ||
		    !has_room(oracle, family))
			family->waits_since_ms = 0;
		else if (family->waits_since_ms == 0)
			family->waits_since_ms = now_ms;
	}
}

/* By its rank: several that wait too long go in the order in which that was seen. */
static bool
is_overdue(const struct oracle *oracle, const struct oracle_family *family)
{
	return oracle->lanes[family->lane].before.rank < RANK_CLASS;
}

/* A lane is found by its best list.  What stands there may have to wait, as a suspect
 * does, and the others start. */
static int
band_found(const struct oracle *oracle, const struct oracle_lease *lease)
{
	const struct oracle_family *family = &oracle->families[lease->family];

	if (list_exists(oracle, "back", 'h', family->id))
		return 1;
	return MIN(band_of(lease), best_ready(oracle, family));
}

/* A claim starts one that is served already, before one that has waited too long.  Who
 * was overdue itself has its turn for as long again; and what settles may go on within
 * the half of the pool that is left to it. */
static void
judge_wait(struct oracle *oracle, const struct oracle_lease *lease)
{
	struct oracle_family *served = &oracle->families[lease->family];
	uint64_t now_ms = oracle_book_now_ms(oracle);
	uint64_t most_ms = max_wait_ms(oracle);

	if (served->waits_since_ms > 0 && now_ms - served->waits_since_ms > most_ms)
		served->turn_until_ms = now_ms + most_ms + SERVICE_MS;
	if (served->waits_since_ms > 0 || now_ms < served->turn_until_ms ||
	    !oracle_book_runs(oracle, "claim"))
		return;
	for (uint32_t i = 0; i < oracle->families_count; i++) {
		const struct oracle_family *other = &oracle->families[i];

		if (other == served || other->pool != served->pool ||
		    other->waits_since_ms == 0 || other->leases > 0 ||
		    now_ms - other->waits_since_ms <= most_ms + SERVICE_MS ||
		    best_ready(oracle, other) > band_found(oracle, lease) ||
		    !has_room(oracle, other) ||
		    (is_overdue(oracle, served) && comes_before(oracle, served, other)) ||
		    oracle_shun_leaves_out(oracle, lease, other->budget))
			continue;
		oracle_fail(oracle, "I5",
		            "family %s starts, %s has waited for %" PRIu64 " ms",
		            served->id, other->id, now_ms - other->waits_since_ms);
	}
}

/* A family is new when its work came so long after it had been drained that nothing is
 * left of its turn. */
static void
follow_turns(struct oracle *oracle)
{
	uint64_t now_us = oracle->agenda->now_us;

	for (uint32_t i = 0; i < oracle->families_count; i++) {
		struct oracle_family *family = &oracle->families[i];

		if (!family->touched)
			continue;
		family->touched = false;
		if (family->leases > 0)
			family->is_new = false;
		if (family->leases > 0 || family->bits != 0) {
			if (family->drained_us > 0 &&
			    now_us - family->drained_us > LINGER_US)
				family->is_new = family->leases == 0;
			family->drained_us = 0;
		} else if (family->drained_us == 0) {
			family->drained_us = now_us;
		}
	}
}

/* ---- paused families --------------------------------------------------------------- */

static void
judge_pause(struct oracle *oracle, const struct oracle_lease *lease)
{
	if (lease->family != ORACLE_NONE && oracle->families[lease->family].paused_us > 0)
		oracle_fail(oracle, "pause", "a start of family %s, which is paused",
		            oracle->families[lease->family].id);
}

/* The scheduler has heard of the pause, and lets the family write nonetheless. */
static void
judge_paused_grant(struct oracle *oracle, const struct oracle_lane *lane)
{
	const struct oracle_family *family;
	bool is_let = lane->now.credits > 0 || lane->now.ticket == PROTOCOL_TICKET_WANTED;

	if (lane->family == ORACLE_NONE || !is_let ||
	    lane->now.generation == lane->before.generation)
		return;
	family = &oracle->families[lane->family];
	if (family->paused_us > 0 && oracle_start_is_ruled(oracle) &&
	    oracle->agenda->now_us - family->paused_us > HEARD_US)
		oracle_fail(oracle, "pause", "family %s is paused and may write",
		            family->id);
}

void
oracle_start_judge(struct oracle *oracle)
{
	for (uint32_t i = 0; i < oracle->started_count; i++) {
		const struct oracle_lease *lease = &oracle->leases[oracle->started[i]];

		if (!lease->used)
			continue;
		judge_window(oracle, lease);
		judge_pause(oracle, lease);
		oracle_shun_judge(oracle, lease);
		oracle_budget_judge(oracle, lease);
		if (lease->role == PROTOCOL_LEAD || lease->role == PROTOCOL_CANARY)
			take_credit(oracle, lease);
		if (lease->role == PROTOCOL_PLAIN && !lease->unheld)
			judge_plain(oracle, lease);
		if ((lease->role == PROTOCOL_PLAIN || lease->role == PROTOCOL_LEAD) &&
		    !lease->unheld && lease->family != ORACLE_NONE)
			judge_switch(oracle, lease);
		if (lease->role == PROTOCOL_PLAIN && !lease->unheld &&
		    lease->family != ORACLE_NONE && oracle_start_is_ruled(oracle))
			judge_wait(oracle, lease);
	}
	for (uint32_t i = 0; i < oracle->lanes_count; i++) {
		if (!oracle->lanes[i].changed || !oracle_book_runs(oracle, "grant"))
			continue;
		judge_rank(oracle, &oracle->lanes[i]);
		judge_paused_grant(oracle, &oracle->lanes[i]);
	}
	follow_turns(oracle);
	if (oracle_book_runs(oracle, "claim") || oracle_book_runs(oracle, "settle"))
		follow_waits(oracle);
}
