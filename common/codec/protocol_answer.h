/* protocol_answer.h - what the functions of docs/PROTOCOL.md answer, as values.
 *
 * First look at protocol_answer_word.  Only after PROTOCOL_OK (and what the comments say
 * for the other words) do the readers below make sense.  They trust nothing: a shape that
 * the protocol does not name is ERR_MALFORMED.  All spans and reply pointers borrow from
 * the reply. */
#ifndef COMMON_CODEC_PROTOCOL_ANSWER_H
#define COMMON_CODEC_PROTOCOL_ANSWER_H

#include "common/codec/protocol_record.h"
#include "common/reply.h"

enum protocol_word {
	PROTOCOL_OK,
	PROTOCOL_EPOCH,    /* another scheduler rules: items[1] is its owner */
	PROTOCOL_CURSOR,   /* items[1] entry, items[2] n */
	PROTOCOL_NEED,     /* items[1…]: nodes whose segments are missing */
	PROTOCOL_STALE,    /* called with an old connection number */
	PROTOCOL_GONE,     /* the session is unknown or being reaped */
	PROTOCOL_REATTACH, /* busy slots differ from the table */
	PROTOCOL_HELD,     /* items[1] owner, items[2] ms */
	PROTOCOL_TOKEN,    /* of fail: items[1] is what the slot holds */
	PROTOCOL_MISSING,  /* an error: the library or the function is not loaded */
	PROTOCOL_LOADING,  /* an error that passes: LOADING, BUSY, MASTERDOWN, TRYAGAIN */
	PROTOCOL_ERROR,    /* any other error; `text` says what */
	PROTOCOL_STRANGE,  /* none of these */
};

enum protocol_word protocol_answer_word(const struct reply *reply);

/* Bits of a beat's third element: what people told the worker. */
enum {
	PROTOCOL_BEAT_HOLD = 1, /* holding is on */
	PROTOCOL_BEAT_QUIET = 2,
	PROTOCOL_BEAT_STOP = 4,
};

/* The Redis time of an OK, 0 if there is none. */
uint64_t protocol_answer_now_ms(const struct reply *reply);

/* A claim or a settle: one text of lines.  Each reader below takes the next item off its
 * span and answers false behind the last. */
struct protocol_claim {
	uint64_t now_ms;
	uint64_t sleep_ms;
	struct span refused;  /* protocol_answer_refusal */
	struct span problems; /* protocol_answer_problem; none of a claim */
	struct span runs;     /* protocol_answer_run */
};

struct protocol_run {
	struct protocol_lane_id lane;
	struct id128 family;
	enum protocol_role role;
	uint64_t generation;
	struct span px; /* comma list, root to leaf */
	uint32_t marks;
	bool begin;           /* report the first event by `begin` */
	uint64_t leader_ms;   /* to its first event; 0 no bound */
	uint64_t tokens;      /* P of the node; 0 unknown */
	struct span elements; /* protocol_answer_element; a ticket is "w:…" */
};

struct protocol_problem { /* `word` TOKEN, or ENDED, or empty for a refused slot */
	uint32_t slot;
	struct span word;
	struct span held; /* a lease, or empty */
};

MUST_USE int protocol_answer_claim(const struct reply *reply,
                                   struct protocol_claim *ret_claim);

/* A run that is not sound was taken off, too; nothing else is known of it. */
bool protocol_answer_run(struct span *runs, struct protocol_run *ret_run,
                         bool *ret_is_sound);
bool protocol_answer_element(struct span *elements, struct span *ret_element);
bool protocol_answer_refusal(struct span *refused, struct protocol_problem *ret_problem);
bool protocol_answer_problem(struct span *problems, struct protocol_problem *ret_problem);

/* The i-th problem of a begin or a release: false behind the last. */
bool protocol_answer_problem_next(const struct reply *reply, size_t i,
                                  struct protocol_problem *ret_problem);

/* Attach: the connection number, and the i-th occupied slot (false behind the last;
 * a slot whose lease does not parse is answered with empty spans and
 * q 0: the worker has no use for it). */
MUST_USE int protocol_answer_attach(const struct reply *reply, uint64_t *ret_connection);
bool protocol_answer_slot(const struct reply *reply, size_t i, uint32_t *ret_slot,
                          struct protocol_lease *ret_lease);

struct protocol_granted {
	struct span lane;
	bool done;
	uint64_t generation;
	uint32_t in_use;
	uint32_t bits;
	uint64_t head_ms; /* id time of the oldest waiting job, 0: none */
};

struct protocol_glance {
	struct id128 family;
	uint64_t backlog;
	uint32_t in_use;
	uint64_t head_ms;
};

/* The i-th entry; false behind the last or if it is malformed. */
bool protocol_answer_granted(const struct reply *reply, size_t i,
                             struct protocol_granted *ret_granted);
bool protocol_answer_glance(const struct reply *reply, size_t i,
                            struct protocol_glance *ret_glance);

#endif
