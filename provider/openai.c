#include "provider/openai.h"

#include "common/text.h"

#include <stdio.h>
#include <stdlib.h>

#define INVALID       "invalid_request_error"
#define EARLIER_ENDS  20 /* eligible message ends a lookup visits */
#define OUTPUT_LIMIT  1000000
#define OUTPUT_UNSAID 4096 /* reserved when the request names no limit */

struct reading {
	const struct body *body;
	const struct ask_context *context;
	const json_t *root;
	const json_t *messages;
	struct ask *ask;
	struct ask_refusal *refusal;
	struct buffer text;
	bool explicit_only; /* prompt_cache_options.mode */
	uint8_t marker;     /* what a breakpoint writes: 30m or 12h */
	uint32_t breakpoints;
	struct span question;
};

#define REFUSE(reading, ...) ask_refuse((reading)->refusal, 400, INVALID, __VA_ARGS__)

/* --- settings ---------------------------------------------------------------------- */

static int
check_members(struct reading *reading)
{
	static const char *const known[] = {
		"model",
		"messages",
		"stream",
		"stream_options",
		"max_tokens",
		"max_completion_tokens",
		"n",
		"tools",
		"tool_choice",
		"parallel_tool_calls",
		"response_format",
		"temperature",
		"top_p",
		"stop",
		"seed",
		"user",
		"safety_identifier",
		"metadata",
		"store",
		"logit_bias",
		"logprobs",
		"top_logprobs",
		"presence_penalty",
		"frequency_penalty",
		"reasoning_effort",
		"verbosity",
		"service_tier",
		"prompt_cache_key",
		"prompt_cache_options",
		"prompt_cache_retention",
		"modalities",
		"prediction",
		"web_search_options",
		"cache_salt",
		NULL,
	};
	const char *name;
	json_t *value;

	if (!json_is_object(reading->root))
		return REFUSE(reading,
		              "We could not parse the JSON body of your request.");
	json_object_foreach((json_t *)(uintptr_t)reading->root, name, value)
	{
		char escaped[80];
		size_t i = 0;

		while (known[i] && strcmp(known[i], name) != 0)
			i++;
		if (known[i])
			continue;
		(void)text_escape(span_from(name), escaped, sizeof escaped);
		return REFUSE(reading, "Unrecognized request argument supplied: %s",
		              escaped);
	}
	return 0;
}

static int
read_model(struct reading *reading)
{
	const json_t *model = json_object_get(reading->root, "model");
	struct ask_want *want = &reading->ask->want;
	char escaped[96];
	int err;

	if (!json_is_string(model) || json_string_length(model) == 0 ||
	    json_string_length(model) >= ASK_NAME_SIZE)
		return REFUSE(reading, "you must provide a model parameter");
	snprintf(want->model, ASK_NAME_SIZE, "%s", json_string_value(model));
	reading->ask->entry =
		catalog_find_model(reading->context->catalog, span_from(want->model));
	if (reading->ask->entry) {
		reading->ask->mode = reading->ask->entry->chat;
		return 0;
	}
	(void)text_escape(span_from(want->model), escaped, sizeof escaped);
	err = ask_refuse(reading->refusal, 404, INVALID, "The model `%s` does not exist",
	                 escaped);
	reading->refusal->code = "model_not_found";
	return err;
}

static int
read_number(struct reading *reading, const char *name, json_int_t min, json_int_t max,
            uint32_t *ret_number)
{
	const json_t *value = json_object_get(reading->root, name);

	if (!value || json_is_null(value))
		return 0;
	if (!json_is_integer(value) || json_integer_value(value) < min ||
	    json_integer_value(value) > max)
		return REFUSE(reading,
		              "Invalid value for '%s': expected an integer from %lld to "
		              "%lld.",
		              name, (long long)min, (long long)max);
	*ret_number = (uint32_t)json_integer_value(value);
	return 0;
}

