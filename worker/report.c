#include "worker/report.h"

#include "common/codec/tape.h"

#include <stdio.h>
#include <stdlib.h>

struct report *
report_create(struct report_list *list, struct span id)
{
	struct report *report = calloc(1, sizeof *report);

	if (!report)
		return NULL;
	VERIFY(id.len <= sizeof report->id);
	memcpy(report->id, id.data, id.len);
	report->id_len = (uint32_t)id.len;
	buffer_init(&report->result, REPORT_SIZE_MAX);
	report->list = list;
	report->next = list->first;
	if (list->first)
		list->first->previous = report;
	list->first = report;
	return report;
}

struct report *
report_destroy(struct report *report)
{
	if (!report)
		return NULL;
	if (report->previous)
		report->previous->next = report->next;
	else
		report->list->first = report->next;
	if (report->next)
		report->next->previous = report->previous;
	buffer_fini(&report->result);
	free(report);
	return NULL;
}

void
report_list_fini(struct report_list *list)
{
	while (list->first)
		(void)report_destroy(list->first);
}

uint64_t
report_handle(const struct report *report)
{
	return (uint64_t)(uintptr_t)report;
}

struct report *
report_of(uint64_t handle)
{
	return (struct report *)(uintptr_t)handle; /* NOLINT: it was made of one */
}

static void
add_name(struct buffer *out, const char *name)
{
	if (out->len > 1)
		(void)buffer_append_byte(out, ',');
	(void)buffer_append_byte(out, '"');
	(void)buffer_append_text(out, name);
	(void)buffer_append_text(out, "\":");
}

static void
add_text(struct buffer *out, const char *name, struct span text)
{
	if (text.len == 0)
		return;
	add_name(out, name);
	(void)buffer_append_json(out, text);
}

static void
add_number(struct buffer *out, const char *name, uint64_t number)
{
	add_name(out, name);
	(void)buffer_append_unsigned(out, number);
}

/* Unknown is null, which is not zero. */
static void
add_tokens(struct buffer *out, const char *name, int64_t tokens)
{
	(void)buffer_append_format(out, "\"%s\":", name);
	if (tokens == PROTOCOL_UNKNOWN)
		(void)buffer_append_text(out, "null");
	else
		(void)buffer_append_signed(out, tokens);
}

static void
add_usage(struct buffer *out, const struct protocol_usage *usage)
{
	add_name(out, "usage");
	(void)buffer_append_byte(out, '{');
	add_tokens(out, "read", usage->read);
	(void)buffer_append_byte(out, ',');
	add_tokens(out, "written", usage->written);
	(void)buffer_append_byte(out, ',');
	add_tokens(out, "uncached", usage->uncached);
	(void)buffer_append_byte(out, ',');
	add_tokens(out, "output", usage->output);
	(void)buffer_append_byte(out, '}');
}

static void
add_base64(struct buffer *out, struct span bytes)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < bytes.len; i += 3) {
		const unsigned char *from = (const unsigned char *)bytes.data + i;
		size_t left = MIN(bytes.len - i, 3);
		uint32_t bits = (uint32_t)from[0] << 16 |
		                (left > 1 ? (uint32_t)from[1] << 8 : 0) |
		                (left > 2 ? from[2] : 0);
		char group[4] = { digits[bits >> 18], digits[bits >> 12 & 63],
			          left > 1 ? digits[bits >> 6 & 63] : '=',
			          left > 2 ? digits[bits & 63] : '=' };

		(void)buffer_append(out, (struct span){ group, 4 });
	}
}

enum report_format
report_format_of(struct span body)
{
	struct tape_error where;
	struct tape tape;
	int err;

	if (body.len == 0)
		return REPORT_NONE;
	tape_init(&tape);
	err = tape_parse(&tape, body, &where);
	tape_fini(&tape);
	if (err == 0)
		return REPORT_JSON;
	return text_is_utf8(body) ? REPORT_TEXT : REPORT_BASE64;
}

static void
add_body(struct buffer *out, enum report_format format, struct span body)
{
	static const char *const names[] = {
		[REPORT_NONE] = "none", [REPORT_JSON] = "json",     [REPORT_SSE] = "sse",
		[REPORT_TEXT] = "text", [REPORT_BASE64] = "base64",
	};

	if (format == REPORT_NONE)
		return;
	if (body.len > REPORT_RESULT_MAX) {
		add_text(out, "format", SPAN("result_too_large"));
		add_number(out, "size", body.len);
		add_name(out, "body");
		(void)buffer_append_text(out, "null");
		return;
	}
	add_text(out, "format", span_from(names[format]));
	add_name(out, "body");
	switch (format) {
	case REPORT_JSON:
		(void)buffer_append(out, body);
		break;
	case REPORT_SSE:
	case REPORT_TEXT:
		(void)buffer_append_json(out, body);
		break;
	case REPORT_BASE64:
		(void)buffer_append_byte(out, '"');
		add_base64(out, body);
		(void)buffer_append_byte(out, '"');
		break;
	case REPORT_NONE:
		break;
	}
}

int
report_write(struct report *report, const struct report_facts *facts,
             enum report_format format, struct span body)
{
	struct buffer *out = &report->result;

	buffer_clear(out);
	(void)buffer_append_byte(out, '{');
	add_text(out, "id", facts->id);
	add_text(out, "ref", facts->ref);
	add_text(out, "state", span_from(facts->state));
	add_text(out, "reason", span_from(facts->reason));
	add_text(out, "text", span_from(facts->text));
	add_text(out, "upstream", facts->upstream);
	add_text(out, "model", facts->model);
	if (facts->http_status != 0)
		add_number(out, "http_status", (uint64_t)facts->http_status);
	add_body(out, format, body);
	add_usage(out, &facts->usage);
	add_number(out, "attempts", facts->attempts);
	add_number(out, "delivery", facts->delivery);
	if (facts->sent_ms > 0)
		add_number(out, "sent_ms", facts->sent_ms);
	if (facts->first_ms > 0)
		add_number(out, "first_ms", facts->first_ms);
	add_number(out, "total_ms", facts->total_ms);
	add_text(out, "request_id", facts->request_id);
	add_text(out, "traceparent", facts->traceparent);
	(void)buffer_append_byte(out, '}');
	return buffer_error(out);
}

void
report_explain(struct report *report, const char *reason, struct span text)
{
	size_t len = MIN(text.len, sizeof report->text - 1);

	/* Never half a character. */
	while (len > 0 && len < text.len &&
	       ((unsigned char)text.data[len] & 0xc0) == 0x80)
		len--;
	(void)snprintf(report->reason, sizeof report->reason, "%s", reason);
	for (char *at = report->reason; *at; at++) {
		if (!text_is_name((struct span){ at, 1 }))
			*at = '_'; /* one word, whatever the provider calls it */
	}
	if (len > 0)
		memcpy(report->text, text.data, len);
	report->text[len] = '\0';
}
