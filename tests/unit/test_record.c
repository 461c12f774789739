/* Unit tests for scheduler/record.h: the bounded record of what a core was told. */
#include "scheduler/record.h"
#include "tests/lib/suite.h"

#include <stdlib.h>

static const struct core_config config = CORE_CONFIG_DEFAULT;
static struct command_list none;

static void
tell(struct record *record, uint64_t now_ms, enum event_kind kind)
{
	const struct event event = { .kind = kind };

	record_event(record, now_ms, &event);
	record_decision(record, &none);
}

/* The file as one piece. */
static struct span
file_of(struct record *record)
{
	struct span parts[RECORD_PARTS];
	char *bytes = malloc(2 * RECORD_SIZE);
	size_t len = 0;

	record_parts(record, parts);
	for (int i = 0; i < RECORD_PARTS; i++) {
		memcpy(bytes + len, parts[i].data, parts[i].len);
		len += parts[i].len;
	}
	return (struct span){ bytes, len };
}

static uint64_t
count_steps(struct span rest, uint64_t *ret_first_ms)
{
	struct record_step step;
	uint64_t count = 0;

	while (record_next(&rest, &step)) {
		if (count++ == 0)
			*ret_first_ms = step.now_ms;
		ck_assert(step.decided);
	}
	ck_assert_uint_eq(rest.len, 0);
	return count;
}

START_TEST(record_answers_what_it_was_told)
{
	struct record *record = record_create(1 << 16, "1.2.3");
	struct event event = { .kind = EVENT_SHORT };
	struct record_header header;
	struct record_step step;
	struct span file;
	struct span rest;

	record_restart(record, &config);
	event.short_pool = (struct event_short){ .pool = { 7, 8 }, .free = 9 };
	record_event(record, 1000, &event);
	record_decision(record, &none);
	record_event(record, 1001, &event);
	file = file_of(record);
	ck_assert_int_eq(record_open(file, &header, &rest), 0);
	ck_assert_str_eq(header.build, "1.2.3");
	ck_assert_uint_eq(header.steps, 2);
	ck_assert_uint_eq(header.config.hold_max_ms, config.hold_max_ms);
	ck_assert(record_next(&rest, &step));
	ck_assert_uint_eq(step.now_ms, 1000);
	ck_assert_uint_eq(step.event.kind, EVENT_SHORT);
	ck_assert_uint_eq(step.event.short_pool.free, 9);
	ck_assert(step.decided && step.hash == record_hash(&none));
	ck_assert(record_next(&rest, &step));
	ck_assert(!step.decided);
	ck_assert(!record_next(&rest, &step));
	free((void *)(uintptr_t)file.data);
	record = record_destroy(record);
}
END_TEST

START_TEST(record_keeps_the_newest_and_says_that_its_beginning_is_gone)
{
	struct record *record = record_create(4096, "1.2.3");
	struct record_header header;
	struct span file;
	struct span rest;
	uint64_t first_ms = 0;
	uint64_t count;

	record_restart(record, &config);
	for (uint64_t i = 0; i < 1000; i++)
		tell(record, i, EVENT_TICK);
	file = file_of(record);
	ck_assert_int_eq(record_open(file, &header, &rest), 0);
	ck_assert_uint_eq(header.torn, 1);
	ck_assert_uint_eq(header.steps, 1000);
	count = count_steps(rest, &first_ms);
	ck_assert_uint_eq(first_ms + count, 1000); /* none is missing up to the last */
	ck_assert_uint_ge(count, 60);
	free((void *)(uintptr_t)file.data);
	record = record_destroy(record);
}
END_TEST

START_TEST(record_begins_anew_with_a_new_core)
{
	struct record *record = record_create(4096, "1.2.3");
	struct record_header header;
	struct span file;
	struct span rest;
	uint64_t first_ms = 0;

	record_restart(record, &config);
	for (uint64_t i = 0; i < 1000; i++)
		tell(record, i, EVENT_TICK);
	record_restart(record, &config);
	tell(record, 5000, EVENT_TICK);
	file = file_of(record);
	ck_assert_int_eq(record_open(file, &header, &rest), 0);
	ck_assert_uint_eq(header.torn, 0);
	ck_assert_uint_eq(count_steps(rest, &first_ms), 1);
	ck_assert_uint_eq(first_ms, 5000);
	free((void *)(uintptr_t)file.data);
	record = record_destroy(record);
}
END_TEST

START_TEST(record_refuses_what_is_none)
{
	struct record *record = record_create(4096, "1.2.3");
	struct record_header header;
	struct span rest;
	struct span file;
	char *bytes;

	record_restart(record, &config);
	tell(record, 1, EVENT_TICK);
	file = file_of(record);
	bytes = (char *)(uintptr_t)file.data;
	ck_assert_int_eq(record_open((struct span){ bytes, 10 }, &header, &rest),
	                 ERR_MALFORMED);
	file.len--;
	ck_assert_int_eq(record_open(file, &header, &rest), ERR_MALFORMED);
	file.len++;
	((struct record_header *)bytes)->event_size++;
	ck_assert_int_eq(record_open(file, &header, &rest), ERR_LIMIT);
	bytes[0] ^= 1;
	ck_assert_int_eq(record_open(file, &header, &rest), ERR_MALFORMED);
	free(bytes);
	record = record_destroy(record);
}
END_TEST

SUITE_MAIN("record", record_answers_what_it_was_told,
           record_keeps_the_newest_and_says_that_its_beginning_is_gone,
           record_begins_anew_with_a_new_core, record_refuses_what_is_none)
