/* admin_ask.h - a page that Redis has to be asked for: rounds of commands, then an
 * answer.
 *
 *   admin_ask_open ─► words, words, … ─► done(ask) ─► words, … ─► done(ask) ─► finish
 *                     one round, in one flight        the next one
 *
 * `done` is called when all answers of a round are there; ask->replies has them in order,
 * copied.  It either asks on or finishes, exactly once.  If the connection is lost, the
 * page says so and `done` is not called any more.
 *
 * Answers to GET may be kept for others: as long as they cost commands, so that pages
 * cost Redis at most ADMIN_ASK_RATE commands a second each, however many look. */
#ifndef SCHEDULER_ADMIN_ASK_H
#define SCHEDULER_ADMIN_ASK_H

#include "scheduler/admin_state.h"

#define ADMIN_ASK_RATE 10
#define ADMIN_ASK_MAX  2048 /* commands of one round */

struct admin_ask;
typedef void admin_ask_fn(struct admin_ask *ask);

struct admin_ask {
	struct admin *admin;
	struct http_server_later *later;
	struct http_server_response response; /* body: JSON, begun by whoever finishes */
	admin_ask_fn *done;
	const struct reply *replies[ADMIN_ASK_MAX]; /* of the last round, for `done` */
	uint32_t replies_count;
	struct reply *next[ADMIN_ASK_MAX]; /* of the round under way */
	uint32_t next_count, under_way;    /* answers that are here, and that are due */
	uint32_t commands;                 /* of all rounds */
	bool lost;         /* a command could not be sent or was not answered */
	admin_ask_fn *end; /* told that it is gone, however it ended; may be NULL */
	char key[ADMIN_KEY_SIZE]; /* for the cache; empty: not kept */

	/* What the page was asked for, and how far it is. */
	char text[512];
	uint64_t offset, limit, total, number;
	struct span words[1024]; /* scratch of the asker: into `scratch` */
	struct buffer scratch;
};

/* Defers the request.  NULL: it was answered already, from the cache or with an error. */
struct admin_ask *admin_ask_open(struct admin *admin,
                                 const struct http_server_request *request,
                                 struct http_server_response *response,
                                 admin_ask_fn *done);

/* The same for nobody's page: what it answers goes nowhere.  NULL: Redis is away. */
struct admin_ask *admin_ask_begin(struct admin *admin, admin_ask_fn *done);

/* One command of the next round; key words are made by admin_ask_key. */
void admin_ask_words(struct admin_ask *ask, const struct span *words, size_t count);
#define ADMIN_ASK(ask, ...)                                        \
	admin_ask_words(ask, (const struct span[]){ __VA_ARGS__ }, \
	                ARRAY_SIZE(((const struct span[]){ __VA_ARGS__ })))

/* FCALL warmq_<function> 1 <ns>:meta 1 words… */
void admin_ask_function(struct admin_ask *ask, const char *function,
                        const struct span *words, size_t count);

/* "ns:name<rest>", which lives until the eighth call later. */
struct span admin_ask_key(struct admin_ask *ask, const char *name, struct span rest);
struct span admin_ask_number(uint64_t value); /* likewise */

/* The commands of the round are all there; it may have none. */
void admin_ask_round(struct admin_ask *ask, admin_ask_fn *done);

/* Sends the answer; the ask is gone. */
void admin_ask_finish(struct admin_ask *ask);

/* Ends it with an error. */
void admin_ask_fail(struct admin_ask *ask, unsigned status, const char *text);

/* Forgets what is kept: something was changed. */
void admin_ask_forget(struct admin *admin);

#endif
