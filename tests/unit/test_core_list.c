#include "common/prng.h"
#include "scheduler/core/list.h"
#include "tests/lib/suite.h"

#define ITEMS 16

START_TEST(list_gives_back_in_order_of_arrival)
{
	struct link links[ITEMS];
	struct list list;

	list_init(&list);
	list_init_links(links, ITEMS);
	for (uint32_t i = 0; i < ITEMS; i++)
		list_push(&list, links, (i * 5) % ITEMS);
	for (uint32_t i = 0; i < ITEMS; i++)
		ck_assert_uint_eq(list_pop(&list, links), (i * 5) % ITEMS);
	ck_assert_uint_eq(list_pop(&list, links), LIST_NONE);
	list_audit(&list, links);
}
END_TEST

START_TEST(list_items_leave_from_anywhere)
{
	struct link links[ITEMS];
	struct list list;
	struct prng prng;
	bool in[ITEMS] = { false };

	list_init(&list);
	list_init_links(links, ITEMS);
	prng_init(&prng, 3);
	for (int step = 0; step < 10000; step++) {
		uint32_t i = (uint32_t)prng_below(&prng, ITEMS), count = 0;

		if (in[i])
			list_remove(&list, links, i);
		else
			list_push(&list, links, i);
		in[i] = !in[i];
		list_audit(&list, links);
		for (uint32_t k = 0; k < ITEMS; k++) {
			SUITE_HOLDS(links[k].in == in[k]);
			count += in[k];
		}
		SUITE_HOLDS(list.count == count);
	}
}
END_TEST

START_TEST(list_the_same_item_twice_dies)
{
	struct link links[ITEMS];
	struct list list;

	list_init(&list);
	list_init_links(links, ITEMS);
	list_push(&list, links, 1);
	list_push(&list, links, 1);
}
END_TEST

START_TEST(list_removing_what_is_not_in_it_dies)
{
	struct link links[ITEMS];
	struct list list;

	list_init(&list);
	list_init_links(links, ITEMS);
	list_push(&list, links, 1);
	list_remove(&list, links, 2);
}
END_TEST

SUITE_MAIN_WITH_DEATHS("core_list",
                       SUITE_LIST(list_gives_back_in_order_of_arrival,
                                  list_items_leave_from_anywhere),
                       SUITE_LIST(list_the_same_item_twice_dies,
                                  list_removing_what_is_not_in_it_dies))
