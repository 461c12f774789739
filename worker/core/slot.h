/* slot.h - one unit of concurrency: what Redis holds in it, and what runs in it.
 *
 *   lease  none ─► asked ─► ours ─► settling ─► none
 *                    │        ▲  └─► leaving ─► releasing ─► none
 *                    └► none  └── fused claim
 *
 *   run    idle ─► waiting ─► loading ─► running ─► over ─► idle
 *                     ▲          │          │
 *                     └──────────┴─ stopping ─► stopped ─► idle
 *
 * The two move apart when Redis and we do: a run without a lease is an orphan, a lease
 * without a run is given back.  slot_set is the only door; it files the slot under what
 * has to be done about it, so nobody ever walks all of them.
 *
 * `run_q` names the run to the executor, `lease_q` the lease to Redis; they are equal
 * while the lease is ours. */
#ifndef WORKER_CORE_SLOT_H
#define WORKER_CORE_SLOT_H

#include "worker/core/agent.h"

#define SLOT_NONE UINT32_MAX

enum slot_lease {
	SLOT_LEASE_NONE,
	SLOT_LEASE_ASKED, /* part of a claim in flight */
	SLOT_LEASE_OURS,
	SLOT_LEASE_SETTLING, /* its settle or fail is in flight */
	SLOT_LEASE_LEAVING,  /* to be released */
	SLOT_LEASE_RELEASING,
};

enum slot_run {
	SLOT_RUN_IDLE,
	SLOT_RUN_WAITING, /* to be started */
	SLOT_RUN_LOADING, /* started; nothing went out yet */
	SLOT_RUN_RUNNING,
	SLOT_RUN_STOPPING, /* to be aborted */
	SLOT_RUN_STOPPED,  /* abort commanded; its end is on the way */
	SLOT_RUN_OVER,     /* has an outcome, or waits for its back-off */
};

enum slot_why { /* it was stopped */
	SLOT_WHY_NONE,
	SLOT_WHY_CANCELLED,
	SLOT_WHY_FENCED,
	SLOT_WHY_SLOW,
	SLOT_WHY_DRAINED,
	SLOT_WHY_LOST, /* the lease went before anything was sent */
};

enum slot_queue {
	SLOT_QUEUE_NONE,
	SLOT_QUEUE_FREE, /* may be claimed into */
	SLOT_QUEUE_SETTLE,
	SLOT_QUEUE_FAIL,
	SLOT_QUEUE_RELEASE,
	SLOT_QUEUE_BEGIN,
	SLOT_QUEUE_START,
	SLOT_QUEUE_ABORT,
	SLOT_QUEUE_COUNT,
};

enum slot_chain { /* a slot may be in one queue of each */
	SLOT_CHAIN_CALLS,
	SLOT_CHAIN_COMMANDS,
	SLOT_CHAIN_COUNT,
};

struct slot_link {
	enum slot_queue queue;
	uint32_t previous, next;
};

struct slot {
	enum slot_lease lease;
	enum slot_run run;
	uint64_t lease_q;
	uint64_t run_q;
	uint64_t next_q;  /* of the claim fused to its settle; 0: none */
	uint64_t table_q; /* what attach found in it; 0: nothing */
	bool was_sent;    /* the run's request went out */
	bool leave_sent;  /* what release has to say */
	struct protocol_usage leave_usage;
	bool has_begun;
	bool begin_due; /* its `begin` waits to be sent */
	bool begin_acked;
	enum slot_why why;
	enum agent_end end; /* while over */
	uint32_t deliveries;
	uint32_t result; /* while over */
	struct protocol_usage begin_usage;

	/* The job. */
	struct protocol_lane_id lane;
	struct id128 family;
	enum protocol_role role;
	uint32_t marks;
	uint64_t tokens;
	bool slim;
	bool begin;
	char id[PROTOCOL_TICKET_SIZE];
	uint32_t id_len;
	char px[AGENT_PX_SIZE];
	uint32_t px_len;

	struct slot_link links[SLOT_CHAIN_COUNT];
};

struct slot_list {
	uint32_t first, last, count;
};

struct slot_set {
	struct slot *slots;
	uint32_t count;
	struct slot_list lists[SLOT_QUEUE_COUNT];
	uint32_t leased;  /* leases we know of: ours, settling, leaving, releasing */
	uint32_t running; /* runs the executor has */
	uint32_t working; /* slots that are not free: a lease of any kind, or a run */
};

void slot_set_init(struct slot_set *set, struct slot *memory, uint32_t count);

/* The one door. */
void slot_set(struct slot_set *set, uint32_t index, enum slot_lease lease,
              enum slot_run run);

/* Files it again after begin_due or end changed. */
void slot_file(struct slot_set *set, uint32_t index);

uint32_t slot_first(const struct slot_set *set, enum slot_queue queue);

/* Whether the executor has, or will have, to say how it ended. */
bool slot_is_active(const struct slot *slot);

bool slot_is_ticket(const struct slot *slot);

/* A role that must be alone, and therefore must not outlive its lease. */
bool slot_must_be_alone(const struct slot *slot);

/* Forgets the run and its job. */
void slot_wipe(struct slot *slot);

void slot_audit(const struct slot_set *set);

#endif
