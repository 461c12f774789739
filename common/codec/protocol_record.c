#include "common/codec/protocol_record.h"

#include "common/text.h"

#define FAMILY_COLUMNS 41
#define LANE_COLUMNS   96
#define FORMAT_DIGIT   '1'

/* ---- columns --------------------------------------------------------------------- */

/* Reads the next `width` digits off *text; a first stranger sets *bad for good. */
static uint64_t
take_column(struct span *text, size_t width, bool *bad)
{
	uint64_t value = 0;

	if (text->len < width || text_parse_unsigned((struct span){ text->data, width },
	                                             UINT64_MAX, &value) < 0) {
		*bad = true;
		return 0;
	}
	text->data += width;
	text->len -= width;
	return value;
}

static struct span
take_field(struct span *text, bool *bad)
{
	struct span field = { "", 0 };

	if (!protocol_cut(text, '|', &field))
		*bad = true;
	return field;
}

static int
open_record(struct span *text, size_t columns)
{
	if (text->len <= columns || text->data[columns] != '|')
		return text->len > 0 && text->data[0] != FORMAT_DIGIT ? ERR_UNSUPPORTED
		                                                      : ERR_MALFORMED;
	if (text->data[0] != FORMAT_DIGIT)
		return ERR_UNSUPPORTED;
	text->data++;
	text->len--;
	return 0;
}

int
protocol_record_parse_family(struct span text, struct protocol_family *ret_family)
{
	struct protocol_family family = { 0 };
	bool bad = false;
	int err = open_record(&text, FAMILY_COLUMNS);

	if (err < 0)
		return err;
	family.bits = (uint32_t)take_column(&text, 3, &bad);
	family.flags = (uint32_t)take_column(&text, 2, &bad);
	family.live = take_column(&text, 10, &bad);
	family.hold_max_ms = take_column(&text, 8, &bad);
	family.input = take_column(&text, 8, &bad);
	family.output = take_column(&text, 8, &bad);
	family.marks = (uint32_t)take_column(&text, 1, &bad);
	(void)take_field(&text, &bad); /* the bar behind the columns */
	family.pool = take_field(&text, &bad);
	family.budget = take_field(&text, &bad);
	family.lanes = take_field(&text, &bad);
	family.ancestors = take_field(&text, &bad);
	family.px = take_field(&text, &bad);
	if (bad || !protocol_cut(&text, '|', &family.route))
		return ERR_MALFORMED;
	family.model = text; /* no bytes at all, not even none: not known */

	*ret_family = family;
	return 0;
}

int
protocol_record_parse_lane(struct span text, struct protocol_lane *ret_lane)
{
	struct protocol_lane lane = { 0 };
	uint64_t gate, ticket;
	bool bad = false;
	int err = open_record(&text, LANE_COLUMNS);

	if (err < 0)
		return err;
	gate = take_column(&text, 1, &bad);
	lane.reason = (uint32_t)take_column(&text, 1, &bad);
	lane.generation = take_column(&text, 10, &bad);
	lane.credits = (uint32_t)take_column(&text, 3, &bad);
	lane.credit_role = (uint32_t)take_column(&text, 1, &bad);
	lane.in_use = (uint32_t)take_column(&text, 5, &bad);
	lane.window = (uint32_t)take_column(&text, 5, &bad);
	lane.rank = take_column(&text, 8, &bad);
	lane.until_ms = take_column(&text, 14, &bad);
	lane.tokens = take_column(&text, 8, &bad);
	lane.life_ms = take_column(&text, 10, &bad);
	ticket = take_column(&text, 1, &bad);
	lane.ticket_deadline_ms = take_column(&text, 14, &bad);
	lane.must_begin_ms = take_column(&text, 14, &bad);
	(void)take_field(&text, &bad);
	lane.pool = take_field(&text, &bad);
	lane.budget = take_field(&text, &bad);
	lane.family = take_field(&text, &bad);
	lane.px = take_field(&text, &bad);
	if (bad || !text.data || gate >= PROTOCOL_GATE_COUNT ||
	    ticket >= PROTOCOL_TICKET_COUNT)
		return ERR_MALFORMED;
	lane.gate = (enum protocol_gate)gate;
	lane.ticket = (enum protocol_ticket)ticket;
	lane.ticket_note = text;

	*ret_lane = lane;
	return 0;
}

/* ---- leases ---------------------------------------------------------------------- */

static uint64_t
take_number(struct span *text, bool *bad)
{
	uint64_t value = 0;

	if (text_parse_unsigned(take_field(text, bad), UINT64_MAX, &value) < 0)
		*bad = true;
	return value;
}

static char
take_letter(struct span *text, bool *bad)
{
	struct span field = take_field(text, bad);

	if (field.len != 1) {
		*bad = true;
		return '\0';
	}
	return field.data[0];
}

static void
take_estimate(struct span *text, struct protocol_lease *lease, bool *bad)
{
	struct span field = take_field(text, bad), input = { "", 0 };

	if (!protocol_cut(&field, ',', &input) || !field.data ||
	    text_parse_unsigned(input, UINT64_MAX, &lease->input) < 0 ||
	    text_parse_unsigned(field, UINT64_MAX, &lease->output) < 0)
		*bad = true;
}

