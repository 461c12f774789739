#include "common/codec/envelope_field.h"

#include "common/codec/when.h"
#include "common/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define BETAS_MAX        16
#define BETA_LEN_MAX     64
#define SECONDS_TOP      UINT64_C(100000000000) /* smaller numbers are seconds, not ms */
#define TIME_MAX_MS      UINT64_C(99999999999999)
#define FAR_MS           (UINT64_C(31) * ENVELOPE_DAY_MS)
#define SUGGEST_DISTANCE 2
#define SHOWN            40

#define AT(member) offsetof(struct envelope, member)

/* clang-format off */
/* The order is that of docs/ENVELOPE.md. */
const struct envelope_field envelope_fields[] = {
	{ "upstream",     ENVELOPE_TYPE_NAME,     1, TEXT_SAID_MAX, NULL, NULL, 0, true, AT(upstream) },
	{ "body",         ENVELOPE_TYPE_BODY,     1, 0,     NULL, NULL, 0, true, AT(body) },
	{ "prefix",       ENVELOPE_TYPE_PREFIX,   1, TEXT_SAID_MAX, NULL, NULL, 0, true, AT(prefix) },
	{ "route",        ENVELOPE_TYPE_TEXT,     1, 64,    NULL, NULL, 0, true, AT(route) },
	{ "shared",       ENVELOPE_TYPE_SHARED,   1, CHAIN_SHARED_COUNT_MAX, NULL, NULL, 0, true, AT(shared) },
	{ "conversation", ENVELOPE_TYPE_TEXT,     1, 128,   NULL, NULL, 0, true, AT(conversation) },
	{ "betas",        ENVELOPE_TYPE_BETAS,    0, BETAS_MAX, NULL, NULL, 0, true, AT(betas) },
	{ "markers",      ENVELOPE_TYPE_WORD,     0, 0,     NULL, "auto|never", ENVELOPE_MARKERS_AUTO, true, AT(markers) },
	{ "handler",      ENVELOPE_TYPE_NAME,     1, 64,    NULL, NULL, 0, true, AT(handler) },
	{ "priority",     ENVELOPE_TYPE_WORD,     0, 0,     "normal", "high|normal|low", ENVELOPE_HIGH, true, AT(priority) },
	{ "not_before",   ENVELOPE_TYPE_TIME,     0, TIME_MAX_MS, NULL, NULL, 0, true, AT(not_before_ms) },
	{ "deadline",     ENVELOPE_TYPE_TIME,     0, TIME_MAX_MS, NULL, NULL, 0, true, AT(deadline_ms) },
	{ "timeout",      ENVELOPE_TYPE_DURATION, 1000, ENVELOPE_DAY_MS, "10m", NULL, 0, true, AT(timeout_ms) },
	{ "attempts",     ENVELOPE_TYPE_COUNT,    1, 100,   "3",  NULL, 0, true, AT(attempts) },
	{ "hold_max",     ENVELOPE_TYPE_DURATION, 0, ENVELOPE_DAY_MS, NULL, NULL, 0, true, AT(hold_max_ms) },
	{ "reply",        ENVELOPE_TYPE_NAME,     1, 128,   NULL, NULL, 0, true, AT(reply) },
	{ "ref",          ENVELOPE_TYPE_TEXT,     1, 256,   NULL, NULL, 0, true, AT(ref) },
	{ "traceparent",  ENVELOPE_TYPE_TRACE,    55, 55,   NULL, NULL, 0, true, AT(traceparent) },
	{ "put_prefix",   ENVELOPE_TYPE_NAME,     1, 64,    NULL, NULL, 0, true, AT(prefix) },
	{ "unique",       ENVELOPE_TYPE_TEXT,     1, 128,   NULL, NULL, 0, false, 0 },
	{ "group",        ENVELOPE_TYPE_TEXT,     1, 128,   NULL, NULL, 0, false, 0 },
	{ "tenant",       ENVELOPE_TYPE_NAME,     1, 64,    NULL, NULL, 0, false, 0 },
};
/* clang-format on */
const size_t envelope_fields_count = ARRAY_SIZE(envelope_fields);

void
envelope_field_defaults(struct envelope *envelope)
{
	*envelope = (struct envelope){
		.priority = ENVELOPE_NORMAL,
		.timeout_ms = ENVELOPE_TIMEOUT_MS,
		.attempts = ENVELOPE_ATTEMPTS,
		.hold_max_ms = ENVELOPE_HOLD_MS,
	};
}

