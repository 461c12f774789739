#include "common/codec/usage.h"

void
usage_init(struct usage *usage)
{
	*usage = (struct usage){
		.read = USAGE_UNKNOWN,
		.written = USAGE_UNKNOWN,
		.written_5m = USAGE_UNKNOWN,
		.written_1h = USAGE_UNKNOWN,
		.uncached = USAGE_UNKNOWN,
		.output = USAGE_UNKNOWN,
		.input = USAGE_UNKNOWN,
	};
}

/* Overwrites `to` if the object has the member as a number that can be a count. */
static bool
take(const struct tape *tape, uint32_t object, const char *key, int64_t *to)
{
	int64_t value;

	if (tape_integer(tape, tape_find(tape, object, key), &value) < 0 || value < 0)
		return false;
	*to = value;
	return true;
}

static void
take_details(struct usage *usage, const struct tape *tape, uint32_t details)
{
	(void)take(tape, details, "cached_tokens", &usage->read);
	(void)take(tape, details, "cache_write_tokens", &usage->written);
}

/* OpenAI chat and all who copy it: the prompt includes what was cached. */
static void
merge_chat(struct usage *usage, const struct tape *tape, uint32_t at)
{
	usage->inclusive = true;
	(void)take(tape, at, "prompt_tokens", &usage->input);
	(void)take(tape, at, "completion_tokens", &usage->output);
	take_details(usage, tape, tape_find(tape, at, "prompt_tokens_details"));
	(void)take(tape, at, "prompt_cache_hit_tokens", &usage->read);
	(void)take(tape, at, "prompt_cache_miss_tokens", &usage->uncached);
}

static void
merge_responses(struct usage *usage, const struct tape *tape, uint32_t at)
{
	usage->inclusive = true;
	(void)take(tape, at, "input_tokens", &usage->input);
	(void)take(tape, at, "output_tokens", &usage->output);
	take_details(usage, tape, tape_find(tape, at, "input_tokens_details"));
}

/* Counters by tool; any above zero will do. */
static void
take_server_tools(struct usage *usage, const struct tape *tape, uint32_t object)
{
	static const char *const counters[] = { "web_search_requests",
		                                "web_fetch_requests",
		                                "code_execution_requests" };
	int64_t count;

	for (size_t i = 0; i < ARRAY_SIZE(counters); i++)
		if (take(tape, object, counters[i], &count) && count > 0)
			usage->server_tool = true;
}

static void
merge_anthropic(struct usage *usage, const struct tape *tape, uint32_t at)
{
	uint32_t parts = tape_find(tape, at, "cache_creation");

	take_server_tools(usage, tape, tape_find(tape, at, "server_tool_use"));
	(void)take(tape, at, "input_tokens", &usage->uncached);
	(void)take(tape, at, "cache_read_input_tokens", &usage->read);
	(void)take(tape, at, "cache_creation_input_tokens", &usage->written);
	(void)take(tape, parts, "ephemeral_5m_input_tokens", &usage->written_5m);
	(void)take(tape, parts, "ephemeral_1h_input_tokens", &usage->written_1h);
	(void)take(tape, at, "output_tokens", &usage->output);
}

static void
merge_object(struct usage *usage, const struct tape *tape, uint32_t at)
{
	if (!tape_is(tape, at, TAPE_OBJECT))
		return;
	usage->seen = true;
	if (tape_find(tape, at, "prompt_tokens") != TAPE_NONE)
		merge_chat(usage, tape, at);
	else if (tape_find(tape, at, "input_tokens_details") != TAPE_NONE)
		merge_responses(usage, tape, at);
	else
		merge_anthropic(usage, tape, at);
}

/* llama.cpp's own account, which is there even where `usage` says nothing of the cache.
 */
static void
merge_timings(struct usage *usage, const struct tape *tape, uint32_t at)
{
	if (!tape_is(tape, at, TAPE_OBJECT))
		return;
	if (!take(tape, at, "cache_n", &usage->read))
		return;
	usage->seen = true;
	(void)take(tape, at, "prompt_n", &usage->uncached);
	(void)take(tape, at, "predicted_n", &usage->output);
}

void
usage_merge_answer(struct usage *usage, const struct tape *tape)
{
	merge_object(usage, tape, tape_find(tape, 0, "usage"));
	merge_object(usage, tape, tape_path(tape, 0, "message", "usage", NULL));
	merge_object(usage, tape, tape_path(tape, 0, "response", "usage", NULL));
	merge_timings(usage, tape, tape_find(tape, 0, "timings"));
}

void
usage_merge_path(struct usage *usage, const struct tape *tape, struct span path)
{
	uint32_t at = 0;

	while (path.len > 0 && at != TAPE_NONE) {
		const char *dot = memchr(path.data, '.', path.len);
		size_t len = dot ? (size_t)(dot - path.data) : path.len;

		at = tape_find_span(tape, at, (struct span){ path.data, len });
		len = MIN(len + 1, path.len);
		path.data += len;
		path.len -= len;
	}
	merge_object(usage, tape, at);
}

static int64_t
or_zero(int64_t value)
{
	return value == USAGE_UNKNOWN ? 0 : value;
}

void
usage_finish(struct usage *usage)
{
	int64_t parts;

	if (usage->written == USAGE_UNKNOWN && usage->written_5m != USAGE_UNKNOWN &&
	    usage->written_1h != USAGE_UNKNOWN)
		usage->written = usage->written_5m + usage->written_1h;
	if (!usage->inclusive) {
		if (usage->uncached != USAGE_UNKNOWN && usage->read != USAGE_UNKNOWN &&
		    usage->written != USAGE_UNKNOWN)
			usage->input = usage->uncached + usage->read + usage->written;
		return;
	}
	/* A provider that reports no writes does not bill them: they are plain input. */
	if (usage->uncached != USAGE_UNKNOWN || usage->input == USAGE_UNKNOWN ||
	    usage->read == USAGE_UNKNOWN)
		return;
	parts = usage->read + or_zero(usage->written);
	usage->uncached = MAX(usage->input - parts, 0);
}
