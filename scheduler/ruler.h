/* ruler.h - the scheduler without its sockets: answers of Redis in, calls out.
 *
 *              connected                 OK                    read
 *   down ──────────────────► asking ───────────► reaping ─► rebuilding ─► ruling
 *    ▲                        ▲   │ HELD                                     │
 *    │ lost, from anywhere    │   ▼                                          │
 *    └────────                └─ standing by ◄───── EPOCH, lease run out ────┘
 *
 * While it rules it admits jobs from the inbox, feeds the core (scheduler/core) with what
 * happened, and carries the core's decisions to Redis.  What it decides, it decides here
 * or in the core: the daemon drives it with libuv and hiredis, the simulator with a seed,
 * and both get the same calls for the same answers.  It reads no clock and does no I/O;
 * it allocates when it is created, and later only within the bounds of its configuration
 * (segments that are kept for comparison, bytes of the inbox).
 *
 *   ruler_answer(ruler, now, tag, reply);       any number of these; they only remember
 *   do {
 *           call_reset(&list);
 *           ruler_step(ruler, now, &list);      send the list in its order
 *   } while (ruler_deadline(ruler, now) <= now);     stop after a few ms, go on next turn
 *
 * `now_ms` is the clock of Redis: the shell measures the distance, and never lets it go
 * back.  One step does a bounded piece of work (about 256 KB of bodies).
 *
 * Outcomes.  Each call has exactly one: an answer, or ruler_lost for all that are under
 * way (unknown; the memory is thrown away and read again from Redis, so nobody has to
 * guess).  The two kinds of call: ruler_tag_blocks() tells those that wait inside Redis
 * and want a connection of their own; lose that one alone with an answer of NULL. */
#ifndef SCHEDULER_RULER_H
#define SCHEDULER_RULER_H

#include "common/call.h"
#include "common/codec/dialect.h"
#include "common/reply.h"
#include "scheduler/core/core.h"
#include "scheduler/ledger/ledger.h"

#define RULER_DEADLINE_NONE UINT64_MAX
#define RULER_CLASSES_MAX   16

/* Families of a batch that is being built must not make way for each other. */
#define RULER_FAMILIES_LEAST 1024

/* Room a step needs in its list, besides twice the largest job. */
#define RULER_CALLS 64
#define RULER_ARGS  12000
#define RULER_BYTES (2u << 20)

enum ruler_level {
	RULER_DEBUG, /* of single families, by the thousand */
	RULER_INFO,
	RULER_WARNING,
	RULER_ERROR,
};

/* Something people may want to read, as one sentence, and what it is about.  Spans may
 * be empty and live as long as the call. */
struct ruler_note {
	enum ruler_level level;
	const char *text;
	struct span route, family, budget, job, trace;
};

struct ruler_limits { /* of one class of models, per minute; 0 = not known */
	struct span class_name;
	uint64_t requests, input, output;
	uint32_t concurrency;
};

struct ruler_upstream {
	struct span name, account;
	uint64_t place; /* hash of where its requests go, and for whom; 0: unknown */
	struct dialect_traits traits; /* of its dialect, as configured */
	bool markers;                 /* may we insert any? */
	bool exact;                   /* usage is evidence in both directions */
	bool proves;                  /* open only after a reader was seen */
	uint64_t ttl_ms;              /* 0 = the dialect's */
	uint64_t hold_max_ms;         /* longest hold of a job; 0 = never hold */
	struct ruler_limits limits[RULER_CLASSES_MAX];
	size_t limits_count;
};

struct ruler_price { /* what a model costs from a day on */
	uint64_t from_ms;
	struct ledger_price price;
};

struct ruler_model { /* first match; the last one should match everything */
	struct span match, class_name;
	uint32_t tokens_min;              /* 0 = the upstream's traits decide */
	bool cache_key;                   /* openai-chat: takes a cache key of ours */
	bool breakpoint;                  /* openai-chat: takes a breakpoint of ours */
	const struct ruler_price *prices; /* oldest first */
	size_t prices_count;
};

struct ruler_pool { /* first match; jobs without one go to the pool "default" */
	struct span name, match_route, match_upstream;
	uint64_t max_wait_ms; /* 0 = the core's default */
};

struct record;

/* All of it is borrowed for the life of the ruler. */
struct ruler_config {
	struct span ns;
	uint64_t seed; /* of nonces; must differ between processes */
	const struct ruler_upstream *upstreams;
	size_t upstreams_count;
	const struct ruler_model *models;
	size_t models_count;
	const struct ruler_pool *pools;
	size_t pools_count;
	struct core_config core;

