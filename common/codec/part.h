/* part.h - the stored pieces of a request: px values (shared) and own values (one job's).
 *
 *   px:<T>  px1 A T c - 30 812 5m 204 0 {}⏎{"model":"m","tools":[…]
 *   px:<S>  px1 A S c - 11 90311 5m 22580 0 {}⏎,"system":"You are…"
 *   px:<M>  px1 A M b u - 4120 5m 1031 0 {}⏎,"messages":[{"role":"user","content":[{…}
 *   slim    own1 A --e 1 - ------ 0 41⏎,{"type":"text","text":"Why?"}]}],"max_tokens":64}
 *
 * Each is one line of ASCII and then bytes; neither the line nor the bytes contain
 * another newline.  **Body = the bytes of the segments, root to leaf, then those of own,
 * each from behind its first newline.**  So any language can splice a request without
 * reading JSON, and all jobs of a family send the same bytes up to its boundary.
 * docs/IDENTITY.md describes every column.
 *
 * The `own` bytes are two runs: first what continues the messages, up to and including
 * their closing bracket, then the tail: all other top-level members and the final brace.
 * Only the tail is edited when a request is rendered.
 *
 * Everything read is borrowed from the value.  Values come from Redis, so reading them
 * checks every column. */
#ifndef COMMON_CODEC_PART_H
#define COMMON_CODEC_PART_H

#include "common/base.h"
#include "common/buffer.h"
#include "common/codec/dialect.h"
#include "common/error.h"

#define PART_NODES_MAX 3
#define PART_NOWHERE   SIZE_MAX

/* What a segment leaves open for the bytes that follow. */
enum part_end {
	PART_CLOSED, /* c: a top-level member is complete; the body object is open */
	PART_VALUE,  /* v: a message is open behind its last member: "}" closes it */
	PART_BLOCK,  /* b: the content array of a message is open: "]}" closes both */
	PART_BYTES,  /* r: raw bytes, nothing is known */
};

enum part_role {
	PART_ROLE_NONE, /* - no message in this segment */
	PART_ROLE_USER, /* u also tool results and everything else that waits for a reply
	                 */
	PART_ROLE_ASSISTANT, /* a */
	PART_ROLE_SYSTEM,    /* s leading system or developer message (openai-chat) */
};

enum part_flag {
	PART_FORMAT = 1,      /* T: output_config.format or response_format */
	PART_CONTEXT = 2,     /* T: context_management */
	PART_SERVER_TOOL = 4, /* T: a tool that runs at the provider */
	PART_HELD = 8,        /* T: part of the prefix lives at the provider */
	PART_THINKING = 16,   /* T: thinking enabled */
	PART_FORCED = 32,     /* M: tool_choice any, tool, required or a function */
	PART_IMAGE = 64,      /* M: images or documents somewhere in the request */
	PART_TOOL_USE = 128,  /* M: the last block is a call that waits for its result */
	PART_CITATIONS =
		256,      /* S: some document of the request has citations switched on */
	PART_FIXED = 512, /* the last block has a marker in a form of its own, left in */
};

/* How a user's own marker at a node's boundary was written. */
enum part_mark {
	PART_MARK_NONE,       /* - */
	PART_MARK_PLAIN,      /* e {"type":"ephemeral"} */
	PART_MARK_5M,         /* 5 … "ttl":"5m" */
	PART_MARK_1H,         /* 1 … "ttl":"1h" */
	PART_MARK_BREAKPOINT, /* p {"mode":"explicit"} */
};

struct part_px {
	enum dialect dialect;
	enum tier tier;
	enum part_end end;
	enum part_role role;
	size_t wrap_at;  /* a string starts here that a marker turns into a block;
	                    PART_NOWHERE if the marker goes into a block as it is */
	size_t mark_at;  /* the marker goes in here; PART_NOWHERE: no block may carry one
	                  */
	enum ttl ttl;    /* class of this node's marker */
	uint32_t tokens; /* estimate for this segment alone */
	uint32_t flags;  /* enum part_flag */
	struct span
		settings; /* JSON object: settings of this tier that stay in the tail */
	struct span segment;
};

struct part_own {
	enum dialect dialect;
	bool opaque; /* send the bytes as they are, change nothing */
	bool turns;  /* an assistant or tool message is somewhere in the request */
	enum part_mark user[PART_NODES_MAX]; /* by tier: stripped from the segment */
	uint32_t explicit_count;          /* markers of the user's in the whole request */
	enum ttl automatic;               /* top-level cache_control; TTL_NONE: absent */
	enum ttl earlier[PART_NODES_MAX]; /* shortest class of markers before the tier's
	                                     end */
	enum ttl later[PART_NODES_MAX]; /* longest class behind it; TTL_NONE: no marker */
	struct span own;
	struct span tail;
};

/* Append the value.  Segment and settings are in canonical form (no newline). */
void part_px_write(struct buffer *out, const struct part_px *px);
void part_own_write(struct buffer *out, const struct part_own *own);

/* ERR_MALFORMED if a column is not what this version writes. */
MUST_USE int part_px_read(struct span value, struct part_px *ret_px);
MUST_USE int part_own_read(struct span value, struct part_own *ret_own);

/* The member that writes a marker, `"cache_control":{"type":"ephemeral"}`, and its class.
 */
struct span part_mark_text(enum part_mark mark);
enum ttl part_mark_ttl(enum part_mark mark);

#endif
