/* Streams: entries in one array by id; XDEL closes the gap.  No consumer groups. */
#include "tests/sim/redis_trim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const struct reply *
answer_id(struct redis_call *call, struct redis_stream_id id)
{
	char text[48];
	int len = snprintf(text, sizeof text, "%" PRIu64 "-%" PRIu64, id.ms, id.seq);

	return redis_answer_text(call->arena, (struct span){ text, (size_t)len });
}

static bool
step_up(struct redis_stream_id *id)
{
	if (id->seq < UINT64_MAX) {
		id->seq++;
		return true;
	}
	if (id->ms == UINT64_MAX)
		return false;
	*id = (struct redis_stream_id){ .ms = id->ms + 1 };
	return true;
}

static bool
step_down(struct redis_stream_id *id)
{
	if (id->seq > 0) {
		id->seq--;
		return true;
	}
	if (id->ms == 0)
		return false;
	*id = (struct redis_stream_id){ .ms = id->ms - 1, .seq = UINT64_MAX };
	return true;
}

static size_t
apply_trim(struct redis_value *stream, const struct redis_trim *trim)
{
	size_t count = 0;

	if (trim->by_length && stream->items.count > (size_t)trim->length)
		count = stream->items.count - (size_t)trim->length;
	if (trim->by_id)
		count = redis_value_seek_entry(stream, trim->id);
	redis_value_cut(stream, 0, count);
	return count;
}

struct add_plan {
	struct redis_trim trim;
	struct redis_stream_id id;
	bool no_create, any_id, any_seq;
	size_t fields; /* word of the first field */
};

static const struct reply *
read_add_id(struct redis_call *call, size_t i, struct add_plan *plan)
{
	struct span word = call->argv[i];

	plan->fields = i + 1;
	if (redis_command_is(call, i, "*")) {
		plan->any_id = true;
		return NULL;
	}
	if (word.len > 2 && memcmp(word.data + word.len - 2, "-*", 2) == 0) {
		plan->any_seq = true;
		word.len -= 2;
		if (!redis_trim_number(word, &plan->id.ms))
			return redis_trim_bad_id(call);
		return NULL;
	}
	if (!redis_trim_id(word, 0, &plan->id))
		return redis_trim_bad_id(call);
	return NULL;
}

static const struct reply *
read_add(struct redis_call *call, struct add_plan *plan)
{
	const struct reply *error;
	size_t i = 2;

	for (; i < call->argc; i++) {
		if (redis_command_is(call, i, "nomkstream")) {
			plan->no_create = true;
		} else if (redis_command_is(call, i, "maxlen") ||
		           redis_command_is(call, i, "minid")) {
			error = redis_trim_read(call, &i, &plan->trim);
			if (error)
				return error;
		} else if (redis_command_is(call, i, "limit") && i + 1 < call->argc) {
			error = redis_trim_limit(call, &i, &plan->trim);
			if (error)
				return error;
		} else {
			break;
		}
	}
	if (i >= call->argc)
		return redis_answer_error(
			call->arena, "ERR wrong number of arguments for 'xadd' command");
	error = read_add_id(call, i, plan);
	if (!error)
		error = redis_trim_judge(call, &plan->trim);
	if (error)
		return error;
	if (plan->fields >= call->argc || (call->argc - plan->fields) % 2 != 0)
		return redis_answer_error(
			call->arena, "ERR wrong number of arguments for 'xadd' command");
	if (!plan->any_id && !plan->any_seq && plan->id.ms == 0 && plan->id.seq == 0)
		return redis_answer_error(call->arena,
		                          "ERR The ID specified in XADD must be "
		                          "greater than 0-0");
	return NULL;
}

/* Settles the id that the entry gets.  False: it would not be the largest. */
static bool
choose_id(struct redis_call *call, const struct redis_value *stream,
          struct add_plan *plan)
{
	struct redis_stream_id last =
		stream ? stream->stream.last : (struct redis_stream_id){ 0 };

	if (plan->any_id) {
		plan->id = (struct redis_stream_id){ .ms = redis_command_now_ms(call) };
		if (redis_stream_id_compare(plan->id, last) <= 0) {
			plan->id = last;
			return step_up(&plan->id);
		}
		return true;
	}
	if (plan->any_seq) {
		plan->id.seq = plan->id.ms == 0;
		if (plan->id.ms == last.ms && last.seq == UINT64_MAX)
			return false;
		if (plan->id.ms == last.ms)
			plan->id.seq = last.seq + 1;
	}
	return redis_stream_id_compare(plan->id, last) > 0;
}

