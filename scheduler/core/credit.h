/* credit.h - the right to start before a lane is open, given to one family at a time.
 *
 *   elect ──► granted ──► started ──► concluded       by its first event, or its failure
 *     ▲          │           │
 *     │          └─ revoked ─┴── nobody is running ──► concluded as failed
 *     └──────────────────────────────────────────────────┘
 *
 * A credit counts on every lane of the chain that is not open: so one request is the
 * leader of its own leaf and, at the same time, the writer or reader of an ancestor.
 * A closed lane admits one and is then being written; a lane in checking admits as many
 * as its stage.  I1 therefore holds per node, whoever starts.
 *
 * Nothing is concluded on silence: a credit that seems lost is first revoked (a new
 * generation without credits), then looked after until nobody is running. */
#ifndef SCHEDULER_CORE_CREDIT_H
#define SCHEDULER_CORE_CREDIT_H

#include "common/base.h"
#include "scheduler/core/event.h"
#include "scheduler/core/lane.h"

#define CREDIT_MAX 4 /* the last stage of checking */

struct core;
struct family;

struct credit {
	uint32_t out;     /* granted and not concluded; 0 = none */
	uint32_t started; /* of them, seen to start */
	uint32_t lanes;   /* places of the chain on which they count */
	uint32_t others;  /* leases of the family that are none of them, at most */
	enum lane_role role;
	uint64_t g;         /* generation of the grant */
	bool asked;         /* by somebody, ahead of jobs */
	bool pending;       /* not known to be granted yet */
	bool revoke;        /* to be taken back */
	bool revoke_flight; /* the grant under way takes it back */
	bool revoked;       /* was taken back; whoever runs has started before */
	uint64_t elected_ms, started_ms, revoked_ms;
	uint64_t look_ms; /* when to look after it; 0 = no need */
	uint64_t ticket_deadline_ms;
	uint64_t begun_ms[CREDIT_MAX]; /* send times of those already concluded */
	uint32_t begun_count;
	uint32_t found_unclaimed, found_started; /* while recovering */
};

/* How long to wait for the first event of a leader of this family. */
uint64_t credit_patience(const struct core *core, const struct family *family);

/* Lanes whose gates are shut, as places of the chain.  The family's own lane counts even
 * if it does not mark it, since Redis looks at it. */
uint32_t credit_shut_places(const struct core *core, const struct family *family);

/* True iff nothing but the gate stops the family: holding, workers, the account. */
bool credit_can_run(const struct core *core, const struct family *family);

/* Counts so many of its credits on their lanes; closed ones are being written then. */
void credit_count_on(struct core *core, struct family *family, uint32_t count);

/* Elects the family as a writer or reader if all its lanes admit one. */
bool credit_elect(struct core *core, uint32_t family);

/* How many starts all of the shut lanes `places` admit; 0 also if there are none. */
uint32_t credit_admitted(const struct core *core, const struct family *family,
                         uint32_t places, enum lane_role *ret_role);

/* A warm-up for a family without jobs, all of whose lanes admit one. */
void credit_warm(struct core *core, uint32_t family);

/* A start of a role that is not plain was seen. */
void credit_take_start(struct core *core, uint32_t family,
                       const struct event_start *start);

/* True iff this usage concludes a credit; it is then concluded.  `done`: the request is
 * over, `sent_ms` tells it from those that had begun before. */
bool credit_take_usage(struct core *core, uint32_t family, uint64_t g,
                       enum lane_role role, uint64_t sent_ms, bool done);

/* The credit is concluded and the family still shut: a new g, so that its lease, should
 * it come back later, does not bring the credit back. */
void credit_seal(struct core *core, uint32_t family);

/* Its family may not start: who has not started gives it back, so that a family which
 * may can have it. */
void credit_recall(struct core *core, uint32_t family);

/* A lease came back.  True iff that was a failure of a leader or reader. */
void credit_take_back(struct core *core, uint32_t family, const struct event_back *back);

/* One lease that is none of the credit's began, or ended. */
void credit_take_other(struct core *core, uint32_t family, bool began);

/* A ticket failed. */
void credit_take_failure(struct core *core, uint32_t family, uint64_t g,
                         enum lane_back why);

/* The grant that carried it, or its revocation, was done; `in_use` leases then ran. */
void credit_take_grant(struct core *core, uint32_t family, uint32_t in_use, bool empty);

/* A look at the family: so many of its jobs run. */
void credit_take_look(struct core *core, uint32_t family, uint32_t in_use,
                      uint32_t backlog);

/* Its look_ms has come. */
void credit_expire(struct core *core, uint32_t family);

/* The lane has just shut.  Credits below that nobody has taken yet may write it, too: one
 * of them becomes its writer, the others are taken back. */
void credit_join(struct core *core, uint32_t lane);

/* A reader has missed: the other readers of its stage that have not started are no longer
 * allowed. */
void credit_shrink(struct core *core, uint32_t lane);

/* While recovering: so many credits lie in the lane of the family, or one lease holds
 * one; then, when all lanes are known, what of it still counts: first of those that
 * have started, whose requests cannot be taken back. */
void credit_find(struct core *core, uint32_t family, enum lane_role role, uint64_t g,
                 uint32_t unclaimed, uint32_t started);
void credit_recover(struct core *core, uint32_t family, bool started_only);

#endif
