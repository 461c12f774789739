/* agent_receive.h - what the answer to each kind of call changes.
 *
 * Refusals of whole calls are the same for all: STALE means this connection has been
 * replaced, GONE that the session is no more, an error that nothing changed; and whatever
 * makes our picture doubtful ends in reading the table again. */
#ifndef WORKER_CORE_AGENT_RECEIVE_H
#define WORKER_CORE_AGENT_RECEIVE_H

#include "worker/core/agent_state.h"

void agent_receive(struct agent *agent, const struct flight *flight,
                   const struct reply *reply);

#endif
