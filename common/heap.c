#include "common/heap.h"

size_t
heap_size(uint32_t items_max)
{
	VERIFY(items_max > 0);
	VERIFY(items_max < HEAP_NONE);
	return (size_t)items_max * (sizeof(struct heap_node) + sizeof(uint32_t));
}

void
heap_init(struct heap *heap, void *memory, uint32_t items_max)
{
	struct heap_node *nodes = memory;

	VERIFY(memory);
	VERIFY(items_max > 0);
	*heap = (struct heap){
		.nodes = nodes,
		.places = (uint32_t *)(void *)(nodes + items_max),
		.items_max = items_max,
	};
	for (uint32_t i = 0; i < items_max; i++)
		heap->places[i] = HEAP_NONE;
}

static bool
precedes(const struct heap_node *a, const struct heap_node *b)
{
	if (a->key != b->key)
		return a->key < b->key;
	return a->sequence < b->sequence;
}

static void
set(struct heap *heap, uint32_t place, struct heap_node node)
{
	heap->nodes[place] = node;
	heap->places[node.item] = place;
}

static void
sift_up(struct heap *heap, uint32_t place)
{
	struct heap_node node = heap->nodes[place];

	while (place > 0) {
		uint32_t parent = (place - 1) / 2;

		if (!precedes(&node, &heap->nodes[parent]))
			break;
		set(heap, place, heap->nodes[parent]);
		place = parent;
	}
	set(heap, place, node);
}

static void
sift_down(struct heap *heap, uint32_t place)
{
	struct heap_node node = heap->nodes[place];

	for (;;) {
		uint64_t child = (uint64_t)place * 2 + 1;

		if (child >= heap->count)
			break;
		if (child + 1 < heap->count &&
		    precedes(&heap->nodes[child + 1], &heap->nodes[child]))
			child++;
		if (!precedes(&heap->nodes[child], &node))
			break;
		set(heap, place, heap->nodes[child]);
		place = (uint32_t)child;
	}
	set(heap, place, node);
}

void
heap_put(struct heap *heap, uint32_t item, uint64_t key)
{
	uint32_t place;

	VERIFY(item < heap->items_max);
	place = heap->places[item];
	if (place == HEAP_NONE)
		place = heap->count++;
	else if (heap->nodes[place].key == key)
		return;

	set(heap, place,
	    (struct heap_node){
		    .key = key, .sequence = heap->sequence_next++, .item = item });
	sift_up(heap, place);
	sift_down(heap, heap->places[item]);
}

bool
heap_remove(struct heap *heap, uint32_t item)
{
	struct heap_node last;
	uint32_t place;

	VERIFY(item < heap->items_max);
	place = heap->places[item];
	if (place == HEAP_NONE)
		return false;

	heap->places[item] = HEAP_NONE;
	last = heap->nodes[--heap->count];
	if (last.item == item)
		return true;
	set(heap, place, last);
	sift_up(heap, place);
	sift_down(heap, heap->places[last.item]);
	return true;
}

bool
heap_contains(const struct heap *heap, uint32_t item)
{
	VERIFY(item < heap->items_max);
	return heap->places[item] != HEAP_NONE;
}

uint64_t
heap_key(const struct heap *heap, uint32_t item)
{
	VERIFY(heap_contains(heap, item));
	return heap->nodes[heap->places[item]].key;
}

uint32_t
heap_peek(const struct heap *heap)
{
	return heap->count > 0 ? heap->nodes[0].item : HEAP_NONE;
}

uint32_t
heap_pop(struct heap *heap)
{
	uint32_t item = heap_peek(heap);

	if (item != HEAP_NONE)
		(void)heap_remove(heap, item);
	return item;
}

void
heap_audit(const struct heap *heap)
{
	uint32_t placed = 0;

	VERIFY(heap->count <= heap->items_max);
	for (uint32_t i = 0; i < heap->count; i++) {
		VERIFY(heap->nodes[i].item < heap->items_max);
		VERIFY(heap->places[heap->nodes[i].item] == i);
		if (i > 0)
			VERIFY(!precedes(&heap->nodes[i], &heap->nodes[(i - 1) / 2]));
	}
	for (uint32_t i = 0; i < heap->items_max; i++)
		placed += heap->places[i] != HEAP_NONE;
	VERIFY(placed == heap->count);
}
