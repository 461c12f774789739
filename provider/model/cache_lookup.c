#include "provider/model/cache_lookup.h"

static bool
can_read(const struct cache_lookup *lookup, uint32_t block)
{
	uint32_t index =
		cache_store_find(lookup->store, lookup->request->scope, lookup->shard,
	                         lookup->request->blocks[block].hash);

	return index != CACHE_STORE_NONE &&
	       cache_store_is_readable(&lookup->store->entries[index], lookup->now_us,
	                               lookup->grace_us);
}

static bool
is_same_position(const struct cache_block *block, const struct cache_block *next)
{
	return block->kind == next->kind && block->kind != CACHE_BLOCK_PLAIN;
}

/* Walks back from a marker over at most CACHE_MODEL_LOOKBACK positions.  Answers the
 * end of what can be read, or 0. */
static uint32_t
walk_back(const struct cache_lookup *lookup, uint32_t marker)
{
	const struct cache_block *blocks = lookup->request->blocks;
	uint32_t positions = 1;

	for (uint32_t i = marker;; i--) {
		if (can_read(lookup, i))
			return i + 1;
		if (i == 0)
			return 0;
		if (!is_same_position(&blocks[i - 1], &blocks[i]) &&
		    ++positions > CACHE_MODEL_LOOKBACK)
			return 0;
	}
}

/* In markers mode the first hit from the deepest marker is the deepest of all: what a
 * shallower marker sees in the same stretch, the deeper one has seen. */
uint32_t
cache_lookup_read_end(const struct cache_lookup *lookup)
{
	const struct cache_request *request = lookup->request;

	for (uint32_t i = request->blocks_count; i-- > 0;) {
		const struct cache_block *block = &request->blocks[i];
		bool marked = block->marker != CACHE_MARKER_NONE;
		uint32_t end = 0;

		if (!marked && !block->look && request->mode != CACHE_MODE_IMPLICIT)
			continue;
		if (request->mode == CACHE_MODE_MARKERS)
			end = walk_back(lookup, i);
		else if (can_read(lookup, i))
			end = i + 1;
		if (end > 0)
			return end;
	}
	return 0;
}

bool
cache_lookup_is_stored(const struct cache_request *request, uint32_t block,
                       uint32_t before, uint32_t after)
{
	if (after < request->minimum_tokens)
		return false;
	if (request->mode != CACHE_MODE_IMPLICIT)
		return request->blocks[block].marker != CACHE_MARKER_NONE;
	/* An engine keeps whole steps only. */
	return request->step_tokens == 0 ||
	       after / request->step_tokens > before / request->step_tokens;
}

/* Billing positions: A = end of the read, B = deepest long marker after it, C = deepest
 * marker; B-A is written long, C-B short. */
void
cache_lookup_settle(const struct cache_request *request, struct cache_look *look)
{
	struct cache_usage *usage = &look->usage;
	uint32_t total = 0, read = 0, stored = 0, stored_long = 0;

	for (uint32_t i = 0; i < request->blocks_count; i++) {
		uint32_t before = total;

		total += request->blocks[i].tokens;
		if (i + 1 == look->read_end)
			read = total;
		if (i < look->read_end ||
		    !cache_lookup_is_stored(request, i, before, total))
			continue;
		look->stored_end = i + 1;
		stored = total;
		if (cache_request_is_long(request->blocks[i].marker))
			stored_long = total;
	}
	look->prefix_tokens = read;
	usage->total_tokens = total;
	usage->read_tokens = read;
	usage->stored_tokens = stored > read ? stored - read : 0;
	if (request->mode == CACHE_MODE_IMPLICIT) {
		if (request->step_tokens > 0)
			usage->read_tokens -= read % request->step_tokens;
		if (usage->read_tokens < request->minimum_tokens)
			usage->read_tokens = 0;
	} else {
		stored_long = stored_long > read ? stored_long - read : 0;
		usage->written_tokens = usage->stored_tokens;
		usage->written_1h_tokens = stored_long;
		usage->written_5m_tokens = usage->written_tokens - stored_long;
	}
	usage->uncached_tokens = total - usage->read_tokens - usage->written_tokens;
}
