/* ruler_home.h - where a family that stands in Redis belongs: its pool, account and
 * class.
 *
 *   record ── upstream, route, model ──► configuration ── differs ──► move
 *
 * The configuration may have changed since the record was written, and nobody may serve
 * its old pool or account.  What the configuration does not know any more stays where it
 * is.  Moves are collected page by page while the memory is rebuilt: also families that
 * find no room in it are moved. */
#ifndef SCHEDULER_RULER_HOME_H
#define SCHEDULER_RULER_HOME_H

#include "common/codec/protocol_record.h"
#include "scheduler/ruler_state.h"

#define RULER_HOME_MOVES 32 /* families of one call: some milliseconds */

/* Sets pool, budget and model of a family that was just read. */
void ruler_home_find(struct ruler *ruler, uint64_t now_ms, struct ruler_family *family,
                     const struct protocol_family *record);

/* Remembers to move it if its record says something else.  Beyond RULER_MOVES_MAX of one
 * page rebuild.moves_over says so: the page has to be read again then. */
void ruler_home_note(struct ruler *ruler, const struct ruler_family *family,
                     const struct protocol_family *record);

/* Sends some of them, those that go to the same place; false if none is left, and all is
 * ready for the next page. */
bool ruler_home_ask(struct ruler *ruler, struct call_list *out);

#endif
