/* written_reply.h - what Redis said, written in a line.
 *
 *   static struct written_reply written;
 *
 *   agent_answer(agent, now_ms, tag, written_reply_read(&written, "[OK 5000 [a b]]"));
 *
 *   [a 'b c' []]   a list of words and lists; '…' quotes what has blanks
 *   - ~ :5         an empty word, a nil, a number; all other words are texts
 *   !ERR what      an error, to the end
 *   =OK 1 [2       one text, to the end; only at the very beginning */
#ifndef TESTS_LIB_WRITTEN_REPLY_H
#define TESTS_LIB_WRITTEN_REPLY_H

#include "common/reply.h"

struct written_reply {
	struct reply nodes[4096];
	size_t count;
	struct reply reply;
};

/* Lives as long as both arguments; fails the test if a list is not closed. */
const struct reply *written_reply_read(struct written_reply *written, const char *text);

#endif
