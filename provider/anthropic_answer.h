/* anthropic_answer.h - the two shapes of a message: events, or one object.
 *
 * Both are made from the same list of content blocks.  Three usages of a stream (they
 * differ between the vendor and those who imitate it):
 *   1  message_start has the cache figures, message_delta only output_tokens
 *   2  message_delta repeats them all, and adds iterations[] with the same figures
 *   3  message_start has the total as input_tokens; only message_delta is true
 *
 * Inside provider/ only. */
#ifndef PROVIDER_ANTHROPIC_ANSWER_H
#define PROVIDER_ANTHROPIC_ANSWER_H

#include "provider/answer.h"

void anthropic_answer_stream(const struct answer *answer, struct script *script);
void anthropic_answer_whole(const struct answer *answer, struct script *script);

#endif
