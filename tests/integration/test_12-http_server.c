/* The HTTP server, spoken to by a blocking client in a thread of its own. */
#include "common/io/http_server.h"
#include "tests/lib/suite.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define DEADLINE_MS     120000
#define ANSWER_SIZE     (1 << 16)
#define CONNECTIONS_MAX 32
#define CROWD           (5 * CONNECTIONS_MAX)

struct meeting {
	uv_loop_t loop;
	uv_timer_t pulse; /* answers what was deferred, feeds what streams */
	struct http_server_later *later;
	struct http_server_stream *stream;
	unsigned pieces, streams, gone;
	uv_timer_t deadline;
	uv_async_t done; /* the client's thread has its answer */
	struct http_server *server;
	unsigned requests;
	bool closed;
	struct span question;
	const char
		*enough; /* the client leaves when it has read this; NULL: at the end */
	unsigned clients;
	struct span crowd; /* how each of a crowd begins before the client comes */
	int seats[CROWD];
	char answer[ANSWER_SIZE];
};

static void
on_gone(void *data)
{
	struct meeting *meeting = data;

	meeting->gone++;
	meeting->stream = NULL;
}

static void
on_pulse(uv_timer_t *timer)
{
	struct meeting *meeting = timer->data;
	struct http_server_response response = http_server_response();
	struct http_server_later *later = meeting->later;

	if (meeting->stream && meeting->pieces < 3) {
		meeting->pieces++;
		http_server_stream_send(meeting->stream, SPAN("data: piece\n\n"));
	}
	if (!later)
		return;
	meeting->later = NULL;
	response.status = 202;
	(void)buffer_append_text(&response.body, "at last");
	http_server_answer(later, &response);
}

static void
on_request(const struct http_server_request *request,
           struct http_server_response *response, void *data)
{
	static const char *const headers[] = { "X-One", "1", "X-Two", "2", NULL };
	struct meeting *meeting = data;

	meeting->requests++;
	response->headers = headers;
	if (strcmp(request->path, "/constant") == 0) {
		response->constant = SPAN("always the same");
		return;
	}
	if (strcmp(request->path, "/later") == 0) {
		meeting->later = http_server_defer(request);
		return;
	}
	if (strcmp(request->path, "/at-once") == 0) {
		struct http_server_response now = http_server_response();

		(void)buffer_append_text(&now.body, "already here");
		http_server_answer(http_server_defer(request), &now);
		return;
	}
	if (strcmp(request->path, "/stream") == 0) {
		response->content_type = "text/event-stream";
		meeting->stream =
			http_server_stream_open(request, response, on_gone, meeting);
		ck_assert_ptr_nonnull(meeting->stream);
		meeting->streams++;
		return;
	}
	if (strcmp(request->path, "/missing") == 0)
		response->status = 404;
	if (strcmp(request->path, "/json") == 0)
		response->content_type = "application/json";
	if (strcmp(request->path, "/huge") == 0)
		buffer_init(&response->body, 3);
	(void)buffer_append_format(
		&response->body, "%s %s q=%s h=%s body=%zu", request->method,
		request->path, http_server_query(request, "q"),
		http_server_header(request, "X-Test"), request->body.len);
}

static int
connect_to(struct meeting *meeting)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		                       .sin_port =
		                               htons(http_server_port(meeting->server)) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
	return fd;
}

/* Who was shown out meanwhile does not mind. */
static void
take_seats(struct meeting *meeting)
{
	for (unsigned i = 0; i < CROWD; i++) {
		meeting->seats[i] = connect_to(meeting);
		(void)!send(meeting->seats[i], meeting->crowd.data, meeting->crowd.len,
		            MSG_NOSIGNAL);
	}
}

static void
talk(struct meeting *meeting)
{
	int fd = connect_to(meeting);
	struct span left = meeting->question;
	size_t len = 0;
	ssize_t n;

	while (left.len > 0) {
		n = send(fd, left.data, left.len, MSG_NOSIGNAL);
		if (n <= 0)
			break;
		left = (struct span){ left.data + n, left.len - (size_t)n };
	}
	while (len + 1 < ANSWER_SIZE &&
	       (n = read(fd, meeting->answer + len, ANSWER_SIZE - 1 - len)) > 0) {
		len += (size_t)n;
		meeting->answer[len] = '\0';
		if (meeting->enough && strstr(meeting->answer, meeting->enough))
			break;
	}
	meeting->answer[len] = '\0';
	close(fd);
}

