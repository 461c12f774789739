/* ruler_state.h - the memory of a ruler; only the ruler_*.c files look into it.
 *
 *   ruler_rule      who rules; renewing; reaping first
 *   ruler_rebuild   memory from Redis, after every take-over and every doubt
 *   ruler_home      pool and account of what stands in Redis, by the configuration
 *   ruler_inbox     pages of entries, and where admission stands
 *   ruler_admit     jobs of a page into one call of `admit`
 *   ruler_scout     segments of the jobs behind one that waits
 *   ruler_events    the event stream, read from its two cursors
 *   ruler_line      what one line of it tells the core
 *   ruler_grant     commands of the core into calls, and their outcomes
 *   ruler_ledger    the same lines for the ledger: what was paid, and why
 *   ruler_clock     what is done every so often
 *   ruler_core      the core's queue: answers only enqueue, steps decide
 *
 * A call's tag is kind, connection and an index that means something to its kind.  What
 * belongs to an earlier connection, or to a memory that was thrown away, is ignored: the
 * `connection` number rises at both. */
#ifndef SCHEDULER_RULER_STATE_H
#define SCHEDULER_RULER_STATE_H

#include "common/codec/protocol_answer.h"
#include "common/codec/protocol_call.h"
#include "common/prng.h"
#include "scheduler/ruler.h"
#include "scheduler/ruler_job.h"
#include "scheduler/ruler_known.h"
#include "scheduler/ruler_segments.h"
#include "scheduler/tally.h"

#define RULER_BATCH_JOBS    500  /* of one admit; DATAPATH: no gain above */
#define RULER_QUEUE_MAX     4096 /* events not yet told to the core */
#define RULER_PENDING_LEAST 2048 /* commands of the core not yet sent */
#define RULER_GRANT_LANES   128  /* of one grant */
#define RULER_GRANT_BUDGETS 32
#define RULER_GRANTS_MAX    8 /* under way */
#define RULER_GLANCES_MAX   100
#define RULER_SESSIONS_MAX  4096
#define RULER_PREFIXES_MAX  64
#define RULER_WRITERS_MAX   512
#define RULER_WANTED_MAX    64 /* segments asked for at once */
#define RULER_UNDECIDED_MAX 1024
#define RULER_WARMS_MAX     16
#define RULER_MOVES_MAX     1024
#define RULER_TRIES_MAX     2 /* deaths at one cursor before entries go one by one */

enum ruler_call {
	RULER_CALL_NONE,
	RULER_CALL_YIELD, /* giving the rule up */
	RULER_CALL_RULE,
	RULER_CALL_REAP,
	RULER_CALL_META,
	RULER_CALL_NOTE, /* answers that nobody waits for */
	RULER_CALL_AUDIT,
	RULER_CALL_FAMILIES,
	RULER_CALL_MOVE,
	RULER_CALL_LANES,
	RULER_CALL_WORKERS,
	RULER_CALL_LEASES,
	RULER_CALL_SLOTS,
	RULER_CALL_BUDGET,
	RULER_CALL_READ,
	RULER_CALL_READ_BLOCK,
	RULER_CALL_READ_REST,
	RULER_CALL_SEGMENT,
	RULER_CALL_PREFIX,
	RULER_CALL_PREFIX_SIZE,
	RULER_CALL_ADMIT,
	RULER_CALL_TRY,
	RULER_CALL_UNDECIDED,
	RULER_CALL_EVENTS,
	RULER_CALL_GRANT,
	RULER_CALL_GLANCE,
	RULER_CALL_PROMOTE,
	RULER_CALL_EXPIRE,
	RULER_CALL_HOLD,
	RULER_CALL_UNHELD,
	RULER_CALL_INFO,
	RULER_CALL_SIZE,
	RULER_CALL_BOOKS,
	RULER_CALL_LEDGER_HEAD, /* its head */
	RULER_CALL_LEDGER_HOUR, /* and its hours, one by one */
	RULER_CALL_LEDGER,
	RULER_CALL_RECENT,
	RULER_CALL_COUNT,
};

