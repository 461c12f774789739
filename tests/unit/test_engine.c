#include "provider/model/engine.h"
#include "tests/lib/suite.h"

#include <stdlib.h>

#define SECOND_US 1000000ull
#define PREFIX    30000

static struct engine_config
config_default(void)
{
	return (struct engine_config){
		.seed = 1,
		.cache = { .entries_max = 1024,
		           .requests_max = 512,
		           .writes_max = 512,
		           .knobs = { .shards = 1 } },
		.timing = { .latency_us = 100000, .prefill_per_second = 10000 },
		.retry_after_ms = 1500,
	};
}

static struct engine *
engine_create(struct engine_config config)
{
	size_t size = engine_size(&config);
	void *memory = malloc(size);

	ck_assert_ptr_nonnull(memory);
	return engine_init(memory, size, &config);
}

/* A marked prefix of 30,000 tokens and a tail of 50. */
static struct engine_answer
start(struct engine *engine, uint64_t now_us, uint64_t tail)
{
	struct cache_block blocks[2] = {
		{ .hash = { 1, 1 }, .tokens = PREFIX, .marker = CACHE_MARKER_5M },
		{ .hash = { 2, tail }, .tokens = 50 },
	};
	struct engine_request request = {
		.cache = { .scope = 1,
		           .mode = CACHE_MODE_MARKERS,
		           .minimum_tokens = 1024,
		           .blocks = blocks,
		           .blocks_count = 2 },
		.account = 5,
		.output_tokens_max = 1000,
		.output_tokens = 100,
	};
	struct engine_answer answer;

	engine_start(engine, now_us, &request, &answer);
	return answer;
}

START_TEST(engine_cold_request_takes_its_prefill_and_a_warm_one_does_not)
{
	struct engine *engine = engine_create(config_default());
	struct engine_answer cold = start(engine, 0, 1), warm;

	ck_assert(cold.accepted);
	ck_assert_int_eq(cold.status, 200);
	ck_assert_uint_eq(cold.usage.written_tokens, PREFIX);
	ck_assert_uint_eq(cold.first_byte_us, 100000 + 3005000);
	engine_respond(engine, cold.first_byte_us, &cold.ticket);
	warm = start(engine, cold.first_byte_us, 2);
	ck_assert_uint_eq(warm.usage.read_tokens, PREFIX);
	ck_assert_uint_eq(warm.first_byte_us, cold.first_byte_us + 105000);
	engine_finish(engine, cold.done_us, &cold.ticket, 100);
	engine_respond(engine, warm.first_byte_us, &warm.ticket);
	engine_finish(engine, warm.done_us, &warm.ticket, 100);
	engine_audit(engine);
	ck_assert_uint_eq(engine_stats(engine)->output_tokens, 200);
	ck_assert_uint_eq(engine_stats(engine)->accepted, 2);
	free(engine);
}
END_TEST

START_TEST(engine_request_refused_for_its_rate_is_not_in_the_books)
{
	struct engine_config config = config_default();
	struct engine *engine;
	struct engine_answer answer;

	config.limits[0].per_minute[LIMIT_BUCKET_INPUT] = 60000;
	engine = engine_create(config);
	ck_assert(start(engine, 0, 1).accepted);
	answer = start(engine, 0, 2);
	ck_assert(!answer.accepted);
	ck_assert_int_eq(answer.status, 429);
	ck_assert_int_eq(answer.limit, LIMIT_VERDICT_INPUT);
	/* 30,050 needed, 29,950 there, 1,000 a second. */
	ck_assert_uint_eq(answer.retry_after_us, 100000);
	ck_assert_uint_eq(cache_model_stats(engine_cache(engine)).requests, 1);
	ck_assert_uint_eq(engine_stats(engine)->refused_limit[LIMIT_VERDICT_INPUT], 1);
	engine_audit(engine);
	free(engine);
}
END_TEST

START_TEST(engine_accounts_and_classes_have_buckets_of_their_own)
{
	struct engine_config config = config_default();
	struct engine *engine;
	struct engine_request request = { .cache = { .mode = CACHE_MODE_MARKERS } };
	struct engine_answer answer;

	config.limits[0].per_minute[LIMIT_BUCKET_REQUESTS] = 1;
	config.limits[1].per_minute[LIMIT_BUCKET_REQUESTS] = 1;
	engine = engine_create(config);
	for (uint64_t account = 0; account < 2; account++)
		for (uint32_t class = 0; class < 2; class ++)
			for (int again = 0; again < 2; again++) {
				request.account = account;
				request.class = class;
				engine_start(engine, 0, &request, &answer);
				ck_assert_int_eq(answer.status, again ? 429 : 200);
			}
	free(engine);
}
END_TEST

START_TEST(engine_fault_before_the_work_starts_nothing)
{
	struct engine_config config = config_default();
	struct engine *engine;
	struct engine_answer answer;

	config.fault = (struct fault_knobs){ .next = FAULT_OVERLOADED, .next_count = 1 };
	engine = engine_create(config);
	answer = start(engine, 0, 1);
	ck_assert(!answer.accepted);
	ck_assert_int_eq(answer.status, 529);
	ck_assert_uint_eq(answer.retry_after_us, 1500000);
	ck_assert_uint_eq(cache_model_stats(engine_cache(engine)).requests, 0);
	ck_assert(start(engine, 0, 1).accepted);
	free(engine);
}
END_TEST

