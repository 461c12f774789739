/* sse.h - server-sent events from bytes as they arrive, whatever the network cut.
 *
 *   bytes ──► lines (LF, CR, CRLF) ──► fields ──► one event per empty line
 *
 * Follows the event-stream grammar of the HTML standard: comments (":…") and unknown
 * fields are skipped, several `data` lines are joined by a newline, one leading blank of
 * a value is dropped, a byte order mark at the start is skipped.  An event without data
 * is not delivered.  How the bytes were split never changes what is delivered.
 *
 * Bounded: an event's data may have at most `data_max` bytes. */
#ifndef COMMON_CODEC_SSE_H
#define COMMON_CODEC_SSE_H

#include "common/base.h"
#include "common/buffer.h"
#include "common/error.h"

#define SSE_DATA_MAX ((size_t)16 << 20)

struct sse_event {
	struct span name; /* of the `event` field; empty = message */
	struct span data; /* borrowed until the callback returns */
};

/* Answers 0, or an error that sse_feed hands back at once. */
typedef int sse_event_fn(void *context, const struct sse_event *event);

struct sse {
	sse_event_fn *on_event;
	void *context;
	struct buffer line; /* the unfinished line */
	struct buffer name;
	struct buffer data;
	bool has_data;
	bool after_cr; /* a LF that follows belongs to the CR */
	uint8_t mark;  /* bytes of a byte order mark seen at the start; 3 = past it */
};

void sse_init(struct sse *sse, size_t data_max, sse_event_fn *on_event, void *context);
void sse_fini(struct sse *sse);

/* ERR_LIMIT if a line or an event is too large, ERR_MEMORY, or the callback's answer.
 * After a failure only sse_fini is allowed. */
MUST_USE int sse_feed(struct sse *sse, struct span bytes);

/* The input has ended: delivers an event whose empty line never came, as many servers
 * leave out the last one. */
MUST_USE int sse_flush(struct sse *sse);

#endif
