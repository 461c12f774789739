/* assemble_members.h - a JSON object under construction: members in order of arrival.
 *
 *   set("id", "\"msg_1\"")  set("content", null)  extend("text", "Hel")  extend("text",
 * "lo")
 *
 * Keys and values are JSON text; a string can be extended by the inside of another,
 * escapes and all, so half a surrogate pair in one piece meets its partner in the next.
 * At most ASSEMBLE_MEMBERS_MAX members; the owner frees it. */
#ifndef COMMON_CODEC_ASSEMBLE_MEMBERS_H
#define COMMON_CODEC_ASSEMBLE_MEMBERS_H

#include "common/base.h"
#include "common/buffer.h"
#include "common/codec/tape.h"

#define ASSEMBLE_MEMBERS_MAX 64

struct assemble_member {
	struct buffer key;   /* without quotes */
	struct buffer value; /* JSON; while `open`, a string without its last quote */
	bool open;
};

struct assemble_members {
	struct assemble_member *list;
	unsigned count;
	unsigned room;
};

void assemble_members_fini(struct assemble_members *members);

/* The value of a key as JSON (an open string is closed first), or an empty span. */
struct span assemble_members_get(struct assemble_members *members, struct span key);

/* Sets a member to JSON text, in its old place if it is there.  ERR_MEMORY, ERR_LIMIT. */
MUST_USE int assemble_members_set(struct assemble_members *members, struct span key,
                                  struct span value);

/* Adds the inside of a JSON string to a member: a new one, a null, or a string.
 * ERR_MALFORMED if it is something else. */
MUST_USE int assemble_members_extend(struct assemble_members *members, struct span key,
                                     struct span inside);

/* Adds elements (JSON, joined by commas) to a member: a new one, a null, or an array. */
MUST_USE int assemble_members_add(struct assemble_members *members, struct span key,
                                  struct span elements);

/* Sets every member of a JSON object.  A null never replaces a value; with `nulls` it
 * adds a member that is not there yet. */
MUST_USE int assemble_members_take(struct assemble_members *members,
                                   const struct tape *tape, uint32_t object, bool nulls);

/* Appends {"key":value,…}. */
void assemble_members_write(struct assemble_members *members, struct buffer *out);

#endif
