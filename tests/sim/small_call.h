/* small_call.h - the calls of the small world, and what can be seen in its Redis. */
#ifndef TESTS_SIM_SMALL_CALL_H
#define TESTS_SIM_SMALL_CALL_H

#include "tests/sim/small_world.h"

enum {
	SMALL_LIVES = 8
}; /* nonces of a worker, and one more for the last */

/* A worker's call, as it stands in its socket. */
struct small_word {
	uint8_t worker, verb, life, c, job, slot_q, q;
};

/* Something is wrong: the first fault is kept. */
void small_scope_blame(struct small_scope *scope, const char *fault);

/* Replies live until the next call.  An error is a fault. */
const struct reply *small_call_worker(struct small_scope *scope,
                                      struct small_world *world, struct small_word word);
const struct reply *small_call_attach(struct small_scope *scope,
                                      struct small_world *world, uint8_t who);
void small_call_hello(struct small_scope *scope, struct small_world *world, uint8_t who);
void small_call_admit(struct small_scope *scope, struct small_world *world, uint8_t job);
void small_call_cancel(struct small_scope *scope, struct small_world *world, uint8_t job);
void small_call_late(struct small_scope *scope, struct small_world *world, uint8_t held);
void small_call_reap(struct small_scope *scope, struct small_world *world, uint8_t who);
/* Time goes on until all that waits in `later` is due. */
void small_call_promote(struct small_scope *scope, struct small_world *world);
void small_call_hold_off(struct small_scope *scope, struct small_world *world);

const struct reply *small_call_audit(struct small_scope *scope,
                                     struct small_world *world);

/* Whether the scope has one credit only. */
bool small_scope_is_lead(const struct small_scope *scope);

/* True while Redis hears this worker's session. */
bool small_call_lives(const struct small_world *world, uint8_t who);

/* The number of the job that an element names. */
uint8_t small_call_job(struct span element);

/* The job and the token of a lease; 0 if it is none. */
uint8_t small_call_leased(struct span lease, uint8_t *ret_q);

/* Each job has its one result, and nothing is left of it but a dead letter. */
bool small_call_all_ended(const struct small_world *world);

#endif