enum ruler_timer {
	RULER_TIMER_RENEW,
	RULER_TIMER_REAP,
	RULER_TIMER_PROMOTE,
	RULER_TIMER_EXPIRE,
	RULER_TIMER_AUDIT,
	RULER_TIMER_EVENTS,
	RULER_TIMER_HOLD,
	RULER_TIMER_WORKERS,
	RULER_TIMER_INFO,
	RULER_TIMER_STATUS,
	RULER_TIMER_TRIM,   /* a grant of nothing, to store the event cursor */
	RULER_TIMER_LEDGER, /* the ledger's rows, and up to where it has read */
	RULER_TIMER_BOOKS,  /* does each job stand in exactly one place? */
	RULER_TIMER_COUNT,
};

struct ruler_timer_state {
	uint64_t due_ms;
	bool busy; /* its call is under way */
};

#define RULER_CURSOR_SIZE 48

/* All before `entry` is admitted, and n jobs of it; n 0: all of it. */
struct ruler_cursor {
	char entry[RULER_CURSOR_SIZE];
	uint64_t n;
};

struct ruler_entry {
	struct span id;
	uint64_t ms; /* of the id */
	uint32_t pairs_from, pairs_count;
};

struct ruler_page { /* what one read brought */
	bool full;
	char *bytes;
	size_t room, len;
	struct ruler_entry *entries;
	uint32_t entries_count, entries_room;
	struct envelope_pair *pairs;
	uint32_t pairs_count, pairs_room;
};

struct ruler_inbox {
	struct ruler_page pages[2];
	uint32_t head;                   /* the page that is being admitted */
	char read_to[RULER_CURSOR_SIZE]; /* id of the last entry read */
	uint32_t serial;                 /* of the read under way */
	bool reading;
	bool rest;        /* the first read is of the entry at the cursor: a pack */
	uint64_t read_ms; /* not before */
	uint64_t sent_ms; /* of the read under way */
	uint32_t count;
};

/* What one kind of group of an admit has so far. */
enum ruler_group {
	RULER_GROUP_SEGMENTS,
	RULER_GROUP_SLIMS,
	RULER_GROUP_LATER,
	RULER_GROUP_DEAD,
	RULER_GROUP_DEADLINES,
	RULER_GROUP_GONE,
	RULER_GROUP_PREFIXES,
	RULER_GROUP_DECIDED,
	RULER_GROUP_COUNT,
};

struct ruler_words {
	struct call_arg *words; /* into admit.bytes */
	uint32_t items, count, max;
};

struct ruler_batch_job {
	struct call_arg element;
	uint32_t next; /* of the same family and list; UINT32_MAX: the last */
};

struct ruler_batch_family {
	uint32_t family; /* place */
	bool record;     /* F is due */
	uint32_t first[EVENT_LIST_COUNT], last[EVENT_LIST_COUNT];
	uint32_t jobs[EVENT_LIST_COUNT];
	uint64_t oldest_ms;
};

struct ruler_admit {
	struct ruler_cursor stored;    /* as Redis has it */
	struct ruler_cursor to;        /* of the batch */
	struct ruler_cursor survived;  /* we announced the entry behind it, and live */
	struct ruler_cursor announced; /* where this process took the rule last */
	uint32_t entry, job;           /* where the next job stands in the head page */
	uint32_t entry_from, job_from; /* where the batch began */
	uint32_t entry_fed, job_fed;   /* the core knows all before here */
	bool open;                     /* the reader stands in `entry` */
	bool sent;                     /* the batch is under way */
	uint32_t waits;                /* for so many answers before it goes on */
	bool isolates;                 /* one entry at a time, with a note before */
	bool noted;                    /* that note is written */
	bool kills;         /* the next entry killed its reader: do not parse it */
	bool buries;        /* the batch is such an entry */
	uint64_t buried_ms; /* when; 0: others have been admitted since */
	uint32_t isolated;  /* entries to go */
	uint32_t tries, refusals;
	uint32_t serial; /* of the batch */
	uint32_t jobs_count, families_count, parsed_bytes;
	struct buffer bytes;
	struct ruler_words groups[RULER_GROUP_COUNT];
	struct ruler_batch_job *jobs;
	struct ruler_batch_family *families;
	struct id128 *pending; /* nodes whose segments go out with it */
	uint32_t pending_count;
	struct id128 wanted[RULER_WANTED_MAX];  /* segments that are asked for */
	uint32_t wanted_count, wanted_answered; /* none: both 0 */
	size_t wanted_bytes;                    /* if they are what they should be */
	struct ruler_job_reader reader;
	struct ruler_job_reader scout; /* of jobs that are not due yet */
};

