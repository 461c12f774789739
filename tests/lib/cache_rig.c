#include "tests/lib/cache_rig.h"

#include <check.h>
#include <stdlib.h>

/* --- a request by hand ------------------------------------------------------------- */

void
draft_init(struct draft *draft)
{
	*draft = (struct draft){ .request = { .scope = SCOPE,
		                              .mode = CACHE_MODE_MARKERS,
		                              .minimum_tokens = 1024 } };
}

static void
add_block(struct draft *draft, const struct cache_block *block)
{
	uint32_t i = draft->request.blocks_count++;

	ck_assert_uint_lt(i, BLOCKS);
	draft->blocks[i] = *block;
	draft->request.blocks = draft->blocks;
}

void
draft_add(struct draft *draft, uint64_t hash, uint32_t tokens, enum cache_marker marker)
{
	add_block(draft, &(struct cache_block){ .hash = { 1, hash },
	                                        .tokens = tokens,
	                                        .kind = CACHE_BLOCK_PLAIN,
	                                        .marker = (uint8_t)marker });
}

void
draft_add_kind(struct draft *draft, uint64_t hash, uint32_t tokens,
               enum cache_block_kind kind)
{
	add_block(draft, &(struct cache_block){ .hash = { 1, hash },
	                                        .tokens = tokens,
	                                        .kind = (uint8_t)kind,
	                                        .marker = CACHE_MARKER_NONE });
}

struct draft
draft_of(uint64_t hash, uint32_t tokens, enum cache_marker marker)
{
	struct draft draft;

	draft_init(&draft);
	draft_add(&draft, hash, tokens, marker);
	draft.request.blocks = NULL; /* the copy has blocks elsewhere */
	return draft;
}

struct draft
draft_job(uint64_t tail)
{
	struct draft draft = draft_of(100, PREFIX, CACHE_MARKER_5M);

	draft_add(&draft, 1000 + tail, 50, CACHE_MARKER_NONE);
	draft.request.blocks = NULL;
	return draft;
}

/* --- a model to try it on ---------------------------------------------------------- */

struct cache_model_config
rig_config(void)
{
	return (struct cache_model_config){
		.entries_max = 256,
		.requests_max = 64,
		.writes_max = 128,
		.seed = 1,
		.knobs = { .shards = 1 },
	};
}

struct cache_model *
rig_model_of(const struct cache_model_config *config)
{
	size_t size = cache_model_size(config);
	void *memory = malloc(size);

	ck_assert_ptr_nonnull(memory);
	return cache_model_init(memory, size, config);
}

struct cache_model *
rig_model(void)
{
	struct cache_model_config config = rig_config();

	return rig_model_of(&config);
}

struct cache_ticket
rig_start(struct cache_model *model, uint64_t now_us, struct draft *draft,
          struct cache_usage *ret_usage)
{
	struct cache_look look;
	struct cache_ticket ticket;

	draft->request.blocks = draft->blocks;
	ck_assert_int_eq(cache_request_judge(&draft->request), CACHE_VERDICT_OK);
	cache_model_look(model, now_us, &draft->request, &look);
	ck_assert_int_eq(
		cache_model_start(model, now_us, &draft->request, &look, &ticket), 0);
	*ret_usage = look.usage;
	ck_assert_uint_eq(look.usage.total_tokens, look.usage.read_tokens +
	                                                   look.usage.written_tokens +
	                                                   look.usage.uncached_tokens);
	return ticket;
}

struct cache_usage
rig_run(struct cache_model *model, uint64_t now_us, struct draft *draft)
{
	struct cache_usage usage;
	struct cache_ticket ticket = rig_start(model, now_us, draft, &usage);

	cache_model_respond(model, now_us, ticket);
	cache_model_finish(model, now_us, ticket);
	cache_model_audit(model);
	return usage;
}

struct cache_usage
rig_run_job(struct cache_model *model, uint64_t now_us, uint64_t tail)
{
	struct draft draft = draft_job(tail);

	return rig_run(model, now_us, &draft);
}

uint32_t
rig_would_read(struct cache_model *model, uint64_t now_us, struct draft *draft)
{
	struct cache_look look;

	draft->request.blocks = draft->blocks;
	cache_model_look(model, now_us, &draft->request, &look);
	return look.usage.read_tokens;
}
