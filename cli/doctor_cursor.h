/* doctor_cursor.h - where admission stands in the inbox, and where it should.
 *
 *   jobs   … 7-0  8-0  9-0 │ 10-0  11-0 …      all up to the cursor is admitted: it
 * stands cursor                   in a list, a lease, `later` or `dead`, or has ended and
 * is gone
 *
 * So where the cursor is lost, the greatest id that stands in any of these is it: what
 * was admitted after that has ended, and its entry is gone with it. */
#ifndef CLI_DOCTOR_CURSOR_H
#define CLI_DOCTOR_CURSOR_H

#include "cli/store.h"

enum cursor_state {
	CURSOR_GOOD,
	CURSOR_NEW,     /* an empty namespace: the first scheduler makes it */
	CURSOR_MISSING, /* although there are lanes */
	CURSOR_BROKEN,  /* not `<entry> <n>` */
	CURSOR_AHEAD,   /* of the clock: what is written now lies before it */
};

struct cursor {
	enum cursor_state state;
	char entry[64];
	uint64_t n; /* so many jobs of the entry; 0: all of it */
};

MUST_USE int cursor_load(struct store *store, uint64_t now_ms, struct cursor *ret_cursor);

/* Where it should stand, from all that is admitted. */
MUST_USE int cursor_find(struct store *store, struct cursor *ret_cursor);

#endif
