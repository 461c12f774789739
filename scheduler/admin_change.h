/* admin_change.h - what each new version of a route has changed, found when it came.
 *
 *   a version that is new ── its parts ──► compared with those of the one before
 *                                              └─► memory, and ns:drift for 8 days
 *
 * A deploy is looked at within seconds, while the parts of both versions are there: an
 * hour after its last job Redis has forgotten a family, and the question what last
 * Tuesday's deploy was comes later.  The parts of the newest version of each route stay
 * in memory, so that a nightly batch is compared with the one of the night before.
 *
 * Only the scheduler that rules looks.  One comparison every five seconds; routes with
 * four or more prefixes alive have documents, no deploys, and are left alone. */
#ifndef SCHEDULER_ADMIN_CHANGE_H
#define SCHEDULER_ADMIN_CHANGE_H

#include "common/codec/drift.h"
#include "scheduler/admin_state.h"

struct admin_change {
	struct id128 newer, older; /* families */
	uint64_t at_ms;
	enum drift_kind kind; /* DRIFT_KIND_COUNT: it could not be compared */
	enum tier tier;
	uint64_t byte; /* of that part */
};

MUST_USE int admin_change_open(struct admin *admin);
void admin_change_close(struct admin *admin);

/* Every few seconds. */
void admin_change_look(struct admin *admin);

/* How a version differs from the one before it; NULL: not known, or not at all. */
const struct admin_change *admin_change_find(const struct admin *admin,
                                             struct id128 newer);

/* Members of an object that is open: older, kind, fix, part, byte. */
void admin_change_put(const struct admin_change *change, struct buffer *out);

/* Makes nodes of stored parts; false if one of them is no part. */
bool admin_change_fill(struct chain *chain, const struct span *parts, uint64_t count);

#endif
