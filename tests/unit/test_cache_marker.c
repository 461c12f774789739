/* Markers: which prefixes of a request become entries, and how far back from each marker
 * the provider looks for one. */
#include "tests/lib/cache_rig.h"
#include "tests/lib/suite.h"

#include <stdlib.h>

/* --- what is written --------------------------------------------------------------- */

START_TEST(cache_unmarked_request_reads_and_writes_nothing)
{
	struct cache_model *model = rig_model();
	struct draft draft = draft_job(0);
	struct cache_usage usage;

	rig_run_job(model, 0, 0);
	draft.blocks[0].marker = CACHE_MARKER_NONE;
	usage = rig_run(model, 1, &draft);
	ck_assert_uint_eq(usage.read_tokens, 0);
	ck_assert_uint_eq(usage.written_tokens, 0);
	ck_assert_uint_eq(usage.uncached_tokens, PREFIX + 50);
	free(model);
}
END_TEST

START_TEST(cache_below_minimum_is_silently_zero)
{
	struct cache_model *model = rig_model();
	struct cache_usage usage;

	for (uint32_t tokens = 1023; tokens <= 1024; tokens++) {
		struct draft draft = draft_of(tokens, tokens, CACHE_MARKER_5M);

		for (int i = 0; i < 2; i++)
			usage = rig_run(model, 0, &draft);
		ck_assert_uint_eq(usage.written_tokens, 0);
		ck_assert_uint_eq(usage.read_tokens, tokens == 1024 ? 1024 : 0);
	}
	free(model);
}
END_TEST

START_TEST(cache_minimum_counts_the_whole_prefix_not_the_block)
{
	struct cache_model *model = rig_model();
	struct draft draft = draft_of(1, 1000, CACHE_MARKER_5M);

	draft_add(&draft, 2, 24, CACHE_MARKER_5M);
	ck_assert_uint_eq(rig_run(model, 0, &draft).written_tokens, 1024);
	free(model);
}
END_TEST

START_TEST(cache_fifth_marker_is_refused)
{
	struct draft draft;

	draft_init(&draft);
	for (uint64_t i = 0; i < 4; i++)
		draft_add(&draft, i, 2000, CACHE_MARKER_5M);
	ck_assert_int_eq(cache_request_judge(&draft.request), CACHE_VERDICT_OK);
	draft_add(&draft, 4, 2000, CACHE_MARKER_5M);
	ck_assert_int_eq(cache_request_judge(&draft.request),
	                 CACHE_VERDICT_TOO_MANY_MARKERS);
}
END_TEST

START_TEST(cache_one_hour_after_five_minutes_is_refused)
{
	struct draft draft = draft_of(1, 2000, CACHE_MARKER_1H);

	draft_add(&draft, 2, 2000, CACHE_MARKER_5M);
	ck_assert_int_eq(cache_request_judge(&draft.request), CACHE_VERDICT_OK);
	draft.blocks[0].marker = CACHE_MARKER_5M;
	draft.blocks[1].marker = CACHE_MARKER_1H;
	ck_assert_int_eq(cache_request_judge(&draft.request), CACHE_VERDICT_TTL_ORDER);
}
END_TEST

START_TEST(cache_mixed_ttl_bills_read_then_hour_then_five_minutes)
{
	struct cache_model *model = rig_model();
	struct draft draft = draft_of(1, 2000, CACHE_MARKER_1H);
	struct cache_usage usage;

	rig_run(model, 0, &draft);
	draft_add(&draft, 2, 300, CACHE_MARKER_1H);
	draft_add(&draft, 3, 40, CACHE_MARKER_5M);
	draft_add(&draft, 4, 5, CACHE_MARKER_NONE);
	usage = rig_run(model, 1, &draft);
	ck_assert_uint_eq(usage.read_tokens, 2000);
	ck_assert_uint_eq(usage.written_1h_tokens, 300);
	ck_assert_uint_eq(usage.written_5m_tokens, 40);
	ck_assert_uint_eq(usage.written_tokens, 340);
	ck_assert_uint_eq(usage.uncached_tokens, 5);
	free(model);
}
END_TEST

START_TEST(cache_two_markers_let_a_sibling_read_the_shared_part)
{
	struct cache_model *model = rig_model();
	struct cache_usage usage;

	for (uint64_t document = 0; document < 2; document++) {
		struct draft draft = draft_of(1, 5000, CACHE_MARKER_5M);

		draft_add(&draft, 10 + document, 20000, CACHE_MARKER_5M);
		usage = rig_run(model, 0, &draft);
	}
	ck_assert_uint_eq(usage.read_tokens, 5000);
	ck_assert_uint_eq(usage.written_tokens, 20000);
	ck_assert_uint_eq(cache_model_stats(model).writes, 2);
	ck_assert_uint_eq(cache_model_stats(model).duplicate_writes, 0);
	ck_assert_uint_eq(cache_model_stats(model).node_writes, 3);
	free(model);
}
END_TEST

START_TEST(cache_deep_read_keeps_a_marked_ancestor_alive)
{
	struct cache_model *model = rig_model();
	struct draft shallow = draft_of(1, 5000, CACHE_MARKER_5M);
	struct draft deep = draft_of(1, 5000, CACHE_MARKER_5M);

	draft_add(&deep, 2, 5000, CACHE_MARKER_5M);
	rig_run(model, 0, &deep);
	rig_run(model, 200 * SECOND_US, &deep);
	ck_assert_uint_eq(rig_run(model, 400 * SECOND_US, &shallow).read_tokens, 5000);
	free(model);
}
END_TEST

