/* shun.h - upstreams that this worker does not reach, and therefore leaves to others.
 *
 *             SHUN_MISSES in a row           the pause is over
 *   reached ──────────────────────► shunned ───────────────────► one job is tried
 *      ▲                               ▲                             │       │
 *      │                               └── not reached, pause longer ┘       │
 *      └────────────────────────────────────────────── its request leaves ───┘
 *
 * Without this, a worker with a wrong URL or no network takes jobs as fast as it gives
 * them back, and its healthy neighbours find none.  While a provider is away for
 * everybody the scheduler lets one request at a time ask for it (docs/CORE.md, 4); a
 * pause that grew would only make that later, so it grows only where others seem to reach
 * the provider, and not before the scheduler had the time to say so.
 *
 * Missed is what ended before its request left: no connection, no name, no TLS, no such
 * upstream in the configuration, no such handler.  An answer of the provider's, of any
 * kind, is none; one of something in its place is a miss that only such an answer ends.
 *
 * Pure; the list lies inside its owner and takes no memory.  More than SHUN_MAX upstreams
 * are not remembered: their jobs are claimed as ever. */
#ifndef WORKER_CORE_SHUN_H
#define WORKER_CORE_SHUN_H

#include "common/base.h"
#include "common/text.h"

#define SHUN_MAX    16
#define SHUN_MISSES 3     /* one or two are the weather */
#define SHUN_MS     2000  /* as long as a job waits that was not sent */
#define SHUN_MS_MAX 30000 /* a lease: that long nobody is missed elsewhere either */
#define SHUN_PATIENCE_MS \
	12000 /* the scheduler's, until it calls a provider away, and 2 s */
#define SHUN_TRY_MS     15000 /* for a try of which no end is heard */
#define SHUN_NONE       UINT32_MAX
#define SHUN_WORDS_SIZE (SHUN_MAX * (TEXT_NAME_MAX + 1))

struct shun {
	char upstream[TEXT_NAME_MAX];
	uint32_t upstream_len; /* 0: this place is free */
	uint32_t misses;       /* in a row; shunned from SHUN_MISSES on */
	bool is_tried;         /* the one job was claimed, and its end is not heard */
	bool is_away;          /* for everybody, as far as the scheduler knows */
	bool by_another;   /* something else answered: that a request leaves says nothing
	                    */
	uint64_t since_ms; /* shunned: since when, when the next try is due, how long */
	uint64_t due_ms;
	uint64_t pause_ms;
};

struct shun_list {
	struct shun shuns[SHUN_MAX];
	uint32_t count; /* of upstreams with a miss, shunned or not */
};

/* A run missed this upstream.  `jitter` is a random number: pauses are up to a quarter
 * shorter, so that the workers of a fleet do not try in step.  `by_another`: its request
 * had left.  Answers whether it is shunned from now on. */
bool shun_miss(struct shun_list *list, uint64_t now_ms, struct span upstream,
               uint64_t jitter, bool by_another);

/* A request to this upstream left, or was answered by it.  Answers whether it was shunned
 * until now. */
bool shun_reach(struct shun_list *list, struct span upstream, bool is_answered);

/* What the scheduler lets its account have at a time; 1 is how it asks for one that is
 * away for everybody, 0 that nobody knows. */
void shun_pace(struct shun_list *list, uint64_t now_ms, struct span upstream,
               uint64_t pace);

/* The one whose try has been due for longest, or SHUN_NONE; and when the next one is,
 * UINT64_MAX for never. */
uint32_t shun_due(const struct shun_list *list, uint64_t now_ms);
uint64_t shun_due_ms(const struct shun_list *list);

/* Its one job is being claimed; there was one, or there was none for `sleep_ms`. */
void shun_try(struct shun_list *list, uint64_t now_ms, uint32_t index);
void shun_tried(struct shun_list *list, uint64_t now_ms, uint32_t index, bool has_job,
                uint64_t sleep_ms);

uint32_t shun_count(const struct shun_list *list); /* of those shunned */
struct span shun_upstream(const struct shun_list *list, uint32_t index);

/* Their names with commas between them; answers the length. */
size_t shun_print(const struct shun_list *list, char ret_words[SHUN_WORDS_SIZE]);

#endif
