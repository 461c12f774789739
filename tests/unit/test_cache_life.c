/* The life of an entry: who writes it, from when on others read it, and until when. */
#include "tests/lib/cache_rig.h"
#include "tests/lib/suite.h"

#include <stdlib.h>

/* --- one writer, many readers ------------------------------------------------------ */

START_TEST(cache_first_request_writes_its_marked_prefix)
{
	struct cache_model *model = rig_model();
	struct cache_usage usage = rig_run_job(model, 0, 1);

	ck_assert_uint_eq(usage.written_tokens, PREFIX);
	ck_assert_uint_eq(usage.written_5m_tokens, PREFIX);
	ck_assert_uint_eq(usage.read_tokens, 0);
	ck_assert_uint_eq(usage.uncached_tokens, 50);
	free(model);
}
END_TEST

START_TEST(cache_second_request_reads_it)
{
	struct cache_model *model = rig_model();
	struct cache_usage usage;

	rig_run_job(model, 0, 1);
	usage = rig_run_job(model, 1, 2);
	ck_assert_uint_eq(usage.read_tokens, PREFIX);
	ck_assert_uint_eq(usage.written_tokens, 0);
	ck_assert_uint_eq(usage.uncached_tokens, 50);
	ck_assert_uint_eq(cache_model_stats(model).reads, 1);
	free(model);
}
END_TEST

START_TEST(cache_naive_burst_of_eight_writes_eight_times)
{
	struct cache_model *model = rig_model();
	struct cache_ticket tickets[8];
	struct cache_usage usage;
	struct cache_stats stats;

	for (uint64_t i = 0; i < 8; i++) {
		struct draft draft = draft_job(i);

		tickets[i] = rig_start(model, i, &draft, &usage);
		ck_assert_uint_eq(usage.written_tokens, PREFIX);
	}
	for (int i = 0; i < 8; i++)
		cache_model_respond(model, SECOND_US, tickets[i]);
	for (int i = 0; i < 8; i++)
		cache_model_finish(model, 2 * SECOND_US, tickets[i]);
	cache_model_audit(model);
	ck_assert_uint_eq(rig_run_job(model, 3 * SECOND_US, 9).read_tokens, PREFIX);
	stats = cache_model_stats(model);
	ck_assert_uint_eq(stats.writes, 8);
	ck_assert_uint_eq(stats.duplicate_writes, 7);
	ck_assert_uint_eq(stats.written_tokens, 8 * PREFIX);
	ck_assert_uint_eq(stats.writers_max, 8);
	ck_assert_uint_eq(stats.in_flight_max, 8);
	ck_assert_uint_eq(stats.in_flight, 0);
	free(model);
}
END_TEST

START_TEST(cache_leader_then_seven_writes_once)
{
	struct cache_model *model = rig_model();
	struct draft draft = draft_job(0);
	struct cache_usage usage;
	struct cache_ticket leader = rig_start(model, 0, &draft, &usage);
	struct cache_stats stats;

	cache_model_respond(model, 3 * SECOND_US, leader);
	for (uint64_t i = 1; i < 8; i++)
		ck_assert_uint_eq(rig_run_job(model, 3 * SECOND_US, i).read_tokens,
		                  PREFIX);
	cache_model_finish(model, 9 * SECOND_US, leader);
	stats = cache_model_stats(model);
	ck_assert_uint_eq(stats.writes, 1);
	ck_assert_uint_eq(stats.duplicate_writes, 0);
	ck_assert_uint_eq(stats.reads, 7);
	ck_assert_uint_eq(stats.writers_max, 1);
	free(model);
}
END_TEST

START_TEST(cache_is_not_readable_before_the_response_begins)
{
	struct cache_model *model = rig_model();
	struct draft draft = draft_job(0);
	struct cache_usage usage;
	struct cache_ticket leader = rig_start(model, 0, &draft, &usage);

	ck_assert_uint_eq(rig_run_job(model, 2 * SECOND_US, 1).read_tokens, 0);
	cache_model_finish(model, 2 * SECOND_US, leader);
	free(model);
}
END_TEST