START_TEST(cache_deep_read_restores_a_lost_ancestor_free_of_charge)
{
	struct cache_model *model = rig_model();
	struct draft shallow = draft_of(1, 5000, CACHE_MARKER_5M);
	struct draft deep = draft_of(1, 5000, CACHE_MARKER_NONE);

	draft_add(&deep, 2, 5000, CACHE_MARKER_5M);
	rig_run(model, 0, &deep);
	deep.blocks[0].marker = CACHE_MARKER_5M;
	ck_assert_uint_eq(rig_run(model, 1, &deep).written_tokens, 0);
	ck_assert_uint_eq(rig_run(model, 2, &shallow).read_tokens, 5000);
	ck_assert_uint_eq(cache_model_stats(model).writes, 1);
	free(model);
}
END_TEST

/* --- lookback ---------------------------------------------------------------------- */

/* Writes a prefix, then asks again with `count` blocks of `kind` after it and the
 * marker on the last one.  Answers what was read. */
static uint32_t
read_after(uint32_t count, enum cache_block_kind kind)
{
	struct cache_model *model = rig_model();
	struct draft draft = draft_of(1, 2000, CACHE_MARKER_5M);
	uint32_t read_tokens;

	rig_run(model, 0, &draft);
	draft.blocks[0].marker = CACHE_MARKER_NONE;
	for (uint32_t i = 0; i < count; i++)
		draft_add_kind(&draft, 10 + i, 10, kind);
	draft.blocks[count].marker = CACHE_MARKER_5M;
	read_tokens = rig_run(model, 1, &draft).read_tokens;
	free(model);
	return read_tokens;
}

START_TEST(cache_lookback_sees_twenty_positions_the_marker_being_the_first)
{
	ck_assert_uint_eq(read_after(19, CACHE_BLOCK_PLAIN), 2000);
	ck_assert_uint_eq(read_after(20, CACHE_BLOCK_PLAIN), 0);
}
END_TEST

START_TEST(cache_lookback_misses_behind_25_text_blocks)
{
	ck_assert_uint_eq(read_after(25, CACHE_BLOCK_PLAIN), 0);
}
END_TEST

START_TEST(cache_lookback_hits_behind_25_parallel_tool_calls)
{
	ck_assert_uint_eq(read_after(25, CACHE_BLOCK_TOOL_USE), 2000);
	ck_assert_uint_eq(read_after(25, CACHE_BLOCK_TOOL_RESULT), 2000);
}
END_TEST

START_TEST(cache_lookback_counts_each_run_of_tools_once)
{
	struct cache_model *model = rig_model();
	struct draft draft = draft_of(1, 2000, CACHE_MARKER_5M);

	/* 9 x (3 tool_use, 3 tool_result) = 18 positions, and the prefix at the 19th. */
	rig_run(model, 0, &draft);
	draft.blocks[0].marker = CACHE_MARKER_NONE;
	for (uint64_t i = 0; i < 54; i++)
		draft_add_kind(&draft, 10 + i, 10,
		               i / 3 % 2 ? CACHE_BLOCK_TOOL_RESULT
		                         : CACHE_BLOCK_TOOL_USE);
	draft.blocks[54].marker = CACHE_MARKER_5M;
	ck_assert_uint_eq(rig_run(model, 1, &draft).read_tokens, 2000);
	free(model);
}
END_TEST

START_TEST(cache_second_marker_has_a_lookback_of_its_own)
{
	struct cache_model *model = rig_model();
	struct draft draft = draft_of(1, 2000, CACHE_MARKER_5M);

	rig_run(model, 0, &draft);
	for (uint64_t i = 0; i < 30; i++)
		draft_add(&draft, 10 + i, 10, CACHE_MARKER_NONE);
	draft.blocks[30].marker = CACHE_MARKER_5M;
	ck_assert_uint_eq(rig_run(model, 1, &draft).read_tokens, 2000);
	free(model);
}
END_TEST

START_TEST(cache_lookback_never_reads_what_was_not_marked)
{
	struct cache_model *model = rig_model();
	struct draft draft = draft_of(1, 2000, CACHE_MARKER_NONE);

	draft_add(&draft, 2, 2000, CACHE_MARKER_5M);
	rig_run(model, 0, &draft);
	draft.blocks[0].marker = CACHE_MARKER_5M;
	draft.blocks[1].hash.low = 3;
	ck_assert_uint_eq(rig_run(model, 1, &draft).read_tokens, 0);
	free(model);
}
END_TEST

SUITE_MAIN("cache_marker", cache_unmarked_request_reads_and_writes_nothing,
           cache_below_minimum_is_silently_zero,
           cache_minimum_counts_the_whole_prefix_not_the_block,
           cache_fifth_marker_is_refused, cache_one_hour_after_five_minutes_is_refused,
           cache_mixed_ttl_bills_read_then_hour_then_five_minutes,
           cache_two_markers_let_a_sibling_read_the_shared_part,
           cache_deep_read_keeps_a_marked_ancestor_alive,
           cache_deep_read_restores_a_lost_ancestor_free_of_charge,
           cache_lookback_sees_twenty_positions_the_marker_being_the_first,
           cache_lookback_misses_behind_25_text_blocks,
           cache_lookback_hits_behind_25_parallel_tool_calls,
           cache_lookback_counts_each_run_of_tools_once,
           cache_second_marker_has_a_lookback_of_its_own,
           cache_lookback_never_reads_what_was_not_marked)
