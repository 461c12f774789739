/* timing_model.h - when the first byte comes, and when the last.
 *
 *   start ──── latency + prefill ────► first byte ──── decode ────► last byte
 *              0.1 s +-20 %  +  tokens not read from the cache / 10,000 per s
 *
 * The job's own time is counted from the first byte: `job_us` if set, else output
 * tokens at the decode rate.  Same seed and same calls, same times.  Whole
 * numbers, microseconds.  Memory is the caller's. */
#ifndef PROVIDER_MODEL_TIMING_MODEL_H
#define PROVIDER_MODEL_TIMING_MODEL_H

#include "common/base.h"
#include "common/prng.h"

struct timing_knobs {
	uint32_t latency_us;         /* 100,000 */
	uint32_t latency_permille;   /* spread each way: 200 */
	uint32_t prefill_per_second; /* tokens: 10,000; 0: prefill takes no time */
	uint32_t decode_per_second;  /* tokens: 80; 0: decode takes no time */
	uint64_t job_us;             /* 0: by the decode rate */
	uint32_t job_permille;       /* spread of either each way: 0 */
};

#define TIMING_KNOBS_DEFAULT                                          \
	{                                                             \
		.latency_us = 100000, .latency_permille = 200,        \
		.prefill_per_second = 10000, .decode_per_second = 80, \
	}

struct timing_model {
	struct timing_knobs knobs;
	struct prng prng;
};

/* Both spans in microseconds, counted one after the other. */
struct timing_plan {
	uint64_t first_byte_us;
	uint64_t decode_us;
};

void timing_model_init(struct timing_model *model, uint64_t seed,
                       const struct timing_knobs *knobs);

struct timing_plan timing_model_plan(struct timing_model *model, uint32_t prefill_tokens,
                                     uint32_t output_tokens);

#endif
