#include "provider/anthropic.h"

#include "common/text.h"
#include "provider/anthropic_prompt.h"

#include <stdio.h>

static int
check_members(struct anthropic_reading *reading)
{
	static const char *const known[] = {
		"model",
		"messages",
		"max_tokens",
		"system",
		"tools",
		"tool_choice",
		"stream",
		"temperature",
		"top_p",
		"top_k",
		"stop_sequences",
		"metadata",
		"thinking",
		"container",
		"output_config",
		"cache_control",
		"service_tier",
		"speed",
		"inference_geo",
		"context_management",
		"mcp_servers",
		"diagnostics",
		NULL,
	};
	const char *name;
	json_t *value;

	if (!json_is_object(reading->root))
		return ANTHROPIC_REFUSE(reading, "The request must be a JSON object.");
	json_object_foreach((json_t *)(uintptr_t)reading->root, name, value)
	{
		size_t i = 0;

		while (known[i] && strcmp(known[i], name) != 0)
			i++;
		if (!known[i]) {
			char escaped[80];

			(void)text_escape(span_from(name), escaped, sizeof escaped);
			return ANTHROPIC_REFUSE(
				reading, "%s: Extra inputs are not permitted", escaped);
		}
	}
	return 0;
}

static int
read_model(struct anthropic_reading *reading)
{
	const json_t *model = json_object_get(reading->root, "model");
	char escaped[96];

	if (!json_is_string(model) || json_string_length(model) == 0)
		return ANTHROPIC_REFUSE(reading, "model: Field required");
	if (json_string_length(model) >= ASK_NAME_SIZE)
		return ANTHROPIC_REFUSE(reading, "model: at most %d bytes",
		                        ASK_NAME_SIZE - 1);
	snprintf(reading->ask->want.model, ASK_NAME_SIZE, "%s", json_string_value(model));
	reading->ask->entry = catalog_find_model(reading->context->catalog,
	                                         span_from(reading->ask->want.model));
	if (reading->ask->entry)
		return 0;
	(void)text_escape(span_from(reading->ask->want.model), escaped, sizeof escaped);
	return ask_refuse(reading->refusal, 404, "not_found_error", "model: %s", escaped);
}

static int
read_output_max(struct anthropic_reading *reading, bool counting)
{
	const json_t *max = json_object_get(reading->root, "max_tokens");

	if (!max && counting)
		return 0;
	if (!json_is_integer(max))
		return ANTHROPIC_REFUSE(reading, "max_tokens: Field required");
	if (json_integer_value(max) < 0 || json_integer_value(max) > 1000000)
		return ANTHROPIC_REFUSE(reading, "max_tokens: must be from 0 to 1000000");
	reading->ask->want.output_max = (uint32_t)json_integer_value(max);
	reading->ask->want.warm_only = reading->ask->want.output_max == 0;
	return 0;
}

static int
read_thinking(struct anthropic_reading *reading)
{
	const json_t *thinking = json_object_get(reading->root, "thinking");
	const char *type = json_string_value(json_object_get(thinking, "type"));
	json_int_t budget =
		json_integer_value(json_object_get(thinking, "budget_tokens"));

	if (!thinking)
		return 0;
	if (!type)
		return ANTHROPIC_REFUSE(reading, "thinking.type: Field required");
	if (strcmp(type, "enabled") == 0 && !reading->ask->want.warm_only) {
		if (budget < 1024)
			return ANTHROPIC_REFUSE(
				reading,
				"thinking.enabled.budget_tokens: Input should be "
				"greater than or equal to 1024");
		if (budget >= reading->ask->want.output_max)
			return ANTHROPIC_REFUSE(reading,
			                        "max_tokens must be greater than "
			                        "thinking.budget_tokens");
	}
	if (strcmp(type, "disabled") != 0)
		reading->ask->want.answer = ASK_ANSWER_THINKING;
	return 0;
}

static int
read_tool_choice(struct anthropic_reading *reading)
{
	const json_t *choice = json_object_get(reading->root, "tool_choice");
	const json_t *tools = json_object_get(reading->root, "tools");
	const char *type = json_string_value(json_object_get(choice, "type"));
	const json_t *name = json_object_get(choice, "name");

	if (!choice)
		return 0;
	if (!type)
		return ANTHROPIC_REFUSE(reading, "tool_choice.type: Field required");
	if (json_array_size(tools) == 0)
		return ANTHROPIC_REFUSE(
			reading,
			"tool_choice may only be specified while providing tools");
	if (strcmp(type, "any") != 0 && strcmp(type, "tool") != 0)
		return 0;
	if (strcmp(type, "any") == 0)
		name = json_object_get(json_array_get(tools, 0), "name");
	if (!json_is_string(name))
		return ANTHROPIC_REFUSE(reading, "tool_choice.name: Field required");
	reading->ask->want.answer = ASK_ANSWER_TOOL;
	snprintf(reading->ask->want.tool, ASK_NAME_SIZE, "%.*s", ASK_NAME_SIZE - 1,
	         json_string_value(name));
	return 0;
}

