/* result.h - outcomes on their way out of the worker.
 *
 *             ┌──────────────────────── acknowledged ──► kept ──┐ old, or too many
 *   free ─► fresh ── lease gone ──► late ── answered ──► dropping ──► free
 *             └───────────── nobody needs it ──────────────┘
 *
 * Fresh ones belong to a slot.  Kept ones were acknowledged, but Redis may still forget
 * that: a rollback shows their lease again, and then they are sent again.  The bytes are
 * the executor's until AGENT_DROP names the handle; each result is in exactly one list,
 * each list in order of arrival.
 *
 * The memory is the caller's: result_pool_size() bytes, aligned to 8. */
#ifndef WORKER_CORE_RESULT_H
#define WORKER_CORE_RESULT_H

#include "common/codec/protocol_call.h"
#include "worker/core/agent.h"

#define RESULT_NONE UINT32_MAX

enum result_list {
	RESULT_FREE,
	RESULT_FRESH,
	RESULT_LATE,
	RESULT_KEPT,
	RESULT_RESENT, /* kept, and to be settled once more */
	RESULT_DROPPING,
	RESULT_LIST_COUNT,
};

struct result {
	enum result_list list;
	uint32_t previous, next; /* RESULT_NONE at the ends */
	uint32_t slot;
	uint64_t q;
	uint64_t since_ms;    /* fresh and late: end of the run; kept: acknowledged */
	bool is_spooled;      /* AGENT_SPOOL was said */
	bool is_on_disk;      /* and obeyed */
	uint64_t spool_at_ms; /* not said before this: the disk refused it */
	bool is_inherited;    /* late: an earlier process paid for it */
	bool in_flight;       /* late and resent: part of a call */
	char id[PROTOCOL_JOB_ID_SIZE];
	uint32_t id_len;              /* 0: a ticket, nothing to deliver late */
	struct protocol_late attempt; /* fresh and late; its usage is the outcome's */
	struct agent_outcome outcome;
};

struct result_queue {
	uint32_t first, last, count;
};

struct result_pool {
	struct result *results;
	uint32_t results_max;
	struct result_queue lists[RESULT_LIST_COUNT];
	size_t kept_bytes;
};

size_t result_pool_size(uint32_t results_max);
void result_pool_init(struct result_pool *pool, void *memory, uint32_t results_max);

/* Takes a free one into `list`.  The caller has seen to it that there is one. */
uint32_t result_take(struct result_pool *pool, enum result_list list);

/* The one door between lists; it goes to the end of the new one. */
void result_move(struct result_pool *pool, uint32_t index, enum result_list list);

/* The first of a list, or RESULT_NONE. */
uint32_t result_first(const struct result_pool *pool, enum result_list list);
uint32_t result_next(const struct result_pool *pool, uint32_t index);

/* Is it something that was paid for, and can be delivered by another process? */
bool result_is_paid(const struct result *result);

/* The kept result of this lease, or RESULT_NONE. */
uint32_t result_find_kept(const struct result_pool *pool, uint32_t slot, uint64_t q);

void result_audit(const struct result_pool *pool);

#endif
