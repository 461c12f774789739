#include "scheduler/ruler_segments.h"

#include <stdlib.h>

int
ruler_segments_open(struct ruler_segments *segments, uint32_t count_max, size_t size_max)
{
	int err;

	*segments = (struct ruler_segments){ .size_max = size_max };
	err = ruler_shelf_open(&segments->shelf, count_max);
	if (err < 0)
		return err;
	segments->values = calloc(count_max, sizeof(*segments->values));
	return segments->values ? 0 : ERR_MEMORY;
}

static void
drop(struct ruler_segments *segments, uint32_t place)
{
	struct span *value = &segments->values[place];

	segments->size -= value->len;
	free((void *)(uintptr_t)value->data);
	*value = (struct span){ NULL, 0 };
	ruler_shelf_remove(&segments->shelf, place);
}

static void
clear(struct ruler_segments *segments)
{
	while (segments->shelf.count > 0)
		drop(segments, segments->shelf.oldest);
}

void
ruler_segments_close(struct ruler_segments *segments)
{
	if (segments->values)
		clear(segments);
	free(segments->values);
	ruler_shelf_close(&segments->shelf);
	*segments = (struct ruler_segments){ 0 };
}

struct span
ruler_segments_find(struct ruler_segments *segments, struct id128 id)
{
	uint32_t place = ruler_shelf_find(&segments->shelf, id);

	if (place == RULER_SHELF_NONE)
		return (struct span){ NULL, 0 };
	ruler_shelf_touch(&segments->shelf, place);
	return segments->values[place];
}

static void
remove_segment(struct ruler_segments *segments, struct id128 id)
{
	uint32_t place = ruler_shelf_find(&segments->shelf, id);

	if (place != RULER_SHELF_NONE)
		drop(segments, place);
}

void
ruler_segments_put(struct ruler_segments *segments, struct id128 id, struct span value)
{
	char *copy;

	remove_segment(segments, id);
	if (value.len > segments->size_max)
		return;
	while (segments->shelf.count > 0 &&
	       (ruler_shelf_is_full(&segments->shelf) ||
	        segments->size + value.len > segments->size_max))
		drop(segments, segments->shelf.oldest);
	copy = malloc(value.len + 1);
	if (!copy)
		return;
	if (value.len > 0)
		memcpy(copy, value.data, value.len);
	copy[value.len] = '\0';
	segments->values[ruler_shelf_add(&segments->shelf, id)] =
		(struct span){ copy, value.len };
	segments->size += value.len;
}