	uint32_t families_max; /* remembered; twice core.families_max, and _LEAST */
	size_t job_size_max;
	size_t segments_size_max; /* bytes kept for comparison */
	size_t read_size;         /* bytes aimed at by one read of the inbox */
	uint64_t rule_ms;         /* lease of the rule, 6 s */
	uint64_t renew_ms;        /* 2 s */
	uint64_t lease_ms;        /* of workers, 30 s */
	uint64_t beat_ms;         /* of workers, 10 s */
	uint64_t block_ms; /* reads of the inbox wait so long inside Redis; 0: poll */
	uint64_t poll_ms;  /* without blocking, and in case of trouble */
	uint64_t busy_ms;  /* between two looks at the events while something is due */
	uint64_t idle_ms;  /* and while nothing is */
	uint64_t tick_ms;  /* reap, promote, expire */
	uint64_t audit_ms;
	uint64_t status_ms; /* between two writes of ns:status; 0: never */
	uint64_t result_ttl_ms;

	/* Told of every step of the core; may be NULL. */
	struct record *record;

	/* For the log; may be NULL.  A note is text for people, and what it is about. */
	void (*say)(void *data, const struct ruler_note *note);
	void *data;
};

/* The intervals and limits named above; namespace "warmq", seed 0, no upstreams. */
struct ruler_config ruler_config_default(void);

struct ruler;

/* NULL when memory is out.  `config` and what it points to outlive the ruler. */
struct ruler *ruler_create(const struct ruler_config *config);
struct ruler *ruler_destroy(struct ruler *ruler); /* answers NULL, takes NULL */

/* The connection is there, and the function library with it. */
void ruler_connected(struct ruler *ruler, uint64_t now_ms);

/* It is gone; whatever was under way is unknown.  No answers come for it any more. */
void ruler_lost(struct ruler *ruler, uint64_t now_ms);

/* `reply` NULL: this one call is lost.  Tags of an earlier connection are ignored. */
void ruler_answer(struct ruler *ruler, uint64_t now_ms, uint64_t tag,
                  const struct reply *reply);

void ruler_step(struct ruler *ruler, uint64_t now_ms, struct call_list *out);

/* When to step again at the latest: `now_ms` if there is work, else a later time. */
uint64_t ruler_deadline(const struct ruler *ruler, uint64_t now_ms);

/* Whether the call waits inside Redis, at most config.block_ms. */
bool ruler_tag_blocks(uint64_t tag);

/* Gives the rule up and does nothing more; true once that was answered, or at once if
 * there is nothing to give up. */
void ruler_stop(struct ruler *ruler);
bool ruler_is_stopped(const struct ruler *ruler);

/* Redis said that a function is missing: load the library, then ruler_connected again. */
bool ruler_wants_library(const struct ruler *ruler);

/* Whoever shows things may have them kept over restarts: fields of ns:recent, stored in
 * the same call as the rows of the ledger, and read back while the memory is rebuilt,
 * when families are known.  What is counted from the event stream and stored so counts
 * no line twice. */
struct ruler_kept {
	char field[24];
	struct span value; /* lives until the next call of any of these */
};

struct ruler_keeper {
	void *data;
	/* Before a walk; then the fields that have changed, from *cursor = 0 on, as often
	 * as it takes; then they are on their way. */
	void (*prepare)(void *data, uint64_t now_ms);
	bool (*next)(void *data, uint32_t *cursor, struct ruler_kept *ret_kept);
	void (*mark_clean)(void *data);
	/* Is there something that no event tells again? */
	bool (*has_news)(void *data);
	/* Fields and values in turn; not an array: there is nothing. */
	void (*load)(void *data, uint64_t now_ms, const struct reply *reply);
};

/* At any time before it rules; it is copied. */
void ruler_keep(struct ruler *ruler, const struct ruler_keeper *keeper);

enum ruler_phase {
	RULER_DOWN,
	RULER_ASKING,
	RULER_STANDBY, /* another one rules */
	RULER_REAPING,
	RULER_REBUILDING,
	RULER_RULING,
	RULER_STOPPED,
	RULER_PHASE_COUNT,
};

struct ruler_counts {
	uint64_t admitted, done, dead; /* jobs */
};

struct ruler_health {
	enum ruler_phase phase;
	bool admits;           /* false: the cursor is missing, nothing is admitted */
	uint64_t inbox_lag_ms; /* age of the oldest entry not yet admitted */
	bool memory_pressure;  /* Redis is above 90 % of its maxmemory */
	bool evicts;           /* its maxmemory-policy is not noeviction any more */
	bool hold;             /* false: `hold off` */
	uint64_t families;
	uint64_t backlog, in_flight, runnable; /* as of the last look, estimates */
	uint64_t admitted, dead, done;         /* jobs since the start of this process */
	struct ruler_counts ever; /* since the first one, as far as it was kept */
	uint64_t drift;           /* corrections of audits, clamped numbers */
	uint32_t everywhere; /* prefixes kept at every place of their route, as of the
	                        last look (board_places.h) */
};

const char *ruler_phase_text(enum ruler_phase phase);

#endif