static void *
client(void *data)
{
	struct meeting *meeting = data;

	if (meeting->crowd.data)
		take_seats(meeting);
	for (unsigned i = 0; i < meeting->clients; i++)
		talk(meeting);
	for (unsigned i = 0; meeting->crowd.data && i < CROWD; i++)
		close(meeting->seats[i]);
	(void)uv_async_send(&meeting->done);
	return NULL;
}

static void
on_deadline(uv_timer_t *timer)
{
	(void)timer;
	ck_abort_msg("nothing happened before the deadline");
}

static void
on_closed(void *data)
{
	((struct meeting *)data)->closed = true;
}

static void
on_done(uv_async_t *async)
{
	struct meeting *meeting = async->data;

	http_server_close(meeting->server, on_closed, meeting);
	uv_close((uv_handle_t *)&meeting->deadline, NULL);
	uv_close((uv_handle_t *)&meeting->done, NULL);
	uv_close((uv_handle_t *)&meeting->pulse, NULL);
}

static int
open_at(uv_loop_t *loop, const char *address, void *data, struct http_server **ret_server,
        char ret_message[HTTP_SERVER_MESSAGE_SIZE])
{
	const struct http_server_options options = {
		.address = address,
		.connections_max = CONNECTIONS_MAX,
		.fn = on_request,
		.data = data,
	};

	return http_server_open(loop, &options, ret_server, ret_message);
}

static void
meet_in_a_crowd(struct meeting *meeting, struct span question, unsigned clients,
                const char *enough, struct span crowd)
{
	char message[HTTP_SERVER_MESSAGE_SIZE] = "";
	pthread_t thread;

	*meeting = (struct meeting){
		.question = question, .clients = clients, .enough = enough, .crowd = crowd
	};
	ck_assert_int_eq(uv_loop_init(&meeting->loop), 0);
	ck_assert_int_eq(uv_timer_init(&meeting->loop, &meeting->pulse), 0);
	ck_assert_int_eq(uv_timer_start(&meeting->pulse, on_pulse, 5, 5), 0);
	meeting->pulse.data = meeting;
	ck_assert_int_eq(uv_timer_init(&meeting->loop, &meeting->deadline), 0);
	ck_assert_int_eq(uv_timer_start(&meeting->deadline, on_deadline, DEADLINE_MS, 0),
	                 0);
	ck_assert_int_eq(uv_async_init(&meeting->loop, &meeting->done, on_done), 0);
	meeting->done.data = meeting;
	ck_assert_msg(open_at(&meeting->loop, "127.0.0.1:0", meeting, &meeting->server,
	                      message) == 0,
	              "%s", message);
	ck_assert_int_eq(pthread_create(&thread, NULL, client, meeting), 0);
	while (uv_run(&meeting->loop, UV_RUN_ONCE) != 0)
		continue;
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert(meeting->closed);
	ck_assert_int_eq(uv_loop_close(&meeting->loop), 0);
}

static void
meet_until(struct meeting *meeting, struct span question, unsigned clients,
           const char *enough)
{
	meet_in_a_crowd(meeting, question, clients, enough, (struct span){ 0 });
}

static void
meet(struct meeting *meeting, struct span question, unsigned clients)
{
	meet_until(meeting, question, clients, NULL);
}

static struct meeting meeting; /* large */

START_TEST(http_server_answers_with_path_query_and_header)
{
	meet(&meeting,
	     SPAN("GET /json?q=a%20b HTTP/1.1\r\nHost: h\r\nX-Test: t\r\n"
	          "Connection: close\r\n\r\n"),
	     1);
	ck_assert_ptr_nonnull(strstr(meeting.answer, "HTTP/1.1 200 OK\r\n"));
	ck_assert_ptr_nonnull(
		strstr(meeting.answer, "Content-Type: application/json\r\n"));
	ck_assert_ptr_nonnull(
		strstr(meeting.answer, "\r\n\r\nGET /json q=a b h=t body=0"));
}
END_TEST