const struct envelope_field *
envelope_field_find(struct span name)
{
	for (size_t i = 0; i < ARRAY_SIZE(envelope_fields); i++)
		if (span_equals(name, span_from(envelope_fields[i].name)))
			return &envelope_fields[i];
	return NULL;
}

int
envelope_field_refuse(struct envelope_error *error, const char *name, const char *format,
                      ...)
{
	va_list arguments;

	error->fault = ENVELOPE_MALFORMED;
	(void)snprintf(error->field, sizeof error->field, "%s", name ? name : "");
	va_start(arguments, format);
	(void)vsnprintf(error->text, sizeof error->text, format, arguments);
	va_end(arguments);
	return ERR_MALFORMED;
}

/* Letters to add, drop or change to get from `a` to `b`; at most 31 of each. */
static unsigned
distance(struct span a, struct span b)
{
	unsigned row[32], corner, above;

	if (a.len >= ARRAY_SIZE(row) || b.len >= ARRAY_SIZE(row))
		return UINT32_MAX;
	for (unsigned k = 0; k <= b.len; k++)
		row[k] = k;
	for (unsigned i = 1; i <= a.len; i++) {
		corner = row[0];
		row[0] = i;
		for (unsigned k = 1; k <= b.len; k++) {
			unsigned change =
				corner + (a.data[i - 1] != b.data[k - 1] ? 1 : 0);

			above = row[k];
			corner = above;
			row[k] = MIN(MIN(row[k - 1], above) + 1, change);
		}
	}
	return row[b.len];
}

int
envelope_field_unknown(struct span name, struct envelope_error *reterr)
{
	char shown[SHOWN];
	const char *nearest = NULL;
	unsigned best = SUGGEST_DISTANCE + 1;

	(void)text_escape(name, shown, sizeof shown);
	for (size_t i = 0; i < ARRAY_SIZE(envelope_fields); i++) {
		unsigned far = distance(name, span_from(envelope_fields[i].name));

		if (far < best) {
			best = far;
			nearest = envelope_fields[i].name;
		}
	}
	if (nearest)
		return envelope_field_refuse(reterr, shown,
		                             "there is no field `%s`; did you mean `%s`?",
		                             shown, nearest);
	return envelope_field_refuse(
		reterr, shown, "there is no field `%s`; docs/ENVELOPE.md lists them all",
		shown);
}

static int
refuse_value(const struct envelope_field *field, struct span value,
             struct envelope_error *error, const char *expected)
{
	char shown[SHOWN];

	(void)text_escape(value, shown, sizeof shown);
	return envelope_field_refuse(error, field->name, "`%s` must be %s, not \"%s\"",
	                             field->name, expected, shown);
}

static bool
is_plain_text(struct span value)
{
	for (size_t i = 0; i < value.len; i++)
		if ((unsigned char)value.data[i] < 0x20 || value.data[i] == 0x7f)
			return false;
	return text_is_utf8(value);
}

static bool
length_fits(const struct envelope_field *field, struct span value)
{
	return value.len >= field->min && value.len <= field->max;
}

static int
parse_name(const struct envelope_field *field, struct span value, struct span *ret_span,
           struct envelope_error *error)
{
	char expected[96];

	if (length_fits(field, value) && text_is_name(value)) {
		*ret_span = value;
		return 0;
	}
	(void)snprintf(expected, sizeof expected,
	               "1 to %u letters, digits, dots, underscores and dashes",
	               (unsigned)field->max);
	return refuse_value(field, value, error, expected);
}

static int
parse_text(const struct envelope_field *field, struct span value, struct span *ret_span,
           struct envelope_error *error)
{
	char expected[96];

	if (length_fits(field, value) && is_plain_text(value)) {
		*ret_span = value;
		return 0;
	}
	(void)snprintf(expected, sizeof expected,
	               "1 to %u bytes of UTF-8 without control characters",
	               (unsigned)field->max);
	return refuse_value(field, value, error, expected);
}

static bool
is_hex(struct span value)
{
	for (size_t i = 0; i < value.len; i++)
		if (!((value.data[i] >= '0' && value.data[i] <= '9') ||
		      (value.data[i] >= 'a' && value.data[i] <= 'f')))
			return false;
	return true;
}

/* name, or name@hex: the first 8 to 32 digits of a version. */
static int
parse_prefix(const struct envelope_field *field, struct span value,
             struct envelope *envelope, struct envelope_error *error)
{
	const char *at = value.len ? memchr(value.data, '@', value.len) : NULL;
	struct span name = value, pin = { 0 };

