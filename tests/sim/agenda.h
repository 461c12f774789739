/* agenda.h - what happens next in the simulated world, and when.
 *
 * The only clock there is: microseconds of world time, which every other clock (Redis's,
 * a worker's) is a distorted view of.  Entries of the same instant run in the order in
 * which they were added, so a run depends on nothing but its seed.
 *
 * An entry is a function, its context and a number.  Nothing is ever taken off the
 * agenda: who may be gone by then puts a generation into the number and compares. */
#ifndef TESTS_SIM_AGENDA_H
#define TESTS_SIM_AGENDA_H

#include "common/base.h"

typedef void agenda_fn(void *context, uint64_t number);

struct agenda_entry {
	uint64_t at_us;
	uint64_t sequence;
	agenda_fn *run;
	void *context;
	uint64_t number;
};

struct agenda {
	struct agenda_entry *entries; /* a heap: earliest first */
	size_t count;
	size_t room;
	uint64_t now_us;
	uint64_t sequence;
	uint64_t steps;
};

void agenda_fini(struct agenda *agenda);

/* `at_us` in the past means now. */
void agenda_at(struct agenda *agenda, uint64_t at_us, agenda_fn *run, void *context,
               uint64_t number);
void agenda_in(struct agenda *agenda, uint64_t delay_us, agenda_fn *run, void *context,
               uint64_t number);

/* Goes to the next entry and runs it; false if nothing is left. */
bool agenda_step(struct agenda *agenda);

#endif
