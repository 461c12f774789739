/* cache_route.h - which machine a request lands on, where each has a cache of its own.
 *
 * Requests with one routing number meet on one home shard while they are few.  Above
 * about 15 a minute they spill: with r requests in the last minute they spread evenly
 * over 1 + r / shard_rpm shards, starting at home.  That is why a steady key at 30 a
 * minute sees hits and misses mixed, and why more keys help.
 *
 * Rates are kept for the last few hundred routing numbers; a forgotten one begins at
 * zero.  Inside provider/model only. */
#ifndef PROVIDER_MODEL_CACHE_ROUTE_H
#define PROVIDER_MODEL_CACHE_ROUTE_H

#include "common/base.h"
#include "common/prng.h"

enum {
	CACHE_ROUTE_NUMBERS = 512
};

struct cache_rate {
	uint64_t number;
	uint64_t minute;   /* the minute `current` counts */
	uint32_t current;  /* requests in it; 0 in a free slot */
	uint32_t previous; /* requests in the minute before */
};

struct cache_route {
	struct cache_rate rates[CACHE_ROUTE_NUMBERS];
};

void cache_route_init(struct cache_route *route);

/* Counts one request. */
void cache_route_count(struct cache_route *route, uint64_t now_us, uint64_t number);

/* Draws a shard below `shards`.  `shard_rpm` 0: always home. */
uint32_t cache_route_draw(const struct cache_route *route, uint64_t now_us,
                          uint64_t number, uint32_t shards, uint32_t shard_rpm,
                          struct prng *prng);

#endif
