/* fuzz.h - one fuzz target per file, run by two engines.
 *
 *   int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
 *
 * -Dfuzz=replay (default): replay.c feeds the target its corpus, and then FUZZ_ROUNDS
 * mutations of it drawn from a fixed seed: a test that any compiler can run.
 * -Dfuzz=libfuzzer: clang's engine hunts; `./fuzz_tape corpus/tape`.
 *
 * A target states with VERIFY what must hold for every input.  It keeps no state from
 * one input to the next. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include "common/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline struct span
fuzz_span(const uint8_t *data, size_t size)
{
	return (struct span){ (const char *)data, size };
}

/* Cuts the part in front of the next `mark` off; all that is left if there is none. */
static inline struct span
fuzz_cut(struct span *rest, char mark)
{
	const char *at = rest->len ? memchr(rest->data, mark, rest->len) : NULL;
	struct span part = { rest->data, at ? (size_t)(at - rest->data) : rest->len };
	size_t used = MIN(part.len + 1, rest->len);

	rest->data += used;
	rest->len -= used;
	return part;
}

#endif
