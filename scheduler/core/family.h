/* family.h - the jobs that wait in one queue, and where their family stands.
 *
 *               work, cold           its turn                 all gates start
 *   idle ─────────────────► waiting ──────────► cold ───────────────► ready
 *     ▲  └── work, warm or unheld: ready at once  ▲ └─── a gate shut ◄──┘ │
 *     └────────────────────── drained, and lingered ◄─────────────────────┘
 *
 *   paused: from anywhere, and back by the same rules.
 *
 * Cold and ready families are *active*: they have a rank.  family_settle() is the one
 * door: it compares what is known with the state and moves the family home.
 *
 * `waiting` and `running` are estimates: plain starts make no event.  Their sum is what
 * was admitted and has not ended; answers of grant and glance set both right. */
#ifndef SCHEDULER_CORE_FAMILY_H
#define SCHEDULER_CORE_FAMILY_H

#include "common/base.h"
#include "scheduler/core/credit.h"
#include "scheduler/core/event.h"
#include "scheduler/core/list.h"

#define FAMILY_NONE LIST_NONE

struct core;

enum family_state {
	FAMILY_IDLE,
	FAMILY_WAITING,
	FAMILY_COLD,
	FAMILY_READY,
	FAMILY_PAUSED,
	FAMILY_STATE_COUNT,
};

struct family {
	struct id128 id, route;
	bool unheld; /* holding is switched off for its route: no gate stops it */
	uint32_t pool, budget, model; /* indices */
	uint32_t lanes[LINEAGE_MAX];  /* root first; the last is its own */
	uint32_t lanes_count;
	uint32_t gates; /* places whose lanes hold it back */
	uint32_t users; /* places that carry a marker of the user's */
	uint32_t flags; /* EVENT_FAMILY_... */

	enum family_state state;
	uint32_t band; /* best list with work, EVENT_LIST_HIGH to _LOW */
	uint32_t waiting, running;
	uint32_t weight, queued; /* its share in pool->load and pool->queued */
	uint32_t busy;           /* jobs that run, of its weight */
	uint64_t oldest_ms;      /* id time of its oldest waiting job; 0 = none */
	uint64_t hold_max_ms;
	uint32_t input_tokens, output_tokens; /* estimates of one job */

	uint32_t rank;       /* active: order of activation */
	bool overdue;        /* active: waits too long, goes first */
	bool ahead;          /* active: warmed ahead of its jobs' turn */
	uint64_t overdue_ms; /* since when */
	uint64_t linger_ms;  /* drained: idle from then on; 0 = not drained */
	uint64_t linger_for_ms;

	struct credit credit;
	/* Places marked by starts of g >= marks_g, and by those before, of g >=
	 * marks_before_g; of older ones it is not known. */
	uint32_t marks, marks_before;
	uint64_t marks_g, marks_before_g;

	bool glance_flight;
	uint64_t glanced_ms; /* when last asked for */
};

uint32_t family_find(const struct core *core, struct id128 id);

/* Its own lane. */
uint32_t family_leaf(const struct family *family);

/* Jobs came, or the family was found in Redis. */
void family_admit(struct core *core, const struct event_admitted *admitted);

/* The one door: moves the family to the state that fits. */
void family_settle(struct core *core, uint32_t index);

/* Sets the estimates, then settles. */
void family_count(struct core *core, uint32_t index, uint32_t waiting, uint32_t running);

/* Estimates after one start, one end, or one return to the queue. */
void family_started(struct core *core, uint32_t index);
void family_ended(struct core *core, uint32_t index);
void family_returned(struct core *core, uint32_t index);

/* Its share of pool and budget changed otherwise (credits). */
void family_weigh(struct core *core, uint32_t index);

/* Gives it a rank and the right to a writer. */
void family_activate(struct core *core, uint32_t index);

/* True iff its plain jobs may start. */
bool family_starts(const struct core *core, const struct family *family);

/* Markers that its requests should carry now. */
uint32_t family_marks(const struct core *core, const struct family *family);

/* Asks for a look at it, at most once a second. */
void family_look(struct core *core, uint32_t index);

/* All families find their state, after a recovery or a change of `hold`. */
void family_settle_all(struct core *core);

/* Takes a family out of its pool's lists, to another budget or band. */
void family_rest(struct core *core, uint32_t index);

void family_arm(struct core *core, uint32_t index);
void family_expire(struct core *core, uint32_t index);
void family_pause(struct core *core, uint32_t index, bool on);

/* An answer of Redis about its lists. */
void family_take_glance(struct core *core, const struct event_glanced *glanced);
void family_take_head(struct core *core, uint32_t index, uint64_t head_ms);

#endif
