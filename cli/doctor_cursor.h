/* doctor_cursor.h - where admission stands in the inbox, and where it should.
 *
 *   jobs:  7-0  8-0  9-0 | 10-0  11-0
 *            admitted    ^   new
 *                      cursor
 *
 * All up to the cursor stands in a list, a lease, `later` or `dead`, or has ended and is
 * gone.  So where the cursor is lost, the greatest id that stands in any of these is it:
 * what was admitted after that has ended, and its entry is gone with it.  Ids behind the
 * last one that the inbox gave are of an inbox that was deleted, and say nothing of this.
 *
 * Who seeks it is not alone: another repair, or a producer with ids of his own, may let
 * the scheduler go on meanwhile.  So it is set only where it reads as it did before. */
#ifndef CLI_DOCTOR_CURSOR_H
#define CLI_DOCTOR_CURSOR_H

#include "cli/store.h"

enum doctor_cursor_state {
	CURSOR_GOOD,
	CURSOR_NEW,     /* an empty namespace: the first scheduler makes it */
	CURSOR_MISSING, /* although there are lanes */
	CURSOR_BROKEN,  /* not `<entry> <n>` */
	CURSOR_AHEAD,   /* of the clock: what is written now lies before it */
	CURSOR_FUTURE,  /* likewise, and so are the ids that the inbox gives: all is well
	                 */
};

struct doctor_cursor {
	enum doctor_cursor_state state;
	char entry[64];
	uint64_t n; /* so many jobs of the entry; 0: all of it */
	/* As it stands there, cut; `text_size` is its whole size, -1: there is none. */
	char text[128];
	int64_t text_size;
};

/* Looks at the cursor that is there; `now_ms` is the clock of Redis.  CLI_OK, or the code
 * to leave with. */
MUST_USE int doctor_cursor_load(struct store *store, uint64_t now_ms,
                                struct doctor_cursor *ret_cursor);

/* Where it should stand, from all that is admitted; looks at every list and lease.
 * CLI_OK, or the code to leave with. */
MUST_USE int doctor_cursor_find(struct store *store, struct doctor_cursor *ret_cursor);

/* Sets it if it reads as in `was`, which was loaded before the other one was sought.
 * CLI_OK, or the code to leave with. */
MUST_USE int doctor_cursor_set(struct store *store, const struct doctor_cursor *was,
                               const struct doctor_cursor *cursor, bool *ret_is_set);

#endif
