/* store_walk.h - all of one kind, however much there is: keys by how they begin, fields
 * of a hash.
 *
 * Redis is asked in pieces of about a thousand, and works for others in between.  What is
 * there all the time is seen at least once; what comes or goes meanwhile may be missed.
 */
#ifndef CLI_STORE_WALK_H
#define CLI_STORE_WALK_H

#include "cli/store.h"

/* Calls `see` for each key "ns:<kind>…" ("lease:" for all leases), with its whole name,
 * and stops when it answers anything but CLI_OK.  `see` may send commands. */
MUST_USE int store_walk_keys(struct store *store, const char *kind,
                             int (*see)(void *data, const char *key), void *data);

/* Calls `see` for each field of a hash.  `see` may send nothing: both texts are part of
 * the answer. */
MUST_USE int store_walk_hash(struct store *store, struct span key,
                             void (*see)(void *data, struct span field,
                                         struct span value),
                             void *data);

#endif
