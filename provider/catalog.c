#include "provider/catalog.h"

#include "common/text.h"

#include <stdio.h>

#define FROM_KNOB UINT32_MAX

/* Minimum of a cacheable prefix by model, and how caching works in chat completions. */
static const struct {
	const char *name;
	const char *class;
	uint32_t minimum_tokens;
	enum cache_mode chat;
	bool strips_thinking;
} builtin_models[] = {
	{ "claude-fable-5*", "fable", 512, CACHE_MODE_IMPLICIT, false },
	{ "claude-mythos-preview*", "fable", 2048, CACHE_MODE_IMPLICIT, false },
	{ "claude-mythos-5*", "fable", 512, CACHE_MODE_IMPLICIT, false },
	{ "claude-opus-4-5*", "opus", 4096, CACHE_MODE_IMPLICIT, false },
	{ "claude-opus-4-6*", "opus", 4096, CACHE_MODE_IMPLICIT, false },
	{ "claude-opus-4-7*", "opus", 2048, CACHE_MODE_IMPLICIT, false },
	{ "claude-opus-4-8*", "opus", 1024, CACHE_MODE_IMPLICIT, false },
	{ "claude-opus-4*", "opus", 1024, CACHE_MODE_IMPLICIT, true },
	{ "claude-opus-5*", "opus", 512, CACHE_MODE_IMPLICIT, false },
	{ "claude-sonnet-5-5*", "sonnet", 512, CACHE_MODE_IMPLICIT, false },
	{ "claude-sonnet-4-5*", "sonnet", 1024, CACHE_MODE_IMPLICIT, true },
	{ "claude-sonnet-4-6*", "sonnet", 1024, CACHE_MODE_IMPLICIT, false },
	{ "claude-sonnet-4*", "sonnet", 1024, CACHE_MODE_IMPLICIT, true },
	{ "claude-sonnet-*", "sonnet", 1024, CACHE_MODE_IMPLICIT, false },
	{ "claude-haiku-4-5*", "haiku", 4096, CACHE_MODE_IMPLICIT, true },
	{ "claude-3-5-haiku*", "haiku-3", 2048, CACHE_MODE_IMPLICIT, true },
	{ "claude-3-haiku*", "haiku-3", 2048, CACHE_MODE_IMPLICIT, true },
	{ "gpt-5.6*", "gpt", 1024, CACHE_MODE_BREAKPOINTS, false },
	{ "gpt-6*", "gpt", 1024, CACHE_MODE_BREAKPOINTS, false },
	{ "gpt-*", "gpt", 1024, CACHE_MODE_IMPLICIT, false },
	{ "*", "other", 1024, CACHE_MODE_IMPLICIT, false },
};

/* Cache reads are free of input limits except for the oldest Haiku; at OpenAI one bucket
 * takes cached tokens and output like all others. */
static const struct {
	const char *name;
	bool reads_charged;
	bool output_joined;
} builtin_classes[] = {
	{ "fable", false, false }, { "opus", false, false },   { "sonnet", false, false },
	{ "haiku", false, false }, { "haiku-3", true, false }, { "gpt", true, true },
	{ "other", false, false },
};

static const struct catalog_key everybody = { .workspace = "default",
	                                      .account = "default" };

static uint32_t
class_index(const struct catalog *catalog, const char *name)
{
	for (uint32_t i = 0; i < catalog->classes_count; i++)
		if (strcmp(catalog->classes[i].name, name) == 0)
			return i;
	return UINT32_MAX;
}

static void
add_class(struct catalog *catalog, const char *name, bool reads_charged,
          bool output_joined)
{
	struct catalog_class *class = &catalog->classes[catalog->classes_count++];

	VERIFY(catalog->classes_count <= ENGINE_CLASSES_MAX);
	*class = (struct catalog_class){ .reads_charged = reads_charged,
		                         .output_joined = output_joined };
	snprintf(class->name, sizeof class->name, "%s", name);
	for (int i = 0; i < LIMIT_BUCKET_COUNT; i++)
		class->per_minute[i] = FROM_KNOB;
}

void
catalog_init(struct catalog *catalog)
{
	*catalog = (struct catalog){ 0 };
	for (size_t i = 0; i < ARRAY_SIZE(builtin_classes); i++)
		add_class(catalog, builtin_classes[i].name,
		          builtin_classes[i].reads_charged,
		          builtin_classes[i].output_joined);
	for (size_t i = 0; i < ARRAY_SIZE(builtin_models); i++) {
		struct catalog_model *model = &catalog->models[catalog->models_count++];

		*model = (struct catalog_model){
			.class = class_index(catalog, builtin_models[i].class),
			.minimum_tokens = builtin_models[i].minimum_tokens,
			.step_tokens = 128,
			.chat = builtin_models[i].chat,
			.strips_thinking = builtin_models[i].strips_thinking,
		};
		snprintf(model->name, sizeof model->name, "%s", builtin_models[i].name);
	}
}

/* --- from a file ------------------------------------------------------------------- */

