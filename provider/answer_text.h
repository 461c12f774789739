/* answer_text.h - the words of an answer: which question it answers, then filler.
 *
 * Inside provider/ only. */
#ifndef PROVIDER_ANSWER_TEXT_H
#define PROVIDER_ANSWER_TEXT_H

#include "common/base.h"
#include "common/buffer.h"

/* Appends "echo <16 hex digits>" and filler, about 4 bytes per token, at least the echo.
 */
void answer_text_append(uint64_t digest, uint32_t tokens, struct buffer *out);

/* The index-th of `count` nearly equal parts of a text. */
struct span answer_text_part(struct span text, uint64_t index, uint64_t count);

#endif
