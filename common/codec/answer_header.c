#include "common/codec/answer.h"
#include "common/codec/when.h"
#include "common/text.h"

#include <strings.h>

#define RETRY_AFTER_MAX_MS INT64_C(86400000) /* whoever asks for more gets this */

static bool
name_is(struct span name, const char *wanted)
{
	return name.len == strlen(wanted) &&
	       strncasecmp(name.data, wanted, name.len) == 0;
}

static bool
starts_with(struct span *name, const char *start)
{
	size_t len = strlen(start);

	if (name->len < len || strncasecmp(name->data, start, len) != 0)
		return false;
	name->data += len;
	name->len -= len;
	return true;
}

/* A decimal in thousandths: "1.5" is 1500; more digits are cut off. */
static bool
take_decimal(struct span *text, int64_t *ret_milli)
{
	int64_t value = 0, scale = 100;
	size_t i = 0;

	while (i < text->len && text->data[i] >= '0' && text->data[i] <= '9') {
		if (value > INT64_MAX / 100000)
			return false;
		value = value * 10 + (text->data[i++] - '0');
	}
	if (i == 0)
		return false;
	value *= 1000;
	if (i < text->len && text->data[i] == '.') {
		for (i++; i < text->len && text->data[i] >= '0' && text->data[i] <= '9';
		     i++) {
			value += scale * (text->data[i] - '0');
			scale /= 10;
		}
	}
	text->data += i;
	text->len -= i;
	*ret_milli = value;
	return true;
}

int64_t
answer_duration(struct span text)
{
	static const struct {
		const char *unit;
		int64_t ms;
	} units[] = {
		{ "ms", 1 },   { "us", 0 },    { "\xc2\xb5s", 0 }, { "ns", 0 },
		{ "s", 1000 }, { "m", 60000 }, { "h", 3600000 },   { "d", 86400000 }
	};
	int64_t total = 0;

	text = text_trim(text);
	if (text.len == 0)
		return ANSWER_UNKNOWN;
	while (text.len > 0) {
		int64_t milli;
		size_t i;

		if (!take_decimal(&text, &milli))
			return ANSWER_UNKNOWN;
		for (i = 0; i < ARRAY_SIZE(units); i++)
			if (starts_with(&text, units[i].unit))
				break;
		if (i == ARRAY_SIZE(units) || milli > INT64_MAX / 86400000 / 2)
			return ANSWER_UNKNOWN;
		total += milli * units[i].ms / 1000;
		if (total > INT64_MAX / 2)
			return ANSWER_UNKNOWN;
	}
	return total;
}

static int64_t
until(uint64_t at_ms, uint64_t now_ms)
{
	return at_ms > now_ms ? MIN((int64_t)(at_ms - now_ms), RETRY_AFTER_MAX_MS) : 0;
}

/* Seconds, whole or not, or an HTTP date. */
static int64_t
retry_after(struct answer_headers *headers, struct span value)
{
	struct span rest = value;
	int64_t ms;

	headers->retry_at_ms = 0;
	if (when_parse_http(value, &headers->retry_at_ms) == 0)
		return until(headers->retry_at_ms, headers->now_ms);
	if (!take_decimal(&rest, &ms) || rest.len > 0)
		return ANSWER_UNKNOWN;
	return MIN(ms, RETRY_AFTER_MAX_MS);
}

/* A date is one of the server's clock, whatever ours says. */
static void
read_date(struct answer_headers *headers, struct span value)
{
	if (when_parse_http(value, &headers->now_ms) == 0 && headers->retry_at_ms > 0 &&
	    !headers->retry_after_exact)
		headers->retry_after_ms = until(headers->retry_at_ms, headers->now_ms);
}

static int64_t
retry_after_milli(struct span value)
{
	struct span rest = value;
	int64_t milli;

	if (!take_decimal(&rest, &milli) || rest.len > 0)
		return ANSWER_UNKNOWN;
	return MIN(milli / 1000, RETRY_AFTER_MAX_MS);
}

/* Vendors answer -1 where they do not know. */
static int64_t
count_of(struct span value)
{
	uint64_t count;

	return text_parse_unsigned(value, INT64_MAX, &count) == 0 ? (int64_t)count
	                                                          : ANSWER_UNKNOWN;
}

static int64_t
reset_of(struct span value, uint64_t now_ms)
{
	uint64_t at_ms;

	if (when_parse_rfc3339(value, &at_ms) == 0)
		return at_ms > now_ms ? (int64_t)(at_ms - now_ms) : 0;
	return answer_duration(value);
}

