#include "common/codec/sse.h"

static const char byte_order_mark[] = "\xef\xbb\xbf";

void
sse_init(struct sse *sse, size_t data_max, sse_event_fn *on_event, void *context)
{
	*sse = (struct sse){ .on_event = on_event, .context = context };
	buffer_init(&sse->line, data_max);
	buffer_init(&sse->name, data_max);
	buffer_init(&sse->data, data_max);
}

void
sse_fini(struct sse *sse)
{
	if (!sse)
		return;
	buffer_fini(&sse->line);
	buffer_fini(&sse->name);
	buffer_fini(&sse->data);
}

static int
deliver(struct sse *sse)
{
	struct sse_event event = { .name = buffer_span(&sse->name),
		                   .data = buffer_span(&sse->data) };
	int err = 0;

	if (sse->has_data)
		err = sse->on_event(sse->context, &event);
	buffer_clear(&sse->name);
	buffer_clear(&sse->data);
	sse->has_data = false;
	return err;
}

static int
take_field(struct sse *sse, struct span name, struct span value)
{
	if (span_equals(name, SPAN("data"))) {
		if (sse->has_data)
			(void)buffer_append_byte(&sse->data, '\n');
		sse->has_data = true;
		return buffer_append(&sse->data, value);
	}
	if (span_equals(name, SPAN("event"))) {
		buffer_clear(&sse->name);
		return buffer_append(&sse->name, value);
	}
	return 0; /* id, retry, and whatever else */
}

static int
take_line(struct sse *sse, struct span line)
{
	const char *colon;
	struct span name = line, value = { 0 };

	if (line.len == 0)
		return deliver(sse);
	colon = memchr(line.data, ':', line.len);
	if (colon == line.data)
		return 0; /* a comment */
	if (colon) {
		name.len = (size_t)(colon - line.data);
		value = (struct span){ colon + 1, line.len - name.len - 1 };
		if (value.len > 0 && value.data[0] == ' ') {
			value.data++;
			value.len--;
		}
	}
	return take_field(sse, name, value);
}

/* Takes the bytes up to `end` as the end of a line, with what waits from before. */
static int
end_line(struct sse *sse, struct span part)
{
	int err;

	if (sse->line.len == 0)
		return take_line(sse, part);
	err = buffer_append(&sse->line, part);
	if (err == 0)
		err = take_line(sse, buffer_span(&sse->line));
	buffer_clear(&sse->line);
	return err;
}

/* Leaves out a byte order mark at the very start; one that breaks off is text. */
static int
skip_mark(struct sse *sse, struct span *bytes)
{
	while (sse->mark < 3 && bytes->len > 0) {
		if (bytes->data[0] != byte_order_mark[sse->mark]) {
			int err = buffer_append(
				&sse->line, (struct span){ byte_order_mark, sse->mark });

			sse->mark = 3;
			return err;
		}
		sse->mark++;
		bytes->data++;
		bytes->len--;
	}
	return 0;
}

static size_t
line_length(struct span bytes)
{
	const char *feed = memchr(bytes.data, '\n', bytes.len);
	size_t len = feed ? (size_t)(feed - bytes.data) : bytes.len;
	const char *carriage = memchr(bytes.data, '\r', len);

	return carriage ? (size_t)(carriage - bytes.data) : len;
}

int
sse_feed(struct sse *sse, struct span bytes)
{
	int err = sse->mark < 3 ? skip_mark(sse, &bytes) : 0;

	while (err == 0 && bytes.len > 0) {
		size_t len;

		if (sse->after_cr && bytes.data[0] == '\n') {
			sse->after_cr = false;
			bytes.data++;
			bytes.len--;
			continue;
		}
		sse->after_cr = false;
		len = line_length(bytes);
		if (len == bytes.len)
			return buffer_append(&sse->line, bytes);
		sse->after_cr = bytes.data[len] == '\r';
		err = end_line(sse, (struct span){ bytes.data, len });
		bytes.data += len + 1;
		bytes.len -= len + 1;
	}
	return err;
}

int
sse_flush(struct sse *sse)
{
	int err = sse->line.len > 0 ? end_line(sse, (struct span){ NULL, 0 }) : 0;

	return err < 0 ? err : deliver(sse);
}
