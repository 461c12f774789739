/* protocol_call.h - calls of the functions in docs/PROTOCOL.md, word by word.
 *
 *   protocol_call_settle(list, tag, ns, session, 2, false);
 *   protocol_call_settle_job(list, &job);              as many as announced
 *   protocol_call_settle_job(list, &job);
 *   protocol_call_claim_into(list, q, slots, 2);       and claim into these slots
 *
 * Each first line opens a call; the lines behind it add to the last one opened.  Room is
 * the caller's to check (call_fits): at most PROTOCOL_CALL_ARGS words and
 * PROTOCOL_CALL_BYTES bytes besides the spans handed over and what is added per item. */
#ifndef COMMON_CODEC_PROTOCOL_CALL_H
#define COMMON_CODEC_PROTOCOL_CALL_H

#include "common/call.h"
#include "common/codec/protocol.h"

#define PROTOCOL_CALL_ARGS  24
#define PROTOCOL_CALL_BYTES 512
#define PROTOCOL_GRANT_ARGS 18 /* per lane of a grant; per budget 6 */
#define PROTOCOL_KEY_MAX    (PROTOCOL_BUDGET_SIZE + 16) /* behind the namespace */
#define PROTOCOL_KEEP       (-1) /* "-": leave this value as it is */

/* A worker's session: nonce and connection number. */
struct protocol_session {
	uint64_t nonce;
	uint64_t connection;
};

struct protocol_hello {
	uint64_t nonce;
	struct span label, pool;
	uint32_t slots;
	struct span budgets; /* comma list, or "*" */
	uint64_t lease_ms;
	uint64_t replaces; /* nonce of the predecessor, 0: none */
	uint64_t job_ms;   /* longest time-out of its jobs, for their hard end; 0: default
	                    */
	bool is_quiet;     /* it was told to claim nothing */
};

struct protocol_delivery { /* where a result goes; `reply` may be empty */
	struct span reply;
	uint64_t ttl_ms;
	struct span result;
};

struct protocol_settlement {
	uint32_t slot;
	uint64_t q;
	struct protocol_usage usage;
	struct protocol_delivery delivery;
};

/* What a late result has cost, and under which lease that is gone. */
struct protocol_late {
	bool known;    /* false: nothing of this is */
	bool doubtful; /* its settle may have been run: only what is accepted is booked */
	struct protocol_lane_id lane;
	struct id128 family;
	enum protocol_role role;
	uint64_t nonce, q; /* of the attempt: it is booked once */
	struct protocol_usage usage;
};

struct protocol_failure {
	uint32_t slot;
	uint64_t q;
	const char *kind; /* retry defer fatal missing unsent */
	uint32_t attempts_max;
	uint64_t delay_ms, park_ms;
	struct span reason, text;
	struct protocol_usage usage;
	struct protocol_delivery delivery;
};

/* One lane of a grant.  Numbers may be PROTOCOL_KEEP. */
struct protocol_grant {
	struct span lane, family, px, pool, budget;
	uint64_t generation, generation_new;
	int64_t gate, reason, credits, credit_role, window, rank;
	int64_t until_ms, tokens, life_ms, ticket, ticket_deadline_ms, marks;
};

struct protocol_grant_budget {
	struct span budget;
	int64_t pace, parked_until_ms;
	int64_t limit_requests, limit_input, limit_output; /* per minute */
	uint64_t learned; /* bits 1, 2, 4: that limit was told by answers, not configured
	                   */
};

/* Opens FCALL warmq_<function> 1 <ns>:meta 1 …; the rest is the caller's. */
void protocol_call_open(struct call_list *list, uint64_t tag, struct span ns,
                        const char *function);

/* <ns>:<name> as one word, for the few plain commands. */
void protocol_call_key(struct call_list *list, struct span ns, const char *name);

/* Worker. */
void protocol_call_hello(struct call_list *list, uint64_t tag, struct span ns,
                         const struct protocol_hello *hello);
void protocol_call_attach(struct call_list *list, uint64_t tag, struct span ns,
                          uint64_t nonce, uint64_t lease_ms);
/* What it shuns is added as a word. */
void protocol_call_beat(struct call_list *list, uint64_t tag, struct span ns,
                        struct protocol_session session, uint32_t busy,
                        uint64_t lease_ms);
