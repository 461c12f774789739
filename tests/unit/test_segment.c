#include "tests/lib/suite.h"
#include "worker/segment.h"

static struct segment_cache cache;

static struct id128
id(uint64_t number)
{
	return (struct id128){ 0, number };
}

static struct segment *
add(uint64_t number, size_t text_len)
{
	struct segment *segment = segment_add(&cache, id(number));
	struct buffer value = BUFFER_INIT(1 << 20);

	ck_assert_ptr_nonnull(segment);
	(void)buffer_append_text(&value, "px1 A S c - - - 5m 9 0 {}\n,\"system\":\"");
	for (size_t i = 0; i < text_len; i++)
		(void)buffer_append_byte(&value, 'x');
	(void)buffer_append_byte(&value, '"');
	segment_fill(&cache, segment, buffer_span(&value));
	buffer_fini(&value);
	ck_assert_int_eq(segment->state, SEGMENT_READY);
	return segment;
}

START_TEST(segment_is_found_until_it_is_evicted_oldest_first)
{
	struct segment *found;

	ck_assert_int_eq(segment_init(&cache, 8, 400), 0);
	for (uint64_t i = 1; i <= 3; i++)
		segment_let_go(&cache, add(i, 60)); /* about 100 bytes each */
	found = segment_find(&cache, id(1));
	ck_assert_ptr_nonnull(found);
	segment_let_go(&cache, found); /* now the most recent */
	segment_let_go(&cache, add(4, 100));
	ck_assert_ptr_null(segment_find(&cache, id(2)));
	found = segment_find(&cache, id(1));
	ck_assert_ptr_nonnull(found);
	segment_let_go(&cache, found);
	segment_fini(&cache);
}
END_TEST

START_TEST(segment_that_is_held_stays_whatever_the_bound)
{
	struct segment *held, *found;

	ck_assert_int_eq(segment_init(&cache, 8, 10), 0);
	held = add(1, 500);
	segment_let_go(&cache, add(2, 500));
	ck_assert_ptr_null(segment_find(&cache, id(2)));
	found = segment_find(&cache, id(1));
	ck_assert_ptr_eq(found, held);
	segment_let_go(&cache, found);
	segment_let_go(&cache, held);
	ck_assert_ptr_null(segment_find(&cache, id(1)));
	ck_assert_uint_eq(cache.size, 0);
	segment_fini(&cache);
}
END_TEST

START_TEST(segment_places_are_taken_from_idle_ones_when_all_are_used)
{
	struct segment *held;

	ck_assert_int_eq(segment_init(&cache, 2, 1 << 20), 0);
	held = add(1, 5);
	segment_let_go(&cache, add(2, 5));
	segment_let_go(&cache, add(3, 5));
	ck_assert_ptr_null(segment_find(&cache, id(2)));
	(void)add(4, 5);
	ck_assert_ptr_null(segment_add(&cache, id(5))); /* both are held */
	segment_let_go(&cache, held);
	segment_fini(&cache);
}
END_TEST

START_TEST(segment_that_is_none_of_ours_is_failed_and_forgotten)
{
	struct segment *segment, *second;

	ck_assert_int_eq(segment_init(&cache, 4, 1000), 0);
	segment = segment_add(&cache, id(1));
	ck_assert_int_eq(segment->state, SEGMENT_LOADING);
	second = segment_find(&cache, id(1)); /* another one waits for it */
	segment_fill(&cache, segment, SPAN("px9 what"));
	ck_assert_int_eq(segment->state, SEGMENT_FAILED);
	segment_let_go(&cache, segment);
	segment_let_go(&cache, second);
	ck_assert_ptr_null(segment_find(&cache, id(1)));
	segment_fini(&cache);
}
END_TEST

START_TEST(segment_of_the_tools_tier_names_the_model)
{
	struct segment *segment;

	ck_assert_int_eq(segment_init(&cache, 4, 1000), 0);
	segment = segment_add(&cache, id(1));
	segment_fill(
		&cache, segment,
		SPAN("px1 A T c - - - 5m 4 0 {}\n{\"model\":\"m\\u00fc\",\"tools\":[]"));
	ck_assert_int_eq(segment->state, SEGMENT_READY);
	ck_assert(span_equals(segment->model, SPAN("m\xc3\xbc")));
	segment_let_go(&cache, segment);
	segment_fini(&cache);
}
END_TEST

SUITE_MAIN("segment", segment_is_found_until_it_is_evicted_oldest_first,
           segment_that_is_held_stays_whatever_the_bound,
           segment_places_are_taken_from_idle_ones_when_all_are_used,
           segment_that_is_none_of_ours_is_failed_and_forgotten,
           segment_of_the_tools_tier_names_the_model)
