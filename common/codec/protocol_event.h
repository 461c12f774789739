/* protocol_event.h - one line of the event stream as a value.
 *
 * Which fields mean something depends on the kind; the others are zero.  A line that
 * this version does not know is ERR_UNSUPPORTED: readers skip it, events are hints. */
#ifndef COMMON_CODEC_PROTOCOL_EVENT_H
#define COMMON_CODEC_PROTOCOL_EVENT_H

#include "common/codec/protocol.h"

enum protocol_event_kind {
	PROTOCOL_EVENT_START,      /* lane family generation role nonce slot q */
	PROTOCOL_EVENT_BEGAN,      /* lane family generation role usage */
	PROTOCOL_EVENT_DONE,       /* lane family generation role usage */
	PROTOCOL_EVENT_BACK,       /* lane family generation role word */
	PROTOCOL_EVENT_SPENT,      /* lane family generation role word usage */
	PROTOCOL_EVENT_TICKET,     /* lane generation ok; usage if ok, else word */
	PROTOCOL_EVENT_PRESSURE,   /* name (budget) word until_ms */
	PROTOCOL_EVENT_EMPTY,      /* family */
	PROTOCOL_EVENT_WORK,       /* family */
	PROTOCOL_EVENT_EXPIRED,    /* lane generation */
	PROTOCOL_EVENT_SHORT,      /* name (pool) count (free slots) */
	PROTOCOL_EVENT_HELLO,      /* nonce name (pool) count (slots) */
	PROTOCOL_EVENT_BYE,        /* nonce */
	PROTOCOL_EVENT_DEAD,       /* name (job id) word (reason) */
	PROTOCOL_EVENT_ENDED,      /* name (job id) word (reason) */
	PROTOCOL_EVENT_UNDECIDED,  /* name (job id) */
	PROTOCOL_EVENT_HOLD,       /* ok (on) name (who) */
	PROTOCOL_EVENT_HOLD_ROUTE, /* ok (on) word (who, or -) name (route) */
	PROTOCOL_EVENT_PAUSE,      /* ok (on) family */
	PROTOCOL_EVENT_UNPARK,     /* name (budget) word (who; may be empty) */
	PROTOCOL_EVENT_WARM,       /* family name (who) */
	PROTOCOL_EVENT_STEER,      /* nonce word (run, quiet, stop) name (who) */
	PROTOCOL_EVENT_FORGOT,     /* family */
	PROTOCOL_EVENT_DRIFT,      /* lane */
	PROTOCOL_EVENT_COUNT,
};

struct protocol_event {
	enum protocol_event_kind kind;
	struct protocol_lane_id lane;
	struct id128 family;
	uint64_t generation;
	enum protocol_role role;
	uint64_t nonce;
	uint32_t slot;
	uint64_t q;
	struct protocol_usage usage;
	bool ok;
	struct span name;
	struct span word;
	uint64_t until_ms;
	uint32_t count;
};

MUST_USE int protocol_event_parse(struct span line, struct protocol_event *ret_event);

/* ERR_FULL if `size` is not enough. */
MUST_USE int protocol_event_print(const struct protocol_event *event, char *ret_text,
                                  size_t size, size_t *ret_len);

#endif
