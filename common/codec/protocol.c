#include "common/codec/protocol.h"

#include "common/text.h"

bool
protocol_cut(struct span *text, char separator, struct span *ret_word)
{
	const char *end;

	if (!text->data)
		return false;
	end = text->len ? memchr(text->data, separator, text->len) : NULL;
	if (!end) {
		*ret_word = *text;
		*text = (struct span){ NULL, 0 };
		return true;
	}
	*ret_word = (struct span){ text->data, (size_t)(end - text->data) };
	*text = (struct span){ end + 1, text->len - ret_word->len - 1 };
	return true;
}

bool
protocol_list_next(struct span *list, struct span *ret_item)
{
	if (list->len == 0) /* "" is a list of none, not of one empty item */
		return false;
	return protocol_cut(list, ',', ret_item);
}

/* ---- printing: into memory that is large enough by contract ---------------------- */

static size_t
put_bytes(char *text, struct span bytes)
{
	memcpy(text, bytes.data, bytes.len);
	return bytes.len;
}

static size_t
put_unsigned(char *text, uint64_t value)
{
	char digits[TEXT_NUMBER_SIZE];
	size_t len = text_print_unsigned(value, digits);

	memcpy(text, digits, len);
	return len;
}

static size_t
put_known(char *text, int64_t value)
{
	if (value < 0)
		return put_bytes(text, SPAN("-"));
	return put_unsigned(text, (uint64_t)value);
}

/* ---- lanes, jobs, elements, tickets ---------------------------------------------- */

int
protocol_parse_lane_id(struct span text, struct protocol_lane_id *ret_id)
{
	struct id128 node;
	uint64_t domain;

	if (text.len < ID_HEX_LEN + 2 || text.data[ID_HEX_LEN] != '.')
		return ERR_MALFORMED;
	if (id_decode((struct span){ text.data, ID_HEX_LEN }, &node) < 0)
		return ERR_MALFORMED;
	text.data += ID_HEX_LEN + 1;
	text.len -= ID_HEX_LEN + 1;
	if (text_parse_unsigned(text, UINT32_MAX, &domain) < 0)
		return ERR_MALFORMED;

	*ret_id = (struct protocol_lane_id){ node, (uint32_t)domain };
	return 0;
}

size_t
protocol_print_lane_id(struct protocol_lane_id id, char *ret_text)
{
	id_encode(id.node, ret_text);
	ret_text[ID_HEX_LEN] = '.';
	return ID_HEX_LEN + 1 + put_unsigned(ret_text + ID_HEX_LEN + 1, id.domain);
}

/* A number of an id: it has one spelling, as Redis prints it. */
static int
parse_part(struct span text, uint64_t max, uint64_t *ret_value)
{
	if (text.len > 1 && text.data[0] == '0')
		return ERR_MALFORMED;
	return text_parse_unsigned(text, max, ret_value);
}

int
protocol_parse_job_id(struct span text, struct protocol_job_id *ret_id)
{
	struct span ms, sequence;
	uint64_t number = 0;
	struct protocol_job_id id = { 0 };

	if (!protocol_cut(&text, '-', &ms) || !protocol_cut(&text, '.', &sequence))
		return ERR_MALFORMED;
	if (parse_part(ms, UINT64_MAX, &id.ms) < 0 ||
	    parse_part(sequence, UINT64_MAX, &id.sequence) < 0)
		return ERR_MALFORMED;
	if (text.data) { /* something stands behind a point */
		if (parse_part(text, UINT32_MAX, &number) < 0 || number == 0)
			return ERR_MALFORMED;
		id.part = (uint32_t)number;
	}

	*ret_id = id;
	return 0;
}

size_t
protocol_print_job_id(struct protocol_job_id id, char *ret_text)
{
	size_t len = put_unsigned(ret_text, id.ms);

	ret_text[len++] = '-';
	len += put_unsigned(ret_text + len, id.sequence);
	if (id.part > 0) {
		ret_text[len++] = '.';
		len += put_unsigned(ret_text + len, id.part);
	}
	return len;
}

int
protocol_compare_job_ids(struct protocol_job_id a, struct protocol_job_id b)
{
	if (a.ms != b.ms)
		return a.ms < b.ms ? -1 : 1;
	if (a.sequence != b.sequence)
		return a.sequence < b.sequence ? -1 : 1;
	if (a.part != b.part)
		return a.part < b.part ? -1 : 1;
	return 0;
}

static int
parse_pair(struct span text, uint64_t *ret_a, uint64_t *ret_b)
{
	struct span a, b;
	uint64_t value_a, value_b;

	if (!protocol_cut(&text, ',', &a) || !protocol_cut(&text, ',', &b) || text.data)
		return ERR_MALFORMED;
	if (text_parse_unsigned(a, UINT64_MAX, &value_a) < 0 ||
	    text_parse_unsigned(b, UINT64_MAX, &value_b) < 0)
		return ERR_MALFORMED;

	*ret_a = value_a;
	*ret_b = value_b;
	return 0;
}

