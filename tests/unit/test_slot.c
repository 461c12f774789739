/* test_slot.c - the small parts of the agent: slots, results, calls in flight, clocks. */
#include "common/offset.h"
#include "tests/lib/suite.h"
#include "worker/core/flight.h"
#include "worker/core/result.h"
#include "worker/core/slot.h"

static struct slot slots[4];
static struct slot_set set;
static struct result results[4];
static struct result_pool pool;
static struct flight_ring ring;

START_TEST(slot_is_filed_under_what_has_to_be_done_about_it)
{
	slot_set_init(&set, slots, 4);
	ck_assert_uint_eq(slot_first(&set, SLOT_QUEUE_FREE), 0);
	slot_set(&set, 0, SLOT_LEASE_OURS, SLOT_RUN_WAITING);
	ck_assert_uint_eq(slot_first(&set, SLOT_QUEUE_START), 0);
	ck_assert_uint_eq(slot_first(&set, SLOT_QUEUE_FREE), 1);
	slot_set(&set, 0, SLOT_LEASE_OURS, SLOT_RUN_RUNNING);
	ck_assert_uint_eq(slot_first(&set, SLOT_QUEUE_START), SLOT_NONE);
	slots[0].begin_due = true;
	slot_file(&set, 0);
	ck_assert_uint_eq(slot_first(&set, SLOT_QUEUE_BEGIN), 0);
	slots[0].result = 0;
	slots[0].end = AGENT_DONE;
	slot_set(&set, 0, SLOT_LEASE_OURS, SLOT_RUN_OVER);
	ck_assert_uint_eq(slot_first(&set, SLOT_QUEUE_SETTLE), 0);
	slots[0].end = AGENT_RETRY;
	slot_file(&set, 0);
	ck_assert_uint_eq(slot_first(&set, SLOT_QUEUE_FAIL), 0);
	slot_audit(&set);
}
END_TEST

START_TEST(slot_may_be_given_back_while_its_run_is_being_stopped)
{
	slot_set_init(&set, slots, 4);
	slot_set(&set, 2, SLOT_LEASE_LEAVING, SLOT_RUN_STOPPING);
	ck_assert_uint_eq(slot_first(&set, SLOT_QUEUE_RELEASE), 2);
	ck_assert_uint_eq(slot_first(&set, SLOT_QUEUE_ABORT), 2);
	ck_assert_uint_eq(set.leased, 1);
	ck_assert_uint_eq(set.running, 1);
	ck_assert_uint_eq(set.working, 1);
	slot_set(&set, 2, SLOT_LEASE_NONE, SLOT_RUN_IDLE);
	ck_assert_uint_eq(set.working, 0);
	slot_audit(&set);
}
END_TEST

START_TEST(slot_lists_keep_the_order_of_arrival)
{
	slot_set_init(&set, slots, 4);
	slot_set(&set, 3, SLOT_LEASE_OURS, SLOT_RUN_WAITING);
	slot_set(&set, 1, SLOT_LEASE_OURS, SLOT_RUN_WAITING);
	slot_set(&set, 2, SLOT_LEASE_OURS, SLOT_RUN_WAITING);
	slot_set(&set, 1, SLOT_LEASE_OURS, SLOT_RUN_LOADING); /* out of the middle */
	ck_assert_uint_eq(slot_first(&set, SLOT_QUEUE_START), 3);
	slot_set(&set, 3, SLOT_LEASE_OURS, SLOT_RUN_LOADING);
	ck_assert_uint_eq(slot_first(&set, SLOT_QUEUE_START), 2);
	slot_audit(&set);
}
END_TEST

START_TEST(result_is_in_one_list_at_a_time)
{
	uint32_t first, second;

	result_pool_init(&pool, results, 4);
	first = result_take(&pool, RESULT_FRESH);
	second = result_take(&pool, RESULT_FRESH);
	results[first].outcome.result = SPAN("12345");
	result_move(&pool, first, RESULT_KEPT);
	ck_assert_uint_eq(pool.kept_bytes, 5);
	results[first].slot = 7;
	results[first].q = 9;
	ck_assert_uint_eq(result_find_kept(&pool, 7, 9), first);
	ck_assert_uint_eq(result_find_kept(&pool, 7, 8), RESULT_NONE);
	ck_assert_uint_eq(result_first(&pool, RESULT_FRESH), second);
	result_move(&pool, first, RESULT_DROPPING);
	ck_assert_uint_eq(pool.kept_bytes, 0);
	result_move(&pool, first, RESULT_FREE);
	result_audit(&pool);
}
END_TEST

