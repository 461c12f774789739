#include "scheduler/core/lineage.h"
#include "tests/lib/suite.h"

#define SHARED   LINEAGE_SHARED
#define MARKED   LINEAGE_MARKED
#define MARKABLE LINEAGE_MARKABLE
#define MINIMUM  1024

enum {
	T = 1,
	S = 2,
	M = 4
};

/* A chain T, S, M with these flags, each node 10,000 tokens longer than the one above. */
static struct lineage
chain_of(uint32_t t, uint32_t s, uint32_t m)
{
	return (struct lineage){
		.nodes = { { .tokens = 10000, .flags = t },
		           { .tokens = 20000, .flags = s },
		           { .tokens = 30000, .flags = m } },
		.count = 3,
	};
}

static uint32_t
gates_of(struct lineage chain)
{
	return lineage_gates(&chain, true, MINIMUM);
}

START_TEST(lineage_marks_the_leaf_and_the_deepest_shared_ancestor)
{
	uint32_t all = SHARED | MARKABLE;

	ck_assert_uint_eq(gates_of(chain_of(all, all, all)), S | M);
	ck_assert_uint_eq(gates_of(chain_of(all, MARKABLE, all)), T | M);
	ck_assert_uint_eq(gates_of(chain_of(all, all, MARKABLE)), S);
	ck_assert_uint_eq(gates_of(chain_of(MARKABLE, MARKABLE, MARKABLE)), 0);
}
END_TEST

START_TEST(lineage_needs_no_second_marker_where_the_user_put_one)
{
	uint32_t all = SHARED | MARKABLE;

	ck_assert_uint_eq(gates_of(chain_of(SHARED | MARKED, all, all)), T | M);
	ck_assert_uint_eq(gates_of(chain_of(SHARED | MARKED, SHARED | MARKED, all)),
	                  T | S | M);
	ck_assert_uint_eq(gates_of(chain_of(all, all, SHARED | MARKED)), S | M);
}
END_TEST

START_TEST(lineage_a_marker_of_the_users_on_private_history_gates_nobody)
{
	uint32_t all = SHARED | MARKABLE;

	ck_assert_uint_eq(gates_of(chain_of(all, all, MARKED)), S);
	ck_assert_uint_eq(gates_of(chain_of(all, MARKED, MARKED)), T);
}
END_TEST

START_TEST(lineage_leaves_out_what_cannot_be_marked)
{
	uint32_t all = SHARED | MARKABLE;

	ck_assert_uint_eq(gates_of(chain_of(all, all, SHARED)), S);
	ck_assert_uint_eq(gates_of(chain_of(all, SHARED, all)), T | M);
	ck_assert_uint_eq(gates_of(chain_of(SHARED, SHARED, SHARED)), 0);
}
END_TEST

START_TEST(lineage_leaves_out_what_is_below_the_minimum)
{
	uint32_t all = SHARED | MARKABLE;
	struct lineage chain = chain_of(all, all, all);

	chain.nodes[0].tokens = MINIMUM - 1;
	chain.nodes[1].tokens = MINIMUM - 1;
	ck_assert_uint_eq(gates_of(chain), M);
	chain.nodes[1].tokens = MINIMUM;
	ck_assert_uint_eq(gates_of(chain), S | M);
	chain.nodes[1].tokens = 0; /* unknown is not small */
	ck_assert_uint_eq(gates_of(chain), S | M);
}
END_TEST

START_TEST(lineage_without_markers_every_shared_node_gates)
{
	struct lineage chain = chain_of(SHARED, 0, SHARED);

	ck_assert_uint_eq(lineage_gates(&chain, false, 0), T | M);
	chain.nodes[0].tokens = 100;
	ck_assert_uint_eq(lineage_gates(&chain, false, MINIMUM), M);
}
END_TEST

START_TEST(lineage_of_one_node_has_no_ancestor)
{
	struct lineage chain = {
		.nodes = { { .tokens = 5000, .flags = SHARED | MARKABLE } }, .count = 1
	};

	ck_assert_uint_eq(gates_of(chain), T);
	chain.nodes[0].flags = MARKABLE;
	ck_assert_uint_eq(gates_of(chain), 0);
}
END_TEST

START_TEST(lineage_what_no_gate_covers_is_paid_by_each_job)
{
	struct lineage chain = chain_of(0, 0, 0);

	ck_assert_uint_eq(lineage_ungated(&chain, 0), 30000);
	ck_assert_uint_eq(lineage_ungated(&chain, T), 20000);
	ck_assert_uint_eq(lineage_ungated(&chain, T | S), 10000);
	ck_assert_uint_eq(lineage_ungated(&chain, M), 0);
	chain.nodes[2].tokens = 0; /* unknown */
	ck_assert_uint_eq(lineage_ungated(&chain, S), 0);
}
END_TEST

START_TEST(lineage_an_empty_chain_dies)
{
	struct lineage chain = { .count = 0 };

	(void)gates_of(chain);
}
END_TEST

SUITE_MAIN_WITH_DEATHS(
	"core_lineage",
	SUITE_LIST(lineage_marks_the_leaf_and_the_deepest_shared_ancestor,
                   lineage_needs_no_second_marker_where_the_user_put_one,
                   lineage_a_marker_of_the_users_on_private_history_gates_nobody,
                   lineage_leaves_out_what_cannot_be_marked,
                   lineage_leaves_out_what_is_below_the_minimum,
                   lineage_without_markers_every_shared_node_gates,
                   lineage_of_one_node_has_no_ancestor,
                   lineage_what_no_gate_covers_is_paid_by_each_job),
	SUITE_LIST(lineage_an_empty_chain_dies))
