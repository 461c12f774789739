/* chain_shape.h - where the parts of a request are, before anything is written.
 *
 *   canonical body ──► tools, system, messages; markers in render order; what the
 *                      cache depends on (images, citations, …); or why it is opaque
 *
 * Reads a tape over the canonical form of the body, so every string has its one
 * spelling.  Writes nothing but the shape itself, which borrows the tape. */
#ifndef COMMON_CODEC_CHAIN_SHAPE_H
#define COMMON_CODEC_CHAIN_SHAPE_H

#include "common/base.h"
#include "common/codec/chain.h"
#include "common/codec/dialect.h"
#include "common/codec/part.h"
#include "common/codec/tape.h"

#define CHAIN_SHAPE_KEYS_MAX    200 /* of an object that is written member by member */
#define CHAIN_SHAPE_MARKERS_MAX 16  /* providers take 4; more are counted, not kept */

/* One marker of the user's. */
struct chain_shape_marker {
	enum tier tier;      /* where it is rendered */
	uint32_t block;      /* the block or tool that has it */
	uint32_t key;        /* its key token */
	uint32_t message;    /* the message around it, or TAPE_NONE */
	bool nested;         /* inside the content of a tool result */
	enum part_mark form; /* PART_MARK_NONE: a form of its own, never taken out */
	enum ttl ttl;
};

/* The end of the messages that belong to the chain. */
struct chain_cut {
	bool exists;
	uint32_t message; /* the last message, whole or in part */
	uint32_t block;   /* its last block; TAPE_NONE: all of the message */
};

struct chain_shape {
	const struct tape *tape;
	enum dialect dialect;
	enum chain_opaque opaque;
	uint32_t opaque_at; /* the key or value at fault, or TAPE_NONE */

	uint32_t tools;    /* array with at least one element, or TAPE_NONE */
	uint32_t system;   /* string or array that is not empty, or TAPE_NONE */
	uint32_t messages; /* array, or TAPE_NONE */
	uint32_t tool_choice;
	uint32_t thinking;
	uint32_t message_count;
	uint32_t leading;      /* openai-chat: token behind the leading system messages;
	                          0 = there are none */
	uint32_t leading_last; /* the last of them */
	uint32_t leading_max;  /* no more than so many */
	uint32_t first_reply;  /* first assistant message, or TAPE_NONE */
	uint32_t final_user;   /* last message that waits for a reply, or TAPE_NONE */
	bool turns;            /* assistant or tool messages */
	uint32_t flags;        /* enum part_flag, of the whole request */

	struct chain_shape_marker marker[CHAIN_SHAPE_MARKERS_MAX];
	uint32_t marker_count;   /* kept in `marker` */
	uint32_t explicit_count; /* all of them */
	enum ttl automatic;

	int64_t max_tokens;
	uint32_t model;
	bool wants_stream;
};

/* Fills the shape of an object; `opaque` says whether it can be used.  openai-chat: at
 * most `leading_max` messages count as the system part. */
void chain_shape_read(struct chain_shape *shape, enum dialect dialect,
                      const struct tape *tape, uint32_t leading_max);

/* True iff the request has a system part of its own. */
static inline bool
chain_shape_has_system(const struct chain_shape *shape)
{
	return shape->system != TAPE_NONE || shape->leading != 0;
}

/* `shared` as far as it names something in this request; else AUTO, and `ret_note` gets a
 * sentence. */
struct chain_shared chain_shape_shared(const struct chain_shape *shape,
                                       struct chain_shared shared, const char **ret_note);

/* Where M ends: as declared by `shared` (checked as above) or by a prefix of so many
 * messages, else by the user's markers. */
struct chain_cut chain_shape_cut(const struct chain_shape *shape,
                                 const struct dialect_traits *traits,
                                 struct chain_shared shared, uint32_t prefix_messages);

/* The last block (or bare string) of a tier that may carry a marker, or TAPE_NONE. */
uint32_t chain_shape_markable(const struct chain_shape *shape, enum tier tier,
                              const struct chain_cut *cut);

/* The marker that sits on `block`, or NULL. */
const struct chain_shape_marker *chain_shape_marker_on(const struct chain_shape *shape,
                                                       uint32_t block);

/* True iff marker `m` is rendered before, or at, the block of a tier. */
bool chain_shape_before(const struct chain_shape_marker *m, enum tier tier,
                        uint32_t block);

/* "cache_control", or what the dialect calls it; true iff the key token is such a key. */
bool chain_shape_is_marker_key(const struct tape *tape, uint32_t key);

#endif
