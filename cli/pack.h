/* pack.h - the jobs of an entry that held many (docs/ENVELOPE.md).
 *
 *   XADD ──► 1700-0, a pack ── admitted ──► 1700-0.1, 1700-0.2, …; 1700-0 is gone
 *
 * Nothing in Redis says how many they were: what is left of them is looked for. */
#ifndef CLI_PACK_H
#define CLI_PACK_H

#include "cli/store.h"

/* The last job of the entry of which a payload or a result is there; 0: it was none, or
 * all of its jobs are gone. */
MUST_USE int pack_last(struct store *store, struct span entry, size_t *ret_last);

/* Whether `id` is that of a packed job whose entry is still in the inbox: it may be one
 * that nobody has admitted yet, and of which nothing else is stored.  An entry that is
 * one job has no others. */
MUST_USE int pack_waits(struct store *store, struct span id, bool *ret_waits);

/* Writes the id of its n-th job. */
#define PACK_ID_SIZE 64
void pack_id(struct span entry, size_t n, char ret_id[PACK_ID_SIZE]);

#endif
