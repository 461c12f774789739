/* chain_node.h - nodes of a chain from the pieces that were written: ids, lifetimes,
 * flags, stored values.
 *
 *   content = H(tier, dialect, [upstream, betas], ttl, flags, settings, segment)
 *   id      = H(parent id, content, salt)
 *
 * The work of one chain_build; nobody else includes this. */
#ifndef COMMON_CODEC_CHAIN_NODE_H
#define COMMON_CODEC_CHAIN_NODE_H

#include "common/codec/chain.h"
#include "common/codec/chain_shape.h"
#include "common/codec/chain_write.h"

struct chain_node_build {
	struct chain *chain;
	const struct chain_input *input;
	struct chain_shape shape;
	struct chain_cut cut;
	struct chain_writer writer;
	struct chain_piece piece[PART_NODES_MAX];
	size_t settings_from[PART_NODES_MAX + 1];
	struct part_own own;
	enum tier declared; /* TIER_COUNT: nothing is */
};

/* Writes the piece of a tier and appends its node. */
void chain_node_add(struct chain_node_build *build, enum tier tier);

/* Points the parts of all nodes into the buffers, once those have stopped moving, and
 * makes the ids. */
void chain_node_settle(struct chain_node_build *build);

/* Hashes one node without its parent; makes the ids from node `from` on. */
void chain_node_hash(struct chain *chain, struct chain_node *node,
                     const struct chain_input *input);
void chain_node_link(struct chain *chain, unsigned from);

/* Writes px values (of a split chain) and the own value, if there is one. */
MUST_USE int chain_node_values(struct chain *chain, const struct part_own *own);

/* Estimate for so many canonical bytes. */
uint32_t chain_node_tokens(size_t bytes, const struct dialect_traits *traits);

#endif
