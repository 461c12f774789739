#include "common/options.h"

#include "common/text.h"

#include <stdio.h>

#define WORD_MAX 40 /* longer words have no near neighbours worth a hint */

static void *
field(void *target, const struct option_spec *spec)
{
	return (char *)target + spec->offset;
}

static int
store_unsigned(const struct option_spec *spec, struct span text, uint64_t *ret_value)
{
	uint64_t value;
	int err = text_parse_unsigned(text, spec->max ? spec->max : UINT64_MAX, &value);

	if (err < 0)
		return err;
	if (value < spec->min)
		return ERR_LIMIT;
	*ret_value = value;
	return 0;
}

static int
store(const struct option_spec *spec, const char *text, void *target)
{
	switch (spec->kind) {
	case OPTION_FLAG:
		*(bool *)field(target, spec) = true;
		return 0;
	case OPTION_TEXT:
		*(const char **)field(target, spec) = text;
		return 0;
	case OPTION_UNSIGNED:
		return store_unsigned(spec, span_from(text), field(target, spec));
	case OPTION_DURATION:
		return text_parse_duration(span_from(text), field(target, spec));
	case OPTION_SIZE:
		return text_parse_size(span_from(text), field(target, spec));
	case OPTION_KIND_COUNT:
		break;
	}
	VERIFY(false);
}

static void
store_defaults(struct options_table table, void *target)
{
	for (size_t i = 0; i < table.count; i++) {
		const struct option_spec *spec = &table.specs[i];

		/* Two options for one field: one's default would undo the other. */
		for (size_t j = 0; j < i; j++)
			VERIFY(table.specs[j].offset != spec->offset);
		if (spec->value)
			VERIFY(store(spec, spec->value, target) == 0);
		else if (spec->kind == OPTION_FLAG)
			*(bool *)field(target, spec) = false;
		else if (spec->kind == OPTION_TEXT)
			*(const char **)field(target, spec) = NULL;
		else
			*(uint64_t *)field(target, spec) = 0;
	}
}

static unsigned
edit_distance(const char *a, const char *b)
{
	size_t a_len = strlen(a), b_len = strlen(b);
	unsigned row[WORD_MAX + 1];

	if (a_len > WORD_MAX || b_len > WORD_MAX)
		return WORD_MAX;
	for (size_t j = 0; j <= b_len; j++)
		row[j] = (unsigned)j;
	for (size_t i = 1; i <= a_len; i++) {
		unsigned corner = row[0];

		row[0] = (unsigned)i;
		for (size_t j = 1; j <= b_len; j++) {
			unsigned replaced = corner + (a[i - 1] != b[j - 1]);

			corner = row[j];
			row[j] = MIN(replaced, MIN(row[j], row[j - 1]) + 1);
		}
	}
	return row[b_len];
}

const char *
options_nearest(const char *word, const char *const *names, size_t count)
{
	const char *nearest = NULL;
	unsigned best = 3;

	for (size_t i = 0; i < count; i++) {
		unsigned distance = edit_distance(word, names[i]);

		if (distance < best && distance * 2 < strlen(word)) {
			best = distance;
			nearest = names[i];
		}
	}
	return nearest;
}

static const char *
nearest_option(struct options_table table, const char *word)
{
	const char *names[64];
	size_t count = MIN(table.count, ARRAY_SIZE(names));

	for (size_t i = 0; i < count; i++)
		names[i] = table.specs[i].name;
	return options_nearest(word, names, count);
}

static const struct option_spec *
find(struct options_table table, struct span name)
{
	for (size_t i = 0; i < table.count; i++)
		if (span_equals(name, span_from(table.specs[i].name)))
			return &table.specs[i];
	return NULL;
}

static int
refuse_unknown(struct options_table table, struct span name, struct options_error *reterr)
{
	char shown[WORD_MAX * 4 + 8];
	const char *nearest;

	text_escape(name, shown, sizeof shown);
	nearest = nearest_option(table, shown);
	if (nearest)
		snprintf(reterr->text, sizeof reterr->text,
		         "There is no option --%s. Did you mean --%s?", shown, nearest);
	else
		snprintf(reterr->text, sizeof reterr->text,
		         "There is no option --%s. See --help.", shown);
	return ERR_UNKNOWN_KEY;
}

/* "-x", which is no word either: a mistyped option must not pass for a file's name. */
static int
refuse_short(const char *word, struct options_error *reterr)
{
	char shown[WORD_MAX * 4 + 8];

	text_escape(span_from(word), shown, sizeof shown);
	snprintf(reterr->text, sizeof reterr->text,
	         "There is no option %s: options begin with two dashes. A word that "
	         "begins "
	         "with one goes behind --.",
	         shown);
	return ERR_UNKNOWN_KEY;
}

