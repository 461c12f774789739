/* chain_prefix.h - a named prefix and a job's own part, put together as one body.
 *
 *   prefix {"system":…,"messages":[a,b]}  +  body {"messages":[c],"max_tokens":9}
 *                        =  {"system":…,"max_tokens":9,"messages":[a,b,c]}
 *
 * Messages are concatenated; adjacent user turns are not merged.  Every other key may
 * stand in one of the two only.  Both texts are canonical, and so is the result. */
#ifndef COMMON_CODEC_CHAIN_PREFIX_H
#define COMMON_CODEC_CHAIN_PREFIX_H

#include "common/codec/chain.h"
#include "common/codec/tape.h"

/* What a prefix reaches to. */
struct chain_prefix {
	uint32_t messages; /* how many */
	enum tier deepest;
};

/* Checks that a tape may be a prefix. */
MUST_USE int chain_prefix_read(enum dialect dialect, const struct tape *tape,
                               struct chain_prefix *ret_prefix,
                               struct chain_error *reterr);

/* Appends the merged body.  ERR_MALFORMED if they contradict each other. */
MUST_USE int chain_prefix_merge(const struct tape *prefix, const struct tape *body,
                                struct buffer *out, struct chain_error *reterr);

#endif