	if (at) {
		name.len = (size_t)(at - value.data);
		pin = (struct span){ at + 1, value.len - name.len - 1 };
	}
	if (!length_fits(field, name) || !text_is_name(name) ||
	    (at && (pin.len < 8 || pin.len > 32 || !is_hex(pin))))
		return refuse_value(field, value, error,
		                    "a name, or name@version with 8 to 32 hex digits");
	envelope->prefix = name;
	envelope->prefix_pin = pin;
	return 0;
}

static int
parse_shared(const struct envelope_field *field, struct span value,
             struct chain_shared *ret_shared, struct envelope_error *error)
{
	if (chain_shared_parse(value, ret_shared) == 0)
		return 0;
	return refuse_value(
		field, value, error,
		"tools, system, messages:N, marker:K or bytes:N, counted from 1");
}

static bool
is_beta(struct span value)
{
	if (value.len == 0 || value.len > BETA_LEN_MAX)
		return false;
	for (size_t i = 0; i < value.len; i++)
		if (!((value.data[i] >= '0' && value.data[i] <= '9') ||
		      (value.data[i] >= 'a' && value.data[i] <= 'z') ||
		      value.data[i] == '-'))
			return false;
	return true;
}

/* Sorted, no repeats: the list is part of identity, and its order means nothing. */
static int
parse_betas(const struct envelope_field *field, struct span value, struct buffer *scratch,
            struct span *ret_span, struct envelope_error *error)
{
	struct span list[BETAS_MAX];
	size_t count = 0, from = scratch->len;
	struct span rest = value;

	while (rest.len > 0) {
		const char *comma = memchr(rest.data, ',', rest.len);
		size_t len = comma ? (size_t)(comma - rest.data) : rest.len;

		if (count == BETAS_MAX || !is_beta((struct span){ rest.data, len }) ||
		    len + 1 == rest.len)
			return refuse_value(
				field, value, error,
				"at most 16 names of a-z, 0-9 and -, with commas");
		list[count++] = (struct span){ rest.data, len };
		rest.data += MIN(len + 1, rest.len);
		rest.len -= MIN(len + 1, rest.len);
	}
	qsort(list, count, sizeof *list, text_compare_spans);
	for (size_t i = 0; i < count; i++) {
		if (i > 0 && span_equals(list[i - 1], list[i]))
			continue;
		if (scratch->len > from)
			(void)buffer_append_byte(scratch, ',');
		(void)buffer_append(scratch, list[i]);
	}
	*ret_span = (struct span){ scratch->data + from, scratch->len - from };
	return buffer_error(scratch);
}

static int
parse_word(const struct envelope_field *field, struct span value, int *ret_word,
           struct envelope_error *error)
{
	const char *at = field->words;
	char expected[64];

	for (int i = 0; at; i++) {
		const char *bar = strchr(at, '|');
		struct span word = { at, bar ? (size_t)(bar - at) : strlen(at) };

		if (span_equals(word, value)) {
			*ret_word = (int)field->words_from + i;
			return 0;
		}
		at = bar ? bar + 1 : NULL;
	}
	(void)snprintf(expected, sizeof expected, "one of %s", field->words);
	return refuse_value(field, value, error, expected);
}

static int
parse_duration(const struct envelope_field *field, struct span value, uint64_t *ret_ms,
               struct envelope_error *error)
{
	char low[TEXT_NUMBER_SIZE], high[TEXT_NUMBER_SIZE], expected[96];
	uint64_t ms = 0;
	int err = text_parse_unsigned(value, UINT64_MAX, &ms);

	if (err == ERR_MALFORMED)
		err = text_parse_duration(value, &ms);
	if (err == 0 && ms >= field->min && ms <= field->max) {
		*ret_ms = ms;
		return 0;
	}
	(void)text_print_duration(field->min, low);
	(void)text_print_duration(field->max, high);
	(void)snprintf(expected, sizeof expected,
	               "%s to %s, as 250ms, 30s, 5m, 2h or plain milliseconds", low,
	               high);
	return refuse_value(field, value, error, expected);
}

