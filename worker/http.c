#include "worker/http.h"

#include "common/text.h"
#include "worker/files.h"
#include "worker/http_poll.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>

#define HANDLES_KEPT_MAX 512
#define SILENCE_LOOK_MS  250 /* so much later than said it may be noticed */
#define WHOLE_MS         500 /* for a connection to end in order, and be kept */

struct http_exchange {
	struct http *http;
	CURL *easy;
	struct http_handlers handlers;
	void *data;
	int status;
	bool was_sent;
	bool was_repeated; /* curl wanted to send it once more */
	bool was_headed;   /* the headers of the answer came, all of them */
	bool was_stopped;  /* by on_body */
	bool lacks_files;  /* no socket could be opened */
	uint64_t first_byte_ms;
	uint64_t silent_until_ms; /* loop time; 0: nobody waits for a first byte */
	uint64_t bytes;
	char error[CURL_ERROR_SIZE];
	struct http_exchange *previous, *next; /* of those under way */
	bool is_whole;                         /* says who reads the answer */
};

struct http {
	uv_loop_t *loop;
	struct http_options options;
	CURLM *multi;
	struct http_poll *poll;
	uv_timer_t timer;
	uv_timer_t silence;    /* runs while somebody waits for a first byte */
	uint32_t silent_count; /* who does */
	struct http_exchange *first;
	CURL *kept[HANDLES_KEPT_MAX]; /* easy handles for reuse */
	uint32_t kept_count;
	const char *authorities; /* $SSL_CERT_FILE; NULL: the system's */
	bool in_curl;            /* inside one of curl's callbacks */
	uint32_t closing;
	void (*closed_fn)(void *data);
	void *closed_data;
};

static enum http_end
end_of(const struct http_exchange *exchange, CURLcode code)
{
	if ((code == CURLE_OK && exchange->was_headed) || exchange->is_whole)
		return HTTP_ANSWERED;
	if (exchange->was_stopped)
		return HTTP_STOPPED;
	if (!exchange->was_sent)
		return HTTP_UNREACHED;
	return code == CURLE_OPERATION_TIMEDOUT ? HTTP_TIMED_OUT : HTTP_BROKEN;
}

static void
link_in(struct http *http, struct http_exchange *exchange)
{
	exchange->next = http->first;
	if (http->first)
		http->first->previous = exchange;
	http->first = exchange;
}

static void
expect_no_more(struct http_exchange *exchange)
{
	struct http *http = exchange->http;

	if (exchange->silent_until_ms == 0)
		return;
	exchange->silent_until_ms = 0;
	VERIFY(http->silent_count > 0);
	if (--http->silent_count == 0)
		(void)uv_timer_stop(&http->silence);
}

/* Takes it out of curl and gives its handle back. */
static void
let_go(struct http_exchange *exchange)
{
	struct http *http = exchange->http;

	expect_no_more(exchange);
	if (exchange->previous)
		exchange->previous->next = exchange->next;
	else
		http->first = exchange->next;
	if (exchange->next)
		exchange->next->previous = exchange->previous;
	(void)curl_multi_remove_handle(http->multi, exchange->easy);
	if (http->kept_count < HANDLES_KEPT_MAX)
		http->kept[http->kept_count++] = exchange->easy;
	else
		curl_easy_cleanup(exchange->easy);
	exchange->easy = NULL;
}

static void
end_exchange(struct http_exchange *exchange, enum http_end end, const char *text)
{
	struct http_outcome outcome = {
		.end = end,
		.status = exchange->status,
		.bytes = exchange->bytes,
		.text = text,
	};

	/* curl does not say why: a name "could not be resolved", or a connect failed. */
	if (end == HTTP_UNREACHED && (exchange->lacks_files || files_are_used_up())) {
		outcome.lacks_files = true;
		outcome.text = files_advice();
	}
	let_go(exchange);
	exchange->handlers.on_done(&outcome, exchange->data);
	free(exchange);
}

