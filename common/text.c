#include "common/text.h"

struct unit {
	const char *name;
	uint64_t factor;
};

/* From the largest down: the first exact one is printed. */
static const struct unit duration_units[] = {
	{ "d", 86400000 }, { "h", 3600000 }, { "m", 60000 }, { "s", 1000 }, { "ms", 1 },
};
static const struct unit size_units[] = {
	{ "g", 1 << 30 },
	{ "m", 1 << 20 },
	{ "k", 1 << 10 },
	{ "b", 1 },
};

static size_t
digits_len(struct span text)
{
	size_t len = 0;

	while (len < text.len && text.data[len] >= '0' && text.data[len] <= '9')
		len++;
	return len;
}

int
text_parse_unsigned(struct span text, uint64_t max, uint64_t *ret_value)
{
	uint64_t value = 0;

	if (text.len == 0 || digits_len(text) != text.len)
		return ERR_MALFORMED;
	for (size_t i = 0; i < text.len; i++) {
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(text.data[i] - '0'), &value))
			return ERR_LIMIT;
	}
	if (value > max)
		return ERR_LIMIT;
	*ret_value = value;
	return 0;
}

static int
parse_units(struct span text, const struct unit *units, size_t units_count,
            uint64_t *ret_value)
{
	size_t digits = digits_len(text);
	struct span name = { text.data + digits, text.len - digits };
	uint64_t value;
	int err;

	err = text_parse_unsigned((struct span){ text.data, digits }, UINT64_MAX, &value);
	if (err < 0)
		return err;
	for (size_t i = 0; i < units_count; i++) {
		if (!span_equals(name, span_from(units[i].name)))
			continue;
		if (__builtin_mul_overflow(value, units[i].factor, &value))
			return ERR_LIMIT;
		*ret_value = value;
		return 0;
	}
	return ERR_MALFORMED;
}

int
text_parse_duration(struct span text, uint64_t *ret_ms)
{
	return parse_units(text, duration_units, ARRAY_SIZE(duration_units), ret_ms);
}

int
text_parse_size(struct span text, uint64_t *ret_bytes)
{
	return parse_units(text, size_units, ARRAY_SIZE(size_units), ret_bytes);
}

int
text_parse_decimal(struct span text, unsigned places, uint64_t *ret_value)
{
	size_t whole_len = digits_len(text);
	struct span fraction = { text.data + text.len, 0 };
	uint64_t value = 0, part = 0;
	int err;

	VERIFY(places <= 9);
	if (whole_len < text.len) {
		if (text.data[whole_len] != '.')
			return ERR_MALFORMED;
		fraction = (struct span){ text.data + whole_len + 1,
			                  text.len - whole_len - 1 };
		if (fraction.len > places)
			return ERR_MALFORMED;
		err = text_parse_unsigned(fraction, UINT64_MAX, &part);
		if (err < 0)
			return err;
	}
	err = text_parse_unsigned((struct span){ text.data, whole_len }, UINT64_MAX,
	                          &value);
	if (err < 0)
		return err;
	for (size_t i = 0; i < places; i++) {
		if (__builtin_mul_overflow(value, 10, &value))
			return ERR_LIMIT;
		if (i >= fraction.len)
			part *= 10;
	}
	if (__builtin_add_overflow(value, part, &value))
		return ERR_LIMIT;
	*ret_value = value;
	return 0;
}

int
text_parse_bool(struct span text, bool *ret_value)
{
	if (span_equals(text, SPAN("true")))
		*ret_value = true;
	else if (span_equals(text, SPAN("false")))
		*ret_value = false;
	else
		return ERR_MALFORMED;
	return 0;
}

size_t
text_print_unsigned(uint64_t value, char ret_text[TEXT_NUMBER_SIZE])
{
	char reversed[TEXT_NUMBER_SIZE];
	size_t len = 0;

	do {
		reversed[len++] = (char)('0' + value % 10);
		value /= 10;
	} while (value > 0);
	for (size_t i = 0; i < len; i++)
		ret_text[i] = reversed[len - 1 - i];
	ret_text[len] = '\0';
	return len;
}

static size_t
print_units(uint64_t value, const struct unit *units, size_t units_count, char *out)
{
	const struct unit *unit = &units[units_count - 1];
	size_t len, name_len;

	for (size_t i = 0; i < units_count && value > 0; i++) {
		if (value % units[i].factor != 0)
			continue;
		unit = &units[i];
		break;
	}
	len = text_print_unsigned(value / unit->factor, out);
	name_len = strlen(unit->name);
	memcpy(out + len, unit->name, name_len + 1);
	return len + name_len;
}

size_t
text_print_duration(uint64_t ms, char ret_text[TEXT_NUMBER_SIZE])
{
	if (ms == 0)
		return print_units(0, &duration_units[3], 1, ret_text);
	return print_units(ms, duration_units, ARRAY_SIZE(duration_units), ret_text);
}

size_t
text_print_size(uint64_t bytes, char ret_text[TEXT_NUMBER_SIZE])
{
	return print_units(bytes, size_units, ARRAY_SIZE(size_units), ret_text);
}

size_t
text_print_decimal(uint64_t value, unsigned places, char ret_text[TEXT_NUMBER_SIZE])
{
	uint64_t scale = 1, part;
	size_t len;

	VERIFY(places <= 9);
	for (unsigned i = 0; i < places; i++)
		scale *= 10;
	len = text_print_unsigned(value / scale, ret_text);
	part = value % scale;
	if (part == 0)
		return len;
	ret_text[len++] = '.';
	while (part > 0) {
		scale /= 10;
		ret_text[len++] = (char)('0' + part / scale);
		part %= scale;
	}
	ret_text[len] = '\0';
	return len;
}

int
text_compare_spans(const void *a, const void *b)
{
	const struct span *left = a, *right = b;
	size_t len = MIN(left->len, right->len);
	int order = len > 0 ? memcmp(left->data, right->data, len) : 0;

	return order ? order : (left->len > right->len) - (left->len < right->len);
}

bool
text_is_name(struct span text)
{
	if (text.len == 0 || text.len > TEXT_NAME_MAX)
		return false;
	for (size_t i = 0; i < text.len; i++) {
		char c = text.data[i];
		bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		          (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';

		if (!ok)
			return false;
	}
	return true;
}

static bool
is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

struct span
text_trim(struct span text)
{
	while (text.len > 0 && is_space(text.data[0]))
		text = (struct span){ text.data + 1, text.len - 1 };
	while (text.len > 0 && is_space(text.data[text.len - 1]))
		text.len--;
	return text;
}

bool
text_matches(struct span pattern, struct span text)
{
	size_t p = 0, t = 0, star = SIZE_MAX, mark = 0;

	while (t < text.len) {
		if (p < pattern.len && pattern.data[p] == '*') {
			star = p++;
			mark = t;
		} else if (p < pattern.len &&
		           (pattern.data[p] == '?' || pattern.data[p] == text.data[t])) {
			p++;
			t++;
		} else if (star != SIZE_MAX) {
			p = star + 1; /* let the last star eat one more byte */
			t = ++mark;
		} else {
			return false;
		}
	}
	while (p < pattern.len && pattern.data[p] == '*')
		p++;
	return p == pattern.len;
}
