/* prng.h - repeatable randomness: the same seed gives the same numbers everywhere.
 *
 * xoshiro256** over a state that splitmix64 fills from one 64-bit seed (Blackman and
 * Vigna, "Scrambled linear pseudorandom number generators", 2018).  It serves the
 * simulator, jitter and canaries; it is not for secrets.
 *
 * The state is plain data in the caller's memory: copy it to fork a stream.  No floats,
 * so that every compiler and optimisation level draws the same weather. */
#ifndef COMMON_PRNG_H
#define COMMON_PRNG_H

#include "common/base.h"

struct prng {
	uint64_t state[4]; /* never all zero */
};

void prng_init(struct prng *prng, uint64_t seed);

/* The next 64 bits. */
uint64_t prng_next(struct prng *prng);

/* Uniform in [0, bound); `bound` must be positive.  Without modulo bias. */
uint64_t prng_below(struct prng *prng, uint64_t bound);

/* Uniform in [low, high], both included; low <= high. */
uint64_t prng_between(struct prng *prng, uint64_t low, uint64_t high);

/* True `permille` times in a thousand: 0 is never, 1000 is always. */
bool prng_chance(struct prng *prng, uint32_t permille);

/* Answers a child seeded from the parent's stream, so that the draws of one part of a
 * simulation do not shift those of another. */
struct prng prng_fork(struct prng *prng);

#endif