START_TEST(cache_request_that_dies_before_its_response_leaves_nothing)
{
	struct cache_model *model = rig_model();
	struct draft draft = draft_job(0);
	struct cache_usage usage;
	struct cache_node node;

	cache_model_finish(model, 1, rig_start(model, 0, &draft, &usage));
	cache_model_audit(model);
	ck_assert_uint_eq(cache_model_stats(model).aborted, 1);
	ck_assert_uint_eq(rig_run_job(model, 2, 1).written_tokens, PREFIX);
	/* Nothing had been written, so the second one is no duplicate. */
	ck_assert_uint_eq(cache_model_stats(model).duplicate_writes, 0);
	ck_assert_int_eq(cache_model_find(model, SCOPE, 0, draft.blocks[0].hash, &node),
	                 0);
	ck_assert_uint_eq(node.writes, 2);
	ck_assert_uint_eq(node.writers_max, 1);
	ck_assert_uint_eq(node.tokens, PREFIX);
	free(model);
}
END_TEST

START_TEST(cache_entry_may_appear_only_at_the_end_of_the_request)
{
	struct cache_model_config config = rig_config();
	struct cache_model *model;
	struct draft draft = draft_job(0);
	struct cache_usage usage;
	struct cache_ticket leader;

	config.knobs.readable_at_end = true;
	model = rig_model_of(&config);
	leader = rig_start(model, 0, &draft, &usage);
	cache_model_respond(model, 1, leader);
	ck_assert_uint_eq(rig_run_job(model, 2, 1).read_tokens, 0);
	cache_model_finish(model, 3, leader);
	ck_assert_uint_eq(rig_run_job(model, 3, 2).read_tokens, PREFIX);
	free(model);
}
END_TEST

START_TEST(cache_scopes_do_not_share)
{
	struct cache_model *model = rig_model();
	struct draft draft = draft_job(0);

	rig_run(model, 0, &draft);
	draft.request.scope = 8;
	ck_assert_uint_eq(rig_run(model, 1, &draft).read_tokens, 0);
	free(model);
}
END_TEST

/* --- lag --------------------------------------------------------------------------- */

START_TEST(cache_fixed_lag_hides_the_entry_to_the_microsecond)
{
	struct cache_model_config config = rig_config();
	struct cache_model *model;
	struct draft draft = draft_job(0);
	struct cache_usage usage;
	struct cache_ticket leader;

	config.knobs.lag_us = 2 * SECOND_US;
	model = rig_model_of(&config);
	leader = rig_start(model, 0, &draft, &usage);
	cache_model_respond(model, 5 * SECOND_US, leader);
	ck_assert_uint_eq(rig_would_read(model, 7 * SECOND_US - 1, &draft), 0);
	ck_assert_uint_eq(rig_would_read(model, 7 * SECOND_US, &draft), PREFIX);
	free(model);
}
END_TEST

START_TEST(cache_write_during_the_lag_is_a_duplicate_but_not_a_second_writer)
{
	struct cache_model_config config = rig_config();
	struct cache_model *model;

	config.knobs.lag_us = 2 * SECOND_US;
	model = rig_model_of(&config);
	rig_run_job(model, 0, 0);
	rig_run_job(model, SECOND_US, 1);
	ck_assert_uint_eq(cache_model_stats(model).writes, 2);
	ck_assert_uint_eq(cache_model_stats(model).duplicate_writes, 1);
	ck_assert_uint_eq(cache_model_stats(model).writers_max, 1);
	/* The second write does not delay what the first one made. */
	ck_assert_uint_eq(rig_run_job(model, 2 * SECOND_US, 2).read_tokens, PREFIX);
	free(model);
}
END_TEST

