/* Sorted sets: one array by (score, name).  A name is found by walking. */
#include "tests/sim/redis_command.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

static bool
locate(const struct redis_value *zset, struct span name, size_t *ret_at)
{
	for (size_t i = 0; zset && i < zset->items.count; i++) {
		if (redis_text_compare(redis_value_member(zset, i)->name, name) == 0) {
			*ret_at = i;
			return true;
		}
	}
	return false;
}

static void
place(struct redis_value *zset, struct redis_text *name, double score)
{
	size_t low = 0;
	size_t high = zset->items.count;
	struct redis_member *member;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct redis_member *other = redis_value_member(zset, middle);
		bool before =
			other->score < score ||
			(other->score == score &&
		         redis_text_compare(other->name, redis_text_span(name)) < 0);

		if (before)
			low = middle + 1;
		else
			high = middle;
	}
	member = redis_vector_insert(&zset->items, low);
	member->name = name;
	member->score = score;
}

static void
move(struct redis_value *zset, size_t at, double score)
{
	struct redis_text *name = redis_value_member(zset, at)->name;

	redis_vector_remove(&zset->items, at, 1);
	place(zset, name, score);
}

struct add_options {
	bool nx, xx, gt, lt, ch, incr;
	size_t first; /* word of the first score */
};

static void
read_options(const struct redis_call *call, struct add_options *options)
{
	size_t i = 2;

	for (;; i++) {
		if (redis_command_is(call, i, "nx"))
			options->nx = true;
		else if (redis_command_is(call, i, "xx"))
			options->xx = true;
		else if (redis_command_is(call, i, "gt"))
			options->gt = true;
		else if (redis_command_is(call, i, "lt"))
			options->lt = true;
		else if (redis_command_is(call, i, "ch"))
			options->ch = true;
		else if (redis_command_is(call, i, "incr"))
			options->incr = true;
		else
			break;
	}
	options->first = i;
}

/* NULL, or the error. */
static const struct reply *
judge_options(struct redis_call *call, const struct add_options *options)
{
	size_t words = call->argc - options->first;
	double score;

	if (words == 0 || words % 2 != 0)
		return redis_answer_syntax(call->arena);
	if (options->nx && options->xx)
		return redis_answer_error(call->arena,
		                          "ERR XX and NX options at the same "
		                          "time are not compatible");
	if ((options->gt && options->nx) || (options->lt && options->nx) ||
	    (options->gt && options->lt))
		return redis_answer_error(call->arena,
		                          "ERR GT, LT, and/or NX options at the "
		                          "same time are not compatible");
	if (options->incr && words > 2)
		return redis_answer_error(
			call->arena,
			"ERR INCR option supports a single increment-element pair");
	for (size_t i = options->first; i < call->argc; i += 2) {
		if (!redis_command_double(call->argv[i], &score))
			return redis_answer_not_float(call->arena);
	}
	return NULL;
}

struct add_outcome {
	bool added, changed, skipped, is_nan;
	double score;
};

static struct add_outcome
add(struct redis_value *zset, const struct add_options *options, double score,
    struct span name)
{
	struct add_outcome outcome = { .score = score };
	size_t at;

	if (!locate(zset, name, &at)) {
		outcome.skipped = options->xx;
		outcome.added = !options->xx;
		if (outcome.added)
			place(zset, redis_text_create(name), score);
		return outcome;
	}
	double old = redis_value_member(zset, at)->score;

	if (options->incr)
		outcome.score = old + score;
	outcome.is_nan = isnan(outcome.score);
	outcome.skipped = options->nx || outcome.is_nan ||
	                  (options->gt && outcome.score <= old) ||
	                  (options->lt && outcome.score >= old);
	outcome.changed = !outcome.skipped && outcome.score != old;
	if (outcome.changed)
		move(zset, at, outcome.score);
	return outcome;
}

static const struct reply *
add_all(struct redis_call *call, const struct add_options *options)
{
	struct add_outcome last = { 0 };
	struct redis_value *zset;
	int64_t added = 0;
	int64_t changed = 0;

	if (!redis_command_find(call, call->argv[1], REDIS_ZSET, &zset))
		return redis_answer_wrong_type(call->arena);
	if (!zset && options->xx)
		return options->incr ? redis_answer_nil(call->arena)
		                     : redis_answer_integer(call->arena, 0);
	(void)redis_command_open(call, call->argv[1], REDIS_ZSET, &zset);
	for (size_t i = options->first; i < call->argc; i += 2) {
		double score;

		(void)redis_command_double(call->argv[i], &score);
		last = add(zset, options, score, call->argv[i + 1]);
		added += last.added;
		changed += last.changed;
	}
	redis_command_tidy(call, zset);
	if (last.is_nan)
		return redis_answer_error(call->arena,
		                          "ERR resulting score is not a number (NaN)");
	if (options->incr)
		return last.skipped ? redis_answer_nil(call->arena)
		                    : redis_answer_double(call->arena, last.score);
	return redis_answer_integer(call->arena, options->ch ? added + changed : added);
}

