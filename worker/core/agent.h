/* agent.h - one worker session: what to ask Redis, what to run, and when to let go.
 *
 *   answers, wake-ups, connection ──► ┌───────┐ ──► calls     (sent to Redis in order)
 *   what runs report ───────────────► │ agent │ ──► commands  (obeyed by the executor)
 *                               now ► └───────┘
 *
 * A slot, as the agent believes it; after a loss the table that `attach` answers is the
 * truth and every slot is compared with it:
 *
 *   free ─► asked ─► held ─► loading ─► running ─► ended ─► settling ─► free
 *     ▲       │       │  ▲ payload lost │   │ abort           │ (result kept a while)
 *     └───────┴───────┘  └──────────────┘   ▼                 ▼
 *         nothing given                 stopping ─► given back, or failed
 *
 * A run whose lease is gone is an orphan: if its request went out it is left to end, and
 * the result is offered by `settle_late`.  A slot takes nothing new before its orphan
 * ended.
 *
 * It reads no clock, makes no system call and allocates nothing after agent_init; the
 * same calls in the same order give the same output.  Feed it what happened, then step
 * it until agent_deadline is in the future:
 *
 *   agent_answer(agent, now, tag, reply);     any number of these in one loop turn,
 *   agent_ended(agent, now, slot, q, &end);   they only change the memory
 *   do {
 *           agent_step(agent, now, &out);     obey out.commands, send out.calls
 *   } while (agent_deadline(agent) <= now);
 *   sleep until agent_deadline(agent) or something happens
 *
 * `now_ms` is a local clock that never goes back; the distance to the clock of Redis is
 * measured from the answers.  Nothing is waited for without a deadline: a call that is
 * not answered within `call_ms` ends in AGENT_CLOSE, and in `attach` on the next
 * connection.
 *
 * Rules by their number in the design of the data path: 2 attach, 3 tokens, 10 results
 * kept after their acknowledgement, 16 late results and fencing, 20 busy count of beats,
 * 28 one claim in flight (and the one job of an upstream that is tried), 29 begin. */
#ifndef WORKER_CORE_AGENT_H
#define WORKER_CORE_AGENT_H

#include "common/call.h"
#include "common/codec/protocol.h"
#include "common/reply.h"

#define AGENT_SLOTS_MAX     4096
#define AGENT_BATCH         50  /* jobs settled, and slots claimed into, by one call */
#define AGENT_CALLS_MAX     32  /* unanswered calls at any time */
#define AGENT_COMMANDS_MIN  64  /* room a step needs in out.commands */
#define AGENT_PX_SIZE       320 /* comma list of node ids: 9 of them */
#define AGENT_DEADLINE_NONE UINT64_MAX
#define AGENT_SLOW_MAX      2 /* a job stopped so often as a slow leader is left to run */

/* The room a step needs in out.calls besides the largest single result. */
#define AGENT_CALL_ARGS  (AGENT_BATCH * 8 + 64)
#define AGENT_CALL_BYTES (AGENT_BATCH * 512 + 4096)

struct agent_config {
	struct span ns, label, pool, budgets; /* borrowed for the life of the agent */
	uint32_t slots;                       /* 1 to AGENT_SLOTS_MAX */
	uint32_t kept_max;  /* settled results kept for a rollback; 0: none */
	uint64_t replaces;  /* nonce of the predecessor; 0: none */
	uint64_t seed;      /* of nonces and jitter; must differ between processes */
	uint64_t job_ms;    /* the longest time-out of a job */
	uint64_t lease_ms;  /* 30,000: the session ends so long after its last beat */
	uint64_t beat_ms;   /* 10,000 */
	uint64_t margin_ms; /* 5,000: the leaders stop so long before the lease ends */
	uint64_t poll_ms;   /* 1,000: ask at least so often, give or take a quarter */
	uint64_t call_ms;   /* 5,000: an answer later than that is a lost connection */
	uint64_t kept_ms;   /* 10,000: how long results outlive their acknowledgement */
	uint64_t late_ms;   /* 1,000: between two batches of late results of our own */
	uint64_t retry_ms, retry_ms_max; /* 500, 30,000: back-off, doubling */
};

/* The values named above; slots, names and seed are the caller's. */
struct agent_config agent_config_default(void);

