/* burst.h - the jobs of the demo: many questions, few long prefixes.
 *
 * Bodies look like what an SDK sends: a plain-string system prompt, one user turn, no
 * cache marker.  Everything follows from the seed, so that two runs send the same bytes.
 * A token counts as four bytes, as the simulated provider counts. */
#ifndef CLI_BURST_H
#define CLI_BURST_H

#include "common/base.h"
#include "common/buffer.h"

#define BURST_BYTES_PER_TOKEN 4

struct burst {
	const char *dialect; /* anthropic or openai-chat */
	const char *model;
	uint64_t jobs;
	uint64_t families;
	uint64_t prefix_tokens;
	uint64_t max_tokens;
	uint64_t seed;
	bool stream; /* what the jobs ask for */
};

/* Replaces `out` by the long text of one family, as a JSON string without quotes. */
void burst_prefix(const struct burst *burst, uint64_t family, struct buffer *out);

/* Replaces `out` by the body of the i-th job, whose prefix text is `prefix`. */
void burst_body(const struct burst *burst, uint64_t i, struct span prefix,
                struct buffer *out);

#endif
