/* agent_call.h - what every call of an agent needs: room, and outcomes in Redis's words.
 *
 * Call agent_call_open() before anything of a call is written: what it answers NULL for
 * is tried again in the next step. */
#ifndef WORKER_CORE_AGENT_CALL_H
#define WORKER_CORE_AGENT_CALL_H

#include "worker/core/agent_state.h"

/* Opens a flight if ring and list have room for a full batch and `bytes` more. */
struct flight *agent_call_open(struct agent *agent, struct call_list *calls,
                               enum flight_kind kind, size_t bytes);

/* Usage as Redis wants it: times by its own clock. */
struct protocol_usage agent_call_usage(const struct agent *agent,
                                       struct protocol_usage usage);

/* Where the result of an outcome goes, and how many bytes all its texts have. */
struct protocol_delivery agent_call_delivery(const struct agent_outcome *outcome);
size_t agent_call_bytes(const struct agent_outcome *outcome);

#endif
