/* flight.h - calls that were sent and not answered yet, in order.
 *
 *   answered ◄── [ settle ][ claim ][ fail ] ◄── sent
 *                  ▲ head: the only one whose answer can come next
 *
 * One connection answers in the order of sending, so this is a ring.  Tags rise by one
 * and are never reused; those of a connection that was given up are older than the
 * head's, and their answers are ignored. */
#ifndef WORKER_CORE_FLIGHT_H
#define WORKER_CORE_FLIGHT_H

#include "worker/core/agent.h"

enum flight_kind {
	FLIGHT_HELLO,
	FLIGHT_ATTACH,
	FLIGHT_BEAT,
	FLIGHT_CLAIM,
	FLIGHT_SETTLE, /* and claim */
	FLIGHT_RESEND, /* a settle of kept results */
	FLIGHT_FAIL,
	FLIGHT_RELEASE,
	FLIGHT_BEGIN,
	FLIGHT_LATE,
	FLIGHT_BYE,
	FLIGHT_KIND_COUNT,
};

struct flight_item {
	uint32_t slot;
	uint32_t result; /* of resend and late */
	uint64_t q;
};

struct flight {
	uint64_t tag;
	enum flight_kind kind;
	uint64_t sent_ms;
	bool is_wake;  /* holds the one claim that asks for more work */
	bool is_try;   /* a claim of the one job of an upstream that is shunned, */
	uint32_t shun; /* this one */
	uint64_t q;    /* of claims[0]; claims[i] got q + i */
	uint32_t claims_count; /* slots claimed into, in order */
	uint32_t items_count;  /* what was settled, failed, released, ... */
	uint32_t claims[AGENT_BATCH];
	struct flight_item items[AGENT_BATCH];
};

struct flight_ring {
	struct flight flights[AGENT_CALLS_MAX];
	uint64_t tag_first; /* of the head; the ring is empty iff it is tag_next */
	uint64_t tag_next;
	bool has_wake; /* a flight with is_wake is out */
};

void flight_init(struct flight_ring *ring);
uint32_t flight_count(const struct flight_ring *ring);
bool flight_is_full(const struct flight_ring *ring);

/* Adds an empty one at the end. */
struct flight *flight_add(struct flight_ring *ring, enum flight_kind kind,
                          uint64_t now_ms);

/* The head; NULL if nothing is out. */
const struct flight *flight_head(const struct flight_ring *ring);

/* Takes the head off if `tag` is its tag; false for a tag that was given up.  A tag
 * that is out, but not the head's, is a shell that mixes its answers up. */
bool flight_land(struct flight_ring *ring, uint64_t tag, struct flight *ret_flight);

/* The connection is gone: nothing is out any more. */
void flight_clear(struct flight_ring *ring);

#endif
