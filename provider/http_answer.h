/* http_answer.h - the HTTP around an answer: status line, headers, chunks.
 *
 * Text only; who sends it is connection.h. */
#ifndef PROVIDER_HTTP_ANSWER_H
#define PROVIDER_HTTP_ANSWER_H

#include "common/base.h"
#include "common/buffer.h"

#define HTTP_ANSWER_CHUNKED SIZE_MAX

/* Appends status line and headers; `extra` is more header lines, each with its CR LF. */
void http_answer_head(struct buffer *out, int status, const char *type, size_t length,
                      bool keep_alive, struct span extra);

/* Appends one chunk; an empty one would end the answer and is left out. */
void http_answer_chunk(struct buffer *out, struct span bytes);
void http_answer_last_chunk(struct buffer *out);

#endif
