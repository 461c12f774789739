#include "common/codec/chain.h"

#include "common/codec/chain_node.h"
#include "common/codec/chain_prefix.h"
#include "common/codec/chain_shape.h"
#include "common/codec/chain_write.h"
#include "common/text.h"

#include <stdio.h>

#define QUOTE_MAX  60
#define SIZE_LIMIT ((size_t)256 << 20) /* of anything built here; bodies are <= 8 MiB */

void
chain_init(struct chain *chain)
{
	*chain = (struct chain){ .max_tokens = -1 };
	buffer_init(&chain->canonical, SIZE_LIMIT);
	buffer_init(&chain->pieces, SIZE_LIMIT);
	buffer_init(&chain->settings, SIZE_LIMIT);
	buffer_init(&chain->values, SIZE_LIMIT);
	buffer_init(&chain->prefix_raw, SIZE_LIMIT);
	buffer_init(&chain->prefix_canonical, SIZE_LIMIT);
	tape_init(&chain->tape);
	tape_init(&chain->prefix);
}

void
chain_fini(struct chain *chain)
{
	if (!chain)
		return;
	buffer_fini(&chain->canonical);
	buffer_fini(&chain->pieces);
	buffer_fini(&chain->settings);
	buffer_fini(&chain->values);
	buffer_fini(&chain->prefix_raw);
	buffer_fini(&chain->prefix_canonical);
	tape_fini(&chain->tape);
	tape_fini(&chain->prefix);
}

static void
reset(struct chain *chain)
{
	chain->opaque = CHAIN_SPLITTABLE;
	chain->why[0] = '\0';
	chain->note[0] = '\0';
	chain->count = 0;
	chain->split = false;
	chain->own = (struct span){ 0 };
	chain->model = (struct span){ 0 };
	chain->max_tokens = -1;
	chain->own_tokens = 0;
	chain->wants_stream = false;
	buffer_clear(&chain->canonical);
	buffer_clear(&chain->pieces);
	buffer_clear(&chain->settings);
	buffer_clear(&chain->values);
}

static enum tier
declared_tier(const struct chain_node_build *build, struct chain_shared shared,
              const struct chain_prefix *prefix)
{
	switch (shared.kind) {
	case CHAIN_SHARED_TOOLS:
		return TIER_TOOLS;
	case CHAIN_SHARED_SYSTEM:
		return TIER_SYSTEM;
	case CHAIN_SHARED_MESSAGES:
		return build->cut.exists ? TIER_MESSAGES : TIER_SYSTEM;
	case CHAIN_SHARED_MARKER:
		return build->cut.exists ? TIER_MESSAGES
		                         : build->shape.marker[shared.n - 1].tier;
	case CHAIN_SHARED_AUTO:
	case CHAIN_SHARED_BYTES:
		break;
	}
	if (!prefix)
		return TIER_COUNT;
	if (prefix->deepest == TIER_MESSAGES && !build->cut.exists)
		return TIER_SYSTEM; /* all its messages are system messages */
	return prefix->deepest;
}

static void
read_facts(struct chain_node_build *build)
{
	struct chain *chain = build->chain;
	const struct chain_shape *shape = &build->shape;

	chain->max_tokens = shape->max_tokens;
	chain->wants_stream = shape->wants_stream;
	if (tape_is(shape->tape, shape->model, TAPE_STRING))
		chain->model = tape_inside(shape->tape, shape->model);
	build->own.dialect = shape->dialect;
	build->own.turns = shape->turns;
	build->own.explicit_count = shape->explicit_count;
	build->own.automatic = shape->automatic;
}

