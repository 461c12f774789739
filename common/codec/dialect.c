#include "common/codec/dialect.h"

/* One row per top-level key that does not enter at T.  What is not listed does. */
struct key_row {
	const char *key;
	enum tier tier;
};

static const struct dialect_traits traits_table[DIALECT_COUNT] = {
	[DIALECT_ANTHROPIC] = {
		.dialect = DIALECT_ANTHROPIC,
		.markers = MARKER_CACHE_CONTROL,
		.call = CALL_ZERO,
		.ttl = TTL_5M,
		.stream = true,
		.placeholder = true,
		.markers_max = 4,
		.token_millibytes = 4000,
	},
	[DIALECT_OPENAI_CHAT] = {
		.dialect = DIALECT_OPENAI_CHAT,
		.markers = MARKER_NONE,
		.call = CALL_NONE,
		.ttl = TTL_NONE,
		.stream = true,
		.include_usage = true,
		.markers_max = 4,
		.token_millibytes = 4000,
	},
	[DIALECT_RAW] = {
		.dialect = DIALECT_RAW,
		.markers = MARKER_NONE,
		.call = CALL_NONE,
		.ttl = TTL_NONE,
		.token_millibytes = 4000,
	},
};

/* docs/IDENTITY.md, "At which node a key enters". */
static const struct key_row anthropic_keys[] = {
	{ "tools", TIER_TOOLS },          { "system", TIER_SYSTEM },
	{ "messages", TIER_MESSAGES },    { "tool_choice", TIER_MESSAGES },
	{ "thinking", TIER_MESSAGES }, /* its type enters at T, its budget here */
	{ "cache_control", TIER_NEVER },  { "diagnostics", TIER_NEVER },
	{ "max_tokens", TIER_NEVER },     { "metadata", TIER_NEVER },
	{ "stop_sequences", TIER_NEVER }, { "stream", TIER_NEVER },
	{ "temperature", TIER_NEVER },    { "top_k", TIER_NEVER },
	{ "top_p", TIER_NEVER },
};

static const struct key_row chat_keys[] = {
	{ "tools", TIER_TOOLS },
	{ "messages", TIER_MESSAGES },
	{ "tool_choice", TIER_MESSAGES },
	{ "function_call", TIER_MESSAGES },
	{ "frequency_penalty", TIER_NEVER },
	{ "logit_bias", TIER_NEVER },
	{ "logprobs", TIER_NEVER },
	{ "max_completion_tokens", TIER_NEVER },
	{ "max_tokens", TIER_NEVER },
	{ "metadata", TIER_NEVER },
	{ "min_p", TIER_NEVER },
	{ "n", TIER_NEVER },
	{ "prediction", TIER_NEVER },
	{ "presence_penalty", TIER_NEVER },
	{ "prompt_cache_retention", TIER_NEVER },
	{ "repetition_penalty", TIER_NEVER },
	{ "safety_identifier", TIER_NEVER },
	{ "seed", TIER_NEVER },
	{ "stop", TIER_NEVER },
	{ "store", TIER_NEVER },
	{ "stream", TIER_NEVER },
	{ "stream_options", TIER_NEVER },
	{ "temperature", TIER_NEVER },
	{ "top_k", TIER_NEVER },
	{ "top_logprobs", TIER_NEVER },
	{ "top_p", TIER_NEVER },
	{ "user", TIER_NEVER },
};

const struct dialect_traits *
dialect_traits(enum dialect dialect)
{
	VERIFY(dialect < DIALECT_COUNT);
	return &traits_table[dialect];
}

struct dialect_traits
dialect_for_upstream(enum dialect dialect, bool stream, uint64_t ttl_ms)
{
	struct dialect_traits traits = *dialect_traits(dialect);

	traits.stream = traits.stream && stream;
	if (dialect == DIALECT_ANTHROPIC && ttl_ms > dialect_ttl_ms(TTL_5M))
		traits.ttl = TTL_1H;
	return traits;
}

struct dialect_traits
dialect_for_model(const struct dialect_traits *upstream,
                  const struct dialect_model *model)
{
	struct dialect_traits traits = *upstream;

	if (traits.dialect == DIALECT_OPENAI_CHAT && model->ours) {
		traits.cache_key = model->cache_key;
		traits.cache_mode = model->breakpoint;
		traits.markers = model->breakpoint ? MARKER_BREAKPOINT : MARKER_NONE;
	}
	if (model->tokens_min > 0)
		traits.tokens_min = model->tokens_min;
	return traits;
}

