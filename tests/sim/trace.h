/* trace.h - what a run did, line by line: hashed always, printed if asked.
 *
 *   12.345678 worker 2 < claim OK 3 runs
 *
 * Every line goes into the hash, whether it is printed or not, so the hash of a seed is
 * the same on every compiler and with every sanitizer, or something in the run depends on
 * what it must not depend on.  Lines therefore never show a pointer, a real time or a
 * float. */
#ifndef TESTS_SIM_TRACE_H
#define TESTS_SIM_TRACE_H

#include "common/base.h"
#include "common/id.h"
#include "tests/sim/agenda.h"

#include <stdio.h>

struct trace {
	const struct agenda *agenda; /* whose time it is */
	FILE *out;                   /* NULL: only hash */
	struct id_hash hash;
	uint64_t lines;
};

void trace_init(struct trace *trace, const struct agenda *agenda, FILE *out);
void trace_line(struct trace *trace, const char *format, ...) PRINTF(2, 3);
/* What only a reader wants: printed if anything is, never hashed. */
void trace_detail(struct trace *trace, struct span text);

struct id128 trace_hash(const struct trace *trace);

#endif
