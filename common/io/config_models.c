#include "common/io/config_models.h"

#include "common/text.h"

#define DOLLARS(whole, cents) (((uint64_t)(whole)*100 + (cents)) * 10000)

/* Anthropic's classes are those of its rate limits: Sonnet 4.x together, Opus 4.x too. */
#define CLAUDE(pattern, class_, minimum, input, output, read)                           \
	{                                                                               \
		.match = pattern, .class_name = class_, .minimum_tokens = minimum,      \
		.price_input = input, .price_output = output, .write_multiplier = 1250, \
		.write_multiplier_1h = 2000, .read_multiplier = read                    \
	}

/* Writing is paid for, and breakpoints are taken. */
#define GPT_PAID(pattern, class_)                                               \
	{                                                                       \
		.match = pattern, .class_name = class_, .minimum_tokens = 1024, \
		.write_multiplier = 1250, .write_multiplier_1h = 2500,          \
		.read_multiplier = 100, .breakpoint = true, .cache_key = true   \
	}

#define GPT_FREE(pattern, class_)                                               \
	{                                                                       \
		.match = pattern, .class_name = class_, .minimum_tokens = 1024, \
		.write_multiplier = 1000, .write_multiplier_1h = 1000,          \
		.read_multiplier = 500, .cache_key = true                       \
	}

/* First match wins: the longer names stand first. */
static const struct config_model models[] = {
	CLAUDE("claude-fable-5-1*", "fable-5", 512, 0, 0, 25),
	CLAUDE("claude-fable-5*", "fable-5", 512, 0, 0, 100),
	CLAUDE("claude-mythos-5-1*", "mythos-5", 512, 0, 0, 25),
	CLAUDE("claude-mythos-5*", "mythos-5", 512, 0, 0, 100),
	CLAUDE("claude-mythos*", "mythos-5", 2048, 0, 0, 100),
	CLAUDE("claude-opus-5-5*", "opus-5", 512, 0, 0, 50),
	CLAUDE("claude-opus-5*", "opus-5", 512, 0, 0, 100),
	CLAUDE("claude-sonnet-5-5*", "sonnet-5", 512, 0, 0, 100),
	CLAUDE("claude-sonnet-5*", "sonnet-5", 1024, 0, 0, 100),
	CLAUDE("claude-opus-4-8*", "opus-4", 1024, 0, 0, 100),
	CLAUDE("claude-opus-4-7*", "opus-4", 2048, 0, 0, 100),
	CLAUDE("claude-opus-4-6*", "opus-4", 4096, DOLLARS(5, 0), DOLLARS(25, 0), 100),
	CLAUDE("claude-opus-4-5*", "opus-4", 4096, DOLLARS(5, 0), DOLLARS(25, 0), 100),
	CLAUDE("claude-opus-4*", "opus-4", 1024, DOLLARS(15, 0), DOLLARS(75, 0), 100),
	CLAUDE("claude-sonnet-4*", "sonnet-4", 1024, DOLLARS(3, 0), DOLLARS(15, 0), 100),
	CLAUDE("claude-haiku-4-5*", "haiku-4", 4096, DOLLARS(1, 0), DOLLARS(5, 0), 100),
	CLAUDE("claude-3-5-haiku*", "haiku-3", 2048, DOLLARS(0, 80), DOLLARS(4, 0), 100),
	CLAUDE("claude-haiku-3-5*", "haiku-3", 2048, DOLLARS(0, 80), DOLLARS(4, 0), 100),
	CLAUDE("claude-*", "claude", 4096, 0, 0, 100),

	/* OpenAI up to GPT-5.5 writes for nothing and routes by key; later models charge
	 * the write and take breakpoints (older ones refuse them with a 400). */
	GPT_PAID("gpt-5.6*", "gpt-5.6"),
	GPT_PAID("gpt-6*", "gpt-6"),
	GPT_FREE("gpt-*", "gpt"),
	GPT_FREE("o?*", "gpt-o"),

	{ .match = "*",
	  .class_name = "default",
	  .minimum_tokens = 1024,
	  .write_multiplier = 1250,
	  .write_multiplier_1h = 2000,
	  .read_multiplier = 100 },
};

const struct config_model *
config_models_find(struct span model)
{
	for (size_t i = 0; i < ARRAY_SIZE(models); i++)
		if (text_matches(span_from(models[i].match), model))
			return &models[i];
	VERIFY(false);
	return NULL;
}

const struct config_model *
config_models_at(size_t i)
{
	return i < ARRAY_SIZE(models) ? &models[i] : NULL;
}