static void
append(struct redis_call *call, struct redis_value *stream, const struct add_plan *plan)
{
	struct redis_entry *entry =
		redis_vector_insert(&stream->items, stream->items.count);

	entry->id = plan->id;
	entry->words_count = call->argc - plan->fields;
	entry->words = calloc(entry->words_count, sizeof *entry->words);
	VERIFY(entry->words);
	for (size_t i = 0; i < entry->words_count; i++)
		entry->words[i] = redis_text_create(call->argv[plan->fields + i]);
	stream->stream.last = plan->id;
	stream->stream.added++;
}

static const struct reply *
run_xadd(struct redis_call *call)
{
	struct add_plan plan = { 0 };
	const struct reply *error = read_add(call, &plan);
	struct redis_value *stream;

	if (error)
		return error;
	if (!redis_command_find(call, call->argv[1], REDIS_STREAM, &stream))
		return redis_answer_wrong_type(call->arena);
	if (!stream && plan.no_create)
		return redis_answer_nil(call->arena);
	if (!choose_id(call, stream, &plan))
		return redis_answer_error(call->arena,
		                          "ERR The ID specified in XADD is equal "
		                          "or smaller than the target stream top "
		                          "item");
	(void)redis_command_open(call, call->argv[1], REDIS_STREAM, &stream);
	append(call, stream, &plan);
	(void)apply_trim(stream, &plan.trim);
	return answer_id(call, plan.id);
}

static const struct reply *
run_xlen(struct redis_call *call)
{
	struct redis_value *stream;

	if (!redis_command_find(call, call->argv[1], REDIS_STREAM, &stream))
		return redis_answer_wrong_type(call->arena);
	return redis_answer_integer(call->arena,
	                            stream ? (int64_t)stream->items.count : 0);
}

static const struct reply *
answer_entry(struct redis_call *call, const struct redis_entry *entry)
{
	struct reply *items;
	struct reply *words;
	const struct reply *reply = redis_answer_array(call->arena, 2, &items);

	items[0] = *answer_id(call, entry->id);
	items[1] = *redis_answer_array(call->arena, entry->words_count, &words);
	for (size_t i = 0; i < entry->words_count; i++)
		words[i] =
			*redis_answer_text(call->arena, redis_text_span(entry->words[i]));
	return reply;
}

static const struct reply *
answer_entries(struct redis_call *call, const struct redis_value *stream, size_t from,
               size_t count, bool reverse)
{
	struct reply *items;
	const struct reply *reply = redis_answer_array(call->arena, count, &items);

	for (size_t i = 0; i < count; i++) {
		size_t at = reverse ? from + count - 1 - i : from + i;

		items[i] = *answer_entry(call, redis_value_entry(stream, at));
	}
	return reply;
}

/* One end of a range: "-", "+", an id, "(" and an id. */
static bool
read_end(struct span word, bool is_low, struct redis_stream_id *ret_id)
{
	bool open = word.len > 0 && word.data[0] == '(';
	struct redis_stream_id id = { 0 };

	if (word.len == 1 && word.data[0] == '-') {
		*ret_id = id;
		return true;
	}
	if (word.len == 1 && word.data[0] == '+') {
		*ret_id = (struct redis_stream_id){ UINT64_MAX, UINT64_MAX };
		return true;
	}
	if (open)
		word = (struct span){ word.data + 1, word.len - 1 };
	if (!redis_trim_id(word, is_low ? 0 : UINT64_MAX, &id))
		return false;
	if (open && !(is_low ? step_up(&id) : step_down(&id)))
		return false;
	*ret_id = id;
	return true;
}

