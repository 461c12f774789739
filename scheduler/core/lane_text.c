/* The words of lane.h for traces and logs; pages have words of their own. */
#include "scheduler/core/lane.h"

const char *
lane_gate_text(enum lane_gate gate)
{
	static const char *const texts[] = {
		[LANE_CLOSED] = "closed",     [LANE_WRITING] = "writing",
		[LANE_CHECKING] = "checking", [LANE_OPEN] = "open",
		[LANE_BYPASS] = "bypass",     [LANE_LEAKY] = "leaky",
	};

	VERIFY(gate < LANE_GATE_COUNT);
	return texts[gate];
}

const char *
lane_reason_text(enum lane_reason reason)
{
	static const char *const texts[] = {
		[LANE_REASON_NONE] = "none",
		[LANE_REASON_UNCACHEABLE] = "uncacheable",
		[LANE_REASON_BELOW_MINIMUM] = "below minimum",
		[LANE_REASON_UNSHARED] = "unshared",
		[LANE_REASON_OPAQUE] = "opaque",
		[LANE_REASON_NEVER_READ] = "never read",
		[LANE_REASON_REFUSED] = "leader refused",
		[LANE_REASON_OFF] = "off",
		[LANE_REASON_UNKNOWN_USAGE] = "usage unknown",
		[LANE_REASON_UNHELD] = "not held here",
	};

	VERIFY(reason < LANE_REASON_COUNT);
	return texts[reason];
}

const char *
lane_role_text(enum lane_role role)
{
	static const char *const texts[] = {
		[LANE_PLAIN] = "plain",   [LANE_LEAD] = "lead",
		[LANE_CANARY] = "canary", [LANE_HOLD_LIMIT] = "hold limit",
		[LANE_NOW] = "now",       [LANE_TICKET] = "ticket",
	};

	VERIFY(role < LANE_ROLE_COUNT);
	return texts[role];
}
