/* lane.h - the words of the gate: one node of a prompt on one domain, and its states.
 *
 *        work waits           first event           read >= P - slack
 *  closed ─────────► writing ─────────────► checking ─────────────► open
 *    ▲                  │ failed                │ missed              │
 *    ├──────────────────┘                       └─ wait, check again; │
 *    ├─────────────────────────── 3 times: leaky                      │
 *    └──────────────── past `until`, or 3 misses in 8 starts ◄────────┘
 *
 *  bypass: nothing to hold for; leaky: written, never read.  Both start everything and
 *  are tried again with one leader after a lifetime of an entry.
 *
 * The numbers are those of the lane record in docs/PROTOCOL.md: never renumber. */
#ifndef SCHEDULER_CORE_LANE_H
#define SCHEDULER_CORE_LANE_H

#include "common/base.h"
#include "common/id.h"

#define LANE_FOREVER 99999999999999 /* an `until` without end, ms */
#define LANE_WINDOW  99999          /* a window that bounds nothing */

struct lane_id {
	struct id128 node;
	uint32_t domain; /* ordinal; 0 on a hosted account */
};

enum lane_gate {
	LANE_CLOSED = 0,
	LANE_WRITING = 1,
	LANE_CHECKING = 2,
	LANE_OPEN = 3,
	LANE_BYPASS = 4,
	LANE_LEAKY = 5,
	LANE_GATE_COUNT,
};

/* Why a lane is bypassed or leaky. */
enum lane_reason {
	LANE_REASON_NONE = 0,
	LANE_REASON_UNCACHEABLE =
		1, /* marked, and 0 written and 0 read; or not markable */
	LANE_REASON_BELOW_MINIMUM = 2, /* the model caches nothing so short */
	LANE_REASON_UNSHARED = 3,      /* one job only: nobody would read it */
	LANE_REASON_OPAQUE = 4,        /* the body could not be split */
	LANE_REASON_NEVER_READ = 5,    /* leaky */
	LANE_REASON_REFUSED = 6,       /* three different leaders were refused */
	LANE_REASON_OFF = 7, /* holding is switched off: void once it is on again */
	LANE_REASON_UNKNOWN_USAGE = 8, /* no proof is possible */
	LANE_REASON_UNHELD = 9,        /* its upstream is not held, or there is no room */
	LANE_REASON_COUNT,
};

/* What a start was allowed as.  The first two are roles of credits. */
enum lane_role {
	LANE_PLAIN = 0,
	LANE_LEAD = 1,
	LANE_CANARY = 2,
	LANE_HOLD_LIMIT = 3, /* past its hold_max */
	LANE_NOW = 4,        /* asked never to be held */
	LANE_TICKET = 5,     /* a warm-up request of its own */
	LANE_ROLE_COUNT,
};

enum lane_ticket {
	LANE_TICKET_NONE = 0,
	LANE_TICKET_WANTED = 1,
	LANE_TICKET_TAKEN = 2,
	LANE_TICKET_OK = 3,
	LANE_TICKET_FAILED = 4,
	LANE_TICKET_COUNT,
};

/* How a lease that is not plain came back. */
enum lane_back {
	LANE_BACK_RELEASED, /* these four gave their credit back, if g was still theirs */
	LANE_BACK_UNSENT,
	LANE_BACK_WORKER_DIED,
	LANE_BACK_OVERDUE,   /* past its hard end */
	LANE_BACK_DEFERRED,  /* 429, 529: the provider is busy */
	LANE_BACK_FAILED,    /* 5xx, time-out, connection */
	LANE_BACK_DEAD,      /* refused: a 400 is the job's own failure */
	LANE_BACK_MISSING,   /* nothing to send: its payload is gone, or is unfit */
	LANE_BACK_DROPPED,   /* it had been cancelled or had expired */
	LANE_BACK_EXHAUSTED, /* failed as above, for the last time: its job is dead */
	LANE_BACK_COUNT,
};

/* True iff the gate lets plain jobs start (before its `until`). */
static inline bool
lane_gate_starts(enum lane_gate gate)
{
	return gate >= LANE_OPEN;
}

const char *lane_gate_text(enum lane_gate gate);
const char *lane_reason_text(enum lane_reason reason);
const char *lane_role_text(enum lane_role role);

#endif
