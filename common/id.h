/* id.h - 128-bit identities: made by hashing, compared as numbers, written as hex.
 *
 *   "1f0c…" (32 digits) ◄── id_encode ── struct id128 ◄── id_hash_final ◄── bytes
 *                       ── id_decode ──►
 *
 * The text is the high half first, big-endian, lower case: the canonical form of
 * XXH128, so `xxhsum -H2` prints the same digits for seed 0.
 *
 * The hash is XXH3-128, seeded per installation so that nobody outside can aim for a
 * collision.  It is an index, never a proof: whoever would share bytes because two ids
 * are equal compares the bytes first.
 *
 * Nothing here allocates.  The hash state lives in the caller's memory and must be
 * aligned as its type says: on the stack, static, or from aligned_alloc, not in a
 * malloc()ed struct. */
#ifndef COMMON_ID_H
#define COMMON_ID_H

#include "common/base.h"
#include "common/error.h"

#define ID_HEX_LEN 32

struct id128 {
	uint64_t high;
	uint64_t low;
};

#define ID_NONE ((struct id128){ 0, 0 }) /* no hash has it for practical purposes */

struct id_hash {
	_Alignas(64) unsigned char state[576]; /* an XXH3_state_t; id.c checks the size */
};

static inline bool
id_equals(struct id128 a, struct id128 b)
{
	return a.high == b.high && a.low == b.low;
}

static inline bool
id_is_none(struct id128 id)
{
	return id.high == 0 && id.low == 0;
}

/* <0, 0 or >0, in the order of the hex text. */
int id_compare(struct id128 a, struct id128 b);

/* Writes exactly ID_HEX_LEN digits, without a terminator. */
void id_encode(struct id128 id, char ret_hex[ID_HEX_LEN]);

/* Accepts exactly ID_HEX_LEN lower-case hex digits.  ERR_MALFORMED otherwise. */
MUST_USE int id_decode(struct span hex, struct id128 *ret_id);

/* Streaming: init, any number of updates, final.  How the bytes were cut into updates
 * does not matter; who needs the cuts to matter hashes lengths, too (id_hash_number). */
void id_hash_init(struct id_hash *hash, uint64_t seed);
void id_hash_update(struct id_hash *hash, struct span bytes);

/* Hashes `number` as 8 little-endian bytes. */
void id_hash_number(struct id_hash *hash, uint64_t number);

/* Hashes the length, then the bytes: ("ab","c") and ("a","bc") differ. */
void id_hash_field(struct id_hash *hash, struct span bytes);

/* Answers the id of all bytes so far; more updates may follow. */
struct id128 id_hash_final(const struct id_hash *hash);

/* One shot. */
struct id128 id_of(struct span bytes, uint64_t seed);

#endif