static void
add(char text[CURL_ERROR_SIZE], const char *more)
{
	size_t len = strlen(text);

	(void)snprintf(text + len, CURL_ERROR_SIZE - len, "%s", more);
}

static const char *
text_of(struct http_exchange *exchange, CURLcode code)
{
	if (exchange->was_repeated)
		return "it was closed before a byte of the answer came";
	if (code == CURLE_OK && !exchange->was_headed)
		return "it was closed before the headers of the answer were whole";
	if (code == CURLE_OK)
		return "";
	if (code == CURLE_PEER_FAILED_VERIFICATION)
		add(exchange->error,
		    "; if it is right, name a file with its authority in "
		    "SSL_CERT_FILE");
	return exchange->error[0] ? exchange->error : curl_easy_strerror(code);
}

static void
read_ends(struct http *http)
{
	CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(http->multi, &left)) != NULL) {
		CURLcode code = message->data.result;
		struct http_exchange *exchange;
		char *data = NULL;

		if (message->msg != CURLMSG_DONE)
			continue;
		(void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &data);
		exchange = (struct http_exchange *)(void *)data;
		end_exchange(exchange, end_of(exchange, code), text_of(exchange, code));
	}
}

static void
act(struct http *http, curl_socket_t fd, int events)
{
	int running;

	http->in_curl = true;
	(void)curl_multi_socket_action(http->multi, fd, events, &running);
	http->in_curl = false;
	read_ends(http);
}

static void
on_event(curl_socket_t fd, int events, void *data)
{
	act(data, fd, events);
}

static void
on_timer(uv_timer_t *timer)
{
	act(timer->data, CURL_SOCKET_TIMEOUT, 0);
}

static struct http_exchange *
find_silent(const struct http *http)
{
	struct http_exchange *exchange = http->first;

	while (exchange && (exchange->silent_until_ms == 0 ||
	                    exchange->silent_until_ms > uv_now(http->loop)))
		exchange = exchange->next;
	return exchange;
}

/* From the first one again each time: who hears of an end may begin something new. */
static void
on_silence(uv_timer_t *timer)
{
	struct http *http = timer->data;
	struct http_exchange *exchange;

	while ((exchange = find_silent(http)) != NULL)
		end_exchange(exchange, exchange->is_whole ? HTTP_ANSWERED : HTTP_SILENT,
		             exchange->is_whole ? "" : "not a byte of the answer came");
}

/* It ends in `ms`, unless something is heard of it. */
static void
expect_within(struct http_exchange *exchange, uint64_t ms)
{
	struct http *http = exchange->http;

	exchange->silent_until_ms = uv_now(http->loop) + ms;
	if (http->silent_count++ == 0)
		(void)uv_timer_start(&http->silence, on_silence, SILENCE_LOOK_MS,
		                     SILENCE_LOOK_MS);
}

static int
on_timeout(CURLM *multi, long timeout_ms, void *data)
{
	struct http *http = data;

	(void)multi;
	if (timeout_ms < 0)
		(void)uv_timer_stop(&http->timer);
	else
		(void)uv_timer_start(&http->timer, on_timer, (uint64_t)timeout_ms, 0);
	return 0;
}

static int
on_socket(CURL *easy, curl_socket_t fd, int what, void *data, void *socket_data)
{
	struct http *http = data;

	(void)easy;
	(void)socket_data;
	http_poll_want(http->poll, fd, what);
	return 0;
}

/* curl sends a request once more by itself if a connection that served before is closed
 * without a byte.  The provider may have done the first one, and charge both: whether to
 * ask again is for the queue, which counts. */
