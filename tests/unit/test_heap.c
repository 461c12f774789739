#include "common/heap.h"
#include "common/prng.h"
#include "tests/lib/suite.h"

#define ITEMS 64

static _Alignas(8) char memory[4096];

static struct heap
fresh(uint32_t items_max)
{
	struct heap heap;

	ck_assert_uint_le(heap_size(items_max), sizeof memory);
	heap_init(&heap, memory, items_max);
	return heap;
}

START_TEST(heap_empty_has_no_first_item)
{
	struct heap heap = fresh(1);

	ck_assert_uint_eq(heap_peek(&heap), HEAP_NONE);
	ck_assert_uint_eq(heap_pop(&heap), HEAP_NONE);
	ck_assert(!heap_remove(&heap, 0));
}
END_TEST

START_TEST(heap_items_leave_in_key_order)
{
	struct heap heap = fresh(4);

	heap_put(&heap, 0, 30);
	heap_put(&heap, 1, 10);
	heap_put(&heap, 2, UINT64_MAX);
	heap_put(&heap, 3, 20);
	heap_audit(&heap);
	ck_assert_uint_eq(heap_pop(&heap), 1);
	ck_assert_uint_eq(heap_pop(&heap), 3);
	ck_assert_uint_eq(heap_pop(&heap), 0);
	ck_assert_uint_eq(heap_pop(&heap), 2);
	ck_assert_uint_eq(heap.count, 0);
}
END_TEST

START_TEST(heap_equal_keys_leave_in_arrival_order)
{
	struct heap heap = fresh(ITEMS);

	for (uint32_t i = 0; i < ITEMS; i++)
		heap_put(&heap, (i * 37) % ITEMS, 5);
	for (uint32_t i = 0; i < ITEMS; i++)
		ck_assert_uint_eq(heap_pop(&heap), (i * 37) % ITEMS);
}
END_TEST

START_TEST(heap_putting_the_same_key_again_keeps_the_place)
{
	struct heap heap = fresh(2);

	heap_put(&heap, 0, 5);
	heap_put(&heap, 1, 5);
	heap_put(&heap, 0, 5);
	ck_assert_uint_eq(heap_peek(&heap), 0);
	heap_put(&heap, 0, 6);
	heap_put(&heap, 0, 5);
	ck_assert_uint_eq(heap_peek(&heap), 1);
}
END_TEST

/* The item that a sorted list would hand out. */
static uint32_t
first_by_scan(const uint64_t *keys, const uint64_t *arrivals, const bool *in)
{
	uint32_t best = HEAP_NONE;

	for (uint32_t i = 0; i < ITEMS; i++) {
		if (!in[i])
			continue;
		if (best == HEAP_NONE || keys[i] < keys[best] ||
		    (keys[i] == keys[best] && arrivals[i] < arrivals[best]))
			best = i;
	}
	return best;
}

START_TEST(heap_agrees_with_a_sorted_list_over_random_steps)
{
	uint64_t keys[ITEMS] = { 0 }, arrivals[ITEMS] = { 0 };
	struct heap heap = fresh(ITEMS);
	bool in[ITEMS] = { false };
	struct prng prng;

	prng_init(&prng, 2);
	for (uint64_t step = 1; step <= 20000; step++) {
		uint32_t item = (uint32_t)prng_below(&prng, ITEMS);
		uint64_t key = prng_below(&prng, 20);

		if (prng_chance(&prng, 300)) {
			SUITE_HOLDS(heap_remove(&heap, item) == in[item]);
			in[item] = false;
		} else {
			if (!in[item] || keys[item] != key)
				arrivals[item] = step;
			keys[item] = key;
			in[item] = true;
			heap_put(&heap, item, key);
			SUITE_HOLDS(heap_key(&heap, item) == key);
		}
		SUITE_HOLDS(heap_contains(&heap, item) == in[item]);
		SUITE_HOLDS(heap_peek(&heap) == first_by_scan(keys, arrivals, in));
		heap_audit(&heap);
	}
}
END_TEST

START_TEST(heap_an_item_beyond_the_limit_dies)
{
	struct heap heap = fresh(2);

	heap_put(&heap, 2, 0);
}
END_TEST

SUITE_MAIN_WITH_DEATHS("heap",
                       SUITE_LIST(heap_empty_has_no_first_item,
                                  heap_items_leave_in_key_order,
                                  heap_equal_keys_leave_in_arrival_order,
                                  heap_putting_the_same_key_again_keeps_the_place,
                                  heap_agrees_with_a_sorted_list_over_random_steps),
                       SUITE_LIST(heap_an_item_beyond_the_limit_dies))