/* Splits a body that can be split.  The canonical text and its tape are in place. */
static int
split_body(struct chain_node_build *build, struct chain_shared shared,
           const struct chain_prefix *prefix)
{
	struct chain *chain = build->chain;
	const struct chain_input *input = build->input;
	bool has_system = chain_shape_has_system(&build->shape) &&
	                  shared.kind != CHAIN_SHARED_TOOLS;
	size_t shared_len, own_len;

	build->cut = chain_shape_cut(&build->shape, input->traits, shared,
	                             prefix ? prefix->messages : 0);
	build->declared = declared_tier(build, shared, prefix);
	chain_write_init(&build->writer, &build->shape, &build->cut, &chain->pieces);
	chain_node_add(build, TIER_TOOLS);
	if (has_system)
		chain_node_add(build, TIER_SYSTEM);
	if (build->cut.exists)
		chain_node_add(build, TIER_MESSAGES);
	shared_len = chain->pieces.len;
	own_len = chain_write_own(&build->writer, has_system);
	chain_write_tail(&build->writer);
	if (buffer_error(&chain->pieces) < 0)
		return buffer_error(&chain->pieces);
	if (buffer_error(&chain->settings) < 0)
		return buffer_error(&chain->settings);

	chain_node_settle(build);
	chain->split = shared_len >= CHAIN_SPLIT_MIN;
	chain->own_tokens =
		chain_node_tokens(chain->pieces.len - shared_len, input->traits);
	if (chain->split) {
		build->own.own =
			(struct span){ chain->pieces.data + shared_len, own_len };
		build->own.tail =
			(struct span){ chain->pieces.data + shared_len + own_len,
			               chain->pieces.len - shared_len - own_len };
		return chain_node_values(chain, &build->own);
	}
	if (!prefix)
		return 0;
	build->own = (struct part_own){ .dialect = build->shape.dialect,
		                        .turns = build->shape.turns,
		                        .tail = buffer_span(&chain->canonical) };
	return chain_node_values(chain, &build->own);
}

/* ---- opaque bodies ---- */

/* So much of some bytes as a sentence may quote, cut between characters. */
static int
quotable(struct span text)
{
	size_t len = MIN(text.len, QUOTE_MAX);

	while (len > 0 && len < text.len &&
	       ((unsigned char)text.data[len] & 0xc0) == 0x80)
		len--;
	return (int)len;
}

static const char *
opaque_text(enum chain_opaque opaque)
{
	switch (opaque) {
#define X(name, text) \
	case name:    \
		return text;
		CHAIN_OPAQUE_LIST(X)
#undef X
	case CHAIN_OPAQUE_COUNT:
		break;
	}
	return "unknown";
}

static int
make_opaque(struct chain *chain, const struct chain_input *input, enum chain_opaque why,
            struct span where, struct span bytes)
{
	chain->opaque = why;
	(void)snprintf(chain->why, sizeof chain->why, "%s%s%.*s", opaque_text(why),
	               where.len ? ": " : "", quotable(where),
	               where.len ? where.data : "");
	chain->own_tokens = chain_node_tokens(bytes.len, input->traits);
	if (input->prefix.len == 0)
		return 0;
	return chain_node_values(chain,
	                         &(struct part_own){ .dialect = input->traits->dialect,
	                                             .opaque = true,
	                                             .tail = bytes });
}

static struct span
shape_fault(const struct chain_shape *shape)
{
	if (shape->opaque_at == TAPE_NONE || shape->opaque_at == 0)
		return (struct span){ 0 };
	return tape_raw(shape->tape, shape->opaque_at);
}

/* ---- reading ---- */

static int
not_json(struct chain_error *error, const char *what, const struct tape_error *where)
{
	(void)snprintf(error->text, sizeof error->text,
	               "the %s is not JSON: %s at byte %zu", what, where->what,
	               where->offset);
	return ERR_MALFORMED;
}

/* Parses, then parses the canonical form: from there on bytes are compared and copied. */
static int
read_canonical(struct tape *tape, struct span text, struct buffer *canonical,
               struct tape_error *where)
{
	int err = tape_parse(tape, text, where);

	if (err < 0)
		return err;
	tape_canonical(text, canonical);
	err = buffer_error(canonical);
	return err < 0 ? err : tape_parse(tape, buffer_span(canonical), where);
}

/* The tape of the named prefix; the same one as for the last job is kept. */
static int
read_prefix(struct chain *chain, struct span text, struct chain_error *reterr)
{
	struct tape_error where;
	int err;

	if (chain->prefix_raw.len > 0 &&
	    span_equals(buffer_span(&chain->prefix_raw), text))
		return 0;
	buffer_clear(&chain->prefix_raw);
	buffer_clear(&chain->prefix_canonical);
	err = read_canonical(&chain->prefix, text, &chain->prefix_canonical, &where);
	if (err == 0)
		return buffer_append(&chain->prefix_raw, text);
	if (err == ERR_MEMORY)
		return err;
	reterr->prefix_fault = true;
	return not_json(reterr, "prefix", &where);
}

/* Joins the prefix and the body, whose tape is read; leaves the tape of both. */
static int
join_prefix(struct chain *chain, const struct chain_input *input,
            struct chain_prefix *ret_prefix, struct chain_error *reterr)
{
	struct buffer body = chain->canonical; /* its bytes are what the tape points to */
	struct tape_error where;
	int err;