static int
refuse_value(const struct option_spec *spec, const char *value, int err,
             struct options_error *reterr)
{
	static const char *const wanted[OPTION_KIND_COUNT] = {
		[OPTION_UNSIGNED] = "a whole number",
		[OPTION_DURATION] = "a duration such as 250ms, 30s or 5m",
		[OPTION_SIZE] = "a size such as 64k or 8m",
	};
	char shown[96];

	text_escape(span_from(value), shown, sizeof shown);
	if (err == ERR_LIMIT && spec->kind == OPTION_UNSIGNED && spec->max == 0)
		snprintf(reterr->text, sizeof reterr->text,
		         "--%s takes a whole number of at least %llu, not \"%s\".",
		         spec->name, (unsigned long long)spec->min, shown);
	else if (err == ERR_LIMIT && spec->kind == OPTION_UNSIGNED)
		snprintf(reterr->text, sizeof reterr->text,
		         "--%s takes a whole number from %llu to %llu, not \"%s\".",
		         spec->name, (unsigned long long)spec->min,
		         (unsigned long long)spec->max, shown);
	else
		snprintf(reterr->text, sizeof reterr->text, "--%s takes %s, not \"%s\".",
		         spec->name, wanted[spec->kind] ? wanted[spec->kind] : "a value",
		         shown);
	return err;
}

/* Reads the option in argv[*at]; moves *at to its value if that is a word of its own. */
static int
parse_option(struct options_table table, int argc, char **argv, int *at, void *target,
             struct options_error *reterr)
{
	const char *word = argv[*at] + 2;
	const char *equals = strchr(word, '=');
	struct span name = { word, equals ? (size_t)(equals - word) : strlen(word) };
	const struct option_spec *spec = find(table, name);
	const char *value = equals ? equals + 1 : NULL;
	int err;

	if (!spec)
		return refuse_unknown(table, name, reterr);
	if (spec->kind == OPTION_FLAG && value) {
		snprintf(reterr->text, sizeof reterr->text, "--%s takes no value.",
		         spec->name);
		return ERR_MALFORMED;
	}
	if (spec->kind != OPTION_FLAG && !value) {
		if (*at + 1 >= argc) {
			snprintf(reterr->text, sizeof reterr->text,
			         "--%s needs a value: --%s %s.", spec->name, spec->name,
			         spec->placeholder ? spec->placeholder : "VALUE");
			return ERR_MALFORMED;
		}
		value = argv[++*at];
	}
	err = store(spec, value, target);
	return err < 0 ? refuse_value(spec, value, err, reterr) : 0;
}

/* -h is --help, where there is one. */
static int
parse_help(struct options_table table, void *target, struct options_error *reterr)
{
	const struct option_spec *spec = find(table, SPAN("help"));

	if (!spec || spec->kind != OPTION_FLAG)
		return refuse_short("-h", reterr);
	return store(spec, NULL, target);
}

int
options_parse(struct options_table table, int argc, char **argv, void *target,
              int *ret_positional, struct options_error *reterr)
{
	int positional = 0;
	bool ended = false;

	store_defaults(table, target);
	for (int i = 1; i < argc; i++) {
		int err;

		if (!ended && strcmp(argv[i], "--") == 0) {
			ended = true;
			continue;
		}
		if (ended || argv[i][0] != '-' || argv[i][1] == '\0') {
			argv[++positional] = argv[i];
			continue;
		}
		if (argv[i][1] == '-')
			err = parse_option(table, argc, argv, &i, target, reterr);
		else if (strcmp(argv[i], "-h") == 0)
			err = parse_help(table, target, reterr);
		else
			err = refuse_short(argv[i], reterr);
		if (err < 0)
			return err;
	}
	*ret_positional = positional;
	return 0;
}

void
options_help(struct options_table table, struct buffer *out)
{
	for (size_t i = 0; i < table.count; i++) {
		const struct option_spec *spec = &table.specs[i];
		char left[64];

		if (spec->hidden)
			continue;
		snprintf(left, sizeof left, "--%s%s%s", spec->name,
		         spec->placeholder ? " " : "",
		         spec->placeholder ? spec->placeholder : "");
		buffer_append_format(out, "  %-26s %s", left, spec->help);
		if (spec->value)
			buffer_append_format(out, " (default %s)", spec->value);
		buffer_append_byte(out, '\n');
	}
}