START_TEST(http_server_takes_bodies_and_serves_many_in_turn)
{
	meet(&meeting,
	     SPAN("POST /missing HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n"
	          "Connection: close\r\n\r\nhello"),
	     200);
	ck_assert_uint_eq(meeting.requests, 200);
	ck_assert_ptr_nonnull(strstr(meeting.answer, "HTTP/1.1 404 Not Found\r\n"));
	ck_assert_ptr_nonnull(strstr(meeting.answer, "body=5"));
}
END_TEST

START_TEST(http_server_answers_head_without_a_body)
{
	meet(&meeting, SPAN("HEAD /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"),
	     1);
	ck_assert_ptr_nonnull(strstr(meeting.answer, "HTTP/1.1 200 OK\r\n"));
	ck_assert_str_eq(strstr(meeting.answer, "\r\n\r\n"), "\r\n\r\n");
}
END_TEST

START_TEST(http_server_refuses_a_body_that_is_too_large)
{
	static char question[HTTP_SERVER_BODY_MAX + 200];
	int len = snprintf(question, sizeof question,
	                   "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: %zu\r\n"
	                   "Connection: close\r\n\r\n",
	                   HTTP_SERVER_BODY_MAX + 1);

	memset(question + len, 'x', HTTP_SERVER_BODY_MAX + 1);
	meet(&meeting, (struct span){ question, (size_t)len + HTTP_SERVER_BODY_MAX + 1 },
	     1);
	ck_assert_ptr_nonnull(strstr(meeting.answer, "HTTP/1.1 413 "));
	ck_assert_uint_eq(meeting.requests, 0);
}
END_TEST

START_TEST(http_server_turns_an_answer_that_is_too_large_into_an_error)
{
	meet(&meeting, SPAN("GET /huge HTTP/1.0\r\n\r\n"), 1);
	ck_assert_ptr_nonnull(strstr(meeting.answer, " 500 "));
}
END_TEST

START_TEST(http_server_survives_what_is_no_http)
{
	meet(&meeting, SPAN("\x16\x03\x01 nonsense\r\n\r\n"), 1);
	ck_assert_uint_eq(meeting.requests, 0);
}
END_TEST

START_TEST(http_server_adds_headers_and_serves_constants)
{
	meet(&meeting,
	     SPAN("GET /constant HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"), 2);
	ck_assert_ptr_nonnull(strstr(meeting.answer, "X-One: 1\r\n"));
	ck_assert_ptr_nonnull(strstr(meeting.answer, "X-Two: 2\r\n"));
	ck_assert_ptr_nonnull(strstr(meeting.answer, "\r\n\r\nalways the same"));
}
END_TEST

START_TEST(http_server_answers_later_or_at_once_after_a_deferral)
{
	meet(&meeting,
	     SPAN("POST /later HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n"
	          "Connection: close\r\n\r\nabc"),
	     3);
	ck_assert_ptr_nonnull(strstr(meeting.answer, " 202 Accepted\r\n"));
	ck_assert_ptr_nonnull(strstr(meeting.answer, "\r\n\r\nat last"));
	ck_assert_uint_eq(meeting.requests, 3);
	meet(&meeting,
	     SPAN("GET /at-once HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"), 1);
	ck_assert_ptr_nonnull(strstr(meeting.answer, "\r\n\r\nalready here"));
}
END_TEST

START_TEST(http_server_streams_until_the_client_leaves)
{
	meet_until(&meeting, SPAN("GET /stream HTTP/1.1\r\nHost: h\r\n\r\n"), 1,
	           "data: piece\n\n\r\nD\r\ndata: piece\n\n\r\nD\r\ndata: piece");
	ck_assert_ptr_nonnull(
		strstr(meeting.answer, "Content-Type: text/event-stream\r\n"));
	ck_assert_uint_eq(meeting.pieces, 3);
	ck_assert_uint_eq(meeting.gone, 1);
}
END_TEST

