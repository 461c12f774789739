/* Segments of prompts: stored once, and reused only byte for byte. */
#include "common/codec/protocol_record.h"
#include "tests/lib/ruler_rig.h"
#include "tests/lib/suite.h"

#include <stdio.h>
#include <stdlib.h>

static struct rig rig;

/* The record of the family that an admit has stored. */
static void
append_family(char *out, size_t size, const char *tools, const char *system)
{
	struct protocol_family family = { .live = 1, .input = 4, .output = 1024 };
	char lanes[64], px[80], record[400];
	size_t len;

	(void)snprintf(lanes, sizeof(lanes), "%s.0", system);
	(void)snprintf(px, sizeof(px), "%s,%s", tools, system);
	family.pool = SPAN("default");
	family.budget = SPAN("claude:large");
	family.lanes = span_from(lanes);
	family.ancestors = SPAN("");
	family.px = span_from(px);
	family.route = SPAN("claude/m");
	ck_assert_int_eq(
		protocol_record_print_family(&family, record, sizeof(record) - 1, &len),
		0);
	record[len] = '\0';
	(void)snprintf(out + strlen(out), size - strlen(out), " %s '%s'", system, record);
}

/* Takes over a namespace that already has the families of `rig_send_large(&rig, …,
 * letter)`; the ids are those of the last one. */
static void
rule_over_families(const char *letters, char tools[33], char system[33])
{
	char families[4000] = "[0 [";
	struct rig_call *admit;
	uint32_t at, count;

	rig_rule(&rig); /* once, to learn the ids */
	for (const char *letter = letters; *letter; letter++) {
		rig_send_large(&rig, "6-0", *letter);
		admit = rig_expect(&rig, "admit");
		at = rig_group(admit, 'X', &count);
		if (count == 2)
			(void)snprintf(tools, 33, "%s", rig_word(admit, at));
		(void)snprintf(system, 33, "%s", rig_word(admit, at + 2 * (count - 1)));
		append_family(families, sizeof(families), tools, system);
		rig_answer(&rig, admit, "[OK 1000]");
	}
	rig_anew(&rig);
	(void)snprintf(families + strlen(families), sizeof(families) - strlen(families),
	               "]]");
	rig_rule_over(&rig, families, "[0 []]");
}

static void
rule_over_family(char tools[33], char system[33])
{
	rule_over_families("a", tools, system);
}

START_TEST(ruler_compares_bytes_before_it_reuses_a_segment)
{
	char tools[33], system[33];
	struct rig_call *get, *admit;
	uint32_t at, count;

	rule_over_family(tools, system);
	rig_send_large(&rig, "6-0", 'a');
	get = rig_expect(&rig, "GET px");
	ck_assert_str_eq(strchr(rig_word(get, 0), ':') + 1 + 3, tools);
	rig_answer(&rig, get, "'not these bytes'");
	rig_answer(&rig, rig_expect(&rig, "GET px"), "~");
	admit = rig_expect(&rig, "admit"); /* all below it have other ids, too */
	at = rig_group(admit, 'X', &count);
	ck_assert_uint_eq(count, 2);
	ck_assert_str_ne(rig_word(admit, at), tools);
	ck_assert_str_ne(rig_word(admit, at + 2), system);
	ck_assert(strstr(rig.notes, "two different prefixes have the same hash") != NULL);
}
END_TEST

