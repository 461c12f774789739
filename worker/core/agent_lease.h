/* agent_lease.h - how leases and runs begin, end and part.
 *
 * Every function leaves the slot filed under what has to be done next. */
#ifndef WORKER_CORE_AGENT_LEASE_H
#define WORKER_CORE_AGENT_LEASE_H

#include "common/codec/protocol_answer.h"
#include "worker/core/agent_state.h"

/* A claim gave `element` of `run` to a slot that asked for it with `q`. */
void agent_lease_begin(struct agent *agent, uint32_t slot, uint64_t q,
                       const struct protocol_run *run, struct span element);

/* Redis holds nothing of ours in this slot any more.  What runs there becomes an orphan,
 * a paid result is offered late. */
void agent_lease_lose(struct agent *agent, uint32_t slot);

/* Its settle or fail was accepted. */
void agent_lease_settled(struct agent *agent, uint32_t slot);

/* The job ended by other hands; what we have of it is worth nothing. */
void agent_lease_void(struct agent *agent, uint32_t slot);

/* To be released: a lease of ours without a run, or one that nobody here knows. */
void agent_lease_leave(struct agent *agent, uint32_t slot, uint64_t q, bool was_sent);

/* Stops a run; nothing happens if it already is being stopped. */
void agent_lease_stop(struct agent *agent, uint32_t slot, enum slot_why why);

/* The executor reports the end of a run. */
void agent_lease_ended(struct agent *agent, uint32_t slot,
                       const struct agent_outcome *outcome);

/* Stops what must be alone and whose lease may end before we know. */
void agent_lease_fence(struct agent *agent);

/* Compares all slots with the table of an attach; NULL: the table is empty. */
void agent_lease_compare(struct agent *agent, const struct reply *attached);

#endif
