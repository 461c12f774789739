#include "common/table.h"

static uint32_t
slots_for(uint32_t entries_max)
{
	uint32_t slots = 4;

	while (slots / 4 * 3 < entries_max)
		slots *= 2;
	return slots;
}

size_t
table_size(uint32_t entries_max)
{
	VERIFY(entries_max > 0);
	VERIFY(entries_max <= TABLE_MAX);
	return (size_t)slots_for(entries_max) * sizeof(struct table_slot);
}

void
table_init(struct table *table, void *memory, uint32_t entries_max)
{
	VERIFY(memory);
	VERIFY(entries_max > 0);
	VERIFY(entries_max <= TABLE_MAX);
	*table = (struct table){
		.slots = memory,
		.slots_count = slots_for(entries_max),
		.entries_max = entries_max,
	};
	table_clear(table);
}

void
table_clear(struct table *table)
{
	memset(table->slots, 0, (size_t)table->slots_count * sizeof *table->slots);
	for (uint32_t i = 0; i < table->slots_count; i++)
		table->slots[i].value = TABLE_NONE;
	table->count = 0;
}

/* Ids are hashes already, but callers also put counters in them: one multiplication
 * spreads both halves into the bits that the mask keeps. */
static uint32_t
home_of(const struct table *table, struct id128 id)
{
	uint64_t mixed = (id.low ^ (id.high << 1 | id.high >> 63)) * 0x9e3779b97f4a7c15;

	return (uint32_t)(mixed >> 32) & (table->slots_count - 1);
}

static uint32_t
after(const struct table *table, uint32_t slot)
{
	return (slot + 1) & (table->slots_count - 1);
}

/* The slot of `id`, or the free slot where it would go.  There always is a free one. */
static uint32_t
slot_of(const struct table *table, struct id128 id)
{
	uint32_t slot = home_of(table, id);

	while (table->slots[slot].value != TABLE_NONE &&
	       !id_equals(table->slots[slot].id, id))
		slot = after(table, slot);
	return slot;
}

uint32_t
table_find(const struct table *table, struct id128 id)
{
	return table->slots[slot_of(table, id)].value;
}

int
table_put(struct table *table, struct id128 id, uint32_t value)
{
	struct table_slot *slot = &table->slots[slot_of(table, id)];

	VERIFY(value != TABLE_NONE);
	if (slot->value == TABLE_NONE) {
		if (table->count == table->entries_max)
			return ERR_FULL;
		slot->id = id;
		table->count++;
	}
	slot->value = value;
	return 0;
}

/* Whether an entry whose home is `home` may move from `from` back to `hole`: only if
 * its home does not lie behind the hole, on the way round from hole to from. */
static bool
may_move(const struct table *table, uint32_t home, uint32_t hole, uint32_t from)
{
	uint32_t mask = table->slots_count - 1;

	return ((from - home) & mask) >= ((from - hole) & mask);
}

bool
table_remove(struct table *table, struct id128 id)
{
	uint32_t hole = slot_of(table, id);

	if (table->slots[hole].value == TABLE_NONE)
		return false;

	for (uint32_t from = after(table, hole); table->slots[from].value != TABLE_NONE;
	     from = after(table, from)) {
		if (!may_move(table, home_of(table, table->slots[from].id), hole, from))
			continue;
		table->slots[hole] = table->slots[from];
		hole = from;
	}
	table->slots[hole] = (struct table_slot){ .value = TABLE_NONE };
	table->count--;
	return true;
}

void
table_audit(const struct table *table)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < table->slots_count; i++) {
		if (table->slots[i].value == TABLE_NONE)
			continue;
		count++;
		VERIFY(slot_of(table, table->slots[i].id) == i);
	}
	VERIFY(count == table->count);
	VERIFY(count <= table->entries_max);
	VERIFY(count < table->slots_count);
}
