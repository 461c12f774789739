#include "common/io/config_value.h"

#include "common/text.h"

#include <ctype.h>
#include <stdio.h>
#include <strings.h>

static char *
field_of(const struct config_key *key, void *base)
{
	return (char *)base + key->offset;
}

static const char *
const_field_of(const struct config_key *key, const void *base)
{
	VERIFY(base); /* also tells gcc, which at -O3 warns of strlen(NULL) otherwise */
	return (const char *)base + key->offset;
}

static size_t *
count_field_of(const struct config_key *key, void *base)
{
	return (size_t *)(void *)((char *)base + key->count_offset);
}

static size_t
count_of(const struct config_key *key, const void *base)
{
	return *(const size_t *)(const void *)((const char *)base + key->count_offset);
}

static int
refuse(char *ret_reason, int error, const char *reason)
{
	(void)snprintf(ret_reason, CONFIG_VALUE_REASON_SIZE, "%s", reason);
	return error;
}

static bool
is_clean(struct span text)
{
	for (size_t i = 0; i < text.len; i++)
		if ((unsigned char)text.data[i] < ' ' || text.data[i] == 0x7f)
			return false;
	return text_is_utf8(text);
}

static int
store_text(char *to, size_t size, struct span text, char *ret_reason)
{
	if (!is_clean(text))
		return refuse(ret_reason, ERR_MALFORMED,
		              "must be UTF-8 without control characters");
	if (text.len >= size) {
		(void)snprintf(ret_reason, CONFIG_VALUE_REASON_SIZE,
		               "has at most %zu bytes", size - 1);
		return ERR_LIMIT;
	}
	memset(to, 0, size);
	memcpy(to, text.data ? text.data : "", text.len);
	return 0;
}

static int
set_text(const struct config_key *key, void *base, struct span text, char *ret_reason)
{
	if (text.len < key->min)
		return refuse(ret_reason, ERR_MALFORMED, "must not be empty");
	return store_text(field_of(key, base), key->size, text, ret_reason);
}

static int
set_name(const struct config_key *key, void *base, struct span text, char *ret_reason)
{
	if (!text_is_name(text))
		return refuse(ret_reason, ERR_MALFORMED,
		              "must be a name: 1 to 128 of A-Z a-z 0-9 . _ -");
	return store_text(field_of(key, base), key->size, text, ret_reason);
}

#define DAY_MS      86400000
#define YEAR_LEAST  1970
#define YEAR_MOST   9999
#define DAYS_TO_ERA 719468 /* from 1 March of the year 0 to 1970 */

/* The days since 1970 of a day of our calendar: years begin in March here, so that the
 * odd day is their last. */
static uint64_t
days_of(uint64_t year, uint64_t month, uint64_t day)
{
	uint64_t years = month <= 2 ? year - 1 : year;
	uint64_t era = years / 400, of_era = years % 400;
	uint64_t of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;

	return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year -
	       DAYS_TO_ERA;
}

