/* gate_rig.h - what a gate does, seen from outside, in the world of core_rig.h.
 *
 *   burst(rig, "S", 40);
 *   expect_gate(rig, "S", LANE_OPEN, LANE_REASON_NONE); */
#ifndef TESTS_LIB_GATE_RIG_H
#define TESTS_LIB_GATE_RIG_H

#include "scheduler/core/state.h"
#include "tests/lib/core_rig.h"
#include "tests/lib/suite.h"

#define LONG 3600000

/* Core and Redis agree that the lane is in this state. */
static inline void
expect_gate(struct core_rig *rig, const char *name, enum lane_gate gate,
            enum lane_reason reason)
{
	ck_assert_str_eq(lane_gate_text(core_rig_lane_named(rig, name)->gate),
	                 lane_gate_text(gate));
	ck_assert_str_eq(lane_reason_text(core_rig_lane_named(rig, name)->reason),
	                 lane_reason_text(reason));
	ck_assert_int_eq(core_rig_node(rig, name)->gate, gate);
}

/* Runs a burst of `jobs` over the one-node chain `name` to its end. */
static inline void
burst(struct core_rig *rig, const char *name, uint32_t jobs)
{
	(void)core_rig_admit(rig, name, jobs);
	ck_assert(core_rig_drain(rig, LONG));
	core_audit(rig->core);
}

#endif
