/* Named prefixes: looked for when a job is admitted, and ahead for the jobs behind it. */
#include "tests/lib/ruler_rig.h"
#include "tests/lib/suite.h"

#include <stdio.h>
#include <string.h>

#define PREFIX       "'{\"system\":\"s\"}'"
#define AT_ONCE      32 /* names that are asked for in one round */
#define NAMES        100
#define PLACES       64 /* names that are remembered */
#define ENTRIES_SIZE 20000

static struct rig rig;

static void
open_rig(void)
{
	rig_init(&rig);
	rig_rule(&rig);
	rig_hold(&rig, "admit");
}

static void
close_rig(void)
{
	rig_fini(&rig);
}

/* `count` entries, each of which names the next prefix from n`from` on. */
static void
append_jobs(char *entries, uint32_t from, uint32_t count)
{
	static uint32_t id;
	size_t len = strlen(entries);

	for (uint32_t i = from; i < from + count; i++)
		len += (size_t)snprintf(entries + len, ENTRIES_SIZE - len,
		                        " [6-%u [upstream claude prefix n%u body "
		                        "'{\"model\":\"m\",\"messages\":[]}']]",
		                        ++id, i);
	ck_assert_uint_lt(len, ENTRIES_SIZE);
}

static void
send_jobs(uint32_t count)
{
	char entries[ENTRIES_SIZE] = "[";

	append_jobs(entries, 0, count);
	(void)snprintf(entries + strlen(entries), sizeof(entries) - strlen(entries), "]");
	rig_inbox(&rig, entries);
}

static bool
is_out(const struct rig_call *call, const char *name)
{
	return !call->answered && strncmp(call->name, name, strlen(name)) == 0;
}

/* How many are out whose names begin so. */
static uint32_t
count_out(const char *name)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < rig.calls_count; i++)
		count += is_out(&rig.calls[i], name);
	return count;
}

static struct rig_call *
find_tag(uint64_t tag)
{
	for (uint32_t i = 0; i < rig.calls_count; i++)
		if (rig.calls[i].tag == tag && !rig.calls[i].answered)
			return &rig.calls[i];
	return NULL;
}

/* Answers all that are out now, and none that comes of it; how many that were.  A %s in
 * the answer is what the name of the call has behind `name`. */
static uint32_t
answer_all(const char *name, const char *format)
{
	uint64_t tags[RIG_CALLS_MAX];
	uint32_t count = 0;

	rig_step(&rig);
	for (uint32_t i = 0; i < rig.calls_count; i++)
		if (is_out(&rig.calls[i], name))
			tags[count++] = rig.calls[i].tag;
	for (uint32_t i = 0; i < count; i++) {
		struct rig_call *call = find_tag(tags[i]);
		const char *at = strstr(format, "%s");
		char text[3000];

		ck_assert_ptr_nonnull(call);
		(void)snprintf(text, sizeof(text), "%.*s%s%s",
		               (int)(at ? (size_t)(at - format) : strlen(format)), format,
		               at ? call->name + strlen(name) : "", at ? at + 2 : "");
		rig_answer(&rig, call, text);
	}
	rig_step(&rig);
	return count;
}

START_TEST(prefix_names_behind_one_that_is_asked_for_are_measured_in_the_same_round)
{
	struct rig_call *admit;

	send_jobs(NAMES);
	(void)rig_expect(&rig, "GET prefix:n0");
	ck_assert_ptr_nonnull(rig_find(&rig, "STRLEN prefix:n1"));
	ck_assert_ptr_nonnull(rig_find(&rig, "STRLEN prefix:n31"));
	ck_assert_ptr_null(rig_find(&rig, "STRLEN prefix:n32"));
	ck_assert_uint_eq(answer_all("GET prefix", "~"), 1);
	ck_assert_ptr_null(rig_find(&rig, "admit"));
	ck_assert_uint_eq(answer_all("STRLEN prefix", "0"), AT_ONCE - 1);

	/* None of them is there: all end (their ids are old), and the next ones are asked
	 * for. */
	admit = rig_expect(&rig, "admit");
	ck_assert_uint_eq(rig_group_count(admit, 'D'), AT_ONCE);
	ck_assert_ptr_nonnull(rig_find(&rig, "GET prefix:n32"));
	ck_assert_ptr_nonnull(rig_find(&rig, "STRLEN prefix:n63"));
}
END_TEST

START_TEST(prefix_contents_come_ahead_once_their_sizes_are_known)
{
	send_jobs(AT_ONCE);
	ck_assert_uint_eq(answer_all("GET prefix", PREFIX), 1);
	ck_assert_uint_eq(answer_all("STRLEN prefix", "14"), AT_ONCE - 1);
	ck_assert_uint_eq(answer_all("admit", "[OK 1000]"), 1);
	ck_assert_uint_eq(rig_count(&rig, "GET prefix:n31"), 1);
	ck_assert_uint_eq(answer_all("GET prefix", PREFIX), AT_ONCE - 1);
	ck_assert_uint_eq(rig_group_count(rig_expect(&rig, "admit"), 'E'), AT_ONCE - 1);
}
END_TEST

