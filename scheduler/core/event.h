/* event.h - everything that can happen to the core.
 *
 *   configuration   MODEL POOL BUDGET HOLD PAUSE        what people and files say
 *   wishes          UNPARK WARM                         what people ask for, once
 *   recovery        RECOVERED_FAMILY _LANE _LEASE _BUDGET _END    what Redis holds
 *   work            ADMITTED                            after an `admit` that was OK
 *   answers         GRANTED PACED GLANCED               one for each command
 *   hints           START BEGAN DONE BACK TICKET        lines of the event stream;
 *                   PRESSURE EMPTY WORK EXPIRED SHORT   losing any of them sticks nothing
 *   time            TICK
 *
 * An event is plain data, copied by value.  Times are milliseconds of the Redis clock.
 * Ids name things for ever; pools, budgets and models are ids too (the shell hashes
 * their names).  Events about unknown ids are ignored: they come from outside.
 *
 * Order: first the configuration, then the recovery up to RECOVERED_END; until then the
 * core emits no command.  MODEL, POOL, BUDGET may come again at any time with new
 * values.  A family's pool and budget must have been named before it is admitted. */
#ifndef SCHEDULER_CORE_EVENT_H
#define SCHEDULER_CORE_EVENT_H

#include "common/base.h"
#include "common/id.h"
#include "scheduler/core/lane.h"
#include "scheduler/core/lineage.h"

#define EVENT_UNKNOWN UINT64_MAX /* a time or a count that nobody knows; not zero */

enum event_kind {
	EVENT_TICK, /* nothing but time */
	EVENT_MODEL,
	EVENT_POOL,
	EVENT_BUDGET,
	EVENT_HOLD,
	EVENT_PAUSE,
	EVENT_RECOVERED_FAMILY, /* .admitted */
	EVENT_RECOVERED_LANE,
	EVENT_RECOVERED_LEASE, /* .start, of roles lead, canary and ticket */
	EVENT_RECOVERED_BUDGET,
	EVENT_RECOVERED_END,
	EVENT_ADMITTED,
	EVENT_GRANTED,
	EVENT_PACED,
	EVENT_GLANCED,
	EVENT_START,
	EVENT_BEGAN, /* .usage */
	EVENT_DONE,  /* .usage */
	EVENT_BACK,
	EVENT_TICKET,
	EVENT_PRESSURE,
	EVENT_EMPTY,   /* .family */
	EVENT_WORK,    /* .family */
	EVENT_EXPIRED, /* .expired */
	EVENT_SHORT,
	EVENT_UNPARK,
	EVENT_WARM, /* .family: write its prefix ahead of its jobs */
	EVENT_KIND_COUNT,
};

/* What is known of one model at one upstream.  Comes from warmq.yaml and the tables of
 * dialects; the core learns lag, trust and leader times under the same id. */
struct event_model {
	struct id128 id;
	bool hold;         /* false: never hold its jobs (bypass, off) */
	bool needs_marker; /* the provider caches only what is marked */
	bool exact;        /* misses may close a lane; false = best effort */
	bool proves;       /* a reader's usage at its first event is a proof: one canary.
	                      false: the lane opens without proof */
	bool streams; /* the first event of a leader is visible; false: only its end */
	bool calls;   /* a warm-up request of its own is possible */
	uint32_t minimum_tokens; /* shorter prefixes are not cached; 0 = no minimum */
	uint64_t ttl_ms;         /* of an entry; a family may say otherwise */
};

struct event_pool {
	struct id128 id;
	uint32_t slots;       /* of all its live sessions now; 0 = no worker */
	uint64_t max_wait_ms; /* 0 = the core's default */
};

enum event_bucket {
	EVENT_BUCKET_REQUESTS,
	EVENT_BUCKET_INPUT,
	EVENT_BUCKET_OUTPUT,
	EVENT_BUCKET_COUNT,
};

struct event_budget {
	struct id128 id;
	uint64_t limits[EVENT_BUCKET_COUNT]; /* per minute, configured; 0 = learn it */
	uint32_t pace_max;                   /* 0 = no bound of its own */
};

#define EVENT_UNHELD_MAX 64 /* routes whose holding is switched off; more are not */

/* Of one route, or of all: an id of none.  A family is held iff neither is off. */
struct event_hold {
	bool on;
	struct id128 route;
};

struct event_pause {
	struct id128 family;
	bool on;
};

/* The lists of a family, best band first: `now` jobs are never held. */
enum event_list {
	EVENT_LIST_HIGH,
	EVENT_LIST_NORMAL,
	EVENT_LIST_LOW,
	EVENT_LIST_NOW,
	EVENT_LIST_COUNT,
};

enum {
	EVENT_FAMILY_PAUSED = 1,
	EVENT_FAMILY_OPAQUE = 2,      /* the body could not be split: never held */
	EVENT_FAMILY_TAIL_MARKED = 4, /* some job carries markers past its boundary */
	EVENT_FAMILY_NO_STREAM = 8,   /* its jobs cannot be streamed upstream */
};

/* Jobs went into the lists of a family (ADMITTED), or the family was found in Redis
 * (RECOVERED_FAMILY: `jobs` count the known backlog, or 1 for a list that is not empty).
 * The leaf of the chain is the family's id. */