static void
print_date(uint64_t ms, char *out)
{
	uint64_t days = ms / DAY_MS + DAYS_TO_ERA;
	uint64_t era = days / 146097, of_era = days % 146097;
	uint64_t years =
		(of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	uint64_t of_year = of_era - (365 * years + years / 4 - years / 100);
	uint64_t month = (5 * of_year + 2) / 153;
	uint64_t day = of_year - (153 * month + 2) / 5 + 1;

	month = month < 10 ? month + 3 : month - 9;
	years += era * 400 + (month <= 2);
	(void)snprintf(out, TEXT_NUMBER_SIZE, "%04u-%02u-%02u", (unsigned)years,
	               (unsigned)month, (unsigned)day);
}

static int
parse_date(struct span text, uint64_t *ret_ms)
{
	char again[TEXT_NUMBER_SIZE];
	uint64_t year, month, day, ms;

	if (text.len != 10 || text.data[4] != '-' || text.data[7] != '-')
		return ERR_MALFORMED;
	if (text_parse_unsigned((struct span){ text.data, 4 }, YEAR_MOST, &year) < 0 ||
	    text_parse_unsigned((struct span){ text.data + 5, 2 }, 12, &month) < 0 ||
	    text_parse_unsigned((struct span){ text.data + 8, 2 }, 31, &day) < 0 ||
	    year < YEAR_LEAST || month == 0 || day == 0)
		return ERR_MALFORMED;
	ms = days_of(year, month, day) * DAY_MS;
	print_date(ms, again);
	if (!span_equals(text, span_from(again))) /* the 30th of February */
		return ERR_MALFORMED;
	*ret_ms = ms;
	return 0;
}

/* How each kind of number is read, written and explained. */
static int
parse_number(enum config_kind kind, struct span text, uint64_t *ret_value)
{
	switch (kind) {
	case CONFIG_KIND_DURATION:
		return text_parse_duration(text, ret_value);
	case CONFIG_KIND_SIZE:
		return text_parse_size(text, ret_value);
	case CONFIG_KIND_PRICE:
		return text_parse_decimal(text, 6, ret_value);
	case CONFIG_KIND_MULTIPLIER:
		return text_parse_decimal(text, 3, ret_value);
	case CONFIG_KIND_DATE:
		return parse_date(text, ret_value);
	default:
		return text_parse_unsigned(text, UINT64_MAX, ret_value);
	}
}

static void
print_number(enum config_kind kind, uint64_t value, char *out)
{
	switch (kind) {
	case CONFIG_KIND_DURATION:
		(void)text_print_duration(value, out);
		break;
	case CONFIG_KIND_SIZE:
		(void)text_print_size(value, out);
		break;
	case CONFIG_KIND_PRICE:
		(void)text_print_decimal(value, 6, out);
		break;
	case CONFIG_KIND_MULTIPLIER:
		(void)text_print_decimal(value, 3, out);
		break;
	case CONFIG_KIND_DATE:
		print_date(value, out);
		break;
	default:
		(void)text_print_unsigned(value, out);
		break;
	}
}

static const char *
number_form(enum config_kind kind)
{
	switch (kind) {
	case CONFIG_KIND_DURATION:
		return "must be a duration with its unit, such as 250ms, 30s, 5m or 24h";
	case CONFIG_KIND_SIZE:
		return "must be a size with its unit, such as 200b, 64k or 8m";
	case CONFIG_KIND_PRICE:
		return "must be dollars, such as 3 or 0.25";
	case CONFIG_KIND_DATE:
		return "must be a day of the calendar, such as 2026-10-01";
	case CONFIG_KIND_MULTIPLIER:
		return "must be a number such as 2, 1.25 or 0.025";
	default:
		return "must be a whole number";
	}
}

static int
set_number(const struct config_key *key, void *base, struct span text, char *ret_reason)
{
	char min[TEXT_NUMBER_SIZE], max[TEXT_NUMBER_SIZE];
	uint64_t value;

	if (parse_number(key->kind, text, &value) < 0)
		return refuse(ret_reason, ERR_MALFORMED, number_form(key->kind));
	if (value < key->min || value > key->max) {
		print_number(key->kind, key->min, min);
		print_number(key->kind, key->max, max);
		(void)snprintf(ret_reason, CONFIG_VALUE_REASON_SIZE,
		               "must be from %s to %s", min, max);
		return ERR_LIMIT;
	}
	memcpy(field_of(key, base), &value, sizeof value);
	return 0;
}

static int
set_word(const struct config_key *key, void *base, struct span text, char *ret_reason)
{
	size_t len;

	for (unsigned i = 0; key->words[i]; i++) {
		if (!span_equals(text, span_from(key->words[i])))
			continue;
		memcpy(field_of(key, base), &i, sizeof i);
		return 0;
	}
	len = (size_t)snprintf(ret_reason, CONFIG_VALUE_REASON_SIZE, "must be one of");
	for (unsigned i = 0; key->words[i]; i++)
		len += (size_t)snprintf(ret_reason + len, CONFIG_VALUE_REASON_SIZE - len,
		                        "%s %s", i > 0 ? "," : "", key->words[i]);
	return ERR_MALFORMED;
}

static int
set_bool(const struct config_key *key, void *base, struct span text, char *ret_reason)
{
	bool value;

	if (text_parse_bool(text, &value) < 0)
		return refuse(ret_reason, ERR_MALFORMED, "must be true or false");
	memcpy(field_of(key, base), &value, sizeof value);
	return 0;
}

int
config_value_set(const struct config_key *key, void *base, struct span text,
                 char ret_reason[CONFIG_VALUE_REASON_SIZE])
{
	switch (key->kind) {
	case CONFIG_KIND_NAME:
		return set_name(key, base, text, ret_reason);
	case CONFIG_KIND_TEXT:
		return set_text(key, base, text, ret_reason);
	case CONFIG_KIND_DURATION:
	case CONFIG_KIND_SIZE:
	case CONFIG_KIND_INTEGER:
	case CONFIG_KIND_PRICE:
	case CONFIG_KIND_MULTIPLIER:
	case CONFIG_KIND_DATE:
		return set_number(key, base, text, ret_reason);
	case CONFIG_KIND_BOOL:
		return set_bool(key, base, text, ret_reason);
	case CONFIG_KIND_WORD:
		return set_word(key, base, text, ret_reason);
	case CONFIG_KIND_LIST:
		return refuse(ret_reason, ERR_MALFORMED, "must be a list");
	case CONFIG_KIND_PAIR:
		return refuse(ret_reason, ERR_MALFORMED,
		              "must be a list of two patterns, route and upstream");
	case CONFIG_KIND_HEADERS:
	case CONFIG_KIND_HEADERS_ENV:
		return refuse(ret_reason, ERR_MALFORMED,
		              "must be a map of names to values");
	}
	VERIFY(false);
	return ERR_UNSUPPORTED;
}

int
config_value_append(const struct config_key *key, void *base, struct span text,
                    char ret_reason[CONFIG_VALUE_REASON_SIZE])
{
	size_t *count = count_field_of(key, base);
	int err;

	VERIFY(key->kind == CONFIG_KIND_LIST);
	if (*count == key->max) {
		(void)snprintf(ret_reason, CONFIG_VALUE_REASON_SIZE,
		               "has at most %zu entries", (size_t)key->max);
		return ERR_LIMIT;
	}
	err = store_text(field_of(key, base) + *count * key->size, key->size, text,
	                 ret_reason);
	if (err == 0)
		(*count)++;
	return err;
}

int
config_value_set_half(const struct config_key *key, void *base, size_t half,
                      struct span text, char ret_reason[CONFIG_VALUE_REASON_SIZE])
{
	VERIFY(key->kind == CONFIG_KIND_PAIR);
	VERIFY(half < 2);
	if (text.len == 0)
		return refuse(ret_reason, ERR_MALFORMED, "must not be empty; * is any");
	return store_text(field_of(key, base) + half * key->size, key->size, text,
	                  ret_reason);
}

static bool
is_header_name(struct span name)
{
	for (size_t i = 0; i < name.len; i++)
		if (name.data[i] <= ' ' || name.data[i] >= 0x7f ||
		    strchr("\"(),/:;<=>?@[\\]{}", name.data[i]))
			return false;
	return name.len > 0;
}

bool
config_value_names_secret(struct span name)
{
	static const char *const words[] = { "key",      "apikey",     "token",
		                             "secret",   "auth",       "authorization",
		                             "cookie",   "sig",        "signature",
		                             "password", "credential", "credentials" };

	for (size_t at = 0; at < name.len;) {
		size_t len = 0;

		while (at + len < name.len && isalnum((unsigned char)name.data[at + len]))
			len++;
		for (size_t i = 0; i < ARRAY_SIZE(words); i++)
			if (len == strlen(words[i]) &&
			    strncasecmp(name.data + at, words[i], len) == 0)
				return true;
		at += len + 1;
	}
	return false;
}

static bool
is_of_worker(const char *name)
{
	static const char *const ours[] = { "host",           "content-length",
		                            "content-type",   "transfer-encoding",
		                            "connection",     "te",
		                            "anthropic-beta", "expect" };

	for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
		if (strcasecmp(name, ours[i]) == 0)
			return true;
	return false;
}

/* Why we would not send it, or NULL. */
static const char *
header_refusal(const struct config_key *key, const struct config_header *header)
{
	bool is_variable = key->kind == CONFIG_KIND_HEADERS_ENV;

	if (!is_variable && config_value_names_secret(span_from(header->name)))
		return "carries a secret, which never stands in this file; use auth with "
		       "key_env or key_file, or headers_env";
	if (is_variable && !text_is_name(span_from(header->value)))
		return "needs the name of an environment variable, not a value";
	return is_of_worker(header->name) ? "is set by the worker" : NULL;
}

int
config_value_add_header(const struct config_key *key, void *base, struct span name,
                        struct span text, char ret_reason[CONFIG_VALUE_REASON_SIZE])
{
	size_t *count = count_field_of(key, base);
	struct config_header header = { 0 };
	const char *reason;
	int err;

	VERIFY(key->kind == CONFIG_KIND_HEADERS || key->kind == CONFIG_KIND_HEADERS_ENV);
	if (*count == key->max)
		return refuse(ret_reason, ERR_LIMIT, "has too many headers");
	if (!is_header_name(name))
		return refuse(ret_reason, ERR_MALFORMED, "has a header that is no token");
	err = store_text(header.name, sizeof header.name, name, ret_reason);
	if (err == 0)
		err = store_text(header.value, sizeof header.value, text, ret_reason);
	if (err < 0)
		return err;
	reason = header_refusal(key, &header);
	if (reason)
		return refuse(ret_reason, ERR_UNSUPPORTED, reason);
	memcpy(field_of(key, base) + *count * key->size, &header, sizeof header);
	(*count)++;
	return 0;
}

void
config_value_clear(const struct config_key *key, void *base)
{
	*count_field_of(key, base) = 0;
}

void
config_value_initialise(const struct config_key *key, void *base)
{
	const unsigned unset = CONFIG_VALUE_UNSET_WORD;
	char reason[CONFIG_VALUE_REASON_SIZE];

	switch (key->kind) {
	case CONFIG_KIND_LIST:
	case CONFIG_KIND_HEADERS:
	case CONFIG_KIND_HEADERS_ENV:
		config_value_clear(key, base);
		return;
	case CONFIG_KIND_PAIR:
		VERIFY(config_value_set_half(key, base, 0, SPAN("*"), reason) == 0);
		VERIFY(config_value_set_half(key, base, 1, SPAN("*"), reason) == 0);
		return;
	default:
		break;
	}
	if (key->initial)
		VERIFY(config_value_set(key, base, span_from(key->initial), reason) == 0);
	else if (key->kind == CONFIG_KIND_WORD)
		memcpy(field_of(key, base), &unset, sizeof unset);
	else
		memset(field_of(key, base), 0, key->size);
}

static unsigned
word_of(const struct config_key *key, const void *base)
{
	unsigned word;

	memcpy(&word, const_field_of(key, base), sizeof word);
	return word;
}

bool
config_value_is_unset(const struct config_key *key, const void *base)
{
	uint64_t number;

	if (key->initial)
		return false;
	if (key->kind == CONFIG_KIND_WORD)
		return word_of(key, base) == CONFIG_VALUE_UNSET_WORD;
	if (key->kind == CONFIG_KIND_DATE) {
		memcpy(&number, const_field_of(key, base), sizeof number);
		return number == 0;
	}
	return const_field_of(key, base)[0] == '\0';
}

static void
print_list(const char *elements, size_t size, size_t count, struct buffer *out)
{
	(void)buffer_append_byte(out, '[');
	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			(void)buffer_append_text(out, ", ");
		(void)buffer_append_json(out, span_from(elements + i * size));
	}
	(void)buffer_append_byte(out, ']');
}

