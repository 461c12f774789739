/* answer.h - what an answer of a provider means for the job, the account and the lane.
 *
 *   status + headers + error body ──► ok | retry | defer | fatal | …   + a sentence
 *
 * Key is the error's type, then the status: vendors disagree about numbers.  Where the
 * status is 200 although the body is an error, a number in its `code` (as one, or as
 * text) is the status.  An
 * answer is never classified by its text alone, with two exceptions: a 400 is searched
 * for the names of the fields that WarmQ itself added, and that an account is out of
 * money has no type of its own at some vendors, only a sentence.
 *
 * Headers are given one by one in any case, as they arrive.  Pure, no clock: `now_ms`
 * (since 1970) is used only to turn absolute times into waits. */
#ifndef COMMON_CODEC_ANSWER_H
#define COMMON_CODEC_ANSWER_H

#include "common/base.h"
#include "common/codec/dialect.h"

#define ANSWER_UNKNOWN (-1)

enum answer_kind {
	ANSWER_OK,
	ANSWER_RETRY,      /* a real failure that may pass: counts as an attempt */
	ANSWER_DEFER,      /* the provider has no room: back to the queue, no attempt */
	ANSWER_FATAL,      /* this request will never succeed */
	ANSWER_SPEND_CAP,  /* the account is out of money: park all of it */
	ANSWER_KEY,        /* the key is refused: park the account, tell people */
	ANSWER_BAD_MARKER, /* 400 for something we added: send once without, no attempt */
	ANSWER_FOREIGN,    /* of a proxy, a login page, another site: as if unreached */
	ANSWER_COUNT,
};

/* Which of our additions a 400 names.  Whether this request had it, the caller knows. */
enum answer_addition {
	ANSWER_ADDED_NONE,
	ANSWER_ADDED_MARKER,    /* cache_control, prompt_cache_breakpoint, …_options */
	ANSWER_ADDED_CACHE_KEY, /* prompt_cache_key */
	ANSWER_ADDED_USAGE,     /* stream_options, include_usage */
	ANSWER_ADDED_STREAM,    /* stream */
};

enum answer_bucket {
	ANSWER_REQUESTS,
	ANSWER_TOKENS, /* both directions together (openai; anthropic: the tightest) */
	ANSWER_INPUT,
	ANSWER_OUTPUT,
	ANSWER_BUCKETS,
};

struct answer_limit {
	int64_t limit; /* per minute; ANSWER_UNKNOWN if absent or negative */
	int64_t remaining;
	int64_t reset_ms; /* until full again; ANSWER_UNKNOWN if absent */
};

struct answer_headers {
	uint64_t now_ms;        /* the caller's; from the header Date on the server's */
	uint64_t retry_at_ms;   /* retry-after as a date; 0: it was none */
	int64_t retry_after_ms; /* retry-after-ms before retry-after; ANSWER_UNKNOWN */
	bool retry_after_exact; /* from retry-after-ms */
	int should_retry;       /* x-should-retry: 1, 0, or ANSWER_UNKNOWN */
	struct answer_limit bucket[ANSWER_BUCKETS];
	char request_id[128];
	char organization[64];
	char workspace[64];
	char content_type[64]; /* lower case, without parameters */
};

struct answer {
	enum answer_kind kind;
	enum answer_addition addition; /* of ANSWER_BAD_MARKER */
	int64_t after_ms; /* wait before the next try; ANSWER_UNKNOWN: the caller's
	                     back-off */
	bool overloaded;  /* 529 and its like: the provider as a whole, not our limits */
	char type[64];    /* the provider's own word, or "http 502" */
	char text[256];   /* for people: status, type, message, and what now */
};

void answer_headers_init(struct answer_headers *headers, uint64_t now_ms);
void answer_header(struct answer_headers *headers, struct span name, struct span value);

/* `status` 0: no answer at all (connection lost, time-out): always ANSWER_RETRY.
 * `body` is the error body, or the error object of a stream that had begun (status 200).
 * A 4xx that is not even meant as JSON is of a gateway (ANSWER_FOREIGN), unless its
 * status speaks of this one request or the dialect is raw.
 */
void answer_classify(enum dialect dialect, int status,
                     const struct answer_headers *headers, struct span body,
                     struct answer *ret_answer);

/* A whole answer of status 2xx that is neither a stream nor JSON, though it should be, or
 * JSON of which nothing is an answer (`no_answer`: null, {}, a list): is it something
 * else that answered (any text), broken on its way (it calls itself one of them), or what
 * the provider will always say to this (bytes)? */
void answer_classify_strange(int status, const struct answer_headers *headers,
                             struct span body, struct answer *ret_answer);

/* The request had no such addition, or was sent without it: the field is the job's own.
 */
void answer_blame_job(struct answer *answer);

/* "ok", "retry", … */
const char *answer_kind_name(enum answer_kind kind);

/* Seconds as vendors write them: "1s", "6m0s", "41ms", "1.5s", "1h2m"; ANSWER_UNKNOWN. */
int64_t answer_duration(struct span text);

#endif
