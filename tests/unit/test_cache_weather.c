/* What goes wrong with a cache: it is off, it misses, it loses entries, it is full, it is
 * emptied under requests; and what the model itself does not survive. */
#include "tests/lib/cache_rig.h"
#include "tests/lib/suite.h"

#include <stdlib.h>

/* --- weather ----------------------------------------------------------------------- */

START_TEST(cache_switched_off_leaves_everything_uncached)
{
	struct cache_model_config config = rig_config();
	struct cache_model *model;
	struct cache_usage usage;

	config.knobs.off = true;
	model = rig_model_of(&config);
	rig_run_job(model, 0, 0);
	usage = rig_run_job(model, 1, 1);
	ck_assert_uint_eq(usage.read_tokens, 0);
	ck_assert_uint_eq(usage.written_tokens, 0);
	ck_assert_uint_eq(usage.uncached_tokens, PREFIX + 50);
	ck_assert(usage.known);
	ck_assert_uint_eq(cache_model_stats(model).writes, 0);
	free(model);
}
END_TEST

START_TEST(cache_unknown_usage_still_caches)
{
	struct cache_model_config config = rig_config();
	struct cache_model *model;
	struct cache_usage usage;

	config.knobs.unknown_permille = 1000;
	model = rig_model_of(&config);
	rig_run_job(model, 0, 0);
	usage = rig_run_job(model, 1, 1);
	ck_assert(!usage.known);
	ck_assert_uint_eq(usage.read_tokens, PREFIX);
	free(model);
}
END_TEST

START_TEST(cache_missed_read_writes_a_duplicate_and_keeps_the_entry)
{
	struct cache_model_config config = rig_config();
	struct cache_model *model;
	struct cache_knobs knobs = config.knobs;

	config.knobs.miss_permille = 1000;
	model = rig_model_of(&config);
	rig_run_job(model, 0, 0);
	ck_assert_uint_eq(rig_run_job(model, 1, 1).written_tokens, PREFIX);
	ck_assert_uint_eq(cache_model_stats(model).missed, 1);
	ck_assert_uint_eq(cache_model_stats(model).duplicate_writes, 1);
	cache_model_set_knobs(model, &knobs);
	ck_assert_uint_eq(rig_run_job(model, 2, 2).read_tokens, PREFIX);
	free(model);
}
END_TEST

START_TEST(cache_evicted_prefix_is_gone_and_its_rewrite_is_no_duplicate)
{
	struct cache_model_config config = rig_config();
	struct cache_model *model;

	config.knobs.evict_permille = 1000;
	model = rig_model_of(&config);
	rig_run_job(model, 0, 0);
	ck_assert_uint_eq(rig_run_job(model, 1, 1).written_tokens, PREFIX);
	ck_assert_uint_eq(cache_model_stats(model).evicted, 1);
	ck_assert_uint_eq(cache_model_stats(model).duplicate_writes, 0);
	free(model);
}
END_TEST

START_TEST(cache_same_seed_gives_the_same_weather)
{
	struct cache_model_config config = rig_config();
	struct cache_model *a, *b;

	config.knobs.miss_permille = 300;
	config.knobs.evict_permille = 100;
	a = rig_model_of(&config);
	b = rig_model_of(&config);
	for (uint64_t i = 0; i < 200; i++)
		ck_assert_uint_eq(rig_run_job(a, i, i).read_tokens,
		                  rig_run_job(b, i, i).read_tokens);
	ck_assert_uint_gt(cache_model_stats(a).missed, 20);
	ck_assert_uint_gt(cache_model_stats(a).evicted, 5);
	free(a);
	free(b);
}
END_TEST

/* --- room -------------------------------------------------------------------------- */

START_TEST(cache_full_of_entries_forgets_the_least_recently_used)
{
	struct cache_model_config config = rig_config();
	struct cache_model *model;
	struct cache_node node;

	config.entries_max = 6;
	config.writes_max = 4;
	model = rig_model_of(&config);
	for (uint64_t i = 0; i < 7; i++) {
		struct draft draft = draft_of(i, 2000, CACHE_MARKER_5M);

		rig_run(model, i, &draft);
		draft.blocks[0].hash.low = 0;
		rig_run(model, i, &draft); /* keeps prefix 0 in use */
	}
	ck_assert_uint_eq(cache_model_stats(model).forgotten, 1);
	ck_assert_int_eq(cache_model_find(model, SCOPE, 0, (struct id128){ 1, 0 }, &node),
	                 0);
	ck_assert_int_eq(cache_model_find(model, SCOPE, 0, (struct id128){ 1, 1 }, &node),
	                 ERR_NOT_FOUND);
	free(model);
}
END_TEST