	err = read_prefix(chain, input->prefix, reterr);
	if (err == 0)
		err = chain_prefix_read(input->traits->dialect, &chain->prefix,
		                        ret_prefix, reterr);
	if (err < 0)
		return err;
	buffer_init(&chain->canonical, SIZE_LIMIT);
	err = chain_prefix_merge(&chain->prefix, &chain->tape, &chain->canonical, reterr);
	if (err == 0)
		err = tape_parse(&chain->tape, buffer_span(&chain->canonical), &where);
	if (err == ERR_LIMIT)
		err = not_json(reterr, "prefix with the body", &where);
	buffer_fini(&body);
	return err;
}

static int
build_json(struct chain_node_build *build, struct chain_error *reterr)
{
	struct chain *chain = build->chain;
	const struct chain_input *input = build->input;
	struct chain_shared shared = input->shared;
	struct chain_prefix prefix = { 0 };
	uint32_t leading_max = UINT32_MAX;
	struct tape_error where;
	const char *note = NULL;
	int err;

	err = read_canonical(&chain->tape, input->body, &chain->canonical, &where);
	if (err == ERR_MALFORMED || (err == ERR_LIMIT && input->prefix.len > 0))
		return not_json(reterr, "body", &where);
	if (err == ERR_LIMIT)
		return make_opaque(chain, input,
		                   chain->tape.depth >= TAPE_DEPTH_MAX ? CHAIN_TOO_DEEP
		                                                       : CHAIN_TOO_LARGE,
		                   (struct span){ 0 }, input->body);
	if (err == 0 && input->prefix.len > 0)
		err = join_prefix(chain, input, &prefix, reterr);
	if (err < 0)
		return err;

	if (shared.kind == CHAIN_SHARED_MESSAGES)
		leading_max = shared.n;
	else if (input->prefix.len > 0 && prefix.messages > 0)
		leading_max = prefix.messages;
	chain_shape_read(&build->shape, input->traits->dialect, &chain->tape,
	                 leading_max);
	read_facts(build);
	if (build->shape.opaque != CHAIN_SPLITTABLE)
		return make_opaque(chain, input, build->shape.opaque,
		                   shape_fault(&build->shape),
		                   buffer_span(&chain->canonical));

	shared = chain_shape_shared(&build->shape, shared, &note);
	if (note)
		(void)snprintf(chain->note, sizeof chain->note, "%s", note);
	return split_body(build, shared, input->prefix.len > 0 ? &prefix : NULL);
}

/* ---- raw ---- */

static void
add_raw_node(struct chain *chain, const struct chain_input *input, size_t len)
{
	struct chain_node *node = &chain->node[chain->count++];

	*node = (struct chain_node){ .tier = TIER_TOOLS, .declared = true };
	node->px = (struct part_px){
		.dialect = DIALECT_RAW,
		.tier = TIER_TOOLS,
		.end = PART_BYTES,
		.wrap_at = PART_NOWHERE,
		.mark_at = PART_NOWHERE,
		.ttl = input->traits->ttl,
		.tokens = chain_node_tokens(len, input->traits),
		.settings = SPAN("{}"),
		.segment = { chain->pieces.data, len },
	};
	node->tokens = node->px.tokens;
	chain_node_hash(chain, node, input);
	chain_node_link(chain, 0);
}

/* Raw bytes: the prefix's come first; the shared part is what was declared. */
static int
build_raw(struct chain *chain, const struct chain_input *input)
{
	struct part_own own = { .dialect = DIALECT_RAW, .opaque = true };
	size_t shared = input->prefix.len;
	struct span all;

	(void)buffer_append(&chain->pieces, input->prefix);
	(void)buffer_append(&chain->pieces, input->body);
	if (buffer_error(&chain->pieces) < 0)
		return buffer_error(&chain->pieces);
	all = buffer_span(&chain->pieces);
	if (input->shared.kind == CHAIN_SHARED_BYTES && input->shared.n <= all.len)
		shared = input->shared.n;
	else if (input->shared.kind != CHAIN_SHARED_AUTO)
		(void)snprintf(chain->note, sizeof chain->note,
		               "`shared` names nothing in these bytes; ignored");
	if (shared == 0)
		return make_opaque(chain, input, CHAIN_RAW, (struct span){ 0 }, all);

	add_raw_node(chain, input, shared);
	chain->own_tokens = chain_node_tokens(all.len - shared, input->traits);
	chain->split = shared >= CHAIN_SPLIT_MIN;
	own.tail = all;
	if (chain->split)
		own.tail = (struct span){ all.data + shared, all.len - shared };
	return chain->split || input->prefix.len > 0 ? chain_node_values(chain, &own) : 0;
}