/* Jobs in `later` whose prefix may be there by now, looked at one by one. */
struct ruler_undecided {
	struct protocol_job_id ids[RULER_UNDECIDED_MAX]; /* a ring */
	uint32_t first, count;                           /* the first one is looked at */
	uint64_t asked_ms; /* when prefixes were to be asked for anew */
	bool fetching;     /* its payload was asked for */
	bool ready;        /* and is here */
	bool sent;         /* the admit under way is about it */
	bool told;         /* the core knows of it */
	struct buffer payload;
};

#define RULER_PREFIX_WHY_SIZE 240

enum ruler_prefix_state {
	RULER_PREFIX_NEW,
	RULER_PREFIX_MEASURING, /* its size was asked for, ahead of its turn */
	RULER_PREFIX_MEASURED,
	RULER_PREFIX_ASKED,
	RULER_PREFIX_KNOWN, /* it is missing, or here */
};

struct ruler_prefix {
	struct id128 name; /* hash */
	char text[TEXT_NAME_MAX + 1];
	uint32_t page; /* serial of the page for which the state holds */
	enum ruler_prefix_state state;
	size_t size; /* bytes, once it is measured */
	bool missing;
	char why[RULER_PREFIX_WHY_SIZE]; /* it is there and of no use */
};

struct ruler_granted_lane {
	struct lane_id lane;
	uint64_t g_new;
};

struct ruler_grant_call { /* one grant under way */
	bool busy;
	uint32_t lanes_count, budgets_count;
	struct ruler_granted_lane lanes[RULER_GRANT_LANES];
	struct id128 budgets[RULER_GRANT_BUDGETS];
	uint64_t told; /* ruler->told when it was sent */
	char cursor[RULER_CURSOR_SIZE];
};

/* What the core said of a wish, still to be told. */
struct ruler_warm {
	struct id128 family;
	enum core_warm verdict;
};

struct ruler_session {
	uint64_t nonce;
	uint32_t pool, slots;
	bool seen, fetched;
	bool is_quiet; /* told to claim nothing: its slots do not count */
};

#define RULER_AUDIT_SIZE 48

/* A family whose record says another pool or budget than the configuration. */
struct ruler_move {
	struct id128 family;
	uint16_t pool, budget; /* places of where it belongs */
};

struct ruler_rebuild {
	int stage;
	bool sent;
	char cursor[24];                          /* of HSCAN */
	struct ruler_move moves[RULER_MOVES_MAX]; /* of the page that was read last */
	uint32_t moves_count, moves_sent;
	bool moves_over; /* it had more of them: it is read again */
	uint32_t budget; /* next to read */
	uint32_t hour;   /* of the ledger, likewise */
	uint64_t families, lanes, moved;
	uint64_t elsewhere;   /* upstreams by bit, see ruler_address.h */
	bool addresses_known; /* something was stored to compare with */
};

/* Of Redis, as of the last look: counters in meta, and how long some lists are. */
struct ruler_sizes {
	bool known;
	uint64_t retried, deferred, unsent, recovered, late_accepted, late_refused;
	uint64_t replies_trimmed, dead_trimmed;
	uint64_t later, dead, entries, slims;
	uint64_t asked_ms, round_trip_ms; /* of that look */
};

/* A request that wrote to the cache. */
struct ruler_writer {
	struct id128 family;
	uint64_t at_ms; /* when it was reported */
	enum lane_role role;
	struct protocol_usage usage;
};

struct ruler {
	const struct ruler_config *config;
	struct prng prng;
	enum ruler_phase phase;
	uint32_t connection;
	bool is_connected, wants_library, stopping, gave_up;
	uint64_t nonce, nonce_old;
	char owner[64];
	uint64_t ask_ms; /* when to ask for the rule */
	bool asked, reap_sent, renewing;
	uint64_t rule_until_ms;
	bool admits;
	bool starting; /* the first rebuild after taking the rule */

