/* agent_claim.h - asks for work: into slots that end now, and into those that are free.
 *
 *   over ──► settle + claim ──► asked        one call ends jobs and starts as many
 *   free ──► claim ───────────► asked        when woken, or when it is time to look
 *   free ──► claim of U ──────► asked        one job of an upstream that is shunned
 *
 * Only one call under way asks for more than it gives back: its answer says how long to
 * wait. */
#ifndef WORKER_CORE_AGENT_CLAIM_H
#define WORKER_CORE_AGENT_CLAIM_H

#include "worker/core/agent_state.h"

/* Ends a batch of jobs and claims into their slots; false if none is over, or no room. */
bool agent_claim_settle(struct agent *agent, struct call_list *calls);

/* Asks for free slots, if it is time to. */
void agent_claim_ask(struct agent *agent, struct call_list *calls);

/* Asks for the one job that shows whether a shunned upstream is back, if it is time to.
 */
void agent_claim_try(struct agent *agent, struct call_list *calls);

#endif
