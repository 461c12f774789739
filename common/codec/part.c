#include "common/codec/part.h"

#include "common/text.h"

#define LINE_MAX_LEN                                                               \
	65536          /* a header line: settings may be a schema's size, not more \
	                */
#define PX_COLUMNS  10 /* before the settings, which may contain blanks */
#define OWN_COLUMNS 8

/* SPAN() is no constant expression for a static table. */
#define SPAN_INIT(literal)                     \
	{                                      \
		(literal), sizeof(literal) - 1 \
	}

static const char end_letters[] = "cvbr";
static const char role_letters[] = "-uas";
static const char mark_letters[] = "-e51p";
static const char ttl_letters[] = "-5312";

static const struct {
	struct span text;
	enum ttl ttl;
} mark_table[] = {
	[PART_MARK_NONE] = { { "", 0 }, TTL_NONE },
	[PART_MARK_PLAIN] = { SPAN_INIT("\"cache_control\":{\"type\":\"ephemeral\"}"),
	                      TTL_5M },
	[PART_MARK_5M] = { SPAN_INIT("\"cache_control\":{\"type\":\"ephemeral\",\"ttl\":"
	                             "\"5m\"}"),
	                   TTL_5M },
	[PART_MARK_1H] = { SPAN_INIT("\"cache_control\":{\"type\":\"ephemeral\",\"ttl\":"
	                             "\"1h\"}"),
	                   TTL_1H },
	[PART_MARK_BREAKPOINT] = { SPAN_INIT("\"prompt_cache_breakpoint\":{\"mode\":"
	                                     "\"explicit\"}"),
	                           TTL_NONE },
};

struct span
part_mark_text(enum part_mark mark)
{
	VERIFY(mark < ARRAY_SIZE(mark_table));
	return mark_table[mark].text;
}

enum ttl
part_mark_ttl(enum part_mark mark)
{
	VERIFY(mark < ARRAY_SIZE(mark_table));
	return mark_table[mark].ttl;
}

static void
put_offset(struct buffer *out, size_t offset)
{
	if (offset == PART_NOWHERE)
		(void)buffer_append_byte(out, '-');
	else
		(void)buffer_append_unsigned(out, offset);
	(void)buffer_append_byte(out, ' ');
}

void
part_px_write(struct buffer *out, const struct part_px *px)
{
	(void)buffer_append_format(out, "px1 %c %c %c %c ", dialect_letter(px->dialect),
	                           dialect_tier_letter(px->tier), end_letters[px->end],
	                           role_letters[px->role]);
	put_offset(out, px->wrap_at);
	put_offset(out, px->mark_at);
	(void)buffer_append_format(out, "%s %u %u ", dialect_ttl_name(px->ttl),
	                           px->tokens, px->flags);
	(void)buffer_append(out, px->settings);
	(void)buffer_append_byte(out, '\n');
	(void)buffer_append(out, px->segment);
}

void
part_own_write(struct buffer *out, const struct part_own *own)
{
	(void)buffer_append_format(out, "own1 %c ", dialect_letter(own->dialect));
	for (unsigned i = 0; i < PART_NODES_MAX; i++)
		(void)buffer_append_byte(out, mark_letters[own->user[i]]);
	(void)buffer_append_format(out, " %u %s ", own->explicit_count,
	                           dialect_ttl_name(own->automatic));
	for (unsigned i = 0; i < PART_NODES_MAX; i++) {
		(void)buffer_append_byte(out, ttl_letters[own->earlier[i]]);
		(void)buffer_append_byte(out, ttl_letters[own->later[i]]);
	}
	(void)buffer_append_format(out, " %u %zu\n",
	                           (own->opaque ? 1u : 0u) | (own->turns ? 2u : 0u),
	                           own->own.len);
	(void)buffer_append(out, own->own);
	(void)buffer_append(out, own->tail);
}

/* Cuts a value at its first newline and the line at its first `count` blanks. */
static int
split_line(struct span value, struct span *columns, size_t count, struct span *ret_rest)
{
	const char *newline =
		value.len ? memchr(value.data, '\n', MIN(value.len, LINE_MAX_LEN)) : NULL;
	struct span line;

	if (!newline)
		return ERR_MALFORMED;
	line = (struct span){ value.data, (size_t)(newline - value.data) };
	*ret_rest = (struct span){ newline + 1, value.len - line.len - 1 };
	for (size_t i = 0; i + 1 < count; i++) {
		const char *blank = line.len ? memchr(line.data, ' ', line.len) : NULL;
		size_t len;

		if (!blank)
			return ERR_MALFORMED;
		len = (size_t)(blank - line.data);
		columns[i] = (struct span){ line.data, len };
		line = (struct span){ blank + 1, line.len - len - 1 };
	}
	columns[count - 1] = line;
	return 0;
}

/* Index of a one-letter column in `letters`, or ERR_MALFORMED. */
static int
letter_index(struct span column, const char *letters)
{
	const char *found;

	if (column.len != 1 || column.data[0] == '\0')
		return ERR_MALFORMED;
	found = strchr(letters, column.data[0]);
	return found ? (int)(found - letters) : ERR_MALFORMED;
}

