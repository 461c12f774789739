/* openai.h - /v1/chat/completions as its vendor reads it, with its refusals.
 *
 * The prompt: scope = project, model, service tier, caching mode, prompt_cache_key; then
 * tools, parallel_tool_calls, response_format, effort and verbosity; then messages.
 *
 *   implicit     (models to GPT-5.5) one stream of bytes in steps of 128 tokens; cache
 *                options and breakpoints are a 400.
 *   breakpoints  (from GPT-5.6) a block per content part.  Entries are written at
 *                explicit breakpoints and, unless the mode is "explicit", at the end of
 *                the latest eligible message; lookups also visit the ends of up to 20
 *                earlier eligible messages and of the first developer messages.  Mode
 *                "explicit" without a breakpoint switches caching off.  Eligible: user
 *                messages, the last of a run of tool messages, the last of the leading
 *                developer messages. */
#ifndef PROVIDER_OPENAI_H
#define PROVIDER_OPENAI_H

#include "provider/ask.h"

/* ERR_MALFORMED with a refusal; ERR_MEMORY.  On success the caller owes ask_fini. */
MUST_USE int openai_read(const struct body *body, const struct ask_context *context,
                         struct ask *ret_ask, struct ask_refusal *ret_refusal);

#endif
