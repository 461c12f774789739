/* core_trace.h - what goes into the core and comes out of it, one line each.
 *
 *      100 > ADMITTED S/A n=8
 *      100 < GRANT    A g=0>1 writing lead=1 rank=+0 marks=3
 *
 * Names instead of ids, time from the rig's start, ranks from the first one; what says
 * nothing new is left out: ticks, polls, and answers that are just "done". */
#ifndef TESTS_LIB_CORE_TRACE_H
#define TESTS_LIB_CORE_TRACE_H

#include "scheduler/core/core.h"

#include <stdio.h>

struct core_rig;

void core_trace_event(FILE *out, const struct core_rig *rig, const struct event *event);
void core_trace_command(FILE *out, const struct core_rig *rig,
                        const struct command *command);

#endif