START_TEST(prefix_contents_that_would_not_fit_come_in_their_turn)
{
	char half[24];

	(void)snprintf(half, sizeof(half), "%zu", rig.config.read_size / 2);
	send_jobs(6);
	ck_assert_uint_eq(answer_all("GET prefix", PREFIX), 1);
	ck_assert_uint_eq(answer_all("STRLEN prefix", half), 5);
	ck_assert_uint_eq(answer_all("admit", "[OK 1000]"), 1);
	/* That of job 1, which needs it now, and as much ahead as one read may bring. */
	ck_assert_uint_eq(answer_all("GET prefix", PREFIX), 3);
	ck_assert_uint_eq(rig_group_count(rig_expect(&rig, "admit"), 'E'), 3);
}
END_TEST

START_TEST(prefix_that_cannot_be_measured_is_asked_for_in_its_turn)
{
	send_jobs(2);
	ck_assert_uint_eq(answer_all("GET prefix", PREFIX), 1);
	ck_assert_uint_eq(answer_all("STRLEN prefix", "!WRONGTYPE it is a list"), 1);
	ck_assert_uint_eq(answer_all("admit", "[OK 1000]"), 1);
	ck_assert_uint_eq(answer_all("GET prefix:n1", "!WRONGTYPE it is a list"), 1);
	ck_assert_uint_eq(rig_group_count(rig_expect(&rig, "admit"), 'D'), 1);
}
END_TEST

/* Each new family is that of a route, here the name of its prefix; its last segment must
 * say that name.  How many there are. */
static uint32_t
check_families(const struct rig_call *admit)
{
	uint32_t families, segments, at = rig_group(admit, 'F', &families);
	uint32_t from = rig_group(admit, 'X', &segments);

	for (uint32_t i = 0; i < families; i++) {
		const char *family = rig_word(admit, at + i * 11);
		const char *route = rig_word(admit, at + i * 11 + 10); /* route|model */
		uint32_t segment = rig_position(admit, family, from);
		char says[40];

		(void)snprintf(says, sizeof(says), " %.*s ", (int)strcspn(route, "|"),
		               route);
		ck_assert_ptr_nonnull(strstr(rig_word(admit, segment + 1), says));
	}
	return families;
}

/* A content with the name in it that is worth a segment of its own. */
static void
make_content(char content[2600])
{
	(void)snprintf(content, 2600, "'{\"system\":\"");
	memset(content + strlen(content), 'x', 2500);
	(void)snprintf(content + 12 + 2500, 2600 - 12 - 2500, " %%s \"}'");
}

/* Answers until `jobs` of them are placed; returns how many families were new. */
static uint32_t
place_all(const char *content, uint32_t jobs)
{
	uint32_t families = 0, placed = 0;

	for (int round = 0; round < 100 && placed < jobs; round++) {
		struct rig_call *admit;

		(void)answer_all("GET prefix:", content);
		(void)answer_all("STRLEN prefix:", "2520");
		admit = rig_find(&rig, "admit");
		if (!admit)
			continue;
		placed += rig_group_count(admit, 'E');
		families += check_families(admit);
		rig_answer(&rig, admit, "[OK 1000]");
	}
	ck_assert_uint_eq(placed, jobs);
	return families;
}

START_TEST(prefix_more_names_than_places_get_their_own_contents)
{
	char content[2600];

	make_content(content);
	send_jobs(NAMES);
	ck_assert_uint_eq(place_all(content, NAMES), NAMES);
}
END_TEST

/* What an admit puts is in Redis behind it: who asked before would get an older one. */
START_TEST(prefix_that_was_put_by_a_batch_is_asked_for_behind_it)
{
	char entries[ENTRIES_SIZE] = "[";
	uint32_t count = 70; /* more than there are places */
	struct rig_call *admit;

	for (uint32_t i = 0; i < count; i++)
		(void)snprintf(entries + strlen(entries), ENTRIES_SIZE - strlen(entries),
		               " [5-%u [put_prefix n%u body " PREFIX "]]", i + 1, i);
	append_jobs(entries, 0, 2);
	(void)snprintf(entries + strlen(entries), sizeof(entries) - strlen(entries), "]");
	rig_inbox(&rig, entries);
	admit = rig_expect(&rig, "admit");
	ck_assert_uint_eq(rig_group_count(admit, 'P'), count);
	ck_assert_uint_eq(count_out("GET prefix") + count_out("STRLEN prefix"), 0);
	rig_answer(&rig, admit, "[OK 1000]");
	ck_assert_ptr_nonnull(rig_find(&rig, "GET prefix:n0"));
	ck_assert_ptr_nonnull(rig_find(&rig, "STRLEN prefix:n1"));
}
END_TEST

