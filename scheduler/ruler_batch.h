/* ruler_batch.h - one call of `admit` while it grows: groups, runs, elements.
 *
 * Words are collected in one buffer, group by group, and written out in the order of the
 * protocol at the end: F X R E S L D T G P. */
#ifndef SCHEDULER_RULER_BATCH_H
#define SCHEDULER_RULER_BATCH_H

#include "scheduler/ruler_state.h"

MUST_USE int ruler_batch_open(struct ruler_admit *admit);
void ruler_batch_close(struct ruler_admit *admit);

/* Empties it; families that were in it are no longer marked as such. */
void ruler_batch_clear(struct ruler_admit *admit);

/* Whether one more job fits. */
bool ruler_batch_has_room(const struct ruler_admit *admit);

/* Whether it puts named prefixes: they are in Redis when it is. */
bool ruler_batch_puts(const struct ruler_admit *admit);

/* Adds a word to the item that is being made, and counts it. */
void ruler_batch_word(struct ruler_admit *admit, enum ruler_group group,
                      struct span word);
void ruler_batch_number(struct ruler_admit *admit, enum ruler_group group,
                        uint64_t value);
void ruler_batch_item(struct ruler_admit *admit, enum ruler_group group);

/* The same for a word that was appended to admit->bytes from `from` on. */
void ruler_batch_tail(struct ruler_admit *admit, enum ruler_group group, size_t from);

/* The place of a family in it, made if need be. */
struct ruler_batch_family *ruler_batch_family(struct ruler *ruler, uint32_t family);

void ruler_batch_push(struct ruler *ruler, uint32_t family, enum event_list list,
                      const struct protocol_element *element);

/* Writes the call; room was checked by ruler_batch_fits. */
bool ruler_batch_fits(const struct ruler *ruler, const struct call_list *out);
void ruler_batch_send(struct ruler *ruler, struct call_list *out);

/* Tells the core of the jobs in it. */
void ruler_batch_tell(struct ruler *ruler, uint64_t now_ms);

#endif