/* What to run.  Borrowed from the agent until it is called again: copy it. */
struct agent_job {
	uint32_t slot;
	uint64_t q;
	struct span id; /* of the job; of a ticket its "w:…" */
	struct span px; /* comma list, root to leaf */
	struct protocol_lane_id lane;
	struct id128 family;
	enum protocol_role role;
	uint32_t marks;  /* segments of px rendered with a marker: 1 the root, 2 … */
	uint64_t tokens; /* P of the node; 0 unknown */
	bool slim;       /* the payload is slim:<id> */
	bool begin;      /* its first event has to be reported */
};

enum agent_command_kind {
	AGENT_START,     /* `job`: fetch its payload, run it; ends in agent_ended */
	AGENT_ABORT,     /* slot, q: stop it; ends in agent_ended, before long */
	AGENT_SPOOL,     /* handle; text, its job: put this result on disk, it may have to
	                    outlive us; ends in agent_spooled */
	AGENT_DROP,      /* handle: nobody needs this result any more */
	AGENT_SESSION,   /* number, a nonce: remember it as the predecessor of the next
	                    process */
	AGENT_CLOSE,     /* give the connection up and make another one; no agent_lost */
	AGENT_NOTE,      /* note, number: for the log */
	AGENT_DISMISSED, /* somebody told it through Redis to stop: call agent_stop */
	AGENT_FINISHED,  /* stopped: nothing is held any more, or the time is up */
};

enum agent_note {
	AGENT_NOTE_SESSION,  /* a session began; number: its connection number */
	AGENT_NOTE_GONE,     /* Redis no longer knows the session */
	AGENT_NOTE_FENCED,   /* too long without a beat; number: ms since the last */
	AGENT_NOTE_ORPHAN,   /* the lease of a running job is gone; number: its slot */
	AGENT_NOTE_UNKNOWN,  /* a lease nobody here knows is given back; number: slot */
	AGENT_NOTE_RESENT,   /* a rollback: a result is sent again; text: its job */
	AGENT_NOTE_REFUSED,  /* a late result was not wanted; number: its handle */
	AGENT_NOTE_REPEATED, /* nor was this one, but it may have been delivered before */
	AGENT_NOTE_ACCEPTED, /* a late result was; number: its handle */
	AGENT_NOTE_ENDED,    /* a running job was cancelled; number: its slot */
	AGENT_NOTE_SLOW,     /* a leader was stopped for its deadline; number: its slot */
	AGENT_NOTE_QUIET,    /* told to claim nothing (number: 1), or to go on (0) */
	AGENT_NOTE_MISSING,  /* Redis has no function library (yet) */
	AGENT_NOTE_ERROR,    /* Redis answered an error; `text` */
	AGENT_NOTE_TIMEOUT,  /* a call was not answered; number: ms waited */
	AGENT_NOTE_SHUNNED,  /* an upstream is not reached; `text`: it, a blank, the cause
	                      */
	AGENT_NOTE_REACHED,  /* it is reached again; `text` */
	AGENT_NOTE_COUNT,
};

struct agent_command {
	enum agent_command_kind kind;
	enum agent_note note;
	uint32_t slot;
	uint64_t q;
	uint64_t handle;
	uint64_t number;
	const struct agent_job *job;
	struct span text; /* borrowed until the next call */
};

struct agent_output {
	struct call_list *calls; /* emptied by each step */
	struct agent_command *commands;
	uint32_t commands_count;
	uint32_t commands_max; /* at least AGENT_COMMANDS_MIN */
};

enum agent_end {
	AGENT_DONE,      /* result */
	AGENT_RETRY,     /* a real failure */
	AGENT_DEFER,     /* 429, overload */
	AGENT_FATAL,     /* would fail again */
	AGENT_MISSING,   /* there is no payload */
	AGENT_UNSENT,    /* nothing went out, through no fault of the job */
	AGENT_UNFETCHED, /* Redis was lost before the payload came: start again */
	AGENT_STOPPED,   /* as commanded by AGENT_ABORT */
	AGENT_END_COUNT,
};

/* How a run ended.  Spans stay valid until AGENT_DROP names `handle`; with handle 0 they
 * must be static or empty, and nothing is dropped.  `usage` has local times. */
struct agent_outcome {
	enum agent_end end;
	uint64_t handle;
	uint32_t attempts;     /* real failures of the job before this run */
	uint32_t attempts_max; /* of the job */
	uint64_t delay_ms;     /* retry: not sooner than this; 0 the back-off decides */
	uint64_t park_ms;      /* defer: the account rests; 0 does not */
	struct span reason;    /* a word */
	struct span text;      /* for people */
	struct span missed; /* unsent: the upstream that was not reached; else empty.  If
	                       its request left, something else answered */
	struct protocol_usage usage;
	struct span reply; /* list to push the result to; empty: kept by id */
	uint64_t result_ttl_ms;
	struct span result; /* delivered if the job ends with it */
};

