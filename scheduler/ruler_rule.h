/* ruler_rule.h - who rules: asking, standing by, reaping first, renewing.
 *
 * A take-over asks with a fresh nonce.  If this process ruled before the connection was
 * lost, it gives that rule up in the same breath: nobody has to wait for a lease whose
 * owner has forgotten everything. */
#ifndef SCHEDULER_RULER_RULE_H
#define SCHEDULER_RULER_RULE_H

#include "scheduler/ruler_state.h"

void ruler_rule_start(struct ruler *ruler, uint64_t now_ms);

/* Asks again after `wait_ms`; all memory is void. */
void ruler_rule_retry(struct ruler *ruler, uint64_t now_ms, uint64_t wait_ms);

/* Another one rules. */
void ruler_rule_stand_by(struct ruler *ruler, uint64_t now_ms, uint64_t wait_ms);

/* Still ruling, but the memory is void. */
void ruler_rule_rebuild(struct ruler *ruler, uint64_t now_ms);

void ruler_rule_step(struct ruler *ruler, uint64_t now_ms, struct call_list *out);
uint64_t ruler_rule_deadline(const struct ruler *ruler, uint64_t now_ms);

void ruler_rule_on_yield(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                         const struct reply *reply);
void ruler_rule_on_rule(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                        const struct reply *reply);
void ruler_rule_on_reap(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                        const struct reply *reply);

#endif
