/* limit_model.h - how a provider says 429: three buckets per account and class.
 *
 * Requests, input tokens and output tokens per minute, each a token bucket that
 * holds one minute's worth (or `burst_ms`) and refills evenly.  A request starts
 * iff every bucket holds what it needs, or is full and the need is larger still;
 * then the whole need is taken, and the balance may go below zero.
 *
 *   input    charged at start with the estimate, corrected when the response
 *            begins; tokens read from the cache are free unless `reads_charged`.
 *   output   reserved at start with max_tokens in full, the rest given back at
 *            the end.  A request that asks for 8,192 holds 8,192 while it runs.
 *
 * Also the two other ways to be refused: the acceleration limit (too many starts
 * in this second compared with the ones before) and the spend cap (a 429 without
 * retry-after that keeps failing).
 *
 * Whole numbers only: a balance counts tokens x 60,000,000, so that one
 * microsecond refills exactly `limit` units.  Memory is the caller's. */
#ifndef PROVIDER_MODEL_LIMIT_MODEL_H
#define PROVIDER_MODEL_LIMIT_MODEL_H

#include "common/base.h"

#define LIMIT_MODEL_PER_MINUTE_MAX 1000000000u
#define LIMIT_MODEL_BURST_MS_MAX   3600000u

enum limit_bucket {
	LIMIT_BUCKET_REQUESTS,
	LIMIT_BUCKET_INPUT,
	LIMIT_BUCKET_OUTPUT,
	LIMIT_BUCKET_COUNT,
};

enum limit_verdict {
	LIMIT_VERDICT_OK,
	LIMIT_VERDICT_REQUESTS,
	LIMIT_VERDICT_INPUT,
	LIMIT_VERDICT_OUTPUT,
	LIMIT_VERDICT_ACCELERATION,
	LIMIT_VERDICT_SPEND, /* no retry-after; parks the account */
	LIMIT_VERDICT_COUNT,
};

struct limit_knobs {
	uint32_t per_minute[LIMIT_BUCKET_COUNT]; /* 0: no limit */
	uint32_t burst_ms[LIMIT_BUCKET_COUNT]; /* what it holds; 0: one minute's worth */
	bool reads_charged;                    /* cache reads count as input */
	bool output_joined; /* output counts as input, too: one bucket for all tokens */
	bool estimate_full; /* at start the cached part is charged too */
	bool refusals_counted; /* a refused request still costs a request */
	bool spend_cap;
	uint32_t acceleration_floor; /* starts per second always allowed; 0: no limit */
	uint32_t acceleration_permille; /* growth per second; 0 means 2,000: doubling */
};

struct limit_model {
	struct limit_knobs knobs;
	int64_t balance[LIMIT_BUCKET_COUNT]; /* tokens x 60,000,000 */
	uint64_t refilled_us;
	uint64_t second;          /* index of the second the two counts belong to */
	uint32_t starts;          /* in it */
	uint32_t starts_peak;     /* what the seconds before it reached, fading */
	uint32_t output_reserved; /* tokens held by requests in flight */
};

struct limit_need {
	uint32_t input_tokens; /* uncached + written */
	uint32_t read_tokens;
	uint32_t output_tokens; /* max_tokens */
};

/* One line of rate-limit headers. */
struct limit_level {
	uint32_t limit;     /* 0: no limit */
	uint32_t remaining; /* tokens, never negative */
	uint64_t full_us;   /* from now until the bucket is full */
};

/* Buckets begin full. */
void limit_model_init(struct limit_model *model, uint64_t now_us,
                      const struct limit_knobs *knobs);

/* Changes limits in flight.  A bucket that gets a limit begins full; one whose
 * limit changes keeps its debt and at most its new capacity. */
void limit_model_set_knobs(struct limit_model *model, uint64_t now_us,
                           const struct limit_knobs *knobs);

/* OK: the need is taken.  Otherwise nothing is, and `ret_retry_us` is how long
 * until the same request could pass if nothing else ran; 0 for the spend cap. */
enum limit_verdict limit_model_start(struct limit_model *model, uint64_t now_us,
                                     const struct limit_need *need,
                                     uint64_t *ret_retry_us);

/* Replaces the input estimate by the truth; a no-op unless `estimate_full`. */
void limit_model_respond(struct limit_model *model, uint64_t now_us,
                         const struct limit_need *need);

/* Gives back what was reserved and not used.  A request that never responded
 * used 0 output tokens. */
void limit_model_finish(struct limit_model *model, uint64_t now_us,
                        const struct limit_need *need, uint32_t output_used);

struct limit_level limit_model_level(struct limit_model *model, uint64_t now_us,
                                     enum limit_bucket bucket);

#endif
