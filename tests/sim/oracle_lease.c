#include "tests/sim/oracle_book.h"

#include <inttypes.h>

#define SETTLE_WORDS 6 /* slot q usage reply ttl result */

/* ---- leases end ---------------------------------------------------------------------
 */

/* How many jobs a settle announces; `=` before it says where it goes on. */
static size_t
count_settled(const struct oracle *oracle)
{
	struct span word = oracle_book_word(oracle, ORACLE_WORD_REST);

	if (word.len > 0 && word.data[0] == '=')
		word = (struct span){ word.data + 1, word.len - 1 };
	return oracle_book_number(word);
}

/* Where `slot q` stand in the words of this call; 0 if nowhere. */
size_t
oracle_lease_words(const struct oracle *oracle, const struct oracle_lease *lease)
{
	size_t step = 0;
	size_t from = ORACLE_WORD_REST;
	size_t to = oracle->argc;

	if (oracle_book_runs(oracle, "settle")) {
		from = ORACLE_WORD_REST + 1;
		step = SETTLE_WORDS;
		to = MIN(to, from + step * count_settled(oracle));
	} else if (oracle_book_runs(oracle, "release")) {
		step = 3;
	} else if (oracle_book_runs(oracle, "fail")) {
		step = oracle->argc;
	}
	for (size_t i = from; step > 0 && i + 1 < to; i += step) {
		if (oracle_book_number(oracle->argv[i]) == lease->slot &&
		    oracle_book_number(oracle->argv[i + 1]) == lease->q)
			return i;
	}
	return 0;
}

static void
correct(struct oracle *oracle, const struct oracle_lease *lease, struct span text)
{
	struct protocol_usage usage;
	int64_t input = 0;
	int64_t output = 0;

	if (protocol_parse_usage(text, &usage) < 0)
		return;
	if (usage.uncached != PROTOCOL_UNKNOWN && usage.written != PROTOCOL_UNKNOWN)
		input = (int64_t)lease->input - usage.uncached - usage.written;
	if (usage.output != PROTOCOL_UNKNOWN)
		output = (int64_t)lease->output - usage.output;
	oracle_budget_correct(oracle, lease->budget, input, output);
}

/* Dead before it was sent: no request could be made of it. */
static bool
is_unfit(struct oracle *oracle, struct span kind)
{
	struct protocol_usage usage;
	struct span words = oracle_book_word(oracle, ORACLE_WORD_NONCE + 10);

	if (!span_equals(kind, SPAN("fatal")))
		return false;
	return protocol_parse_usage(words, &usage) < 0 ||
	       usage.sent_ms == PROTOCOL_UNKNOWN;
}

/* Dead because the provider would not take it: it charges nothing for that. */
static bool
is_refused(struct oracle *oracle, struct span kind)
{
	struct protocol_usage usage;
	struct span words = oracle_book_word(oracle, ORACLE_WORD_NONCE + 10);

	if (!span_equals(kind, SPAN("fatal")) || protocol_parse_usage(words, &usage) < 0)
		return false;
	return usage.read == PROTOCOL_UNKNOWN && usage.uncached == PROTOCOL_UNKNOWN &&
	       usage.may_bill != 1;
}

/* What comes back to credits and buckets when a lease ends this way. */
static void
give_back(struct oracle *oracle, const struct oracle_lease *lease)
{
	struct oracle_lane *lane = &oracle->lanes[lease->lane];
	size_t at = oracle_lease_words(oracle, lease);
	struct span kind = oracle_book_runs(oracle, "fail")
	                           ? oracle_book_word(oracle, at + 2)
	                           : (struct span){ 0 };
	bool unsent = span_equals(kind, SPAN("unsent"));
	bool is_leader = lease->role == PROTOCOL_LEAD || lease->role == PROTOCOL_CANARY;
	bool returns = unsent || oracle_book_runs(oracle, "release") ||
	               oracle_book_runs(oracle, "reap") ||
	               oracle_book_runs(oracle, "hello") ||
	               oracle_book_runs(oracle, "bye");
	int64_t input = (int64_t)lease->input;
	int64_t output = (int64_t)lease->output;

	if (is_leader && returns && !lease->begun && lane->credits_g == lease->g)
		lane->credits++;
	if (oracle_book_runs(oracle, "settle"))
		correct(oracle, lease, oracle_book_word(oracle, at + 2));
	else if (unsent || span_equals(kind, SPAN("missing")) || is_unfit(oracle, kind) ||
	         (oracle_book_runs(oracle, "release") &&
	          oracle_book_number(oracle_book_word(oracle, at + 2)) == 0))
		oracle_budget_move(oracle, lease->budget, 1, input, output);
	else if (span_equals(kind, SPAN("defer")) || is_refused(oracle, kind))
		oracle_budget_move(oracle, lease->budget, 0, input, output);
	else if (kind.len > 0)
		correct(oracle, lease, oracle_book_word(oracle, ORACLE_WORD_NONCE + 10));
}