void protocol_call_claim(struct call_list *list, uint64_t tag, struct span ns,
                         struct protocol_session session, uint64_t q,
                         const uint32_t *slots, uint32_t count);
/* Of one upstream, into one slot. */
void protocol_call_claim_of(struct call_list *list, uint64_t tag, struct span ns,
                            struct protocol_session session, uint64_t q,
                            struct span upstream, uint32_t slot);
/* `goes_on`: the claim is into the slots of the jobs, in their order, and names none: an
 * argument less per job for Redis to read. */
void protocol_call_settle(struct call_list *list, uint64_t tag, struct span ns,
                          struct protocol_session session, uint32_t count, bool goes_on);
void protocol_call_settle_job(struct call_list *list,
                              const struct protocol_settlement *job);
void protocol_call_claim_into(struct call_list *list, uint64_t q, const uint32_t *slots,
                              uint32_t count);
void protocol_call_begin(struct call_list *list, uint64_t tag, struct span ns,
                         struct protocol_session session);
void protocol_call_begin_slot(struct call_list *list, uint32_t slot, uint64_t q,
                              const struct protocol_usage *usage);
void protocol_call_fail(struct call_list *list, uint64_t tag, struct span ns,
                        struct protocol_session session,
                        const struct protocol_failure *failure);
void protocol_call_release(struct call_list *list, uint64_t tag, struct span ns,
                           struct protocol_session session);
void protocol_call_release_slot(struct call_list *list, uint32_t slot, uint64_t q,
                                bool sent, const struct protocol_usage *usage);
void protocol_call_bye(struct call_list *list, uint64_t tag, struct span ns,
                       struct protocol_session session);
/* `of`: nonce of a dead session, whose leases are nobody's; 0: of none. */
void protocol_call_settle_late(struct call_list *list, uint64_t tag, struct span ns,
                               uint64_t of);
void protocol_call_settle_late_job(struct call_list *list, struct span id,
                                   const struct protocol_delivery *delivery,
                                   const struct protocol_late *late);

/* Scheduler; `owner` is what `rule` answered. */
void protocol_call_rule(struct call_list *list, uint64_t tag, struct span ns,
                        uint64_t nonce, uint64_t lease_ms);
void protocol_call_admit(struct call_list *list, uint64_t tag, struct span ns,
                         struct span owner, struct span from, uint64_t from_n,
                         struct span to, uint64_t to_n);
void protocol_call_group(struct call_list *list, char letter, uint32_t count);
void protocol_call_grant(struct call_list *list, uint64_t tag, struct span ns,
                         struct span owner, struct span events_cursor, uint32_t lanes);
void protocol_call_grant_lane(struct call_list *list, const struct protocol_grant *grant);
void protocol_call_grant_budgets(struct call_list *list, uint32_t count);
void protocol_call_ledger(struct call_list *list, uint64_t tag, struct span ns,
                          struct span owner, struct span cursor, uint64_t ttl_ms,
                          uint32_t rows);
void protocol_call_ledger_row(struct call_list *list, uint64_t hour, struct span field,
                              struct span value);
void protocol_call_ledger_recent(struct call_list *list, struct span field,
                                 struct span value);
void protocol_call_grant_budget(struct call_list *list,
                                const struct protocol_grant_budget *budget);
void protocol_call_reap(struct call_list *list, uint64_t tag, struct span ns,
                        struct span owner, uint64_t lease_ms, uint64_t beat_ms,
                        uint32_t chunk);
void protocol_call_promote(struct call_list *list, uint64_t tag, struct span ns,
                           struct span owner, uint32_t max);
void protocol_call_expire(struct call_list *list, uint64_t tag, struct span ns,
                          struct span owner, uint32_t max);
void protocol_call_audit(struct call_list *list, uint64_t tag, struct span ns,
                         struct span owner, const char *cursor);
/* `home`: a pool, or a pool, a blank and a budget.  Its families are added as words. */
void protocol_call_move(struct call_list *list, uint64_t tag, struct span ns,
                        struct span owner, struct span home);

/* Everybody.  Families of a glance are added as words. */
void protocol_call_glance(struct call_list *list, uint64_t tag, struct span ns);
void protocol_call_cancel(struct call_list *list, uint64_t tag, struct span ns,
                          struct span id);
void protocol_call_count(struct call_list *list, uint64_t tag, struct span ns);
void protocol_call_version(struct call_list *list, uint64_t tag, struct span ns);

#endif
