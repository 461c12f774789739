/* cache_rig.h - a prompt cache on the bench: requests drafted block by block.
 *
 *   struct cache_model *model = rig_model();
 *   struct draft draft = draft_of(1, 2000, CACHE_MARKER_5M);
 *
 *   draft_add(&draft, 2, 50, CACHE_MARKER_NONE);
 *   ck_assert_uint_eq(rig_run(model, now_us, &draft).written_tokens, 2000);
 *   ck_assert_uint_eq(rig_would_read(model, now_us, &draft), 2000);
 *   free(model);
 *
 * A block is the same for the cache if its hash is, whoever asks.  A draft may be copied
 * and changed at will: what runs it points its request to its blocks. */
#ifndef TESTS_LIB_CACHE_RIG_H
#define TESTS_LIB_CACHE_RIG_H

#include "provider/model/cache_model.h"

#define SECOND_US 1000000ull
#define BLOCKS    64
#define PREFIX    30000 /* tokens that all jobs share */
#define SCOPE     7

struct draft {
	struct cache_block blocks[BLOCKS];
	struct cache_request request;
};

/* An empty request in markers mode, of SCOPE, with a minimum of 1,024 tokens. */
void draft_init(struct draft *draft);

/* One more block of plain text; of another kind, unmarked. */
void draft_add(struct draft *draft, uint64_t hash, uint32_t tokens,
               enum cache_marker marker);
void draft_add_kind(struct draft *draft, uint64_t hash, uint32_t tokens,
                    enum cache_block_kind kind);

/* A request of one plain block. */
struct draft draft_of(uint64_t hash, uint32_t tokens, enum cache_marker marker);

/* The usual job: a marked prefix of PREFIX tokens, then a tail of 50 of its own. */
struct draft draft_job(uint64_t tail);

/* A model, for free(): with room for all, one shard and no weather; of a configuration,
 * for which rig_config is what to begin with. */
struct cache_model *rig_model(void);
struct cache_model *rig_model_of(const struct cache_model_config *config);
struct cache_model_config rig_config(void);

/* Looks and starts what must be well formed; its tokens must add up. */
struct cache_ticket rig_start(struct cache_model *model, uint64_t now_us,
                              struct draft *draft, struct cache_usage *ret_usage);

/* A whole request, or a whole usual job, in one instant. */
struct cache_usage rig_run(struct cache_model *model, uint64_t now_us,
                           struct draft *draft);
struct cache_usage rig_run_job(struct cache_model *model, uint64_t now_us, uint64_t tail);

/* How many tokens a request would read that is not made. */
uint32_t rig_would_read(struct cache_model *model, uint64_t now_us, struct draft *draft);

#endif
