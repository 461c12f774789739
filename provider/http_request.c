#include "provider/http_request.h"

#include "common/text.h"

#include <strings.h>

/* Room made on the word of a Content-Length; the rest has to come first. */
#define BODY_RESERVE (1 << 20)

/* --- the head ---------------------------------------------------------------------- */

static bool
is_token(struct span text)
{
	for (size_t i = 0; i < text.len; i++)
		if ((unsigned char)text.data[i] <= ' ' || text.data[i] == 0x7f ||
		    strchr("()<>@,;:\\\"/[]?={}", text.data[i]))
			return false;
	return text.len > 0;
}

/* Takes the text before `end` off `rest`; false if it is not there. */
static bool
take(struct span *rest, const char *end, struct span *ret_text)
{
	size_t len = strlen(end);
	const char *at = memmem(rest->data, rest->len, end, len);

	if (!at)
		return false;
	*ret_text = (struct span){ rest->data, (size_t)(at - rest->data) };
	*rest = (struct span){ at + len, rest->len - ret_text->len - len };
	return true;
}

static int
parse_request_line(struct http_request *request, struct span line)
{
	if (!take(&line, " ", &request->method) || !take(&line, " ", &request->target))
		return ERR_MALFORMED;
	if (!is_token(request->method) || request->target.len == 0 ||
	    request->target.data[0] != '/')
		return ERR_MALFORMED;
	request->is_old = span_equals(line, SPAN("HTTP/1.0"));
	if (!request->is_old && !span_equals(line, SPAN("HTTP/1.1")))
		return ERR_MALFORMED;
	return 0;
}

static int
parse_header(struct http_request *request, struct span line)
{
	struct http_request_header header;

	if (request->headers_count == HTTP_REQUEST_HEADERS_MAX)
		return ERR_LIMIT;
	if (!take(&line, ":", &header.name) || !is_token(header.name))
		return ERR_MALFORMED;
	for (size_t i = 0; i < line.len; i++)
		if (strchr("\r\n", line.data[i])) /* also finds a zero byte */
			return ERR_MALFORMED;
	header.value = text_trim(line);
	request->headers[request->headers_count++] = header;
	return 0;
}

static bool
contains_word(struct span text, const char *word)
{
	size_t len = strlen(word);

	for (size_t i = 0; i + len <= text.len; i++)
		if (strncasecmp(text.data + i, word, len) == 0)
			return true;
	return false;
}

/* Says how long the body is, from headers that must agree. */
static int
parse_framing(struct http_request *request)
{
	struct span coding = http_request_header(request, "transfer-encoding");
	struct span length = http_request_header(request, "content-length");
	struct span connection = http_request_header(request, "connection");
	uint64_t bytes = 0;

	request->keep_alive = !request->is_old && !contains_word(connection, "close");
	request->wants_continue =
		contains_word(http_request_header(request, "expect"), "100-continue");
	if (coding.len > 0) {
		if (length.len > 0)
			return ERR_MALFORMED;
		if (coding.len != 7 || strncasecmp(coding.data, "chunked", 7) != 0)
			return ERR_UNSUPPORTED;
		request->state = HTTP_REQUEST_CHUNK_SIZE;
		return 0;
	}
	if (length.len > 0 && text_parse_unsigned(length, SIZE_MAX / 2, &bytes) < 0)
		return ERR_MALFORMED;
	for (size_t i = 0, seen = 0; i < request->headers_count; i++)
		if (contains_word(request->headers[i].name, "content-length") &&
		    seen++ > 0)
			return ERR_MALFORMED;
	request->left = bytes;
	request->too_large = bytes > request->body_max;
	request->state = bytes > 0 ? HTTP_REQUEST_LENGTH : HTTP_REQUEST_DONE;
	if (!request->too_large)
		(void)buffer_reserve(&request->body, MIN(bytes, BODY_RESERVE));
	return 0;
}

static int
parse_head(struct http_request *request, struct span head)
{
	struct span line;
	int err;

	if (!take(&head, "\r\n", &line))
		return ERR_MALFORMED;
	err = parse_request_line(request, line);
	while (err == 0 && head.len > 0) {
		if (!take(&head, "\r\n", &line))
			return ERR_MALFORMED;
		err = parse_header(request, line);
	}
	return err < 0 ? err : parse_framing(request);
}

/* Collects bytes up to the empty line. */
static int
feed_head(struct http_request *request, struct span *bytes)
{
	struct buffer *head = &request->head;
	size_t before = head->len, from, used;
	struct span part;
	const char *end;

	/* Empty lines before a request are tolerated, as the standard asks. */
	while (before == 0 && bytes->len > 0 && strchr("\r\n", bytes->data[0]) &&
	       bytes->data[0] != '\0')
		*bytes = (struct span){ bytes->data + 1, bytes->len - 1 };
	part = (struct span){ bytes->data,
		              MIN(bytes->len, HTTP_REQUEST_HEAD_MAX - before) };
	if (buffer_append(head, part) < 0)
		return ERR_MEMORY;
	from = before > 3 ? before - 3 : 0;
	end = head->len > 0 ? memmem(head->data + from, head->len - from, "\r\n\r\n", 4)
	                    : NULL;
	if (!end) {
		*bytes = (struct span){ bytes->data + part.len, bytes->len - part.len };
		return head->len == HTTP_REQUEST_HEAD_MAX ? ERR_LIMIT : ERR_AGAIN;
	}
	used = (size_t)(end - head->data) + 4 - before;
	*bytes = (struct span){ bytes->data + used, bytes->len - used };
	buffer_truncate(head, (size_t)(end - head->data) + 2);
	return parse_head(request, buffer_span(head));
}