static const struct reply *
run_zadd(struct redis_call *call)
{
	struct add_options options = { 0 };
	const struct reply *error;

	read_options(call, &options);
	error = judge_options(call, &options);
	return error ? error : add_all(call, &options);
}

static const struct reply *
run_zincrby(struct redis_call *call)
{
	struct add_options options = { .incr = true };
	const struct reply *error;

	read_options(call, &options); /* Redis reads them here, too */
	error = judge_options(call, &options);
	return error ? error : add_all(call, &options);
}

static const struct reply *
run_zrem(struct redis_call *call)
{
	struct redis_value *zset;
	int64_t removed = 0;
	size_t at;

	if (!redis_command_find(call, call->argv[1], REDIS_ZSET, &zset))
		return redis_answer_wrong_type(call->arena);
	if (!zset)
		return redis_answer_integer(call->arena, 0);
	for (size_t i = 2; i < call->argc; i++) {
		if (!locate(zset, call->argv[i], &at))
			continue;
		redis_value_cut(zset, at, 1);
		removed++;
	}
	redis_command_tidy(call, zset);
	return redis_answer_integer(call->arena, removed);
}

static const struct reply *
run_zscore(struct redis_call *call)
{
	struct redis_value *zset;
	size_t at;

	if (!redis_command_find(call, call->argv[1], REDIS_ZSET, &zset))
		return redis_answer_wrong_type(call->arena);
	if (!locate(zset, call->argv[2], &at))
		return redis_answer_nil(call->arena);
	return redis_answer_double(call->arena, redis_value_member(zset, at)->score);
}

static const struct reply *
run_zmscore(struct redis_call *call)
{
	struct redis_value *zset;
	struct reply *items;
	const struct reply *reply;
	size_t at;

	if (!redis_command_find(call, call->argv[1], REDIS_ZSET, &zset))
		return redis_answer_wrong_type(call->arena);
	reply = redis_answer_array(call->arena, call->argc - 2, &items);
	for (size_t i = 2; i < call->argc; i++) {
		if (locate(zset, call->argv[i], &at))
			items[i - 2] = *redis_answer_double(
				call->arena, redis_value_member(zset, at)->score);
	}
	return reply;
}

static const struct reply *
run_zrank(struct redis_call *call)
{
	struct redis_value *zset;
	size_t at;

	if (!redis_command_find(call, call->argv[1], REDIS_ZSET, &zset))
		return redis_answer_wrong_type(call->arena);
	if (!locate(zset, call->argv[2], &at))
		return redis_answer_nil(call->arena);
	return redis_answer_integer(call->arena, (int64_t)at);
}

static const struct reply *
run_zcard(struct redis_call *call)
{
	struct redis_value *zset;

	if (!redis_command_find(call, call->argv[1], REDIS_ZSET, &zset))
		return redis_answer_wrong_type(call->arena);
	return redis_answer_integer(call->arena, zset ? (int64_t)zset->items.count : 0);
}

/* A run of members in score order, and whether it is told backwards. */
struct slice {
	size_t from;
	size_t count;
	bool reverse;
	bool scores;
};

static const struct reply *
answer_slice(struct redis_call *call, const struct redis_value *zset, struct slice slice)
{
	struct reply *items;
	const struct reply *reply = redis_answer_array(
		call->arena, slice.count * (slice.scores ? 2 : 1), &items);

	for (size_t i = 0; i < slice.count; i++) {
		size_t at =
			slice.reverse ? slice.from + slice.count - 1 - i : slice.from + i;
		const struct redis_member *member = redis_value_member(zset, at);

		*items++ = *redis_answer_text(call->arena, redis_text_span(member->name));
		if (slice.scores)
			*items++ = *redis_answer_double(call->arena, member->score);
	}
	return reply;
}

struct bound {
	double score;
	bool open; /* "(5": 5 itself is out */
};

