/* ruler_shelf.h - a bounded set of ids, each with a place, in the order of last use.
 *
 *   ids      [ C ][ A ][ - ][ B ]        a place is an index into the caller's array
 *   order    oldest B ◄─► A ◄─► C newest
 *
 * The shelf never throws anything out by itself: the caller asks for the oldest and
 * decides.  Memory is taken once, when it is made. */
#ifndef SCHEDULER_RULER_SHELF_H
#define SCHEDULER_RULER_SHELF_H

#include "common/base.h"
#include "common/error.h"
#include "common/table.h"

#define RULER_SHELF_NONE UINT32_MAX

struct ruler_shelf_place {
	struct id128 id;
	uint32_t newer, older; /* `newer` of a free place: the next free one */
};

struct ruler_shelf {
	struct table table;
	void *table_memory;
	struct ruler_shelf_place *places;
	uint32_t places_max;
	uint32_t count;
	uint32_t newest, oldest, free;
};

/* ERR_MEMORY leaves a shelf that may be closed. */
MUST_USE int ruler_shelf_open(struct ruler_shelf *shelf, uint32_t places_max);
void ruler_shelf_close(struct ruler_shelf *shelf);
void ruler_shelf_clear(struct ruler_shelf *shelf);

/* The place of `id`, or RULER_SHELF_NONE. */
uint32_t ruler_shelf_find(const struct ruler_shelf *shelf, struct id128 id);

/* Gives a new id a place and makes it the newest.  There must be room. */
uint32_t ruler_shelf_add(struct ruler_shelf *shelf, struct id128 id);
void ruler_shelf_touch(struct ruler_shelf *shelf, uint32_t place);
void ruler_shelf_remove(struct ruler_shelf *shelf, uint32_t place);

static inline bool
ruler_shelf_is_full(const struct ruler_shelf *shelf)
{
	return shelf->count == shelf->places_max;
}

#endif
