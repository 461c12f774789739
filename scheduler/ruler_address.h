/* ruler_address.h - whose requests go elsewhere than those of the ruler before.
 *
 *   meta places ── differs from ──► upstreams of the configuration ──► their open lanes
 *                                                                      are shut
 *
 * What a provider keeps is kept where it was sent: behind another address or for another
 * key it has to be written first, by one request, whatever Redis says of it.  A hash for
 * each upstream stands in `meta`; without any, as of an older release, nothing is new. */
#ifndef SCHEDULER_RULER_ADDRESS_H
#define SCHEDULER_RULER_ADDRESS_H

#include "scheduler/ruler_state.h"

/* What `meta` has. */
void ruler_address_compare(struct ruler *ruler, struct span stored);

/* Whether the upstream of this budget is one of them. */
bool ruler_address_is_new(const struct ruler *ruler, struct span budget);

/* Once what they had is shut, so that it happens once. */
void ruler_address_store(struct ruler *ruler, struct call_list *out);

#endif
