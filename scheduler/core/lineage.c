#include "scheduler/core/lineage.h"

/* Whether a marker at this node's end can pay: somebody else reads it, and the provider
 * caches so much. */
static bool
pays(const struct lineage_node *node, uint32_t minimum_tokens)
{
	if (!(node->flags & LINEAGE_SHARED))
		return false;
	return node->tokens == 0 || node->tokens >= minimum_tokens;
}

/* The deepest node in [0, end) that pays and has `flag`; `end` if there is none. */
static uint32_t
deepest(const struct lineage *chain, uint32_t end, uint32_t minimum_tokens, uint32_t flag)
{
	for (uint32_t i = end; i-- > 0;)
		if ((chain->nodes[i].flags & flag) &&
		    pays(&chain->nodes[i], minimum_tokens))
			return i;
	return end;
}

static uint32_t
all_with(const struct lineage *chain, uint32_t minimum_tokens, uint32_t flag)
{
	uint32_t bits = 0;

	for (uint32_t i = 0; i < chain->count; i++)
		if ((chain->nodes[i].flags & flag) &&
		    pays(&chain->nodes[i], minimum_tokens))
			bits |= 1u << i;
	return bits;
}

uint32_t
lineage_gates(const struct lineage *chain, bool needs_marker, uint32_t minimum_tokens)
{
	uint32_t leaf = chain->count - 1, bits, ancestor;

	VERIFY(chain->count > 0);
	VERIFY(chain->count <= LINEAGE_MAX);
	if (!needs_marker)
		return all_with(chain, minimum_tokens, LINEAGE_SHARED);

	bits = all_with(chain, minimum_tokens, LINEAGE_MARKED);
	if ((chain->nodes[leaf].flags & LINEAGE_MARKABLE) &&
	    pays(&chain->nodes[leaf], minimum_tokens))
		bits |= 1u << leaf;
	/* One marker above the leaf is enough; a user's own counts. */
	if (bits & ((1u << leaf) - 1))
		return bits;
	ancestor = deepest(chain, leaf, minimum_tokens, LINEAGE_MARKABLE);
	if (ancestor < leaf)
		bits |= 1u << ancestor;
	return bits;
}

uint32_t
lineage_ungated(const struct lineage *chain, uint32_t gates)
{
	uint32_t all, covered = 0;

	VERIFY(chain->count > 0);
	VERIFY(chain->count <= LINEAGE_MAX);
	all = chain->nodes[chain->count - 1].tokens;
	for (uint32_t i = 0; i < chain->count; i++)
		if (gates & 1u << i)
			covered = chain->nodes[i].tokens;
	return all > covered ? all - covered : 0;
}
