#include "provider/model/cache_model.h"
#include "tests/lib/suite.h"

#include <stdlib.h>

#define SECOND_US 1000000ull
#define BLOCKS    64
#define PREFIX    30000

/* --- a request by hand ------------------------------------------------------------- */

/* Blocks of one conversation: block i of `family` has the same hash whoever asks. */
struct draft {
	struct cache_block blocks[BLOCKS];
	struct cache_request request;
};

static void
draft_add(struct draft *draft, uint64_t hash, uint32_t tokens, int kind, int marker)
{
	uint32_t i = draft->request.blocks_count++;

	ck_assert_uint_lt(i, BLOCKS);
	draft->blocks[i] = (struct cache_block){ .hash = { 1, hash },
		                                 .tokens = tokens,
		                                 .kind = (uint8_t)kind,
		                                 .marker = (uint8_t)marker };
	draft->request.blocks = draft->blocks;
}

static void
draft_init(struct draft *draft)
{
	*draft = (struct draft){ .request = { .scope = 7,
		                              .mode = CACHE_MODE_MARKERS,
		                              .minimum_tokens = 1024 } };
}

/* The usual job: a marked prefix of 30,000 tokens, then a tail of its own. */
static struct draft
draft_job(uint64_t tail)
{
	struct draft draft;

	draft_init(&draft);
	draft_add(&draft, 100, PREFIX, CACHE_BLOCK_PLAIN, CACHE_MARKER_5M);
	draft_add(&draft, 1000 + tail, 50, CACHE_BLOCK_PLAIN, CACHE_MARKER_NONE);
	draft.request.blocks = NULL; /* the copy has blocks elsewhere */
	return draft;
}

/* --- a model to try it on ---------------------------------------------------------- */

static const struct cache_model_config config_default = {
	.entries_max = 256,
	.requests_max = 64,
	.writes_max = 128,
	.seed = 1,
	.knobs = { .shards = 1 },
};

static struct cache_model *
model_create(const struct cache_model_config *config)
{
	size_t size = cache_model_size(config);
	void *memory = malloc(size);

	ck_assert_ptr_nonnull(memory);
	return cache_model_init(memory, size, config);
}

static struct cache_ticket
start(struct cache_model *model, uint64_t now_us, struct draft *draft,
      struct cache_usage *ret_usage)
{
	struct cache_look look;
	struct cache_ticket ticket;

	draft->request.blocks = draft->blocks;
	ck_assert_int_eq(cache_request_judge(&draft->request), CACHE_VERDICT_OK);
	cache_model_look(model, now_us, &draft->request, &look);
	ck_assert_int_eq(
		cache_model_start(model, now_us, &draft->request, &look, &ticket), 0);
	*ret_usage = look.usage;
	ck_assert_uint_eq(look.usage.total_tokens, look.usage.read_tokens +
	                                                   look.usage.written_tokens +
	                                                   look.usage.uncached_tokens);
	return ticket;
}

/* A whole request in one instant. */
static struct cache_usage
run(struct cache_model *model, uint64_t now_us, struct draft *draft)
{
	struct cache_usage usage;
	struct cache_ticket ticket = start(model, now_us, draft, &usage);

	cache_model_respond(model, now_us, ticket);
	cache_model_finish(model, now_us, ticket);
	cache_model_audit(model);
	return usage;
}

static struct cache_usage
run_job(struct cache_model *model, uint64_t now_us, uint64_t tail)
{
	struct draft draft = draft_job(tail);

	return run(model, now_us, &draft);
}

/* --- one writer, many readers ------------------------------------------------------ */

START_TEST(cache_first_request_writes_its_marked_prefix)
{
	struct cache_model *model = model_create(&config_default);
	struct cache_usage usage = run_job(model, 0, 1);

	ck_assert_uint_eq(usage.written_tokens, PREFIX);
	ck_assert_uint_eq(usage.written_5m_tokens, PREFIX);
	ck_assert_uint_eq(usage.read_tokens, 0);
	ck_assert_uint_eq(usage.uncached_tokens, 50);
	free(model);
}
END_TEST

START_TEST(cache_second_request_reads_it)
{
	struct cache_model *model = model_create(&config_default);
	struct cache_usage usage;

	run_job(model, 0, 1);
	usage = run_job(model, 1, 2);
	ck_assert_uint_eq(usage.read_tokens, PREFIX);
	ck_assert_uint_eq(usage.written_tokens, 0);
	ck_assert_uint_eq(usage.uncached_tokens, 50);
	ck_assert_uint_eq(cache_model_stats(model).reads, 1);
	free(model);
}
END_TEST