static void
let_go(struct oracle *oracle, uint32_t index)
{
	struct oracle_lease *lease = &oracle->leases[index];

	VERIFY(oracle->lanes[lease->lane].in_use > 0);
	VERIFY(oracle->budgets[lease->budget].in_flight > 0);
	oracle->lanes[lease->lane].in_use--;
	oracle->budgets[lease->budget].in_flight--;
	if (lease->family != ORACLE_NONE) {
		oracle->families[lease->family].leases--;
		oracle->families[lease->family].turns -= lease->role != PROTOCOL_NOW;
		oracle->families[lease->family].touched = true;
	}
	give_back(oracle, lease);
	if (lease->job != ORACLE_NONE) {
		struct oracle_job *job = &oracle->jobs[lease->job];

		if (job->lease == index) {
			job->lease = ORACLE_NONE;
			job->given_back = true;
			oracle->freed_count++;
		}
	}
	lease->used = false;
}

void
oracle_lease_gone(struct oracle *oracle, struct span nonce, struct span slot)
{
	uint32_t index;

	if (span_equals(slot, SPAN("s")))
		return;
	index = oracle_book_lease(oracle, nonce, (uint32_t)oracle_book_number(slot));
	if (index != ORACLE_NONE)
		let_go(oracle, index);
}

void
oracle_lease_table_gone(struct oracle *oracle, struct span nonce)
{
	oracle_session_reaped(oracle, nonce);
	for (uint32_t i = 0; i < oracle->leases_count; i++) {
		if (oracle->leases[i].used &&
		    span_equals(span_from(oracle->leases[i].nonce), nonce))
			let_go(oracle, i);
	}
}

/* ---- leases begin --------------------------------------------------------------------
 */

static void
fill_lease(struct oracle *oracle, struct oracle_lease *lease, struct span nonce,
           uint32_t slot, const struct protocol_lease *parsed)
{
	struct span id;

	memcpy(lease->nonce, nonce.data, MIN(nonce.len, sizeof lease->nonce - 1));
	lease->slot = slot;
	lease->q = parsed->q;
	lease->lane = oracle_book_lane_make(oracle, parsed->lane);
	lease->family = ORACLE_NONE;
	if (parsed->family.len > 0)
		lease->family = oracle_book_family_make(oracle, parsed->family);
	lease->budget = oracle->lanes[lease->lane].budget;
	lease->role = parsed->role;
	lease->band = parsed->band;
	lease->g = parsed->generation;
	lease->input = parsed->input;
	lease->output = parsed->output;
	lease->at_ms = oracle_book_now_ms(oracle);
	lease->call = oracle->calls;
	lease->unheld = oracle->hold_off ||
	                (lease->family != ORACLE_NONE &&
	                 oracle->families[lease->family].flags & PROTOCOL_UNHELD);
	lease->begun = parsed->begun;
	lease->job = ORACLE_NONE;
	if (!oracle_book_element(parsed->element, &id))
		return;
	lease->job = oracle_book_job(oracle, id);
	if (lease->job == ORACLE_NONE) /* a pack's: heard of here first */
		lease->job = oracle_book_job_make(oracle, id);
}

/* One holder, of a job that lives. */
static void
take_job(struct oracle *oracle, uint32_t index)
{
	struct oracle_lease *lease = &oracle->leases[index];
	struct oracle_job *job;

	if (lease->job == ORACLE_NONE)
		return;
	job = &oracle->jobs[lease->job];
	if (job->lease != ORACLE_NONE)
		oracle_fail(oracle, "double", "%s is leased twice", job->id);
	if (job->state == ORACLE_JOB_ENDED)
		oracle_fail(oracle, "ended", "%s has ended and is leased again", job->id);
	if (job->given_back) {
		job->given_back = false;
		oracle->freed_count--;
	}
	job->lease = index;
}

