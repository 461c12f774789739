/* tape_text.h - the inside of JSON strings: escapes to bytes, and to the fewest escapes.
 *
 *   "caf\u00e9 \/ \ud83d\ude00"      as sent
 *    café / 😀                        decoded, and canonical
 *    half \ud83d                     canonical: a lone surrogate stays an escape
 *
 * `inside` is what stands between the quotes of a valid string. */
#ifndef COMMON_CODEC_TAPE_TEXT_H
#define COMMON_CODEC_TAPE_TEXT_H

#include "common/base.h"
#include "common/buffer.h"

/* Appends the decoded bytes; a lone surrogate becomes U+FFFD.  Answers whether there was
 * none. */
bool tape_text_decode(struct span inside, struct buffer *out);

/* Appends the canonical form (tape.h), which is never longer. */
void tape_text_canonical(struct span inside, struct buffer *out);

/* True iff the decoded content is `plain`. */
bool tape_text_equals(struct span inside, struct span plain);

/* <0, 0 or >0: the order of two contents by their decoded bytes. */
int tape_text_compare(struct span a, struct span b);

/* True iff it decodes to nothing but blanks, tabs and newlines, or to nothing. */
bool tape_text_is_blank(struct span inside);

#endif
