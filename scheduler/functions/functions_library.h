/* functions_library.h - the Redis Functions library, carried inside the programs.
 *
 * The Lua files of this folder are joined at build time.  Whoever meets a Redis without
 * the functions, or with those of another version, loads these:
 *
 *   FUNCTION LOAD REPLACE <functions_library>
 *   FCALL warmq_version 1 <ns>:meta 1       answers [OK, now, functions_library_version]
 *
 * The text is terminated by a zero byte that functions_library_size does not count. */
#ifndef SCHEDULER_FUNCTIONS_FUNCTIONS_LIBRARY_H
#define SCHEDULER_FUNCTIONS_FUNCTIONS_LIBRARY_H

#include <stddef.h>

extern const char functions_library[];
extern const size_t functions_library_size;
extern const char functions_library_version[];

#endif
