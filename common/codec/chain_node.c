#include "common/codec/chain_node.h"

static struct id128
shorten(struct id128 id, unsigned bits)
{
	if (bits > 0 && bits < 64) {
		id.high = 0;
		id.low &= (UINT64_C(1) << bits) - 1;
	}
	return id;
}

/* Hashes all that makes a node but its parent. */
void
chain_node_hash(struct chain *chain, struct chain_node *node,
                const struct chain_input *input)
{
	struct id_hash hash;

	id_hash_init(&hash, chain->seed);
	id_hash_field(&hash, SPAN("warmq node 1"));
	id_hash_number(&hash, (uint64_t)node->tier);
	id_hash_number(&hash, (uint64_t)node->px.dialect);
	id_hash_field(&hash, node->tier == TIER_TOOLS ? input->upstream : SPAN(""));
	id_hash_field(&hash, node->tier == TIER_TOOLS ? input->betas : SPAN(""));
	id_hash_number(&hash, (uint64_t)node->px.ttl);
	id_hash_number(&hash, node->px.flags);
	id_hash_field(&hash, node->px.settings);
	id_hash_field(&hash, node->px.segment);
	node->content = id_hash_final(&hash);
}

void
chain_node_link(struct chain *chain, unsigned from)
{
	for (unsigned i = from; i < chain->count; i++) {
		struct chain_node *node = &chain->node[i];
		struct id128 parent = i > 0 ? chain->node[i - 1].id : ID_NONE;
		struct id_hash hash;

		id_hash_init(&hash, chain->seed);
		id_hash_number(&hash, parent.high);
		id_hash_number(&hash, parent.low);
		id_hash_number(&hash, node->content.high);
		id_hash_number(&hash, node->content.low);
		id_hash_number(&hash, node->salt);
		node->id = shorten(id_hash_final(&hash), chain->id_bits);
	}
}

static enum ttl
shorter(enum ttl a, enum ttl b)
{
	return a == TTL_NONE || (b != TTL_NONE && b < a) ? b : a;
}

struct surroundings {
	enum ttl earlier; /* shortest before */
	enum ttl later;   /* longest behind */
	enum ttl next;    /* the first behind */
};

static struct surroundings
look_around(const struct chain_shape *shape, enum tier tier, uint32_t boundary)
{
	struct surroundings around = { 0 };

	for (uint32_t i = 0; i < shape->marker_count; i++) {
		const struct chain_shape_marker *marker = &shape->marker[i];

		if (marker->block == boundary)
			continue;
		if (chain_shape_before(marker, tier, boundary)) {
			around.earlier = shorter(around.earlier, marker->ttl);
			continue;
		}
		around.later = MAX(around.later, marker->ttl);
		if (around.next == TTL_NONE)
			around.next = marker->ttl;
	}
	around.later = MAX(around.later, shape->automatic);
	if (around.next == TTL_NONE)
		around.next = shape->automatic;
	return around;
}

static bool
order_holds(const struct surroundings *around, enum ttl ttl)
{
	return (around->earlier == TTL_NONE || ttl <= around->earlier) &&
	       (around->later == TTL_NONE || ttl >= around->later);
}

/* The class of a node: its user's marker, else ours, else that of the next marker. */
static enum ttl
node_ttl(const struct chain_shape *shape, const struct dialect_traits *traits,
         const struct chain_piece *piece, const struct surroundings *around)
{
	const struct chain_shape_marker *own =
		chain_shape_marker_on(shape, piece->boundary);

	if (own && own->ttl != TTL_NONE)
		return own->ttl;
	if (!order_holds(around, traits->ttl) && around->next != TTL_NONE &&
	    order_holds(around, around->next))
		return around->next;
	return traits->ttl;
}

uint32_t
chain_node_tokens(size_t bytes, const struct dialect_traits *traits)
{
	uint64_t millibytes = traits->token_millibytes ? traits->token_millibytes : 4000;

	return (uint32_t)MIN((uint64_t)bytes * 1000 / millibytes, (uint64_t)UINT32_MAX);
}

static bool
ends_in_tool_use(const struct chain_shape *shape, const struct chain_cut *cut)
{
	const struct tape *tape = shape->tape;
	uint32_t content = tape_find(tape, cut->message, "content");
	uint32_t last = cut->block;

	if (tape_is(tape, tape_find(tape, cut->message, "tool_calls"), TAPE_ARRAY))
		return true;
	if (last == TAPE_NONE && tape_is(tape, content, TAPE_ARRAY))
		for (uint32_t block = tape_first(tape, content);
		     block < tape_end(tape, content); block = tape_next(tape, block))
			last = block;
	if (last == TAPE_NONE)
		return false;
	return tape_string_is(tape, tape_find(tape, last, "type"), "tool_use") ||
	       tape_string_is(tape, tape_find(tape, last, "type"), "server_tool_use");
}