struct event_admitted {
	struct id128 pool, budget, model;
	struct id128 route; /* none: nobody switches it off */
	struct lineage chain;
	uint32_t domain;
	uint32_t flags; /* EVENT_FAMILY_... */
	uint32_t jobs[EVENT_LIST_COUNT];
	uint64_t oldest_ms;   /* id time of the oldest of them; EVENT_UNKNOWN */
	uint64_t hold_max_ms; /* smallest of its held jobs; 0 = the core's default */
	uint64_t ttl_ms;      /* of its markers; 0 = the model's */
	uint32_t input_tokens, output_tokens; /* estimates for one job */
	uint32_t marks; /* RECOVERED_FAMILY: as its record has them */
};

/* A lane record as Redis holds it. */
struct event_lane {
	struct lane_id lane;
	enum lane_gate gate;
	enum lane_reason reason;
	uint64_t g;
	uint32_t credits;
	enum lane_role role;
	uint32_t in_use;
	uint64_t until_ms;
	uint64_t life_ms;
	uint32_t p;
	enum lane_ticket ticket;
	uint32_t window;
	uint32_t rank;
	bool moved; /* requests go to another address now: what could be read says
	               nothing, nor what was learned of reading, nor a hit sent until now
	             */
};

struct event_recovered_budget {
	struct id128 id;
	uint32_t pace;
	uint32_t in_flight;
	uint64_t parked_until_ms;
	uint64_t limits[EVENT_BUCKET_COUNT]; /* those that answers had told; 0 = none */
	bool moved; /* to another address or key, of which all this says nothing */
};

/* How a command ended.  UNKNOWN: the connection died after the write. */
enum event_status {
	EVENT_STATUS_DONE,
	EVENT_STATUS_REFUSED, /* grant only: the stored g was another */
	EVENT_STATUS_UNKNOWN,
};

/* The answer to one GRANT.  Fields after `status` are meaningless if UNKNOWN. */
struct event_granted {
	struct lane_id lane;
	uint64_t g_new; /* of the command */
	enum event_status status;
	uint64_t g; /* stored now */
	uint32_t in_use;
	uint32_t bits;    /* non-empty lists of the lane's family */
	uint64_t head_ms; /* id time of its oldest waiting job; 0 = none */
};

struct event_paced {
	struct id128 budget;
	enum event_status status; /* DONE or UNKNOWN */
};

struct event_glanced {
	struct id128 family;
	enum event_status status; /* DONE or UNKNOWN */
	uint32_t backlog;
	uint32_t in_use;
	uint64_t head_ms; /* 0 = none */
};

struct event_start {
	struct lane_id lane; /* of the family itself; so in all lines below */
	uint64_t g;
	enum lane_role role;
	uint64_t at_ms; /* time of the event entry */
};

/* `sent first read written uncached output` and the limits of the answer's headers.
 * Each may be EVENT_UNKNOWN; a limit that was not told is 0. */
struct event_usage {
	struct lane_id lane;
	uint64_t g;
	enum lane_role role;
	uint64_t at_ms; /* time of the event entry */
	uint64_t sent_ms, first_ms;
	uint64_t read, written, uncached, output; /* tokens */
	uint64_t limits[EVENT_BUCKET_COUNT];      /* per minute */
};

struct event_back {
	struct lane_id lane;
	uint64_t g;
	enum lane_role role;
	enum lane_back why;
};

struct event_ticket {
	struct event_usage usage; /* role is LANE_TICKET */
	bool ok;
	bool refused; /* failed, and the provider refused the body (400) */
};

enum event_pressure_kind {
	EVENT_PRESSURE_BUSY,  /* 429: our own limit */
	EVENT_PRESSURE_OVER,  /* 529: the provider's */
	EVENT_PRESSURE_ERROR, /* 5xx, time-outs */
	EVENT_PRESSURE_SPEND, /* a spend cap: nothing works until somebody pays */
	EVENT_PRESSURE_AWAY,  /* not reached, or not a byte until the time-out */
	EVENT_PRESSURE_COUNT,
};

struct event_pressure {
	struct id128 budget;
	enum event_pressure_kind what;
	uint64_t until_ms; /* parked until; 0 = not parked */
};

/* Somebody says that the account works again: Redis starts its jobs already. */
struct event_unpark {
	struct id128 budget;
};

struct event_family {
	struct id128 id;
};

struct event_expired {
	struct lane_id lane;
	uint64_t g;
};

struct event_short {
	struct id128 pool;
	uint32_t free; /* slots that a claim left empty */
};

struct event {
	enum event_kind kind;
	union {
		struct event_model model;
		struct event_pool pool;
		struct event_budget budget;
		struct event_hold hold;
		struct event_pause pause;
		struct event_admitted admitted;
		struct event_lane lane;
		struct event_recovered_budget recovered_budget;
		struct event_granted granted;
		struct event_paced paced;
		struct event_glanced glanced;
		struct event_start start;
		struct event_usage usage;
		struct event_back back;
		struct event_ticket ticket;
		struct event_pressure pressure;
		struct event_family family;
		struct event_expired expired;
		struct event_short short_pool;
		struct event_unpark unpark;
	};
};

/* "RECOVERED_LANE"; for traces and logs. */
const char *event_kind_text(enum event_kind kind);

#endif
