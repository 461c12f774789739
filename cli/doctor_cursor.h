/* doctor_cursor.h - where admission stands in the inbox, and where it should.
 *
 *   jobs:  7-0  8-0  9-0 | 10-0  11-0
 *            admitted    ^   new
 *                      cursor
 *
 * All up to the cursor stands in a list, a lease, `later` or `dead`, or has ended and is
 * gone.  So where the cursor is lost, the greatest id that stands in any of these is it:
 * what was admitted after that has ended, and its entry is gone with it. */
#ifndef CLI_DOCTOR_CURSOR_H
#define CLI_DOCTOR_CURSOR_H

#include "cli/store.h"

enum doctor_cursor_state {
	CURSOR_GOOD,
	CURSOR_NEW,     /* an empty namespace: the first scheduler makes it */
	CURSOR_MISSING, /* although there are lanes */
	CURSOR_BROKEN,  /* not `<entry> <n>` */
	CURSOR_AHEAD,   /* of the clock: what is written now lies before it */
};

struct doctor_cursor {
	enum doctor_cursor_state state;
	char entry[64];
	uint64_t n; /* so many jobs of the entry; 0: all of it */
};

/* Looks at the cursor that is there; `now_ms` is the clock of Redis.  CLI_OK, or the code
 * to leave with. */
MUST_USE int doctor_cursor_load(struct store *store, uint64_t now_ms,
                                struct doctor_cursor *ret_cursor);

/* Where it should stand, from all that is admitted; looks at every list and lease.
 * CLI_OK, or the code to leave with. */
MUST_USE int doctor_cursor_find(struct store *store, struct doctor_cursor *ret_cursor);

#endif
