/* agent_timer.h - what time alone makes an agent do: give up, fence, stop, forget. */
#ifndef WORKER_CORE_AGENT_TIMER_H
#define WORKER_CORE_AGENT_TIMER_H

#include "worker/core/agent_state.h"

/* Runs every timer that is due. */
void agent_timer_run(struct agent *agent);

/* When the next one is due. */
uint64_t agent_timer_deadline(const struct agent *agent);

#endif