/* What may not go with max_tokens 0. */
static int
check_warm_only(struct anthropic_reading *reading)
{
	const json_t *thinking = json_object_get(reading->root, "thinking");
	const char *type = json_string_value(json_object_get(thinking, "type"));
	const json_t *config = json_object_get(reading->root, "output_config");

	if (!reading->ask->want.warm_only)
		return 0;
	if (reading->ask->want.stream)
		return ANTHROPIC_REFUSE(reading,
		                        "max_tokens: 0 is not supported with stream");
	if (type && strcmp(type, "enabled") == 0)
		return ANTHROPIC_REFUSE(
			reading, "max_tokens: 0 is not supported with thinking.type "
				 "'enabled'");
	if (json_object_get(config, "format"))
		return ANTHROPIC_REFUSE(
			reading,
			"max_tokens: 0 is not supported with output_config.format");
	if (reading->ask->want.answer == ASK_ANSWER_TOOL)
		return ANTHROPIC_REFUSE(
			reading,
			"max_tokens: 0 is not supported with tool_choice 'any' or "
			"'tool'");
	return 0;
}

/* The betas as a set: sorted by insertion into the scope, one by one, would be costly for
 * nothing; adding up their digests does not depend on the order either. */
static uint64_t
betas_digest(struct span betas)
{
	uint64_t sum = 0;

	while (betas.len > 0) {
		const char *comma = memchr(betas.data, ',', betas.len);
		size_t len = comma ? (size_t)(comma - betas.data) : betas.len;
		struct span word = { betas.data, len };

		while (word.len > 0 && word.data[0] == ' ')
			word = (struct span){ word.data + 1, word.len - 1 };
		while (word.len > 0 && word.data[word.len - 1] == ' ')
			word.len--;
		if (word.len > 0)
			sum += ask_digest(word);
		len += comma != NULL;
		betas = (struct span){ betas.data + len, betas.len - len };
	}
	return sum;
}

static void
set_scope(struct anthropic_reading *reading)
{
	const struct ask_context *context = reading->context;
	uint64_t betas = betas_digest(context->betas);
	const struct span texts[] = {
		span_from("anthropic"),
		span_from(context->key->workspace),
		span_from(reading->ask->want.model),
		body_text(reading->body, json_object_get(reading->root, "service_tier")),
		body_text(reading->body, json_object_get(reading->root, "inference_geo")),
		{ (const char *)&betas, sizeof betas },
	};

	reading->ask->scope = ask_scope(texts, ARRAY_SIZE(texts));
	reading->ask->routing = reading->ask->scope;
}

static int
read_request(struct anthropic_reading *reading, bool counting)
{
	const json_t *stream = json_object_get(reading->root, "stream");
	int err;

	if (reading->context->version.len == 0)
		return ANTHROPIC_REFUSE(reading, "anthropic-version: header is required");
	err = check_members(reading);
	if (err == 0)
		err = read_model(reading);
	if (err == 0)
		err = read_output_max(reading, counting);
	if (err < 0)
		return err;
	if (stream && !json_is_boolean(stream))
		return ANTHROPIC_REFUSE(reading,
		                        "stream: Input should be a valid boolean");
	reading->ask->want.stream = json_is_true(stream);
	reading->ask->mode = CACHE_MODE_MARKERS;
	reading->ask->want.choices = 1;
	err = counting ? 0 : read_thinking(reading);
	if (err == 0)
		err = read_tool_choice(reading);
	if (err == 0 && !counting)
		err = check_warm_only(reading);
	if (err < 0)
		return err;
	set_scope(reading);
	return anthropic_prompt_read(reading);
}

int
anthropic_read(const struct body *body, const struct ask_context *context, bool counting,
               struct ask *ret_ask, struct ask_refusal *ret_refusal)
{
	struct ask ask = { .want = { .dialect = ASK_ANTHROPIC } };
	struct anthropic_reading reading = { .body = body,
		                             .context = context,
		                             .root = body->root,
		                             .ask = &ask,
		                             .refusal = ret_refusal,
		                             .text = BUFFER_INIT(BUFFER_SIZE_DEFAULT *
		                                                 2) };
	int err;

	prompt_init(&ask.prompt, 0);
	err = read_request(&reading, counting);
	buffer_fini(&reading.text);
	if (err < 0)
		ask_fini(&ask);
	else
		*ret_ask = ask;
	return err;
}
