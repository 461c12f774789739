/* openai_answer.h - the two shapes of a chat completion: chunks, or one object.
 *
 * A stream has usage only if include_usage asked for it: then every chunk carries
 * "usage":null, and a last one, with no choices, the figures.  It ends with [DONE].
 *
 * Inside provider/ only. */
#ifndef PROVIDER_OPENAI_ANSWER_H
#define PROVIDER_OPENAI_ANSWER_H

#include "provider/answer.h"

void openai_answer_stream(const struct answer *answer, struct script *script);
void openai_answer_whole(const struct answer *answer, struct script *script);

#endif
