/* agent_command.h - the commands of one step, from what slots and results are filed
 * under.
 */
#ifndef WORKER_CORE_AGENT_COMMAND_H
#define WORKER_CORE_AGENT_COMMAND_H

#include "worker/core/agent_state.h"

/* Adds what is due and fits; sets agent->is_dirty if something is left. */
void agent_command_due(struct agent *agent, struct agent_output *out);

/* AGENT_CLOSE has to be the first command of its step. */
void agent_command_close(struct agent *agent, struct agent_output *out);

/* When undelivered results have to be looked at. */
uint64_t agent_command_deadline(const struct agent *agent);

#endif
