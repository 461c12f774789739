/* worker_run.h - how the simulated worker runs one job: fetch, send, report.
 *
 *   START ─► fetching ─► sent ─► first event ─► ended
 *              │ the payload, its segments, its past: plain commands on the connection
 *
 * What the provider's cache sees are the bytes of the stored segments, hashed one after
 * the other, with markers where the claim put them; their length stands for tokens.  So
 * two jobs share a prefix here iff the bytes that would be sent are the same. */
#ifndef TESTS_SIM_WORKER_RUN_H
#define TESTS_SIM_WORKER_RUN_H

#include "common/buffer.h"
#include "tests/sim/worker_host.h"

enum worker_run_phase {
	WORKER_RUN_NONE,
	WORKER_RUN_FETCHING,
	WORKER_RUN_SENT,
};

enum {
	WORKER_RUN_SEGMENTS_MAX = 3,
};

struct worker_run {
	struct worker_host *worker;
	enum worker_run_phase phase;
	uint64_t number; /* of this start */
	uint64_t q;
	uint32_t slot;
	char id[SITE_ID_SIZE];
	char px[AGENT_PX_SIZE];
	bool slim, ticket;
	uint32_t marks;
	uint32_t fetches; /* answers still to come */
	bool is_missing;  /* there is no payload */
	uint32_t attempts, attempts_max, deliveries;
	uint64_t timeout_ms;
	char reply[SITE_ID_SIZE];
	struct buffer body;
	struct buffer segments[WORKER_RUN_SEGMENTS_MAX]; /* root first */
	char tiers[WORKER_RUN_SEGMENTS_MAX + 1];         /* T, S, M of each */
	uint32_t segments_count;
	uint32_t user_marks; /* segments that the job itself has marked at their ends */
	struct site_call *call;
	uint64_t sent_ms, first_ms; /* local; 0: not yet */
	uint32_t tool_tokens;       /* written by tools of the provider's own */
};

/* Obeys AGENT_START and AGENT_ABORT. */
void worker_run_start(struct worker_host *worker, const struct agent_job *job);
void worker_run_abort(struct worker_host *worker, uint32_t slot, uint64_t q);

/* An answer to a call with a tag of the executor's. */
bool worker_run_owns_tag(uint64_t tag);
void worker_run_answer(struct worker_host *worker, uint64_t tag,
                       const struct reply *reply);

/* The connection is gone: what was being fetched starts again some day. */
void worker_run_lose(struct worker_host *worker);

/* The process is gone: nobody is told. */
void worker_run_drop(struct worker_run *run);

#endif
