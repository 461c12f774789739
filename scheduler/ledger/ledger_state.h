/* ledger_state.h - the memory of the ledger; only the ledger_*.c files look into it.
 *
 *   ledger          one call: prefix cut at its nodes, each piece to its cause
 *   ledger_book     when each node was last written, readable, used
 *   ledger_facts    what there is to know at that moment
 *   ledger_sketch   whether two prefixes look alike
 *   ledger_judge    facts ──► cause: a table, first match
 *   ledger_ahead    warm-ups, until they are read or their time is over
 *   ledger_rest     how long entries live, as starts find them
 *   ledger_route    rows by name: routes, their versions, places
 *   ledger_sums     hours, and sums that only grow
 *   ledger_burst    many starts at once, and what they cost
 *   ledger_row      all of it as text for Redis, and back
 *   ledger_view     for readers
 *
 * Whatever changes is marked `dirty`, for ledger_row. */
#ifndef SCHEDULER_LEDGER_LEDGER_STATE_H
#define SCHEDULER_LEDGER_LEDGER_STATE_H

#include "common/table.h"
#include "scheduler/core/list.h"
#include "scheduler/ledger/ledger.h"
#include "scheduler/ledger/ledger_view.h"

#define LEDGER_ROWS     (LEDGER_ROUTES + 1) /* the last one is "other" */
#define LEDGER_OTHER    LEDGER_ROUTES
#define LEDGER_HOUR_MS  3600000
#define LEDGER_ALIVE_MS 600000     /* a version is alive so long after its last call */
#define LEDGER_BEGUN    4          /* writers of a node that have begun and not ended */
#define LEDGER_NOWHERE  UINT32_MAX /* the domain of "any place" */

/* What a cause may depend on, of one node at the moment one call was sent. */
struct ledger_facts {
	enum ledger_kind kind;
	enum ledger_purpose purpose;
	enum lane_role role;
	bool leaf, shared;
	uint64_t sent_ms;
	uint64_t written_ms; /* when the entry's writer was sent; 0: not known here */
	uint64_t first_ms;   /* that writer's first event; 0: not seen yet */
	uint64_t hit_ms;     /* the earliest start that read it; 0: none */
	uint64_t used_ms;    /* the latest start that used it */
	uint64_t ttl_ms;     /* as asked for */
	uint64_t life_ms;    /* as far as the provider said what it wrote; else ttl_ms */
	bool warm_elsewhere; /* at another place */
	bool blind;          /* the book began too late to know of it */
	bool split;          /* the version is known to be held together with another */
	bool lookalikes;   /* the route has others of one job and nearly the same bytes */
	uint32_t versions; /* others of the route, alive now */
};

/* The first cause of the table that applies. */
enum ledger_cause ledger_judge(const struct ledger_facts *facts);

/* A writer that has begun; its end finds the verdict of its beginning here. */
struct ledger_begun {
	uint64_t sent_ms, first_ms;
	enum ledger_cause cause;
};

/* Something written ahead that nobody has read yet. */
struct ledger_ahead {
	uint64_t tokens, cost, extra; /* tokens 0: nothing */
	struct id128 family;
	uint32_t row, place, domain; /* where it is booked, and where it was written */
	uint64_t hour;
	enum ledger_cause cause;
};

struct ledger_burst {    /* figures as in ledger_view.h; times are absolute */
	uint64_t serial; /* 0: free */
	uint32_t row, place;
	struct id128 family;
	uint64_t start_ms, last_ms;     /* arrivals */
	uint64_t write_ms, readable_ms; /* its first writer; 0: not known */
	uint64_t starts, hits, writes, extra_writes, held_ms, refusals;
	uint64_t cost, naive_cost;
	bool open, dirty;
};

struct ledger_entry { /* of the book: a node at a place, or anywhere */
	struct id128 key;
	uint64_t written_ms, first_ms, hit_ms, used_ms, life_ms;
	uint64_t where;  /* anywhere: the place where it was used last */
	uint32_t tokens; /* as the provider counts them; 0: not learned */
	uint32_t begun_next;
	struct ledger_begun begun[LEDGER_BEGUN];
	struct ledger_ahead ahead; /* tokens 0: nothing */
	struct ledger_burst burst; /* since it was idle; its own until there are enough */
};