START_TEST(cache_full_of_entries_keeps_those_that_are_being_written)
{
	struct cache_model_config config = rig_config();
	struct cache_model *model;
	struct draft draft = draft_job(0);
	struct cache_usage usage;
	struct cache_ticket leader;

	config.entries_max = 7;
	config.writes_max = 5;
	model = rig_model_of(&config);
	leader = rig_start(model, 0, &draft, &usage);
	for (uint64_t i = 0; i < 20; i++) {
		struct draft other = draft_of(i, 2000, CACHE_MARKER_5M);

		rig_run(model, i, &other);
	}
	cache_model_respond(model, 20, leader);
	ck_assert_uint_eq(rig_run_job(model, 20, 1).read_tokens, PREFIX);
	cache_model_finish(model, 21, leader);
	ck_assert_uint_eq(cache_model_stats(model).forgotten, 14);
	free(model);
}
END_TEST

START_TEST(cache_full_of_requests_refuses_and_books_nothing)
{
	struct cache_model_config config = rig_config();
	struct cache_model *model;
	struct draft draft = draft_job(0);
	struct cache_usage usage;
	struct cache_look look;
	struct cache_ticket first, second;

	config.requests_max = 1;
	model = rig_model_of(&config);
	first = rig_start(model, 0, &draft, &usage);
	cache_model_look(model, 0, &draft.request, &look);
	ck_assert_int_eq(cache_model_start(model, 0, &draft.request, &look, &second),
	                 ERR_FULL);
	ck_assert_uint_eq(cache_model_stats(model).requests, 1);
	cache_model_finish(model, 0, first);
	cache_model_audit(model);
	free(model);
}
END_TEST

START_TEST(cache_reset_forgets_entries_but_not_requests_in_flight)
{
	struct cache_model *model = rig_model();
	struct draft draft = draft_job(0);
	struct cache_usage usage;
	struct cache_ticket ticket = rig_start(model, 0, &draft, &usage);

	cache_model_reset(model);
	cache_model_audit(model);
	ck_assert_uint_eq(cache_model_stats(model).in_flight, 1);
	cache_model_respond(model, 1, ticket);
	cache_model_finish(model, 2, ticket);
	cache_model_audit(model);
	ck_assert_uint_eq(rig_run_job(model, 3, 1).written_tokens, PREFIX);
	free(model);
}
END_TEST

START_TEST(cache_walk_lists_prefixes_most_recently_used_first)
{
	struct cache_model *model = rig_model();
	struct cache_node node;
	uint32_t cursor = 0;
	uint64_t expected[] = { 0, 2, 1 };

	for (uint64_t i = 0; i < 4; i++) {
		struct draft draft = draft_of(i % 3, 2000, CACHE_MARKER_5M);

		rig_run(model, i, &draft);
	}
	for (int i = 0; i < 3; i++) {
		ck_assert(cache_model_next(model, &cursor, &node));
		ck_assert_uint_eq(node.hash.low, expected[i]);
	}
	ck_assert(!cache_model_next(model, &cursor, &node));
	free(model);
}
END_TEST

/* --- misuse ------------------------------------------------------------------------ */

START_TEST(cache_dies_of_a_stale_ticket)
{
	struct cache_model *model = rig_model();
	struct draft draft = draft_job(0);
	struct cache_usage usage;
	struct cache_ticket ticket = rig_start(model, 0, &draft, &usage);

	cache_model_finish(model, 1, ticket);
	cache_model_finish(model, 2, ticket);
}
END_TEST

START_TEST(cache_dies_of_a_clock_that_goes_back)
{
	struct cache_model *model = rig_model();

	rig_run_job(model, 2, 0);
	rig_run_job(model, 1, 0);
}
END_TEST

SUITE_MAIN_WITH_DEATHS(
	"cache_weather",
	SUITE_LIST(cache_switched_off_leaves_everything_uncached,
                   cache_unknown_usage_still_caches,
                   cache_missed_read_writes_a_duplicate_and_keeps_the_entry,
                   cache_evicted_prefix_is_gone_and_its_rewrite_is_no_duplicate,
                   cache_same_seed_gives_the_same_weather,
                   cache_full_of_entries_forgets_the_least_recently_used,
                   cache_full_of_entries_keeps_those_that_are_being_written,
                   cache_full_of_requests_refuses_and_books_nothing,
                   cache_reset_forgets_entries_but_not_requests_in_flight,
                   cache_walk_lists_prefixes_most_recently_used_first),
	SUITE_LIST(cache_dies_of_a_stale_ticket, cache_dies_of_a_clock_that_goes_back))
