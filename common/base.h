/* base.h - the words every file may use: claims, results, spans of bytes.
 *
 * VERIFY(x) states what our own code guarantees.  It stays on in release: a
 * scheduler that goes on with a broken invariant spends other people's money.
 * Never use it on data from outside; that is what error.h is for.
 *
 * Nothing here allocates, reads a clock or does I/O. */
#ifndef COMMON_BASE_H
#define COMMON_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define MUST_USE      __attribute__((warn_unused_result))
#define NORETURN      __attribute__((noreturn))
#define PRINTF(f, a)  __attribute__((format(printf, f, a)))
#define ARRAY_SIZE(a) (sizeof(a) / sizeof *(a))
#define MIN(a, b)     ((a) < (b) ? (a) : (b))
#define MAX(a, b)     ((a) > (b) ? (a) : (b))

/* Names the broken promise and ends the process.  Each program links exactly one
 * body: daemons log and abort, the simulator prints the command that replays the
 * seed, fuzz targets trap. */
NORETURN void verify_fail(const char *expression, const char *file, int line);

#define VERIFY(x)                                            \
	do {                                                 \
		if (__builtin_expect(!(x), 0))               \
			verify_fail(#x, __FILE__, __LINE__); \
	} while (0)

/* A borrowed run of bytes: not terminated, not owned.  `data` may be NULL only if
 * `len` is 0. */
struct span {
	const char *data;
	size_t len;
};

#define SPAN(literal) ((struct span){ (literal), sizeof(literal) - 1 })

static inline struct span
span_from(const char *text)
{
	return (struct span){ text, text ? strlen(text) : 0 };
}

static inline bool
span_equals(struct span a, struct span b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

#endif
