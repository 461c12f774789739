#include "provider/model/cache_store.h"

/* A bijection with good avalanche (splitmix64's), so that hand-written hashes like 1,
 * 2, 3 do not crowd one corner of the table. */
static uint64_t
mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

static struct id128
key_of(uint64_t scope, uint32_t shard, struct id128 hash)
{
	uint64_t place = mix(scope ^ mix(shard));

	return (struct id128){ mix(hash.high ^ place), mix(hash.low + place) };
}

static void
unlink_entry(struct cache_store *store, uint32_t index)
{
	struct cache_entry *entry = &store->entries[index];

	if (entry->newer == CACHE_STORE_NONE)
		store->newest = entry->older;
	else
		store->entries[entry->newer].older = entry->older;
	if (entry->older == CACHE_STORE_NONE)
		store->oldest = entry->newer;
	else
		store->entries[entry->older].newer = entry->newer;
}

static void
link_newest(struct cache_store *store, uint32_t index)
{
	struct cache_entry *entry = &store->entries[index];

	entry->newer = CACHE_STORE_NONE;
	entry->older = store->newest;
	if (store->newest == CACHE_STORE_NONE)
		store->oldest = index;
	else
		store->entries[store->newest].newer = index;
	store->newest = index;
}

/* Frees the slot of the least recently used entry that nobody is writing. */
static uint32_t
forget_oldest(struct cache_store *store)
{
	uint32_t index = store->oldest;

	while (store->entries[index].pins > 0) {
		index = store->entries[index].newer;
		VERIFY(index != CACHE_STORE_NONE);
	}
	unlink_entry(store, index);
	VERIFY(table_remove(&store->table, store->entries[index].key));
	store->forgotten++;
	return index;
}

size_t
cache_store_size(uint32_t entries_max)
{
	return table_size(entries_max) + (size_t)entries_max * sizeof(struct cache_entry);
}

void
cache_store_init(struct cache_store *store, void *memory, uint32_t entries_max)
{
	*store = (struct cache_store){
		.entries = (void *)((char *)memory + table_size(entries_max)),
		.entries_max = entries_max,
		.newest = CACHE_STORE_NONE,
		.oldest = CACHE_STORE_NONE,
	};
	table_init(&store->table, memory, entries_max);
}

void
cache_store_clear(struct cache_store *store)
{
	table_clear(&store->table);
	store->count = 0;
	store->newest = CACHE_STORE_NONE;
	store->oldest = CACHE_STORE_NONE;
	store->forgotten = 0;
}

uint32_t
cache_store_find(const struct cache_store *store, uint64_t scope, uint32_t shard,
                 struct id128 hash)
{
	uint32_t index = table_find(&store->table, key_of(scope, shard, hash));

	return index == TABLE_NONE ? CACHE_STORE_NONE : index;
}

/* Marks it as used last. */
static void
touch(struct cache_store *store, uint32_t index)
{
	if (store->newest == index)
		return;
	unlink_entry(store, index);
	link_newest(store, index);
}

uint32_t
cache_store_take(struct cache_store *store, uint64_t scope, uint32_t shard,
                 struct id128 hash)
{
	uint32_t index = cache_store_find(store, scope, shard, hash);
	struct cache_entry *entry;
	int err;

	if (index != CACHE_STORE_NONE) {
		touch(store, index);
		return index;
	}
	index = store->count < store->entries_max ? store->count++ : forget_oldest(store);
	entry = &store->entries[index];
	*entry = (struct cache_entry){
		.key = key_of(scope, shard, hash),
		.node = { .hash = hash,
		          .scope = scope,
		          .shard = shard,
		          .readable_us = CACHE_MODEL_NEVER_US },
	};
	err = table_put(&store->table, entry->key, index);
	VERIFY(err == 0);
	link_newest(store, index);
	return index;
}

bool
cache_store_is_gone(const struct cache_entry *entry, uint64_t now_us, uint64_t grace_us)
{
	return now_us >= entry->node.expires_us &&
	       now_us - entry->node.expires_us >= grace_us;
}

bool
cache_store_is_readable(const struct cache_entry *entry, uint64_t now_us,
                        uint64_t grace_us)
{
	return now_us >= entry->node.readable_us &&
	       !cache_store_is_gone(entry, now_us, grace_us);
}

void
cache_store_refresh(struct cache_entry *entry, uint64_t start_us)
{
	entry->node.expires_us = MAX(entry->node.expires_us, start_us + entry->ttl_us);
}

void
cache_store_appear(struct cache_entry *entry, bool gone, uint64_t start_us,
                   uint64_t ttl_us, uint64_t readable_us)
{
	if (gone) {
		entry->ttl_us = ttl_us;
		entry->node.readable_us = readable_us;
		entry->node.expires_us = start_us + ttl_us;
		return;
	}
	entry->ttl_us = MAX(entry->ttl_us, ttl_us);
	entry->node.readable_us = MIN(entry->node.readable_us, readable_us);
	cache_store_refresh(entry, start_us);
}

void
cache_store_evict(struct cache_entry *entry)
{
	entry->node.readable_us = CACHE_MODEL_NEVER_US;
	entry->node.expires_us = 0;
}

void
cache_store_audit(const struct cache_store *store)
{
	uint32_t count = 0;
	uint32_t newer = CACHE_STORE_NONE;

	for (uint32_t i = store->newest; i != CACHE_STORE_NONE;
	     i = store->entries[i].older) {
		const struct cache_entry *entry = &store->entries[i];

		VERIFY(i < store->count);
		VERIFY(entry->newer == newer);
		VERIFY(table_find(&store->table, entry->key) == i);
		VERIFY(entry->node.writers <= entry->pins);
		VERIFY(entry->node.writers <= entry->node.writers_max);
		VERIFY(entry->node.duplicate_writes <= entry->node.writes);
		newer = i;
		count++;
		VERIFY(count <= store->count);
	}
	VERIFY(store->oldest == newer);
	VERIFY(count == store->count);
	VERIFY(count == store->table.count);
	table_audit(&store->table);
}
