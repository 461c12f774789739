/* run_http_inside.h - one request of the HTTP executor, for its own files.
 *
 *   run_http.c      how it begins, and what is read while it runs
 *   run_http_end.c  what its end means */
#ifndef WORKER_RUN_HTTP_INSIDE_H
#define WORKER_RUN_HTTP_INSIDE_H

#include "common/codec/answer.h"
#include "common/codec/assemble.h"
#include "worker/request.h"

#define RUN_HTTP_ERROR_BODY_MAX ((size_t)64 << 10)
#define RUN_HTTP_UNREACHED_MS   2000 /* before what reached nobody is tried again */

/* Nobody answered: one worker does not know whether another hears of this provider.  The
 * scheduler is told and decides whether the account rests; `fail` parks nothing. */
#define RUN_HTTP_AWAY_MS 1

struct run_http_work {
	struct run *run;
	struct request request;
	struct http_exchange *exchange;
	struct answer_headers headers;
	int status;
	struct assemble *assemble; /* of a good answer */
	struct buffer error_body;  /* of a bad one */
	bool is_stream; /* server-sent events, once its first bytes have been seen */
	bool has_begun;
	bool is_too_large;
	unsigned refusals; /* additions of ours that were refused, and left out since */
	uint64_t size;     /* of the answer so far */
};

/* Sends the request of a loaded run, `refusals` times before without avail; ends in
 * run_end. */
void run_http_send(struct run *run, unsigned refusals);

/* Frees the run's work, and stops its request if it is still under way. */
void run_http_free(struct run *run);

/* Ends the run in a failure.  The work is freed first: no outcome points into it. */
void run_http_fail(struct run *run, enum agent_end end, const char *reason,
                   const char *text, uint64_t delay_ms, uint64_t park_ms);

/* The exchange is over: for http_handlers. */
void run_http_done(const struct http_outcome *outcome, void *work);

bool run_http_is_good(const struct run_http_work *work); /* 2xx */
struct protocol_usage run_http_told_usage(const struct run_http_work *work);
struct protocol_usage run_http_spent_usage(const struct run_http_work *work);

/* Keeps the beginning of an error's body. */
void run_http_keep_error(struct run_http_work *work, struct span bytes);

#endif
