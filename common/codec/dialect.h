/* dialect.h - what each kind of provider needs from us, as tables.
 *
 *   tools ──► system ──► messages        the order in which providers read a request,
 *     T         S           M            and the tiers of prefix identity
 *
 * A dialect says at which tier each top-level key of a body enters the identity; a key
 * that no table lists enters at T: when unsure, split.  What differs from model to model
 * (markers, warm-up calls, cache keys) is in `struct dialect_traits`, which the
 * configuration fills; dialect_traits() gives the defaults for an unknown base URL.
 *
 * Static data, no memory.  Source of the tables: docs/IDENTITY.md. */
#ifndef COMMON_CODEC_DIALECT_H
#define COMMON_CODEC_DIALECT_H

#include "common/base.h"
#include "common/error.h"

enum dialect {
	DIALECT_ANTHROPIC,
	DIALECT_OPENAI_CHAT,
	DIALECT_RAW, /* bytes go through untouched; identity by `shared=bytes:N` only */
	DIALECT_COUNT,
};

enum tier {
	TIER_TOOLS,
	TIER_SYSTEM,
	TIER_MESSAGES,
	TIER_COUNT,
	TIER_NEVER = TIER_COUNT, /* the prompt does not depend on it */
};

/* How long an entry lives; it is part of a node's identity. */
enum ttl {
	TTL_NONE, /* unknown, or decided by the provider */
	TTL_5M,
	TTL_30M,
	TTL_1H,
	TTL_12H,
	TTL_COUNT,
};

/* How a cacheable position is marked. */
enum marker_style {
	MARKER_NONE,          /* the provider finds prefixes itself */
	MARKER_CACHE_CONTROL, /* "cache_control":{"type":"ephemeral","ttl":…} */
	MARKER_BREAKPOINT,    /* "prompt_cache_breakpoint":{"mode":"explicit"} */
};

/* What a warm-up request of its own looks like. */
enum call_style {
	CALL_NONE, /* there is none: the first waiting job leads */
	CALL_ZERO, /* max_tokens 0: prefill, no output */
	CALL_ONE,  /* max_tokens 1 */
};

struct dialect_traits {
	enum dialect dialect;
	enum marker_style markers;
	enum call_style call;
	enum ttl ttl;              /* of the markers we insert */
	bool stream;               /* may be asked to stream when the job did not */
	bool include_usage;        /* wants stream_options.include_usage */
	bool cache_key;            /* add prompt_cache_key where it is absent */
	bool cache_mode;           /* add prompt_cache_options.mode explicit on fan-out */
	bool placeholder;          /* a call that ends inside a user turn gets a "." */
	uint32_t markers_max;      /* in one request, the automatic one included */
	uint32_t tokens_min;       /* smaller prefixes are never cached; 0 = unknown */
	uint32_t token_millibytes; /* canonical bytes per token, in thousandths: 4000 */
};

/* Defaults of a dialect: for `anthropic` those of the vendor's own endpoint. */
const struct dialect_traits *dialect_traits(enum dialect dialect);

/* The traits of an upstream as configured: whether it may be asked to stream, and how
 * long its entries live. */
struct dialect_traits dialect_for_upstream(enum dialect dialect, bool stream,
                                           uint64_t ttl_ms);

/* What the configuration says of one model of an upstream. */
struct dialect_model {
	bool ours; /* requests may get markers and fields of ours; where they may not,
	            * nothing is known of the server behind the URL */
	bool cache_key;      /* openai-chat: takes prompt_cache_key */
	bool breakpoint;     /* openai-chat: takes a breakpoint */
	uint32_t tokens_min; /* 0 = the upstream's */
};

/* Narrows an upstream's traits to one model.  Scheduler and worker both ask here: a plan
 * and its rendering must agree. */
struct dialect_traits dialect_for_model(const struct dialect_traits *upstream,
                                        const struct dialect_model *model);

/* "anthropic", "openai-chat", "raw". */
const char *dialect_name(enum dialect dialect);
MUST_USE int dialect_parse(struct span name, enum dialect *ret_dialect);

/* One letter in stored parts: A, O, R; the way back answers DIALECT_COUNT if unknown. */
char dialect_letter(enum dialect dialect);
enum dialect dialect_from_letter(char letter);

/* The tier at which a top-level key enters the identity.  `tools`, `system` and
 * `messages` answer their own tier. */
enum tier dialect_key_tier(enum dialect dialect, struct span key);

/* The i-th key that a dialect's table lists, or NULL behind the last: for documents and
 * tests. */
const char *dialect_key(enum dialect dialect, unsigned i, enum tier *ret_tier);

/* Set for a key that makes the prefix live on the provider's side. */
enum dialect_held {
	DIALECT_HELD_NO,
	DIALECT_HELD_TOOLS, /* remote tool lists: the chain ends at S */
	DIALECT_HELD_ALL,   /* the conversation is not in the body: opaque */
};
enum dialect_held dialect_key_held(enum dialect dialect, struct span key);

const char *dialect_tier_name(enum tier tier); /* "tools", "system", "messages" */
char dialect_tier_letter(enum tier tier);      /* T, S, M */

const char *dialect_ttl_name(enum ttl ttl); /* "5m", "1h", …; "-" for TTL_NONE */
enum ttl dialect_ttl_parse(struct span name);
uint64_t dialect_ttl_ms(enum ttl ttl); /* 0 for TTL_NONE */

#endif
