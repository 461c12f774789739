#include "provider/http_answer.h"

static const char *
phrase(int status)
{
	switch (status) {
	case 200:
		return "OK";
	case 400:
		return "Bad Request";
	case 401:
		return "Unauthorized";
	case 404:
		return "Not Found";
	case 405:
		return "Method Not Allowed";
	case 413:
		return "Content Too Large";
	case 429:
		return "Too Many Requests";
	case 431:
		return "Request Header Fields Too Large";
	case 500:
		return "Internal Server Error";
	case 501:
		return "Not Implemented";
	case 503:
		return "Service Unavailable";
	case 529:
		return "Overloaded";
	default:
		return "Status";
	}
}

void
http_answer_head(struct buffer *out, int status, const char *type, size_t length,
                 bool keep_alive, struct span extra)
{
	(void)buffer_append_format(out, "HTTP/1.1 %d %s\r\ncontent-type: %s\r\n", status,
	                           phrase(status), type);
	if (length == HTTP_ANSWER_CHUNKED)
		(void)buffer_append_text(out, "transfer-encoding: chunked\r\n"
		                              "cache-control: no-cache\r\n");
	else
		(void)buffer_append_format(out, "content-length: %zu\r\n", length);
	(void)buffer_append(out, extra);
	if (!keep_alive)
		(void)buffer_append_text(out, "connection: close\r\n");
	(void)buffer_append_text(out, "\r\n");
}

void
http_answer_chunk(struct buffer *out, struct span bytes)
{
	if (bytes.len == 0)
		return;
	(void)buffer_append_format(out, "%zx\r\n", bytes.len);
	(void)buffer_append(out, bytes);
	(void)buffer_append_text(out, "\r\n");
}

void
http_answer_last_chunk(struct buffer *out)
{
	(void)buffer_append_text(out, "0\r\n\r\n");
}
