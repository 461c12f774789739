/* prompt.h - a request as the model of the cache sees it: blocks, hashes, tokens.
 *
 *   scope ─► tools ─► settings ─► system ─► settings ─► messages
 *            block    (no block)  block     (no block)  block block block
 *
 * Each block's hash covers its parent's hash and its own content, so that it names
 * everything before it.  A setting changes the hashes after it and is no block.  Content
 * is what a provider would render: decoded text, roles, compact JSON without markers;
 * white space and escapes of the request do not matter.
 *
 * Tokens are estimated: a block has one for every 4 bytes of its content, rounded up.
 *
 * In steps (implicit caching) the same content is one stream of bytes, cut into blocks of
 * step_tokens x 4 bytes wherever a step is full; the last one may be shorter. */
#ifndef PROVIDER_PROMPT_H
#define PROVIDER_PROMPT_H

#include "common/base.h"
#include "common/error.h"
#include "common/id.h"
#include "provider/model/cache_request.h"

enum {
	PROMPT_BYTES_PER_TOKEN = 4,
	PROMPT_BLOCKS_MAX = 16384,
	PROMPT_STEPS_MAX =
		4096, /* then one long step: half a million tokens are enough */
};

struct prompt {
	struct cache_block *blocks; /* malloc()ed */
	uint32_t count;
	uint32_t room;
	uint32_t step_bytes; /* 0: blocks are the request's own */
	struct id128 chain;
	struct id_hash hash; /* of the block that is open */
	size_t open_bytes;
	int error; /* the first one sticks */
};

/* `step_tokens` 0: blocks.  Aligned as struct id_hash wants. */
void prompt_init(struct prompt *prompt, uint32_t step_tokens);
void prompt_fini(struct prompt *prompt);

/* Mixes a setting, name and value, into everything after it. */
void prompt_setting(struct prompt *prompt, const char *name, struct span value);

/* Content of the open block: `kind` separates text from other things that have the same
 * bytes, and costs no tokens. */
void prompt_content(struct prompt *prompt, char kind, struct span bytes);

/* Ends the open block and answers its index.  In steps it does nothing, answers 0. */
uint32_t prompt_close(struct prompt *prompt, enum cache_block_kind kind,
                      uint32_t extra_tokens);

/* Ends the last step; the prompt is complete.  0, ERR_MEMORY or ERR_LIMIT. */
MUST_USE int prompt_finish(struct prompt *prompt);

uint32_t prompt_tokens(const struct prompt *prompt);

#endif
