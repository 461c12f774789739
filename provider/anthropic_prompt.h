/* anthropic_prompt.h - the second half of reading /v1/messages: tools, system, messages
 * become blocks, and their markers are judged.
 *
 * Inside provider/ only; anthropic.h is the door. */
#ifndef PROVIDER_ANTHROPIC_PROMPT_H
#define PROVIDER_ANTHROPIC_PROMPT_H

#include "provider/ask.h"

#define ANTHROPIC_INVALID "invalid_request_error"

/* For `return ANTHROPIC_REFUSE(reading, "tools: %s", ...)`. */
#define ANTHROPIC_REFUSE(reading, ...) \
	ask_refuse((reading)->refusal, 400, ANTHROPIC_INVALID, __VA_ARGS__)

/* A reading in progress; everything is borrowed but the scratch text. */
struct anthropic_reading {
	const struct body *body;
	const struct ask_context *context;
	const json_t *root;
	struct ask *ask;
	struct ask_refusal *refusal;
	struct buffer text;
	uint32_t markers;
	uint32_t markable; /* 1 + last block that may carry a marker; 0: none */
	uint8_t markable_marker;
	size_t strip_before;  /* thinking blocks of earlier messages are dropped */
	struct span question; /* last text of the last user message so far */
};

/* Fills the ask's prompt and digest.  The rest of the ask has been read. */
MUST_USE int anthropic_prompt_read(struct anthropic_reading *reading);

#endif