START_TEST(engine_fault_during_the_work_still_writes)
{
	struct engine_config config = config_default();
	struct engine *engine;
	struct engine_answer answer;

	config.fault = (struct fault_knobs){ .next = FAULT_LOSE_REPLY, .next_count = 1 };
	engine = engine_create(config);
	answer = start(engine, 0, 1);
	ck_assert(answer.accepted);
	ck_assert_int_eq(answer.fault, FAULT_LOSE_REPLY);
	engine_respond(engine, answer.first_byte_us, &answer.ticket);
	engine_finish(engine, answer.done_us, &answer.ticket, 100);
	ck_assert_uint_eq(start(engine, answer.done_us, 2).usage.read_tokens, PREFIX);
	free(engine);
}
END_TEST

START_TEST(engine_without_room_is_overloaded)
{
	struct engine_config config = config_default();
	struct engine *engine;
	struct engine_answer first, second;

	config.cache.requests_max = 1;
	config.limits[0].per_minute[LIMIT_BUCKET_OUTPUT] = 5000;
	engine = engine_create(config);
	first = start(engine, 0, 1);
	second = start(engine, 0, 2);
	ck_assert_int_eq(second.status, 529);
	ck_assert(!second.accepted);
	ck_assert_uint_eq(engine_stats(engine)->refused_full, 1);
	/* What was reserved for it was given back. */
	ck_assert_uint_eq(engine_level(engine, 0, 5, 0, LIMIT_BUCKET_OUTPUT).remaining,
	                  4000);
	engine_finish(engine, 1, &first.ticket, 0);
	ck_assert(start(engine, 1, 2).accepted);
	engine_audit(engine);
	free(engine);
}
END_TEST

START_TEST(engine_reset_gives_the_same_run_again)
{
	struct engine_config config = config_default();
	struct engine *engine;
	uint64_t first_us[50];

	config.timing.latency_permille = 200;
	config.cache.knobs.miss_permille = 500;
	engine = engine_create(config);
	for (uint64_t round = 0; round < 2; round++) {
		uint64_t base_us = round * 1000 * SECOND_US;

		engine_reset(engine, base_us);
		for (uint64_t i = 0; i < 50; i++) {
			struct engine_answer answer = start(engine, base_us + i, i);
			uint64_t took_us = answer.first_byte_us - base_us;

			engine_respond(engine, base_us + i, &answer.ticket);
			engine_finish(engine, base_us + i, &answer.ticket, 0);
			if (round == 1)
				ck_assert_uint_eq(took_us, first_us[i]);
			first_us[i] = took_us;
		}
		ck_assert_uint_eq(engine_stats(engine)->accepted, 50);
	}
	free(engine);
}
END_TEST

START_TEST(engine_burst_of_200_with_one_leader_costs_a_tenth_of_the_naive_one)
{
	struct engine *engine = engine_create(config_default());
	struct engine_answer answers[200];
	struct cache_stats naive, led;

	for (uint64_t i = 0; i < 200; i++)
		answers[i] = start(engine, 0, i);
	for (uint64_t i = 0; i < 200; i++) {
		engine_respond(engine, 5 * SECOND_US, &answers[i].ticket);
		engine_finish(engine, 5 * SECOND_US, &answers[i].ticket, 100);
	}
	naive = cache_model_stats(engine_cache(engine));
	ck_assert_uint_eq(naive.writes, 200);
	ck_assert_uint_eq(naive.writers_max, 200);

	engine_reset(engine, 6 * SECOND_US);
	for (uint64_t i = 0; i < 200; i++) {
		answers[i] = start(engine, (i > 0 ? 11 : 6) * SECOND_US, i);
		if (i == 0)
			engine_respond(engine, 10 * SECOND_US, &answers[i].ticket);
	}
	led = cache_model_stats(engine_cache(engine));
	ck_assert_uint_eq(led.writes, 1);
	ck_assert_uint_eq(led.duplicate_writes, 0);
	ck_assert_uint_eq(led.reads, 199);
	/* In hundredths of the price of a plain token: 125 a write, 10 a read. */
	ck_assert_uint_lt((led.written_tokens * 125 + led.read_tokens * 10) * 10,
	                  naive.written_tokens * 125);
	free(engine);
}
END_TEST

SUITE_MAIN("engine", engine_cold_request_takes_its_prefill_and_a_warm_one_does_not,
           engine_request_refused_for_its_rate_is_not_in_the_books,
           engine_accounts_and_classes_have_buckets_of_their_own,
           engine_fault_before_the_work_starts_nothing,
           engine_fault_during_the_work_still_writes, engine_without_room_is_overloaded,
           engine_reset_gives_the_same_run_again,
           engine_burst_of_200_with_one_leader_costs_a_tenth_of_the_naive_one)
