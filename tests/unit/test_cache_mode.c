/* Providers that cache by other rules than markers: by themselves at every step, at
 * breakpoints, and on several machines that share nothing. */
#include "tests/lib/cache_rig.h"
#include "tests/lib/suite.h"

#include <stdlib.h>

static void
draft_implicit(struct draft *draft)
{
	draft_init(draft);
	draft->request.mode = CACHE_MODE_IMPLICIT;
	draft->request.step_tokens = 128;
}

static void
draft_breakpoints(struct draft *draft)
{
	draft_init(draft);
	draft->request.mode = CACHE_MODE_BREAKPOINTS;
}

START_TEST(cache_implicit_mode_reads_whole_steps_and_charges_no_write)
{
	struct cache_model *model = rig_model();
	struct cache_usage usage;
	struct cache_node node;

	for (uint64_t tail = 0; tail < 2; tail++) {
		struct draft draft;

		draft_implicit(&draft);
		draft_add(&draft, 1, 30007, CACHE_MARKER_NONE);
		draft_add(&draft, 10 + tail, 50, CACHE_MARKER_NONE);
		usage = rig_run(model, tail, &draft);
		ck_assert_uint_eq(usage.written_tokens, 0);
	}
	/* The tail fills no step of its own and leaves no entry. */
	ck_assert_int_eq(
		cache_model_find(model, SCOPE, 0, (struct id128){ 1, 11 }, &node),
		ERR_NOT_FOUND);
	ck_assert_uint_eq(usage.read_tokens, 30007 / 128 * 128);
	ck_assert_uint_eq(usage.uncached_tokens, 30057 - 30007 / 128 * 128);
	ck_assert_uint_eq(cache_model_stats(model).writes, 1);
	ck_assert_uint_eq(cache_model_stats(model).reads, 1);
	free(model);
}
END_TEST

/* Nobody is charged for it, so what counts is whether a prefix was computed anew. */
START_TEST(cache_implicit_mode_counts_no_tail_below_the_minimum_as_a_write)
{
	static const uint32_t tails[] = { 500, 1500 };
	struct cache_model *model = rig_model();

	for (uint64_t i = 0; i < ARRAY_SIZE(tails); i++) {
		struct draft draft;

		draft_implicit(&draft);
		draft_add(&draft, 1, 1280, CACHE_MARKER_NONE);
		if (i == 0)
			rig_run(model, 0, &draft);
		draft.request.blocks_count = 1;
		draft_add(&draft, 10 + i, tails[i], CACHE_MARKER_NONE);
		ck_assert_uint_eq(rig_run(model, 1 + i, &draft).read_tokens, 1280);
		ck_assert_uint_eq(cache_model_stats(model).writes, 1 + i);
	}
	free(model);
}
END_TEST

START_TEST(cache_implicit_mode_keeps_every_step_of_a_chain_alive)
{
	struct cache_model *model = rig_model();
	struct draft draft, half;

	draft_implicit(&draft);
	for (uint64_t i = 0; i < 40; i++)
		draft_add(&draft, i, 128, CACHE_MARKER_NONE);
	rig_run(model, 0, &draft);
	rig_run(model, 200 * SECOND_US, &draft);
	half = draft;
	half.request.blocks = half.blocks;
	half.request.blocks_count = 20;
	ck_assert_uint_eq(rig_run(model, 400 * SECOND_US, &half).read_tokens, 20 * 128);
	free(model);
}
END_TEST

START_TEST(cache_breakpoints_trap_implicit_end_differs_so_nothing_matches)
{
	struct cache_model *model = rig_model();
	struct cache_usage usage;

	/* GPT-5.6: static developer message, varying user message, marker at its end. */
	for (int explicit_marker = 0; explicit_marker < 2; explicit_marker++) {
		for (uint64_t tail = 0; tail < 2; tail++) {
			struct draft draft;

			draft_breakpoints(&draft);
			draft_add(&draft, 1, 5000,
			          explicit_marker ? CACHE_MARKER_30M : CACHE_MARKER_NONE);
			draft.blocks[0].look = true;
			draft_add(&draft, 10 + tail, 50, CACHE_MARKER_30M);
			usage = rig_run(model, 0, &draft);
		}
		ck_assert_uint_eq(usage.read_tokens, explicit_marker ? 5000 : 0);
		ck_assert_uint_eq(usage.written_tokens, explicit_marker ? 50 : 5050);
		cache_model_reset(model);
	}
	free(model);
}
END_TEST

START_TEST(cache_breakpoints_lookup_visits_flagged_message_ends)
{
	struct cache_model *model = rig_model();
	struct draft draft;

	draft_breakpoints(&draft);
	draft_add(&draft, 1, 5000, CACHE_MARKER_30M);
	rig_run(model, 0, &draft);
	draft.blocks[0].marker = CACHE_MARKER_NONE;
	draft_add(&draft, 2, 50, CACHE_MARKER_30M);
	draft.blocks[0].look = true;
	ck_assert_uint_eq(rig_run(model, 1, &draft).read_tokens, 5000);
	draft.blocks[0].look = false;
	draft.blocks[1].hash.low = 3;
	ck_assert_uint_eq(rig_run(model, 2, &draft).read_tokens, 0);
	free(model);
}
END_TEST

START_TEST(cache_shards_split_a_key_only_above_its_rate)
{
	struct cache_model_config config = rig_config();
	struct cache_model *model;
	struct cache_stats stats;

	config.knobs.shards = 4;
	config.knobs.shard_rpm = 15;
	model = rig_model_of(&config);
	for (uint64_t i = 0; i < 15; i++)
		rig_run_job(model, i * SECOND_US, i);
	ck_assert_uint_eq(cache_model_stats(model).writes, 1);
	for (uint64_t i = 15; i < 59; i++)
		rig_run_job(model, i * SECOND_US, i);
	stats = cache_model_stats(model);
	ck_assert_uint_gt(stats.writes, 1);
	ck_assert_uint_le(stats.writes, 4);
	free(model);
}
END_TEST

SUITE_MAIN("cache_mode", cache_implicit_mode_reads_whole_steps_and_charges_no_write,
           cache_implicit_mode_counts_no_tail_below_the_minimum_as_a_write,
           cache_implicit_mode_keeps_every_step_of_a_chain_alive,
           cache_breakpoints_trap_implicit_end_differs_so_nothing_matches,
           cache_breakpoints_lookup_visits_flagged_message_ends,
           cache_shards_split_a_key_only_above_its_rate)
