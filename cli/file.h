/* file.h - a whole file, or standard input, in memory. */
#ifndef CLI_FILE_H
#define CLI_FILE_H

#include "cli/cli.h"
#include "common/buffer.h"

/* Appends the bytes of `path` ("-": standard input), at most the buffer's limit.  CLI_OK,
 * or CLI_USAGE after saying what is wrong. */
MUST_USE int file_read(const char *path, struct buffer *out);

#endif
