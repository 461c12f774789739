/* pipe.h - a connection to Redis that costs next to nothing: commands out, replies in.
 *
 *   pipe_open(&pipe, 3); pipe_text(&pipe, "LPOP"); …      adds a command to what waits
 *   pipe_flush(&pipe)                                     writes all that waits
 *   pipe_array, pipe_bulk, pipe_number, pipe_skip         take the next piece of a reply
 *
 * A reply is taken apart where it lies, piece by piece, by somebody who knows its shape:
 * no tree is built.  A bulk's bytes stay until the next piece is asked for.  An error, a
 * reply of another shape, or a closed connection ends the program. */
#ifndef TESTS_BENCH_PIPE_H
#define TESTS_BENCH_PIPE_H

#include "common/base.h"

struct pipe {
	int fd;
	char *out, *in;
	size_t out_len, out_size, in_at, in_len, in_size;
};

void pipe_connect(struct pipe *pipe, const char *path);

void pipe_open(struct pipe *pipe, size_t words);
void pipe_word(struct pipe *pipe, const char *data, size_t size);
void pipe_text(struct pipe *pipe, const char *text);
void pipe_unsigned(struct pipe *pipe, uint64_t value);
void pipe_flush(struct pipe *pipe);

int64_t pipe_array(struct pipe *pipe); /* how many pieces follow; -1: nil */
int64_t pipe_number(struct pipe *pipe);
void pipe_skip(struct pipe *pipe);        /* a whole reply of any shape */
struct span pipe_bulk(struct pipe *pipe); /* data NULL: nil */

#endif
