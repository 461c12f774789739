/* suite.h - the main function of a Check program, in one line at its end.
 *
 *   START_TEST(heap_equal_keys_leave_in_arrival_order) { ... } END_TEST
 *
 *   SUITE_MAIN("heap", heap_equal_keys_leave_in_arrival_order, heap_...)
 *
 * Names are sentences.  Tests that expect a VERIFY to abort go into a second list, with
 * SUITE_MAIN_WITH_DEATHS; they carry the tag `death`, so that a run without fork (under
 * valgrind) can leave them out with CK_EXCLUDE_TAGS=death. */
#ifndef TESTS_LIB_SUITE_H
#define TESTS_LIB_SUITE_H

#include "common/base.h"

#include <check.h>

struct suite_list {
	const TTest *const *tests;
	size_t count;
};

/* For loops of thousands: Check's own assertions write a note each, which costs more than
 * what is tested, and a hundred times more under valgrind. */
#define SUITE_HOLDS(claim)                                                  \
	do {                                                                \
		if (!(claim))                                               \
			ck_abort_msg("does not hold any more: %s", #claim); \
	} while (0)

/* A span against a text, both shown. */
#define SUITE_SPAN(got, want)                                                           \
	do {                                                                            \
		struct span got_ = got;                                                 \
		ck_assert_msg(span_equals(got_, span_from(want)), "'%.*s' is not '%s'", \
		              (int)got_.len, got_.data, want);                          \
	} while (0)

/* Runs all of them and answers the exit status of the program.  `before` and `after` go
 * around each test that is no death, in its process; NULL: nothing does. */
typedef void suite_fn(void);
int suite_run(const char *name, struct suite_list tests, struct suite_list deaths,
              suite_fn *before, suite_fn *after);

#define SUITE_LIST(...)                                                       \
	((struct suite_list){ (const TTest *const[]){ __VA_ARGS__ },          \
	                      sizeof((const TTest *const[]){ __VA_ARGS__ }) / \
	                              sizeof(const TTest *) })

#define SUITE_MAIN(name, ...)                                           \
	int main(void)                                                  \
	{                                                               \
		return suite_run(name, SUITE_LIST(__VA_ARGS__),         \
		                 (struct suite_list){ 0 }, NULL, NULL); \
	}

#define SUITE_MAIN_AROUND(name, before, after, ...)                        \
	int main(void)                                                     \
	{                                                                  \
		return suite_run(name, SUITE_LIST(__VA_ARGS__),            \
		                 (struct suite_list){ 0 }, before, after); \
	}

#define SUITE_MAIN_WITH_DEATHS(name, tests, deaths)                \
	int main(void)                                             \
	{                                                          \
		return suite_run(name, tests, deaths, NULL, NULL); \
	}

#endif