static int
on_prerequest(void *data, char *ip, char *local_ip, int port, int local_port)
{
	struct http_exchange *exchange = data;

	(void)ip;
	(void)local_ip;
	(void)port;
	(void)local_port;
	if (exchange->was_sent) {
		exchange->was_repeated = true;
		return CURL_PREREQFUNC_ABORT;
	}
	exchange->was_sent = true;
	if (exchange->first_byte_ms > 0)
		expect_within(exchange, exchange->first_byte_ms);
	exchange->handlers.on_sent(exchange->data);
	return CURL_PREREQFUNC_OK;
}

static curl_socket_t
on_open(void *data, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct http_exchange *exchange = data;
	curl_socket_t fd = http_poll_open(exchange->http->poll, purpose, address);

	exchange->lacks_files |= fd == CURL_SOCKET_BAD && files_are_used_up();
	return fd;
}

/* An answer that ends within its headers is whole for curl. */
static bool
is_blank(struct span line)
{
	return text_trim(line).len == 0;
}

static size_t
on_header(char *bytes, size_t size, size_t count, void *data)
{
	struct http_exchange *exchange = data;
	struct span line = { bytes, size * count };
	const char *colon;
	size_t name_len;

	if (line.len > 5 && memcmp(line.data, "HTTP/", 5) == 0) {
		long status = 0;

		(void)curl_easy_getinfo(exchange->easy, CURLINFO_RESPONSE_CODE, &status);
		if (status < 200)
			return line.len; /* 100 Continue, 103 Early Hints: no answer */
		expect_no_more(exchange);
		exchange->status = (int)status;
		exchange->handlers.on_status(exchange->status, exchange->data);
		return line.len;
	}
	if (exchange->status != 0 && is_blank(line))
		exchange->was_headed = true;
	colon = memchr(line.data, ':', line.len);
	if (!colon)
		return line.len;
	name_len = (size_t)(colon - line.data);
	exchange->handlers.on_header(
		text_trim((struct span){ line.data, name_len }),
		text_trim((struct span){ colon + 1, line.len - name_len - 1 }),
		exchange->data);
	return line.len;
}

static size_t
on_body(char *bytes, size_t size, size_t count, void *data)
{
	struct http_exchange *exchange = data;
	struct span span = { bytes, size * count };

	exchange->bytes += span.len;
	if (exchange->handlers.on_body(span, exchange->data))
		return span.len;
	exchange->was_stopped = true;
	return span.len + 1; /* anything but the length ends the transfer */
}

int
http_create(uv_loop_t *loop, const struct http_options *options, struct http **ret_http)
{
	struct http *http = calloc(1, sizeof *http);
	int err;

	if (!http)
		return ERR_MEMORY;
	http->loop = loop;
	http->options = *options;
	http->authorities = getenv("SSL_CERT_FILE");
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0) {
		free(http);
		return ERR_IO;
	}
	err = http_poll_create(loop, on_event, http, &http->poll);
	if (err < 0) {
		free(http);
		return err;
	}
	http->multi = curl_multi_init();
	if (!http->multi) {
		http_poll_destroy(http->poll, NULL, NULL);
		free(http);
		return ERR_MEMORY;
	}
	(void)uv_timer_init(loop, &http->timer);
	(void)uv_timer_init(loop, &http->silence);
	http->timer.data = http;
	http->silence.data = http;
	(void)curl_multi_setopt(http->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
	(void)curl_multi_setopt(http->multi, CURLMOPT_SOCKETDATA, http);
	(void)curl_multi_setopt(http->multi, CURLMOPT_TIMERFUNCTION, on_timeout);
	(void)curl_multi_setopt(http->multi, CURLMOPT_TIMERDATA, http);
	(void)curl_multi_setopt(http->multi, CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX);
	(void)curl_multi_setopt(http->multi, CURLMOPT_MAXCONNECTS,
	                        options->connections_max);
	*ret_http = http;
	return 0;
}

static bool
is_tls(const char *url)
{
	return strncmp(url, "https:", 6) == 0;
}