START_TEST(ruler_asks_once_and_reuses_equal_bytes)
{
	char tools[33], system[33], value[2][4200];
	struct rig_call *admit;
	uint32_t at, count;

	rig_rule(&rig);
	rig_send_large(&rig, "6-0", 'a');
	admit = rig_expect(&rig, "admit");
	at = rig_group(admit, 'X', &count);
	(void)snprintf(value[0], sizeof(value[0]), "'%s'", rig_word(admit, at + 1));
	(void)snprintf(value[1], sizeof(value[1]), "'%s'", rig_word(admit, at + 3));
	rig_anew(&rig);

	rule_over_family(tools, system);
	rig_send_large(&rig, "6-0", 'a');
	rig_answer(&rig, rig_expect(&rig, "GET px"), value[0]);
	rig_answer(&rig, rig_expect(&rig, "GET px"), value[1]);
	admit = rig_expect(&rig, "admit");
	ck_assert_uint_eq(rig_group_count(admit, 'X'), 0);
	ck_assert_uint_eq(rig_group_count(admit, 'E'), 1);
	rig_answer(&rig, admit, "[OK 1000]");
	rig_send_large(&rig, "7-0", 'a');
	admit = rig_expect(&rig, "admit"); /* no further look */
	ck_assert_uint_eq(rig_group_count(admit, 'X'), 0);
}
END_TEST

START_TEST(ruler_stores_a_segment_that_redis_does_not_have)
{
	char tools[33], system[33];
	struct rig_call *admit;

	rule_over_family(tools, system);
	rig_send_large(&rig, "6-0", 'a');
	rig_answer(&rig, rig_expect(&rig, "GET px"), "~");
	rig_answer(&rig, rig_expect(&rig, "GET px"), "~");
	admit = rig_expect(&rig, "admit");
	ck_assert_uint_eq(rig_group_count(admit, 'X'), 2);
}
END_TEST

START_TEST(ruler_waits_for_a_segment_and_loses_no_job)
{
	char tools[33], system[33], entries[9000];
	struct rig_call *admit, *get;

	rule_over_family(tools, system);
	(void)snprintf(entries, sizeof(entries), "[[6-0 " RIG_SMALL "] %s",
	               rig_large_entry("7-0", 'a'));
	(void)snprintf(entries + strlen(entries), sizeof(entries) - strlen(entries),
	               " [8-0 " RIG_SMALL "]]");
	rig_hold(&rig, "admit");
	rig_inbox(&rig, entries);
	admit = rig_find(&rig, "admit"); /* what stands before goes at once */
	ck_assert_str_eq(rig_word(admit, 3), "6-0");
	rig_answer(&rig, admit, "[OK 1000]");
	get = rig_find(&rig, "GET px");
	ck_assert_ptr_null(rig_find(&rig, "admit"));
	rig_answer(&rig, get, "~");
	rig_answer(&rig, rig_expect(&rig, "GET px"), "~");
	admit = rig_find(&rig, "admit");
	ck_assert_str_eq(rig_word(admit, 1), "6-0");
	ck_assert_str_eq(rig_word(admit, 3), "8-0");
	ck_assert_uint_eq(rig_group_count(admit, 'E'), 2);
}
END_TEST

/* What an admit puts is in Redis behind it; looking ahead comes before it. */
START_TEST(ruler_looks_for_no_name_ahead_of_what_it_puts)
{
	char tools[33], system[33], entries[16384] = "[";

	rule_over_family(tools, system);
	for (int i = 0; i < 65; i++) /* one more than are remembered */
		(void)snprintf(
			entries + strlen(entries), sizeof(entries) - strlen(entries),
			" [5-%d [put_prefix n%d body '{\"system\":\"s\"}']]", i + 1, i);
	(void)snprintf(entries + strlen(entries), sizeof(entries) - strlen(entries),
	               " %s [8-0 [upstream claude prefix n0 body {}]]]",
	               rig_large_entry("7-0", 'a'));
	rig_hold(&rig, "admit");
	rig_inbox(&rig, entries);
	ck_assert_ptr_nonnull(rig_find(&rig, "GET px"));
	ck_assert_uint_eq(rig_group_count(rig_find(&rig, "admit"), 'P'), 65);
	ck_assert_ptr_null(rig_find(&rig, "STRLEN prefix:n0"));
}
END_TEST