static bool
bucket_of(struct span *name, enum answer_bucket *ret_bucket)
{
	static const struct {
		const char *word;
		enum answer_bucket bucket;
	} words[] = { { "requests", ANSWER_REQUESTS },
		      { "input-tokens", ANSWER_INPUT },
		      { "output-tokens", ANSWER_OUTPUT },
		      { "tokens", ANSWER_TOKENS } };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (!starts_with(name, words[i].word))
			continue;
		*ret_bucket = words[i].bucket;
		return true;
	}
	return false;
}

/* anthropic-ratelimit-<bucket>-<what> */
static void
read_anthropic(struct answer_headers *headers, struct span name, struct span value)
{
	enum answer_bucket bucket;
	struct answer_limit *limit;

	if (!bucket_of(&name, &bucket))
		return;
	limit = &headers->bucket[bucket];
	if (name_is(name, "-limit"))
		limit->limit = count_of(value);
	else if (name_is(name, "-remaining"))
		limit->remaining = count_of(value);
	else if (name_is(name, "-reset"))
		limit->reset_ms = reset_of(value, headers->now_ms);
}

/* x-ratelimit-<what>-<bucket> */
static void
read_openai(struct answer_headers *headers, struct span name, struct span value)
{
	enum {
		LIMIT,
		REMAINING,
		RESET
	} what;
	enum answer_bucket bucket;
	struct answer_limit *limit;

	if (starts_with(&name, "limit-"))
		what = LIMIT;
	else if (starts_with(&name, "remaining-"))
		what = REMAINING;
	else if (starts_with(&name, "reset-"))
		what = RESET;
	else
		return;
	if (!bucket_of(&name, &bucket) || name.len > 0)
		return;
	limit = &headers->bucket[bucket];
	if (what == LIMIT)
		limit->limit = count_of(value);
	else if (what == REMAINING)
		limit->remaining = count_of(value);
	else
		limit->reset_ms = reset_of(value, headers->now_ms);
}

static void
copy(char *to, size_t size, struct span value)
{
	(void)text_escape(value, to, size);
}

static void
read_content_type(struct answer_headers *headers, struct span value)
{
	size_t len = 0;

	while (len < value.len && len + 1 < sizeof headers->content_type &&
	       value.data[len] != ';' && value.data[len] != ' ') {
		char byte = value.data[len];

		headers->content_type[len++] =
			(char)(byte >= 'A' && byte <= 'Z' ? byte - 'A' + 'a' : byte);
	}
	headers->content_type[len] = '\0';
}

void
answer_headers_init(struct answer_headers *headers, uint64_t now_ms)
{
	*headers = (struct answer_headers){
		.now_ms = now_ms,
		.retry_after_ms = ANSWER_UNKNOWN,
		.should_retry = ANSWER_UNKNOWN,
	};
	for (int i = 0; i < ANSWER_BUCKETS; i++)
		headers->bucket[i] =
			(struct answer_limit){ ANSWER_UNKNOWN, ANSWER_UNKNOWN,
			                       ANSWER_UNKNOWN };
}

void
answer_header(struct answer_headers *headers, struct span name, struct span value)
{
	value = text_trim(value);
	if (name_is(name, "retry-after-ms")) {
		int64_t ms = retry_after_milli(value);

		if (ms != ANSWER_UNKNOWN) {
			headers->retry_after_ms = ms;
			headers->retry_after_exact = true;
		}
	} else if (name_is(name, "retry-after")) {
		if (!headers->retry_after_exact)
			headers->retry_after_ms = retry_after(headers, value);
	} else if (name_is(name, "date")) {
		read_date(headers, value);
	} else if (name_is(name, "x-should-retry")) {
		headers->should_retry = name_is(value, "true")    ? 1
		                        : name_is(value, "false") ? 0
		                                                  : ANSWER_UNKNOWN;
	} else if (name_is(name, "request-id") || name_is(name, "x-request-id")) {
		copy(headers->request_id, sizeof headers->request_id, value);
	} else if (name_is(name, "anthropic-organization-id")) {
		copy(headers->organization, sizeof headers->organization, value);
	} else if (name_is(name, "anthropic-workspace-id")) {
		copy(headers->workspace, sizeof headers->workspace, value);
	} else if (name_is(name, "content-type")) {
		read_content_type(headers, value);
	} else if (starts_with(&name, "anthropic-ratelimit-")) {
		read_anthropic(headers, name, value);
	} else if (starts_with(&name, "x-ratelimit-")) {
		read_openai(headers, name, value);
	}
}