START_TEST(cache_lag_per_node_is_the_same_for_a_prefix_every_time)
{
	struct cache_model_config config = rig_config();
	uint64_t first_us[8];
	bool differ = false;

	config.knobs.lag = CACHE_LAG_PER_NODE;
	config.knobs.lag_us = 2 * SECOND_US;
	for (int round = 0; round < 2; round++) {
		struct cache_model *model = rig_model_of(&config);

		for (uint64_t i = 0; i < 8; i++) {
			struct draft draft = draft_of(i, PREFIX, CACHE_MARKER_5M);
			struct cache_node node;

			rig_run(model, 0, &draft);
			ck_assert_int_eq(cache_model_find(model, SCOPE, 0,
			                                  draft.blocks[0].hash, &node),
			                 0);
			ck_assert_uint_le(node.readable_us, 2 * SECOND_US);
			if (round == 1)
				ck_assert_uint_eq(node.readable_us, first_us[i]);
			first_us[i] = node.readable_us;
			differ = differ || first_us[i] != first_us[0];
		}
		free(model);
	}
	ck_assert(differ);
}
END_TEST

START_TEST(cache_uniform_lag_stays_in_its_range_and_varies)
{
	struct cache_model_config config = rig_config();
	struct cache_model *model;
	uint64_t low_us = UINT64_MAX, high_us = 0;

	config.knobs.lag = CACHE_LAG_UNIFORM;
	config.knobs.lag_us = 1000;
	model = rig_model_of(&config);
	for (uint64_t i = 0; i < 100; i++) {
		struct draft draft = draft_of(i, PREFIX, CACHE_MARKER_5M);
		struct cache_node node;

		rig_run(model, 0, &draft);
		ck_assert_int_eq(
			cache_model_find(model, SCOPE, 0, draft.blocks[0].hash, &node),
			0);
		low_us = MIN(low_us, node.readable_us);
		high_us = MAX(high_us, node.readable_us);
	}
	ck_assert_uint_le(high_us, 1000);
	ck_assert_uint_lt(low_us, 100);
	ck_assert_uint_gt(high_us, 900);
	free(model);
}
END_TEST

/* --- time to live ------------------------------------------------------------------ */

START_TEST(cache_ttl_runs_from_the_start_of_the_request_not_its_end)
{
	struct cache_model *model = rig_model();
	struct draft draft = draft_job(0);
	struct cache_usage usage;
	struct cache_ticket leader = rig_start(model, 0, &draft, &usage);

	cache_model_respond(model, 60 * SECOND_US, leader);
	cache_model_finish(model, 240 * SECOND_US, leader);
	ck_assert_uint_eq(rig_would_read(model, 300 * SECOND_US - 1, &draft), PREFIX);
	ck_assert_uint_eq(rig_would_read(model, 300 * SECOND_US, &draft), 0);
	free(model);
}
END_TEST

START_TEST(cache_read_refreshes_the_ttl)
{
	struct cache_model *model = rig_model();

	rig_run_job(model, 0, 0);
	for (uint64_t i = 1; i <= 10; i++)
		ck_assert_uint_eq(rig_run_job(model, i * 299 * SECOND_US, i).read_tokens,
		                  PREFIX);
	ck_assert_uint_eq(rig_run_job(model, 10 * 299 * SECOND_US + 300 * SECOND_US, 11)
	                          .read_tokens,
	                  0);
	ck_assert_uint_eq(cache_model_stats(model).writes, 2);
	/* The first life was over: the rewrite is due, not a duplicate. */
	ck_assert_uint_eq(cache_model_stats(model).duplicate_writes, 0);
	free(model);
}
END_TEST

START_TEST(cache_lifetimes_are_shortened_in_thousandths)
{
	struct cache_model_config config = rig_config();
	struct cache_model *model;

	config.knobs.ttl_permille = 100; /* 30 s */
	model = rig_model_of(&config);
	(void)rig_run_job(model, 0, 1);
	ck_assert_uint_eq(rig_run_job(model, 29 * SECOND_US, 2).read_tokens, PREFIX);
	ck_assert_uint_eq(rig_run_job(model, 60 * SECOND_US, 3).read_tokens, 0);
	free(model);
}
END_TEST

