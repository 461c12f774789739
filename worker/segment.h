/* segment.h - shared segments as they are kept: by id, counted, least recent out first.
 *
 *   find ─ none ──► add ─ loading ─ fill ──► ready ─ let go by all ─► idle ─► evicted
 *
 * A segment that is loading or held is never evicted, so the bound may be passed by what
 * running jobs need at the same time. */
#ifndef WORKER_SEGMENT_H
#define WORKER_SEGMENT_H

#include "common/base.h"
#include "common/codec/part.h"
#include "common/error.h"
#include "common/id.h"
#include "common/table.h"

enum segment_state {
	SEGMENT_LOADING,
	SEGMENT_READY,
	SEGMENT_FAILED, /* not found, or no segment of ours */
};

struct segment {
	struct id128 id;
	enum segment_state state;
	uint32_t holders; /* loads, and the fetch */
	char *bytes;      /* as stored; px and model_text point into them or copy */
	size_t size;      /* of them; counted in the cache */
	struct part_px px;
	struct span model; /* "" if the segment names none */
	char *model_text;
	void *waiters;                   /* the store's own list */
	struct segment *previous, *next; /* idle ones, oldest first */
};

struct segment_cache {
	struct table table;
	void *table_memory;
	struct segment **segments; /* by the table's value */
	uint32_t *unused;          /* values not taken */
	uint32_t unused_count;
	uint32_t count_max;
	size_t size, size_max;
	struct segment *idle_first, *idle_last;
};

/* ERR_MEMORY. */
MUST_USE int segment_init(struct segment_cache *cache, uint32_t count_max,
                          size_t size_max);
void segment_fini(struct segment_cache *cache);

/* Answers it held, or NULL. */
struct segment *segment_find(struct segment_cache *cache, struct id128 id);

/* Adds one that is loading, held.  NULL: no memory, or all places are in use. */
struct segment *segment_add(struct segment_cache *cache, struct id128 id);

/* The value came: it is copied, read, and ready, or failed. */
void segment_fill(struct segment_cache *cache, struct segment *segment,
                  struct span value);
void segment_fail(struct segment *segment);

/* Lets it go; a failed one is forgotten when nobody holds it any more. */
void segment_let_go(struct segment_cache *cache, struct segment *segment);

#endif
