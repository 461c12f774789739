/* assemble.h - an answer that was streamed becomes the object the job asked for.
 *
 *   message_start, content_block_start, deltas…, message_delta, message_stop
 *        └────────► {"id":…,"content":[…],"stop_reason":…,"usage":{…}}
 *   chat.completion.chunk… [DONE]
 *        └────────► {"object":"chat.completion","choices":[…],"usage":{…}}
 *
 * Lossless: text, tool input, thinking with its signature, citations, server tools, log
 * probabilities and members nobody has heard of arrive in the object.  What cannot be
 * placed for sure (an unknown kind of delta, tool input that is not JSON) turns the
 * result into ASSEMBLE_SSE: the events as they came, nothing dropped; the caller then
 * should not force this model to stream again.
 *
 * The same type reads answers that are no stream (ASSEMBLE_PLAIN).  However the bytes
 * were cut, the result is the same. */
#ifndef COMMON_CODEC_ASSEMBLE_H
#define COMMON_CODEC_ASSEMBLE_H

#include "common/base.h"
#include "common/buffer.h"
#include "common/codec/dialect.h"
#include "common/codec/usage.h"
#include "common/error.h"

#define ASSEMBLE_SIZE_MAX ((size_t)32 << 20)

enum assemble_format {
	ASSEMBLE_JSON,  /* one object, the shape of an answer that was not streamed */
	ASSEMBLE_SSE,   /* the events, "event: …" and "data: …" lines */
	ASSEMBLE_PLAIN, /* the bytes as they came; not a stream */
};

struct assemble_options {
	enum dialect dialect;
	bool sse;        /* the answer is an event stream (content-type) */
	bool keep_sse;   /* the job asked for a stream: the result is its events */
	bool hide_usage; /* include_usage was ours: drop the extra chunk from kept events
	                  */
	struct span usage_path; /* raw: where the answer has its usage; empty: unknown */
	size_t size_max;        /* of everything kept */
};

struct assemble_result {
	enum assemble_format format;
	struct span body;    /* owned by the assembler */
	bool complete;       /* the stream ended as it should (message_stop, [DONE]), or
	                        the whole answer can be one */
	bool silent;         /* a stream of which nothing came but its end */
	const char *why_sse; /* static text if the object could not be built; else NULL */
	struct span error;   /* the error object of an answer that failed; len 0 = none */
};

struct assemble;

/* NULL when out of memory. */
struct assemble *assemble_create(const struct assemble_options *options);
struct assemble *assemble_destroy(struct assemble *assemble); /* answers NULL */

/* ERR_LIMIT over size_max, ERR_MEMORY.  An event that is not JSON is no error: the result
 * is then the events. */
MUST_USE int assemble_feed(struct assemble *assemble, struct span bytes);

/* True once the first real event has come: the prefix is readable and, where the dialect
 * says it early, usage is known.  Pings and comments do not count. */
bool assemble_began(const struct assemble *assemble);

/* True once the stream has said that it is over (message_stop, [DONE]): the answer is
 * whole, whatever becomes of the connection.  What comes behind it is no part of it. */
bool assemble_ended(const struct assemble *assemble);

/* True if it is whole although it has not said so: each choice has its finish_reason, and
 * usage, which comes last, is known.  Some servers leave out [DONE], and their connection
 * may still end badly.  While it stands, more may come. */
bool assemble_is_settled(struct assemble *assemble);

/* What is known of usage so far; unknown before the first event. */
const struct usage *assemble_usage(const struct assemble *assemble);

/* Ends the input.  Never fails for what the provider sent: the worst is ASSEMBLE_SSE.
 * ERR_MEMORY or ERR_LIMIT otherwise. */
MUST_USE int assemble_finish(struct assemble *assemble, struct assemble_result *ret);

#endif
