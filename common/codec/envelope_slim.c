#include "common/codec/envelope.h"
#include "common/codec/envelope_field.h"
#include "common/text.h"

#define FIRST_WHOLE SPAN("slim1 whole\n")
#define FIRST_OWN   SPAN("slim1 own\n")

static void
put_span(struct buffer *out, const char *name, struct span value)
{
	if (value.len == 0)
		return;
	(void)buffer_append_format(out, "%s ", name);
	(void)buffer_append(out, value);
	(void)buffer_append_byte(out, '\n');
}

static void
put_number(struct buffer *out, const char *name, uint64_t value, uint64_t fallback)
{
	if (value != fallback)
		(void)buffer_append_format(out, "%s %llu\n", name,
		                           (unsigned long long)value);
}

static void
put_prefix(struct buffer *out, const struct envelope *envelope)
{
	if (envelope->prefix.len == 0)
		return;
	(void)buffer_append_text(out, envelope->kind == ENVELOPE_PREFIX ? "put_prefix "
	                                                                : "prefix ");
	(void)buffer_append(out, envelope->prefix);
	if (envelope->prefix_pin.len > 0) {
		(void)buffer_append_byte(out, '@');
		(void)buffer_append(out, envelope->prefix_pin);
	}
	(void)buffer_append_byte(out, '\n');
}

static void
put_shared(struct buffer *out, struct chain_shared shared)
{
	static const char *const words[] = {
		[CHAIN_SHARED_TOOLS] = "tools",        [CHAIN_SHARED_SYSTEM] = "system",
		[CHAIN_SHARED_MESSAGES] = "messages:", [CHAIN_SHARED_MARKER] = "marker:",
		[CHAIN_SHARED_BYTES] = "bytes:",
	};

	if (shared.kind == CHAIN_SHARED_AUTO)
		return;
	(void)buffer_append_format(out, "shared %s", words[shared.kind]);
	if (shared.kind >= CHAIN_SHARED_MESSAGES)
		(void)buffer_append_unsigned(out, shared.n);
	(void)buffer_append_byte(out, '\n');
}

void
envelope_write_slim(const struct envelope *envelope, struct buffer *out)
{
	static const char *const bands[] = { "high", "normal", "low" };
	struct envelope plain;

	envelope_field_defaults(&plain);
	(void)buffer_append(out, envelope->body_kind == ENVELOPE_OWN ? FIRST_OWN
	                                                             : FIRST_WHOLE);
	put_span(out, "upstream", envelope->upstream);
	put_prefix(out, envelope);
	put_span(out, "route", envelope->route);
	put_shared(out, envelope->shared);
	put_span(out, "conversation", envelope->conversation);
	put_span(out, "betas", envelope->betas);
	if (envelope->markers != ENVELOPE_MARKERS_UNSET)
		put_span(out, "markers",
		         envelope->markers == ENVELOPE_MARKERS_NEVER ? SPAN("never")
		                                                     : SPAN("auto"));
	put_span(out, "handler", envelope->handler);
	if (envelope->priority != plain.priority)
		put_span(out, "priority", span_from(bands[envelope->priority]));
	put_number(out, "not_before", envelope->not_before_ms, plain.not_before_ms);
	put_number(out, "deadline", envelope->deadline_ms, plain.deadline_ms);
	put_number(out, "timeout", envelope->timeout_ms, plain.timeout_ms);
	put_number(out, "attempts", envelope->attempts, plain.attempts);
	put_number(out, "hold_max", envelope->hold_max_ms, plain.hold_max_ms);
	put_span(out, "reply", envelope->reply);
	put_span(out, "ref", envelope->ref);
	put_span(out, "traceparent", envelope->traceparent);
	(void)buffer_append_byte(out, '\n');
	(void)buffer_append(out, envelope->body);
}

static bool
take_first(struct span *payload, struct span line)
{
	if (payload->len < line.len || memcmp(payload->data, line.data, line.len) != 0)
		return false;
	payload->data += line.len;
	payload->len -= line.len;
	return true;
}

/* Cuts one line off the front, without its newline. */
static bool
take_line(struct span *payload, struct span *ret_line)
{
	const char *end = payload->len ? memchr(payload->data, '\n', payload->len) : NULL;

	if (!end)
		return false;
	*ret_line = (struct span){ payload->data, (size_t)(end - payload->data) };
	payload->data += ret_line->len + 1;
	payload->len -= ret_line->len + 1;
	return true;
}

/* Betas were written sorted and joined: they are taken as they are. */
static int
read_line(struct span line, struct envelope *envelope, struct envelope_error *reterr)
{
	const char *blank = memchr(line.data, ' ', line.len);
	struct span name = { line.data, blank ? (size_t)(blank - line.data) : line.len };
	struct span value = { 0 };
	const struct envelope_field *field = envelope_field_find(name);
	struct buffer none = BUFFER_INIT(0);

	if (!blank || !field || field->type == ENVELOPE_TYPE_BODY)
		return envelope_field_unknown(name, reterr);
	value = (struct span){ blank + 1, line.len - name.len - 1 };
	if (field->type == ENVELOPE_TYPE_BETAS) {
		envelope->betas = value;
		return 0;
	}
	if (span_equals(name, SPAN("put_prefix")))
		envelope->kind = ENVELOPE_PREFIX;
	return envelope_field_parse(field, value, 0, &none, envelope, reterr);
}

int
envelope_read_slim(struct span payload, struct envelope *ret_envelope,
                   struct envelope_error *reterr)
{
	struct envelope envelope;
	struct span line;

	*reterr = (struct envelope_error){ 0 };
	envelope_field_defaults(&envelope);
	if (take_first(&payload, FIRST_OWN))
		envelope.body_kind = ENVELOPE_OWN;
	else if (!take_first(&payload, FIRST_WHOLE))
		return envelope_field_refuse(reterr, NULL,
		                             "the payload is not a slim job");
	for (;;) {
		int err;

		if (!take_line(&payload, &line))
			return envelope_field_refuse(reterr, NULL,
			                             "the payload ends in its head");
		if (line.len == 0)
			break;
		err = read_line(line, &envelope, reterr);
		if (err < 0)
			return err;
	}
	envelope.body = payload;
	*ret_envelope = envelope;
	return 0;
}

/* ---- entries that were moved ----------------------------------------------------- */

#define ENTRY_MARK "entry\n"

bool
envelope_is_moved(struct span value)
{
	return value.len >= strlen(ENTRY_MARK) &&
	       memcmp(value.data, ENTRY_MARK, strlen(ENTRY_MARK)) == 0;
}

size_t
envelope_read_moved(struct span value, struct envelope_pair pairs[ENVELOPE_FIELDS_MAX])
{
	const char *at = value.data + strlen(ENTRY_MARK);
	const char *end = value.data + value.len;
	size_t count = 0;

	for (;;) {
		struct span both[2];

		for (int i = 0; i < 2; i++) {
			size_t len = 0;

			if (at == end)
				return i == 0 ? count : 0;
			while (at < end && *at >= '0' && *at <= '9' && len < value.len)
				len = len * 10 + (size_t)(*at++ - '0');
			if (at == end || *at++ != ' ' || len + 1 > (size_t)(end - at) ||
			    at[len] != '\n')
				return 0;
			both[i] = (struct span){ at, len };
			at += len + 1;
		}
		if (count == ENVELOPE_FIELDS_MAX)
			return 0;
		pairs[count++] = (struct envelope_pair){ both[0], both[1] };
	}
}