/* "[n5][n100]…": the place of n5 is the sixth that would be given up. */
START_TEST(prefix_place_of_the_one_that_is_waited_for_is_not_given_up)
{
	char entries[ENTRIES_SIZE] = "[", content[2600];

	make_content(content);
	send_jobs(PLACES);
	ck_assert_uint_eq(place_all(content, PLACES), PLACES);
	append_jobs(entries, 5, 1);
	append_jobs(entries, 100, AT_ONCE);
	(void)snprintf(entries + strlen(entries), sizeof(entries) - strlen(entries), "]");
	rig_inbox(&rig, entries);
	ck_assert_uint_eq(answer_all("GET prefix:", content), 1);
	(void)answer_all("STRLEN prefix:", "2520");
	ck_assert_ptr_null(rig_find(&rig, "GET prefix:n5"));
	ck_assert_uint_eq(place_all(content, 1 + AT_ONCE), AT_ONCE); /* n5 is not new */
}
END_TEST

START_TEST(prefix_that_two_jobs_name_is_measured_once_for_each_page)
{
	char entries[ENTRIES_SIZE] = "[";

	for (int page = 1; page <= 2; page++) {
		(void)snprintf(entries, sizeof(entries), "[");
		for (uint32_t i = 0; i < 6; i++)
			append_jobs(entries, i / 2, 1);
		(void)snprintf(entries + strlen(entries),
		               sizeof(entries) - strlen(entries), "]");
		rig_inbox(&rig, entries);
		ck_assert_uint_eq(answer_all("GET prefix:n0", PREFIX), 1);
		ck_assert_uint_eq(answer_all("STRLEN prefix", "14"), 2);
		ck_assert_uint_eq(answer_all("admit", "[OK 1000]"), 1);
		ck_assert_uint_eq(answer_all("GET prefix", PREFIX), 2);
		ck_assert_uint_eq(answer_all("admit", "[OK 1000]"), 1);
	}
}
END_TEST

/* Nobody's jobs die of the operator's mistake. */
START_TEST(prefix_that_has_become_empty_leaves_the_last_good_one_in_use)
{
	send_jobs(2);
	ck_assert_uint_eq(answer_all("GET prefix", PREFIX), 1);
	ck_assert_uint_eq(answer_all("STRLEN prefix", "14"), 1);
	ck_assert_uint_eq(answer_all("admit", "[OK 1000]"), 1);
	ck_assert_uint_eq(answer_all("GET prefix:n1", PREFIX), 1);
	ck_assert_uint_eq(answer_all("admit", "[OK 1000]"), 1);

	send_jobs(2);
	ck_assert_uint_eq(answer_all("GET prefix", PREFIX), 1);
	ck_assert_uint_eq(answer_all("STRLEN prefix", "0"), 1);
	ck_assert_uint_eq(answer_all("admit", "[OK 1000]"), 1);
	ck_assert_uint_eq(answer_all("GET prefix:n1", "-"), 1);
	ck_assert_uint_eq(rig_group_count(rig_expect(&rig, "admit"), 'E'), 1);
}
END_TEST

START_TEST(prefix_answers_that_are_lost_are_asked_for_again)
{
	send_jobs(4);
	(void)rig_expect(&rig, "GET prefix:n0");
	rig_forget(&rig);
	ruler_lost(rig.ruler, rig.now_ms);
	rig_rule(&rig);
	rig_hold(&rig, "admit");
	send_jobs(4);
	ck_assert_uint_eq(answer_all("GET prefix", PREFIX), 1);
	ck_assert_uint_eq(answer_all("STRLEN prefix", "0"), 3);
	ck_assert_uint_eq(rig_group_count(rig_expect(&rig, "admit"), 'D'), 3);
}
END_TEST

SUITE_MAIN_AROUND(
	"ruler_prefix", open_rig, close_rig,
	prefix_names_behind_one_that_is_asked_for_are_measured_in_the_same_round,
	prefix_contents_come_ahead_once_their_sizes_are_known,
	prefix_contents_that_would_not_fit_come_in_their_turn,
	prefix_that_cannot_be_measured_is_asked_for_in_its_turn,
	prefix_more_names_than_places_get_their_own_contents,
	prefix_place_of_the_one_that_is_waited_for_is_not_given_up,
	prefix_that_two_jobs_name_is_measured_once_for_each_page,
	prefix_that_has_become_empty_leaves_the_last_good_one_in_use,
	prefix_that_was_put_by_a_batch_is_asked_for_behind_it,
	prefix_answers_that_are_lost_are_asked_for_again)
