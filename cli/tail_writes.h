/* tail_writes.h - what markers behind the shared part write, of all that a route sends.
 *
 *   shared prefix | the job's own part │ marker ──► written, too: 1.25 times its price
 *
 * A conversation reads that in its next turn; nobody else does.  From the rows of the
 * ledger for this hour and the one before (docs/LEDGER.md, cause `tail`). */
#ifndef CLI_TAIL_WRITES_H
#define CLI_TAIL_WRITES_H

#include "cli/store.h"

#define TAIL_WRITES_MUCH 50 /* thousandths of the input; M6 of the rules for markers */

/* Thousandths of the input tokens; 0 if nothing is known.  An enum cli_exit. */
MUST_USE int tail_writes_share(struct store *store, uint64_t now_ms, struct span route,
                               uint64_t *ret_permille);

#endif