static int
read_wishes(struct reading *reading)
{
	const json_t *options = json_object_get(reading->root, "stream_options");
	const json_t *choice = json_object_get(reading->root, "tool_choice");
	const json_t *tools = json_object_get(reading->root, "tools");
	const json_t *function = json_object_get(choice, "function");
	struct ask_want *want = &reading->ask->want;
	const char *name;
	int err;

	want->stream = json_is_true(json_object_get(reading->root, "stream"));
	want->include_usage = json_is_true(json_object_get(options, "include_usage"));
	if (options && !json_is_null(options) && !want->stream)
		return REFUSE(reading,
		              "The 'stream_options' parameter is only allowed when "
		              "'stream' is enabled.");
	want->choices = 1;
	want->output_max = OUTPUT_UNSAID;
	err = read_number(reading, "n", 1, 8, &want->choices);
	if (err == 0)
		err = read_number(reading, "max_tokens", 1, OUTPUT_LIMIT,
		                  &want->output_max);
	if (err == 0)
		err = read_number(reading, "max_completion_tokens", 1, OUTPUT_LIMIT,
		                  &want->output_max);
	if (err < 0)
		return err;
	if (choice && json_array_size(tools) == 0)
		return REFUSE(
			reading,
			"'tool_choice' is only allowed when 'tools' are specified.");
	if (json_is_string(choice) && strcmp(json_string_value(choice), "required") == 0)
		function = json_object_get(json_array_get(tools, 0), "function");
	name = json_string_value(json_object_get(function, "name"));
	if (!name)
		return 0;
	want->answer = ASK_ANSWER_TOOL;
	snprintf(want->tool, ASK_NAME_SIZE, "%.*s", ASK_NAME_SIZE - 1, name);
	return 0;
}

static int
read_cache_options(struct reading *reading)
{
	const json_t *options = json_object_get(reading->root, "prompt_cache_options");
	const json_t *retention =
		json_object_get(reading->root, "prompt_cache_retention");
	const char *mode = json_string_value(json_object_get(options, "mode"));
	const char *ttl = json_string_value(json_object_get(options, "ttl"));
	const char *keep = json_string_value(retention);

	reading->marker = CACHE_MARKER_30M;
	if (reading->ask->mode != CACHE_MODE_BREAKPOINTS) {
		if (options)
			return REFUSE(reading,
			              "Unsupported parameter: 'prompt_cache_options' is "
			              "not supported with this model.");
		reading->marker = keep && strcmp(keep, "24h") == 0 ? CACHE_MARKER_24H
		                                                   : CACHE_MARKER_5M;
		return 0;
	}
	if (retention && ttl)
		return REFUSE(reading,
		              "'prompt_cache_retention' cannot be used together with "
		              "'prompt_cache_options.ttl'.");
	if (ttl && strcmp(ttl, "12h") == 0)
		reading->marker = CACHE_MARKER_12H;
	else if (ttl && strcmp(ttl, "30m") != 0)
		return REFUSE(reading, "Invalid value for 'prompt_cache_options.ttl'.");
	reading->explicit_only = mode && strcmp(mode, "explicit") == 0;
	return 0;
}

static void
set_scope(struct reading *reading)
{
	const struct span texts[] = {
		span_from("openai"),
		span_from(reading->context->key->workspace),
		span_from(reading->ask->want.model),
		body_text(reading->body, json_object_get(reading->root, "service_tier")),
		body_text(reading->body,
		          json_object_get(reading->root, "prompt_cache_key")),
		body_text(reading->body, json_object_get(reading->root, "cache_salt")),
		span_from(reading->explicit_only ? "explicit" : "implicit"),
	};

	reading->ask->scope = ask_scope(texts, ARRAY_SIZE(texts));
}

/* --- the prompt -------------------------------------------------------------------- */

static int
dump(struct reading *reading, const json_t *value, const char *without,
     struct span *ret_text)
{
	return body_dump_into(reading->body, value, without, &reading->text, ret_text);
}

static int
setting(struct reading *reading, const char *name)
{
	const json_t *value = json_object_get(reading->root, name);
	struct span text;
	int err;

	if (!value || json_is_null(value))
		return 0;
	err = dump(reading, value, NULL, &text);
	if (err == 0)
		prompt_setting(&reading->ask->prompt, name, text);
	return err;
}

static int
read_tools(struct reading *reading)
{
	static const char *const names[] = { "parallel_tool_calls", "response_format",
		                             "reasoning_effort", "verbosity" };
	const json_t *tools = json_object_get(reading->root, "tools");
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(names) && err == 0; i++)
		err = setting(reading, names[i]);
	for (size_t i = 0; i < json_array_size(tools) && err == 0; i++) {
		struct span json;

		err = dump(reading, json_array_get(tools, i), NULL, &json);
		if (err < 0)
			return err;
		prompt_content(&reading->ask->prompt, 'f', json);
		(void)prompt_close(&reading->ask->prompt, CACHE_BLOCK_PLAIN, 0);
	}
	return err;
}