	char unheld[EVENT_UNHELD_MAX][RULER_ROUTE_SIZE]; /* routes, see ruler_unheld.h */
	uint32_t unheld_count;
	struct ruler_warm warms[RULER_WARMS_MAX];
	uint32_t warms_count;

	struct core *core;
	void *core_memory;
	size_t core_size;
	struct command_list commands;
	struct event *queue;
	uint32_t queue_head, queue_count;
	struct command *pending;
	uint32_t pending_head, pending_count, pending_max;
	struct id128 glances[RULER_GLANCES_MAX];
	uint32_t glances_count;
	bool glancing;
	struct id128 glanced[RULER_GLANCES_MAX];
	uint32_t glanced_count;
	uint64_t glanced_told; /* `told` when the glance was sent */
	uint64_t told;         /* batches of which the core was told */
	struct ruler_grant_call grants[RULER_GRANTS_MAX];

	struct ruler_known known;
	struct ledger *ledger;
	struct ruler_segments segments;      /* px values by node */
	struct ruler_segments prefix_values; /* contents of named prefixes by name */
	struct ruler_prefix prefixes[RULER_PREFIXES_MAX];
	uint32_t prefixes_count, prefixes_next;
	struct ruler_inbox inbox;
	struct ruler_admit admit;
	struct ruler_undecided undecided;
	uint32_t page_serial;

	struct ruler_session *sessions;
	uint32_t sessions_count, sessions_fetching;
	struct ruler_rebuild rebuild;
	struct ruler_timer_state timers[RULER_TIMER_COUNT];

	char events_read[RULER_CURSOR_SIZE];   /* last entry that was queued */
	char events_told[RULER_CURSOR_SIZE];   /* last one the core was told all of */
	char events_stored[RULER_CURSOR_SIZE]; /* last one that Redis knows of */
	char ledger_told[RULER_CURSOR_SIZE];   /* the same for the ledger */
	char ledger_stored[RULER_CURSOR_SIZE];
	char ledger_sent[RULER_CURSOR_SIZE];
	struct protocol_job_id core_from, ledger_from; /* both know all up to there */
	uint32_t ledger_entries;                       /* since they were last stored */
	uint32_t ledger_calls;                         /* booked, ever */
	uint32_t ledger_calls_seen;                    /* of them, at the last look */
	uint64_t ledger_stored_ms; /* when they were sent last; 0: not yet */
	bool events_check; /* the next read begins with the last entry, as a witness */
	uint64_t events_told_at;      /* queue position it waits for */
	uint64_t queue_in, queue_out; /* events ever queued, ever told */

	struct buffer text; /* scratch: names */
	struct buffer status;
	uint64_t memory_percent;
	int64_t books_difference;            /* as of the last look */
	char audit_cursor[RULER_AUDIT_SIZE]; /* of its next piece */
	bool audit_anew;                     /* from the beginning, whatever that says */
	bool audit_soon;                     /* once more, behind the pass under way */
	bool admitted; /* something, since the last look at the events began */
	struct ruler_health health;
	struct ruler_counts
		before; /* what is kept, less what this process counts again */
	struct ruler_keeper keeper; /* .next NULL: nobody keeps more than the ledger */
	struct ruler_writer writers[RULER_WRITERS_MAX]; /* the last ones, in a ring */
	uint64_t writers_serial;                        /* so many ever */
	uint64_t lane_drift, function_errors, delivery_errors; /* of meta, last seen */
	struct ruler_sizes sizes;
	struct tally tally;
	struct core_pool_view *pools; /* scratch of ruler_view_pools */
	uint32_t pools_looked;        /* how many, as of */
	uint64_t pools_looked_ms;     /* the last look at all families */
	uint64_t *rooms;              /* likewise */
};

/* A tag for a call of `kind` on this connection. */
uint64_t ruler_tag(const struct ruler *ruler, enum ruler_call kind, uint32_t index);

static inline struct span
ruler_owner(const struct ruler *ruler)
{
	return span_from(ruler->owner);
}

/* True iff one more call of `args` words and `bytes` bytes fits. */
static inline bool
ruler_fits(const struct call_list *out, uint32_t args, uint32_t bytes)
{
	return call_fits(out, args + PROTOCOL_CALL_ARGS, bytes + PROTOCOL_CALL_BYTES);
}

void ruler_copy(char *to, size_t size, struct span text);

#endif