int
protocol_parse_element(struct span text, struct protocol_element *ret_element)
{
	struct protocol_element element = { 0 };
	struct span id;

	if (text.len >= 2 && text.data[0] == 'w' && text.data[1] == ':')
		return ERR_UNSUPPORTED;
	if (!protocol_cut(&text, '/', &id))
		return ERR_MALFORMED;
	if (text.data) {
		if (parse_pair(text, &element.input, &element.output) < 0)
			return ERR_MALFORMED;
		element.has_estimate = true;
	}
	if (id.len > 0 && id.data[id.len - 1] == '~') {
		element.slim = true;
		id.len--;
	}
	if (protocol_parse_job_id(id, &element.id) < 0)
		return ERR_MALFORMED;

	*ret_element = element;
	return 0;
}

size_t
protocol_print_element(const struct protocol_element *element, char *ret_text)
{
	size_t len = protocol_print_job_id(element->id, ret_text);

	if (element->slim)
		ret_text[len++] = '~';
	if (element->has_estimate) {
		ret_text[len++] = '/';
		len += put_unsigned(ret_text + len, element->input);
		ret_text[len++] = ',';
		len += put_unsigned(ret_text + len, element->output);
	}
	return len;
}

int
protocol_parse_ticket(struct span text, struct protocol_lane_id *ret_lane,
                      uint64_t *ret_generation)
{
	struct span prefix, lane, generation;
	struct protocol_lane_id id;
	uint64_t g;

	if (!protocol_cut(&text, ':', &prefix) || !span_equals(prefix, SPAN("w")) ||
	    !protocol_cut(&text, ':', &lane) || !protocol_cut(&text, ':', &generation) ||
	    text.data)
		return ERR_MALFORMED;
	if (protocol_parse_lane_id(lane, &id) < 0 ||
	    text_parse_unsigned(generation, UINT64_MAX, &g) < 0)
		return ERR_MALFORMED;

	*ret_lane = id;
	*ret_generation = g;
	return 0;
}

size_t
protocol_print_ticket(struct protocol_lane_id lane, uint64_t generation, char *ret_text)
{
	size_t len = put_bytes(ret_text, SPAN("w:"));

	len += protocol_print_lane_id(lane, ret_text + len);
	ret_text[len++] = ':';
	return len + put_unsigned(ret_text + len, generation);
}

size_t
protocol_print_budget(struct span upstream, struct span account, struct span class_name,
                      char *ret_text)
{
	size_t len;

	if (!text_is_name(upstream) || !text_is_name(account) ||
	    !text_is_name(class_name))
		return 0;
	len = put_bytes(ret_text, upstream);
	if (!span_equals(upstream, account)) {
		ret_text[len++] = '@';
		len += put_bytes(ret_text + len, account);
	}
	ret_text[len++] = ':';
	return len + put_bytes(ret_text + len, class_name);
}

/* ---- usage ----------------------------------------------------------------------- */

struct protocol_usage
protocol_usage_none(void)
{
	return (struct protocol_usage){
		.sent_ms = PROTOCOL_UNKNOWN,
		.first_ms = PROTOCOL_UNKNOWN,
		.read = PROTOCOL_UNKNOWN,
		.written = PROTOCOL_UNKNOWN,
		.uncached = PROTOCOL_UNKNOWN,
		.output = PROTOCOL_UNKNOWN,
		.limit_requests = PROTOCOL_UNKNOWN,
		.limit_input = PROTOCOL_UNKNOWN,
		.limit_output = PROTOCOL_UNKNOWN,
		.wait_ms = PROTOCOL_UNKNOWN,
		.written_1h = PROTOCOL_UNKNOWN,
		.billed_read = PROTOCOL_UNKNOWN,
		.billed_written = PROTOCOL_UNKNOWN,
		.server_tool = PROTOCOL_UNKNOWN,
		.left_requests = PROTOCOL_UNKNOWN,
		.may_bill = PROTOCOL_UNKNOWN,
	};
}

static int
parse_known(struct span word, int64_t *ret_value)
{
	uint64_t value;

	if (span_equals(word, SPAN("-"))) {
		*ret_value = PROTOCOL_UNKNOWN;
		return 0;
	}
	if (text_parse_unsigned(word, INT64_MAX, &value) < 0)
		return ERR_MALFORMED;
	*ret_value = (int64_t)value;
	return 0;
}

/* What a seventh word may say, by letter, in the order in which it is printed. */
static const struct {
	char letter;
	size_t offset;
} extras[] = {
	{ 'r', offsetof(struct protocol_usage, limit_requests) },
	{ 'i', offsetof(struct protocol_usage, limit_input) },
	{ 'o', offsetof(struct protocol_usage, limit_output) },
	{ 'w', offsetof(struct protocol_usage, wait_ms) },
	{ 'h', offsetof(struct protocol_usage, written_1h) },
	{ 'R', offsetof(struct protocol_usage, billed_read) },
	{ 'W', offsetof(struct protocol_usage, billed_written) },
	{ 's', offsetof(struct protocol_usage, server_tool) },
	{ 'q', offsetof(struct protocol_usage, left_requests) },
	{ 'b', offsetof(struct protocol_usage, may_bill) },
};

