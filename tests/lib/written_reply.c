#include "tests/lib/written_reply.h"

#include <check.h>
#include <stdlib.h>

#define LIST_MAX 512

static void
skip_blanks(const char **at)
{
	*at += strspn(*at, " \n");
}

static struct reply
read_rest(const char **at, enum reply_kind kind)
{
	struct reply reply = { .kind = kind, .text = span_from(*at + 1) };

	*at += strlen(*at);
	return reply;
}

static struct reply
read_quoted(const char **at)
{
	size_t len = strcspn(*at + 1, "'");
	struct reply reply = { .kind = REPLY_TEXT, .text = { *at + 1, len } };

	ck_assert_msg((*at)[1 + len] == '\'', "a quote is not closed");
	*at += len + 2;
	return reply;
}

static struct reply
read_word(const char **at)
{
	struct span word = { *at, strcspn(*at, " ]\n") };

	*at += word.len;
	if (span_equals(word, SPAN("~")))
		return (struct reply){ .kind = REPLY_NIL };
	if (span_equals(word, SPAN("-")))
		return (struct reply){ .kind = REPLY_TEXT, .text = SPAN("") };
	if (word.len > 1 && word.data[0] == ':')
		return (struct reply){ .kind = REPLY_INTEGER,
			               .integer = strtoll(word.data + 1, NULL, 10) };
	return (struct reply){ .kind = REPLY_TEXT, .text = word };
}

static struct reply read_value(struct written_reply *written, const char **at);

/* Children of one list are neighbours: read first, kept then. */
static struct reply
read_list(struct written_reply *written, const char **at)
{
	struct reply items[LIST_MAX];
	struct reply list = { .kind = REPLY_ARRAY };

	++*at;
	for (skip_blanks(at); **at != ']'; skip_blanks(at)) {
		ck_assert_msg(**at != '\0', "a list is not closed");
		ck_assert_uint_lt(list.count, LIST_MAX);
		items[list.count++] = read_value(written, at);
	}
	++*at;
	ck_assert_uint_le(written->count + list.count, ARRAY_SIZE(written->nodes));
	memcpy(written->nodes + written->count, items, list.count * sizeof(*items));
	list.items = written->nodes + written->count;
	written->count += list.count;
	return list;
}

static struct reply
read_value(struct written_reply *written, const char **at)
{
	skip_blanks(at);
	switch (**at) {
	case '[':
		return read_list(written, at);
	case '!':
		return read_rest(at, REPLY_ERROR);
	case '\'':
		return read_quoted(at);
	default:
		return read_word(at);
	}
}

const struct reply *
written_reply_read(struct written_reply *written, const char *text)
{
	written->count = 0;
	written->reply = text[0] == '=' ? read_rest(&text, REPLY_TEXT)
	                                : read_value(written, &text);
	return &written->reply;
}
