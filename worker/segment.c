#include "worker/segment.h"

#include "worker/model_name.h"

#include <stdlib.h>

int
segment_init(struct segment_cache *cache, uint32_t count_max, size_t size_max)
{
	*cache = (struct segment_cache){ .count_max = count_max, .size_max = size_max };
	cache->table_memory = malloc(table_size(count_max));
	cache->segments = calloc(count_max, sizeof(struct segment *));
	cache->unused = calloc(count_max, sizeof *cache->unused);
	if (!cache->table_memory || !cache->segments || !cache->unused) {
		segment_fini(cache);
		return ERR_MEMORY;
	}
	table_init(&cache->table, cache->table_memory, count_max);
	for (uint32_t i = 0; i < count_max; i++)
		cache->unused[cache->unused_count++] = count_max - 1 - i;
	return 0;
}

static void
free_segment(struct segment *segment)
{
	free(segment->bytes);
	free(segment->model_text);
	free(segment);
}

void
segment_fini(struct segment_cache *cache)
{
	for (uint32_t i = 0; cache->segments && i < cache->count_max; i++) {
		if (cache->segments[i])
			free_segment(cache->segments[i]);
	}
	free(cache->table_memory);
	free(cache->segments);
	free(cache->unused);
	*cache = (struct segment_cache){ 0 };
}

static void
take_off_idle(struct segment_cache *cache, struct segment *segment)
{
	if (segment->previous)
		segment->previous->next = segment->next;
	else
		cache->idle_first = segment->next;
	if (segment->next)
		segment->next->previous = segment->previous;
	else
		cache->idle_last = segment->previous;
	segment->previous = NULL;
	segment->next = NULL;
}

static void
put_on_idle(struct segment_cache *cache, struct segment *segment)
{
	segment->previous = cache->idle_last;
	segment->next = NULL;
	if (cache->idle_last)
		cache->idle_last->next = segment;
	else
		cache->idle_first = segment;
	cache->idle_last = segment;
}

static void
forget(struct segment_cache *cache, struct segment *segment)
{
	uint32_t value = table_find(&cache->table, segment->id);

	VERIFY(value != TABLE_NONE);
	VERIFY(cache->segments[value] == segment);
	(void)table_remove(&cache->table, segment->id);
	cache->segments[value] = NULL;
	cache->unused[cache->unused_count++] = value;
	cache->size -= segment->size;
	free_segment(segment);
}

static void
evict_oldest(struct segment_cache *cache)
{
	struct segment *segment = cache->idle_first;

	take_off_idle(cache, segment);
	forget(cache, segment);
}

struct segment *
segment_find(struct segment_cache *cache, struct id128 id)
{
	uint32_t value = table_find(&cache->table, id);
	struct segment *segment;

	if (value == TABLE_NONE)
		return NULL;
	segment = cache->segments[value];
	if (segment->holders++ == 0)
		take_off_idle(cache, segment);
	return segment;
}

struct segment *
segment_add(struct segment_cache *cache, struct id128 id)
{
	struct segment *segment;
	uint32_t value;

	if (cache->unused_count == 0 && cache->idle_first)
		evict_oldest(cache);
	if (cache->unused_count == 0)
		return NULL;
	segment = calloc(1, sizeof *segment);
	if (!segment)
		return NULL;
	value = cache->unused[cache->unused_count - 1];
	if (table_put(&cache->table, id, value) < 0) {
		free(segment);
		return NULL;
	}
	cache->unused_count--;
	cache->segments[value] = segment;
	segment->id = id;
	segment->holders = 1;
	return segment;
}

void
segment_fill(struct segment_cache *cache, struct segment *segment, struct span value)
{
	segment->state = SEGMENT_FAILED;
	segment->bytes = malloc(value.len + 1);
	if (!segment->bytes)
		return;
	memcpy(segment->bytes, value.data, value.len);
	segment->bytes[value.len] = '\0';
	segment->size = value.len;
	cache->size += value.len;
	if (part_px_read((struct span){ segment->bytes, value.len }, &segment->px) < 0)
		return;
	if (segment->px.tier == TIER_TOOLS)
		segment->model_text = model_name_dup(segment->px.segment);
	segment->model = span_from(segment->model_text);
	segment->state = SEGMENT_READY;
}

void
segment_fail(struct segment *segment)
{
	segment->state = SEGMENT_FAILED;
}

void
segment_let_go(struct segment_cache *cache, struct segment *segment)
{
	VERIFY(segment->holders > 0);
	if (--segment->holders > 0)
		return;
	if (segment->state != SEGMENT_READY) {
		forget(cache, segment);
		return;
	}
	put_on_idle(cache, segment);
	while (cache->size > cache->size_max && cache->idle_first)
		evict_oldest(cache);
}