/* How many segments are asked for by now, all of them answered with `value`. */
static uint32_t
answer_segments(const char *value)
{
	struct rig_call *get;
	uint32_t count = 0;

	for (; (get = rig_find(&rig, "GET px")) != NULL; count++)
		rig_answer(&rig, get, value);
	return count;
}

/* The page takes two admissions, not one for each job that has to be compared. */
START_TEST(ruler_asks_for_all_segments_that_a_page_wants_at_once)
{
	char tools[33], system[33], entries[20000] = "[[6-0 " RIG_SMALL "]";
	struct rig_call *admit;

	rule_over_families("abc", tools, system);
	for (char letter = 'a'; letter <= 'c'; letter++)
		(void)snprintf(
			entries + strlen(entries), sizeof(entries) - strlen(entries),
			" %s [7-%d1 " RIG_SMALL "]",
			rig_large_entry((char[]){ '7', '-', letter - 'a' + '1', '0', 0 },
		                        letter),
			letter - 'a' + 1);
	(void)snprintf(entries + strlen(entries), sizeof(entries) - strlen(entries), "]");
	rig_hold(&rig, "admit");
	rig_hold(&rig, "GET px");
	rig_inbox(&rig, entries);
	rig_answer(&rig, rig_expect(&rig, "admit"), "[OK 1000]");
	ck_assert_ptr_null(rig_find(&rig, "admit"));
	ck_assert_uint_eq(answer_segments("~"),
	                  4); /* the tools of all, and three prompts */
	admit = rig_expect(&rig, "admit");
	ck_assert_str_eq(rig_word(admit, 3), "7-31");
	ck_assert_uint_eq(rig_group_count(admit, 'E'), 6);
	ck_assert_uint_eq(rig_group_count(admit, 'X'), 4);
}
END_TEST

/* Bytes on their way to Redis can be compared with nothing: the job that repeats them
 * comes after them. */
START_TEST(ruler_lets_a_job_wait_whose_segment_is_on_its_way_and_not_in_memory)
{
	static const char letters[] = "abcdefghijkla";
	const size_t size = 86000, room = sizeof(letters) * (size + 300);
	char *entries = calloc(1, room);
	struct rig_call *admit;
	size_t len = 0;

	ck_assert_ptr_nonnull(entries);
	ck_assert_uint_gt((sizeof(letters) - 2) * size, rig.config.segments_size_max);
	rig_rule(&rig);
	rig_hold(&rig, "GET px");
	entries[len++] = '[';
	for (int i = 0; letters[i]; i++) {
		len += (size_t)snprintf(entries + len, room - len,
		                        "[6-%d [upstream claude body '{\"model\":\"m\","
		                        "\"system\":\"",
		                        i + 1);
		memset(entries + len, letters[i], size);
		len += size;
		len += (size_t)snprintf(entries + len, room - len,
		                        "\",\"messages\":[{\"role\":\"user\","
		                        "\"content\":\"q\"}]}']] ");
	}
	entries[len] = ']';
	rig_inbox(&rig, entries);
	free(entries);
	admit = rig_expect(&rig, "admit");
	ck_assert_str_eq(rig_word(admit, 3), "6-12");
	ck_assert_ptr_null(rig_find(&rig, "GET px"));
	rig_answer(&rig, admit, "[OK 1000]");
	rig_answer(&rig, rig_expect(&rig, "GET px"), "~");
	ck_assert_str_eq(rig_word(rig_expect(&rig, "admit"), 3), "6-13");
}
END_TEST

RIG_SUITE_MAIN("ruler_segments", ruler_compares_bytes_before_it_reuses_a_segment,
               ruler_asks_once_and_reuses_equal_bytes,
               ruler_stores_a_segment_that_redis_does_not_have,
               ruler_waits_for_a_segment_and_loses_no_job,
               ruler_looks_for_no_name_ahead_of_what_it_puts,
               ruler_asks_for_all_segments_that_a_page_wants_at_once,
               ruler_lets_a_job_wait_whose_segment_is_on_its_way_and_not_in_memory)
