/* anthropic.h - /v1/messages as its vendor reads it, with its refusals.
 *
 * Checked: the members and their types, unknown members, roles and empty texts, the four
 * markers, their TTL order and places (not on thinking, empty text, deferred tools),
 * automatic caching, thinking budgets, and what may not go with max_tokens 0.
 *
 * The prompt: scope = workspace, model, service tier, geography, betas; then tools;
 * then thinking and effort where the model has them, output format, speed, web search and
 * citations; the system; tool_choice, images and the thinking budget; messages. */
#ifndef PROVIDER_ANTHROPIC_H
#define PROVIDER_ANTHROPIC_H

#include "provider/ask.h"

/* Reads a request.  ERR_MALFORMED with a refusal; ERR_MEMORY.  On success the caller owes
 * ask_fini.  `counting`: for count_tokens, where max_tokens is not needed. */
MUST_USE int anthropic_read(const struct body *body, const struct ask_context *context,
                            bool counting, struct ask *ret_ask,
                            struct ask_refusal *ret_refusal);

#endif
