/* small_world.h - a queue so small that all that can happen to it can be tried.
 *
 *   2 jobs of one family      2 workers with 1 slot each      a clock that stands still
 *
 * The library is the real one, in the small Redis.  An act is one call, whose answer may
 * be heard, be lost behind its effect, or whose bytes lie in an old socket until Redis
 * reads them (`late`): meanwhile the worker has attached.  Workers keep the rules of
 * docs/PROTOCOL.md: after a lost answer they attach and believe the table.
 *
 * A world owns its Redis.  Worlds are cheap to copy, which is what trying everything is
 * made of.  What the library remembers between calls stays in the scope; it holds under a
 * stamp only, and stamps are drawn so that those of two branches do not meet. */
#ifndef TESTS_SIM_SMALL_WORLD_H
#define TESTS_SIM_SMALL_WORLD_H

#include "common/base.h"
#include "common/reply.h"

enum {
	SMALL_JOBS = 2,
	SMALL_WORKERS = 2,
	SMALL_ACTS_MAX = 128,
};

/* open: the gate is open.  lead: one credit, and no more until somebody returns it. */
enum small_gate {
	SMALL_OPEN,
	SMALL_LEAD
};

enum small_kind {
	SMALL_ADMIT,   /* job `who`, also again */
	SMALL_CANCEL,  /* job `who` */
	SMALL_CALL,    /* worker `who` calls `verb` */
	SMALL_ATTACH,  /* worker `who`, as he must after a lost answer */
	SMALL_ARRIVE,  /* his late call reaches Redis */
	SMALL_HELLO,   /* he is gone and begins anew */
	SMALL_DELIVER, /* a result whose lease is gone: settle_late */
	SMALL_REAP,    /* his lease runs out, whether he lives or not */
};

enum small_verb {
	SMALL_CLAIM,
	SMALL_SETTLE,
	SMALL_SETTLE_CLAIM,
	SMALL_RETRY,
	SMALL_DEFER,
	SMALL_FATAL,
	SMALL_RELEASE,
	SMALL_VERB_COUNT,
};

enum small_fate {
	SMALL_HEARD,
	SMALL_LOST,
	SMALL_LATE,
	SMALL_FATE_COUNT
};

struct small_act {
	uint8_t kind, who, verb, fate;
};

/* What a worker believes.  Jobs are numbered from 1; 0 is none. */
struct small_worker {
	uint8_t life; /* which nonce */
	uint8_t c;
	uint8_t unsure; /* an answer did not come */
	uint8_t gone;
	uint8_t q; /* of the next claim */
	uint8_t held, held_q;
	uint8_t orphan; /* he has its result, and no lease */
	uint8_t late, late_verb, late_life, late_c, late_job, late_slot_q, late_q;
};

struct small_scope;

struct small_world {
	struct redis_model *redis;
	struct small_worker workers[SMALL_WORKERS];
};

/* `library`: a file in place of the library that was built, or NULL. */
struct small_scope *small_scope_create(enum small_gate gate, const char *library);
void small_scope_destroy(struct small_scope *scope);

/* What is wrong, once something is; NULL before. */
const char *small_scope_fault(const struct small_scope *scope);

/* The world before anything happened. */
void small_world_init(struct small_scope *scope, struct small_world *ret_world);
void small_world_copy(const struct small_world *world, struct small_world *ret_world);
void small_world_fini(struct small_world *world);

/* All acts there are, possible now or not; answers how many. */
size_t small_acts(struct small_act *ret_acts);
bool small_act_is_possible(const struct small_world *world, struct small_act act);
void small_act_print(struct small_act act, char *ret_text, size_t size);

void small_world_act(struct small_scope *scope, struct small_world *world,
                     struct small_act act);

/* Two worlds with the same number will do the same. */
uint64_t small_world_hash(const struct small_world *world);

/* Each job is in one place; each ended one has one result; counts are right; nobody runs
 * what Redis does not know of. */
void small_world_check(struct small_scope *scope, const struct small_world *world);

/* From here everything ends once, when both workers die and a third one comes. */
void small_world_drain(struct small_scope *scope, struct small_world *world);

#endif
