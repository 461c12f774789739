/* envelope_pack.h - jobs as MessagePack: a map, or an array of maps.
 *
 * Keys are strings, values strings, binary, integers, booleans or nil.  Bounded before
 * msgpack-c sees a byte: no container may promise more elements than bytes follow, and
 * nothing is nested deeper than ENVELOPE_PACK_DEPTH. */
#ifndef COMMON_CODEC_ENVELOPE_PACK_H
#define COMMON_CODEC_ENVELOPE_PACK_H

#include "common/codec/envelope.h"

#define ENVELOPE_PACK_DEPTH 8

/* Answers the number of maps and where the first one begins; ERR_MALFORMED. */
MUST_USE int envelope_pack_open(struct span bytes, uint32_t *ret_count,
                                struct span *ret_maps);

/* Cuts the next map off the front of `maps`.  ERR_MALFORMED. */
MUST_USE int envelope_pack_skip(struct span *maps, struct span *ret_map);

/* Reads one map into pairs that borrow from `map` or from `scratch`, which must have
 * room for 24 bytes per value.  ERR_MALFORMED with `reterr`. */
MUST_USE int envelope_pack_read(struct span map, struct buffer *scratch,
                                struct envelope_pair *pairs, size_t *ret_count,
                                struct envelope_error *reterr);

#endif