/* All of them stay until the client has its answer, or the server shows them out. */
START_TEST(http_server_answers_whatever_sits_idle_on_its_port)
{
	const struct span crowds[] = {
		SPAN(""),
		SPAN("GET /half HTTP/1.1\r\nHo"),
		SPAN("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99\r\n\r\nhalf"),
		SPAN("GET / HTTP/1.1\r\nHost: h\r\n\r\n"),
		SPAN("GET /stream HTTP/1.1\r\nHost: h\r\n\r\n"),
	};

	for (size_t i = 0; i < ARRAY_SIZE(crowds); i++) {
		meet_in_a_crowd(&meeting,
		                SPAN("GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n"), 3,
		                "body=0", crowds[i]);
		ck_assert_msg(strstr(meeting.answer, "GET /healthz q=") != NULL,
		              "crowd %zu: \"%s\"", i, meeting.answer);
	}
	ck_assert_uint_gt(meeting.streams, CONNECTIONS_MAX / 2);
	ck_assert_uint_eq(meeting.gone, meeting.streams);
}
END_TEST

START_TEST(http_server_closes_although_an_answer_is_still_due)
{
	struct http_server_response response = http_server_response();
	struct http_server_later *later;

	/* The client leaves at once: its own question is what it finds. */
	meeting = (struct meeting){ 0 };
	meet_until(&meeting,
	           SPAN("GET /constant HTTP/1.1\r\nHost: h\r\n\r\n"
	                "GET /later HTTP/1.1\r\nHost: h\r\n\r\n"),
	           1, "always the same");
	later = meeting.later;
	if (later) { /* it was read before the server closed */
		(void)buffer_append_text(&response.body, "nobody hears it");
		http_server_answer(later, &response);
	}
}
END_TEST

START_TEST(http_server_says_why_it_cannot_listen)
{
	char message[HTTP_SERVER_MESSAGE_SIZE] = "", address[64];
	struct http_server *first, *second;
	uv_loop_t loop;

	ck_assert_int_eq(uv_loop_init(&loop), 0);
	ck_assert_int_eq(open_at(&loop, "9310", NULL, &first, message), ERR_MALFORMED);
	ck_assert_ptr_nonnull(strstr(message, "IP:port"));
	ck_assert_int_eq(open_at(&loop, "[::1]:x", NULL, &first, message), ERR_MALFORMED);

	ck_assert_int_eq(open_at(&loop, "localhost:0", NULL, &first, message), 0);
	(void)snprintf(address, sizeof address, "127.0.0.1:%u", http_server_port(first));
	ck_assert_int_eq(open_at(&loop, address, NULL, &second, message), ERR_IO);
	ck_assert_ptr_nonnull(strstr(message, address));
	ck_assert_ptr_nonnull(strstr(message, "another program listens there"));
	ck_assert_int_eq(/* TEST-NET-1: no machine has it */
	                 open_at(&loop, "192.0.2.1:0", NULL, &second, message), ERR_IO);
	ck_assert_ptr_nonnull(strstr(message, "this machine has no such address"));
	http_server_close(first, NULL, NULL);
	http_server_close(NULL, NULL, NULL);
	while (uv_run(&loop, UV_RUN_ONCE) != 0)
		continue;
	ck_assert_int_eq(uv_loop_close(&loop), 0);
}
END_TEST

SUITE_MAIN("http_server", http_server_answers_with_path_query_and_header,
           http_server_takes_bodies_and_serves_many_in_turn,
           http_server_answers_head_without_a_body,
           http_server_refuses_a_body_that_is_too_large,
           http_server_turns_an_answer_that_is_too_large_into_an_error,
           http_server_survives_what_is_no_http,
           http_server_adds_headers_and_serves_constants,
           http_server_answers_later_or_at_once_after_a_deferral,
           http_server_streams_until_the_client_leaves,
           http_server_answers_whatever_sits_idle_on_its_port,
           http_server_closes_although_an_answer_is_still_due,
           http_server_says_why_it_cannot_listen)