/* --- the body ---------------------------------------------------------------------- */

static int
keep(struct http_request *request, struct span *bytes)
{
	struct span part = { bytes->data, MIN(bytes->len, request->left) };

	request->seen += part.len;
	request->left -= part.len;
	*bytes = (struct span){ bytes->data + part.len, bytes->len - part.len };
	if (request->seen > request->body_max)
		request->too_large = true;
	if (request->seen > 2 * request->body_max)
		return ERR_LIMIT;
	return request->too_large ? 0 : buffer_append(&request->body, part);
}

/* A line of hexadecimal digits; an extension after ';' is ignored. */
static int
parse_chunk_size(struct http_request *request)
{
	size_t size = 0, digits = 0;

	for (size_t i = 0; i < request->line_len; i++) {
		char c = request->line[i];
		int value;

		if (c >= '0' && c <= '9')
			value = c - '0';
		else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
			value = (c | 0x20) - 'a' + 10;
		else if (c == ';' || c == ' ')
			break;
		else
			return ERR_MALFORMED;
		if (++digits > 8)
			return ERR_MALFORMED;
		size = size * 16 + (size_t)value;
	}
	if (digits == 0)
		return ERR_MALFORMED;
	request->left = size;
	request->state = size > 0 ? HTTP_REQUEST_CHUNK : HTTP_REQUEST_TRAILER;
	return 0;
}

/* Collects one line of the chunked framing; 0 when it is complete. */
static int
feed_line(struct http_request *request, struct span *bytes)
{
	while (bytes->len > 0) {
		char c = bytes->data[0];

		*bytes = (struct span){ bytes->data + 1, bytes->len - 1 };
		if (c == '\n' && request->line_len > 0 &&
		    request->line[request->line_len - 1] == '\r') {
			request->line_len--;
			return 0;
		}
		if (request->line_len == sizeof request->line)
			return ERR_MALFORMED;
		request->line[request->line_len++] = c;
	}
	return ERR_AGAIN;
}

static int
feed_framing(struct http_request *request, struct span *bytes)
{
	int err = feed_line(request, bytes);
	bool empty = request->line_len == 0;

	if (err < 0)
		return err;
	if (request->state == HTTP_REQUEST_CHUNK_SIZE)
		err = parse_chunk_size(request);
	else if (request->state == HTTP_REQUEST_CHUNK_END && empty)
		request->state = HTTP_REQUEST_CHUNK_SIZE;
	else if (request->state == HTTP_REQUEST_CHUNK_END)
		err = ERR_MALFORMED; /* the chunk is longer than it said */
	else if (empty)
		request->state = HTTP_REQUEST_DONE; /* other trailer lines are ignored */
	request->line_len = 0;
	return err;
}

static int
feed_some(struct http_request *request, struct span *bytes)
{
	int err;

	switch (request->state) {
	case HTTP_REQUEST_HEAD:
		return feed_head(request, bytes);
	case HTTP_REQUEST_LENGTH:
	case HTTP_REQUEST_CHUNK:
		if (bytes->len == 0)
			return ERR_AGAIN;
		err = keep(request, bytes);
		if (err == 0 && request->left == 0)
			request->state = request->state == HTTP_REQUEST_LENGTH
			                         ? HTTP_REQUEST_DONE
			                         : HTTP_REQUEST_CHUNK_END;
		return err;
	case HTTP_REQUEST_CHUNK_SIZE:
	case HTTP_REQUEST_CHUNK_END:
	case HTTP_REQUEST_TRAILER:
		return feed_framing(request, bytes);
	case HTTP_REQUEST_DONE:
		break;
	}
	return 0;
}

/* --- life -------------------------------------------------------------------------- */

void
http_request_init(struct http_request *request, size_t body_max)
{
	*request = (struct http_request){ .head = BUFFER_INIT(HTTP_REQUEST_HEAD_MAX),
		                          .body = BUFFER_INIT(body_max),
		                          .body_max = body_max };
}

void
http_request_fini(struct http_request *request)
{
	buffer_fini(&request->head);
	buffer_fini(&request->body);
}

void
http_request_clear(struct http_request *request, size_t body_max)
{
	http_request_fini(request);
	http_request_init(request, body_max);
}

int
http_request_feed(struct http_request *request, struct span bytes, size_t *ret_used)
{
	size_t len = bytes.len;
	int err = 0;

	while (err == 0 && request->state != HTTP_REQUEST_DONE)
		err = feed_some(request, &bytes);
	*ret_used = len - bytes.len;
	return err;
}

struct span
http_request_header(const struct http_request *request, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < request->headers_count; i++)
		if (request->headers[i].name.len == len &&
		    strncasecmp(request->headers[i].name.data, name, len) == 0)
			return request->headers[i].value;
	return (struct span){ NULL, 0 };
}

struct span
http_request_path(const struct http_request *request)
{
	const char *query = request->target.len > 0 ? memchr(request->target.data, '?',
	                                                     request->target.len)
	                                            : NULL;

	return (struct span){ request->target.data,
		              query ? (size_t)(query - request->target.data)
		                    : request->target.len };
}
