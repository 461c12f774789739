/* splice.h - stored parts become the request that is sent: one function for all jobs.
 *
 *   px T + px S + px M + own + tail  ──►  body
 *      └─ markers ──┘          └─ stream, include_usage, cache key
 *
 * Leader, canary and follower go through splice_render with the same px values and the
 * same bits, so their prefixes cannot differ by a byte.  splice_call writes the warm-up
 * of a node from the px values alone: same segments, same settings, no output.
 *
 * What may be added or changed is the transformation table (docs/IDENTITY.md) and
 * nothing else; `struct splice_report` lists what was done, enough to undo it. */
#ifndef COMMON_CODEC_SPLICE_H
#define COMMON_CODEC_SPLICE_H

#include "common/base.h"
#include "common/buffer.h"
#include "common/codec/marker.h"
#include "common/codec/part.h"
#include "common/error.h"

struct splice_request {
	const struct dialect_traits *traits;
	const struct part_px *px; /* root first; none for a job that was not split */
	unsigned px_count;
	const struct part_own *own; /* unused by splice_call */
	unsigned want;              /* bits of the nodes to mark, from claim */
	bool markers_never;
	bool stream_never; /* this model's stream could not be reassembled once */
	struct span
		cache_key; /* for prompt_cache_key, if traits want one; may be empty */
};

/* What stood where we wrote something: enough to undo it. */
enum splice_was {
	SPLICE_KEPT,   /* not touched */
	SPLICE_ABSENT, /* the member was not there */
	SPLICE_FALSE,
	SPLICE_NULL,
	SPLICE_NO_PARENT,   /* nor was the object around it */
	SPLICE_NULL_PARENT, /* the object around it was null */
};

/* Bytes that are in the body only because we wrote them there. */
struct splice_edit {
	size_t at; /* offset in the body */
	size_t len;
};

#define SPLICE_EDITS_MAX 10

struct splice_report {
	struct splice_edit
		edit[SPLICE_EDITS_MAX]; /* in order; cutting them out and setting
	                                   what SPLICE_FALSE and SPLICE_NULL
	                                   say gives back what was sent */
	unsigned edit_count;

	struct marker_plan plan;
	bool job_streams;       /* the job itself asked for a stream */
	bool streams;           /* the request asks for one */
	enum splice_was stream; /* `stream` */
	enum splice_was usage;  /* `stream_options.include_usage`; unless KEPT, hide the
	                           extra chunk from a job that streams */
	enum splice_was key;    /* `prompt_cache_key` */
	enum splice_was mode;   /* `prompt_cache_options` */
};

/* Appends the body.  ERR_MALFORMED if the parts do not fit together. */
MUST_USE int splice_render(const struct splice_request *request, struct buffer *out,
                           struct splice_report *ret_report);

/* clang-format off */
#define SPLICE_REFUSAL_LIST(X) \
	X(SPLICE_CALL_OK,         "can be warmed by a request of its own") \
	X(SPLICE_CALL_NONE,       "this provider has no request that warms and answers nothing") \
	X(SPLICE_CALL_UNMARKED,   "this part of the request would carry no marker") \
	X(SPLICE_CALL_THINKING,   "extended thinking is on, which a warm-up without output excludes") \
	X(SPLICE_CALL_FORMAT,     "a structured output format excludes a warm-up without output") \
	X(SPLICE_CALL_TOOL,       "tool_choice forces a tool, and the shared part reaches into the messages") \
	X(SPLICE_CALL_IMAGE,      "images are part of what the cache depends on here") \
	X(SPLICE_CALL_TOOL_USE,   "the shared part ends in a tool call that has no result yet") \
	X(SPLICE_CALL_CONTEXT,    "context_management may change what is cached") \
	X(SPLICE_CALL_SERVER,     "tools that run at the provider add to the messages") \
	X(SPLICE_CALL_CITATIONS,  "citations are switched on, which the cached system part depends on") \
	X(SPLICE_CALL_HELD,       "part of the prefix is kept by the provider") \
	X(SPLICE_CALL_RAW,        "raw bytes cannot be completed to a warm-up")
/* clang-format on */

enum splice_refusal {
#define X(name, text) name,
	SPLICE_REFUSAL_LIST(X)
#undef X
	SPLICE_REFUSAL_COUNT,
};

/* Appends the warm-up of the last px, or appends nothing and says why the first waiting
 * job has to lead instead.  Markers: those of `want`, and always the last node's.
 * ERR_MALFORMED if the parts do not fit together. */
MUST_USE int splice_call(const struct splice_request *request, struct buffer *out,
                         struct splice_report *ret_report,
                         enum splice_refusal *ret_refusal);

const char *splice_refusal_text(enum splice_refusal refusal);

#endif
