/* agent_send.h - the calls of one step, in the order that Redis has to see them.
 *
 *   greeting alone ─ then: resent, beat, releases, fails, begins, settle + claim,
 *   claim, late results, bye */
#ifndef WORKER_CORE_AGENT_SEND_H
#define WORKER_CORE_AGENT_SEND_H

#include "worker/core/agent_state.h"

/* Adds what is due and fits.  Sets agent->is_dirty if room, and not an answer, is what
 * keeps the rest back. */
void agent_send_due(struct agent *agent, struct call_list *calls);

/* When there will be something to send, if nothing else happens. */
uint64_t agent_send_deadline(const struct agent *agent);

#endif
