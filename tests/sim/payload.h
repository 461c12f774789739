/* payload.h - a job as the executor of the simulated worker needs it.
 *
 * Read from what Redis holds: a stream entry, a slim value, or an entry that was moved
 * to a slim key.  A reader of its own, on purpose: the simulated worker then notices if
 * what the functions and the scheduler store is not what docs/PROTOCOL.md and
 * docs/ENVELOPE.md say. */
#ifndef TESTS_SIM_PAYLOAD_H
#define TESTS_SIM_PAYLOAD_H

#include "common/base.h"
#include "common/reply.h"

struct payload {
	struct span upstream;
	struct span reply;
	struct span body; /* whole, or the own value */
	uint32_t attempts;
	uint64_t timeout_ms;
};

/* Each answers false if the bytes are not what they should be.  Spans are borrowed. */
bool payload_read_entry(const struct reply *words, struct payload *ret_payload);
bool payload_read_slim(struct span value, struct payload *ret_payload);

#endif