/* A paid result of an earlier process.  Lives as above. */
struct agent_late {
	uint64_t handle;
	struct span id;
	struct span reply;
	uint64_t result_ttl_ms;
	struct span result;
};

struct agent_stats {
	uint64_t claimed, settled, failed, released, late_accepted, late_refused;
	uint64_t sessions, attaches, fenced, orphans, resent, unknown, timeouts;
	uint64_t claims_empty;
	uint64_t claim_answered_ms; /* when a claim was last answered; 0 = never */
	uint32_t slots;
	uint32_t busy;    /* slots that hold a lease */
	uint32_t running; /* slots with a request or handler at work */
	bool attached;    /* has a session on a live connection */
	bool is_fenced;
	bool is_quiet;
	uint32_t shunned; /* upstreams that it does not reach */
	uint32_t on_disk; /* results that Redis has not taken */
	bool is_stopping;
};

struct agent;

size_t agent_size(const struct agent_config *config);
struct agent *agent_init(void *memory, size_t memory_size, uint64_t now_ms,
                         const struct agent_config *config);

/* A connection is up; it is lost.  A call without an answer is lost with it. */
void agent_connected(struct agent *agent, uint64_t now_ms);
void agent_lost(struct agent *agent, uint64_t now_ms);

/* The answer to a call; one to a call given up is ignored. */
void agent_answer(struct agent *agent, uint64_t now_ms, uint64_t tag,
                  const struct reply *reply);

/* Something may be ready in our pool, or people have said that it goes on. */
void agent_wake(struct agent *agent, uint64_t now_ms);

/* The request leaves now, for `upstream`; `deliveries` of the job before this one, if
 * known. */
void agent_sent(struct agent *agent, uint64_t now_ms, uint32_t slot, uint64_t q,
                struct span upstream, uint32_t deliveries);

/* An answer that is the upstream's own. */
void agent_answered(struct agent *agent, uint64_t now_ms, struct span upstream);

/* The first event arrived.  Usage in local times. */
void agent_began(struct agent *agent, uint64_t now_ms, uint32_t slot, uint64_t q,
                 const struct protocol_usage *usage);

/* Exactly once per AGENT_START. */
void agent_ended(struct agent *agent, uint64_t now_ms, uint32_t slot, uint64_t q,
                 const struct agent_outcome *outcome);

/* Offers a result of an earlier process; only while agent_late_room answers true.  Their
 * jobs lie in Redis as if nobody had done them: batch follows batch, ahead of the hello
 * that hands the predecessor's leases back, and nothing is claimed before Redis has
 * answered for all.  agent_late_more: there are more that could not be offered yet. */
void agent_late(struct agent *agent, uint64_t now_ms, const struct agent_late *late);
bool agent_late_room(const struct agent *agent);
void agent_late_more(struct agent *agent, uint64_t now_ms, bool more);

/* What became of an AGENT_SPOOL: the result of job `id` is on disk and synced, or not:
 * then it is said again after a while. */
void agent_spooled(struct agent *agent, uint64_t now_ms, struct span id, bool is_written);

/* Claims nothing more; what still runs after `drain_ms` is stopped and given back, then
 * AGENT_FINISHED.  If Redis has been away for `call_ms`, nobody is left to give anything
 * back to: it is said as soon as nothing runs and what was paid for is on disk.  Called
 * again, the shorter time counts. */
void agent_stop(struct agent *agent, uint64_t now_ms, uint64_t drain_ms);

/* Does what is due, at most one outputful.  Commands first: a session has to be noted
 * before it exists.  A step that closes the connection sends nothing. */
void agent_step(struct agent *agent, uint64_t now_ms, struct agent_output *out);

/* When to step again at the latest; a time that has passed: at once. */
uint64_t agent_deadline(const struct agent *agent);

/* Local to Redis time; the local time itself before the first answer. */
uint64_t agent_redis_ms(const struct agent *agent, uint64_t local_ms);

void agent_stats(const struct agent *agent, struct agent_stats *ret_stats);
void agent_audit(const struct agent *agent); /* VERIFYs everything; O(n) */

#endif
