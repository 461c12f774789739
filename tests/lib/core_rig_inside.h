/* core_rig_inside.h - what the files of the rig share; tests include core_rig.h.
 *
 *   core_rig.c            a rig's life, and its time
 *   core_rig_tell.c       what the core is told at first, on admission, after a restart
 *   core_rig_redis.c      what Redis does with commands; events on their way to the core
 *   core_rig_claim.c      what a claim starts, and whether it may (I1)
 *   core_rig_provider.c   what a request reads and writes, and how it ends
 */
#ifndef TESTS_LIB_CORE_RIG_INSIDE_H
#define TESTS_LIB_CORE_RIG_INSIDE_H

#include "tests/lib/core_rig.h"

#define CORE_RIG_NONE  UINT32_MAX
#define CORE_RIG_NEVER UINT64_MAX

static inline struct id128
core_rig_id(const char *name)
{
	return id_of(span_from(name), 7);
}

static inline struct lane_id
core_rig_lane(const struct core_rig *rig, uint32_t node)
{
	return (struct lane_id){ rig->nodes[node].id, 0 };
}

/* The node under which a family waits. */
static inline uint32_t
core_rig_leaf(const struct core_rig_family *family)
{
	return family->chain[family->chain_count - 1];
}

/* ---- core_rig_redis.c ------------------------------------------------------------ */

/* A line of the event stream: it comes later, or is lost. */
void core_rig_say(struct core_rig *rig, const struct event *event);

/* Steps the core and executes what it commands; then all that is due by now. */
void core_rig_step(struct core_rig *rig, const struct event *event);
void core_rig_deliver(struct core_rig *rig);

/* ---- core_rig_claim.c ------------------------------------------------------------ */

void core_rig_claim(struct core_rig *rig); /* for all workers, until nothing may start */
void core_rig_tell_short(struct core_rig *rig); /* claims that left slots free */

/* The clock of hold_max runs while nothing but a gate stops the family. */
void core_rig_hold_clocks(struct core_rig *rig);

/* ---- core_rig_provider.c --------------------------------------------------------- */

/* What a request reads and writes, decided when it is sent. */
void core_rig_look_up(struct core_rig *rig, struct core_rig_start *start);

void core_rig_serve(struct core_rig *rig); /* what begins and ends by now */
void core_rig_expire_entries(struct core_rig *rig);

/* A start that did not lead to a result. */
void core_rig_come_back(struct core_rig *rig, struct core_rig_start *start,
                        enum lane_back why);

/* ---- core_rig_tell.c ------------------------------------------------------------- */

uint32_t core_rig_node_by_id(const struct core_rig *rig, struct id128 id);
uint32_t core_rig_family_by_id(const struct core_rig *rig, struct id128 id); /* or NONE */

void core_rig_tell_model(struct core_rig *rig);
void core_rig_tell_pool(struct core_rig *rig, const struct core_rig_pool *pool);
void core_rig_tell_budget(struct core_rig *rig);
struct event core_rig_hold_event(const struct core_rig *rig,
                                 const struct core_rig_family *family);

#endif