START_TEST(cache_one_hour_marker_lives_one_hour)
{
	struct cache_model *model = rig_model();
	struct draft draft = draft_job(0);

	draft.blocks[0].marker = CACHE_MARKER_1H;
	ck_assert_uint_eq(rig_run(model, 0, &draft).written_1h_tokens, PREFIX);
	ck_assert_uint_eq(rig_would_read(model, 3600 * SECOND_US - 1, &draft), PREFIX);
	ck_assert_uint_eq(rig_would_read(model, 3600 * SECOND_US, &draft), 0);
	free(model);
}
END_TEST

START_TEST(cache_five_minute_read_keeps_the_hour_it_was_written_with)
{
	struct cache_model *model = rig_model();
	struct draft hour = draft_job(0);
	uint64_t read_us = 1000 * SECOND_US;

	hour.blocks[0].marker = CACHE_MARKER_1H;
	rig_run(model, 0, &hour);
	ck_assert_uint_eq(rig_run_job(model, read_us, 1).read_tokens, PREFIX);
	ck_assert_uint_eq(rig_run_job(model, read_us + 3599 * SECOND_US, 2).read_tokens,
	                  PREFIX);
	free(model);
}
END_TEST

START_TEST(cache_two_writers_of_two_lifetimes_leave_the_longer_one)
{
	struct cache_model *model = rig_model();
	struct draft hour = draft_job(0), minutes = draft_job(1);
	struct cache_usage usage;
	struct cache_ticket first, second;

	hour.blocks[0].marker = CACHE_MARKER_1H;
	first = rig_start(model, 0, &hour, &usage);
	second = rig_start(model, 0, &minutes, &usage);
	cache_model_respond(model, 1, first);
	cache_model_respond(model, 2, second);
	cache_model_finish(model, 3, first);
	cache_model_finish(model, 3, second);
	ck_assert_uint_eq(rig_run_job(model, 3000 * SECOND_US, 2).read_tokens, PREFIX);
	ck_assert_uint_eq(rig_run_job(model, 6000 * SECOND_US, 3).read_tokens, PREFIX);
	free(model);
}
END_TEST

START_TEST(cache_late_hit_is_possible_during_the_grace)
{
	struct cache_model_config config = rig_config();
	struct cache_model *model;

	config.knobs.grace_us = 10 * SECOND_US;
	model = rig_model_of(&config);
	rig_run_job(model, 0, 0);
	ck_assert_uint_eq(rig_run_job(model, 310 * SECOND_US - 1, 1).read_tokens, PREFIX);
	free(model);
	model = rig_model_of(&config);
	rig_run_job(model, 0, 0);
	ck_assert_uint_eq(rig_run_job(model, 310 * SECOND_US, 1).read_tokens, 0);
	free(model);
}
END_TEST

SUITE_MAIN("cache_life", cache_first_request_writes_its_marked_prefix,
           cache_second_request_reads_it, cache_naive_burst_of_eight_writes_eight_times,
           cache_leader_then_seven_writes_once,
           cache_is_not_readable_before_the_response_begins,
           cache_request_that_dies_before_its_response_leaves_nothing,
           cache_entry_may_appear_only_at_the_end_of_the_request,
           cache_scopes_do_not_share, cache_fixed_lag_hides_the_entry_to_the_microsecond,
           cache_write_during_the_lag_is_a_duplicate_but_not_a_second_writer,
           cache_lag_per_node_is_the_same_for_a_prefix_every_time,
           cache_uniform_lag_stays_in_its_range_and_varies,
           cache_ttl_runs_from_the_start_of_the_request_not_its_end,
           cache_read_refreshes_the_ttl, cache_lifetimes_are_shortened_in_thousandths,
           cache_one_hour_marker_lives_one_hour,
           cache_five_minute_read_keeps_the_hour_it_was_written_with,
           cache_two_writers_of_two_lifetimes_leave_the_longer_one,
           cache_late_hit_is_possible_during_the_grace)