START_TEST(cache_naive_burst_of_eight_writes_eight_times)
{
	struct cache_model *model = model_create(&config_default);
	struct cache_ticket tickets[8];
	struct cache_usage usage;
	struct cache_stats stats;

	for (uint64_t i = 0; i < 8; i++) {
		struct draft draft = draft_job(i);

		tickets[i] = start(model, i, &draft, &usage);
		ck_assert_uint_eq(usage.written_tokens, PREFIX);
	}
	for (int i = 0; i < 8; i++)
		cache_model_respond(model, SECOND_US, tickets[i]);
	for (int i = 0; i < 8; i++)
		cache_model_finish(model, 2 * SECOND_US, tickets[i]);
	cache_model_audit(model);
	ck_assert_uint_eq(run_job(model, 3 * SECOND_US, 9).read_tokens, PREFIX);
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
	struct cache_model *model = model_create(&config_default);
	struct draft draft = draft_job(0);
	struct cache_usage usage;
	struct cache_ticket leader = start(model, 0, &draft, &usage);
	struct cache_stats stats;

	cache_model_respond(model, 3 * SECOND_US, leader);
	for (uint64_t i = 1; i < 8; i++)
		ck_assert_uint_eq(run_job(model, 3 * SECOND_US, i).read_tokens, PREFIX);
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
	struct cache_model *model = model_create(&config_default);
	struct draft draft = draft_job(0);
	struct cache_usage usage;
	struct cache_ticket leader = start(model, 0, &draft, &usage);

	ck_assert_uint_eq(run_job(model, 2 * SECOND_US, 1).read_tokens, 0);
	cache_model_finish(model, 2 * SECOND_US, leader);
	free(model);
}
END_TEST

START_TEST(cache_request_that_dies_before_its_response_leaves_nothing)
{
	struct cache_model *model = model_create(&config_default);
	struct draft draft = draft_job(0);
	struct cache_usage usage;
	struct cache_node node;

	cache_model_finish(model, 1, start(model, 0, &draft, &usage));
	cache_model_audit(model);
	ck_assert_uint_eq(cache_model_stats(model).aborted, 1);
	ck_assert_uint_eq(run_job(model, 2, 1).written_tokens, PREFIX);
	/* Nothing had been written, so the second one is no duplicate. */
	ck_assert_uint_eq(cache_model_stats(model).duplicate_writes, 0);
	ck_assert_int_eq(cache_model_find(model, 7, 0, draft.blocks[0].hash, &node), 0);
	ck_assert_uint_eq(node.writes, 2);
	ck_assert_uint_eq(node.writers_max, 1);
	ck_assert_uint_eq(node.tokens, PREFIX);
	free(model);
}
END_TEST

START_TEST(cache_entry_may_appear_only_at_the_end_of_the_request)
{
	struct cache_model_config config = config_default;
	struct cache_model *model;
	struct draft draft = draft_job(0);
	struct cache_usage usage;
	struct cache_ticket leader;

	config.knobs.readable_at_end = true;
	model = model_create(&config);
	leader = start(model, 0, &draft, &usage);
	cache_model_respond(model, 1, leader);
	ck_assert_uint_eq(run_job(model, 2, 1).read_tokens, 0);
	cache_model_finish(model, 3, leader);
	ck_assert_uint_eq(run_job(model, 3, 2).read_tokens, PREFIX);
	free(model);
}
END_TEST

/* --- lag --------------------------------------------------------------------------- */

START_TEST(cache_fixed_lag_hides_the_entry_to_the_microsecond)
{
	struct cache_model_config config = config_default;
	struct cache_model *model;
	struct draft draft = draft_job(0);
	struct cache_usage usage;
	struct cache_look look;
	struct cache_ticket leader;

	config.knobs.lag_us = 2 * SECOND_US;
	model = model_create(&config);
	leader = start(model, 0, &draft, &usage);
	cache_model_respond(model, 5 * SECOND_US, leader);
	draft.request.blocks = draft.blocks;
	cache_model_look(model, 7 * SECOND_US - 1, &draft.request, &look);
	ck_assert_uint_eq(look.usage.read_tokens, 0);
	cache_model_look(model, 7 * SECOND_US, &draft.request, &look);
	ck_assert_uint_eq(look.usage.read_tokens, PREFIX);
	free(model);
}
END_TEST

START_TEST(cache_write_during_the_lag_is_a_duplicate_but_not_a_second_writer)
{
	struct cache_model_config config = config_default;
	struct cache_model *model;

	config.knobs.lag_us = 2 * SECOND_US;
	model = model_create(&config);
	run_job(model, 0, 0);
	run_job(model, SECOND_US, 1);
	ck_assert_uint_eq(cache_model_stats(model).writes, 2);
	ck_assert_uint_eq(cache_model_stats(model).duplicate_writes, 1);
	ck_assert_uint_eq(cache_model_stats(model).writers_max, 1);
	/* The second write does not delay what the first one made. */
	ck_assert_uint_eq(run_job(model, 2 * SECOND_US, 2).read_tokens, PREFIX);
	free(model);
}
END_TEST

