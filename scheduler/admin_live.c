#include "scheduler/admin_live.h"

#include "scheduler/admin_api.h"
#include "scheduler/admin_use.h"

#define LIVE_MS   1000
#define IDLE_TURN 5     /* nobody looks: every so many turns, for the history */
#define LOOKS_MS  10000 /* who has asked so lately looks */

static void
put_event(struct admin *admin, struct buffer *out)
{
	(void)buffer_append_text(out, "event: overview\ndata: ");
	/* An object of its own: the writer looks for a comma to put before it. */
	struct buffer overview = BUFFER_INIT(BUFFER_SIZE_DEFAULT);

	admin_api_put_overview(admin, &overview);
	(void)buffer_append(out, buffer_span(&overview));
	(void)buffer_append_text(out, "\n\n");
	buffer_fini(&overview);
}

static void
send_to_all(struct admin *admin)
{
	struct buffer event = BUFFER_INIT(BUFFER_SIZE_DEFAULT);

	board_retake(&admin->board, *admin->now_ms);
	if (admin->streams_count == 0)
		return;
	put_event(admin, &event);
	for (size_t i = 0; i < ADMIN_STREAMS_MAX && buffer_error(&event) == 0; i++) {
		struct http_server_stream *stream = admin->streams[i].stream;

		if (stream && http_server_stream_is_idle(stream))
			http_server_stream_send(stream, buffer_span(&event));
	}
	buffer_fini(&event);
}

static void
on_live(uv_timer_t *timer)
{
	struct admin *admin = timer->data;
	bool looks = admin->streams_count > 0 ||
	             uv_hrtime() / 1000000 < admin->looked_ms + LOOKS_MS;

	if ((looks || admin->turns % IDLE_TURN == 0) && board_is_due(&admin->board))
		admin_use_look(admin);
	admin->turns++;
}

void
admin_live_start(struct admin *admin)
{
	admin->on_use = send_to_all;
	(void)uv_timer_start(&admin->live, on_live, LIVE_MS, LIVE_MS);
}

static void
on_gone(void *data)
{
	struct admin_stream *place = data;

	place->stream = NULL;
	place->admin->streams_count--;
}

static struct admin_stream *
find_free(struct admin *admin)
{
	for (size_t i = 0; i < ADMIN_STREAMS_MAX; i++)
		if (!admin->streams[i].stream)
			return &admin->streams[i];
	return NULL;
}

void
admin_live_serve(struct admin *admin, const struct http_server_request *request,
                 struct http_server_response *response)
{
	struct admin_stream *place = find_free(admin);
	struct buffer event = BUFFER_INIT(BUFFER_SIZE_DEFAULT);

	response->content_type = "text/event-stream";
	if (place) {
		place->admin = admin;
		place->stream =
			http_server_stream_open(request, response, on_gone, place);
	}
	if (!place || !place->stream) {
		admin_put_error(response, 503, "too many pages are open");
		return;
	}
	put_event(admin, &event);
	http_server_stream_send(place->stream, buffer_span(&event));
	buffer_fini(&event);
	admin->streams_count++;
}