static int
read_number(struct span column, uint64_t max, uint64_t *ret_value)
{
	return text_parse_unsigned(column, max, ret_value) < 0 ? ERR_MALFORMED : 0;
}

static int
read_offset(struct span column, size_t max, size_t *ret_offset)
{
	uint64_t value;

	if (span_equals(column, SPAN("-"))) {
		*ret_offset = PART_NOWHERE;
		return 0;
	}
	if (read_number(column, max, &value) < 0)
		return ERR_MALFORMED;
	*ret_offset = (size_t)value;
	return 0;
}

static int
read_ttl(struct span column, enum ttl *ret_ttl)
{
	*ret_ttl = dialect_ttl_parse(column);
	if (*ret_ttl == TTL_NONE && !span_equals(column, SPAN("-")))
		return ERR_MALFORMED;
	return 0;
}

/* The marker's places must be where a block or a string can be. */
static bool
places_fit(const struct part_px *px)
{
	if (px->mark_at == PART_NOWHERE)
		return px->wrap_at == PART_NOWHERE;
	if (px->wrap_at == PART_NOWHERE)
		return px->mark_at < px->segment.len &&
		       px->segment.data[px->mark_at] == '}';
	return px->wrap_at < px->mark_at && px->segment.data[px->wrap_at] == '"' &&
	       px->segment.data[px->mark_at - 1] == '"';
}

int
part_px_read(struct span value, struct part_px *ret_px)
{
	struct span column[PX_COLUMNS + 1];
	struct part_px px = { 0 };
	uint64_t tokens = 0, flags = 0;
	int tier, end, role;

	if (split_line(value, column, PX_COLUMNS + 1, &px.segment) < 0 ||
	    !span_equals(column[0], SPAN("px1")) || column[1].len != 1)
		return ERR_MALFORMED;
	px.dialect = dialect_from_letter(column[1].data[0]);
	tier = letter_index(column[2], "TSM");
	end = letter_index(column[3], end_letters);
	role = letter_index(column[4], role_letters);
	if (px.dialect == DIALECT_COUNT || tier < 0 || end < 0 || role < 0)
		return ERR_MALFORMED;
	px.tier = (enum tier)tier;
	px.end = (enum part_end)end;
	px.role = (enum part_role)role;
	if (read_offset(column[5], px.segment.len, &px.wrap_at) < 0 ||
	    read_offset(column[6], px.segment.len, &px.mark_at) < 0 ||
	    read_ttl(column[7], &px.ttl) < 0 ||
	    read_number(column[8], UINT32_MAX, &tokens) < 0 ||
	    read_number(column[9], UINT32_MAX, &flags) < 0 || !places_fit(&px))
		return ERR_MALFORMED;
	px.tokens = (uint32_t)tokens;
	px.flags = (uint32_t)flags;
	px.settings = column[10];
	if (px.settings.len < 2 || px.settings.data[0] != '{')
		return ERR_MALFORMED;
	*ret_px = px;
	return 0;
}

static int
read_marks(struct span column, struct part_own *own)
{
	if (column.len != PART_NODES_MAX)
		return ERR_MALFORMED;
	for (unsigned i = 0; i < PART_NODES_MAX; i++) {
		int mark =
			letter_index((struct span){ column.data + i, 1 }, mark_letters);

		if (mark < 0)
			return ERR_MALFORMED;
		own->user[i] = (enum part_mark)mark;
	}
	return 0;
}

static int
read_order(struct span column, struct part_own *own)
{
	if (column.len != 2 * PART_NODES_MAX)
		return ERR_MALFORMED;
	for (unsigned i = 0; i < 2 * PART_NODES_MAX; i++) {
		int ttl = letter_index((struct span){ column.data + i, 1 }, ttl_letters);

		if (ttl < 0)
			return ERR_MALFORMED;
		*(i % 2 ? &own->later[i / 2] : &own->earlier[i / 2]) = (enum ttl)ttl;
	}
	return 0;
}

int
part_own_read(struct span value, struct part_own *ret_own)
{
	struct span column[OWN_COLUMNS];
	struct part_own own = { 0 };
	struct span rest;
	uint64_t count = 0, flags = 0, len = 0;

	if (split_line(value, column, OWN_COLUMNS, &rest) < 0 ||
	    !span_equals(column[0], SPAN("own1")) || column[1].len != 1)
		return ERR_MALFORMED;
	own.dialect = dialect_from_letter(column[1].data[0]);
	if (own.dialect == DIALECT_COUNT || read_marks(column[2], &own) < 0 ||
	    read_number(column[3], UINT32_MAX, &count) < 0 ||
	    read_ttl(column[4], &own.automatic) < 0 || read_order(column[5], &own) < 0 ||
	    read_number(column[6], 3, &flags) < 0 ||
	    read_number(column[7], rest.len, &len) < 0)
		return ERR_MALFORMED;
	own.explicit_count = (uint32_t)count;
	own.opaque = (flags & 1) != 0;
	own.turns = (flags & 2) != 0;
	own.own = (struct span){ rest.data, (size_t)len };
	own.tail = (struct span){ rest.data + len, rest.len - (size_t)len };
	*ret_own = own;
	return 0;
}