static const struct reply *
run_xrange(struct redis_call *call)
{
	bool reverse = redis_command_is(call, 0, "xrevrange");
	struct redis_stream_id low;
	struct redis_stream_id high;
	struct redis_value *stream;
	int64_t limit = -1;
	size_t from = 0;
	size_t count = 0;

	if (!read_end(call->argv[reverse ? 3 : 2], true, &low) ||
	    !read_end(call->argv[reverse ? 2 : 3], false, &high))
		return redis_trim_bad_id(call);
	if (call->argc != 4 && (call->argc != 6 || !redis_command_is(call, 4, "count")))
		return redis_answer_syntax(call->arena);
	if (call->argc == 6 && !redis_command_integer(call->argv[5], &limit))
		return redis_answer_not_integer(call->arena);
	if (!redis_command_find(call, call->argv[1], REDIS_STREAM, &stream))
		return redis_answer_wrong_type(call->arena);
	if (!stream)
		return answer_entries(call, stream, 0, 0, false);
	if (call->argc == 6 && limit <= 0)
		return redis_answer_nil(call->arena);
	from = redis_value_seek_entry(stream, low);
	while (from + count < stream->items.count &&
	       redis_stream_id_compare(redis_value_entry(stream, from + count)->id,
	                               high) <= 0)
		count++;
	if (limit > 0 && (size_t)limit < count) {
		from = reverse ? from + count - (size_t)limit : from;
		count = (size_t)limit;
	}
	return answer_entries(call, stream, from, count, reverse);
}

/* Where XREAD's ids start, and its COUNT; NULL, or the error. */
static const struct reply *
read_read(struct redis_call *call, size_t *ret_first, size_t *ret_streams,
          int64_t *ret_limit)
{
	size_t i = 1;

	for (; i < call->argc && !redis_command_is(call, i, "streams"); i += 2) {
		if (redis_command_is(call, i, "count") && i + 1 < call->argc) {
			if (!redis_command_integer(call->argv[i + 1], ret_limit))
				return redis_answer_not_integer(call->arena);
		} else {
			return redis_answer_syntax(call->arena);
		}
	}
	if (i >= call->argc)
		return redis_answer_syntax(call->arena);
	if ((call->argc - i - 1) % 2 != 0 || call->argc - i - 1 == 0)
		return redis_answer_error(call->arena,
		                          "ERR Unbalanced XREAD list of "
		                          "streams: for each stream key an ID "
		                          "or '$' must be specified.");
	*ret_first = i + 1;
	*ret_streams = (call->argc - i - 1) / 2;
	return NULL;
}

/* Never blocks: BLOCK is refused. */
static const struct reply *
run_xread(struct redis_call *call)
{
	struct redis_value *streams[8];
	size_t froms[8];
	struct reply *items;
	struct reply *pair;
	const struct reply *reply;
	int64_t limit = 0;
	size_t first = 0;
	size_t count = 0;
	size_t full = 0;

	reply = read_read(call, &first, &count, &limit);
	if (reply)
		return reply;
	VERIFY(count <= ARRAY_SIZE(streams));
	for (size_t i = 0; i < count; i++) {
		struct redis_stream_id after = { 0 };
		bool is_end = redis_command_is(call, first + count + i, "$");

		if (!redis_command_find(call, call->argv[first + i], REDIS_STREAM,
		                        &streams[i]))
			return redis_answer_wrong_type(call->arena);
		if (!is_end && !redis_trim_id(call->argv[first + count + i], 0, &after))
			return redis_trim_bad_id(call);
		if (is_end && streams[i])
			after = streams[i]->stream.last;
		if (!step_up(&after) || !streams[i])
			streams[i] = NULL;
		else
			froms[i] = redis_value_seek_entry(streams[i], after);
		if (streams[i] && froms[i] >= streams[i]->items.count)
			streams[i] = NULL;
		full += streams[i] != NULL;
	}
	if (full == 0)
		return redis_answer_nil(call->arena);
	reply = redis_answer_array(call->arena, full, &items);
	for (size_t i = 0; i < count; i++) {
		size_t left;

		if (!streams[i])
			continue;
		left = streams[i]->items.count - froms[i];
		if (limit > 0)
			left = MIN(left, (size_t)limit);
		*items++ = *redis_answer_array(call->arena, 2, &pair);
		pair[0] = *redis_answer_text(call->arena, call->argv[first + i]);
		pair[1] = *answer_entries(call, streams[i], froms[i], left, false);
	}
	return reply;
}

static void
note_deleted(struct redis_value *stream, struct redis_stream_id id)
{
	if (redis_stream_id_compare(id, stream->stream.deleted_max) > 0)
		stream->stream.deleted_max = id;
}