/* A list of the document being read, for messages. */
struct cursor {
	const char *list;
	size_t index;
	const json_t *entry;
	struct settings_error *reterr;
};

static int
refuse(const struct cursor *cursor, const char *what, int err)
{
	snprintf(cursor->reterr->text, sizeof cursor->reterr->text,
	         "In %s, entry %zu: %s.", cursor->list, cursor->index + 1, what);
	return err;
}

static int
check_names(const struct cursor *cursor, const char *const *allowed)
{
	const char *name;
	json_t *value;

	if (!json_is_object(cursor->entry))
		return refuse(cursor, "must be an object", ERR_MALFORMED);
	json_object_foreach((json_t *)(uintptr_t)cursor->entry, name, value)
	{
		size_t i = 0;

		while (allowed[i] && strcmp(allowed[i], name) != 0)
			i++;
		if (!allowed[i])
			return refuse(cursor, "has a member that is not known",
			              ERR_UNKNOWN_KEY);
	}
	return 0;
}

/* Reads a text member into `ret_text`; one that is missing leaves it as it is, if it
 * may be missing. */
static int
read_text(const struct cursor *cursor, const char *name, bool needed, char *ret_text,
          size_t size)
{
	const json_t *value = json_object_get(cursor->entry, name);
	char what[96];

	if (!value && !needed)
		return 0;
	snprintf(what, sizeof what, "\"%s\" must be a text of 1 to %zu bytes", name,
	         size - 1);
	if (!json_is_string(value) || json_string_length(value) == 0)
		return refuse(cursor, what, ERR_MALFORMED);
	if (json_string_length(value) >= size)
		return refuse(cursor, what, ERR_LIMIT);
	snprintf(ret_text, size, "%s", json_string_value(value));
	return 0;
}

static int
read_number(const struct cursor *cursor, const char *name, uint32_t *ret_number)
{
	const json_t *value = json_object_get(cursor->entry, name);
	char what[96];

	if (!value)
		return 0;
	snprintf(what, sizeof what, "\"%s\" must be a whole number from 0 to %u", name,
	         LIMIT_MODEL_PER_MINUTE_MAX);
	if (!json_is_integer(value))
		return refuse(cursor, what, ERR_MALFORMED);
	if (json_integer_value(value) < 0 ||
	    json_integer_value(value) > LIMIT_MODEL_PER_MINUTE_MAX)
		return refuse(cursor, what, ERR_LIMIT);
	*ret_number = (uint32_t)json_integer_value(value);
	return 0;
}

static int
read_switch(const struct cursor *cursor, const char *name, bool *ret_on)
{
	const json_t *value = json_object_get(cursor->entry, name);

	if (!value)
		return 0;
	if (!json_is_boolean(value))
		return refuse(cursor, "a switch must be true or false", ERR_MALFORMED);
	*ret_on = json_is_true(value);
	return 0;
}

/* The index of the member's word in `words`; a missing one changes nothing. */
static int
read_word(const struct cursor *cursor, const char *name, const char *const *words,
          int count, int *ret_index)
{
	const json_t *value = json_object_get(cursor->entry, name);
	char what[96];

	if (!value)
		return 0;
	for (int i = 0; i < count; i++)
		if (json_is_string(value) &&
		    strcmp(json_string_value(value), words[i]) == 0) {
			*ret_index = i;
			return 0;
		}
	snprintf(what, sizeof what, "\"%s\" must be %s, %s or %s", name, words[0],
	         words[1], words[2]);
	return refuse(cursor, what, ERR_MALFORMED);
}

static int
load_class(struct catalog *catalog, const struct cursor *cursor)
{
	static const char *const allowed[] = { "name", "rpm",           "itpm",
		                               "otpm", "reads_charged", "output_joined",
		                               NULL };
	static const char *const limits[LIMIT_BUCKET_COUNT] = { "rpm", "itpm", "otpm" };
	char name[CATALOG_NAME_SIZE];
	uint32_t index;
	int err;

	err = check_names(cursor, allowed);
	if (err == 0)
		err = read_text(cursor, "name", true, name, sizeof name);
	if (err < 0)
		return err;
	index = class_index(catalog, name);
	if (index == UINT32_MAX) {
		if (catalog->classes_count == ENGINE_CLASSES_MAX)
			return refuse(cursor, "there are too many classes", ERR_LIMIT);
		index = catalog->classes_count;
		add_class(catalog, name, false, false);
	}
	for (int i = 0; i < LIMIT_BUCKET_COUNT && err == 0; i++)
		err = read_number(cursor, limits[i],
		                  &catalog->classes[index].per_minute[i]);
	if (err == 0)
		err = read_switch(cursor, "reads_charged",
		                  &catalog->classes[index].reads_charged);
	if (err == 0)
		err = read_switch(cursor, "output_joined",
		                  &catalog->classes[index].output_joined);
	return err;
}

