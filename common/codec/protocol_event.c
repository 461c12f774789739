#include "common/codec/protocol_event.h"

#include "common/text.h"

/* What stands behind the first word, one letter a field. */
static const struct {
	const char *word;
	const char *fields;
} shapes[PROTOCOL_EVENT_COUNT] = {
	[PROTOCOL_EVENT_START] = { "start", "lfgrNsq" },
	[PROTOCOL_EVENT_BEGAN] = { "began", "lfgru" },
	[PROTOCOL_EVENT_DONE] = { "done", "lfgru" },
	[PROTOCOL_EVENT_BACK] = { "back", "lfgrw" },
	[PROTOCOL_EVENT_SPENT] = { "spent", "lfgrwu" },
	[PROTOCOL_EVENT_TICKET] = { "ticket", "lgk" },
	[PROTOCOL_EVENT_PRESSURE] = { "pressure", "nwt" },
	[PROTOCOL_EVENT_EMPTY] = { "empty", "f" },
	[PROTOCOL_EVENT_WORK] = { "work", "f" },
	[PROTOCOL_EVENT_EXPIRED] = { "expired", "lg" },
	[PROTOCOL_EVENT_SHORT] = { "short", "nc" },
	[PROTOCOL_EVENT_HELLO] = { "hello", "Nnc" },
	[PROTOCOL_EVENT_BYE] = { "bye", "N" },
	[PROTOCOL_EVENT_DEAD] = { "dead", "nw" },
	[PROTOCOL_EVENT_ENDED] = { "ended", "nw" },
	[PROTOCOL_EVENT_UNDECIDED] = { "undecided", "n" },
	[PROTOCOL_EVENT_HOLD] = { "hold", "oR" },
	[PROTOCOL_EVENT_HOLD_ROUTE] = { "hold_route", "owR" },
	[PROTOCOL_EVENT_PAUSE] = { "pause", "of" },
	[PROTOCOL_EVENT_UNPARK] = { "unpark", "nW" },
	[PROTOCOL_EVENT_WARM] = { "warm", "fR" },
	[PROTOCOL_EVENT_STEER] = { "steer", "NwR" },
	[PROTOCOL_EVENT_FORGOT] = { "forgot", "f" },
	[PROTOCOL_EVENT_DRIFT] = { "drift", "l" },
};

/* ---- reading --------------------------------------------------------------------- */

static int
parse_nonce(struct span word, uint64_t *ret_nonce)
{
	char digits[ID_HEX_LEN];
	struct id128 id;

	if (word.len != 16)
		return ERR_MALFORMED;
	memset(digits, '0', 16);
	memcpy(digits + 16, word.data, 16);
	if (id_decode((struct span){ digits, ID_HEX_LEN }, &id) < 0)
		return ERR_MALFORMED;
	*ret_nonce = id.low;
	return 0;
}

static int
parse_number(struct span word, uint64_t max, uint64_t *ret_value)
{
	return text_parse_unsigned(word, max, ret_value);
}

static int
parse_count(struct span word, uint32_t *ret_count)
{
	uint64_t value;
	int err = text_parse_unsigned(word, UINT32_MAX, &value);

	if (err < 0)
		return err;
	*ret_count = (uint32_t)value;
	return 0;
}

static int
parse_role(struct span word, enum protocol_role *ret_role)
{
	if (word.len != 1 || !protocol_is_role(word.data[0]))
		return ERR_MALFORMED;
	*ret_role = (enum protocol_role)word.data[0];
	return 0;
}

/* Fields that take all that is left. */
static int
parse_rest(char letter, struct span rest, struct protocol_event *event)
{
	if (letter == 'u')
		return protocol_parse_usage(rest, &event->usage);
	if (letter == 'R')
		event->name = rest;
	else
		event->word = rest;
	return 0;
}

/* One field off *rest.  Usage, the outcome of a ticket and who did something take all
 * that is left. */
static int
parse_field(char letter, struct span *rest, struct protocol_event *event)
{
	struct span word = { "", 0 };

	if (letter == 'u' || letter == 'R' || letter == 'W') {
		word = rest->data ? *rest : SPAN("");
		*rest = (struct span){ NULL, 0 };
		return parse_rest(letter, word, event);
	}
	if (!protocol_cut(rest, ' ', &word))
		return ERR_MALFORMED;
	switch (letter) {
	case 'l':
		return protocol_parse_lane_id(word, &event->lane);
	case 'f': /* the lane of an ancestor node has no family */
		return word.len == 0 || span_equals(word, SPAN("-"))
		               ? 0
		               : id_decode(word, &event->family);
	case 'g':
		return parse_number(word, UINT64_MAX, &event->generation);
	case 'q':
		return parse_number(word, UINT64_MAX, &event->q);
	case 't':
		return parse_number(word, UINT64_MAX, &event->until_ms);
	case 's':
		return parse_count(word, &event->slot);
	case 'c':
		return parse_count(word, &event->count);
	case 'r':
		return parse_role(word, &event->role);
	case 'N':
		return parse_nonce(word, &event->nonce);
	case 'n':
		event->name = word;
		return word.len > 0 ? 0 : ERR_MALFORMED;
	case 'w':
		event->word = word;
		return word.len > 0 ? 0 : ERR_MALFORMED;
	case 'o':
		event->ok = span_equals(word, SPAN("on"));
		return event->ok || span_equals(word, SPAN("off")) ? 0 : ERR_MALFORMED;
	case 'k':
		event->ok = span_equals(word, SPAN("ok"));
		if (!event->ok && !span_equals(word, SPAN("failed")))
			return ERR_MALFORMED;
		return parse_field(event->ok ? 'u' : 'w', rest, event);
	}
	VERIFY(!"a field of some kind");
	return ERR_MALFORMED;
}