static const struct reply *
run_xdel(struct redis_call *call)
{
	struct redis_stream_id id;
	struct redis_value *stream;
	int64_t removed = 0;

	if (!redis_command_find(call, call->argv[1], REDIS_STREAM, &stream))
		return redis_answer_wrong_type(call->arena);
	if (!stream)
		return redis_answer_integer(call->arena, 0);
	for (size_t i = 2; i < call->argc; i++) {
		if (!redis_trim_id(call->argv[i], 0, &id))
			return redis_trim_bad_id(call);
	}
	for (size_t i = 2; i < call->argc; i++) {
		size_t at;

		(void)redis_trim_id(call->argv[i], 0, &id);
		at = redis_value_seek_entry(stream, id);
		if (at >= stream->items.count ||
		    redis_stream_id_compare(redis_value_entry(stream, at)->id, id) != 0)
			continue;
		redis_value_cut(stream, at, 1);
		note_deleted(stream, id);
		removed++;
	}
	return redis_answer_integer(call->arena, removed);
}

static const struct reply *
read_xtrim(struct redis_call *call, struct redis_trim *trim)
{
	const struct reply *error = NULL;

	for (size_t i = 2; i < call->argc && !error; i++) {
		bool has_more = i + 1 < call->argc;

		if (has_more && (redis_command_is(call, i, "maxlen") ||
		                 redis_command_is(call, i, "minid")))
			error = redis_trim_read(call, &i, trim);
		else if (has_more && redis_command_is(call, i, "limit"))
			error = redis_trim_limit(call, &i, trim);
		else
			error = redis_answer_syntax(call->arena);
	}
	if (error)
		return error;
	if (!trim->by_length && !trim->by_id && trim->limit == 0)
		return redis_answer_error(call->arena,
		                          "ERR syntax error, XTRIM must be called "
		                          "with a trimming strategy");
	return redis_trim_judge(call, trim);
}

static const struct reply *
run_xtrim(struct redis_call *call)
{
	struct redis_trim trim = { 0 };
	struct redis_value *stream;
	const struct reply *error = read_xtrim(call, &trim);

	if (error)
		return error;
	if (!redis_command_find(call, call->argv[1], REDIS_STREAM, &stream))
		return redis_answer_wrong_type(call->arena);
	if (!stream)
		return redis_answer_integer(call->arena, 0);
	return redis_answer_integer(call->arena, (int64_t)apply_trim(stream, &trim));
}

/* The part of XINFO STREAM that tells what happened to a stream. */
static const struct reply *
run_xinfo(struct redis_call *call)
{
	static const char *const NAMES[] = {
		"length",        "last-generated-id",       "max-deleted-entry-id",
		"entries-added", "recorded-first-entry-id", "groups",
	};
	struct redis_value *stream;
	struct reply *items;
	const struct reply *reply;
	struct redis_stream_id first = { 0 };

	if (!redis_command_is(call, 1, "stream") || call->argc != 3)
		return redis_answer_syntax(call->arena);
	if (!redis_command_find(call, call->argv[2], REDIS_STREAM, &stream))
		return redis_answer_wrong_type(call->arena);
	if (!stream)
		return redis_answer_error(call->arena, "ERR no such key");
	if (stream->items.count > 0)
		first = redis_value_entry(stream, 0)->id;
	reply = redis_answer_array(call->arena, ARRAY_SIZE(NAMES) * 2, &items);
	for (size_t i = 0; i < ARRAY_SIZE(NAMES); i++)
		items[2 * i] = *redis_answer_text(call->arena, span_from(NAMES[i]));
	items[1] = *redis_answer_integer(call->arena, (int64_t)stream->items.count);
	items[3] = *answer_id(call, stream->stream.last);
	items[5] = *answer_id(call, stream->stream.deleted_max);
	items[7] = *redis_answer_integer(call->arena, (int64_t)stream->stream.added);
	items[9] = *answer_id(call, first);
	items[11] = *redis_answer_integer(call->arena, 0);
	return reply;
}

const struct redis_command redis_streams_commands[] = {
	{ "xadd", -5, true, run_xadd },
	{ "xlen", 2, false, run_xlen },
	{ "xrange", -4, false, run_xrange },
	{ "xrevrange", -4, false, run_xrange },
	{ "xread", -4, false, run_xread },
	{ "xdel", -3, true, run_xdel },
	{ "xtrim", -4, true, run_xtrim },
	{ "xinfo", -2, false, run_xinfo },
	{ 0 },
};
