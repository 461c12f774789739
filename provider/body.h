/* body.h - a request's JSON as a tree, without paying for its long strings twice.
 *
 *   {"system":"You are ... 120 KB ...","x":1}     what came
 *   {"system":"\u0001#0","x":1}                   what jansson reads
 *   long strings [0] = You are ...                decoded here, by memchr and memcpy
 *
 * jansson reads about 100 MB/s, byte by byte; a burst of 200 prompts would spend longer
 * in the parser than in the network.  Strings of 512 bytes and more, which are most of a
 * prompt, are therefore taken out first and asked back for by body_text.  Keys stay in,
 * so that the last of two equal ones wins; so does a string that is not flawless (bad
 * escape, bad UTF-8, lone surrogate), so that jansson judges it: what is accepted and
 * what is refused is jansson's word alone. */
#ifndef PROVIDER_BODY_H
#define PROVIDER_BODY_H

#include "common/base.h"
#include "common/buffer.h"
#include "common/error.h"

#include <jansson.h>

#define BODY_LONG_STRING 512 /* bytes between the quotes */

struct body {
	json_t *root;
	struct buffer texts;  /* the decoded long strings, one after the other */
	struct span *strings; /* of texts; data is an offset until body_load is done */
	uint32_t strings_count;
	uint32_t strings_room;
};

struct body_error {
	char text[160]; /* what jansson said */
};

/* Takes out strings of `long_string` bytes and more: BODY_LONG_STRING; tests try others.
 * ERR_MALFORMED: not a JSON array or object.  ERR_MEMORY.  body_fini is owed only on
 * success. */
MUST_USE int body_load(struct body *body, struct span bytes, size_t long_string,
                       struct body_error *reterr);
void body_fini(struct body *body);

/* The content of a string anywhere in the tree; an empty span if it is no string. */
struct span body_text(const struct body *body, const json_t *string);

/* The last text of a message's content: itself if it is a string, else that of the last
 * part that has one; an empty span if there is none. */
struct span body_last_text(const struct body *body, const json_t *content);

/* Appends a value as compact JSON, with its long strings put back, leaving out members
 * called `without` (NULL: none) of the outermost object.  Keys stay in their order. */
MUST_USE int body_dump(const struct body *body, const json_t *value, const char *without,
                       struct buffer *out);

/* The same into `scratch` alone, which is cleared first and lends the text. */
MUST_USE int body_dump_into(const struct body *body, const json_t *value,
                            const char *without, struct buffer *scratch,
                            struct span *ret_text);

#endif