static int
load_model(struct catalog *catalog, const struct cursor *cursor)
{
	static const char *const allowed[] = {
		"name", "class",    "minimum_tokens",  "step_tokens",
		"chat", "thinking", "strips_thinking", NULL
	};
	static const char *const modes[] = { "markers", "breakpoints", "implicit" };
	static const char *const tiers[] = { "tools", "system", "messages" };
	struct catalog_model model = { .minimum_tokens = 1024, .step_tokens = 128 };
	char class[CATALOG_NAME_SIZE] = "other";
	int chat = CACHE_MODE_IMPLICIT, thinking = CATALOG_TIER_TOOLS;
	int err;

	if (catalog->models_count == CATALOG_MODELS_MAX)
		return refuse(cursor, "there are too many models", ERR_LIMIT);
	err = check_names(cursor, allowed);
	if (err == 0)
		err = read_text(cursor, "name", true, model.name, sizeof model.name);
	if (err == 0)
		err = read_text(cursor, "class", false, class, sizeof class);
	if (err == 0)
		err = read_number(cursor, "minimum_tokens", &model.minimum_tokens);
	if (err == 0)
		err = read_number(cursor, "step_tokens", &model.step_tokens);
	if (err == 0)
		err = read_word(cursor, "chat", modes, CACHE_MODE_COUNT, &chat);
	if (err == 0)
		err = read_word(cursor, "thinking", tiers, CATALOG_TIER_COUNT, &thinking);
	if (err == 0)
		err = read_switch(cursor, "strips_thinking", &model.strips_thinking);
	if (err < 0)
		return err;
	model.class = class_index(catalog, class);
	if (model.class == UINT32_MAX)
		return refuse(cursor, "names a class that \"classes\" does not list",
		              ERR_UNKNOWN_KEY);
	if (model.step_tokens == 0)
		return refuse(cursor, "\"step_tokens\" must be at least 1", ERR_LIMIT);
	model.chat = (enum cache_mode)chat;
	model.thinking = (enum catalog_tier)thinking;
	catalog->models[catalog->models_count++] = model;
	return 0;
}

static int
load_key(struct catalog *catalog, const struct cursor *cursor)
{
	static const char *const allowed[] = { "key", "workspace", "account", NULL };
	struct catalog_key key = everybody;
	int err;

	if (catalog->keys_count == CATALOG_KEYS_MAX)
		return refuse(cursor, "there are too many keys", ERR_LIMIT);
	err = check_names(cursor, allowed);
	if (err == 0)
		err = read_text(cursor, "key", true, key.key, sizeof key.key);
	if (err == 0)
		err = read_text(cursor, "workspace", false, key.workspace,
		                sizeof key.workspace);
	if (err == 0)
		err = read_text(cursor, "account", false, key.account,
		                sizeof key.account);
	if (err == 0)
		catalog->keys[catalog->keys_count++] = key;
	return err;
}

static int
load_list(struct catalog *catalog, const json_t *object, const char *name,
          int (*load_entry)(struct catalog *, const struct cursor *),
          struct settings_error *reterr)
{
	const json_t *list = json_object_get(object, name);
	struct cursor cursor = { .list = name, .reterr = reterr };

	if (!list)
		return 0;
	if (!json_is_array(list)) {
		snprintf(reterr->text, sizeof reterr->text, "\"%s\" must be a list.",
		         name);
		return ERR_MALFORMED;
	}
	for (; cursor.index < json_array_size(list); cursor.index++) {
		int err;

		cursor.entry = json_array_get(list, cursor.index);
		err = load_entry(catalog, &cursor);
		if (err < 0)
			return err;
	}
	return 0;
}

int
catalog_load(struct catalog *catalog, const json_t *object, struct settings_error *reterr)
{
	int err;

	err = load_list(catalog, object, "classes", load_class, reterr);
	if (err < 0)
		return err;
	if (json_object_get(object, "models"))
		catalog->models_count = 0;
	err = load_list(catalog, object, "models", load_model, reterr);
	if (err < 0)
		return err;
	return load_list(catalog, object, "keys", load_key, reterr);
}

/* --- questions --------------------------------------------------------------------- */

const struct catalog_model *
catalog_find_model(const struct catalog *catalog, struct span name)
{
	for (uint32_t i = 0; i < catalog->models_count; i++)
		if (text_matches(span_from(catalog->models[i].name), name))
			return &catalog->models[i];
	return NULL;
}

const struct catalog_key *
catalog_find_key(const struct catalog *catalog, struct span key)
{
	if (catalog->keys_count == 0)
		return &everybody;
	for (uint32_t i = 0; i < catalog->keys_count; i++)
		if (span_equals(key, span_from(catalog->keys[i].key)))
			return &catalog->keys[i];
	return NULL;
}

void
catalog_to_engine(const struct catalog *catalog, struct engine_config *config)
{
	for (uint32_t i = 0; i < catalog->classes_count; i++) {
		const struct catalog_class *class = &catalog->classes[i];

		if (class->reads_charged)
			config->limits[i].reads_charged = true;
		config->limits[i].output_joined = class->output_joined;
		for (int bucket = 0; bucket < LIMIT_BUCKET_COUNT; bucket++)
			if (class->per_minute[bucket] != FROM_KNOB)
				config->limits[i].per_minute[bucket] =
					class->per_minute[bucket];
	}
}