struct ledger_version {
	struct id128 family;         /* none: free */
	struct id128 twin;           /* equal for the same prefix at another upstream */
	struct ledger_sketch sketch; /* of use while it has one job only */
	uint32_t number, tokens;
	uint32_t place, domain;     /* of its last use */
	uint64_t first_ms, last_ms; /* sent */
	uint64_t answers, hits, prefixed, writes, read, written;
	uint64_t written_ms, readable_ms, hit_ms, used_ms,
		life_ms;           /* of its entry there */
	uint64_t model;            /* hash of the name of its prices */
	uint64_t extra;            /* per token: write less read, as last paid */
	struct ledger_ahead ahead; /* as its entry has it */
	bool split, shared, dirty;
};

struct ledger_route {
	char name[LEDGER_NAME_SIZE]; /* empty: free */
	uint64_t first_ms, last_ms;
	uint32_t versions_seen;
	struct ledger_version versions[LEDGER_VERSIONS];
	struct ledger_sums ever;
	bool dirty;
};

struct ledger_place {
	char name[LEDGER_NAME_SIZE];
	uint64_t last_ms;
	uint64_t ttl_ms; /* as was asked for last */
	uint64_t kept[LEDGER_VIEW_RESTS], gone[LEDGER_VIEW_RESTS];
	struct ledger_sums ever;
	bool dirty, rests_dirty; /* rests and lifetime have a row of their own */
};

struct ledger_hour {
	uint64_t hour; /* since 1970; 0: empty */
	bool fresh;    /* Redis does not know that it is there */
	bool any_dirty;
	bool dirty[LEDGER_ROWS];
	struct ledger_sums rows[LEDGER_ROWS];
};

struct ledger {
	struct ledger_config config;
	uint64_t since_ms; /* the book's */
	uint64_t first_ms; /* of all that Redis remembers; 0: none yet */
	uint64_t now_ms;   /* the latest that was told */
	uint64_t gaps, gap_ms, hidden;
	bool dirty; /* of the fields above */
	bool has_news;
	struct ledger_view_ahead ahead;
	struct ledger_sums total;
	struct ledger_route routes[LEDGER_ROWS];
	struct ledger_place places[LEDGER_PLACES + 1]; /* the last one is "other" */
	struct ledger_burst bursts[LEDGER_BURSTS];
	uint64_t bursts_serial;
	struct table index; /* of the book */
	struct ledger_entry *entries;
	struct link *links; /* of the book, by use */
	struct list used;
	uint32_t entries_count;
	uint32_t sweep; /* the next entry to look at */
	struct ledger_hour hours[LEDGER_HOURS];
};

/* ---- ledger_book ---------------------------------------------------------------- */

void ledger_book_init(struct ledger *ledger, void *memory);
size_t ledger_book_size(uint32_t nodes_max);
struct id128 ledger_book_key(struct id128 node, uint32_t place, uint32_t domain);

/* NULL if it is not known. */
struct ledger_entry *ledger_book_find(struct ledger *ledger, struct id128 key);

/* Found or made; the one unused for longest goes for it. */
struct ledger_entry *ledger_book_obtain(struct ledger *ledger, struct id128 key);

/* Whether two times of sending may be one, told before and after a worker has corrected
 * its clock. */
bool ledger_book_is_near(uint64_t a_ms, uint64_t b_ms);

/* A start that read it, or wrote it for this cause. */
void ledger_book_hit(struct ledger_entry *entry, uint64_t sent_ms);
void ledger_book_write(struct ledger_entry *entry, const struct ledger_call *call,
                       enum ledger_cause cause);

/* ---- ledger_route --------------------------------------------------------------- */

