/* usage.h - what a request cost in tokens, in one shape for all providers.
 *
 *   input ─┬─ read       served from the cache
 *          ├─ written    put into it (and billed as such)
 *          └─ uncached   neither
 *   output
 *
 * Each is a number, zero, or USAGE_UNKNOWN, and unknown is not zero.  Streams report
 * usage in pieces: for every field the last value that is not null wins; nothing is
 * ever added up (per-iteration copies are ignored).
 *
 * Exclusive providers (anthropic) count input without the cached tokens, inclusive ones
 * (openai and most others) with them; usage_finish makes them equal. */
#ifndef COMMON_CODEC_USAGE_H
#define COMMON_CODEC_USAGE_H

#include "common/base.h"
#include "common/buffer.h"
#include "common/codec/dialect.h"
#include "common/codec/tape.h"

#define USAGE_UNKNOWN (-1)

struct usage {
	int64_t read;
	int64_t written;
	int64_t written_5m; /* parts of `written`, where told apart */
	int64_t written_1h;
	int64_t uncached;
	int64_t output;
	bool server_tool; /* the provider ran tools of its own */
	int64_t input;    /* read + written + uncached, or the provider's own total */
	bool seen;        /* a usage object was found at all */
	bool inclusive;   /* `input` is the provider's total, cached tokens and all */
};

void usage_init(struct usage *usage); /* all unknown */

/* Finds and merges the usage of a whole answer or of one stream event: `usage`,
 * `message.usage`, `response.usage`, `timings`.  Recognises the shapes of Anthropic,
 * OpenAI chat and responses, DeepSeek, vLLM, SGLang, llama.cpp, OpenRouter by their
 * fields, not by dialect.  No object: no change. */
void usage_merge_answer(struct usage *usage, const struct tape *tape);

/* The same for an answer of a dialect of its own, whose usage object stands at a path of
 * keys: "meta.usage". */
void usage_merge_path(struct usage *usage, const struct tape *tape, struct span path);

/* Derives what follows from the rest: call once, when no more is to come. */
void usage_finish(struct usage *usage);

#endif
