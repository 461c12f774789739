/* cache_lookup.h - what a request reads and stores, decided from the entries there are.
 *
 *   0 ........ read_end ........ stored_end ...... blocks_count
 *   └── read ──┘└── written (markers) ──┘└── uncached ──┘
 *
 * Nothing is changed here.  Inside provider/model only. */
#ifndef PROVIDER_MODEL_CACHE_LOOKUP_H
#define PROVIDER_MODEL_CACHE_LOOKUP_H

#include "common/base.h"
#include "provider/model/cache_request.h"
#include "provider/model/cache_store.h"

/* Where and when a lookup looks. */
struct cache_lookup {
	const struct cache_store *store;
	const struct cache_request *request;
	uint32_t shard;
	uint64_t now_us;
	uint64_t grace_us;
};

/* The end of the deepest prefix that can be read, or 0. */
uint32_t cache_lookup_read_end(const struct cache_lookup *lookup);

/* Whether the block's end is a place where this request puts an entry; `before` and
 * `after` are the tokens up to the block's beginning and end. */
bool cache_lookup_is_stored(const struct cache_request *request, uint32_t block,
                            uint32_t before, uint32_t after);

/* Fills in the rest of `look`, whose read_end is set. */
void cache_lookup_settle(const struct cache_request *request, struct cache_look *look);

#endif