static uint32_t
node_flags(const struct chain_shape *shape, const struct chain_cut *cut, enum tier tier,
           const struct chain_piece *piece)
{
	uint32_t all = shape->flags, mask = 0;

	switch (tier) {
	case TIER_TOOLS:
		mask = PART_FORMAT | PART_CONTEXT | PART_SERVER_TOOL | PART_HELD |
		       PART_THINKING;
		break;
	case TIER_SYSTEM:
		mask = PART_CITATIONS;
		break;
	case TIER_MESSAGES:
		/* Citations count at S; without one, here. */
		mask = PART_FORCED | PART_IMAGE |
		       (chain_shape_has_system(shape) ? 0u : (uint32_t)PART_CITATIONS);
		if (ends_in_tool_use(shape, cut))
			return (all & mask) | PART_TOOL_USE |
			       (piece->fixed ? PART_FIXED : 0u);
		break;
	case TIER_COUNT:
		break;
	}
	return (all & mask) | (piece->fixed ? (uint32_t)PART_FIXED : 0u);
}

void
chain_node_add(struct chain_node_build *build, enum tier tier)
{
	struct chain *chain = build->chain;
	unsigned i = chain->count++;
	struct chain_piece *piece = &build->piece[i];
	struct chain_node *node = &chain->node[i];
	struct surroundings around;

	*node = (struct chain_node){ .tier = tier };
	if (tier == TIER_TOOLS)
		chain_write_tools(&build->writer, piece);
	else if (tier == TIER_SYSTEM)
		chain_write_system(&build->writer, piece);
	else
		chain_write_messages(&build->writer, piece);

	build->settings_from[i] = chain->settings.len;
	chain_write_settings(&build->shape, tier, &chain->settings);
	build->settings_from[i + 1] = chain->settings.len;

	around = look_around(&build->shape, tier, piece->boundary);
	build->own.earlier[tier] = around.earlier;
	build->own.later[tier] = around.later;
	build->own.user[tier] = piece->user;
	node->declared = build->declared != TIER_COUNT && tier <= build->declared;
	node->user_marked = piece->user != PART_MARK_NONE || piece->fixed;
	node->px = (struct part_px){
		.dialect = build->shape.dialect,
		.tier = tier,
		.end = piece->end,
		.role = piece->role,
		.wrap_at = piece->wrap_at,
		.mark_at = piece->mark_at,
		.ttl = node_ttl(&build->shape, build->input->traits, piece, &around),
		.tokens = chain_node_tokens(piece->len, build->input->traits),
		.flags = node_flags(&build->shape, &build->cut, tier, piece),
	};
	node->tokens = node->px.tokens + (i > 0 ? chain->node[i - 1].tokens : 0);
}

void
chain_node_settle(struct chain_node_build *build)
{
	struct chain *chain = build->chain;

	for (unsigned i = 0; i < chain->count; i++) {
		struct part_px *px = &chain->node[i].px;
		size_t from = build->settings_from[i];

		px->segment = (struct span){ chain->pieces.data + build->piece[i].from,
			                     build->piece[i].len };
		px->settings = (struct span){ chain->settings.data + from,
			                      build->settings_from[i + 1] - from };
		chain_node_hash(chain, &chain->node[i], build->input);
	}
	chain_node_link(chain, 0);
}

int
chain_node_values(struct chain *chain, const struct part_own *own)
{
	size_t from[PART_NODES_MAX + 1] = { 0 };
	size_t own_from;

	for (unsigned i = 0; i < chain->count && chain->split; i++) {
		from[i] = chain->values.len;
		part_px_write(&chain->values, &chain->node[i].px);
	}
	own_from = chain->values.len;
	if (own)
		part_own_write(&chain->values, own);
	if (buffer_error(&chain->values) < 0)
		return buffer_error(&chain->values);
	for (unsigned i = 0; i < chain->count && chain->split; i++) {
		size_t to = i + 1 < chain->count ? from[i + 1] : own_from;

		chain->node[i].value =
			(struct span){ chain->values.data + from[i], to - from[i] };
	}
	if (own)
		chain->own = (struct span){ chain->values.data + own_from,
			                    chain->values.len - own_from };
	return 0;
}
