/* store.h - what a run needs from Redis: its payload, the shared segments, its past.
 *
 *   store_load ──► XRANGE or GET  payload ─┐
 *              ──► HMGET          past     ├─ all answered ──► on_loaded
 *              ──► GET px:…       segments ┘
 *                    ▲ only what is not kept here already, and once however many wait
 *
 * Segments are kept up to a bound, least recently used ones go first; those that a load
 * holds stay.  A segment never changes under its id, so a kept one is always right.
 *
 * All commands of a load are pipelined.  A load ends with exactly one on_loaded, unless
 * it is released before; it is never called from within store_load. */
#ifndef WORKER_STORE_H
#define WORKER_STORE_H

#include "common/base.h"
#include "common/codec/envelope.h"
#include "common/codec/part.h"
#include "common/codec/protocol.h"
#include "common/error.h"
#include "common/io/redis.h"

#define STORE_SIZE_MAX ((size_t)128 << 20) /* segments kept */
#define STORE_PX_MAX   4096                /* segments kept */

struct store;

enum store_want {
	STORE_PAYLOAD = 1, /* of a job */
	STORE_SEGMENTS = 2,
	STORE_PAST = 4,
	STORE_BUDGET = 8, /* of a lane: tells where a ticket goes */
};

struct store_request {
	unsigned want;  /* enum store_want */
	struct span id; /* of the job */
	bool slim;
	struct span px; /* comma list */
	struct span lane;
};

struct store_segment {
	struct part_px px; /* borrowed from the store while the load lives */
	struct span model; /* as the segment says; empty if it does not */
};

struct store_load {
	int error;           /* 0; ERR_NOT_FOUND: no payload or segment; ERR_MALFORMED;
	                        ERR_CONNECTION: nothing is known */
	const char *missing; /* what was not found or not understood, for people */
	bool slim;
	struct span payload;         /* slim: the value */
	struct envelope_pair *pairs; /* else: the fields of the entry */
	size_t pairs_count;
	uint64_t entry_ms;
	struct store_segment segments[PART_NODES_MAX]; /* root to leaf */
	unsigned segments_count;
	uint32_t attempts;   /* of its past */
	uint32_t deliveries; /* before this one */
	char budget[PROTOCOL_BUDGET_SIZE + 1];
};

typedef void store_loaded_fn(struct store_load *load, void *data);

/* Borrows the connection.  ERR_MEMORY. */
MUST_USE int store_create(struct redis *redis, struct span ns, struct store **ret_store);

/* All loads must have been released. */
struct store *store_destroy(struct store *store);

/* ERR_CONNECTION or ERR_MEMORY: on_loaded is not called then. */
MUST_USE int store_load(struct store *store, const struct store_request *request,
                        store_loaded_fn *fn, void *data, struct store_load **ret_load);

/* Also before it is loaded.  Answers NULL; takes NULL. */
struct store_load *store_release(struct store_load *load);

#endif
