/* mark.h - names for rare branches, so that a test can tell that it was there.
 *
 *   MARK(credit_given_up);      as a statement, where nothing else shows that it happened
 *
 * It compiles to nothing in every program but one: in `warmq-sim-marks` (WARMQ_MARKS)
 * each mark counts how often it was passed, and `./dev sim marks` fails if one was not
 * passed in ten thousand seeds.  A branch that the simulator cannot reach has a unit test
 * and no mark. */
#ifndef COMMON_MARK_H
#define COMMON_MARK_H

#ifdef WARMQ_MARKS

#include <stdint.h>

struct mark {
	const char *name;
	const char *file;
	uint64_t count;
};

/* The linker gathers the places of all marks in one array, the section `marks`. */
#define MARK(label)                                                      \
	do {                                                             \
		static struct mark mark = { #label, __FILE__, 0 };       \
		static struct mark *const place                          \
			__attribute__((used, section("marks"))) = &mark; \
		mark.count++;                                            \
	} while (0)

#else

#define MARK(label) ((void)0)

#endif

#endif
