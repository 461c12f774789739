#include "common/prng.h"
#include "common/table.h"
#include "tests/lib/suite.h"

#define ENTRIES 100

static _Alignas(8) char memory[8192];

static struct table
fresh(uint32_t entries_max)
{
	struct table table;

	ck_assert_uint_le(table_size(entries_max), sizeof memory);
	memset(memory, 0xa5, sizeof memory); /* init must not rely on zeros */
	table_init(&table, memory, entries_max);
	return table;
}

static struct id128
id_from(uint64_t i)
{
	return (struct id128){ 0, i };
}

START_TEST(table_finds_what_was_put_and_nothing_else)
{
	struct table table = fresh(ENTRIES);

	ck_assert_uint_eq(table_find(&table, id_from(1)), TABLE_NONE);
	for (uint32_t i = 0; i < ENTRIES; i++)
		ck_assert_int_eq(table_put(&table, id_from(i), i * 2), 0);
	for (uint32_t i = 0; i < ENTRIES; i++)
		ck_assert_uint_eq(table_find(&table, id_from(i)), i * 2);
	ck_assert_uint_eq(table_find(&table, id_from(ENTRIES)), TABLE_NONE);
	table_audit(&table);
}
END_TEST

START_TEST(table_put_replaces_the_value_of_a_known_id)
{
	struct table table = fresh(1);

	ck_assert_int_eq(table_put(&table, id_from(5), 1), 0);
	ck_assert_int_eq(table_put(&table, id_from(5), 2), 0);
	ck_assert_uint_eq(table.count, 1);
	ck_assert_uint_eq(table_find(&table, id_from(5)), 2);
}
END_TEST

START_TEST(table_full_refuses_new_ids_and_stays_whole)
{
	struct table table = fresh(3);

	for (uint32_t i = 0; i < 3; i++)
		ck_assert_int_eq(table_put(&table, id_from(i), i), 0);
	ck_assert_int_eq(table_put(&table, id_from(3), 3), ERR_FULL);
	ck_assert_int_eq(table_put(&table, id_from(2), 9), 0);
	ck_assert(table_remove(&table, id_from(0)));
	ck_assert_int_eq(table_put(&table, id_from(3), 3), 0);
	table_audit(&table);
}
END_TEST

START_TEST(table_remove_keeps_displaced_followers_reachable)
{
	struct table table = fresh(ENTRIES);
	bool in[4 * ENTRIES] = { false };
	struct prng prng;

	/* 20,000 random puts and removes against a plain array. */
	prng_init(&prng, 11);
	for (int step = 0; step < 20000; step++) {
		uint32_t i = (uint32_t)prng_below(&prng, ARRAY_SIZE(in));

		if (prng_chance(&prng, 500)) {
			ck_assert(table_remove(&table, id_from(i)) == in[i]);
			in[i] = false;
		} else if (table_put(&table, id_from(i), i) == 0) {
			in[i] = true;
		} else {
			ck_assert(!in[i]);
			ck_assert_uint_eq(table.count, ENTRIES);
		}
		if (step % 100 == 0)
			table_audit(&table);
	}
	for (uint32_t i = 0; i < ARRAY_SIZE(in); i++)
		ck_assert_uint_eq(table_find(&table, id_from(i)), in[i] ? i : TABLE_NONE);
}
END_TEST

START_TEST(table_size_leaves_a_quarter_free)
{
	for (uint32_t entries = 1; entries < 5000; entries++) {
		size_t slots = table_size(entries) / sizeof(struct table_slot);

		ck_assert_uint_le(entries, slots / 4 * 3);
		ck_assert_uint_eq(slots & (slots - 1), 0);
	}
}
END_TEST

START_TEST(table_the_value_none_dies)
{
	struct table table = fresh(1);

	(void)!table_put(&table, id_from(1), TABLE_NONE);
}
END_TEST

SUITE_MAIN_WITH_DEATHS("table",
                       SUITE_LIST(table_finds_what_was_put_and_nothing_else,
                                  table_put_replaces_the_value_of_a_known_id,
                                  table_full_refuses_new_ids_and_stays_whole,
                                  table_remove_keeps_displaced_followers_reachable,
                                  table_size_leaves_a_quarter_free),
                       SUITE_LIST(table_the_value_none_dies))
