/* call.h - one Redis command on its way out: words, and who waits for the answer.
 *
 * The deterministic parts (scheduler engine, worker agent) emit calls; a shell sends
 * them in the order given and later hands back (tag, reply), or (tag, lost) when the
 * connection died before the answer: the effect is then unknown.
 *
 * A call borrows one arena of bytes and one of spans from its call_list; both are
 * reused when the list is reset, so a shell sends before it steps again. */
#ifndef COMMON_CALL_H
#define COMMON_CALL_H

#include "common/base.h"

struct call {
	uint64_t tag;      /* chosen by the emitter; comes back with the answer */
	uint32_t arg_from; /* index of the first word in call_list.args */
	uint32_t arg_count;
};

struct call_arg {
	uint32_t from; /* offset into call_list.bytes */
	uint32_t len;
};

struct call_list {
	struct call *calls;
	struct call_arg *args;
	char *bytes;
	uint32_t call_count, call_max;
	uint32_t arg_count, arg_max;
	uint32_t byte_count, byte_max;
};

/* Empties the list; memory stays. */
void call_reset(struct call_list *list);

/* True iff `args` more words of `bytes` bytes in all would fit behind a new call. */
bool call_fits(const struct call_list *list, uint32_t args, uint32_t bytes);

/* Starts a call; words are added to the last one begun.  Room must have been checked
 * with call_fits: running over is our own bug. */
void call_begin(struct call_list *list, uint64_t tag);
void call_word(struct call_list *list, struct span word);
void call_text(struct call_list *list, const char *text);
void call_integer(struct call_list *list, int64_t value);

/* Answers the i-th word of a call. */
struct span call_arg(const struct call_list *list, const struct call *call, uint32_t i);

#endif
