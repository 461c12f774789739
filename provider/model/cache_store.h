/* cache_store.h - the prefixes a provider remembers: a table, and who was used last.
 *
 *   newest ◄──► entry ◄──► entry ◄──► entry ◄──► oldest        forgotten from this end
 *
 * An entry that a request in flight is writing is pinned and never forgotten.  Inside
 * provider/model only; the memory is part of the model's block. */
#ifndef PROVIDER_MODEL_CACHE_STORE_H
#define PROVIDER_MODEL_CACHE_STORE_H

#include "common/base.h"
#include "common/table.h"
#include "provider/model/cache_model.h"

#define CACHE_STORE_NONE UINT32_MAX

struct cache_entry {
	struct id128 key;       /* of scope, shard and hash together */
	struct cache_node node; /* what outsiders may know */
	uint64_t ttl_us;        /* of the marker it was last written under */
	uint32_t pins;          /* writes in flight that point here */
	uint32_t newer;
	uint32_t older;
};

struct cache_store {
	struct cache_entry *entries;
	struct table table;
	uint32_t entries_max;
	uint32_t count;
	uint32_t newest;
	uint32_t oldest;
	uint64_t forgotten;
};

size_t cache_store_size(uint32_t entries_max);
void cache_store_init(struct cache_store *store, void *memory, uint32_t entries_max);
void cache_store_clear(struct cache_store *store);

/* The index of the entry, or CACHE_STORE_NONE. */
uint32_t cache_store_find(const struct cache_store *store, uint64_t scope, uint32_t shard,
                          struct id128 hash);

/* Finds or makes it, and marks it as used last.  There is always room, because fewer
 * entries are pinned than exist. */
uint32_t cache_store_take(struct cache_store *store, uint64_t scope, uint32_t shard,
                          struct id128 hash);

/* Whether its TTL and the grace after it are over; also true of one never written. */
bool cache_store_is_gone(const struct cache_entry *entry, uint64_t now_us,
                         uint64_t grace_us);

/* Whether its lag is over, and it is not gone. */
bool cache_store_is_readable(const struct cache_entry *entry, uint64_t now_us,
                             uint64_t grace_us);

/* A request that started at `start_us` used it: its TTL begins anew. */
void cache_store_refresh(struct cache_entry *entry, uint64_t start_us);

/* A request that started at `start_us` has written it.  A second writer never makes it
 * readable later or live shorter than the first did; one that was gone begins anew. */
void cache_store_appear(struct cache_entry *entry, bool gone, uint64_t start_us,
                        uint64_t ttl_us, uint64_t readable_us);

/* Lost before its time. */
void cache_store_evict(struct cache_entry *entry);

void cache_store_audit(const struct cache_store *store);

#endif
