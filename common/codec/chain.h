/* chain.h - prefix identity: a request becomes up to three nodes and its own rest.
 *
 *   {"model":…,"tools":[…],"system":…,"messages":[{…[doc,│question]},…],"max_tokens":…}
 *   └────── T ──────────┘└──── S ────┘└────── M ────────┘└─ own ───────┘└─── tail ────┘
 *      id = H(parent id, canonical segment, settings of the tier), root to leaf
 *
 * Two requests have the same node iff the provider would render the same prompt up to
 * there: white space, escapes, the order of top-level keys, a string in place of one text
 * block and `role` behind `content` do not matter; everything else does.  A marker of
 * the user's exactly at a node's boundary is taken out of the segment and remembered in
 * the own value, so that rendering puts it back; other markers stay where they are.
 *
 * M ends where the job declares it (`shared`, or a named prefix's last message), else at
 * a marker of the user's: the deepest before the first assistant turn, or else the
 * deepest, but never at the last block of the final user turn.
 *
 * A body that cannot be split is *opaque*: reason and text say why, nothing else is set.
 * Never because of its content alone does a job fail here: ERR_MALFORMED is for what is
 * not JSON and for a prefix that contradicts the body.  A `shared` that names nothing is
 * noted and ignored.
 *
 * A chain owns its bytes; the spans in it live until it is built again or freed. */
#ifndef COMMON_CODEC_CHAIN_H
#define COMMON_CODEC_CHAIN_H

#include "common/base.h"
#include "common/buffer.h"
#include "common/codec/dialect.h"
#include "common/codec/part.h"
#include "common/codec/tape.h"
#include "common/error.h"
#include "common/id.h"

#define CHAIN_SPLIT_MIN 1024 /* bytes: a smaller shared part is not worth its own key */

enum chain_shared_kind {
	CHAIN_SHARED_AUTO,
	CHAIN_SHARED_TOOLS,
	CHAIN_SHARED_SYSTEM,
	CHAIN_SHARED_MESSAGES, /* the first n messages */
	CHAIN_SHARED_MARKER,   /* up to the n-th marker of the user's, from 1 */
	CHAIN_SHARED_BYTES,    /* raw: the first n bytes */
};

struct chain_shared {
	enum chain_shared_kind kind;
	uint32_t n;
};

#define CHAIN_SHARED_COUNT_MAX 100000 /* of messages and markers */

/* "tools", "system", "messages:N", "marker:K" or "bytes:N", counted from 1; else
 * ERR_MALFORMED. */
MUST_USE int chain_shared_parse(struct span text, struct chain_shared *ret_shared);

struct chain_input {
	const struct dialect_traits *traits;
	uint64_t seed;        /* per installation: identity_seed() */
	struct span upstream; /* name; part of T */
	struct span betas;    /* sorted and joined by commas; part of T */
	struct span body;
	struct span prefix; /* content of a named prefix; len 0 = none */
	struct chain_shared shared;
	unsigned id_bits; /* tests only: keep so many bits of each id; 0 = all */
};

/* clang-format off */
#define CHAIN_OPAQUE_LIST(X) \
	X(CHAIN_SPLITTABLE,     "")                                                     \
	X(CHAIN_RAW,            "the dialect is raw and no shared bytes are declared")  \
	X(CHAIN_NOT_OBJECT,     "the body is not a JSON object")                        \
	X(CHAIN_DUPLICATE_KEY,  "a key occurs twice")                                   \
	X(CHAIN_LONE_SURROGATE, "a string contains half of a surrogate pair")           \
	X(CHAIN_TOO_DEEP,       "the body is nested deeper than identity can follow")   \
	X(CHAIN_TOO_LARGE,      "the body has more values than identity can follow")    \
	X(CHAIN_SERVER_HELD,    "the conversation is kept by the provider, not in the body") \
	X(CHAIN_SHAPE,          "tools, system or messages do not have the expected form")   \
	X(CHAIN_SKIPS_CACHE,    "a setting makes the provider skip or pin its cache")
/* clang-format on */

enum chain_opaque {
#define X(name, text) name,
	CHAIN_OPAQUE_LIST(X)
#undef X
	CHAIN_OPAQUE_COUNT,
};

struct chain_node {
	enum tier tier;
	struct id128 id;
	struct part_px px; /* borrowed from the chain */
	struct span value; /* what to store at px:<id> */
	uint32_t tokens;   /* estimate up to the end of this node */
	bool declared;     /* named prefix or `shared` reaches to here: a shared node */
	bool user_marked;  /* this job has a marker of its own at the boundary */
	uint32_t salt;     /* see chain_salt */
	struct id128 content; /* hash of everything but parent and salt */
};

struct chain {
	enum chain_opaque opaque;
	char why[160];  /* for people: the reason and the place; empty if splittable */
	char note[160]; /* for people: what was ignored (`shared`); empty if nothing */

	struct chain_node node[PART_NODES_MAX]; /* root first; the last is the family */
	unsigned count;
	bool split;      /* shared part >= CHAIN_SPLIT_MIN: store px values and `own` */
	struct span own; /* own value; also set, with the whole body, when an unsplit or
	                    opaque job had a named prefix; else empty: keep the body */

	struct span model;   /* as the canonical body spells it; empty if absent */
	int64_t max_tokens;  /* output bound of the job; -1 if absent */
	uint32_t own_tokens; /* estimate of what follows the last node */
	bool wants_stream;   /* the job asked for a stream itself */

	/* inside */
	struct buffer canonical; /* the body, or the merged body, in canonical form */
	struct buffer pieces;    /* segments, own, tail: one after the other */
	struct buffer settings;
	struct buffer values;     /* px values and own value */
	struct tape tape;         /* of `canonical` */
	struct buffer prefix_raw; /* the last prefix seen: jobs come in runs */
	struct buffer prefix_canonical;
	struct tape prefix;
	uint64_t seed;
	unsigned id_bits;
};

struct chain_error {
	char text[192];    /* "both the prefix and the body have `system`", … */
	bool prefix_fault; /* the prefix itself is bad: not this job's mistake */
};

void chain_init(struct chain *chain);
void chain_fini(struct chain *chain); /* takes NULL */

/* Builds the chain of one job.  On failure the chain is empty, but may be used again. */
MUST_USE int chain_build(struct chain *chain, const struct chain_input *input,
                         struct chain_error *reterr);

/* Gives node `index` and all below it other ids, because the stored bytes under its id
 * are not its own.  Deterministic: salts are tried in order 1, 2, …. */
void chain_salt(struct chain *chain, unsigned index, uint32_t salt);

/* Jobs of one prefix that are drained in different pools wait apart: the pool becomes
 * part of the root.  Once at most, and before any salt. */
void chain_place(struct chain *chain, struct span pool);

/* The seed from the installation's secret text (ns:meta `seed`). */
uint64_t chain_seed(struct span secret);

/* Appends the own value of a whole request that was not split, the body of a stream
 * entry, so that it can be rendered like the others; opaque in the same cases as above.
 * ERR_MALFORMED: not JSON.  Uses the chain's memory. */
MUST_USE int chain_whole(struct chain *chain, enum dialect dialect, struct span body,
                         struct buffer *out);

/* Version of a named prefix: 32 hex digits over its canonical bytes, the same in every
 * installation.  ERR_MALFORMED unless it is a JSON object that may be a prefix; `reterr`
 * then says why. */
MUST_USE int chain_prefix_check(enum dialect dialect, struct span content,
                                struct id128 *ret_version, struct chain_error *reterr);

#endif
