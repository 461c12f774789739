/* gate.h - how evidence moves a gate: one function for each thing that can be learned.
 *
 *            hit              miss                        zero            silent
 *  closed    open             checking, if it wrote       bypass          -
 *  writing   open             checking                    bypass          bypass
 *  checking  open (or the     wait, check again;          bypass          bypass
 *            next stage)      3 times: leaky
 *  open      warm for longer  3 of the last 8 starts:     as a miss       -
 *                             closed, again: leaky
 *  bypass,   open             -                           -               -
 *  leaky
 *
 * Evidence from anybody is heard, but only a credited start moves writing and checking
 * on by a miss, a zero or silence.  On best-effort upstreams misses never close. */
#ifndef SCHEDULER_CORE_GATE_H
#define SCHEDULER_CORE_GATE_H

#include "common/base.h"
#include "scheduler/core/evidence.h"
#include "scheduler/core/lane.h"

struct core;

/* Applies the evidence of one request to all lanes of its family that it speaks of.
 * `credited`: places on which the request was a credited writer or reader; `recent`: its
 * outcome belongs into the miss rule (its end is reported once, its begin another). */
void gate_take(struct core *core, uint32_t family, const struct evidence *evidence,
               uint32_t credited, bool recent);

/* A credited start ended without evidence: its lanes lose their writer. */
void gate_take_failure(struct core *core, uint32_t lane, enum lane_back why);

/* Checking at last, trusted: the learned lag is over, nobody has to prove it. */
void gate_take_trust(struct core *core, uint32_t lane);

#endif
