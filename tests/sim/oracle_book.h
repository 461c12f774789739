/* oracle_book.h - how the oracle's files find and fill its books; theirs alone.
 *
 *   oracle.c          what is heard from Redis, word by word
 *   oracle_job.c      jobs and results: I6, nothing lost, nothing left
 *   oracle_record.c   records of lanes and families, as Redis holds them
 *   oracle_lease.c    leases begin and end: one holder, tokens, windows (I3)
 *   oracle_start.c    what a start must not do: I2 I4 I5 I7, credits
 *   oracle_budget.c   pace, parking, buckets: I10
 *   oracle_session.c  connections, ticks, audits
 *   oracle_cache.c    requests at the provider: I1 I2, expired entries
 *   oracle_restore.c  all books again, after Redis lost its tail */
#ifndef TESTS_SIM_ORACLE_BOOK_H
#define TESTS_SIM_ORACLE_BOOK_H

#include "tests/sim/oracle.h"

/* Words of a call: FCALL name 1 key protocol, then the function's own. */
enum {
	ORACLE_WORD_FIRST = 5,
	ORACLE_WORD_NONCE = ORACLE_WORD_FIRST,
	ORACLE_WORD_C,
	ORACLE_WORD_REST,
};

static inline uint64_t
oracle_book_now_ms(const struct oracle *oracle)
{
	return server_now_ms(oracle->server);
}

/* Whether this function is the call that runs. */
static inline bool
oracle_book_runs(const struct oracle *oracle, const char *function)
{
	return strcmp(oracle->function, function) == 0;
}

/* The i-th word of the call that runs, or nothing. */
static inline struct span
oracle_book_word(const struct oracle *oracle, size_t i)
{
	return i < oracle->argc ? oracle->argv[i] : (struct span){ 0 };
}

/* The number a text begins with. */
uint64_t oracle_book_number(struct span text);

void oracle_book_init(struct oracle *oracle);
void oracle_book_fini(struct oracle *oracle);

/* Index of a thing by its name; ORACLE_NONE if it is not in the books. */
uint32_t oracle_book_job(const struct oracle *oracle, struct span id);
uint32_t oracle_book_session(const struct oracle *oracle, struct span nonce);
uint32_t oracle_book_lease(const struct oracle *oracle, struct span nonce, uint32_t slot);

/* The same, and makes it.  The arrays may move. */
uint32_t oracle_book_job_make(struct oracle *oracle, struct span id);
uint32_t oracle_book_lane_make(struct oracle *oracle, struct span id);
uint32_t oracle_book_family_make(struct oracle *oracle, struct span id);
uint32_t oracle_book_session_make(struct oracle *oracle, struct span nonce);
uint32_t oracle_book_budget_make(struct oracle *oracle, struct span name);
uint32_t oracle_book_pool_make(struct oracle *oracle, struct span name);
uint32_t oracle_book_lease_make(struct oracle *oracle);
uint32_t oracle_book_node_make(struct oracle *oracle, uint64_t scope, struct id128 hash);

/* The id in an element or a ticket's name; false: a ticket. */
bool oracle_book_element(struct span element, struct span *ret_id);

/* The entry that this call has put into the inbox: one job, or a pack of them. */
void oracle_job_enqueued(struct oracle *oracle, struct span entry);
void oracle_job_result(struct oracle *oracle, struct span id);
void oracle_job_dead(struct oracle *oracle, struct span id);
void oracle_job_after(struct oracle *oracle);

/* An empty record: it was deleted. */
void oracle_record_lane(struct oracle *oracle, struct span id, struct span record);
void oracle_record_family(struct oracle *oracle, struct span id, struct span record);

void oracle_lease_set(struct oracle *oracle, struct span nonce, struct span slot,
                      struct span text);
void oracle_lease_gone(struct oracle *oracle, struct span nonce, struct span slot);
void oracle_lease_table_gone(struct oracle *oracle, struct span nonce);
void oracle_lease_restore(struct oracle *oracle, struct span nonce, uint32_t slot,
                          struct span text);

/* Where `slot q` of this lease stand in the words of the call; 0 if nowhere. */
size_t oracle_lease_words(const struct oracle *oracle, const struct oracle_lease *lease);

void oracle_start_judge(struct oracle *oracle);
/* True iff nothing hinders the scheduler: then it is in time with what it promises. */
bool oracle_start_is_ruled(const struct oracle *oracle);

void oracle_budget_field(struct oracle *oracle, struct span name, struct span field,
                         struct span value);
void oracle_budget_move(struct oracle *oracle, uint32_t budget, int64_t requests,
                        int64_t input, int64_t output);
void oracle_budget_correct(struct oracle *oracle, uint32_t budget, int64_t input,
                           int64_t output);
/* One start, in its order: it must fit, and takes its estimate. */
void oracle_budget_judge(struct oracle *oracle, const struct oracle_lease *lease);
void oracle_budget_park(struct oracle *oracle, const struct reply *reply);
/* The provider wants money of this account, or has answered it. */
void oracle_budget_broke(struct oracle *oracle, uint32_t budget);
void oracle_budget_served(struct oracle *oracle, uint32_t budget);

void oracle_session_before(struct oracle *oracle);
/* A session goes to its end: on its way out, or forgotten. */
void oracle_session_reaped(struct oracle *oracle, struct span nonce);
void oracle_session_after(struct oracle *oracle, const struct reply *reply);

/* What a session has told of upstreams that it does not reach; the same from what Redis
 * has stored. */
void oracle_shun_note(struct oracle *oracle, struct span nonce, struct span shunned);
void oracle_shun_restore(struct oracle *oracle, struct span nonce, struct span head);
/* May the call that starts this lease start nothing of this budget? */
bool oracle_shun_leaves_out(const struct oracle *oracle, const struct oracle_lease *lease,
                            uint32_t budget);
void oracle_shun_judge(struct oracle *oracle, const struct oracle_lease *lease);

void oracle_restore_all(struct oracle *oracle);

void oracle_cache_attach(struct oracle *oracle);

#endif
