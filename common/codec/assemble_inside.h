/* assemble_inside.h - what the front of the assembler and its two dialects share.
 *
 *   assemble.c            bytes ──► events, keeps them, decides which result it is
 *   assemble_anthropic.c  event ──► message and blocks ──► the object
 *   assemble_chat.c       event ──► message and choices ──► the object
 *
 * One rule holds for both dialects: what cannot be placed for sure is given up, never
 * guessed, since the events are kept until the end and say it all.  Giving up is no
 * error: a step answers 0 then, and below 0 only when memory is out.
 *
 * All of it belongs to the assembler and dies with it; spans into `tape` live until the
 * next event.  Everything kept counts towards options.size_max; lists are bounded by
 * ASSEMBLE_BLOCKS_MAX and ASSEMBLE_MEMBERS_MAX, since indexes come from outside. */
#ifndef COMMON_CODEC_ASSEMBLE_INSIDE_H
#define COMMON_CODEC_ASSEMBLE_INSIDE_H

#include "common/codec/assemble.h"
#include "common/codec/assemble_members.h"
#include "common/codec/sse.h"
#include "common/codec/tape.h"

/* Content blocks, choices or tool calls of one answer. */
#define ASSEMBLE_BLOCKS_MAX 4096

/* One content block (anthropic), tool call or choice (chat). */
struct assemble_block {
	struct assemble_members members;
	struct assemble_members inner; /* chat: message of a choice, function of a call */
	struct assemble_members lists; /* chat: log probabilities of a choice */
	struct assemble_block *calls;  /* chat: tool calls of a choice */
	unsigned calls_count;
	struct buffer json; /* anthropic: tool input as text, decoded */
	bool started;
};

struct assemble {
	struct assemble_options options;
	struct sse sse;
	struct tape tape;     /* of the event at hand */
	struct buffer events; /* kept events */
	struct buffer plain;  /* an answer that is no stream */
	struct buffer body;   /* the result */
	struct buffer error;
	struct usage usage;
	bool usage_finished;
	bool began;
	bool said; /* an event that was no heartbeat and no end */
	bool complete;
	bool ended; /* by an event that says so */
	const char *why_sse;

	struct assemble_members message;
	struct assemble_members cost; /* the usage object */
	struct assemble_block *blocks;
	unsigned blocks_count;
};

/* The object cannot be built for sure: the result will be the events.  The first reason
 * stays.  Answers 0. */
int assemble_inside_give_up(struct assemble *assemble, const char *why);

/* ERR_MALFORMED and ERR_LIMIT of building become giving up; ERR_MEMORY stays. */
int assemble_inside_settle(struct assemble *assemble, int err, const char *why);

/* Block `index` of a list, created with all before it; NULL if there are too many or no
 * memory. */
struct assemble_block *assemble_inside_block(struct assemble_block **list,
                                             unsigned *count, int64_t index);

/* True iff all members of the object but those named are null or absent. */
bool assemble_inside_only(const struct tape *tape, uint32_t object,
                          const char *const *names, size_t count);

/* {"error":…} that is not null, or {"object":"error",…}. */
bool assemble_inside_is_error(const struct tape *tape);

/* Keeps the error object of an event. */
int assemble_inside_error(struct assemble *assemble, uint32_t error);

/* One event of each dialect, and the object at the end. */
int assemble_anthropic_event(struct assemble *assemble);
int assemble_anthropic_build(struct assemble *assemble, struct buffer *out);
int assemble_chat_event(struct assemble *assemble);
int assemble_chat_build(struct assemble *assemble, struct buffer *out);
bool assemble_chat_has_finished(struct assemble *assemble); /* all its choices */

#endif