static void
count_in(struct oracle *oracle, const struct oracle_lease *lease)
{
	oracle->lanes[lease->lane].in_use++;
	oracle->budgets[lease->budget].in_flight++;
	if (lease->family != ORACLE_NONE) {
		oracle->families[lease->family].leases++;
		oracle->families[lease->family].turns += lease->role != PROTOCOL_NOW;
		oracle->families[lease->family].touched = true;
	}
}

static bool
is_settled(const struct oracle *oracle, uint32_t job)
{
	for (uint32_t i = 0; i < oracle->settled_count; i++) {
		if (oracle->settled[i] == job)
			return true;
	}
	return false;
}

/* All that a `begin` changes of a lease. */
static void
mark_begun(struct oracle *oracle, uint32_t index, const struct protocol_lease *parsed)
{
	struct oracle_lease *lease = &oracle->leases[index];

	if (index == ORACLE_NONE || !parsed->begun || parsed->q != lease->q ||
	    parsed->role != lease->role || parsed->generation != lease->g)
		oracle_fail(oracle, "slot", "a begin writes another lease");
	else
		lease->begun = true;
}

/* A session never uses a token twice: each call goes on from the last one's. */
static void
judge_token(struct oracle *oracle, const struct oracle_lease *lease)
{
	uint32_t index = oracle_book_session(oracle, span_from(lease->nonce));
	struct oracle_session *session;

	if (index == ORACLE_NONE)
		return;
	session = &oracle->sessions[index];
	if (session->quiet && !oracle->rolled_back)
		oracle_fail(oracle, "quiet", "session %s was told to claim nothing",
		            session->nonce);
	if (session->q_call != oracle->calls) {
		session->q_last = session->q_most;
		session->q_call = oracle->calls;
	}
	if (lease->q <= session->q_last)
		oracle_fail(oracle, "token", "slot %u of %s gets token %" PRIu64 " again",
		            lease->slot, lease->nonce, lease->q);
	session->q_most = MAX(session->q_most, lease->q);
}

void
oracle_lease_set(struct oracle *oracle, struct span nonce, struct span slot,
                 struct span text)
{
	struct protocol_lease parsed;
	uint32_t index;

	if (span_equals(slot, SPAN("s")))
		return;
	if (protocol_record_parse_lease(text, &parsed) < 0) {
		oracle_fail(oracle, "record", "lease %.*s", (int)text.len, text.data);
		return;
	}
	index = oracle_book_lease(oracle, nonce, (uint32_t)oracle_book_number(slot));
	if (oracle_book_runs(oracle, "begin")) {
		mark_begun(oracle, index, &parsed);
		return;
	}
	if (index != ORACLE_NONE) {
		uint32_t job = oracle->leases[index].job;

		if (job == ORACLE_NONE ? !oracle_book_runs(oracle, "settle")
		                       : !is_settled(oracle, job))
			oracle_fail(oracle, "slot", "a claim writes over slot %u of %.*s",
			            (uint32_t)oracle_book_number(slot), (int)nonce.len,
			            nonce.data);
		let_go(oracle, index);
	}
	index = oracle_book_lease_make(oracle);
	fill_lease(oracle, &oracle->leases[index], nonce,
	           (uint32_t)oracle_book_number(slot), &parsed);
	take_job(oracle, index);
	count_in(oracle, &oracle->leases[index]);
	judge_token(oracle, &oracle->leases[index]);
	oracle->starts++;
	if (oracle->started_count < ARRAY_SIZE(oracle->started))
		oracle->started[oracle->started_count++] = index;
}

/* A lease found after a lost tail: no start, so nothing to judge.  When it started is not
 * known: its answer may come as late as Redis was away. */
void
oracle_lease_restore(struct oracle *oracle, struct span nonce, uint32_t slot,
                     struct span text)
{
	struct protocol_lease parsed;
	uint32_t index;

	if (protocol_record_parse_lease(text, &parsed) < 0) {
		oracle_fail(oracle, "record", "lease %.*s", (int)text.len, text.data);
		return;
	}
	index = oracle_book_lease_make(oracle);
	fill_lease(oracle, &oracle->leases[index], nonce, slot, &parsed);
	oracle->leases[index].at_ms = 0;
	if (oracle->leases[index].job != ORACLE_NONE)
		oracle->jobs[oracle->leases[index].job].lease = index;
	count_in(oracle, &oracle->leases[index]);
}
