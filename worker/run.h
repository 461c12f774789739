/* run.h - one claimed job on its way through an executor.
 *
 *   run_start ─► loading ─► at work ─► ended ─► run_finish ─► free
 *                   │           │        ▲
 *                   └───────────┴────────┘ run_stop, or an error
 *
 * Loading fetches payload and segments from Redis and reads the envelope; the executor
 * does the work: the HTTP client, a program of the user's, or nothing at all.  However it
 * ends, on_ended is called exactly once, and the outcome stands in the run until
 * run_finish takes it; the callbacks only take notes, the shell acts on its own turn. */
#ifndef WORKER_RUN_H
#define WORKER_RUN_H

#include "common/codec/chain.h"
#include "worker/child.h"
#include "worker/http.h"
#include "worker/refusal.h"
#include "worker/report.h"
#include "worker/store.h"
#include "worker/upstream.h"

#define RUN_MS_MAX 3600000 /* or worker.timeout, if that is longer */

enum run_state {
	RUN_FREE,
	RUN_LOADING,
	RUN_AT_WORK,
	RUN_ENDED,
};

struct run;

struct executor {
	const char *name;
	unsigned wants; /* enum store_want, of jobs */
	bool takes_ticket;
	bool needs_keys;
	uint32_t files_per_slot; /* descriptors, at most */

	/* Begins the work; ends in run_end, also from within. */
	void (*begin)(struct run *run);

	/* Ends the work without an outcome of its own. */
	void (*stop)(struct run *run);
};

/* What all runs share. */
struct run_context {
	uv_loop_t *loop;
	const struct config *config;
	const struct executor *executor;
	struct store *store;
	struct http *http;
	const struct upstream_list *upstreams;
	struct child_list children; /* handlers */
	struct refusal_list refusals;
	struct report_list reports;
	struct chain chain;             /* memory for bodies that were not split */
	uint64_t (*now_ms)(void *data); /* the agent's clock */
	uint64_t (*redis_ms)(uint64_t local_ms, void *data);
	void (*on_sent)(struct run *run, void *data);
	void (*on_began)(struct run *run, const struct protocol_usage *usage, void *data);
	void (*on_ended)(struct run *run, void *data);
	void *data;
};

struct run {
	struct run_context *context;
	enum run_state state;
	struct run *next; /* of those whose end has not been told yet */

	uint32_t slot;
	uint64_t q;
	char id[PROTOCOL_TICKET_SIZE];
	char px[AGENT_PX_SIZE];
	uint32_t id_len, px_len;
	struct protocol_lane_id lane;
	struct id128 family;
	enum protocol_role role;
	uint32_t marks; /* as in agent_job, like all above */
	bool slim;
	bool begin;

	struct store_load *load;
	struct envelope_reader *reader;
	struct envelope envelope; /* of a job, once loaded */
	void *work;               /* the executor's */

	bool was_sent;
	bool has_missed;            /* its upstream: another worker may reach it */
	uint64_t sent_ms, first_ms; /* local; 0: not yet */
	int64_t wait_ms;            /* until it was sent; negative: not known */
	struct agent_outcome outcome;
	struct report *report;
};

static inline struct span
run_id(const struct run *run)
{
	return (struct span){ run->id, run->id_len };
}

static inline bool
run_is_ticket(const struct run *run)
{
	return run->role == PROTOCOL_TICKET;
}

/* Copies the job.  The run must be free. */
void run_start(struct run *run, struct run_context *context, const struct agent_job *job);

/* Ends as AGENT_STOPPED, unless its end is already on the way. */
void run_stop(struct run *run);

/* After the outcome was told: hands the report to whoever will drop it, frees the rest.
 */
void run_finish(struct run *run);

/* Whom it is for: what the job names, or the budget of a ticket; empty until loaded. */
struct span run_upstream(const struct run *run);

/* For executors: the request leaves; the first event came; it is over. */
void run_sent(struct run *run);
void run_began(struct run *run, const struct protocol_usage *usage);
void run_end(struct run *run, enum agent_end end);

/* Ends in a failure that people can read.  `delay_ms` and `park_ms` as in agent_outcome.
 */
void run_fail(struct run *run, enum agent_end end, const char *reason, struct span text,
              uint64_t delay_ms, uint64_t park_ms);

/* How long it may take: what the job says, within what the worker allows.  The leases of
 * a session end some time after the longest of these. */
uint64_t run_ms_max(const struct config *config);
uint64_t run_timeout_ms(const struct run *run);

/* The facts about this run that every result names. */
struct report_facts run_facts(const struct run *run, const char *state);

/* The report, made on first use; NULL when out of memory. */
struct report *run_report(struct run *run);

#endif
