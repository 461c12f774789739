#include "common/offset.h"

/* Whether the answer could have come if the offset is right, give or take a millisecond
 * of rounding. */
static bool
explains(const struct offset *offset, uint64_t sent_ms, uint64_t received_ms,
         uint64_t redis_ms)
{
	int64_t ours_ms = (int64_t)redis_ms - offset->offset_ms;

	return ours_ms + 1 >= (int64_t)sent_ms && ours_ms <= (int64_t)received_ms + 1;
}

void
offset_sample(struct offset *offset, uint64_t sent_ms, uint64_t received_ms,
              uint64_t redis_ms)
{
	uint64_t trip_ms;

	VERIFY(received_ms >= sent_ms);
	trip_ms = received_ms - sent_ms;
	if (offset->is_known && trip_ms > offset->trip_ms &&
	    explains(offset, sent_ms, received_ms, redis_ms) &&
	    received_ms < offset->sampled_ms + OFFSET_LIFE_MS)
		return;

	offset->offset_ms = (int64_t)redis_ms - (int64_t)(sent_ms + trip_ms / 2);
	offset->trip_ms = trip_ms;
	offset->sampled_ms = received_ms;
	offset->is_known = true;
}

uint64_t
offset_redis_ms(const struct offset *offset, uint64_t local_ms)
{
	int64_t redis_ms = (int64_t)local_ms + offset->offset_ms;

	return redis_ms > 0 ? (uint64_t)redis_ms : 0;
}