static bool
read_bound(struct span word, struct bound *ret_bound)
{
	struct bound bound = { 0 };

	if (word.len > 0 && word.data[0] == '(') {
		bound.open = true;
		word = (struct span){ word.data + 1, word.len - 1 };
	}
	/* laxer than a score: nothing at all is 0, and blanks may lead */
	while (word.len > 0 && isspace((unsigned char)*word.data))
		word = (struct span){ word.data + 1, word.len - 1 };
	if (word.len > 0 && !redis_command_double(word, &bound.score))
		return false;
	*ret_bound = bound;
	return true;
}

/* The run of members between two bounds. */
static void
seek_scores(const struct redis_value *zset, struct bound low, struct bound high,
            size_t *ret_from, size_t *ret_count)
{
	size_t from = 0;
	size_t count = 0;

	for (size_t i = 0; zset && i < zset->items.count; i++) {
		double score = redis_value_member(zset, i)->score;

		if (low.open ? score <= low.score : score < low.score) {
			from = i + 1;
			continue;
		}
		if (high.open ? score >= high.score : score > high.score)
			break;
		count++;
	}
	*ret_from = from;
	*ret_count = count;
}

static const struct reply *
answer_bad_bound(struct redis_call *call)
{
	return redis_answer_error(call->arena, "ERR min or max is not a float");
}

struct range_options {
	bool by_score, by_lex, reverse, scores, limited;
	int64_t offset, count;
};

/* The words behind the bounds; NULL, or the error. */
static const struct reply *
read_range(struct redis_call *call, struct range_options *options)
{
	bool is_zrange = redis_command_is(call, 0, "zrange");

	for (size_t i = 4; i < call->argc; i++) {
		if (redis_command_is(call, i, "withscores")) {
			options->scores = true;
		} else if (is_zrange && redis_command_is(call, i, "byscore")) {
			options->by_score = true;
		} else if (is_zrange && redis_command_is(call, i, "rev")) {
			options->reverse = true;
		} else if (redis_command_is(call, i, "limit") && i + 2 < call->argc) {
			options->limited = true;
			if (!redis_command_integer(call->argv[i + 1], &options->offset) ||
			    !redis_command_integer(call->argv[i + 2], &options->count))
				return redis_answer_not_integer(call->arena);
			i += 2;
		} else {
			return redis_answer_syntax(call->arena);
		}
	}
	if (options->limited && !options->by_score)
		return redis_answer_error(call->arena,
		                          "ERR syntax error, LIMIT is only supported in "
		                          "combination with either BYSCORE or BYLEX");
	return NULL;
}

/* Cuts a slice as LIMIT says, from its beginning as it is told. */
static void
limit(struct slice *slice, const struct range_options *options)
{
	size_t skip;
	size_t count;

	if (!options->limited)
		return;
	if (options->offset < 0 || (size_t)options->offset >= slice->count) {
		slice->count = 0;
		return;
	}
	skip = (size_t)options->offset;
	count = slice->count - skip;
	if (options->count >= 0)
		count = MIN(count, (size_t)options->count);
	slice->from = slice->reverse ? slice->from + slice->count - skip - count
	                             : slice->from + skip;
	slice->count = count;
}

static const struct reply *
range_by_score(struct redis_call *call, const struct range_options *options)
{
	struct slice slice = { .reverse = options->reverse, .scores = options->scores };
	struct redis_value *zset;
	struct bound low;
	struct bound high;

	if (!read_bound(call->argv[options->reverse ? 3 : 2], &low) ||
	    !read_bound(call->argv[options->reverse ? 2 : 3], &high))
		return answer_bad_bound(call);
	if (!redis_command_find(call, call->argv[1], REDIS_ZSET, &zset))
		return redis_answer_wrong_type(call->arena);
	seek_scores(zset, low, high, &slice.from, &slice.count);
	limit(&slice, options);
	return answer_slice(call, zset, slice);
}

static const struct reply *
range_by_rank(struct redis_call *call, const struct range_options *options)
{
	struct slice slice = { .reverse = options->reverse, .scores = options->scores };
	struct redis_value *zset;
	int64_t start;
	int64_t stop;

	if (!redis_command_integer(call->argv[2], &start) ||
	    !redis_command_integer(call->argv[3], &stop))
		return redis_answer_not_integer(call->arena);
	if (!redis_command_find(call, call->argv[1], REDIS_ZSET, &zset))
		return redis_answer_wrong_type(call->arena);
	if (!zset || !redis_command_range(start, stop, zset->items.count, &slice.from,
	                                  &slice.count))
		slice.count = 0;
	if (slice.reverse && slice.count > 0)
		slice.from = zset->items.count - slice.from - slice.count;
	return answer_slice(call, zset, slice);
}