START_TEST(result_pool_without_room_is_our_own_bug)
{
	result_pool_init(&pool, results, 1);
	(void)result_take(&pool, RESULT_FRESH);
	(void)result_take(&pool, RESULT_FRESH);
}
END_TEST

START_TEST(flight_answers_come_in_the_order_of_sending)
{
	struct flight flight;
	uint64_t first, second;

	flight_init(&ring);
	first = flight_add(&ring, FLIGHT_CLAIM, 10)->tag;
	ring.has_wake = true;
	ring.flights[first % AGENT_CALLS_MAX].is_wake = true;
	second = flight_add(&ring, FLIGHT_BEAT, 20)->tag;
	ck_assert_uint_eq(flight_head(&ring)->sent_ms, 10);
	ck_assert(flight_land(&ring, first, &flight));
	ck_assert_int_eq(flight.kind, FLIGHT_CLAIM);
	ck_assert(!ring.has_wake);
	ck_assert(!flight_land(&ring, first, &flight)); /* long ago */
	flight_clear(&ring);
	ck_assert(!flight_land(&ring, second, &flight)); /* given up */
	ck_assert_uint_eq(flight_count(&ring), 0);
}
END_TEST

START_TEST(flight_out_of_order_is_a_shell_that_mixes_answers_up)
{
	struct flight flight;
	uint64_t second;

	flight_init(&ring);
	(void)flight_add(&ring, FLIGHT_CLAIM, 10);
	second = flight_add(&ring, FLIGHT_BEAT, 20)->tag;
	(void)flight_land(&ring, second, &flight);
}
END_TEST

START_TEST(offset_believes_the_quickest_answer_for_a_minute)
{
	struct offset offset = { 0 };

	ck_assert_uint_eq(offset_redis_ms(&offset, 1000), 1000);
	offset_sample(&offset, 1000, 1100, 501050); /* within 100 */
	ck_assert_uint_eq(offset_redis_ms(&offset, 1000), 501000);
	offset_sample(&offset, 2000, 2010, 502015); /* quicker: better */
	ck_assert_uint_eq(offset_redis_ms(&offset, 2000), 502010);
	offset_sample(&offset, 3000, 3400, 503390); /* slower: worse */
	ck_assert_uint_eq(offset_redis_ms(&offset, 3000), 503010);
	offset_sample(&offset, 4000, 4400,
	              509999); /* slower, but the clock has stepped */
	ck_assert_uint_eq(offset_redis_ms(&offset, 4200), 509999);
	offset_sample(&offset, 5000, 5010, 510804);   /* quicker again */
	offset_sample(&offset, 66000, 66400, 571990); /* a minute later: all we have */
	ck_assert_uint_eq(offset_redis_ms(&offset, 66200), 571990);
}
END_TEST

START_TEST(offset_follows_a_clock_behind_ours_and_never_below_zero)
{
	struct offset offset = { 0 };

	offset_sample(&offset, 1000, 1000, 400);
	ck_assert_uint_eq(offset_redis_ms(&offset, 1000), 400);
	ck_assert_uint_eq(offset_redis_ms(&offset, 500), 0);
}
END_TEST

SUITE_MAIN_WITH_DEATHS(
	"slot",
	SUITE_LIST(slot_is_filed_under_what_has_to_be_done_about_it,
                   slot_may_be_given_back_while_its_run_is_being_stopped,
                   slot_lists_keep_the_order_of_arrival, result_is_in_one_list_at_a_time,
                   flight_answers_come_in_the_order_of_sending,
                   offset_believes_the_quickest_answer_for_a_minute,
                   offset_follows_a_clock_behind_ours_and_never_below_zero),
	SUITE_LIST(result_pool_without_room_is_our_own_bug,
                   flight_out_of_order_is_a_shell_that_mixes_answers_up))