/* The address of the exchange is in curl's hands from here on. */
static void
set_options(struct http_exchange *exchange, const struct http_request *request)
{
	struct http *http = exchange->http;
	CURL *easy = exchange->easy;

	curl_easy_reset(easy);
	(void)curl_easy_setopt(easy, CURLOPT_PRIVATE, exchange);
	(void)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, exchange->error);
	(void)curl_easy_setopt(easy, CURLOPT_URL, request->url);
	(void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	(void)curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_2TLS);
	/* Over TLS the handshake tells whether streams can share the connection, and it
	 * is worth the wait.  In the clear only the end of the first answer would. */
	(void)curl_easy_setopt(easy, CURLOPT_PIPEWAIT, is_tls(request->url) ? 1L : 0L);
	if (http->authorities)
		(void)curl_easy_setopt(easy, CURLOPT_CAINFO, http->authorities);
	/* Nothing is asked to be compressed; what a proxy compresses unasked is read. */
	(void)curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "identity");
	(void)curl_easy_setopt(easy, CURLOPT_HTTPHEADER, request->headers);
	(void)curl_easy_setopt(easy, CURLOPT_POST, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
	                       (curl_off_t)request->body.len);
	(void)curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request->body.data);
	(void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, request->is_fresh ? 1L : 0L);
	(void)curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
	                       (long)http->options.connect_timeout_ms);
	(void)curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)request->timeout_ms);
	(void)curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
	(void)curl_easy_setopt(easy, CURLOPT_HEADERDATA, exchange);
	(void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	(void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, exchange);
	(void)curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_prerequest);
	(void)curl_easy_setopt(easy, CURLOPT_PREREQDATA, exchange);
	(void)curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open);
	(void)curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, exchange);
	(void)curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, http_poll_close);
	(void)curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, http->poll);
}

int
http_post(struct http *http, const struct http_request *request,
          const struct http_handlers *handlers, void *data,
          struct http_exchange **ret_exchange)
{
	struct http_exchange *exchange = calloc(1, sizeof *exchange);

	if (!exchange)
		return ERR_MEMORY;
	exchange->http = http;
	exchange->handlers = *handlers;
	exchange->data = data;
	exchange->first_byte_ms = request->first_byte_ms;
	exchange->easy =
		http->kept_count > 0 ? http->kept[--http->kept_count] : curl_easy_init();
	if (!exchange->easy) {
		free(exchange);
		return ERR_MEMORY;
	}
	set_options(exchange, request);
	link_in(http, exchange);
	if (curl_multi_add_handle(http->multi, exchange->easy) != CURLM_OK) {
		let_go(exchange);
		free(exchange);
		return ERR_IO;
	}
	*ret_exchange = exchange;
	return 0;
}

void
http_whole(struct http_exchange *exchange)
{
	if (exchange->is_whole)
		return;
	exchange->is_whole = true;
	expect_no_more(exchange);
	expect_within(exchange, WHOLE_MS);
}

void
http_cancel(struct http_exchange *exchange)
{
	VERIFY(!exchange->http->in_curl);
	let_go(exchange);
	free(exchange);
}

static void
part_closed(void *data)
{
	struct http *http = data;

	if (--http->closing > 0)
		return;
	if (http->closed_fn)
		http->closed_fn(http->closed_data);
	free(http);
}

static void
on_timer_closed(uv_handle_t *handle)
{
	part_closed(handle->data);
}

void
http_destroy(struct http *http, void (*fn)(void *data), void *data)
{
	http->closed_fn = fn;
	http->closed_data = data;
	while (http->first)
		http_cancel(http->first);
	for (uint32_t i = 0; i < http->kept_count; i++)
		curl_easy_cleanup(http->kept[i]);
	(void)curl_multi_cleanup(http->multi);
	http->closing = 3;
	uv_close((uv_handle_t *)&http->timer, on_timer_closed);
	uv_close((uv_handle_t *)&http->silence, on_timer_closed);
	http_poll_destroy(http->poll, part_closed, http);
	curl_global_cleanup();
}