/* "r=4000,i=450000,o=90000,w=120", any of them, in any order; others are of a later
 * version. */
static int
parse_extras(struct span list, struct protocol_usage *usage)
{
	struct span item;
	int64_t value;

	while (protocol_list_next(&list, &item)) {
		if (item.len < 3 || item.data[1] != '=')
			return ERR_MALFORMED;
		if (parse_known((struct span){ item.data + 2, item.len - 2 }, &value) < 0)
			return ERR_MALFORMED;
		for (size_t i = 0; i < ARRAY_SIZE(extras); i++)
			if (extras[i].letter == item.data[0])
				memcpy((char *)usage + extras[i].offset, &value,
				       sizeof(value));
	}
	return 0;
}

/* Sums of whatever a provider says have to stay numbers. */
static void
bound_tokens(struct protocol_usage *usage)
{
	int64_t *const tokens[] = { &usage->read,          &usage->written,
		                    &usage->uncached,      &usage->output,
		                    &usage->written_1h,    &usage->billed_read,
		                    &usage->billed_written };

	for (size_t i = 0; i < ARRAY_SIZE(tokens); i++)
		*tokens[i] = MIN(*tokens[i], PROTOCOL_TOKENS_MAX);
}

int
protocol_parse_usage(struct span text, struct protocol_usage *ret_usage)
{
	struct protocol_usage usage = protocol_usage_none();
	int64_t *const fields[] = { &usage.sent_ms, &usage.first_ms, &usage.read,
		                    &usage.written, &usage.uncached, &usage.output };
	struct span word;

	if (text.len == 0) {
		*ret_usage = usage;
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (!protocol_cut(&text, ' ', &word) || parse_known(word, fields[i]) < 0)
			return ERR_MALFORMED;
	if (protocol_cut(&text, ' ', &word) && parse_extras(word, &usage) < 0)
		return ERR_MALFORMED;
	if (text.data)
		return ERR_MALFORMED;

	bound_tokens(&usage);
	*ret_usage = usage;
	return 0;
}

static size_t
put_extra(char *text, size_t *fresh, char letter, int64_t value)
{
	size_t len = 0;

	if (value < 0)
		return 0;
	text[len++] = *fresh ? ' ' : ',';
	*fresh = 0;
	text[len++] = letter;
	text[len++] = '=';
	return len + put_unsigned(text + len, (uint64_t)value);
}

size_t
protocol_print_usage(const struct protocol_usage *usage, char *ret_text)
{
	const int64_t fields[] = { usage->sent_ms, usage->first_ms, usage->read,
		                   usage->written, usage->uncached, usage->output };
	size_t len = 0;
	size_t fresh = 1;

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		if (i > 0)
			ret_text[len++] = ' ';
		len += put_known(ret_text + len, fields[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(extras); i++) {
		int64_t value;

		memcpy(&value, (const char *)usage + extras[i].offset, sizeof(value));
		len += put_extra(ret_text + len, &fresh, extras[i].letter, value);
	}
	return len;
}

/* ---- letters and words ----------------------------------------------------------- */

char
protocol_band_letter(enum protocol_band band)
{
	static const char letters[] = { 'h', 'n', 'l' };

	VERIFY((unsigned)band < PROTOCOL_BAND_COUNT);
	return letters[band];
}

int
protocol_band_of(char letter, enum protocol_band *ret_band)
{
	switch (letter) {
	case 'h':
		*ret_band = PROTOCOL_HIGH;
		return 0;
	case 'n':
		*ret_band = PROTOCOL_NORMAL;
		return 0;
	case 'l':
		*ret_band = PROTOCOL_LOW;
		return 0;
	default:
		return ERR_MALFORMED;
	}
}

bool
protocol_is_role(char letter)
{
	return letter != '\0' && strchr("plchnt", letter) != NULL;
}

const char *
protocol_gate_text(enum protocol_gate gate)
{
	static const char *const texts[] = { "closed", "writing", "checking",
		                             "open",   "bypass",  "leaky" };

	return (unsigned)gate < PROTOCOL_GATE_COUNT ? texts[gate] : "unknown";
}

const char *
protocol_reason_text(uint32_t reason)
{
	static const char *const texts[] = {
		"",
		"uncacheable",
		"below minimum",
		"unshared",
		"opaque",
		"never read",
		"leader refused",
		"off",
		"usage unknown",
		"not held here",
	};

	return reason < ARRAY_SIZE(texts) ? texts[reason] : "unknown";
}

const char *
protocol_role_text(enum protocol_role role)
{
	switch (role) {
	case PROTOCOL_PLAIN:
		return "plain";
	case PROTOCOL_LEAD:
		return "lead";
	case PROTOCOL_CANARY:
		return "canary";
	case PROTOCOL_HOLD_LIMIT:
		return "hold limit";
	case PROTOCOL_NOW:
		return "now";
	case PROTOCOL_TICKET:
		return "ticket";
	}
	return "unknown";
}