static int
parse_time(const struct envelope_field *field, struct span value, uint64_t entry_ms,
           uint64_t *ret_ms, struct envelope_error *error)
{
	uint64_t ms = 0;

	if (value.len > 1 && value.data[0] == '+' &&
	    text_parse_duration((struct span){ value.data + 1, value.len - 1 }, &ms) ==
	            0 &&
	    ms <= FAR_MS) {
		*ret_ms = entry_ms + ms;
		return 0;
	}
	if ((text_parse_unsigned(value, field->max, &ms) == 0 && ms >= SECONDS_TOP) ||
	    (when_parse_rfc3339(value, &ms) == 0 && ms <= field->max)) {
		*ret_ms = ms;
		return 0;
	}
	return refuse_value(
		field, value, error,
		"milliseconds since 1970, a time like 2026-11-04T12:00:00Z, or "
		"+30s up to +31d");
}

static bool
is_zero(struct span digits)
{
	for (size_t i = 0; i < digits.len; i++)
		if (digits.data[i] != '0')
			return false;
	return true;
}

/* Of the form of version 00, and of a trace and a span that exist. */
static bool
is_trace(struct span value)
{
	static const char shape[] =
		"hh-hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh-hhhhhhhhhhhhhhhh-hh";

	if (value.len != sizeof shape - 1)
		return false;
	for (size_t i = 0; i < value.len; i++) {
		struct span digit = { value.data + i, 1 };

		if (shape[i] == '-' ? value.data[i] != '-' : !is_hex(digit))
			return false;
	}
	return memcmp(value.data, "ff", 2) != 0 &&
	       !is_zero((struct span){ value.data + 3, 32 }) &&
	       !is_zero((struct span){ value.data + 36, 16 });
}

/* No job ends for the sake of its trace, as W3C has it: what is none is left out. */
static void
take_trace(struct span value, struct envelope *envelope)
{
	envelope->traceparent = is_trace(value) ? value : (struct span){ NULL, 0 };
	envelope->trace_ignored = value.len > 0 && envelope->traceparent.len == 0;
}

static int
parse_count(const struct envelope_field *field, struct span value, uint32_t *ret_count,
            struct envelope_error *error)
{
	char expected[64];
	uint64_t count = 0;

	if (text_parse_unsigned(value, field->max, &count) == 0 && count >= field->min) {
		*ret_count = (uint32_t)count;
		return 0;
	}
	(void)snprintf(expected, sizeof expected, "a number from %u to %u",
	               (unsigned)field->min, (unsigned)field->max);
	return refuse_value(field, value, error, expected);
}

/* A field that is understood and not built yet: refused, never silently ignored. */
static int
refuse_unsupported(const struct envelope_field *field, struct span value,
                   struct envelope_error *error)
{
	struct span ignored;
	int err = field->type == ENVELOPE_TYPE_NAME
	                  ? parse_name(field, value, &ignored, error)
	                  : parse_text(field, value, &ignored, error);

	if (err < 0)
		return err;
	(void)envelope_field_refuse(error, field->name,
	                            "`%s` is not supported by this version; send the job "
	                            "without it",
	                            field->name);
	error->fault = ENVELOPE_UNSUPPORTED;
	return ERR_UNSUPPORTED;
}

int
envelope_field_parse(const struct envelope_field *field, struct span value,
                     uint64_t entry_ms, struct buffer *scratch, struct envelope *envelope,
                     struct envelope_error *reterr)
{
	void *place = (char *)envelope + field->offset;

	if (!field->supported)
		return refuse_unsupported(field, value, reterr);
	switch (field->type) {
	case ENVELOPE_TYPE_NAME:
		return parse_name(field, value, place, reterr);
	case ENVELOPE_TYPE_BODY:
		*(struct span *)place = value;
		return 0;
	case ENVELOPE_TYPE_TEXT:
		return parse_text(field, value, place, reterr);
	case ENVELOPE_TYPE_PREFIX:
		return parse_prefix(field, value, envelope, reterr);
	case ENVELOPE_TYPE_SHARED:
		return parse_shared(field, value, place, reterr);
	case ENVELOPE_TYPE_BETAS:
		return parse_betas(field, value, scratch, place, reterr);
	case ENVELOPE_TYPE_WORD:
		return parse_word(field, value, place, reterr);
	case ENVELOPE_TYPE_TIME:
		return parse_time(field, value, entry_ms, place, reterr);
	case ENVELOPE_TYPE_DURATION:
		return parse_duration(field, value, place, reterr);
	case ENVELOPE_TYPE_COUNT:
		return parse_count(field, value, place, reterr);
	case ENVELOPE_TYPE_TRACE:
		take_trace(value, envelope);
		return 0;
	}
	return ERR_UNKNOWN_KEY;
}
