#include "provider/model/cache_route.h"

#define MINUTE_US (60 * 1000000ull)

static uint32_t
slot_of(uint64_t number)
{
	return (uint32_t)((number * 0x9e3779b97f4a7c15ull) >> 40) % CACHE_ROUTE_NUMBERS;
}

/* Requests of the last 60 s, from two whole minutes: the older one counts by the part
 * of it that is still inside. */
static uint32_t
rate_at(const struct cache_rate *rate, uint64_t now_us)
{
	uint64_t minute = now_us / MINUTE_US;
	uint64_t left_us = MINUTE_US - now_us % MINUTE_US;

	if (minute == rate->minute)
		return rate->current + (uint32_t)(rate->previous * left_us / MINUTE_US);
	if (minute == rate->minute + 1)
		return (uint32_t)(rate->current * left_us / MINUTE_US);
	return 0;
}

void
cache_route_init(struct cache_route *route)
{
	memset(route, 0, sizeof *route);
}

void
cache_route_count(struct cache_route *route, uint64_t now_us, uint64_t number)
{
	struct cache_rate *rate = &route->rates[slot_of(number)];
	uint64_t minute = now_us / MINUTE_US;

	if (rate->number != number || minute > rate->minute + 1)
		*rate = (struct cache_rate){ .number = number, .minute = minute };
	else if (minute == rate->minute + 1)
		*rate = (struct cache_rate){ .number = number,
			                     .minute = minute,
			                     .previous = rate->current };
	rate->current++;
}

uint32_t
cache_route_draw(const struct cache_route *route, uint64_t now_us, uint64_t number,
                 uint32_t shards, uint32_t shard_rpm, struct prng *prng)
{
	const struct cache_rate *rate = &route->rates[slot_of(number)];
	uint32_t home = (uint32_t)(number % shards);
	uint32_t spread = 1;

	if (shard_rpm > 0 && rate->number == number)
		spread = MIN(shards, 1 + rate_at(rate, now_us) / shard_rpm);
	if (spread == 1)
		return home;
	return (home + (uint32_t)prng_below(prng, spread)) % shards;
}
