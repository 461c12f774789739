#include "provider/settings.h"

#include "common/options.h"
#include "common/text.h"

#include <stdio.h>

enum kind {
	KIND_NUMBER,
	KIND_POSITIVE, /* the same without 0 */
	KIND_STATUS,   /* a number from 400 */
	KIND_SWITCH,
	KIND_CHOICE,
	KIND_FAULT, /* a choice whose words the fault model knows */
};

struct knob {
	const char *name;
	enum kind kind;
	uint64_t value;
	uint64_t max;
	const char *choices; /* words with one blank between them */
	const char *help;
};

static const struct knob knobs[SETTINGS_COUNT] = {
#define X(id, name, kind, value, max, choices, help) \
	{ name, KIND_##kind, value, max, choices, help },
	SETTINGS_LIST(X)
#undef X
};

/* The smallest number it takes. */
static uint64_t
min_of(const struct knob *knob)
{
	if (knob->kind == KIND_STATUS)
		return 400;
	return knob->kind == KIND_POSITIVE;
}

/* --- words ------------------------------------------------------------------------- */

/* The index-th word of a choice, or an empty span. */
static struct span
choice_word(const struct knob *knob, uint64_t index)
{
	const char *word = knob->choices;

	if (knob->kind == KIND_FAULT)
		return span_from(fault_text((enum fault)index));
	for (; index > 0; index--)
		word = strchr(word, ' ') + 1;
	return (struct span){ word, strcspn(word, " ") };
}

static int
choice_parse(const struct knob *knob, struct span text, uint64_t *ret_value)
{
	for (uint64_t i = 0; i <= knob->max; i++)
		if (span_equals(text, choice_word(knob, i))) {
			*ret_value = i;
			return 0;
		}
	return ERR_MALFORMED;
}

static int
refuse(const struct knob *knob, int err, struct settings_error *reterr)
{
	char words[160] = "";

	switch (knob->kind) {
	case KIND_NUMBER:
	case KIND_POSITIVE:
	case KIND_STATUS:
		snprintf(words, sizeof words, "a whole number from %llu to %llu",
		         (unsigned long long)min_of(knob), (unsigned long long)knob->max);
		break;
	case KIND_SWITCH:
		snprintf(words, sizeof words, "true or false");
		break;
	case KIND_CHOICE:
		snprintf(words, sizeof words, "one of: %s", knob->choices);
		break;
	case KIND_FAULT:
		snprintf(words, sizeof words,
		         "none or the name of a fault (see the manual)");
		break;
	}
	snprintf(reterr->text, sizeof reterr->text, "The knob %s must be %s.", knob->name,
	         words);
	return err;
}

static int
refuse_unknown(const char *name, struct settings_error *reterr)
{
	const char *names[SETTINGS_COUNT];
	const char *nearest;
	char escaped[80];

	for (int i = 0; i < SETTINGS_COUNT; i++)
		names[i] = knobs[i].name;
	nearest = options_nearest(name, names, SETTINGS_COUNT);
	(void)text_escape(span_from(name), escaped, sizeof escaped);
	snprintf(reterr->text, sizeof reterr->text, "There is no knob %s%s%s.", escaped,
	         nearest ? "; did you mean " : "", nearest ? nearest : "");
	return ERR_UNKNOWN_KEY;
}

/* --- values ------------------------------------------------------------------------ */

static int
parse(const struct knob *knob, struct span text, uint64_t *ret_value)
{
	uint64_t value;
	bool on;
	int err;

	switch (knob->kind) {
	case KIND_NUMBER:
	case KIND_POSITIVE:
	case KIND_STATUS:
		err = text_parse_unsigned(text, knob->max, &value);
		if (err < 0)
			return err;
		if (value < min_of(knob))
			return ERR_LIMIT;
		*ret_value = value;
		return 0;
	case KIND_SWITCH:
		if (text_parse_bool(text, &on) < 0)
			return ERR_MALFORMED;
		*ret_value = on;
		return 0;
	case KIND_CHOICE:
	case KIND_FAULT:
		break;
	}
	return choice_parse(knob, text, ret_value);
}

static int
parse_json(const struct knob *knob, const json_t *value, uint64_t *ret_value)
{
	json_int_t number;

	switch (knob->kind) {
	case KIND_NUMBER:
	case KIND_POSITIVE:
	case KIND_STATUS:
		if (!json_is_integer(value))
			return ERR_MALFORMED;
		number = json_integer_value(value);
		if (number < (json_int_t)min_of(knob) || (uint64_t)number > knob->max)
			return ERR_LIMIT;
		*ret_value = (uint64_t)number;
		return 0;
	case KIND_SWITCH:
		if (!json_is_boolean(value))
			return ERR_MALFORMED;
		*ret_value = json_is_true(value);
		return 0;
	case KIND_CHOICE:
	case KIND_FAULT:
		break;
	}
	if (!json_is_string(value))
		return ERR_MALFORMED;
	return choice_parse(knob, span_from(json_string_value(value)), ret_value);
}

/* What one knob cannot see. */
static int
check_together(const struct settings *settings, struct settings_error *reterr)
{
	uint64_t sum = 0;

	for (int i = SETTINGS_FAULT_BAD_REQUEST; i <= SETTINGS_FAULT_GARBAGE; i++)
		sum += settings->values[i];
	if (sum <= 1000)
		return 0;
	snprintf(reterr->text, sizeof reterr->text,
	         "The knobs fault_..._permille add up to %llu; at most 1000 are allowed.",
	         (unsigned long long)sum);
	return ERR_LIMIT;
}

void
settings_init(struct settings *settings)
{
	for (int i = 0; i < SETTINGS_COUNT; i++)
		settings->values[i] = knobs[i].value;
}

const char *
settings_name(enum settings_id id)
{
	return knobs[id].name;
}

void
settings_help(enum settings_id id, char ret_text[SETTINGS_HELP_SIZE])
{
	const struct knob *knob = &knobs[id];
	struct span word;

	switch (knob->kind) {
	case KIND_NUMBER:
	case KIND_POSITIVE:
	case KIND_STATUS:
		snprintf(ret_text, SETTINGS_HELP_SIZE, "%s (%llu)", knob->help,
		         (unsigned long long)knob->value);
		break;
	case KIND_SWITCH:
		snprintf(ret_text, SETTINGS_HELP_SIZE, "%s (%s)", knob->help,
		         knob->value ? "true" : "false");
		break;
	case KIND_CHOICE:
		word = choice_word(knob, knob->value);
		snprintf(ret_text, SETTINGS_HELP_SIZE, "%s: %s (%.*s)", knob->help,
		         knob->choices, (int)word.len, word.data);
		break;
	case KIND_FAULT:
		word = choice_word(knob, knob->value);
		snprintf(ret_text, SETTINGS_HELP_SIZE, "%s (%.*s)", knob->help,
		         (int)word.len, word.data);
		break;
	}
}

int
settings_set(struct settings *settings, enum settings_id id, struct span text,
             struct settings_error *reterr)
{
	struct settings next = *settings;
	int err = parse(&knobs[id], text, &next.values[id]);

	if (err < 0)
		return refuse(&knobs[id], err, reterr);
	err = check_together(&next, reterr);
	if (err < 0)
		return err;
	*settings = next;
	return 0;
}

static bool
is_skipped(const char *name, const char *const *skip)
{
	for (; skip && *skip; skip++)
		if (strcmp(name, *skip) == 0)
			return true;
	return false;
}

static int
find(const char *name)
{
	for (int i = 0; i < SETTINGS_COUNT; i++)
		if (strcmp(name, knobs[i].name) == 0)
			return i;
	return -1;
}

int
settings_set_json(struct settings *settings, const json_t *object,
                  const char *const *skip, struct settings_error *reterr)
{
	struct settings next = *settings;
	const char *name;
	json_t *value;
	int err;

	if (!json_is_object(object)) {
		snprintf(
			reterr->text, sizeof reterr->text,
			"The knobs must be one JSON object, such as {\"job_ms\": 2000}.");
		return ERR_MALFORMED;
	}
	json_object_foreach((json_t *)(uintptr_t)object, name, value)
	{
		int id = find(name);

		if (id < 0 && is_skipped(name, skip))
			continue;
		if (id < 0)
			return refuse_unknown(name, reterr);
		err = parse_json(&knobs[id], value, &next.values[id]);
		if (err < 0)
			return refuse(&knobs[id], err, reterr);
	}
	err = check_together(&next, reterr);
	if (err < 0)
		return err;
	*settings = next;
	return 0;
}

json_t *
settings_to_json(const struct settings *settings)
{
	json_t *object = json_object();

	for (int i = 0; i < SETTINGS_COUNT; i++) {
		const struct knob *knob = &knobs[i];
		uint64_t value = settings->values[i];
		struct span word;
		json_t *json;

		switch (knob->kind) {
		case KIND_NUMBER:
		case KIND_POSITIVE:
		case KIND_STATUS:
			json = json_integer((json_int_t)value);
			break;
		case KIND_SWITCH:
			json = json_boolean(value);
			break;
		default:
			word = choice_word(knob, value);
			json = json_stringn(word.data, word.len);
			break;
		}
		json_object_set_new(object, knob->name, json);
	}
	return object;
}

/* --- the model's ------------------------------------------------------------------- */

static uint32_t
small(const struct settings *settings, enum settings_id id)
{
	return (uint32_t)settings->values[id]; /* every max fits in 32 bits */
}

static void
fill_limits(const struct settings *settings, struct limit_knobs *limits)
{
	*limits = (struct limit_knobs){
		.per_minute = { [LIMIT_BUCKET_REQUESTS] = small(settings, SETTINGS_RPM),
		                [LIMIT_BUCKET_INPUT] = small(settings, SETTINGS_ITPM),
		                [LIMIT_BUCKET_OUTPUT] = small(settings, SETTINGS_OTPM) },
		.reads_charged = small(settings, SETTINGS_READS_CHARGED),
		.estimate_full = small(settings, SETTINGS_ESTIMATE_FULL),
		.refusals_counted = small(settings, SETTINGS_REFUSALS_COUNTED),
		.spend_cap = small(settings, SETTINGS_SPEND_CAP),
		.acceleration_floor = small(settings, SETTINGS_ACCELERATION_FLOOR),
		.acceleration_permille = small(settings, SETTINGS_ACCELERATION_PERMILLE),
	};
	for (int i = 0; i < LIMIT_BUCKET_COUNT; i++)
		limits->burst_ms[i] = small(settings, SETTINGS_BURST_MS);
}

void
settings_to_engine(const struct settings *settings, struct engine_config *config)
{
	config->cache.knobs = (struct cache_knobs){
		.off = !small(settings, SETTINGS_CACHING),
		.readable_at_end = small(settings, SETTINGS_READABLE),
		.lag = (enum cache_lag)small(settings, SETTINGS_VISIBILITY_LAG),
		.lag_us = settings->values[SETTINGS_VISIBILITY_LAG_MS] * 1000,
		.ttl_permille = small(settings, SETTINGS_TTL_PERMILLE),
		.grace_us = settings->values[SETTINGS_GRACE_MS] * 1000,
		.miss_permille = small(settings, SETTINGS_MISS_PERMILLE),
		.evict_permille = small(settings, SETTINGS_EVICT_PERMILLE),
		.unknown_permille = small(settings, SETTINGS_UNKNOWN_PERMILLE),
		.shards = MAX(1, small(settings, SETTINGS_SHARDS)),
		.shard_rpm = small(settings, SETTINGS_SHARD_RPM),
	};
	config->timing = (struct timing_knobs){
		.latency_us = small(settings, SETTINGS_LATENCY_MS) * 1000,
		.latency_permille = small(settings, SETTINGS_LATENCY_SPREAD),
		.prefill_per_second = small(settings, SETTINGS_PREFILL),
		.decode_per_second = small(settings, SETTINGS_DECODE),
		.job_us = settings->values[SETTINGS_JOB_MS] * 1000,
		.job_permille = small(settings, SETTINGS_JOB_SPREAD),
	};
	config->fault.next = (enum fault)small(settings, SETTINGS_FAULT_NEXT);
	config->fault.next_count = small(settings, SETTINGS_FAULT_NEXT_COUNT);
	for (enum fault fault = FAULT_BAD_REQUEST; fault < FAULT_COUNT; fault++)
		config->fault.permille[fault] =
			small(settings, SETTINGS_FAULT_BAD_REQUEST +
		                                (unsigned)(fault - FAULT_BAD_REQUEST));
	config->fault_status = (int)small(settings, SETTINGS_STATUS);
	config->retry_after_ms = small(settings, SETTINGS_RETRY_AFTER_MS);
	for (int class = 0; class < ENGINE_CLASSES_MAX; class ++)
		fill_limits(settings, &config->limits[class]);
}
