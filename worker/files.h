/* files.h - open files: how many the system allows, and for how many slots that is
 * enough.
 *
 * Too few of them look like something else: a connection that "could not be made", a name
 * that "could not be resolved".  So they are counted at the start, and looked at whenever
 * something could not be reached. */
#ifndef WORKER_FILES_H
#define WORKER_FILES_H

#include "common/base.h"

#define FILES_OWN \
	60 /* Redis twice, the loop, locks, the log, the health page and its guests */

struct files {
	uint64_t inherited; /* the soft limit that the process was started with */
	uint64_t limit;     /* the soft limit now */
};

/* Raises the soft limit to the hard one. */
struct files files_raise(void);

/* How many of `slots` may be used with this limit. */
uint32_t files_slots(uint64_t limit, uint32_t slots, uint32_t files_per_slot);

/* Whether not even one more can be opened at this moment.  Leaves errno alone. */
bool files_are_used_up(void);

/* Then a sentence that says so, and what to do. */
const char *files_advice(void);

#endif
