/* Jobs whose named prefix came after them: placed one behind the other, as they are said.
 */
#include "tests/lib/ruler_rig.h"
#include "tests/lib/suite.h"

#include <stdio.h>

#define LISTED 1024 /* remembered at a time */
#define JOBS   (LISTED + 6)
#define PREFIX "'{\"system\":\"s\"}'"

static struct rig rig;

/* The payload of such a job, as the admit that put it into `later` has stored it. */
static char payload[400];

/* The jobs came now: <born_ms>-1 and so on. */
static unsigned long long born_ms;

static void
rule(void)
{
	struct rig_call *admit;
	uint32_t count, at;

	rig_rule(&rig);
	rig_hold(&rig, "admit");
	(void)snprintf(payload, sizeof(payload),
	               "[[%llu-0 [upstream claude prefix p body "
	               "'{\"model\":\"m\",\"messages\":[]}']]]",
	               (unsigned long long)rig.now_ms);
	rig_inbox(&rig, payload);
	rig_answer(&rig, rig_expect(&rig, "GET prefix:p"), "~");
	admit = rig_expect(&rig, "admit");
	at = rig_group(admit, 'L', &count);
	ck_assert_uint_eq(count, 1);
	(void)snprintf(payload, sizeof(payload), "'%s'", rig_word(admit, at + 4));
	rig_answer(&rig, admit, "[OK 1000]");
	born_ms = rig.now_ms;
}

/* An event says that those from `first` to `last` can be placed. */
static void
say(uint32_t first, uint32_t last)
{
	static char text[JOBS * 40 + 100];
	size_t len = (size_t)snprintf(text, sizeof(text), "[%llu-0 [e '",
	                              (unsigned long long)rig.now_ms + 1);

	for (uint32_t i = first; i <= last; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
		                        "undecided %llu-%u\n", born_ms, i);
	(void)snprintf(text + len, sizeof(text) - len, "']]");
	rig_events(&rig, text);
}

/* The call that asks for the payload of one. */
static struct rig_call *
find_look(uint32_t n)
{
	char name[40];

	(void)snprintf(name, sizeof(name), "GET slim:%llu-%u", born_ms, n);
	return rig_find(&rig, name);
}

static bool
is_looked_at(uint32_t n)
{
	return find_look(n) != NULL;
}

static void
look(uint32_t n)
{
	rig_answer(&rig, find_look(n), payload);
}

static void
expect_placed(uint32_t n)
{
	struct rig_call *admit = rig_find(&rig, "admit");
	uint32_t count, at = rig_group(admit, 'U', &count);
	char id[40];

	(void)snprintf(id, sizeof(id), "%llu-%u", born_ms, n);
	ck_assert_uint_eq(count, 1);
	ck_assert_str_eq(rig_word(admit, at), id);
	ck_assert_uint_eq(rig_group_count(admit, 'E'), 1);
	rig_answer(&rig, admit, "[OK 1000]");
}

START_TEST(undecided_jobs_that_are_said_together_need_no_second_line)
{
	rule();
	say(1, JOBS);
	look(1);
	rig_answer(&rig, rig_expect(&rig, "GET prefix:p"), PREFIX);
	expect_placed(1);
	for (uint32_t n = 2; n <= LISTED; n++) {
		look(n);
		expect_placed(n); /* and the prefix is asked for once */
	}
	ck_assert(!is_looked_at(LISTED + 1) && !is_looked_at(1));
	say(LISTED + 1, JOBS); /* what found no room comes again */
	look(LISTED + 1);
}
END_TEST

START_TEST(undecided_job_that_is_said_twice_is_placed_once)
{
	rule();
	say(1, 2);
	say(1, 2);
	look(1);
	rig_answer(&rig, rig_expect(&rig, "GET prefix:p"), PREFIX);
	expect_placed(1);
	look(2);
	expect_placed(2);
	rig_step(&rig);
	ck_assert(!is_looked_at(1) && !is_looked_at(2));
}
END_TEST

/* What is known of a prefix was true a moment ago: it may have come since. */
START_TEST(undecided_job_looks_for_its_prefix_anew_after_a_moment)
{
	rule();
	say(1, 1);
	look(1);
	rig_answer(&rig, rig_expect(&rig, "GET prefix:p"), "~");
	ck_assert_ptr_null(rig_find(&rig, "admit"));
	rig_pass(&rig, 200);
	say(1, 1);
	look(1);
	rig_answer(&rig, rig_find(&rig, "GET prefix:p"), PREFIX);
	expect_placed(1);
}
END_TEST

START_TEST(undecided_jobs_and_the_inbox_take_turns)
{
	rule();
	say(1, JOBS);
	look(1);
	rig_answer(&rig, rig_expect(&rig, "GET prefix:p"), PREFIX);
	rig_inbox(&rig,
	          "[[7-0 [upstream claude body '{\"model\":\"m\",\"messages\":[]}']]]");
	expect_placed(1);
	ck_assert_str_eq(rig_word(rig_find(&rig, "admit"), 3), "7-0");
	look(2);
	rig_answer(&rig, rig_find(&rig, "admit"), "[OK 1000]");
	rig_answer(&rig, rig_find(&rig, "GET prefix:p"), PREFIX); /* a page is done */
	expect_placed(2);
}
END_TEST

START_TEST(undecided_job_that_was_cancelled_holds_up_nobody)
{
	rule();
	say(1, 2);
	rig_answer(&rig, find_look(1), "~");
	look(2);
	rig_answer(&rig, rig_expect(&rig, "GET prefix:p"), PREFIX);
	rig_answer(&rig, rig_find(&rig, "admit"), "[GONE x]");
	rig_step(&rig);
	ck_assert_ptr_null(rig_find(&rig, "admit"));
	ck_assert(!is_looked_at(2));
}
END_TEST

RIG_SUITE_MAIN("ruler_undecided",
               undecided_jobs_that_are_said_together_need_no_second_line,
               undecided_job_that_is_said_twice_is_placed_once,
               undecided_job_looks_for_its_prefix_anew_after_a_moment,
               undecided_jobs_and_the_inbox_take_turns,
               undecided_job_that_was_cancelled_holds_up_nobody)
