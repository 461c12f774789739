/* answer.h - what an accepted request is answered, as a script.
 *
 * The text names the question: "echo 1f0c9a..." with the digest of the final user text
 * (ask_digest, 16 hex digits), then filler up to the length asked for.  A streamed answer
 * reassembles to exactly what the same request gets unstreamed.
 *
 *   streamed    start at 0, deltas spread evenly over the decode time, usage at its end
 *   whole       one piece at the end of the decode time
 *   warm only   one piece at 0, no content */
#ifndef PROVIDER_ANSWER_H
#define PROVIDER_ANSWER_H

#include "provider/ask.h"
#include "provider/model/cache_request.h"
#include "provider/script.h"
#include "provider/settings.h"

struct answer {
	const struct ask_want *want;
	const struct settings *settings;
	struct cache_usage usage;
	uint64_t id;            /* of the request: in ids of all kinds */
	uint64_t created_s;     /* wall clock, for the dialects that show it */
	uint32_t output_tokens; /* not more than want->output_max */
	uint64_t decode_us;
};

/* How many tokens an answer to this request has. */
uint32_t answer_tokens(const struct ask_want *want, const struct settings *settings);

/* Fills `script`, which was just initialised; script_error tells of trouble. */
void answer_write(const struct answer *answer, struct script *script);

/* Appends the body of an error, as the dialect has it.  `request_id` may be empty. */
void answer_error(enum ask_dialect dialect, const char *type, const char *code,
                  struct span message, const char *request_id, struct buffer *out);

/* Appends the error event that may come after 200. */
void answer_stream_error(enum ask_dialect dialect, const struct settings *settings,
                         struct script *script, uint64_t due_us);

#endif
