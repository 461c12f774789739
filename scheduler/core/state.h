/* state.h - all the core remembers, in one block of memory.
 *
 *   ids ──table──► index ──► models[] pools[] pacers[] lanes[] families[]
 *
 * Objects name each other by index; links of lists and the timer heap lie in arrays
 * beside them.  One timer per lane, family and pacer; see STATE_TIMER_... for items.
 *
 * Private to scheduler/core: shells include core.h only. */
#ifndef SCHEDULER_CORE_STATE_H
#define SCHEDULER_CORE_STATE_H

#include "common/base.h"
#include "common/heap.h"
#include "common/table.h"
#include "scheduler/core/core.h"
#include "scheduler/core/family.h"
#include "scheduler/core/lane_state.h"
#include "scheduler/core/list.h"
#include "scheduler/core/model.h"
#include "scheduler/core/note.h"
#include "scheduler/core/pacer.h"
#include "scheduler/core/pool.h"

#define STATE_UNHELD_MAX 64

/* A grant for a family that found no room: all that is remembered of it. */
struct unheld {
	struct command_grant grant;
	bool used; /* not known to be done yet */
	bool due;  /* to be sent (again) */
};

struct core {
	struct core_config config;
	uint64_t now_ms;
	bool recovering;
	bool hold;                                    /* false: nobody is held */
	struct id128 unheld_routes[EVENT_UNHELD_MAX]; /* nor are their families */
	uint32_t unheld_count;
	bool rebuild; /* to be asked for */

	struct table models_by_id, pools_by_id, pacers_by_id, lanes_by_id, families_by_id;
	struct model *models;
	struct pool *pools;
	struct pacer *pacers;
	struct pool_share *shares; /* of each pool, one for each pacer */
	struct lane *lanes;
	struct family *families;
	uint32_t models_count, pools_count, pacers_count; /* these never go */

	struct list lanes_free, families_free; /* by lane_home and family_home */
	struct list idle;                      /* families without work, longest first */
	struct list paused;                    /* families */
	struct list dirty;                     /* lanes to grant */
	struct list glance;                    /* families to look at */
	struct link *lane_home;                /* free or dirty */
	struct link *family_home;              /* free, idle, or a list of its pool */
	struct link *family_glance;
	struct link *below; /* see struct lane */

	struct heap timers;
	struct note_queue notes;
	struct unheld unheld[STATE_UNHELD_MAX];
	uint32_t unheld_next;
	uint32_t plan_first; /* pool that is planned first, in turn */
	uint32_t rank_next, rank_overdue_next;
	uint32_t cold_count; /* families in state cold */
	uint32_t slots;      /* of all pools */
	struct core_counts counts;
};

/* Whether holding is switched off for this route. */
bool core_route_is_unheld(const struct core *core, struct id128 route);

/* Somebody asks for a family to be warm (core_warm.c). */
void core_warm(struct core *core, struct id128 family);

/* What stands between a family and its next start (core_view.c). */
enum core_blocked core_blocked_by(const struct core *core, const struct family *family);

/* Where the timer of each object sits in the heap. */
static inline uint32_t
state_lane_timer(const struct core *core, uint32_t lane)
{
	return lane;
}

static inline uint32_t
state_family_timer(const struct core *core, uint32_t family)
{
	return core->config.lanes_max + family;
}

static inline uint32_t
state_pacer_timer(const struct core *core, uint32_t pacer)
{
	return core->config.lanes_max + core->config.families_max + pacer;
}

/* Sets or clears (CORE_DEADLINE_NONE) a timer. */
static inline void
state_arm(struct core *core, uint32_t timer, uint64_t due_ms)
{
	if (due_ms == CORE_DEADLINE_NONE)
		(void)heap_remove(&core->timers, timer);
	else
		heap_put(&core->timers, timer, due_ms);
}

#endif