int
protocol_record_parse_lease(struct span text, struct protocol_lease *ret_lease)
{
	struct protocol_lease lease = { 0 };
	enum protocol_band band;
	char role;
	bool bad = false;

	lease.q = take_number(&text, &bad);
	lease.family = take_field(&text, &bad);
	lease.lane = take_field(&text, &bad);
	lease.element = take_field(&text, &bad);
	role = take_letter(&text, &bad);
	lease.begun = role >= 'A' && role <= 'Z';
	role = (char)(role | 0x20);
	lease.generation = take_number(&text, &bad);
	take_estimate(&text, &lease, &bad);
	lease.end_ms = take_number(&text, &bad);
	lease.delivery = take_number(&text, &bad);
	lease.band = take_letter(&text, &bad);
	if (bad || text.data || !protocol_is_role(role) ||
	    protocol_band_of(lease.band, &band) < 0)
		return ERR_MALFORMED;
	lease.role = (enum protocol_role)role;

	*ret_lease = lease;
	return 0;
}

/* ---- printing -------------------------------------------------------------------- */

struct writer {
	char *text;
	size_t size, len;
	bool full;
};

static void
put_bytes(struct writer *out, struct span bytes)
{
	if (out->full || out->size - out->len < bytes.len) {
		out->full = true;
		return;
	}
	if (bytes.len > 0)
		memcpy(out->text + out->len, bytes.data, bytes.len);
	out->len += bytes.len;
}

/* Clamped to what `width` digits can say: a column must never push its neighbour. */
static void
put_column(struct writer *out, size_t width, uint64_t value)
{
	char digits[20];

	VERIFY(width <= sizeof(digits));
	for (size_t i = width; i > 0; i--) {
		digits[i - 1] = (char)('0' + value % 10);
		value /= 10;
	}
	if (value > 0)
		memset(digits, '9', width);
	put_bytes(out, (struct span){ digits, width });
}

static void
put_field(struct writer *out, struct span field)
{
	put_bytes(out, SPAN("|"));
	put_bytes(out, field);
}

static void
put_number(struct writer *out, const char *before, uint64_t value)
{
	char digits[TEXT_NUMBER_SIZE];
	size_t len = text_print_unsigned(value, digits);

	put_bytes(out, span_from(before));
	put_bytes(out, (struct span){ digits, len });
}

static int
close_writer(const struct writer *out, size_t *ret_len)
{
	if (out->full)
		return ERR_FULL;
	*ret_len = out->len;
	return 0;
}

int
protocol_record_print_family(const struct protocol_family *family, char *ret_text,
                             size_t size, size_t *ret_len)
{
	struct writer out = { ret_text, size, 0, false };

	put_column(&out, 1, FORMAT_DIGIT - '0');
	put_column(&out, 3, family->bits);
	put_column(&out, 2, family->flags);
	put_column(&out, 10, family->live);
	put_column(&out, 8, family->hold_max_ms);
	put_column(&out, 8, family->input);
	put_column(&out, 8, family->output);
	put_column(&out, 1, family->marks);
	put_field(&out, family->pool);
	put_field(&out, family->budget);
	put_field(&out, family->lanes);
	put_field(&out, family->ancestors);
	put_field(&out, family->px);
	put_field(&out, family->route);
	if (family->model.data)
		put_field(&out, family->model);
	return close_writer(&out, ret_len);
}

int
protocol_record_print_lane(const struct protocol_lane *lane, char *ret_text, size_t size,
                           size_t *ret_len)
{
	struct writer out = { ret_text, size, 0, false };

	put_column(&out, 1, FORMAT_DIGIT - '0');
	put_column(&out, 1, lane->gate);
	put_column(&out, 1, lane->reason);
	put_column(&out, 10, lane->generation);
	put_column(&out, 3, lane->credits);
	put_column(&out, 1, lane->credit_role);
	put_column(&out, 5, lane->in_use);
	put_column(&out, 5, lane->window);
	put_column(&out, 8, lane->rank);
	put_column(&out, 14, lane->until_ms);
	put_column(&out, 8, lane->tokens);
	put_column(&out, 10, lane->life_ms);
	put_column(&out, 1, lane->ticket);
	put_column(&out, 14, lane->ticket_deadline_ms);
	put_column(&out, 14, lane->must_begin_ms);
	put_field(&out, lane->pool);
	put_field(&out, lane->budget);
	put_field(&out, lane->family);
	put_field(&out, lane->px);
	put_field(&out, lane->ticket_note);
	return close_writer(&out, ret_len);
}

int
protocol_record_print_lease(const struct protocol_lease *lease, char *ret_text,
                            size_t size, size_t *ret_len)
{
	struct writer out = { ret_text, size, 0, false };
	char role = (char)((char)lease->role & (lease->begun ? ~0x20 : ~0));

	put_number(&out, "", lease->q);
	put_field(&out, lease->family);
	put_field(&out, lease->lane);
	put_field(&out, lease->element);
	put_field(&out, (struct span){ &role, 1 });
	put_number(&out, "|", lease->generation);
	put_number(&out, "|", lease->input);
	put_number(&out, ",", lease->output);
	put_number(&out, "|", lease->end_ms);
	put_number(&out, "|", lease->delivery);
	put_field(&out, (struct span){ &lease->band, 1 });
	return close_writer(&out, ret_len);
}
