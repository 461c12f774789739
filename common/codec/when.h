/* when.h - points in time as text, without a clock and without the C library's zones.
 *
 * RFC 3339 ("2026-11-04T12:00:00Z", fractions and offsets too) and the HTTP date
 * ("Wed, 04 Nov 2026 12:00:00 GMT").  Milliseconds since 1970, UTC; years 1970 to 9999.
 */
#ifndef COMMON_CODEC_WHEN_H
#define COMMON_CODEC_WHEN_H

#include "common/base.h"
#include "common/error.h"

MUST_USE int when_parse_rfc3339(struct span text, uint64_t *ret_ms);
MUST_USE int when_parse_http(struct span text, uint64_t *ret_ms);

#endif
