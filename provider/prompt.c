#include "provider/prompt.h"

#include <stdlib.h>

static void
open_block(struct prompt *prompt)
{
	id_hash_init(&prompt->hash, 0);
	id_hash_number(&prompt->hash, prompt->chain.high);
	id_hash_number(&prompt->hash, prompt->chain.low);
	prompt->open_bytes = 0;
}

static uint32_t
tokens_of(size_t bytes)
{
	return (uint32_t)((bytes + PROMPT_BYTES_PER_TOKEN - 1) / PROMPT_BYTES_PER_TOKEN);
}

static int
make_room(struct prompt *prompt)
{
	uint32_t room = MAX(16, prompt->room * 2);
	struct cache_block *blocks;

	if (prompt->count < prompt->room)
		return 0;
	if (prompt->count >= PROMPT_BLOCKS_MAX)
		return ERR_LIMIT;
	blocks = realloc(prompt->blocks, room * sizeof *blocks);
	if (!blocks)
		return ERR_MEMORY;
	prompt->blocks = blocks;
	prompt->room = room;
	return 0;
}

static void
add_block(struct prompt *prompt, enum cache_block_kind kind, uint32_t tokens)
{
	if (prompt->error == 0)
		prompt->error = make_room(prompt);
	if (prompt->error < 0)
		return;
	prompt->chain = id_hash_final(&prompt->hash);
	prompt->blocks[prompt->count++] = (struct cache_block){ .hash = prompt->chain,
		                                                .tokens = tokens,
		                                                .kind = (uint8_t)kind };
	open_block(prompt);
}

/* Feeds the stream of steps, ending one wherever it is full. */
static void
feed_steps(struct prompt *prompt, struct span bytes)
{
	while (bytes.len > 0 && prompt->error == 0) {
		size_t room = prompt->count < PROMPT_STEPS_MAX
		                      ? prompt->step_bytes - prompt->open_bytes
		                      : bytes.len;
		struct span part = { bytes.data, MIN(bytes.len, room) };

		id_hash_update(&prompt->hash, part);
		prompt->open_bytes += part.len;
		bytes.data += part.len;
		bytes.len -= part.len;
		if (part.len == room && prompt->count < PROMPT_STEPS_MAX)
			add_block(prompt, CACHE_BLOCK_PLAIN,
			          prompt->step_bytes / PROMPT_BYTES_PER_TOKEN);
	}
}

void
prompt_init(struct prompt *prompt, uint32_t step_tokens)
{
	*prompt = (struct prompt){ .step_bytes = step_tokens * PROMPT_BYTES_PER_TOKEN };
	open_block(prompt);
}

void
prompt_fini(struct prompt *prompt)
{
	if (!prompt)
		return;
	free(prompt->blocks);
	*prompt = (struct prompt){ 0 };
}

void
prompt_setting(struct prompt *prompt, const char *name, struct span value)
{
	id_hash_field(&prompt->hash, span_from(name));
	id_hash_field(&prompt->hash, value);
}

void
prompt_content(struct prompt *prompt, char kind, struct span bytes)
{
	if (prompt->step_bytes > 0) {
		id_hash_update(&prompt->hash, (struct span){ &kind, 1 });
		feed_steps(prompt, bytes);
		return;
	}
	id_hash_update(&prompt->hash, (struct span){ &kind, 1 });
	id_hash_field(&prompt->hash, bytes);
	prompt->open_bytes += bytes.len;
}

uint32_t
prompt_close(struct prompt *prompt, enum cache_block_kind kind, uint32_t extra_tokens)
{
	if (prompt->step_bytes > 0)
		return 0;
	add_block(prompt, kind, tokens_of(prompt->open_bytes) + extra_tokens);
	return prompt->count > 0 ? prompt->count - 1 : 0;
}

int
prompt_finish(struct prompt *prompt)
{
	if (prompt->step_bytes > 0 && prompt->open_bytes > 0)
		add_block(prompt, CACHE_BLOCK_PLAIN, tokens_of(prompt->open_bytes));
	return prompt->error;
}

uint32_t
prompt_tokens(const struct prompt *prompt)
{
	uint32_t tokens = 0;

	for (uint32_t i = 0; i < prompt->count; i++)
		tokens += prompt->blocks[i].tokens;
	return tokens;
}
