/* table.h - a dictionary of fixed capacity: id128 -> index of something in an array.
 *
 *   slots   [ id A | 7 ][ none ][ id B | 2 ][ id C | 9 ][ none ] ...
 *               ▲ home of A         ▲ home of B and C: C sits in the next free slot
 *
 * Open addressing with linear probing, at most three quarters full.  Removal shifts the
 * followers back, so there are no tombstones, a lookup never gets slower with age, and
 * the layout depends only on the ids that are in it and their order of arrival.
 *
 * The memory is the caller's: table_size() bytes, aligned to 8.  Values are below
 * TABLE_NONE. */
#ifndef COMMON_TABLE_H
#define COMMON_TABLE_H

#include "common/base.h"
#include "common/error.h"
#include "common/id.h"

#define TABLE_NONE UINT32_MAX
#define TABLE_MAX  (1u << 30) /* entries */

struct table_slot {
	struct id128 id;
	uint32_t value; /* TABLE_NONE = this slot is free */
	uint32_t padding;
};

struct table {
	struct table_slot *slots;
	uint32_t slots_count; /* a power of two */
	uint32_t entries_max;
	uint32_t count;
};

/* Bytes of memory for `entries_max` entries (1 to TABLE_MAX). */
size_t table_size(uint32_t entries_max);

void table_init(struct table *table, void *memory, uint32_t entries_max);
void table_clear(struct table *table);

/* The value of `id`, or TABLE_NONE. */
uint32_t table_find(const struct table *table, struct id128 id);

/* Adds `id` or replaces its value.  ERR_FULL when a new id finds no room. */
MUST_USE int table_put(struct table *table, struct id128 id, uint32_t value);

/* Answers whether `id` was there. */
bool table_remove(struct table *table, struct id128 id);

/* VERIFYs that every entry can be found and the count is right; O(n). */
void table_audit(const struct table *table);

#endif