static int
read_part(struct reading *reading, const json_t *part, size_t message)
{
	const json_t *breakpoint = json_object_get(part, "prompt_cache_breakpoint");
	const json_t *text = json_object_get(part, "text");
	struct prompt *prompt = &reading->ask->prompt;
	struct span json;
	uint32_t index;
	int err;

	if (!json_is_string(json_object_get(part, "type")))
		return REFUSE(reading,
		              "Missing required parameter: 'messages[%zu].content.type'.",
		              message);
	if (breakpoint && reading->ask->mode != CACHE_MODE_BREAKPOINTS)
		return REFUSE(reading,
		              "Unsupported parameter: 'prompt_cache_breakpoint' is not "
		              "supported with this model.");
	if (json_is_string(text)) {
		prompt_content(prompt, 't', body_text(reading->body, text));
	} else {
		err = dump(reading, part, "prompt_cache_breakpoint", &json);
		if (err < 0)
			return err;
		prompt_content(prompt, 'j', json);
	}
	index = prompt_close(prompt, CACHE_BLOCK_PLAIN, 0);
	if (breakpoint && prompt->error == 0) {
		prompt->blocks[index].marker = reading->marker;
		reading->breakpoints++;
	}
	return 0;
}

static int
read_content(struct reading *reading, const json_t *content, size_t message)
{
	if (!content || json_is_null(content))
		return 0;
	if (json_is_string(content)) {
		prompt_content(&reading->ask->prompt, 't',
		               body_text(reading->body, content));
		(void)prompt_close(&reading->ask->prompt, CACHE_BLOCK_PLAIN, 0);
		return 0;
	}
	if (!json_is_array(content))
		return REFUSE(reading,
		              "Invalid type for 'messages[%zu].content': expected a "
		              "string or an array of objects.",
		              message);
	for (size_t i = 0; i < json_array_size(content); i++) {
		int err = read_part(reading, json_array_get(content, i), message);

		if (err < 0)
			return err;
	}
	return 0;
}

static const char *
role_of(const struct reading *reading, size_t index)
{
	const char *role = json_string_value(
		json_object_get(json_array_get(reading->messages, index), "role"));

	return role ? role : "";
}

static bool
is_developer(const char *role)
{
	return strcmp(role, "developer") == 0 || strcmp(role, "system") == 0;
}

static int
read_message(struct reading *reading, size_t index)
{
	static const char *const roles[] = { "system",    "developer", "user",
		                             "assistant", "tool",      "function" };
	const json_t *message = json_array_get(reading->messages, index);
	const json_t *calls = json_object_get(message, "tool_calls");
	const char *role = role_of(reading, index);
	struct prompt *prompt = &reading->ask->prompt;
	bool known = false;
	struct span json;
	int err;

	for (size_t i = 0; i < ARRAY_SIZE(roles); i++)
		known = known || strcmp(role, roles[i]) == 0;
	if (!known)
		return REFUSE(reading, "Invalid value for 'messages[%zu].role'.", index);
	if (strcmp(role, "user") == 0)
		reading->question = body_last_text(reading->body,
		                                   json_object_get(message, "content"));
	prompt_setting(prompt, "role", span_from(role));
	err = read_content(reading, json_object_get(message, "content"), index);
	if (err < 0 || !calls)
		return err;
	err = dump(reading, calls, NULL, &json);
	if (err < 0)
		return err;
	prompt_content(prompt, 'c', json);
	(void)prompt_close(prompt, CACHE_BLOCK_PLAIN, 0);
	return 0;
}

/* Whether entries may end where this message ends. */
static bool
is_eligible(const struct reading *reading, size_t index, size_t developers)
{
	const char *role = role_of(reading, index);

	if (index < developers)
		return index + 1 == developers;
	if (strcmp(role, "tool") == 0)
		return strcmp(role_of(reading, index + 1), "tool") != 0;
	return strcmp(role, "user") == 0;
}