const char *
dialect_name(enum dialect dialect)
{
	switch (dialect) {
	case DIALECT_ANTHROPIC:
		return "anthropic";
	case DIALECT_OPENAI_CHAT:
		return "openai-chat";
	case DIALECT_RAW:
		return "raw";
	case DIALECT_COUNT:
		break;
	}
	return "unknown";
}

int
dialect_parse(struct span name, enum dialect *ret_dialect)
{
	for (enum dialect i = 0; i < DIALECT_COUNT; i++) {
		if (span_equals(name, span_from(dialect_name(i)))) {
			*ret_dialect = i;
			return 0;
		}
	}
	return ERR_UNKNOWN_KEY;
}

char
dialect_letter(enum dialect dialect)
{
	VERIFY(dialect < DIALECT_COUNT);
	return "AOR"[dialect];
}

enum dialect
dialect_from_letter(char letter)
{
	switch (letter) {
	case 'A':
		return DIALECT_ANTHROPIC;
	case 'O':
		return DIALECT_OPENAI_CHAT;
	case 'R':
		return DIALECT_RAW;
	default:
		return DIALECT_COUNT;
	}
}

static enum tier
find_tier(const struct key_row *rows, size_t count, struct span key)
{
	for (size_t i = 0; i < count; i++)
		if (span_equals(key, span_from(rows[i].key)))
			return rows[i].tier;
	return TIER_TOOLS;
}

enum tier
dialect_key_tier(enum dialect dialect, struct span key)
{
	switch (dialect) {
	case DIALECT_ANTHROPIC:
		return find_tier(anthropic_keys, ARRAY_SIZE(anthropic_keys), key);
	case DIALECT_OPENAI_CHAT:
		return find_tier(chat_keys, ARRAY_SIZE(chat_keys), key);
	case DIALECT_RAW:
	case DIALECT_COUNT:
		break;
	}
	return TIER_NEVER;
}

const char *
dialect_key(enum dialect dialect, unsigned i, enum tier *ret_tier)
{
	const struct key_row *rows =
		dialect == DIALECT_ANTHROPIC ? anthropic_keys : chat_keys;
	size_t count = dialect == DIALECT_ANTHROPIC     ? ARRAY_SIZE(anthropic_keys)
	               : dialect == DIALECT_OPENAI_CHAT ? ARRAY_SIZE(chat_keys)
	                                                : 0;

	if (i >= count)
		return NULL;
	*ret_tier = rows[i].tier;
	return rows[i].key;
}

enum dialect_held
dialect_key_held(enum dialect dialect, struct span key)
{
	static const char *const all[] = { "previous_response_id", "conversation",
		                           "prompt" };

	if (dialect == DIALECT_RAW)
		return DIALECT_HELD_NO;
	if (span_equals(key, SPAN("mcp_servers")))
		return DIALECT_HELD_TOOLS;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (span_equals(key, span_from(all[i])))
			return DIALECT_HELD_ALL;
	return DIALECT_HELD_NO;
}

const char *
dialect_tier_name(enum tier tier)
{
	switch (tier) {
	case TIER_TOOLS:
		return "tools";
	case TIER_SYSTEM:
		return "system";
	case TIER_MESSAGES:
		return "messages";
	case TIER_COUNT:
		break;
	}
	return "none";
}

char
dialect_tier_letter(enum tier tier)
{
	VERIFY(tier < TIER_COUNT);
	return "TSM"[tier];
}

static const struct {
	const char *name;
	uint64_t ms;
} ttl_table[TTL_COUNT] = {
	[TTL_NONE] = { "-", 0 },         [TTL_5M] = { "5m", 300000 },
	[TTL_30M] = { "30m", 1800000 },  [TTL_1H] = { "1h", 3600000 },
	[TTL_12H] = { "12h", 43200000 },
};

const char *
dialect_ttl_name(enum ttl ttl)
{
	VERIFY(ttl < TTL_COUNT);
	return ttl_table[ttl].name;
}

enum ttl
dialect_ttl_parse(struct span name)
{
	for (enum ttl i = TTL_5M; i < TTL_COUNT; i++)
		if (span_equals(name, span_from(ttl_table[i].name)))
			return i;
	return TTL_NONE;
}

uint64_t
dialect_ttl_ms(enum ttl ttl)
{
	VERIFY(ttl < TTL_COUNT);
	return ttl_table[ttl].ms;
}