int
protocol_event_parse(struct span line, struct protocol_event *ret_event)
{
	struct protocol_event event = { .role = PROTOCOL_PLAIN };
	struct span word;
	size_t kind = 0;

	if (!protocol_cut(&line, ' ', &word))
		return ERR_MALFORMED;
	while (kind < PROTOCOL_EVENT_COUNT &&
	       !span_equals(word, span_from(shapes[kind].word)))
		kind++;
	if (kind == PROTOCOL_EVENT_COUNT)
		return ERR_UNSUPPORTED;
	event.kind = (enum protocol_event_kind)kind;
	event.usage = protocol_usage_none();
	for (const char *field = shapes[kind].fields; *field; field++)
		if (parse_field(*field, &line, &event) < 0)
			return ERR_MALFORMED;

	*ret_event = event; /* words behind the last field belong to a later version */
	return 0;
}

/* ---- writing --------------------------------------------------------------------- */

struct writer {
	char *text;
	size_t size, len;
	bool full;
};

static void
put_word(struct writer *out, struct span word)
{
	size_t blank = out->len > 0;

	if (out->full || out->size - out->len < word.len + blank) {
		out->full = true;
		return;
	}
	if (blank)
		out->text[out->len++] = ' ';
	if (word.len > 0)
		memcpy(out->text + out->len, word.data, word.len);
	out->len += word.len;
}

static void
put_number(struct writer *out, uint64_t value)
{
	char digits[TEXT_NUMBER_SIZE];
	size_t len = text_print_unsigned(value, digits);

	put_word(out, (struct span){ digits, len });
}

static void
put_id(struct writer *out, struct id128 id, size_t from)
{
	char digits[ID_HEX_LEN];

	id_encode(id, digits);
	put_word(out, (struct span){ digits + from, ID_HEX_LEN - from });
}

static void
put_lane(struct writer *out, struct protocol_lane_id lane)
{
	char text[PROTOCOL_LANE_ID_SIZE];
	size_t len = protocol_print_lane_id(lane, text);

	put_word(out, (struct span){ text, len });
}

static void
put_usage(struct writer *out, const struct protocol_usage *usage)
{
	char text[PROTOCOL_USAGE_SIZE];
	size_t len = protocol_print_usage(usage, text);

	put_word(out, (struct span){ text, len });
}

static void
put_field(char letter, const struct protocol_event *event, struct writer *out)
{
	char role = (char)event->role;

	switch (letter) {
	case 'l':
		put_lane(out, event->lane);
		break;
	case 'f':
		if (id_is_none(event->family))
			put_word(out, SPAN("-"));
		else
			put_id(out, event->family, 0);
		break;
	case 'g':
		put_number(out, event->generation);
		break;
	case 'q':
		put_number(out, event->q);
		break;
	case 't':
		put_number(out, event->until_ms);
		break;
	case 's':
		put_number(out, event->slot);
		break;
	case 'c':
		put_number(out, event->count);
		break;
	case 'r':
		put_word(out, (struct span){ &role, 1 });
		break;
	case 'N':
		put_id(out, (struct id128){ 0, event->nonce }, 16);
		break;
	case 'n':
	case 'R':
		put_word(out, event->name);
		break;
	case 'w':
	case 'W':
		put_word(out, event->word);
		break;
	case 'u':
		put_usage(out, &event->usage);
		break;
	case 'o':
		put_word(out, event->ok ? SPAN("on") : SPAN("off"));
		break;
	case 'k':
		put_word(out, event->ok ? SPAN("ok") : SPAN("failed"));
		put_field(event->ok ? 'u' : 'w', event, out);
		break;
	}
}

int
protocol_event_print(const struct protocol_event *event, char *ret_text, size_t size,
                     size_t *ret_len)
{
	struct writer out = { ret_text, size, 0, false };

	VERIFY((unsigned)event->kind < PROTOCOL_EVENT_COUNT);
	put_word(&out, span_from(shapes[event->kind].word));
	for (const char *field = shapes[event->kind].fields; *field; field++)
		put_field(*field, event, &out);
	if (out.full)
		return ERR_FULL;
	*ret_len = out.len;
	return 0;
}
