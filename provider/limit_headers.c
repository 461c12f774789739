#include "provider/limit_headers.h"

#include <time.h>

#define SECOND_US 1000000ull

static void
append_number(struct buffer *out, const char *prefix, const char *name,
              const char *suffix, uint64_t value, bool negative)
{
	(void)buffer_append_format(out, "%s%s%s: ", prefix, name, suffix);
	if (negative)
		(void)buffer_append_text(out, "-1\r\n");
	else
		(void)buffer_append_format(out, "%llu\r\n", (unsigned long long)value);
}

/* RFC 3339 in UTC. */
static void
append_moment(struct buffer *out, uint64_t wall_s)
{
	time_t seconds = (time_t)wall_s;
	struct tm parts;
	char text[32];

	if (gmtime_r(&seconds, &parts) &&
	    strftime(text, sizeof text, "%FT%TZ", &parts) > 0)
		(void)buffer_append_text(out, text);
}

static void
append_anthropic(const char *name, const struct limit_level *level, bool rounded,
                 uint64_t wall_s, bool negative, struct buffer *out)
{
	static const char prefix[] = "anthropic-ratelimit-";
	uint64_t remaining = level->remaining;

	if (level->limit == 0)
		return;
	if (rounded)
		remaining = (remaining + 500) / 1000 * 1000;
	append_number(out, prefix, name, "-limit", level->limit, negative);
	append_number(out, prefix, name, "-remaining", remaining, negative);
	(void)buffer_append_format(out, "%s%s-reset: ", prefix, name);
	append_moment(out, wall_s + (level->full_us + SECOND_US - 1) / SECOND_US);
	(void)buffer_append_text(out, "\r\n");
}

/* A duration as OpenAI prints it: 41ms, 1.5s, 6m0s. */
static void
append_duration(struct buffer *out, uint64_t us)
{
	uint64_t ms = (us + 999) / 1000;

	if (ms < 1000)
		(void)buffer_append_format(out, "%llums", (unsigned long long)ms);
	else if (ms < 60000 && ms % 1000 > 0)
		(void)buffer_append_format(out, "%llu.%03llus",
		                           (unsigned long long)(ms / 1000),
		                           (unsigned long long)(ms % 1000));
	else if (ms < 60000)
		(void)buffer_append_format(out, "%llus", (unsigned long long)(ms / 1000));
	else
		(void)buffer_append_format(out, "%llum%llus",
		                           (unsigned long long)(ms / 60000),
		                           (unsigned long long)(ms / 1000 % 60));
}

static void
append_openai(const char *name, const struct limit_level *level, bool negative,
              struct buffer *out)
{
	if (level->limit == 0)
		return;
	append_number(out, "x-ratelimit-limit-", name, "", level->limit, negative);
	append_number(out, "x-ratelimit-remaining-", name, "", level->remaining,
	              negative);
	(void)buffer_append_format(out, "x-ratelimit-reset-%s: ", name);
	append_duration(out, negative ? 0 : level->full_us);
	(void)buffer_append_text(out, "\r\n");
}

void
limit_headers_append(enum ask_dialect dialect,
                     const struct limit_level levels[LIMIT_BUCKET_COUNT], uint64_t wall_s,
                     bool negative, struct buffer *out)
{
	const struct limit_level *requests = &levels[LIMIT_BUCKET_REQUESTS];
	const struct limit_level *input = &levels[LIMIT_BUCKET_INPUT];
	const struct limit_level *output = &levels[LIMIT_BUCKET_OUTPUT];

	if (dialect == ASK_OPENAI) {
		append_openai("requests", requests, negative, out);
		append_openai("tokens", input, negative, out);
		return;
	}
	append_anthropic("requests", requests, false, wall_s, negative, out);
	append_anthropic("input-tokens", input, true, wall_s, negative, out);
	append_anthropic("output-tokens", output, true, wall_s, negative, out);
	/* The one that is used up most stands for all. */
	if (input->limit > 0 && output->limit > 0 &&
	    (uint64_t)output->remaining * input->limit <
	            (uint64_t)input->remaining * output->limit)
		input = output;
	append_anthropic("tokens", input, true, wall_s, negative, out);
}

void
limit_headers_append_retry(uint64_t retry_us, struct buffer *out)
{
	if (retry_us > 0)
		(void)buffer_append_format(
			out, "retry-after: %llu\r\n",
			(unsigned long long)((retry_us + SECOND_US - 1) / SECOND_US));
}
