#include "worker/core/flight.h"

void
flight_init(struct flight_ring *ring)
{
	ring->tag_first = 1;
	ring->tag_next = 1;
	ring->has_wake = false;
}

uint32_t
flight_count(const struct flight_ring *ring)
{
	return (uint32_t)(ring->tag_next - ring->tag_first);
}

bool
flight_is_full(const struct flight_ring *ring)
{
	return flight_count(ring) == AGENT_CALLS_MAX;
}

static struct flight *
place_of(struct flight_ring *ring, uint64_t tag)
{
	return &ring->flights[tag % AGENT_CALLS_MAX];
}

struct flight *
flight_add(struct flight_ring *ring, enum flight_kind kind, uint64_t now_ms)
{
	struct flight *flight = place_of(ring, ring->tag_next);

	VERIFY(!flight_is_full(ring));
	flight->tag = ring->tag_next++;
	flight->kind = kind;
	flight->sent_ms = now_ms;
	flight->is_wake = false;
	flight->q = 0;
	flight->claims_count = 0;
	flight->items_count = 0;
	return flight;
}

const struct flight *
flight_head(const struct flight_ring *ring)
{
	if (ring->tag_first == ring->tag_next)
		return NULL;
	return &ring->flights[ring->tag_first % AGENT_CALLS_MAX];
}

bool
flight_land(struct flight_ring *ring, uint64_t tag, struct flight *ret_flight)
{
	if (tag < ring->tag_first)
		return false;
	VERIFY(tag == ring->tag_first);
	VERIFY(tag < ring->tag_next);
	*ret_flight = *place_of(ring, tag);
	ring->tag_first++;
	if (ret_flight->is_wake)
		ring->has_wake = false;
	return true;
}

void
flight_clear(struct flight_ring *ring)
{
	ring->tag_first = ring->tag_next;
	ring->has_wake = false;
}
