#include "common/prng.h"

static uint64_t
splitmix(uint64_t *state)
{
	uint64_t z;

	*state += 0x9e3779b97f4a7c15;
	z = *state;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

static uint64_t
rotate_left(uint64_t x, unsigned bits)
{
	return (x << bits) | (x >> (64 - bits));
}

void
prng_init(struct prng *prng, uint64_t seed)
{
	for (size_t i = 0; i < ARRAY_SIZE(prng->state); i++)
		prng->state[i] = splitmix(&seed);
}

uint64_t
prng_next(struct prng *prng)
{
	uint64_t *s = prng->state;
	uint64_t result = rotate_left(s[1] * 5, 7) * 9;
	uint64_t t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotate_left(s[3], 45);
	return result;
}

uint64_t
prng_below(struct prng *prng, uint64_t bound)
{
	uint64_t reject, draw;

	VERIFY(bound > 0);

	/* The first 2^64 mod bound draws would make small numbers likelier. */
	reject = (0 - bound) % bound;
	do {
		draw = prng_next(prng);
	} while (draw < reject);
	return draw % bound;
}

uint64_t
prng_between(struct prng *prng, uint64_t low, uint64_t high)
{
	VERIFY(low <= high);
	if (high - low == UINT64_MAX)
		return prng_next(prng);
	return low + prng_below(prng, high - low + 1);
}

bool
prng_chance(struct prng *prng, uint32_t permille)
{
	VERIFY(permille <= 1000);
	return prng_below(prng, 1000) < permille;
}

struct prng
prng_fork(struct prng *prng)
{
	struct prng child;

	prng_init(&child, prng_next(prng));
	return child;
}
