#include "tests/sim/redis_trim.h"

#include <errno.h>
#include <stdlib.h>

const struct reply *
redis_trim_bad_id(struct redis_call *call)
{
	return redis_answer_error(call->arena,
	                          "ERR Invalid stream ID specified as stream "
	                          "command argument");
}

/* As lax as Redis: what is no plain number still goes through strtoull, blanks, signs
 * and leading zeros included. */
bool
redis_trim_number(struct span digits, uint64_t *ret_value)
{
	char text[40];
	char *end;
	int64_t plain;
	uint64_t value;

	if (digits.len == 0 || digits.len >= sizeof text)
		return false;
	if (redis_command_integer(digits, &plain)) {
		if (plain < 0)
			return false;
		*ret_value = (uint64_t)plain;
		return true;
	}
	memcpy(text, digits.data, digits.len);
	text[digits.len] = '\0';
	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0')
		return false;
	*ret_value = value;
	return true;
}

/* "5-3"; "5" with the sequence given. */
bool
redis_trim_id(struct span word, uint64_t seq_missing, struct redis_stream_id *ret_id)
{
	const char *dash = memchr(word.data, '-', word.len);
	struct redis_stream_id id = { .seq = seq_missing };
	struct span ms = word;

	if (dash) {
		struct span seq = { dash + 1, word.len - (size_t)(dash - word.data) - 1 };

		ms.len = (size_t)(dash - word.data);
		if (!redis_trim_number(seq, &id.seq))
			return false;
	}
	if (!redis_trim_number(ms, &id.ms))
		return false;
	*ret_id = id;
	return true;
}

const struct reply *
redis_trim_read(struct redis_call *call, size_t *i, struct redis_trim *trim)
{
	bool is_length = redis_command_is(call, *i, "maxlen");
	size_t at = *i + 1;

	if (trim->by_length || trim->by_id)
		return redis_answer_error(call->arena,
		                          "ERR syntax error, MAXLEN and MINID options at "
		                          "the same time are not compatible");
	if (at + 1 < call->argc &&
	    (redis_command_is(call, at, "~") || redis_command_is(call, at, "="))) {
		trim->approximate = redis_command_is(call, at, "~");
		at++;
	}
	if (at >= call->argc)
		return redis_answer_syntax(call->arena);
	if (is_length && !redis_command_integer(call->argv[at], &trim->length))
		return redis_answer_not_integer(call->arena);
	if (is_length && trim->length < 0)
		return redis_answer_error(call->arena,
		                          "ERR The MAXLEN argument must be >= 0.");
	if (!is_length && !redis_trim_id(call->argv[at], 0, &trim->id))
		return redis_trim_bad_id(call);
	trim->by_length = is_length;
	trim->by_id = !is_length;
	*i = at;
	return NULL;
}

const struct reply *
redis_trim_limit(struct redis_call *call, size_t *i, struct redis_trim *trim)
{
	if (!redis_command_integer(call->argv[++*i], &trim->limit))
		return redis_answer_not_integer(call->arena);
	if (trim->limit < 0)
		return redis_answer_error(call->arena,
		                          "ERR The LIMIT argument must be >= 0.");
	trim->limited = true;
	return NULL;
}

/* NULL, or why this combination is none. */
const struct reply *
redis_trim_judge(struct redis_call *call, const struct redis_trim *trim)
{
	if (trim->limit > 0 && !trim->by_length && !trim->by_id)
		return redis_answer_error(
			call->arena, "ERR syntax error, LIMIT cannot be used without "
				     "specifying a trimming strategy");
	if (trim->limited && !trim->approximate)
		return redis_answer_error(call->arena,
		                          "ERR syntax error, LIMIT cannot be used "
		                          "without the special ~ option");
	return NULL;
}