int
chain_shared_parse(struct span text, struct chain_shared *ret_shared)
{
	static const struct {
		const char *word;
		enum chain_shared_kind kind;
		uint64_t max; /* 0: no number */
	} words[] = {
		{ "tools", CHAIN_SHARED_TOOLS, 0 },
		{ "system", CHAIN_SHARED_SYSTEM, 0 },
		{ "messages:", CHAIN_SHARED_MESSAGES, CHAIN_SHARED_COUNT_MAX },
		{ "marker:", CHAIN_SHARED_MARKER, CHAIN_SHARED_COUNT_MAX },
		{ "bytes:", CHAIN_SHARED_BYTES, UINT32_MAX },
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		size_t len = strlen(words[i].word);
		struct span rest = { text.data + len, text.len - len };
		uint64_t n = 0;

		if (text.len < len || memcmp(text.data, words[i].word, len) != 0)
			continue;
		if (words[i].max > 0
		            ? text_parse_unsigned(rest, words[i].max, &n) < 0 || n == 0
		            : rest.len > 0)
			return ERR_MALFORMED;
		*ret_shared = (struct chain_shared){ words[i].kind, (uint32_t)n };
		return 0;
	}
	return ERR_MALFORMED;
}

int
chain_build(struct chain *chain, const struct chain_input *input,
            struct chain_error *reterr)
{
	struct chain_node_build build = { .chain = chain,
		                          .input = input,
		                          .declared = TIER_COUNT };
	int err;

	reset(chain);
	*reterr = (struct chain_error){ 0 };
	chain->seed = input->seed;
	chain->id_bits = input->id_bits;
	err = input->traits->dialect == DIALECT_RAW ? build_raw(chain, input)
	                                            : build_json(&build, reterr);
	if (err < 0)
		reset(chain);
	return err;
}

int
chain_whole(struct chain *chain, enum dialect dialect, struct span body,
            struct buffer *out)
{
	struct part_own own = { .dialect = dialect, .opaque = true, .tail = body };
	struct chain_shape shape;
	struct tape_error where;
	int err;

	reset(chain);
	if (dialect != DIALECT_RAW) {
		err = read_canonical(&chain->tape, body, &chain->canonical, &where);
		if (err < 0 && err != ERR_LIMIT)
			return err;
		if (err == 0) {
			chain_shape_read(&shape, dialect, &chain->tape, UINT32_MAX);
			own.opaque = shape.opaque != CHAIN_SPLITTABLE;
			own.turns = shape.turns;
		}
		if (!own.opaque)
			own.tail = buffer_span(&chain->canonical);
	}
	part_own_write(out, &own);
	return buffer_error(out);
}

int
chain_prefix_check(enum dialect dialect, struct span content, struct id128 *ret_version,
                   struct chain_error *reterr)
{
	struct buffer canonical = BUFFER_INIT(SIZE_LIMIT);
	struct chain_prefix prefix;
	struct tape_error where;
	struct tape tape;
	int err = 0;

	*reterr = (struct chain_error){ 0 };
	tape_init(&tape);
	if (dialect == DIALECT_RAW) {
		*ret_version = id_of(content, 0);
	} else {
		err = read_canonical(&tape, content, &canonical, &where);
		if (err == ERR_MALFORMED || err == ERR_LIMIT)
			err = not_json(reterr, "prefix", &where);
		else if (err == 0)
			err = chain_prefix_read(dialect, &tape, &prefix, reterr);
		if (err == 0)
			*ret_version = id_of(buffer_span(&canonical), 0);
	}
	reterr->prefix_fault = err < 0;
	tape_fini(&tape);
	buffer_fini(&canonical);
	return err;
}

void
chain_place(struct chain *chain, struct span pool)
{
	struct id_hash hash;

	if (chain->count == 0)
		return;
	id_hash_init(&hash, chain->seed);
	id_hash_field(&hash, SPAN("warmq pool"));
	id_hash_number(&hash, chain->node[0].content.high);
	id_hash_number(&hash, chain->node[0].content.low);
	id_hash_field(&hash, pool);
	chain->node[0].content = id_hash_final(&hash);
	chain_node_link(chain, 0);
}

void
chain_salt(struct chain *chain, unsigned index, uint32_t salt)
{
	VERIFY(index < chain->count);
	chain->node[index].salt = salt;
	chain_node_link(chain, index);
}

uint64_t
chain_seed(struct span secret)
{
	return id_of(secret, 0).low;
}
