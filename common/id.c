#include "common/id.h"

/* The whole of xxHash comes as inline code: no library at link time, so that a pure
 * program stays pure.  At -O0, gcc leaves XXH3_createState and with it malloc behind;
 * the purity test therefore looks at optimised builds only. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wcast-qual"
#pragma GCC diagnostic ignored "-Wundef"
#define XXH_INLINE_ALL
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>
#pragma GCC diagnostic pop

_Static_assert(sizeof(struct id_hash) >= sizeof(XXH3_state_t), "state too small");
_Static_assert(_Alignof(struct id_hash) >= _Alignof(XXH3_state_t), "state not aligned");

static XXH3_state_t *
state_of(struct id_hash *hash)
{
	return (XXH3_state_t *)(void *)hash->state;
}

int
id_compare(struct id128 a, struct id128 b)
{
	if (a.high != b.high)
		return a.high < b.high ? -1 : 1;
	if (a.low != b.low)
		return a.low < b.low ? -1 : 1;
	return 0;
}

static void
put_hex(uint64_t half, char *out)
{
	for (int i = 0; i < 16; i++)
		out[i] = "0123456789abcdef"[(half >> (60 - 4 * i)) & 15];
}

void
id_encode(struct id128 id, char ret_hex[ID_HEX_LEN])
{
	put_hex(id.high, ret_hex);
	put_hex(id.low, ret_hex + 16);
}

static int
get_hex(const char *text, uint64_t *ret_half)
{
	uint64_t half = 0;

	for (int i = 0; i < 16; i++) {
		char c = text[i];

		if (c >= '0' && c <= '9')
			half = half << 4 | (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			half = half << 4 | (uint64_t)(c - 'a' + 10);
		else
			return ERR_MALFORMED;
	}
	*ret_half = half;
	return 0;
}

int
id_decode(struct span hex, struct id128 *ret_id)
{
	struct id128 id;

	if (hex.len != ID_HEX_LEN)
		return ERR_MALFORMED;
	if (get_hex(hex.data, &id.high) < 0 || get_hex(hex.data + 16, &id.low) < 0)
		return ERR_MALFORMED;
	*ret_id = id;
	return 0;
}

void
id_hash_init(struct id_hash *hash, uint64_t seed)
{
	XXH3_INITSTATE(state_of(hash));
	(void)XXH3_128bits_reset_withSeed(state_of(hash), seed);
}

void
id_hash_update(struct id_hash *hash, struct span bytes)
{
	if (bytes.len > 0)
		(void)XXH3_128bits_update(state_of(hash), bytes.data, bytes.len);
}

void
id_hash_number(struct id_hash *hash, uint64_t number)
{
	char bytes[8];

	for (int i = 0; i < 8; i++)
		bytes[i] = (char)(number >> (8 * i));
	id_hash_update(hash, (struct span){ bytes, sizeof bytes });
}

void
id_hash_field(struct id_hash *hash, struct span bytes)
{
	id_hash_number(hash, bytes.len);
	id_hash_update(hash, bytes);
}

struct id128
id_hash_final(const struct id_hash *hash)
{
	XXH128_hash_t digest;

	digest = XXH3_128bits_digest((const XXH3_state_t *)(const void *)hash->state);
	return (struct id128){ digest.high64, digest.low64 };
}

struct id128
id_of(struct span bytes, uint64_t seed)
{
	XXH128_hash_t digest =
		XXH3_128bits_withSeed(bytes.len > 0 ? bytes.data : "", bytes.len, seed);

	return (struct id128){ digest.high64, digest.low64 };
}
