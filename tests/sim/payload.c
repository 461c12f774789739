#include "tests/sim/payload.h"

#include "common/codec/protocol.h"
#include "common/text.h"

static const struct payload DEFAULTS = { .attempts = 3, .timeout_ms = 600000 };

static bool
take_field(struct payload *payload, struct span name, struct span value)
{
	uint64_t number;

	if (span_equals(name, SPAN("upstream")))
		payload->upstream = value;
	else if (span_equals(name, SPAN("reply")))
		payload->reply = value;
	else if (span_equals(name, SPAN("body")))
		payload->body = value;
	else if (span_equals(name, SPAN("attempts"))) {
		if (text_parse_unsigned(value, 1000, &number) < 0)
			return false;
		payload->attempts = (uint32_t)number;
	} else if (span_equals(name, SPAN("timeout"))) {
		if (text_parse_unsigned(value, UINT32_MAX, &payload->timeout_ms) < 0 &&
		    text_parse_duration(value, &payload->timeout_ms) < 0)
			return false;
	}
	return true;
}

bool
payload_read_entry(const struct reply *words, struct payload *ret_payload)
{
	struct payload payload = DEFAULTS;

	for (size_t i = 0; i + 1 < words->count; i += 2) {
		if (!take_field(&payload, words->items[i].text, words->items[i + 1].text))
			return false;
	}
	*ret_payload = payload;
	return payload.upstream.len > 0;
}

/* "<len> <bytes>\n" */
static bool
take_counted(struct span *rest, struct span *ret_bytes)
{
	const char *blank = memchr(rest->data, ' ', rest->len);
	uint64_t len;
	size_t digits;

	if (!blank)
		return false;
	digits = (size_t)(blank - rest->data);
	if (text_parse_unsigned((struct span){ rest->data, digits }, rest->len, &len) < 0)
		return false;
	if (digits + 1 + len + 1 > rest->len || rest->data[digits + 1 + len] != '\n')
		return false;
	*ret_bytes = (struct span){ blank + 1, len };
	*rest = (struct span){ blank + len + 2, rest->len - digits - len - 2 };
	return true;
}

static bool
read_moved(struct span rest, struct payload *payload)
{
	struct span name;
	struct span value;

	while (rest.len > 0) {
		if (!take_counted(&rest, &name) || !take_counted(&rest, &value))
			return false;
		if (!take_field(payload, name, value))
			return false;
	}
	return true;
}

bool
payload_read_slim(struct span value, struct payload *ret_payload)
{
	struct payload payload = DEFAULTS;
	struct span rest = value;
	struct span line;

	if (!protocol_cut(&rest, '\n', &line))
		return false;
	if (span_equals(line, SPAN("entry"))) {
		if (!read_moved(rest, &payload))
			return false;
		*ret_payload = payload;
		return payload.upstream.len > 0;
	}
	for (rest = value; protocol_cut(&rest, '\n', &line) && line.len > 0;) {
		struct span text = line;
		struct span name;

		if (!protocol_cut(&text, ' ', &name) || !take_field(&payload, name, text))
			return false;
	}
	payload.body = rest;
	*ret_payload = payload;
	return payload.upstream.len > 0;
}