START_TEST(cache_lag_per_node_is_the_same_for_a_prefix_every_time)
{
	struct cache_model_config config = config_default;
	uint64_t first_us[8];
	bool differ = false;

	config.knobs.lag = CACHE_LAG_PER_NODE;
	config.knobs.lag_us = 2 * SECOND_US;
	for (int round = 0; round < 2; round++) {
		struct cache_model *model = model_create(&config);

		for (uint64_t i = 0; i < 8; i++) {
			struct draft draft;
			struct cache_node node;

			draft_init(&draft);
			draft_add(&draft, i, PREFIX, CACHE_BLOCK_PLAIN, CACHE_MARKER_5M);
			run(model, 0, &draft);
			ck_assert_int_eq(cache_model_find(model, 7, 0,
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
	struct cache_model_config config = config_default;
	struct cache_model *model;
	uint64_t low_us = UINT64_MAX, high_us = 0;

	config.knobs.lag = CACHE_LAG_UNIFORM;
	config.knobs.lag_us = 1000;
	model = model_create(&config);
	for (uint64_t i = 0; i < 100; i++) {
		struct draft draft;
		struct cache_node node;

		draft_init(&draft);
		draft_add(&draft, i, PREFIX, CACHE_BLOCK_PLAIN, CACHE_MARKER_5M);
		run(model, 0, &draft);
		ck_assert_int_eq(
			cache_model_find(model, 7, 0, draft.blocks[0].hash, &node), 0);
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
	struct cache_model *model = model_create(&config_default);
	struct draft draft = draft_job(0);
	struct cache_usage usage;
	struct cache_look look;
	struct cache_ticket leader = start(model, 0, &draft, &usage);

	cache_model_respond(model, 60 * SECOND_US, leader);
	cache_model_finish(model, 240 * SECOND_US, leader);
	draft.request.blocks = draft.blocks;
	cache_model_look(model, 300 * SECOND_US - 1, &draft.request, &look);
	ck_assert_uint_eq(look.usage.read_tokens, PREFIX);
	cache_model_look(model, 300 * SECOND_US, &draft.request, &look);
	ck_assert_uint_eq(look.usage.read_tokens, 0);
	free(model);
}
END_TEST

START_TEST(cache_read_refreshes_the_ttl)
{
	struct cache_model *model = model_create(&config_default);

	run_job(model, 0, 0);
	for (uint64_t i = 1; i <= 10; i++)
		ck_assert_uint_eq(run_job(model, i * 299 * SECOND_US, i).read_tokens,
		                  PREFIX);
	ck_assert_uint_eq(
		run_job(model, 10 * 299 * SECOND_US + 300 * SECOND_US, 11).read_tokens,
		0);
	ck_assert_uint_eq(cache_model_stats(model).writes, 2);
	/* The first life was over: the rewrite is due, not a duplicate. */
	ck_assert_uint_eq(cache_model_stats(model).duplicate_writes, 0);
	free(model);
}
END_TEST

START_TEST(cache_lifetimes_are_shortened_in_thousandths)
{
	struct cache_model_config config = config_default;
	struct cache_model *model;

	config.knobs.ttl_permille = 100; /* 30 s */
	model = model_create(&config);
	(void)run_job(model, 0, 1);
	ck_assert_uint_eq(run_job(model, 29 * SECOND_US, 2).read_tokens, PREFIX);
	ck_assert_uint_eq(run_job(model, 60 * SECOND_US, 3).read_tokens, 0);
	free(model);
}
END_TEST

START_TEST(cache_one_hour_marker_lives_one_hour)
{
	struct cache_model *model = model_create(&config_default);
	struct draft draft = draft_job(0);
	struct cache_look look;

	draft.blocks[0].marker = CACHE_MARKER_1H;
	ck_assert_uint_eq(run(model, 0, &draft).written_1h_tokens, PREFIX);
	cache_model_look(model, 3600 * SECOND_US - 1, &draft.request, &look);
	ck_assert_uint_eq(look.usage.read_tokens, PREFIX);
	cache_model_look(model, 3600 * SECOND_US, &draft.request, &look);
	ck_assert_uint_eq(look.usage.read_tokens, 0);
	free(model);
}
END_TEST

START_TEST(cache_five_minute_read_keeps_the_hour_it_was_written_with)
{
	struct cache_model *model = model_create(&config_default);
	struct draft hour = draft_job(0);
	uint64_t read_us = 1000 * SECOND_US;

	hour.blocks[0].marker = CACHE_MARKER_1H;
	run(model, 0, &hour);
	ck_assert_uint_eq(run_job(model, read_us, 1).read_tokens, PREFIX);
	ck_assert_uint_eq(run_job(model, read_us + 3599 * SECOND_US, 2).read_tokens,
	                  PREFIX);
	free(model);
}
END_TEST

START_TEST(cache_two_writers_of_two_lifetimes_leave_the_longer_one)
{
	struct cache_model *model = model_create(&config_default);
	struct draft hour = draft_job(0), minutes = draft_job(1);
	struct cache_usage usage;
	struct cache_ticket first, second;

	hour.blocks[0].marker = CACHE_MARKER_1H;
	first = start(model, 0, &hour, &usage);
	second = start(model, 0, &minutes, &usage);
	cache_model_respond(model, 1, first);
	cache_model_respond(model, 2, second);
	cache_model_finish(model, 3, first);
	cache_model_finish(model, 3, second);
	ck_assert_uint_eq(run_job(model, 3000 * SECOND_US, 2).read_tokens, PREFIX);
	ck_assert_uint_eq(run_job(model, 6000 * SECOND_US, 3).read_tokens, PREFIX);
	free(model);
}
END_TEST

START_TEST(cache_late_hit_is_possible_during_the_grace)
{
	struct cache_model_config config = config_default;
	struct cache_model *model;

	config.knobs.grace_us = 10 * SECOND_US;
	model = model_create(&config);
	run_job(model, 0, 0);
	ck_assert_uint_eq(run_job(model, 310 * SECOND_US - 1, 1).read_tokens, PREFIX);
	free(model);
	model = model_create(&config);
	run_job(model, 0, 0);
	ck_assert_uint_eq(run_job(model, 310 * SECOND_US, 1).read_tokens, 0);
	free(model);
}
END_TEST

/* --- markers ----------------------------------------------------------------------- */

START_TEST(cache_unmarked_request_reads_and_writes_nothing)
{
	struct cache_model *model = model_create(&config_default);
	struct draft draft = draft_job(0);
	struct cache_usage usage;

	run_job(model, 0, 0);
	draft.blocks[0].marker = CACHE_MARKER_NONE;
	usage = run(model, 1, &draft);
	ck_assert_uint_eq(usage.read_tokens, 0);
	ck_assert_uint_eq(usage.written_tokens, 0);
	ck_assert_uint_eq(usage.uncached_tokens, PREFIX + 50);
	free(model);
}
END_TEST

START_TEST(cache_below_minimum_is_silently_zero)
{
	struct cache_model *model = model_create(&config_default);
	struct draft draft;
	struct cache_usage usage;

	for (uint32_t tokens = 1023; tokens <= 1024; tokens++) {
		draft_init(&draft);
		draft_add(&draft, tokens, tokens, CACHE_BLOCK_PLAIN, CACHE_MARKER_5M);
		for (int i = 0; i < 2; i++)
			usage = run(model, 0, &draft);
		ck_assert_uint_eq(usage.written_tokens, 0);
		ck_assert_uint_eq(usage.read_tokens, tokens == 1024 ? 1024 : 0);
	}
	free(model);
}
END_TEST

START_TEST(cache_minimum_counts_the_whole_prefix_not_the_block)
{
	struct cache_model *model = model_create(&config_default);
	struct draft draft;

	draft_init(&draft);
	draft_add(&draft, 1, 1000, CACHE_BLOCK_PLAIN, CACHE_MARKER_5M);
	draft_add(&draft, 2, 24, CACHE_BLOCK_PLAIN, CACHE_MARKER_5M);
	ck_assert_uint_eq(run(model, 0, &draft).written_tokens, 1024);
	free(model);
}
END_TEST

START_TEST(cache_fifth_marker_is_refused)
{
	struct draft draft;

	draft_init(&draft);
	for (uint64_t i = 0; i < 4; i++)
		draft_add(&draft, i, 2000, CACHE_BLOCK_PLAIN, CACHE_MARKER_5M);
	ck_assert_int_eq(cache_request_judge(&draft.request), CACHE_VERDICT_OK);
	draft_add(&draft, 4, 2000, CACHE_BLOCK_PLAIN, CACHE_MARKER_5M);
	ck_assert_int_eq(cache_request_judge(&draft.request),
	                 CACHE_VERDICT_TOO_MANY_MARKERS);
}
END_TEST

START_TEST(cache_one_hour_after_five_minutes_is_refused)
{
	struct draft draft;

	draft_init(&draft);
	draft_add(&draft, 1, 2000, CACHE_BLOCK_PLAIN, CACHE_MARKER_1H);
	draft_add(&draft, 2, 2000, CACHE_BLOCK_PLAIN, CACHE_MARKER_5M);
	ck_assert_int_eq(cache_request_judge(&draft.request), CACHE_VERDICT_OK);
	draft.blocks[0].marker = CACHE_MARKER_5M;
	draft.blocks[1].marker = CACHE_MARKER_1H;
	ck_assert_int_eq(cache_request_judge(&draft.request), CACHE_VERDICT_TTL_ORDER);
}
END_TEST

START_TEST(cache_mixed_ttl_bills_read_then_hour_then_five_minutes)
{
	struct cache_model *model = model_create(&config_default);
	struct draft draft;
	struct cache_usage usage;

	draft_init(&draft);
	draft_add(&draft, 1, 2000, CACHE_BLOCK_PLAIN, CACHE_MARKER_1H);
	run(model, 0, &draft);
	draft_add(&draft, 2, 300, CACHE_BLOCK_PLAIN, CACHE_MARKER_1H);
	draft_add(&draft, 3, 40, CACHE_BLOCK_PLAIN, CACHE_MARKER_5M);
	draft_add(&draft, 4, 5, CACHE_BLOCK_PLAIN, CACHE_MARKER_NONE);
	usage = run(model, 1, &draft);
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
	struct cache_model *model = model_create(&config_default);
	struct cache_usage usage;

	for (uint64_t document = 0; document < 2; document++) {
		struct draft draft;

		draft_init(&draft);
		draft_add(&draft, 1, 5000, CACHE_BLOCK_PLAIN, CACHE_MARKER_5M);
		draft_add(&draft, 10 + document, 20000, CACHE_BLOCK_PLAIN,
		          CACHE_MARKER_5M);
		usage = run(model, 0, &draft);
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
	struct cache_model *model = model_create(&config_default);
	struct draft deep, shallow;

	draft_init(&deep);
	draft_add(&deep, 1, 5000, CACHE_BLOCK_PLAIN, CACHE_MARKER_5M);
	draft_add(&deep, 2, 5000, CACHE_BLOCK_PLAIN, CACHE_MARKER_5M);
	run(model, 0, &deep);
	run(model, 200 * SECOND_US, &deep);
	draft_init(&shallow);
	draft_add(&shallow, 1, 5000, CACHE_BLOCK_PLAIN, CACHE_MARKER_5M);
	ck_assert_uint_eq(run(model, 400 * SECOND_US, &shallow).read_tokens, 5000);
	free(model);
}
END_TEST

START_TEST(cache_deep_read_restores_a_lost_ancestor_free_of_charge)
{
	struct cache_model *model = model_create(&config_default);
	struct draft deep, shallow;

	draft_init(&deep);
	draft_add(&deep, 1, 5000, CACHE_BLOCK_PLAIN, CACHE_MARKER_NONE);
	draft_add(&deep, 2, 5000, CACHE_BLOCK_PLAIN, CACHE_MARKER_5M);
	run(model, 0, &deep);
	deep.blocks[0].marker = CACHE_MARKER_5M;
	ck_assert_uint_eq(run(model, 1, &deep).written_tokens, 0);
	draft_init(&shallow);
	draft_add(&shallow, 1, 5000, CACHE_BLOCK_PLAIN, CACHE_MARKER_5M);
	ck_assert_uint_eq(run(model, 2, &shallow).read_tokens, 5000);
	ck_assert_uint_eq(cache_model_stats(model).writes, 1);
	free(model);
}
END_TEST

START_TEST(cache_scopes_do_not_share)
{
	struct cache_model *model = model_create(&config_default);
	struct draft draft = draft_job(0);

	run(model, 0, &draft);
	draft.request.scope = 8;
	ck_assert_uint_eq(run(model, 1, &draft).read_tokens, 0);
	free(model);
}
END_TEST

/* --- lookback ---------------------------------------------------------------------- */

/* Writes a prefix, then asks again with `count` blocks of `kind` after it and the
 * marker on the last one.  Answers what was read. */
static uint32_t
read_after(uint32_t count, int kind)
{
	struct cache_model *model = model_create(&config_default);
	struct draft draft;
	uint32_t read_tokens;

	draft_init(&draft);
	draft_add(&draft, 1, 2000, CACHE_BLOCK_PLAIN, CACHE_MARKER_5M);
	run(model, 0, &draft);
	draft.blocks[0].marker = CACHE_MARKER_NONE;
	for (uint32_t i = 0; i < count; i++)
		draft_add(&draft, 10 + i, 10, kind, CACHE_MARKER_NONE);
	draft.blocks[count].marker = CACHE_MARKER_5M;
	read_tokens = run(model, 1, &draft).read_tokens;
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
	struct cache_model *model = model_create(&config_default);
	struct draft draft;

	/* 9 x (3 tool_use, 3 tool_result) = 18 positions, and the prefix at the 19th. */
	draft_init(&draft);
	draft_add(&draft, 1, 2000, CACHE_BLOCK_PLAIN, CACHE_MARKER_5M);
	run(model, 0, &draft);
	draft.blocks[0].marker = CACHE_MARKER_NONE;
	for (uint64_t i = 0; i < 54; i++)
		draft_add(&draft, 10 + i, 10,
		          i / 3 % 2 ? CACHE_BLOCK_TOOL_RESULT : CACHE_BLOCK_TOOL_USE,
		          CACHE_MARKER_NONE);
	draft.blocks[54].marker = CACHE_MARKER_5M;
	ck_assert_uint_eq(run(model, 1, &draft).read_tokens, 2000);
	free(model);
}
END_TEST

START_TEST(cache_second_marker_has_a_lookback_of_its_own)
{
	struct cache_model *model = model_create(&config_default);
	struct draft draft;

	draft_init(&draft);
	draft_add(&draft, 1, 2000, CACHE_BLOCK_PLAIN, CACHE_MARKER_5M);
	run(model, 0, &draft);
	for (uint64_t i = 0; i < 30; i++)
		draft_add(&draft, 10 + i, 10, CACHE_BLOCK_PLAIN, CACHE_MARKER_NONE);
	draft.blocks[30].marker = CACHE_MARKER_5M;
	ck_assert_uint_eq(run(model, 1, &draft).read_tokens, 2000);
	free(model);
}
END_TEST

START_TEST(cache_lookback_never_reads_what_was_not_marked)
{
	struct cache_model *model = model_create(&config_default);
	struct draft draft;

	draft_init(&draft);
	draft_add(&draft, 1, 2000, CACHE_BLOCK_PLAIN, CACHE_MARKER_NONE);
	draft_add(&draft, 2, 2000, CACHE_BLOCK_PLAIN, CACHE_MARKER_5M);
	run(model, 0, &draft);
	draft.blocks[0].marker = CACHE_MARKER_5M;
	draft.blocks[1].hash.low = 3;
	ck_assert_uint_eq(run(model, 1, &draft).read_tokens, 0);
	free(model);
}
END_TEST

/* --- other modes ------------------------------------------------------------------- */

START_TEST(cache_implicit_mode_reads_whole_steps_and_charges_no_write)
{
	struct cache_model *model = model_create(&config_default);
	struct cache_usage usage;
	struct cache_node node;

	for (uint64_t tail = 0; tail < 2; tail++) {
		struct draft draft;

		draft_init(&draft);
		draft.request.mode = CACHE_MODE_IMPLICIT;
		draft.request.step_tokens = 128;
		draft_add(&draft, 1, 30007, CACHE_BLOCK_PLAIN, CACHE_MARKER_NONE);
		draft_add(&draft, 10 + tail, 50, CACHE_BLOCK_PLAIN, CACHE_MARKER_NONE);
		usage = run(model, tail, &draft);
		ck_assert_uint_eq(usage.written_tokens, 0);
	}
	/* The tail fills no step of its own and leaves no entry. */
	ck_assert_int_eq(cache_model_find(model, 7, 0, (struct id128){ 1, 11 }, &node),
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
	struct cache_model *model = model_create(&config_default);

	for (uint64_t i = 0; i < ARRAY_SIZE(tails); i++) {
		struct draft draft;

		draft_init(&draft);
		draft.request.mode = CACHE_MODE_IMPLICIT;
		draft.request.step_tokens = 128;
		draft_add(&draft, 1, 1280, CACHE_BLOCK_PLAIN, CACHE_MARKER_NONE);
		if (i == 0)
			run(model, 0, &draft);
		draft.request.blocks_count = 1;
		draft_add(&draft, 10 + i, tails[i], CACHE_BLOCK_PLAIN, CACHE_MARKER_NONE);
		ck_assert_uint_eq(run(model, 1 + i, &draft).read_tokens, 1280);
		ck_assert_uint_eq(cache_model_stats(model).writes, 1 + i);
	}
	free(model);
}
END_TEST

START_TEST(cache_implicit_mode_keeps_every_step_of_a_chain_alive)
{
	struct cache_model *model = model_create(&config_default);
	struct draft draft, half;

	draft_init(&draft);
	draft.request.mode = CACHE_MODE_IMPLICIT;
	draft.request.step_tokens = 128;
	for (uint64_t i = 0; i < 40; i++)
		draft_add(&draft, i, 128, CACHE_BLOCK_PLAIN, CACHE_MARKER_NONE);
	run(model, 0, &draft);
	run(model, 200 * SECOND_US, &draft);
	half = draft;
	half.request.blocks = half.blocks;
	half.request.blocks_count = 20;
	ck_assert_uint_eq(run(model, 400 * SECOND_US, &half).read_tokens, 20 * 128);
	free(model);
}
END_TEST

START_TEST(cache_breakpoints_trap_implicit_end_differs_so_nothing_matches)
{
	struct cache_model *model = model_create(&config_default);
	struct cache_usage usage;

	/* GPT-5.6: static developer message, varying user message, marker at its end. */
	for (int explicit_marker = 0; explicit_marker < 2; explicit_marker++) {
		for (uint64_t tail = 0; tail < 2; tail++) {
			struct draft draft;

			draft_init(&draft);
			draft.request.mode = CACHE_MODE_BREAKPOINTS;
			draft_add(&draft, 1, 5000, CACHE_BLOCK_PLAIN,
			          explicit_marker ? CACHE_MARKER_30M : CACHE_MARKER_NONE);
			draft.blocks[0].look = true;
			draft_add(&draft, 10 + tail, 50, CACHE_BLOCK_PLAIN,
			          CACHE_MARKER_30M);
			usage = run(model, 0, &draft);
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
	struct cache_model *model = model_create(&config_default);
	struct draft draft;

	draft_init(&draft);
	draft.request.mode = CACHE_MODE_BREAKPOINTS;
	draft_add(&draft, 1, 5000, CACHE_BLOCK_PLAIN, CACHE_MARKER_30M);
	run(model, 0, &draft);
	draft.blocks[0].marker = CACHE_MARKER_NONE;
	draft_add(&draft, 2, 50, CACHE_BLOCK_PLAIN, CACHE_MARKER_30M);
	draft.blocks[0].look = true;
	ck_assert_uint_eq(run(model, 1, &draft).read_tokens, 5000);
	draft.blocks[0].look = false;
	draft.blocks[1].hash.low = 3;
	ck_assert_uint_eq(run(model, 2, &draft).read_tokens, 0);
	free(model);
}
END_TEST

START_TEST(cache_shards_split_a_key_only_above_its_rate)
{
	struct cache_model_config config = config_default;
	struct cache_model *model;
	struct cache_stats stats;

	config.knobs.shards = 4;
	config.knobs.shard_rpm = 15;
	model = model_create(&config);
	for (uint64_t i = 0; i < 15; i++)
		run_job(model, i * SECOND_US, i);
	ck_assert_uint_eq(cache_model_stats(model).writes, 1);
	for (uint64_t i = 15; i < 59; i++)
		run_job(model, i * SECOND_US, i);
	stats = cache_model_stats(model);
	ck_assert_uint_gt(stats.writes, 1);
	ck_assert_uint_le(stats.writes, 4);
	free(model);
}
END_TEST

/* --- knobs ------------------------------------------------------------------------- */

START_TEST(cache_switched_off_leaves_everything_uncached)
{
	struct cache_model_config config = config_default;
	struct cache_model *model;
	struct cache_usage usage;

	config.knobs.off = true;
	model = model_create(&config);
	run_job(model, 0, 0);
	usage = run_job(model, 1, 1);
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
	struct cache_model_config config = config_default;
	struct cache_model *model;
	struct cache_usage usage;

	config.knobs.unknown_permille = 1000;
	model = model_create(&config);
	run_job(model, 0, 0);
	usage = run_job(model, 1, 1);
	ck_assert(!usage.known);
	ck_assert_uint_eq(usage.read_tokens, PREFIX);
	free(model);
}
END_TEST

START_TEST(cache_missed_read_writes_a_duplicate_and_keeps_the_entry)
{
	struct cache_model_config config = config_default;
	struct cache_model *model;
	struct cache_knobs knobs = config.knobs;

	config.knobs.miss_permille = 1000;
	model = model_create(&config);
	run_job(model, 0, 0);
	ck_assert_uint_eq(run_job(model, 1, 1).written_tokens, PREFIX);
	ck_assert_uint_eq(cache_model_stats(model).missed, 1);
	ck_assert_uint_eq(cache_model_stats(model).duplicate_writes, 1);
	cache_model_set_knobs(model, &knobs);
	ck_assert_uint_eq(run_job(model, 2, 2).read_tokens, PREFIX);
	free(model);
}
END_TEST

START_TEST(cache_evicted_prefix_is_gone_and_its_rewrite_is_no_duplicate)
{
	struct cache_model_config config = config_default;
	struct cache_model *model;

	config.knobs.evict_permille = 1000;
	model = model_create(&config);
	run_job(model, 0, 0);
	ck_assert_uint_eq(run_job(model, 1, 1).written_tokens, PREFIX);
	ck_assert_uint_eq(cache_model_stats(model).evicted, 1);
	ck_assert_uint_eq(cache_model_stats(model).duplicate_writes, 0);
	free(model);
}
END_TEST

START_TEST(cache_same_seed_gives_the_same_weather)
{
	struct cache_model_config config = config_default;
	struct cache_model *a, *b;

	config.knobs.miss_permille = 300;
	config.knobs.evict_permille = 100;
	a = model_create(&config);
	b = model_create(&config);
	for (uint64_t i = 0; i < 200; i++)
		ck_assert_uint_eq(run_job(a, i, i).read_tokens,
		                  run_job(b, i, i).read_tokens);
	ck_assert_uint_gt(cache_model_stats(a).missed, 20);
	ck_assert_uint_gt(cache_model_stats(a).evicted, 5);
	free(a);
	free(b);
}
END_TEST

/* --- room -------------------------------------------------------------------------- */

START_TEST(cache_full_of_entries_forgets_the_least_recently_used)
{
	struct cache_model_config config = config_default;
	struct cache_model *model;
	struct cache_node node;

	config.entries_max = 6;
	config.writes_max = 4;
	model = model_create(&config);
	for (uint64_t i = 0; i < 7; i++) {
		struct draft draft;

		draft_init(&draft);
		draft_add(&draft, i, 2000, CACHE_BLOCK_PLAIN, CACHE_MARKER_5M);
		run(model, i, &draft);
		draft.blocks[0].hash.low = 0;
		run(model, i, &draft); /* keeps prefix 0 in use */
	}
	ck_assert_uint_eq(cache_model_stats(model).forgotten, 1);
	ck_assert_int_eq(cache_model_find(model, 7, 0, (struct id128){ 1, 0 }, &node), 0);
	ck_assert_int_eq(cache_model_find(model, 7, 0, (struct id128){ 1, 1 }, &node),
	                 ERR_NOT_FOUND);
	free(model);
}
END_TEST

START_TEST(cache_full_of_entries_keeps_those_that_are_being_written)
{
	struct cache_model_config config = config_default;
	struct cache_model *model;
	struct draft draft = draft_job(0);
	struct cache_usage usage;
	struct cache_ticket leader;

	config.entries_max = 7;
	config.writes_max = 5;
	model = model_create(&config);
	leader = start(model, 0, &draft, &usage);
	for (uint64_t i = 0; i < 20; i++) {
		struct draft other;

		draft_init(&other);
		draft_add(&other, i, 2000, CACHE_BLOCK_PLAIN, CACHE_MARKER_5M);
		run(model, i, &other);
	}
	cache_model_respond(model, 20, leader);
	ck_assert_uint_eq(run_job(model, 20, 1).read_tokens, PREFIX);
	cache_model_finish(model, 21, leader);
	ck_assert_uint_eq(cache_model_stats(model).forgotten, 14);
	free(model);
}
END_TEST

START_TEST(cache_full_of_requests_refuses_and_books_nothing)
{
	struct cache_model_config config = config_default;
	struct cache_model *model;
	struct draft draft = draft_job(0);
	struct cache_usage usage;
	struct cache_look look;
	struct cache_ticket first, second;

	config.requests_max = 1;
	model = model_create(&config);
	first = start(model, 0, &draft, &usage);
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
	struct cache_model *model = model_create(&config_default);
	struct draft draft = draft_job(0);
	struct cache_usage usage;
	struct cache_ticket ticket = start(model, 0, &draft, &usage);

	cache_model_reset(model);
	cache_model_audit(model);
	ck_assert_uint_eq(cache_model_stats(model).in_flight, 1);
	cache_model_respond(model, 1, ticket);
	cache_model_finish(model, 2, ticket);
	cache_model_audit(model);
	ck_assert_uint_eq(run_job(model, 3, 1).written_tokens, PREFIX);
	free(model);
}
END_TEST

START_TEST(cache_walk_lists_prefixes_most_recently_used_first)
{
	struct cache_model *model = model_create(&config_default);
	struct cache_node node;
	uint32_t cursor = 0;
	uint64_t expected[] = { 0, 2, 1 };

	for (uint64_t i = 0; i < 4; i++) {
		struct draft draft;

		draft_init(&draft);
		draft_add(&draft, i % 3, 2000, CACHE_BLOCK_PLAIN, CACHE_MARKER_5M);
		run(model, i, &draft);
	}
	for (int i = 0; i < 3; i++) {
		ck_assert(cache_model_next(model, &cursor, &node));
		ck_assert_uint_eq(node.hash.low, expected[i]);
	}
	ck_assert(!cache_model_next(model, &cursor, &node));
	free(model);
}
END_TEST

START_TEST(cache_dies_of_a_stale_ticket)
{
	struct cache_model *model = model_create(&config_default);
	struct draft draft = draft_job(0);
	struct cache_usage usage;
	struct cache_ticket ticket = start(model, 0, &draft, &usage);

	cache_model_finish(model, 1, ticket);
	cache_model_finish(model, 2, ticket);
}
END_TEST

START_TEST(cache_dies_of_a_clock_that_goes_back)
{
	struct cache_model *model = model_create(&config_default);

	run_job(model, 2, 0);
	run_job(model, 1, 0);
}
END_TEST

SUITE_MAIN_WITH_DEATHS(
	"cache_model",
	SUITE_LIST(cache_first_request_writes_its_marked_prefix,
                   cache_second_request_reads_it,
                   cache_naive_burst_of_eight_writes_eight_times,
                   cache_leader_then_seven_writes_once,
                   cache_is_not_readable_before_the_response_begins,
                   cache_request_that_dies_before_its_response_leaves_nothing,
                   cache_entry_may_appear_only_at_the_end_of_the_request,
                   cache_fixed_lag_hides_the_entry_to_the_microsecond,
                   cache_write_during_the_lag_is_a_duplicate_but_not_a_second_writer,
                   cache_lag_per_node_is_the_same_for_a_prefix_every_time,
                   cache_uniform_lag_stays_in_its_range_and_varies,
                   cache_ttl_runs_from_the_start_of_the_request_not_its_end,
                   cache_read_refreshes_the_ttl, cache_one_hour_marker_lives_one_hour,
                   cache_five_minute_read_keeps_the_hour_it_was_written_with,
                   cache_two_writers_of_two_lifetimes_leave_the_longer_one,
                   cache_late_hit_is_possible_during_the_grace,
                   cache_unmarked_request_reads_and_writes_nothing,
                   cache_below_minimum_is_silently_zero,
                   cache_minimum_counts_the_whole_prefix_not_the_block,
                   cache_fifth_marker_is_refused,
                   cache_one_hour_after_five_minutes_is_refused,
                   cache_mixed_ttl_bills_read_then_hour_then_five_minutes,
                   cache_two_markers_let_a_sibling_read_the_shared_part,
                   cache_deep_read_keeps_a_marked_ancestor_alive,
                   cache_deep_read_restores_a_lost_ancestor_free_of_charge,
                   cache_scopes_do_not_share,
                   cache_lookback_sees_twenty_positions_the_marker_being_the_first,
                   cache_lookback_misses_behind_25_text_blocks,
                   cache_lookback_hits_behind_25_parallel_tool_calls,
                   cache_lookback_counts_each_run_of_tools_once,
                   cache_second_marker_has_a_lookback_of_its_own,
                   cache_lookback_never_reads_what_was_not_marked,
                   cache_implicit_mode_reads_whole_steps_and_charges_no_write,
                   cache_implicit_mode_counts_no_tail_below_the_minimum_as_a_write,
                   cache_lifetimes_are_shortened_in_thousandths,
                   cache_implicit_mode_keeps_every_step_of_a_chain_alive,
                   cache_breakpoints_trap_implicit_end_differs_so_nothing_matches,
                   cache_breakpoints_lookup_visits_flagged_message_ends,
                   cache_shards_split_a_key_only_above_its_rate,
                   cache_switched_off_leaves_everything_uncached,
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