/* ZRANGE and its four older shapes. */
static const struct reply *
run_zrange(struct redis_call *call)
{
	struct range_options options = {
		.by_score = redis_command_is(call, 0, "zrangebyscore") ||
		            redis_command_is(call, 0, "zrevrangebyscore"),
		.reverse = redis_command_is(call, 0, "zrevrange") ||
		           redis_command_is(call, 0, "zrevrangebyscore"),
	};
	const struct reply *error = read_range(call, &options);

	if (error)
		return error;
	return options.by_score ? range_by_score(call, &options)
	                        : range_by_rank(call, &options);
}

static const struct reply *
run_zcount(struct redis_call *call)
{
	bool remove = redis_command_is(call, 0, "zremrangebyscore");
	struct redis_value *zset;
	struct bound low;
	struct bound high;
	size_t from;
	size_t count;

	if (!read_bound(call->argv[2], &low) || !read_bound(call->argv[3], &high))
		return answer_bad_bound(call);
	if (!redis_command_find(call, call->argv[1], REDIS_ZSET, &zset))
		return redis_answer_wrong_type(call->arena);
	seek_scores(zset, low, high, &from, &count);
	if (remove && zset) {
		redis_value_cut(zset, from, count);
		redis_command_tidy(call, zset);
	}
	return redis_answer_integer(call->arena, (int64_t)count);
}

static const struct reply *
run_zremrangebyrank(struct redis_call *call)
{
	struct redis_value *zset;
	int64_t start;
	int64_t stop;
	size_t from;
	size_t count = 0;

	if (!redis_command_integer(call->argv[2], &start) ||
	    !redis_command_integer(call->argv[3], &stop))
		return redis_answer_not_integer(call->arena);
	if (!redis_command_find(call, call->argv[1], REDIS_ZSET, &zset))
		return redis_answer_wrong_type(call->arena);
	if (!zset || !redis_command_range(start, stop, zset->items.count, &from, &count))
		return redis_answer_integer(call->arena, 0);
	redis_value_cut(zset, from, count);
	redis_command_tidy(call, zset);
	return redis_answer_integer(call->arena, (int64_t)count);
}

static const struct reply *
run_zpop(struct redis_call *call)
{
	struct slice slice = { .reverse = redis_command_is(call, 0, "zpopmax"),
		               .scores = true };
	const struct reply *reply;
	struct redis_value *zset;
	int64_t count = 1;

	if (call->argc > 3)
		return redis_answer_syntax(call->arena);
	if (call->argc == 3 &&
	    (!redis_command_integer(call->argv[2], &count) || count < 0))
		return redis_answer_error(call->arena,
		                          "ERR value is out of range, must be positive");
	if (!redis_command_find(call, call->argv[1], REDIS_ZSET, &zset))
		return redis_answer_wrong_type(call->arena);
	if (zset)
		slice.count = MIN((size_t)count, zset->items.count);
	if (zset && slice.reverse)
		slice.from = zset->items.count - slice.count;
	reply = answer_slice(call, zset, slice);
	if (zset) {
		redis_value_cut(zset, slice.from, slice.count);
		redis_command_tidy(call, zset);
	}
	return reply;
}

const struct redis_command redis_zsets_commands[] = {
	{ "zadd", -4, true, run_zadd },
	{ "zincrby", 4, true, run_zincrby },
	{ "zrem", -3, true, run_zrem },
	{ "zscore", 3, false, run_zscore },
	{ "zmscore", -3, false, run_zmscore },
	{ "zrank", 3, false, run_zrank },
	{ "zcard", 2, false, run_zcard },
	{ "zcount", 4, false, run_zcount },
	{ "zrange", -4, false, run_zrange },
	{ "zrangebyscore", -4, false, run_zrange },
	{ "zrevrange", -4, false, run_zrange },
	{ "zrevrangebyscore", -4, false, run_zrange },
	{ "zremrangebyscore", 4, true, run_zcount },
	{ "zremrangebyrank", 4, true, run_zremrangebyrank },
	{ "zpopmin", -2, true, run_zpop },
	{ "zpopmax", -2, true, run_zpop },
	{ 0 },
};