static void
print_headers(const struct config_header *headers, size_t count, struct buffer *out)
{
	(void)buffer_append_byte(out, '{');
	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			(void)buffer_append_text(out, ", ");
		(void)buffer_append_json(out, span_from(headers[i].name));
		(void)buffer_append_text(out, ": ");
		(void)buffer_append_json(out, span_from(headers[i].value));
	}
	(void)buffer_append_byte(out, '}');
}

void
config_value_print(const struct config_key *key, const void *base, struct buffer *out)
{
	const char *field = const_field_of(key, base);
	char number[TEXT_NUMBER_SIZE];
	uint64_t value;

	switch (key->kind) {
	case CONFIG_KIND_NAME:
		if (strcmp(field, "null") != 0) { /* which means nothing in YAML */
			(void)buffer_append_text(out, field);
			break;
		}
		(void)buffer_append_text(out, "\"null\"");
		break;
	case CONFIG_KIND_TEXT:
		(void)buffer_append_json(out, span_from(field));
		break;
	case CONFIG_KIND_DURATION:
	case CONFIG_KIND_SIZE:
	case CONFIG_KIND_INTEGER:
	case CONFIG_KIND_PRICE:
	case CONFIG_KIND_MULTIPLIER:
	case CONFIG_KIND_DATE:
		memcpy(&value, field, sizeof value);
		print_number(key->kind, value, number);
		(void)buffer_append_text(out, number);
		break;
	case CONFIG_KIND_BOOL:
		(void)buffer_append_text(out, *(const bool *)field ? "true" : "false");
		break;
	case CONFIG_KIND_WORD:
		(void)buffer_append_text(out, key->words[word_of(key, base)]);
		break;
	case CONFIG_KIND_LIST:
		print_list(field, key->size, count_of(key, base), out);
		break;
	case CONFIG_KIND_PAIR:
		print_list(field, key->size, 2, out);
		break;
	case CONFIG_KIND_HEADERS:
	case CONFIG_KIND_HEADERS_ENV:
		print_headers((const struct config_header *)(const void *)field,
		              count_of(key, base), out);
		break;
	}
}