/* The row of a name, made if need be: LEDGER_OTHER, LEDGER_PLACES when all are taken. */
uint32_t ledger_route_row(struct ledger *ledger, struct span name, uint64_t at_ms);
uint32_t ledger_route_place(struct ledger *ledger, struct span name);
uint32_t ledger_route_find(const struct ledger *ledger, struct span name);

/* The version of a family; NULL if it is not remembered, or for the row "other". */
struct ledger_version *ledger_route_version(struct ledger *ledger, uint32_t row,
                                            struct id128 family);
struct ledger_version *ledger_route_add_version(struct ledger *ledger, uint32_t row,
                                                struct id128 family, uint64_t at_ms);

/* A second job has come: from now on it has a number. */
void ledger_route_share(struct ledger *ledger, uint32_t row,
                        struct ledger_version *version);

/* ---- ledger_sums ---------------------------------------------------------------- */

struct ledger_target { /* where one call is booked */
	uint32_t row, place;
	uint64_t at_ms;
};

/* The sums of an hour, NULL if it is older than a week. */
struct ledger_sums *ledger_sums_hour(struct ledger *ledger, uint32_t row, uint64_t hour);

/* Adds `part` to the hour, the route, the place and the total. */
void ledger_sums_add(struct ledger *ledger, const struct ledger_target *target,
                     const struct ledger_sums *part);
void ledger_sums_merge(struct ledger_sums *to, const struct ledger_sums *part);

/* ---- ledger_facts --------------------------------------------------------------- */

struct ledger_case { /* one call, and where it is booked */
	const struct ledger *ledger;
	const struct ledger_call *call;
	const struct ledger_version *version; /* NULL: not remembered */
	uint32_t row;
};

/* What the other versions of its route say of a prefix of so many tokens. */
void ledger_facts_look(const struct ledger_case *it, uint64_t tokens,
                       struct ledger_facts *facts);

/* After a restart the book has only what Redis keeps: the last versions of each route. */
bool ledger_facts_are_blind(const struct ledger_case *it, bool leaf);

/* How far a provider's count may be off. */
uint64_t ledger_facts_slack(uint64_t tokens);

/* ---- ledger_ahead --------------------------------------------------------------- */

void ledger_ahead_note(struct ledger *ledger, struct ledger_entry *entry,
                       const struct ledger_ahead *ahead);

/* A job has read it; nobody has in its time, and its cost moves to the cause that it has
 * now; nobody will ever know.  Without anything ahead they do nothing. */
void ledger_ahead_use(struct ledger *ledger, struct ledger_entry *entry);
void ledger_ahead_waste(struct ledger *ledger, struct ledger_entry *entry);
void ledger_ahead_forget(struct ledger *ledger, struct ledger_entry *entry);

/* ---- ledger_rest ---------------------------------------------------------------- */

/* A start that needed an entry found it, or found it gone. */
void ledger_rest_take(struct ledger_place *place, const struct ledger_entry *entry,
                      const struct ledger_call *call, bool kept);
void ledger_rest_view(const struct ledger_place *place,
                      struct ledger_view_rest rests[LEDGER_VIEW_RESTS]);

/* ---- ledger_charge -------------------------------------------------------------- */

/* Whether a call told what it cost. */
bool ledger_charge_is_reported(const struct ledger_call *call);

/* Books a call that is over; teaches the book what one that has begun shows. */
void ledger_charge(struct ledger *ledger, const struct ledger_call *call);
void ledger_charge_begun(struct ledger *ledger, const struct ledger_call *call);

/* ---- ledger_burst --------------------------------------------------------------- */

struct ledger_started { /* what a burst has to know of a call */
	const struct ledger_call *call;
	struct ledger_target target;
	bool hit, wrote, extra;
	uint64_t cost;        /* of its input */
	uint64_t prefix_cost; /* of that, of its prefix */
	uint64_t prefix;      /* tokens */
	uint64_t write, read; /* price of a token, in thousandths */
};

void ledger_burst_take(struct ledger *ledger, struct ledger_entry *entry,
                       const struct ledger_started *started);
void ledger_burst_tick(struct ledger *ledger, uint64_t now_ms);

#endif
