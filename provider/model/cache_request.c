#include "provider/model/cache_request.h"

#define MINUTE_US (60 * 1000000ull)

bool
cache_request_is_long(uint8_t marker)
{
	return marker == CACHE_MARKER_1H || marker == CACHE_MARKER_12H;
}

enum cache_verdict
cache_request_judge(const struct cache_request *request)
{
	uint32_t markers = 0;
	bool short_seen = false;

	if (request->mode == CACHE_MODE_IMPLICIT)
		return CACHE_VERDICT_OK;

	for (uint32_t i = 0; i < request->blocks_count; i++) {
		uint8_t marker = request->blocks[i].marker;

		if (marker == CACHE_MARKER_NONE)
			continue;
		if (++markers > CACHE_REQUEST_MARKERS_MAX)
			return CACHE_VERDICT_TOO_MANY_MARKERS;
		if (cache_request_is_long(marker) && short_seen &&
		    request->mode == CACHE_MODE_MARKERS)
			return CACHE_VERDICT_TTL_ORDER;
		short_seen = short_seen || !cache_request_is_long(marker);
	}
	return CACHE_VERDICT_OK;
}

uint64_t
cache_request_ttl_us(enum cache_marker marker)
{
	switch (marker) {
	case CACHE_MARKER_NONE:
	case CACHE_MARKER_5M:
		return 5 * MINUTE_US;
	case CACHE_MARKER_30M:
		return 30 * MINUTE_US;
	case CACHE_MARKER_1H:
		return 60 * MINUTE_US;
	case CACHE_MARKER_12H:
		return 12 * 60 * MINUTE_US;
	case CACHE_MARKER_24H:
		return 24 * 60 * MINUTE_US;
	case CACHE_MARKER_COUNT:
		break;
	}
	VERIFY(!"a marker of the table");
}
