/* note.h - what the agent wants people to know, as lines of the log. */
#ifndef WORKER_NOTE_H
#define WORKER_NOTE_H

#include "worker/core/agent.h"
#include "worker/lag.h"
#include "worker/run.h"

/* `command` is an AGENT_NOTE; `run` is what it is about, if its number is a slot. */
void note_log(const struct agent_command *command, const struct run *run);

/* What it has done, at the end; `state`: where undelivered results are. */
void note_farewell(const struct agent *agent, const struct lag *lag, const char *state);

#endif
