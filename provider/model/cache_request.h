/* cache_request.h - what a prompt cache sees of a request, and what it says about it.
 *
 *   tools ── system ── messages          blocks, in render order
 *     h1 ──── h2 ──── h3 ── h4           each hash covers everything up to its block
 *             ▲5m           ▲5m          markers: where entries are written
 *
 * That list is the whole truth: tests and simulators may write it by hand, without
 * JSON.  Two requests share a prefix exactly as far as their hashes are equal.
 *
 * Plain data; the blocks are borrowed for the length of a call. */
#ifndef PROVIDER_MODEL_CACHE_REQUEST_H
#define PROVIDER_MODEL_CACHE_REQUEST_H

#include "common/base.h"
#include "common/id.h"

enum {
	CACHE_REQUEST_MARKERS_MAX = 4,
	CACHE_REQUEST_BLOCKS_MAX = 1 << 20,
};

enum cache_mode {
	CACHE_MODE_MARKERS,     /* Anthropic */
	CACHE_MODE_BREAKPOINTS, /* OpenAI from GPT-5.6 */
	CACHE_MODE_IMPLICIT,    /* OpenAI to GPT-5.5, self-hosted engines */
	CACHE_MODE_COUNT,
};

enum cache_marker {
	CACHE_MARKER_NONE,
	CACHE_MARKER_5M,
	CACHE_MARKER_30M, /* breakpoints mode */
	CACHE_MARKER_1H,
	CACHE_MARKER_12H, /* breakpoints mode */
	CACHE_MARKER_24H, /* implicit mode */
	CACHE_MARKER_COUNT,
};

enum cache_block_kind {
	CACHE_BLOCK_PLAIN,
	CACHE_BLOCK_TOOL_USE, /* neighbours of the same kind are one position */
	CACHE_BLOCK_TOOL_RESULT,
	CACHE_BLOCK_KIND_COUNT,
};

struct cache_block {
	struct id128 hash; /* of everything up to and including this block */
	uint32_t tokens;   /* of this block alone */
	uint8_t kind;      /* enum cache_block_kind */
	uint8_t marker;    /* enum cache_marker; implicit mode: lifetime, none is 5m */
	bool look;         /* breakpoints mode: an unmarked place a lookup visits */
};

struct cache_request {
	uint64_t scope;   /* workspace, model and lane, as one number */
	uint64_t routing; /* requests with the same number meet on the same shard */
	enum cache_mode mode;
	uint32_t minimum_tokens; /* shorter prefixes are silently not cached */
	uint32_t step_tokens;    /* implicit mode: reads are rounded down to it */
	const struct cache_block *blocks;
	uint32_t blocks_count;
};

/* The books of one request: read + written + uncached = total. */
struct cache_usage {
	uint32_t total_tokens;
	uint32_t read_tokens;
	uint32_t written_tokens;    /* charged as written: the sum of the next two */
	uint32_t written_5m_tokens; /* or 30m */
	uint32_t written_1h_tokens; /* or 12h */
	uint32_t uncached_tokens;
	uint32_t stored_tokens; /* newly put into the cache, charged or not */
	bool known;             /* false: the provider reports no cache figures */
};

enum cache_verdict {
	CACHE_VERDICT_OK,
	CACHE_VERDICT_TOO_MANY_MARKERS,
	CACHE_VERDICT_TTL_ORDER, /* a 1h marker after a 5m one */
	CACHE_VERDICT_COUNT,
};

/* Says whether the provider would take the markers as they are, or answer 400. */
enum cache_verdict cache_request_judge(const struct cache_request *request);

/* Whether it asks for the longer and dearer of its provider's two lifetimes. */
bool cache_request_is_long(uint8_t marker);

/* How long an entry written under this marker lives. */
uint64_t cache_request_ttl_us(enum cache_marker marker);

#endif
