/* info.h - what Redis says of itself: the answer to INFO, lines of "name:value".
 *
 * Older versions leave out what they do not count, and managed servers hide what they
 * like: whoever asks for a line must do without it. */
#ifndef COMMON_INFO_H
#define COMMON_INFO_H

#include "common/base.h"

/* The value of that name, without the end of its line; empty if there is none. */
struct span info_find(struct span info, const char *name);

/* The digits that it begins with, as a number; 0 without any. */
uint64_t info_number(struct span info, const char *name);

#endif
