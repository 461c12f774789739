#include "common/codec/drift.h"

#include "common/codec/tape.h"
#include "common/text.h"

#include <stdlib.h>

#define BEFORE      24 /* bytes shown before the difference */
#define AFTER       24
#define TOKEN_MAX   80 /* how far a word around the difference is followed */
#define TOOLS_MAX   512
#define BILLING     "x-anthropic-billing-header"
#define MARKER_WORD "cache_control"

/* ---- words around the difference ---- */

static bool
is_digit(char byte)
{
	return byte >= '0' && byte <= '9';
}

static bool
is_hex(char byte)
{
	return is_digit(byte) || (byte >= 'a' && byte <= 'f') ||
	       (byte >= 'A' && byte <= 'F');
}

static bool
is_letter(char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

/* Bytes that can be part of a time, a date or an identifier. */
static bool
is_word_byte(char byte)
{
	return is_digit(byte) || is_letter(byte) || byte == '-' || byte == ':' ||
	       byte == '.' || byte == '_' || byte == '/' || byte == '+';
}

static struct span
word_around(struct span text, size_t at)
{
	size_t from = at, to = at;

	while (from > 0 && at - from < TOKEN_MAX && is_word_byte(text.data[from - 1]))
		from--;
	while (to < text.len && to - at < TOKEN_MAX && is_word_byte(text.data[to]))
		to++;
	while (to > from && text.data[to - 1] == '.')
		to--; /* the end of a sentence */
	return (struct span){ text.data + from, to - from };
}

/* Matches a shape: 9 is a digit, all else itself; the word may go on behind it. */
static bool
has_shape(struct span word, const char *shape)
{
	size_t len = strlen(shape);

	for (size_t from = 0; word.len >= len && from <= word.len - len; from++) {
		size_t i = 0;

		while (i < len && (shape[i] == '9' ? is_digit(word.data[from + i])
		                                   : word.data[from + i] == shape[i]))
			i++;
		if (i == len)
			return true;
	}
	return false;
}

static bool
is_clock(struct span word)
{
	return has_shape(word, "99:99");
}

static bool
is_date(struct span word)
{
	return has_shape(word, "9999-99-99") || has_shape(word, "9999/99/99") ||
	       has_shape(word, "99.99.9999") || has_shape(word, "99/99/9999");
}

static bool
is_uuid(struct span word)
{
	if (word.len < 36)
		return false;
	for (size_t from = 0; from + 36 <= word.len; from++) {
		size_t i = 0;

		while (i < 36 && (i == 8 || i == 13 || i == 18 || i == 23
		                          ? word.data[from + i] == '-'
		                          : is_hex(word.data[from + i])))
			i++;
		if (i == 36)
			return true;
	}
	return false;
}

static bool
is_number(struct span word)
{
	if (word.len == 0)
		return false;
	for (size_t i = 0; i < word.len; i++)
		if (!is_digit(word.data[i]) && word.data[i] != '.' && word.data[i] != '-')
			return false;
	return true;
}

/* Seconds or milliseconds since 1970, in this century's first half. */
static bool
is_epoch(struct span word)
{
	for (size_t i = 0; i < word.len; i++)
		if (!is_digit(word.data[i]))
			return false;
	return (word.len == 10 || word.len == 13) && word.data[0] >= '1' &&
	       word.data[0] <= '2';
}

/* Long and mixed: digits among letters, or all hex. */
static bool
is_identifier(struct span word)
{
	size_t digits = 0, letters = 0;

	for (size_t i = 0; i < word.len; i++) {
		digits += is_digit(word.data[i]) ? 1 : 0;
		letters += is_letter(word.data[i]) ? 1 : 0;
	}
	return word.len >= 8 && digits >= 2 && letters >= 2;
}

static bool
is_month_or_day(struct span word)
{
	static const char *const names[] = {
		"January",  "February", "March",    "April",     "May",
		"June",     "July",     "August",   "September", "October",
		"November", "December", "Monday",   "Tuesday",   "Wednesday",
		"Thursday", "Friday",   "Saturday", "Sunday"
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (word.len >= 3 && memcmp(word.data, names[i], 3) == 0 &&
		    (word.len == 3 || span_equals(word, span_from(names[i]))))
			return true;
	return false;
}

static bool
contains_near(struct span text, size_t at, const char *what, size_t reach)
{
	size_t from = at > reach ? at - reach : 0;
	size_t to = MIN(at + reach, text.len);

	return to > from &&
	       memmem(text.data + from, to - from, what, strlen(what)) != NULL;
}

/* "4 November 2026": the number beside a month is a date, too. */
static bool
is_near_month(struct span text, size_t at)
{
	for (size_t i = at > 16 ? at - 16 : 0; i < text.len && i < at + 16; i++) {
		struct span word = word_around(text, i);

		if (is_letter(text.data[i]) && word.len > 3 && is_month_or_day(word))
			return true;
	}
	return false;
}

static enum drift_kind
word_kind(struct span text, size_t at)
{
	struct span word = word_around(text, at);

	if (is_uuid(word))
		return DRIFT_ID;
	if (is_clock(word) || is_epoch(word))
		return DRIFT_CLOCK;
	if (is_date(word) || is_month_or_day(word))
		return DRIFT_DATE;
	if (is_number(word))
		return is_near_month(text, at) ? DRIFT_DATE : DRIFT_COUNTER;
	if (is_identifier(word))
		return DRIFT_ID;
	return DRIFT_OTHER;
}

/* ---- tools and key order ---- */

static size_t
list_elements(const struct tape *tape, uint32_t array, struct span *list, size_t max)
{
	size_t count = 0;

	if (!tape_is(tape, array, TAPE_ARRAY))
		return 0;
	for (uint32_t i = tape_first(tape, array);
	     i < tape_end(tape, array) && count < max; i = tape_next(tape, i))
		list[count++] = tape_raw(tape, i);
	return count;
}

/* Same elements, any order. */
static bool
is_permutation(struct span *a, size_t a_count, struct span *b, size_t b_count)
{
	if (a_count != b_count || a_count < 2)
		return false;
	qsort(a, a_count, sizeof *a, text_compare_spans);
	qsort(b, b_count, sizeof *b, text_compare_spans);
	for (size_t i = 0; i < a_count; i++)
		if (!span_equals(a[i], b[i]))
			return false;
	return true;
}

/* Counts of every byte value: equal for two spellings with reordered keys. */
static bool
has_same_bytes(struct span a, struct span b)
{
	int64_t balance[256] = { 0 };

	if (a.len != b.len)
		return false;
	for (size_t i = 0; i < a.len; i++) {
		balance[(unsigned char)a.data[i]]++;
		balance[(unsigned char)b.data[i]]--;
	}
	for (size_t i = 0; i < ARRAY_SIZE(balance); i++)
		if (balance[i] != 0)
			return false;
	return true;
}

/* T segments are a JSON object without its last brace. */
static bool
parse_tools(struct tape *tape, struct buffer *text, struct span segment)
{
	struct tape_error where;

	(void)buffer_append(text, segment);
	(void)buffer_append_byte(text, '}');
	return buffer_error(text) == 0 &&
	       tape_parse(tape, buffer_span(text), &where) == 0;
}

static enum drift_kind
tools_kind(struct span a, struct span b)
{
	struct buffer text_a = BUFFER_INIT(BUFFER_SIZE_DEFAULT);
	struct buffer text_b = BUFFER_INIT(BUFFER_SIZE_DEFAULT);
	static const char word[] = "tools";
	struct span list_a[TOOLS_MAX], list_b[TOOLS_MAX];
	enum drift_kind kind = DRIFT_OTHER;
	struct tape tape_a, tape_b;
	uint32_t at_a, at_b;

	tape_init(&tape_a);
	tape_init(&tape_b);
	if (parse_tools(&tape_a, &text_a, a) && parse_tools(&tape_b, &text_b, b)) {
		at_a = tape_find(&tape_a, 0, word);
		at_b = tape_find(&tape_b, 0, word);
		if (at_a == TAPE_NONE && at_b == TAPE_NONE)
			kind = DRIFT_SETTING;
		else if (at_a == TAPE_NONE || at_b == TAPE_NONE)
			kind = DRIFT_TOOLS;
		else if (span_equals(tape_raw(&tape_a, at_a), tape_raw(&tape_b, at_b)))
			kind = DRIFT_SETTING;
		else if (is_permutation(
				 list_a, list_elements(&tape_a, at_a, list_a, TOOLS_MAX),
				 list_b, list_elements(&tape_b, at_b, list_b, TOOLS_MAX)))
			kind = DRIFT_TOOL_ORDER;
		else if (has_same_bytes(tape_raw(&tape_a, at_a), tape_raw(&tape_b, at_b)))
			kind = DRIFT_KEY_ORDER;
		else
			kind = DRIFT_TOOLS;
	}
	tape_fini(&tape_a);
	tape_fini(&tape_b);
	buffer_fini(&text_a);
	buffer_fini(&text_b);
	return kind;
}

/* ---- comparing ---- */

static size_t
first_difference(struct span a, struct span b)
{
	size_t len = MIN(a.len, b.len), at = 0;

	while (at < len && a.data[at] == b.data[at])
		at++;
	return at;
}

static enum drift_kind
kind_of(enum tier tier, struct span a, struct span b, size_t at)
{
	enum drift_kind left, right;

	if (contains_near(a, at, BILLING, 160) && contains_near(b, at, BILLING, 160))
		return DRIFT_BILLING;
	if (contains_near(a, at, MARKER_WORD, 24) !=
	    contains_near(b, at, MARKER_WORD, 24))
		return DRIFT_MARKER;
	left = word_kind(a, at);
	right = word_kind(b, at);
	if (left == right && left != DRIFT_OTHER)
		return left;
	if (tier == TIER_TOOLS)
		return tools_kind(a, b);
	if (at == a.len || at == b.len)
		return DRIFT_LENGTH;
	return has_same_bytes(a, b) ? DRIFT_KEY_ORDER : DRIFT_OTHER;
}

static void
show(struct span text, size_t at, char shown[DRIFT_SIDE_SIZE], unsigned *ret_caret)
{
	size_t from = at > BEFORE ? at - BEFORE : 0;
	char before[DRIFT_SIDE_SIZE];

	/* Not in the middle of a character. */
	while (from > 0 && from < at && ((unsigned char)text.data[from] & 0xc0) == 0x80)
		from++;
	*ret_caret = (unsigned)text_escape((struct span){ text.data + from, at - from },
	                                   before, sizeof before);
	(void)text_escape((struct span){ text.data + from,
	                                 MIN(text.len - from, at - from + AFTER) },
	                  shown, DRIFT_SIDE_SIZE);
}

static void
differ(struct drift *drift, enum tier tier, struct span a, struct span b)
{
	size_t at = first_difference(a, b);

	/* Back to the first byte of the character. */
	while (at > 0 && at < a.len && ((unsigned char)a.data[at] & 0xc0) == 0x80)
		at--;
	drift->tier = tier;
	drift->offset = at;
	drift->kind = kind_of(tier, a, b, at);
	show(a, at, drift->a, &drift->a_caret);
	show(b, at, drift->b, &drift->b_caret);
}

static void
differ_in_settings(struct drift *drift, const struct chain_node *a,
                   const struct chain_node *b)
{
	differ(drift, a->tier, a->px.settings, b->px.settings);
	drift->kind = DRIFT_SETTING;
	drift->setting = true;
}

void
drift_compare(const struct chain *a, const struct chain *b, struct drift *ret_drift)
{
	struct drift drift = { .kind = DRIFT_NONE };
	size_t before = 0;

	for (unsigned i = 0; i < MAX(a->count, b->count); i++) {
		const struct chain_node *left = &a->node[i], *right = &b->node[i];

		if (i >= a->count || i >= b->count || left->tier != right->tier) {
			drift.kind = DRIFT_LENGTH;
			drift.tier = i < a->count ? left->tier : right->tier;
			break;
		}
		if (!span_equals(left->px.segment, right->px.segment)) {
			differ(&drift, left->tier, left->px.segment, right->px.segment);
			break;
		}
		if (!id_equals(left->id, right->id)) {
			differ_in_settings(&drift, left, right);
			break;
		}
		before += left->px.segment.len;
	}
	drift.body_offset = before + (drift.setting ? 0 : drift.offset);
	*ret_drift = drift;
}

const char *
drift_kind_word(enum drift_kind kind)
{
	switch (kind) {
#define X(name, word, fix) \
	case name:         \
		return word;
		DRIFT_KIND_LIST(X)
#undef X
	case DRIFT_KIND_COUNT:
		break;
	}
	return "unknown";
}

const char *
drift_kind_fix(enum drift_kind kind)
{
	switch (kind) {
#define X(name, word, fix) \
	case name:         \
		return fix;
		DRIFT_KIND_LIST(X)
#undef X
	case DRIFT_KIND_COUNT:
		break;
	}
	return "";
}
