#include "common/reply.h"

static const struct reply nil = { .kind = REPLY_NIL };

const struct reply *
reply_at(const struct reply *reply, size_t i)
{
	if (reply->kind != REPLY_ARRAY || i >= reply->count)
		return &nil;
	return &reply->items[i];
}

bool
reply_is(const struct reply *reply, const char *word)
{
	return reply->kind == REPLY_TEXT && span_equals(reply->text, span_from(word));
}

static bool
parse_decimal(struct span text, int64_t *ret_value)
{
	bool negative = text.len > 0 && text.data[0] == '-';
	int64_t value = 0;

	if (text.len == (size_t)negative || text.len - negative > 18)
		return false;
	for (size_t i = negative; i < text.len; i++) {
		if (text.data[i] < '0' || text.data[i] > '9')
			return false;
		value = value * 10 + (text.data[i] - '0');
	}
	*ret_value = negative ? -value : value;
	return true;
}

int64_t
reply_integer(const struct reply *reply, int64_t fallback)
{
	int64_t value;

	if (reply->kind == REPLY_INTEGER)
		return reply->integer;
	if (reply->kind == REPLY_TEXT && parse_decimal(reply->text, &value))
		return value;
	return fallback;
}

struct span
reply_text(const struct reply *reply)
{
	if (reply->kind != REPLY_TEXT && reply->kind != REPLY_ERROR)
		return (struct span){ "", 0 };
	return reply->text;
}
