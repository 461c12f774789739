/* heap.h - what is due next: a binary heap of item numbers, earliest key first.
 *
 *   item    0  1  2  3  4          an item is an index into the caller's array;
 *   place   2  -  0  -  1          the heap remembers where each one sits, so that
 *   nodes [ 2 | 4 | 0 ]            moving or removing any item is O(log n)
 *
 * Equal keys leave in the order in which they came (a sequence number breaks ties), so
 * the order never depends on the shape of the heap and a replay is exact.  An item is
 * in the heap at most once.
 *
 * The memory is the caller's: heap_size() bytes, aligned to 8. */
#ifndef COMMON_HEAP_H
#define COMMON_HEAP_H

#include "common/base.h"

#define HEAP_NONE UINT32_MAX

struct heap_node {
	uint64_t key;      /* usually a time in milliseconds */
	uint64_t sequence; /* order of arrival among equal keys */
	uint32_t item;
	uint32_t padding;
};

struct heap {
	struct heap_node *nodes;
	uint32_t *places; /* per item: index into nodes, HEAP_NONE = not in the heap */
	uint64_t sequence_next;
	uint32_t items_max;
	uint32_t count;
};

/* Bytes of memory for items 0 to items_max - 1. */
size_t heap_size(uint32_t items_max);

void heap_init(struct heap *heap, void *memory, uint32_t items_max);

/* Adds `item`, or moves it to `key`.  A new key makes it the last among its equals; the
 * same key again changes nothing. */
void heap_put(struct heap *heap, uint32_t item, uint64_t key);

/* Answers whether it was in the heap. */
bool heap_remove(struct heap *heap, uint32_t item);

bool heap_contains(const struct heap *heap, uint32_t item);

/* The key of an item that is in the heap. */
uint64_t heap_key(const struct heap *heap, uint32_t item);

/* The first item, or HEAP_NONE; pop also removes it. */
uint32_t heap_peek(const struct heap *heap);
uint32_t heap_pop(struct heap *heap);

/* VERIFYs order and places; O(n). */
void heap_audit(const struct heap *heap);

#endif
