/* command.h - everything the core can ask for.
 *
 *   GRANT    move one lane: one (…)*N group of the function `grant`    -> GRANTED
 *   BUDGET   set pace, park and limits of one budget: its B group      -> PACED
 *   GLANCE   look at one family                                       -> GLANCED
 *   REBUILD  memory and Redis differ too much: read all of it again    -> RECOVERED_...
 *   NOTE     tell a human; the shell makes the text
 *
 * A shell puts all GRANTs and BUDGETs of a step, in their order, into one `grant`: what
 * a step decides belongs together.  Each of the first three has exactly one outcome,
 * which comes back as the event on the right: done, refused or unknown.  While one is
 * under way for a lane, budget or family there is no second one; what changes meanwhile
 * is sent after the outcome.  So commands are level-triggered and may be late, but never
 * pile up.
 *
 * REBUILD: the shell makes a new core with core_init and feeds it what Redis holds. */
#ifndef SCHEDULER_CORE_COMMAND_H
#define SCHEDULER_CORE_COMMAND_H

#include "common/base.h"
#include "common/id.h"
#include "scheduler/core/event.h"
#include "scheduler/core/lane.h"
#include "scheduler/core/lineage.h"

#define COMMAND_MAX  64         /* commands of one step */
#define COMMAND_KEEP UINT64_MAX /* "-": leave the stored value as it is */

enum command_kind {
	COMMAND_GRANT,
	COMMAND_BUDGET,
	COMMAND_GLANCE,
	COMMAND_REBUILD,
	COMMAND_NOTE,
	COMMAND_KIND_COUNT,
};

/* Columns of the lane record that the scheduler owns.  `credits`, `role` and `ticket`
 * take effect iff g_new differs from g.  `until_ms` is set then, and where the lane was
 * not open; else it is only raised.  `chain` is the px list, root to this node. */
struct command_grant {
	struct lane_id lane;
	bool has_family; /* the lane's node is the leaf of a family of the same id */
	struct id128 pool, budget;
	struct id128 chain[LINEAGE_MAX];
	uint32_t chain_count;
	uint64_t g, g_new;
	enum lane_gate gate;
	enum lane_reason reason;
	uint32_t credits;
	enum lane_role role; /* of the credits */
	uint32_t window;
	uint32_t rank;
	uint64_t until_ms; /* or COMMAND_KEEP */
	uint64_t p;        /* tokens of the node, 0 = unknown; or COMMAND_KEEP */
	uint64_t life_ms;
	bool ticket; /* wanted */
	uint64_t ticket_deadline_ms;
	uint32_t marks; /* bits of the chain that are rendered with a marker; of the
	                   family record, so 0 without a family */
};

struct command_budget {
	struct id128 id;
	uint32_t pace;                       /* starts in flight; 0 = no bound */
	uint64_t parked_until_ms;            /* 0 = not parked; or COMMAND_KEEP */
	uint64_t limits[EVENT_BUCKET_COUNT]; /* per minute; 0 = none */
	uint32_t learned; /* by bucket, lowest first: answers told it, nobody configured
	                     it */
};

struct command_glance {
	struct id128 family;
};

enum command_note_kind {
	COMMAND_NOTE_GATE,      /* lane: a moved from gate `a` to `b` for reason `c` */
	COMMAND_NOTE_LEARNED,   /* lane: P = a tokens */
	COMMAND_NOTE_CORRECTED, /* lane: P was a, three readers say b */
	COMMAND_NOTE_LAG,       /* id = model: readable a ms after the first event */
	COMMAND_NOTE_TRUST,   /* id = model: a = 1 trusted after b proofs, 0 no longer */
	COMMAND_NOTE_LATE,    /* lane: its leader said nothing for a ms */
	COMMAND_NOTE_REVOKED, /* lane: its credit was taken back after a ms */
	COMMAND_NOTE_NO_CALL, /* id = model: refuses our warm-up body; leads instead */
	COMMAND_NOTE_PACE,    /* id = budget: pace went from a to b */
	COMMAND_NOTE_PARKED,  /* id = budget: until a, for event_pressure_kind b */
	COMMAND_NOTE_SPEND,   /* id = budget: spend cap; parked until a, b-th time */
	COMMAND_NOTE_LIMIT,   /* id = budget: bucket a is limited to b per minute */
	COMMAND_NOTE_OVERDUE, /* id = family: waiting for a ms, more than b */
	COMMAND_NOTE_FULL,    /* id = family: no room to hold it; it runs unheld */
	COMMAND_NOTE_WARM,    /* id = family: asked to be warm: core_warm a */
	COMMAND_NOTE_LOST,    /* a notes did not fit */
	COMMAND_NOTE_KIND_COUNT,
};

struct command_note {
	enum command_note_kind kind;
	struct lane_id lane; /* of lanes and, by .node alone, of families */
	struct id128 id;     /* of models, budgets and families */
	uint64_t a, b, c;
};

struct command {
	enum command_kind kind;
	union {
		struct command_grant grant;
		struct command_budget budget;
		struct command_glance glance;
		struct command_note note;
	};
};

struct command_list {
	uint32_t count;
	struct command commands[COMMAND_MAX];
};

const char *command_kind_text(enum command_kind kind);
const char *command_note_text(enum command_note_kind kind);

#endif
