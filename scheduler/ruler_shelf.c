#include "scheduler/ruler_shelf.h"

#include <stdlib.h>

int
ruler_shelf_open(struct ruler_shelf *shelf, uint32_t places_max)
{
	VERIFY(places_max > 0 && places_max < TABLE_MAX);
	*shelf = (struct ruler_shelf){ .places_max = places_max };
	shelf->table_memory = malloc(table_size(places_max));
	shelf->places = calloc(places_max, sizeof(*shelf->places));
	if (!shelf->table_memory || !shelf->places)
		return ERR_MEMORY;
	table_init(&shelf->table, shelf->table_memory, places_max);
	ruler_shelf_clear(shelf);
	return 0;
}

void
ruler_shelf_close(struct ruler_shelf *shelf)
{
	free(shelf->table_memory);
	free(shelf->places);
	*shelf = (struct ruler_shelf){ 0 };
}

void
ruler_shelf_clear(struct ruler_shelf *shelf)
{
	table_clear(&shelf->table);
	for (uint32_t i = 0; i < shelf->places_max; i++)
		shelf->places[i].newer =
			i + 1 < shelf->places_max ? i + 1 : RULER_SHELF_NONE;
	shelf->free = 0;
	shelf->count = 0;
	shelf->newest = RULER_SHELF_NONE;
	shelf->oldest = RULER_SHELF_NONE;
}

uint32_t
ruler_shelf_find(const struct ruler_shelf *shelf, struct id128 id)
{
	return table_find(&shelf->table, id); /* TABLE_NONE is RULER_SHELF_NONE */
}

static void
link_newest(struct ruler_shelf *shelf, uint32_t place)
{
	struct ruler_shelf_place *it = &shelf->places[place];

	it->newer = RULER_SHELF_NONE;
	it->older = shelf->newest;
	if (shelf->newest == RULER_SHELF_NONE)
		shelf->oldest = place;
	else
		shelf->places[shelf->newest].newer = place;
	shelf->newest = place;
}

static void
unlink_place(struct ruler_shelf *shelf, uint32_t place)
{
	struct ruler_shelf_place *it = &shelf->places[place];

	if (it->newer == RULER_SHELF_NONE)
		shelf->newest = it->older;
	else
		shelf->places[it->newer].older = it->older;
	if (it->older == RULER_SHELF_NONE)
		shelf->oldest = it->newer;
	else
		shelf->places[it->older].newer = it->newer;
}

uint32_t
ruler_shelf_add(struct ruler_shelf *shelf, struct id128 id)
{
	uint32_t place = shelf->free;
	int err;

	VERIFY(place != RULER_SHELF_NONE);
	VERIFY(table_find(&shelf->table, id) == TABLE_NONE);
	shelf->free = shelf->places[place].newer;
	shelf->places[place].id = id;
	err = table_put(&shelf->table, id, place);
	VERIFY(err == 0);
	link_newest(shelf, place);
	shelf->count++;
	return place;
}

void
ruler_shelf_touch(struct ruler_shelf *shelf, uint32_t place)
{
	VERIFY(place < shelf->places_max);
	if (shelf->newest == place)
		return;
	unlink_place(shelf, place);
	link_newest(shelf, place);
}

void
ruler_shelf_remove(struct ruler_shelf *shelf, uint32_t place)
{
	bool found;

	VERIFY(place < shelf->places_max);
	found = table_remove(&shelf->table, shelf->places[place].id);
	VERIFY(found);
	unlink_place(shelf, place);
	shelf->places[place].newer = shelf->free;
	shelf->free = place;
	shelf->count--;
}
