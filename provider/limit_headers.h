/* limit_headers.h - what an answer says about the limits that are left.
 *
 *   anthropic-ratelimit-input-tokens-remaining: 420000     rounded to thousands
 *   anthropic-ratelimit-input-tokens-reset: 2026-11-29T20:41:18Z
 *   x-ratelimit-remaining-tokens: 419950
 *   x-ratelimit-reset-tokens: 6m0s
 *
 * A bucket without a limit has no headers. */
#ifndef PROVIDER_LIMIT_HEADERS_H
#define PROVIDER_LIMIT_HEADERS_H

#include "common/buffer.h"
#include "provider/ask.h"
#include "provider/model/limit_model.h"

/* Appends header lines.  `wall_s`: now, in seconds since 1970.  `negative`: all figures
 * are -1, as some gateways send them when they do not know. */
void limit_headers_append(enum ask_dialect dialect,
                          const struct limit_level levels[LIMIT_BUCKET_COUNT],
                          uint64_t wall_s, bool negative, struct buffer *out);

/* Appends retry-after in whole seconds, rounded up; nothing for 0. */
void limit_headers_append_retry(uint64_t retry_us, struct buffer *out);

#endif