/* Sets where lookups look and where the implicit entry goes.  `ends[i]` is the number of
 * blocks up to the end of message i. */
static int
place_breakpoints(struct reading *reading, const uint32_t *ends)
{
	struct cache_block *blocks = reading->ask->prompt.blocks;
	size_t count = json_array_size(reading->messages), developers = 0, visited = 0;
	uint32_t limit = reading->explicit_only ? 4 : 3;
	bool latest = true;

	if (reading->breakpoints > limit)
		return REFUSE(reading, "At most %u cache breakpoints may be written.",
		              limit);
	if (reading->explicit_only && reading->breakpoints == 0)
		return 0; /* no marker and no look: nothing is cached */
	while (developers < count && is_developer(role_of(reading, developers)))
		developers++;
	for (size_t i = count; i-- > 0;) {
		struct cache_block *last = ends[i] > 0 ? &blocks[ends[i] - 1] : NULL;

		if (!last || !is_eligible(reading, i, developers))
			continue;
		if (latest && !reading->explicit_only &&
		    last->marker == CACHE_MARKER_NONE)
			last->marker = reading->marker;
		latest = false;
		if (visited++ < EARLIER_ENDS || i + 1 == developers)
			last->look = true;
	}
	return 0;
}

static int
read_messages(struct reading *reading, uint32_t *ends)
{
	size_t count = json_array_size(reading->messages);
	struct prompt *prompt = &reading->ask->prompt;
	int err;

	for (size_t i = 0; i < count; i++) {
		err = read_message(reading, i);
		if (err < 0)
			return err;
		ends[i] = prompt->count;
	}
	err = prompt_finish(prompt);
	if (err == ERR_LIMIT)
		return REFUSE(reading, "'messages' has too many parts.");
	if (err < 0)
		return err;
	reading->ask->want.digest = ask_digest(reading->question);
	if (reading->ask->mode == CACHE_MODE_BREAKPOINTS)
		return place_breakpoints(reading, ends);
	for (uint32_t i = 0; i < prompt->count; i++)
		prompt->blocks[i].marker =
			reading->marker; /* the lifetime of the steps */
	return 0;
}

/* Requests with the same beginning meet on the same machine; a key makes the meeting
 * likelier, here: certain, up to its rate. */
static void
set_routing(struct reading *reading)
{
	const struct prompt *prompt = &reading->ask->prompt;
	uint64_t first = prompt->count > 0 ? prompt->blocks[0].hash.low : 0;

	reading->ask->routing = reading->ask->scope ^ first;
}

static int
read_request(struct reading *reading)
{
	uint32_t *ends;
	size_t count;
	int err;

	err = check_members(reading);
	if (err == 0)
		err = read_model(reading);
	if (err == 0)
		err = read_wishes(reading);
	if (err == 0)
		err = read_cache_options(reading);
	if (err < 0)
		return err;
	reading->messages = json_object_get(reading->root, "messages");
	count = json_array_size(reading->messages);
	if (!json_is_array(reading->messages) || count == 0)
		return REFUSE(reading,
		              "Invalid 'messages': empty array. Expected an array with "
		              "minimum length 1.");
	set_scope(reading);
	prompt_init(&reading->ask->prompt, reading->ask->mode == CACHE_MODE_IMPLICIT
	                                           ? reading->ask->entry->step_tokens
	                                           : 0);
	err = read_tools(reading);
	if (err < 0)
		return err;
	ends = calloc(count, sizeof *ends);
	if (!ends)
		return ERR_MEMORY;
	err = read_messages(reading, ends);
	free(ends);
	if (err == 0)
		set_routing(reading);
	return err;
}

int
openai_read(const struct body *body, const struct ask_context *context,
            struct ask *ret_ask, struct ask_refusal *ret_refusal)
{
	struct ask ask = { .want = { .dialect = ASK_OPENAI } };
	struct reading reading = { .body = body,
		                   .context = context,
		                   .root = body->root,
		                   .ask = &ask,
		                   .refusal = ret_refusal,
		                   .text = BUFFER_INIT(BUFFER_SIZE_DEFAULT * 2) };
	int err;

	err = read_request(&reading);
	buffer_fini(&reading.text);
	if (err < 0)
		ask_fini(&ask);
	else
		*ret_ask = ask;
	return err;
}
